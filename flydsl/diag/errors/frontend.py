"""Errors of control flow and of Python used on run-time values."""

from flydsl.diag.base import Unsupported, UserError
from flydsl.diag.construct import truth_construct

__all__ = [
    "BothUnrollHints",
    "CarryMismatch",
    "CarryNone",
    "CarryOpaque",
    "ConditionNotBoolean",
    "ConstExprDynamic",
    "DynamicAsPython",
    "EndlessLoop",
    "EscapedValue",
    "FragmentRebound",
    "GeneratorInKernel",
    "InitLoopJump",
    "LoopBoundType",
    "LoopStep",
    "MixedReturn",
    "NoFiller",
    "ProtocolMissing",
    "RangeArguments",
    "RegionLocal",
    "RunTimeRecursion",
    "StateNotCarried",
    "TupleTargetWithoutInit",
    "WhileElse",
    "YieldCount",
    "YieldMissing",
]


class DynamicAsPython(UserError, RuntimeError):
    code = "FLY_DYNAMIC_AS_PYTHON"
    what = "cannot evaluate dynamic '{dtype}' as Python {wanted} during tracing"
    why = "the value is known only when the kernel runs; Python asks for it while the kernel is being traced{construct}"
    fix = "{advice}"

    def __init__(self, **fields):
        super().__init__(construct="", **fields)
        found = truth_construct(self.span) if self.fields.get("wanted") == "bool" else None
        if found is not None:
            self.fields.update(construct=f", in {found[0]}", advice=found[1])


class ConstExprDynamic(UserError, RuntimeError):
    code = "FLY_CONST_EXPR_DYNAMIC"
    what = "{function} needs a compile-time value, got a dynamic '{dtype}'"
    why = "{function} is decided while the kernel is traced; this value is known only when the kernel runs"
    fix = "{advice}"


class ConditionNotBoolean(UserError, TypeError):
    code = "FLY_CONDITION_NOT_BOOLEAN"
    what = "the condition of `{construct}` must be a Boolean, got a dynamic '{dtype}'"
    why = "{reason}"
    fix = "{advice}"
    example = ("if n & 1:\n    ...", "if (n & 1) != 0:\n    ...")


class CarryMismatch(UserError, TypeError):
    code = "FLY_CARRY_MISMATCH"
    what = "{region}: carried variable '{name}' does not match the region entry: {detail}"
    why = "the value after {construct} is one run-time value whichever way the kernel goes, so its type must be one"
    fix = "{advice}"
    example = (
        "acc = 0\nfor i in range(n):\n    acc = acc + x[i]     # Float32",
        "acc = fx.Float32(0)\nfor i in range(n):\n    acc = acc + x[i]",
    )


class CarryNone(UserError, TypeError):
    code = "FLY_CARRY_NONE"
    what = "{region}: variable '{name}' is None before {construct} and {produced} inside it"
    why = (
        "the value after {construct} would be None or a run-time value, depending on what happens when the kernel runs"
    )
    fix = "give '{name}' a value of that type before {construct}"
    example = ("best = None\nif c:\n    best = fx.Int32(1)", "best = fx.Int32(0)\nif c:\n    best = fx.Int32(1)")


class CarryOpaque(UserError, TypeError):
    code = "FLY_CARRY_OPAQUE"
    what = "Cannot extract IR values from {cls}: {region} re-binds '{name}', which is {described}"
    why = "only DSL values, numbers, and lists, tuples, dicts, dataclasses or structs of them change at run time"
    fix = (
        "choose it with a compile-time condition (`if fx.const_expr(...)`), or give {cls} the methods "
        "__extract_to_ir_values__ and __construct_from_ir_values__"
    )


class NoFiller(Unsupported, TypeError):
    code = "FLY_NO_FILLER"
    what = "'{name}' of type {type} cannot leave {construct} only on some paths"
    why = "on the other paths the kernel needs a placeholder, which exists for numbers, vectors and pointers"
    fix = "give '{name}' a value of this type before {construct}"


class RegionLocal(UserError, NameError):
    code = "FLY_REGION_LOCAL"
    what = "'{name}' has no value here: it is bound only inside {region}"
    why = "{reason}"
    fix = "bind '{name}' before {construct}, with the type that it gets there"
    example = ("if c:\n    y = fx.Int32(1)\nout[0] = y", "y = fx.Int32(0)\nif c:\n    y = fx.Int32(1)\nout[0] = y")


class EscapedValue(UserError, ValueError):
    code = "FLY_ESCAPED_VALUE"
    what = "a value made inside {region} is used outside of it{variable}"
    why = "it exists only where the kernel runs that region, and left through an object that tracing cannot follow"
    fix = "assign the result to a variable of the function that contains {region}: variables are carried out"


class FragmentRebound(Unsupported, TypeError):
    code = "FLY_FRAGMENT_REBOUND"
    what = "{region}: '{name}' would be one register tensor or another, depending on what happens when the kernel runs"
    why = (
        "a register tensor ({tensor}) has no address that could be chosen then: {construct} can change what it holds, "
        "not which one a name stands for"
    )
    fix = (
        "keep the tensor and copy the contents, `{target}.store(other.load())`; to swap or choose, load both first, and "
        "store the loaded vectors or `condition.select(x, y)` of them; of views of one tensor, choose the coordinate"
    )
    example = ("if c:\n    a, b = b, a", "x, y = a.load(), b.load()\na.store(c.select(y, x))\nb.store(c.select(x, y))")


class StateNotCarried(UserError, TypeError):
    code = "FLY_STATE_NOT_CARRIED"
    what = "{region} changes '{name}', whose {cls} cannot hold a value that is known only when the kernel runs"
    why = "the body is traced once for all threads, so the change would show in threads and iterations that never make it"
    fix = "keep it in a variable, list, dict or object, which are carried; or change it under a compile-time condition (`if fx.const_expr(...)`)"
    example = ("seen = set()\nif c:\n    seen.add(x)", "seen = [fx.Int32(0)]\nif c:\n    seen[0] = x")


class MixedReturn(UserError, TypeError):
    code = "FLY_MIXED_RETURN"
    what = "`{function}` returns a value on some run-time paths and falls off its end on others"
    why = "which path is taken is known only when the kernel runs, so the caller would get a value or None"
    fix = "return a value of the same type on every path"


class RunTimeRecursion(UserError, RecursionError):
    code = "FLY_RUN_TIME_RECURSION"
    what = "`{function}` calls itself under a run-time condition: tracing it does not end"
    why = (
        "both branches of a run-time `if` are traced, since the condition is known only when the kernel runs, so this "
        "call is traced at every level"
    )
    fix = (
        "write a loop (`while`, `for ... in range(n)`) that carries the state in variables, or end the recursion with a "
        "compile-time value, `if fx.const_expr(depth == 0): return ...`"
    )


class LoopBoundType(UserError, TypeError):
    code = "FLY_LOOP_BOUND_TYPE"
    what = "for-loop {which} must be i32, got {type}"
    why = "run-time loops count in 32 bits"
    fix = "{advice}"


class LoopStep(UserError, ValueError):
    code = "FLY_LOOP_STEP"
    what = "the step of a run-time loop must be positive, got {step}"
    why = "run-time loops count upwards"
    fix = "loop upwards and compute the index, `i = n - 1 - k`; or unroll with fx.range_constexpr"


class BothUnrollHints(UserError, ValueError):
    code = "FLY_BOTH_UNROLL_HINTS"
    what = "range() takes unroll or unroll_full, not both"
    why = "one asks for a given number of copies of the body, the other for all of them"
    fix = "keep one of the two"


class RangeArguments(UserError, TypeError):
    code = "FLY_RANGE_ARGUMENTS"
    what = "{problem}"
    why = "run-time loops take range(start, stop, step), and init=, unroll=, unroll_full="
    fix = "{advice}"


class TupleTargetWithoutInit(UserError, TypeError):
    code = "FLY_TUPLE_TARGET"
    what = "a loop over range() without init= has one target, got a tuple"
    why = "only range(..., init=[...]) yields the state next to the counter"
    fix = "write `for i in range(...)`, or add init= with the initial state"


class YieldMissing(UserError, TypeError):
    code = "FLY_YIELD_MISSING"
    what = "{problem}"
    why = "range(..., init=[...]) hands on its state through the yield at the end of the body"
    fix = "end the body with `results = yield [...]`, one value for each entry of init"


class YieldCount(UserError, TypeError):
    code = "FLY_YIELD_COUNT"
    what = "init= has {expected} and the yield has {produced} values"
    why = "each entry of the loop's state needs its next value"
    fix = "yield one value for each entry of init, in the same order"


class GeneratorInKernel(Unsupported, TypeError):
    code = "FLY_GENERATOR"
    what = "`{function}` is a generator; yield stands only at the end of a `for ... in range(..., init=...)`"
    why = "a kernel cannot be suspended and resumed"
    fix = "return a list, or pass a function that is called for each element"


class InitLoopJump(Unsupported, TypeError):
    code = "FLY_INIT_LOOP_JUMP"
    what = "break, continue and return are not supported in a loop with init="
    why = "such a loop hands on its state through the one yield at its end"
    fix = "drop init= and yield, and use ordinary variables: they are carried automatically, and jumps work"


class EndlessLoop(UserError, ValueError):
    code = "FLY_ENDLESS_LOOP"
    what = "this loop does not end: {reason}"
    why = "a condition that is known while tracing is decided by Python, once for each iteration"
    fix = "{advice}"


class WhileElse(Unsupported, NotImplementedError):
    code = "FLY_WHILE_ELSE"
    what = "`while ... else` is not supported for a run-time loop"
    why = "{reason}"
    fix = "put the else body after the loop, under a flag where the loop can break"


class ProtocolMissing(UserError, TypeError):
    code = "FLY_PROTOCOL_MISSING"
    what = "Cannot {action} {value}: it has no {method}"
    why = "values of kernels, arguments and stored values say themselves how they are taken apart"
    fix = "use a DSL type, a struct or a container of them, or give the class the method {method}"

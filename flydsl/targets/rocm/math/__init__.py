"""Expansion of `math.*` ops: to LLVM intrinsics where the code generator is accurate, else to arithmetic.

Before  any math op on f16, bf16, f32, f64 or integers, scalar or vector
After   no math op that upstream would turn into a call of ROCm's bitcode library (`__ocml_*`), and none that
LLVM cannot select

It is a step of this target. The simulator runs the `math` ops themselves (NumPy), so that each can be checked
with the other. f16 and bf16 are computed in f32 and rounded once. f64 has exp, exp2, log, log2, log10, sqrt,
rsqrt, rounding, fma, and refuses the rest. The fast-math flag `afn` selects the bare hardware instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from flydsl.diag.errors.target import MathUnsupported
from flydsl.ir import ir
from flydsl.ir.expression import Builder, Expr, element
from flydsl.targets.rocm.guards import place
from flydsl.targets.rocm.math import double, f32, trig

Rule = Callable[..., Expr]

# accurate in LLVM for f32 (and narrower through f32); the flags of the op go along
_INTRINSICS = frozenset({"exp", "exp2", "log", "log2", "log10", "sqrt"})
# right in LLVM for every float type; the name of LLVM's intrinsic
_ANY_TYPE = {name: name for name in ("floor", "ceil", "trunc", "round", "roundeven", "copysign", "fma")} | {
    "absf": "fabs"
}

_F32: dict[str, Rule] = {
    "rsqrt": f32.rsqrt,
    "tanh": f32.tanh,
    "erf": f32.erf,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
}
_THROUGH_F64: dict[str, Rule] = {
    name: getattr(double, name)
    for name in (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "cosh",
        "erfc",
        "expm1",
        "log1p",
        "sinh",
    )
} | {"powf": double.power}
_F64: dict[str, Rule] = {
    "exp": double.exp,
    "exp2": double.exp2,
    "log": double.log,
    "log2": double.log2,
    "log10": double.log10,
    "sqrt": lambda x: x.call("sqrt"),
    "rsqrt": lambda x: 1.0 / x.call("sqrt"),
}
_TESTS = {
    "isnan": lambda x: x.compare("uno", x),
    "isinf": lambda x: x.abs().compare("oeq", float("inf")),
    "isfinite": lambda x: x.abs().compare("one", float("inf")),
}
NAMES = frozenset(
    f"math.{n}"
    for n in (*_INTRINSICS, *_ANY_TYPE, *_F32, *_THROUGH_F64, *_TESTS, "isnormal", "sincos", "clampf", "fpowi", "ipowi")
)


def expand(op: ir.Operation) -> None:
    """Replace one op of `NAMES`.

    Raises   MathUnsupported: no accurate code for its type
    """
    b = Builder(op)
    name = op.name.split(".")[1]
    with op.context, op.location:
        operands = [b.wrap(v) for v in op.operands]
        results = _results(b, op, name, operands)
        for old, new in zip(op.results, results):
            old.replace_all_uses_with(new.value)
        op.erase()


def _results(b: Builder, op: ir.Operation, name: str, x: list[Expr]) -> list[Expr]:
    match name:
        case "sincos":
            return [_elementary(b, op, "sin", x), _elementary(b, op, "cos", x)]
        case "clampf":
            value, low, high = x
            return [value.call("arith.maximumf", low).call("arith.minimumf", high)]
        case "isnormal":
            magnitude = x[0].abs()
            smallest = {"f16": 2.0**-14, "f64": 2.0**-1022}.get(str(element(x[0].kind)), 2.0**-126)
            return [magnitude.compare("oge", smallest) & magnitude.compare("olt", float("inf"))]
        case "ipowi":
            return [_integer_power(*x)]
        case "fpowi":
            return [_elementary(b, op, "powf", [x[0], x[1].cast("sitofp", str(element(x[0].kind)))])]
    if name in _TESTS:
        return [_TESTS[name](x[0])]
    return [_elementary(b, op, name, x)]


def _elementary(b: Builder, op: ir.Operation, name: str, x: list[Expr]) -> Expr:
    kind = str(element(x[0].kind))
    if name in _ANY_TYPE:
        return _intrinsic(b, op, _ANY_TYPE[name], x)
    if kind == "f64":
        if name not in _F64:
            raise MathUnsupported(
                op=f"math.{name}",
                dtype="f64",
                at=place(op),
                supported=f"f16, bf16, f32; for f64 only {', '.join(sorted(_F64))}",
            )
        return _F64[name](*x)
    if kind not in ("f16", "bf16", "f32"):
        raise MathUnsupported(op=f"math.{name}", dtype=kind, supported="f16, bf16, f32", at=place(op))
    wide = x if kind == "f32" else [e.cast("extf", "f32") for e in x]
    if name in f32.APPROXIMATE and _may_approximate(op):
        result = f32.APPROXIMATE[name](*wide)
    elif name in _INTRINSICS:
        result = _intrinsic(b, op, name, wide)
    elif name in _F32:
        result = _F32[name](*wide)
    else:
        result = _THROUGH_F64[name](*(e.cast("extf", "f64") for e in wide)).cast("truncf", "f32")
    return result if kind == "f32" else result.cast("truncf", kind)


def _may_approximate(op: ir.Operation) -> bool:
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return "afn" in flags or "fast>" in flags


def _intrinsic(b: Builder, op: ir.Operation, intrinsic: str, x: list[Expr]) -> Expr:
    flags = None
    if "fastmath" in op.attributes and (text := str(op.attributes["fastmath"])) != "#arith.fastmath<none>":
        flags = ir.Attribute.parse(text.replace("arith", "llvm"))
    return b.wrap(b.intrinsic(intrinsic, x[0].kind, [e.value for e in x], flags))


def _integer_power(base: Expr, exponent: Expr) -> Expr:
    """Return base ** exponent with wrap-around, by squaring over all bits; negative exponents as in integer
    division."""
    width = element(base.kind).width
    result, square, rest = base.const(1), base, exponent
    for _ in range(width):
        result = (rest & 1).compare("ne", 0).select(result * square, result)
        square, rest = square * square, rest.shr_unsigned(1)
    magnitude_one = base.compare("eq", 1) | base.compare("eq", -1)
    odd = (exponent & 1).compare("ne", 0)
    reciprocal = magnitude_one.select(odd.select(base, 1), 0)
    return exponent.compare("slt", 0).select(reciprocal, result)

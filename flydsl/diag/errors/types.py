"""Errors of scalar, vector and layout types."""

from flydsl.diag.base import UserError

__all__ = [
    "BareIntegerToFloat",
    "BasisBad",
    "DynamicAsInteger",
    "DynamicInArray",
    "DynamicToPython",
    "FloatHasNoInteger",
    "FloatIsInfinite",
    "IntegerBeyondFloat",
    "LeafNotInteger",
    "ModeMissing",
    "NarrowFloatOperand",
    "NegativeShift",
    "NoCommonFloat",
    "NoOperands",
    "NotConvertible",
    "NotStaticLeaf",
    "OperandKind",
    "RoundingModeNeedsFloats",
    "RoundingModeNeedsRunTime",
    "StaleValue",
    "StaticDivisionByZero",
    "StaticOverflow",
    "UnaryUndefined",
    "UnknownIrType",
    "UnknownReduction",
    "UnsupportedOperand",
    "VectorConstruction",
    "VectorCoordinate",
    "VectorIndex",
    "VectorIndexKind",
    "WrongKind",
]


class UnsupportedOperand(UserError, TypeError):
    code = "FLY_OPERAND_UNSUPPORTED"
    what = "unsupported operand type(s) for {op}: '{left}' and '{right}'"
    why = "{reason}"
    fix = "{advice}"


class UnaryUndefined(UserError, TypeError):
    code = "FLY_UNARY_UNDEFINED"
    what = "{op} is undefined for {dtype}"
    why = "{reason}"
    fix = "{advice}"


class NoCommonFloat(UserError, ValueError):
    code = "FLY_NO_COMMON_FLOAT"
    what = "no common float type for {left} and {right}; cast explicitly"
    why = "neither format holds all values of the other, and 8-bit or narrower results would lose most of them"
    fix = "write x.to(fx.Float32) on both operands, then convert the result"


class NotConvertible(UserError, ValueError):
    code = "FLY_NOT_CONVERTIBLE"
    what = "{value} to {dtype} conversion is not supported"
    why = "{dtype} is made from Python numbers, other scalars and single run-time values"
    fix = "{advice}"


class FloatHasNoInteger(UserError, ValueError):
    code = "FLY_NAN_TO_INTEGER"
    what = "float NaN is not representable as integer"
    why = "the constant is converted while the kernel is traced, and NaN has no integer value"
    fix = "test for NaN before the conversion"


class FloatIsInfinite(UserError, OverflowError):
    code = "FLY_INFINITY_TO_INTEGER"
    what = "float infinity is not representable as integer"
    why = "the constant is converted while the kernel is traced, and an infinity has no integer value"
    fix = "use the largest value of the integer type"


class IntegerBeyondFloat(UserError, OverflowError):
    code = "FLY_INTEGER_BEYOND_FLOAT"
    what = "an integer of {bits} bits is too large for {dtype}"
    why = "constants are held as Python floats while the kernel is traced, whose largest value is about 2**1024"
    fix = 'write float("inf"), or a number that the type holds'


class BareIntegerToFloat(UserError, ValueError):
    code = "FLY_BARE_INTEGER_TO_FLOAT"
    what = "bare signless integer cannot be promoted to float; use a typed wrapper"
    why = "a raw MLIR integer does not say whether it is signed, and the conversion depends on it"
    fix = "write {dtype}(fx.Int32(value)) or {dtype}(fx.Uint32(value))"


class UnknownIrType(UserError, ValueError):
    code = "FLY_UNKNOWN_IR_TYPE"
    what = "unsupported mlir type: {type}"
    why = "no scalar class of fx stands for it"
    fix = "{advice}"


class DynamicInArray(UserError, IndexError):
    code = "FLY_DYNAMIC_IN_ARRAY"
    what = "dynamic '{dtype}' is used in a NumPy array of the host, as an index or an element"
    why = "NumPy computes while the kernel is being traced; the value is known only when the kernel runs"
    fix = (
        "pass the array to the @jit function as an fx.Tensor argument and index that in the kernel; "
        "to keep such values in an array, give it dtype=object"
    )


class DynamicAsInteger(UserError, RuntimeError):
    code = "FLY_DYNAMIC_AS_INTEGER"
    what = "dynamic '{dtype}' has no Python integer representation"
    why = "the value is known only when the kernel runs; Python asks for its integer while the kernel is being traced"
    fix = (
        "make it a compile-time value (fx.Constexpr[int]), loop with a plain `for i in range(n)` inside the kernel, "
        "or index a tensor or Vector instead of a Python list"
    )


class DynamicToPython(UserError, ValueError):
    code = "FLY_DYNAMIC_TO_PYTHON"
    what = "dynamic IR value cannot be materialized as {wanted}"
    why = "the value is known only when the kernel runs"
    fix = "convert to a class of fx, for example x.to(fx.Int32)"


class NegativeShift(UserError, ValueError):
    code = "FLY_NEGATIVE_SHIFT"
    what = "negative shift count"
    why = "both operands are compile-time constants and the count is {count}"
    fix = "shift the other way by {positive}"


class StaticDivisionByZero(UserError, ZeroDivisionError):
    code = "FLY_STATIC_DIVISION_BY_ZERO"
    what = "{op} by zero"
    why = "both operands are compile-time constants: {left} {op_sign} {right}"
    fix = "guard the constant, for example with `if const_expr(d != 0)`"


class StaticOverflow(UserError, OverflowError):
    code = "FLY_STATIC_OVERFLOW"
    what = "{op} of {left} and {right} does not fit {dtype}"
    why = "both operands are compile-time constants"
    fix = "use a wider type"


class StaleValue(UserError, RuntimeError):
    code = "FLY_STALE_VALUE"
    what = "a run-time '{dtype}' is used outside the function that it belongs to"
    why = "a value lives in the function in which it was traced; it was kept in a variable, list or closure"
    fix = "pass it as a kernel argument, or compute it again inside this function"


class RoundingModeNeedsFloats(UserError, TypeError):
    code = "FLY_ROUNDING_MODE_TYPES"
    what = "rounding_mode is only supported for float-to-float casts, got {source} -> {target}"
    why = "conversions from and to integers have one rounding: toward zero to an integer, to nearest even to a float"
    fix = "leave rounding_mode out"


class RoundingModeNeedsRunTime(UserError, ValueError):
    code = "FLY_ROUNDING_MODE_STATIC"
    what = "rounding_mode requires a run-time value, but this {dtype} holds the compile-time constant {value}"
    why = "compile-time floats keep full precision until they are materialized"
    fix = "leave rounding_mode out, or round the constant in Python"


class OperandKind(UserError, TypeError):
    code = "FLY_OPERAND_KIND"
    what = "{problem}"
    why = "{reason}"
    fix = "{advice}"


class NarrowFloatOperand(UserError, TypeError):
    code = "FLY_NARROW_FLOAT_OPERAND"
    what = "{function} does not support narrow storage float {dtype}"
    why = "8-bit and narrower floats are storage formats; chips convert them but do not compute on them"
    fix = "write x.to(fx.Float32) first"


class WrongKind(UserError, TypeError):
    code = "FLY_WRONG_KIND"
    what = "{subject} must be {wanted}, got {got}"
    why = "the operation is defined for this kind of value only"
    fix = "pass {wanted}"


class LeafNotInteger(UserError, TypeError):
    code = "FLY_LEAF_NOT_INTEGER"
    what = "{subject} must be an integer, got {got}"
    why = "shapes, strides and coordinates are made of Python ints, run-time integers, None and Basis"
    fix = "convert it, for example with fx.Int32(x), or pass a Python int"


class BasisBad(UserError, ValueError):
    code = "FLY_BASIS_MODES"
    what = "the modes of a basis leaf must be non-negative ints and at least one, got {modes}"
    why = "they are the path to one coordinate, outermost mode first"
    fix = "write fx.Basis(value, [mode, ...]) or fx.E(mode, ...) * value"


class NotStaticLeaf(UserError, ValueError):
    code = "FLY_NOT_STATIC_LEAF"
    what = "`{got}` is not a single integer known while tracing"
    why = "a Python int can be taken only from a leaf that is static"
    fix = "pick a leaf with [i], use to_py_value() for run-time scalars, or make the extent static"


class ModeMissing(UserError, IndexError):
    code = "FLY_MODE_MISSING"
    what = "Index {index} out of range for int tuple with rank {rank}"
    why = "modes are numbered from 0 to rank - 1"
    fix = "use fx.rank(x) to see how many modes there are"


class VectorConstruction(UserError, ValueError):
    code = "FLY_VECTOR_SHAPE"
    what = "{problem}"
    why = "a Vector holds a compile-time number of elements of one class"
    fix = "{advice}"


class VectorIndex(UserError, IndexError):
    code = "FLY_VECTOR_INDEX"
    what = "vector index {index} out of range for numel {numel}"
    why = "the index is known while tracing, and the vector's shape is {shape}"
    fix = "{advice}"


class VectorCoordinate(UserError, ValueError):
    code = "FLY_VECTOR_COORDINATE"
    what = "coordinate rank {rank} does not match shape rank {shape_rank}"
    why = "the coordinate {coordinate} does not fit the vector's shape {shape}"
    fix = "give one entry per mode: an integer, or None to keep the mode"


class VectorIndexKind(UserError, TypeError):
    code = "FLY_VECTOR_INDEX_KIND"
    what = "unsupported index type: {kind}"
    why = "a vector is indexed by an integer, by a run-time integer, or by a tuple of integers and None"
    fix = "{advice}"


class UnknownReduction(UserError, ValueError):
    code = "FLY_UNKNOWN_REDUCTION"
    what = "unknown reduction kind {kind}; expected one of ['add', 'mul', 'max', 'min']"
    why = "a reduction combines the elements with one of four operations"
    fix = 'write v.reduce("add") or v.reduce(fx.ReductionOp.ADD)'


class NoOperands(UserError, ValueError):
    code = "FLY_NO_OPERANDS"
    what = "fx.{function} requires at least one operand"
    why = "there is nothing to compare"
    fix = "pass the values, or a list of them"

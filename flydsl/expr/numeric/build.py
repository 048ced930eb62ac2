"""Building arithmetic ops: one function per shape of op, for scalars (`n` = 0) and vectors of `n` elements alike.

The caller passes trace and location, found once per user-level operation.
"""

from collections.abc import Callable

from flydsl.expr.fastmath import ambient, attrs_of_bits
from flydsl.expr.numeric.base import Numeric, static_constant
from flydsl.ir import ir
from flydsl.ir.trace import create_op

Emitter = Callable[..., ir.Value]  # (trace, n, x, y, loc)

CMPI = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
CMPI_UNSIGNED = {"==": 0, "!=": 1, "<": 6, "<=": 7, ">": 8, ">=": 9}
CMPF = {"==": 1, ">": 2, ">=": 3, "<": 4, "<=": 5, "!=": 13}  # ordered, but `!=` is true on NaN

_INTEGER_OPS = {
    "+": "arith.addi",
    "-": "arith.subi",
    "*": "arith.muli",
    "&": "arith.andi",
    "|": "arith.ori",
    "^": "arith.xori",
    "<<": "arith.shli",
    "**": "math.ipowi",
}
_SIGNED_OPS = {"//": "arith.floordivsi", "%": "arith.remsi", ">>": "arith.shrsi"}
_UNSIGNED_OPS = {"//": "arith.divui", "%": "arith.remui", ">>": "arith.shrui"}
_FLOAT_OPS = {
    "+": "arith.addf",
    "-": "arith.subf",
    "*": "arith.mulf",
    "/": "arith.divf",
    "//": "arith.divf",
    "%": "arith.remf",
    "**": "math.powf",
}


def result_types(trace, mlir: str, n: int) -> tuple[ir.Type]:
    """Return the one-element tuple of the type `mlir` (n = 0) or `vector<n x mlir>`."""
    memo = trace.types.memo
    key = (mlir, n)
    t = memo.get(key)
    if t is None:
        elem = trace.types.by_name[mlir]
        t = memo[key] = (trace.types.vector(n, elem) if n else elem,)
    return t


def cmp_attrs(trace, code: int) -> dict:
    """Return `{"predicate": code}`, one dict per context."""
    memo = trace.types.memo
    attrs = memo.get(("predicate", code))
    if attrs is None:
        attrs = memo["predicate", code] = {"predicate": ir.IntegerAttr.get(trace.types.i64, code)}
    return attrs


def cmpf_attrs(trace, code: int) -> dict:
    """Return the attributes of a float comparison under the ambient fast-math flags."""
    attrs = cmp_attrs(trace, code)
    return {**attrs, **attrs_of_bits(trace, ambient.flags)} if ambient.flags else attrs


def op1(trace, name: str, mlir: str, n: int, operands: tuple, loc, attrs: dict | None = None) -> ir.Value:
    """Build an op with one result of element type `mlir`."""
    types = result_types(trace, mlir, n)
    return create_op(name, types, operands, attrs, None, 0, loc, trace.ip).result


def float_op1(trace, name: str, mlir: str, n: int, operands: tuple, loc) -> ir.Value:
    """Build a float op with one result, under the ambient fast-math flags."""
    flags = ambient.flags
    attrs = attrs_of_bits(trace, flags) if flags else None
    return create_op(name, result_types(trace, mlir, n), operands, attrs, None, 0, loc, trace.ip).result


def constant_of(trace, mlir: str, n: int, payload: int | float) -> ir.Value:
    """Return the function's constant: a scalar, or a vector with all elements equal."""
    if not n:
        return static_constant(trace, mlir, payload)
    constants = trace.scope.constants
    key = (mlir, n, payload if payload else str(payload))
    v = constants.get(key)
    if v is None:
        vector = result_types(trace, mlir, n)[0]
        attr = ir.DenseElementsAttr.get_splat(vector, _scalar_attr(trace, mlir, payload))
        v = create_op("arith.constant", (vector,), (), {"value": attr}, None, 0, trace.unknown_loc, trace.scope.entry)
        v = constants[key] = v.result
    return v


def _scalar_attr(trace, mlir: str, payload: int | float) -> ir.Attribute:
    scalar = static_constant(trace, mlir, payload)
    return scalar.owner.attributes["value"]


def emitter_of(symbol: str, c: type[Numeric]) -> Emitter:
    """Return the builder of `x <symbol> y` for operands of class `c`."""
    if symbol in CMPF:
        return _compare(symbol, c)
    mlir = c.element.mlir
    if c.is_float:
        return _floor_quotient(mlir) if symbol == "//" else _float(_FLOAT_OPS[symbol], mlir)
    by_sign = _UNSIGNED_OPS if is_unsigned(c) else _SIGNED_OPS
    return _integer(by_sign.get(symbol) or _INTEGER_OPS[symbol], mlir)


def is_unsigned(c: type[Numeric]) -> bool:
    """Return whether ordering, division and right shift of `c` are unsigned; a Boolean's one bit is."""
    return not c.signed or c.width == 1


def _integer(name: str, mlir: str) -> Emitter:
    def emit(trace, n, x, y, loc):
        types = trace.types.memo.get((mlir, n)) or result_types(trace, mlir, n)
        return create_op(name, types, (x, y), None, None, 0, loc, trace.ip).result

    return emit


def _float(name: str, mlir: str) -> Emitter:
    def emit(trace, n, x, y, loc):
        types = trace.types.memo.get((mlir, n)) or result_types(trace, mlir, n)
        flags = ambient.flags
        attrs = attrs_of_bits(trace, flags) if flags else None
        return create_op(name, types, (x, y), attrs, None, 0, loc, trace.ip).result

    return emit


def _floor_quotient(mlir: str) -> Emitter:
    def emit(trace, n, x, y, loc):
        return float_op1(trace, "math.floor", mlir, n, (float_op1(trace, "arith.divf", mlir, n, (x, y), loc),), loc)

    return emit


def _compare(symbol: str, c: type[Numeric]) -> Emitter:
    if c.is_float:
        code = CMPF[symbol]
        return lambda trace, n, x, y, loc: op1(trace, "arith.cmpf", "i1", n, (x, y), loc, cmpf_attrs(trace, code))
    code = (CMPI_UNSIGNED if is_unsigned(c) else CMPI)[symbol]
    key = ("predicate", code)

    def emit(trace, n, x, y, loc):
        memo = trace.types.memo
        attrs = memo.get(key) or cmp_attrs(trace, code)
        types = memo.get(("i1", n)) or result_types(trace, "i1", n)
        return create_op("arith.cmpi", types, (x, y), attrs, None, 0, loc, trace.ip).result

    return emit

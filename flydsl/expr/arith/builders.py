"""Raw builders: operands raw values (DSL values and numbers are accepted), results `ArithValue`; conversions
take the result type first.

Integer forms wrap; division by zero and shifts by the width or more are undefined, as in the `arith` dialect.
`results`, `loc` and `ip` are accepted as MLIR's own builders have them, and change nothing.
"""

from collections.abc import Callable
from typing import Any

from flydsl.expr.numeric import class_of_type, from_python_value
from flydsl.expr.numeric.base import static_constant
from flydsl.expr.numeric.build import constant_of
from flydsl.expr.numeric.fold import fit
from flydsl.expr.numeric.raw_value import ArithValue, typed
from flydsl.expr.raw_ops import as_type, build_raw, flags_of, raw_operand
from flydsl.ir import current, ir
from flydsl.ir.trace import create_op


def _pair(lhs: Any, rhs: Any) -> tuple[ir.Value, ir.Value]:
    """Return two raw operands of one type; a number takes the type of the other operand."""
    if isinstance(lhs, (int, float)) and not isinstance(rhs, (int, float)):
        y = raw_operand(rhs)
        return _like(lhs, y), y
    x = raw_operand(lhs)
    return x, _like(rhs, x)


def _like(value: Any, other: ir.Value) -> ir.Value:
    if not isinstance(value, (int, float)):
        return raw_operand(value)
    return constant_like(value, other.type)


def constant_like(value: int | float, type_: ir.Type) -> ir.Value:
    """Return the constant of a scalar type, or with all elements equal of a vector type."""
    trace = current()
    if not isinstance(type_, ir.VectorType):
        cls = class_of_type(type_)
        return static_constant(trace, cls.element.mlir, fit(cls, value))
    cls = class_of_type(type_.element_type)
    if len(type_.shape) == 1:
        return constant_of(trace, cls.element.mlir, type_.shape[0], fit(cls, value))
    scalar = static_constant(trace, cls.element.mlir, fit(cls, value)).owner.attributes["value"]
    attrs = {"value": ir.DenseElementsAttr.get_splat(type_, scalar)}
    return create_op("arith.constant", (type_,), (), attrs, None, 0, trace.loc(2), trace.ip).result


def _integer(name: str, summary: str) -> Callable[..., ArithValue]:
    op = "arith." + name

    def builder(
        lhs: Any, rhs: Any, *, overflow_flags: Any = None, is_exact: Any = None, results: Any = None, loc: Any = None, ip: Any = None
    ) -> ArithValue:
        x, y = _pair(lhs, rhs)
        attrs = {}
        if overflow_flags is not None:
            attrs["overflowFlags"] = overflow_flags
        if is_exact:
            attrs["isExact"] = ir.UnitAttr.get()
        return build_raw(op, None, (x, y), attrs or None)

    return _named(builder, name, summary)


def _float(name: str, summary: str) -> Callable[..., ArithValue]:
    op = "arith." + name

    def builder(lhs: Any, rhs: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
        x, y = _pair(lhs, rhs)
        return build_raw(op, None, (x, y), flags_of(fastmath))

    return _named(builder, name, summary)


def _conversion(
    name: str, summary: str, is_float: bool = False
) -> Callable[..., ArithValue]:
    op = "arith." + name

    def builder(
        out: Any, in_: Any, *, fastmath: Any = None, roundingmode: Any = None, results: Any = None, loc: Any = None, ip: Any = None
    ) -> ArithValue:
        x = raw_operand(in_)
        target = _shaped_like(as_type(out), x.type)
        attrs = dict(flags_of(fastmath) or {}) if is_float else {}
        if roundingmode is not None:
            attrs["roundingmode"] = ir.IntegerAttr.get(current().types.i32, int(roundingmode))
        return build_raw(op, target, (x,), attrs or None)

    return _named(builder, name, summary)


def _shaped_like(target: ir.Type, source: ir.Type) -> ir.Type:
    """Return a scalar target as a vector type when the operand is a vector."""
    if isinstance(source, ir.VectorType) and not isinstance(target, ir.VectorType):
        with ir.Location.unknown():
            return ir.VectorType.get(list(source.shape), target)
    return target


def _named(builder: Callable, name: str, summary: str) -> Callable:
    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = summary
    return builder


addi = _integer("addi", "Return lhs + rhs.")
subi = _integer("subi", "Return lhs - rhs.")
muli = _integer("muli", "Return lhs * rhs.")
divsi = _integer("divsi", "Return the signed quotient, rounded toward zero.")
divui = _integer("divui", "Return the unsigned quotient.")
remsi = _integer("remsi", "Return the signed remainder, with the sign of lhs.")
remui = _integer("remui", "Return the unsigned remainder.")
floordivsi = _integer("floordivsi", "Return the signed quotient, rounded down.")
ceildivsi = _integer("ceildivsi", "Return the signed quotient, rounded up.")
ceildivui = _integer("ceildivui", "Return the unsigned quotient, rounded up.")
andi = _integer("andi", "Return the bits set in both.")
ori = _integer("ori", "Return the bits set in one or both.")
xori = _integer("xori", "Return the bits set in one only.")
shli = _integer("shli", "Return lhs shifted left by rhs bits.")
shrsi = _integer("shrsi", "Return lhs shifted right by rhs bits, its sign coming in.")
maxsi = _integer("maxsi", "Return the larger signed integer.")
maxui = _integer("maxui", "Return the larger unsigned integer.")
minsi = _integer("minsi", "Return the smaller signed integer.")
minui = _integer("minui", "Return the smaller unsigned integer.")

addf = _float("addf", "Return lhs + rhs.")
subf = _float("subf", "Return lhs - rhs.")
mulf = _float("mulf", "Return lhs * rhs.")
divf = _float("divf", "Return lhs / rhs.")
remf = _float("remf", "Return the float remainder, with the sign of lhs.")

extf = _conversion("extf", "Return a float widened to type `out`.", is_float=True)
truncf = _conversion("truncf", "Return a float narrowed to type `out`, rounded to nearest even.", is_float=True)
extsi = _conversion("extsi", "Return an integer widened with its sign.")
extui = _conversion("extui", "Return an integer widened with zeros.")
trunci = _conversion("trunci", "Return the low bits of an integer.")
fptosi = _conversion("fptosi", "Return a float truncated to a signed integer.")
fptoui = _conversion("fptoui", "Return a float truncated to an unsigned integer.")
uitofp = _conversion("uitofp", "Return an unsigned integer as float.")
sitofp = _conversion("sitofp", "Return a signed integer as float.")
index_castui = _conversion("index_castui", "Return an unsigned integer as index, or an index as integer.")


def negf(operand: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return the negated float."""
    x = raw_operand(operand)
    return build_raw("arith.negf", None, (x,), flags_of(fastmath))


def bitcast(out: Any, in_: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return the bits of `in_` as type `out` of the same size; vectors may change their element count."""
    x, target = raw_operand(in_), as_type(out)
    if isinstance(x.type, ir.VectorType) and not isinstance(target, ir.VectorType):
        return typed(x).bitcast(class_of_type(target)).ir_value()
    is_vector = isinstance(target, ir.VectorType) and isinstance(x.type, ir.VectorType)
    return build_raw("vector.bitcast" if is_vector else "arith.bitcast", target, (x,))


def index_cast(target_type: Any, value: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return an integer as index or an index as integer; between integers it widens with the sign or truncates."""
    x, target = raw_operand(value), as_type(target_type)
    if x.type == target:
        return ArithValue(x)
    index_type = current().types.index
    if index_type not in (x.type, target):
        wider = class_of_type(target).width > class_of_type(x.type).width
        return build_raw("arith.extsi" if wider else "arith.trunci", target, (x,))
    return build_raw("arith.index_cast", target, (x,))


def trunc_f(target_type: Any, value: Any) -> ArithValue:
    """Return a float narrowed to a type; vectors element by element."""
    return truncf(target_type, value)


def select(condition: Any, true_value: Any, false_value: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return `true_value` where the condition holds, else `false_value`, as a raw value."""
    x, y = _pair(true_value, false_value)
    return build_raw("arith.select", None, (raw_operand(condition), x, y))


def constant(value: Any, *, type: Any = None, index: bool = False, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return a raw constant; the type defaults to i1, i32 (i64 if it does not fit) or f32 by the Python type."""
    if type is not None:
        return ArithValue(constant_like(value, as_type(type)))
    if index:
        return ArithValue(constant_like(value, current().types.index))
    return ArithValue(raw_operand(from_python_value(value)))


def index(value: int) -> ArithValue:
    """Return a raw index constant."""
    return constant(value, index=True)


def constant_vector(element_value: Any, vector_type: Any) -> ArithValue:
    """Return a raw vector with all elements equal."""
    type_ = as_type(vector_type)
    if isinstance(element_value, (int, float)):
        return ArithValue(constant_like(element_value, type_))
    return build_raw("vector.broadcast", type_, (raw_operand(element_value, type_.element_type),))


def unwrap(val: Any, *, type: Any = None, index: bool = False, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return the raw value of a DSL value; a number becomes a constant."""
    if isinstance(val, ArithValue):
        return val
    if isinstance(val, ir.Value):
        return ArithValue(val)
    if isinstance(val, (int, float)):
        return constant(val, type=type, index=index)
    return ArithValue(raw_operand(val), getattr(getattr(val, "dtype", None), "signed", None))

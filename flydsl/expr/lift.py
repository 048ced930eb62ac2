"""Named operations on scalars, Vectors and raw values alike: bring operands together, emit, hand back in the
first one's form.
"""

import sys
from dataclasses import dataclass
from typing import Any

from flydsl.expr.fastmath import ambient, attrs_of_bits, flag_bits
from flydsl.expr.numeric import Numeric, cast, common_class, from_python_value, raw, wrap
from flydsl.expr.numeric.base import NumericMeta
from flydsl.expr.numeric.build import inferred, result_types
from flydsl.expr.numeric.raw_value import ArithValue, typed
from flydsl.expr.vector.core import Vector, make, raw_vector, splat
from flydsl.expr.vector.elementwise import broadcast_to
from flydsl.expr.vector.shape import Shape, broadcast_shapes, numel_of
from flydsl.ir import current, ir
from flydsl.ir.trace import active, create_op


def as_dsl(value: Any) -> Numeric | Vector:
    """Return an operand as scalar or Vector; numbers become static scalars."""
    if isinstance(value, (Numeric, Vector)):
        return value
    value = typed(value)
    return value if isinstance(value, (Numeric, Vector)) else from_python_value(value)


@dataclass(slots=True)  # not frozen: that costs 0.5 us per object, on every named operation
class Operands:
    """Operands of one class and shape, as raw values. `shape` is None for scalars, `n` the elements or 0."""

    values: tuple[ir.Value, ...]
    dtype: type[Numeric]
    shape: Shape | None
    n: int
    form: Any  # the first operand as the user gave it


def gather(items: tuple, dtype: type[Numeric] | None = None) -> Operands:
    """Convert operands to `dtype` (default: their common class) and broadcast scalars to vectors."""
    cls = items[0].__class__
    if cls.__class__ is NumericMeta and (dtype is None or dtype is cls):
        for x in items:
            if x.__class__ is not cls:
                break
        else:  # scalars of one class, the usual case
            return Operands(tuple([raw(x) for x in items]), cls, None, 0, items[0])
    xs = [x if isinstance(x, (Numeric, Vector)) else as_dsl(x) for x in items]
    if dtype is None:
        dtype = xs[0].dtype
        for x in xs[1:]:
            if x.dtype is not dtype:
                dtype = common_class(dtype, x.dtype)
    shapes = [x.shape for x in xs if isinstance(x, Vector)]
    if not shapes:
        values = [raw(x if x.__class__ is dtype else cast(x, dtype)) for x in xs]
        return Operands(tuple(values), dtype, None, 0, items[0])
    shape = shapes[0]
    for other in shapes[1:]:
        shape = broadcast_shapes(shape, other)
    n = numel_of(shape)
    return Operands(tuple([_expand(x, dtype, shape, n) for x in xs]), dtype, shape, n, items[0])


def _expand(x: Numeric | Vector, dtype: type[Numeric], shape: Shape, n: int) -> ir.Value:
    if isinstance(x, Vector):
        return raw_vector(broadcast_to(x if x.dtype is dtype else x.to(dtype), shape))
    return splat(x, dtype, n)


def emit_scalars(name: str, items: tuple, is_float: bool, attrs: dict | None, depth: int = 2) -> Numeric | None:
    """Build op `name`, whose result is like its operands, on run-time scalars of one class; None for any other operands."""
    trace, cls = active.trace, items[0].__class__
    scope = None if trace is None else trace.scope
    if scope is None or cls.__class__ is not NumericMeta or cls.is_float is not is_float:
        return None
    for x in items:
        if x.__class__ is not cls or x._scope is not scope:
            return None
    loc = scope.locate(sys._getframe(depth))
    return wrap(cls, inferred(trace, name, [x._payload for x in items], loc, attrs), scope)


def emit_named(name: str, o: Operands, result: type[Numeric], attrs: dict | None = None, depth: int = 2) -> Any:
    """Build op `name` on gathered operands; the result has class `result`, in the form of the first operand."""
    trace = active.trace or current()
    loc = trace.scope.locate(sys._getframe(depth))
    types = result_types(trace, result.element.mlir, o.n)
    value = create_op(name, types, o.values, attrs, None, 0, loc, trace.ip).result
    return in_form(o, result, value)


def in_form(o: Operands, result: type[Numeric], value: ir.Value) -> Any:
    """Return a result raw if the first operand was raw or a bare float, else as scalar or Vector."""
    if isinstance(o.form, (ir.Value, float)):
        return ArithValue(value)
    return wrap(result, value) if o.shape is None else make(value, o.shape, result)


def float_flags(fastmath: Any) -> dict | None:
    """Return the attributes of a float op: the given flags, else the ambient ones."""
    bits = ambient.flags if fastmath is None else flag_bits(fastmath)
    return attrs_of_bits(current(), bits) if bits else None

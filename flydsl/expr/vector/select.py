"""`select` where the condition or a branch is a Vector."""

from typing import Any

from flydsl.expr.numeric import Boolean, Numeric, cast, common_class, from_python_value, raw
from flydsl.expr.vector.core import Vector, build, make, raw_vector, splat
from flydsl.expr.vector.elementwise import broadcast_to
from flydsl.expr.vector.shape import Shape, broadcast_shapes, numel_of
from flydsl.ir import ir


def select_vector(condition: Any, true_value: Any, false_value: Any) -> Vector:
    """Return `true_value` where the condition holds: a scalar condition chooses as a whole, a Vector lane by lane."""
    branches = [_typed(true_value), _typed(false_value)]
    dtype = common_class(*(b.dtype for b in branches))
    shape = _common_shape([v.shape for v in (condition, *branches) if isinstance(v, Vector)])
    values = tuple(_expanded(b, dtype, shape) for b in branches)
    if isinstance(condition, Vector):
        mask = condition if condition.dtype is Boolean else condition.to(Boolean)
        chooser = raw_vector(broadcast_to(mask, shape))
    else:
        chooser = raw(cast(condition, Boolean))
    return make(build("arith.select", dtype, numel_of(shape), (chooser, *values)), shape, dtype)


def _typed(value: Any) -> Any:
    if isinstance(value, (Vector, Numeric)):
        return value
    if isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
        return Vector(value)
    return from_python_value(value)


def _common_shape(shapes: list[Shape]) -> Shape:
    shape = shapes[0]
    for other in shapes[1:]:
        shape = broadcast_shapes(shape, other)
    return shape


def _expanded(value: Any, dtype: type[Numeric], shape: Shape) -> ir.Value:
    if isinstance(value, Vector):
        return raw_vector(broadcast_to(value.to(dtype), shape))
    return splat(value, dtype, numel_of(shape))

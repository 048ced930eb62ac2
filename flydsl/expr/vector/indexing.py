"""`v[...]`: one element by static or run-time index, or the modes which None keeps."""

import sys
from typing import Any

from flydsl.diag import VectorCoordinate, VectorIndex, VectorIndexKind
from flydsl.expr.numeric import Index, Numeric, cast, from_python_value, raw, wrap
from flydsl.expr.numeric.build import inferred
from flydsl.expr.vector.core import Vector, make, raw_vector
from flydsl.expr.vector.elementwise import DYNAMIC_POSITION, position_attr
from flydsl.expr.vector.shape import Shape, flat, numel_of, row_major_strides
from flydsl.ir import current, ir
from flydsl.ir.trace import active, create_op


def get_item(v: Vector, index: Any) -> Any:
    """`v[index]`, called from `Vector.__getitem__`."""
    if index.__class__ is int:
        return _extract(v, _in_range(v, index, v.numel, index))
    if index is None:
        return v
    if isinstance(index, (tuple, list)):
        return _by_coordinate(v, tuple(index))
    return _by_scalar(v, _scalar(index))


def _scalar(index: Any) -> Numeric:
    if isinstance(index, Numeric):
        x = index
    elif isinstance(index, ir.Value) or hasattr(index, "__index__"):
        x = from_python_value(index)
    else:
        advice = "take a part with v.shuffle(v, [i, j, ...])" if isinstance(index, slice) else "use an integer"
        raise VectorIndexKind(kind=type(index), advice=advice)
    if not x.is_integer:
        raise VectorIndexKind(kind=x.__class__, advice="convert the index with .to(fx.Int32)")
    return x


def _by_scalar(v: Vector, x: Numeric) -> Numeric:
    if x.is_static():
        return _extract(v, _in_range(v, int(x), v.numel, int(x)))
    trace = active.trace or current()
    frame, scope = sys._getframe(3), trace.scope
    operands = (raw_vector(v), raw(cast(x, Index, frame)))
    attrs = position_attr(trace, DYNAMIC_POSITION)
    return wrap(v.dtype, inferred(trace, "vector.extract", operands, trace.locate(frame), attrs), scope)


def _extract(v: Vector, position: int) -> Numeric:
    trace = active.trace or current()
    scope = trace.scope
    loc = trace.locate(sys._getframe(3))
    return wrap(v.dtype, inferred(trace, "vector.extract", (raw_vector(v),), loc, position_attr(trace, position)), scope)


def _in_range(v: Vector, index: int, extent: int, shown: Any) -> int:
    if -extent <= index < extent:
        return index + extent if index < 0 else index
    advice = f"indices of this mode go from {-extent} to {extent - 1}"
    raise VectorIndex(index=shown, numel=v.numel, shape=v.shape, advice=advice)


def _by_coordinate(v: Vector, coordinate: tuple) -> Any:
    """Return the element at a full coordinate, or the kept modes as a Vector."""
    leaves = _leaves(v, coordinate, v.shape, coordinate)
    extents = flat(v.shape)
    strides = row_major_strides(extents)
    if None in leaves:
        return _slice(v, leaves, extents, _kept(coordinate, v.shape))
    if all(isinstance(c, int) for c in leaves):
        return _extract(v, sum(c * s for c, s in zip(leaves, strides, strict=True)))
    position = sum((c * s for c, s in zip(leaves, strides, strict=True)), 0)
    return _by_scalar(v, position)


def _leaves(v: Vector, coordinate: tuple, shape: Shape, whole: tuple) -> list:
    """Return one entry per leaf of the shape: a static int, a run-time scalar, or None."""
    if len(coordinate) != len(shape):
        raise _mismatch(v, whole)
    out: list = []
    for c, s in zip(coordinate, shape, strict=True):
        if c is None:
            out.extend([None] * len(flat(s)))
        elif isinstance(s, tuple):
            if not isinstance(c, (tuple, list)):
                raise _mismatch(v, whole)
            out.extend(_leaves(v, tuple(c), s, whole))
        else:
            out.append(_leaf(v, c, s, whole))
    return out


def _leaf(v: Vector, c: Any, extent: int, whole: tuple) -> Any:
    if isinstance(c, (tuple, list)):
        raise _mismatch(v, whole)
    x = _scalar(c)
    return _in_range(v, int(x), extent, whole) if x.is_static() else x


def _mismatch(v: Vector, coordinate: tuple) -> VectorCoordinate:
    rank = len(flat(tuple(coordinate)))
    return VectorCoordinate(rank=rank, shape_rank=len(flat(v.shape)), coordinate=coordinate, shape=v.shape)


def _kept(coordinate: tuple, shape: Shape) -> Shape:
    """Return the shape of the modes marked None, nested as they were."""
    kept = []
    for c, s in zip(coordinate, shape, strict=True):
        if c is None:
            kept.append(s)
        elif isinstance(s, tuple):
            inner = _kept(tuple(c), s)
            if inner:
                kept.append(inner)
    return tuple(kept)


def _slice(v: Vector, leaves: list, extents: tuple[int, ...], kept: Shape) -> Vector:
    trace = current()
    if not all(c is None or isinstance(c, int) for c in leaves):
        advice = "take the slice with static integers, or single elements with run-time ones"
        raise VectorIndexKind(kind="a run-time integer together with None", advice=advice)
    if all(c is None for c in leaves):
        return v
    loc = trace.loc(3)
    elem = trace.types.by_name[v.dtype.element.mlir]
    sizes = [e if c is None else 1 for c, e in zip(leaves, extents, strict=True)]
    with ir.Location.unknown():
        full, part = ir.VectorType.get(list(extents), elem), ir.VectorType.get(sizes, elem)
    attrs = {
        "offsets": _i64s(trace, [c or 0 for c in leaves]),
        "sizes": _i64s(trace, sizes),
        "strides": _i64s(trace, [1] * len(sizes)),
    }

    def op(name: str, type_: ir.Type, x: ir.Value, attributes: dict | None = None) -> ir.Value:
        return create_op(name, (type_,), (x,), attributes, None, 0, loc, trace.ip).result

    x = raw_vector(v)
    if len(extents) > 1:
        x = op("vector.shape_cast", full, x)
    x = op("vector.extract_strided_slice", part, x, attrs)
    n = numel_of(kept)
    if len(extents) > 1:
        x = op("vector.shape_cast", trace.types.vector(n, elem), x)
    return make(x, kept, v.dtype)


def _i64s(trace, values: list[int]) -> ir.Attribute:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(trace.types.i64, value) for value in values])

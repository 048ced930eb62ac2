"""Between coordinates and indices: crd2idx, idx2crd, flat and linear coordinates.

Law   crd2idx(idx2crd(i)) = i for i in the image of a compact layout (idx2crd inverts strides,
not coordinates)
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from . import leaf
from .errors import DivisionByZero, OperandType, ProfileMismatch
from .int_tuple import (
    IntTuple,
    as_coordinate,
    as_modes,
    coord_add,
    product,
    to_str,
    weakly_congruent,
)
from .layout import ComposedLayout, Layout, coprofile_of, expect_layout, expect_plain
from .leaf import Basis, Sym
from .memo import operation
from .swizzle import CoordSwizzle, Swizzle, apply_swizzle


@operation
def crd2idx(coord: IntTuple, layout: Any) -> Any:
    """Return the index of a coordinate; with basis strides the index is itself a coordinate, a
    basis leaf where only one leaf has such a stride.

    Each coordinate leaf may stand for a whole mode, which it then walks first mode fastest; the
    last
    mode is not reduced. None counts as 0.
    Raises ProfileMismatch: the coordinate nests deeper than the layout or has another rank.
    """
    expect_layout(layout)
    return _evaluate(fitted(coord, layout), layout)


def fitted(coord: IntTuple, layout: Any) -> IntTuple:
    """Return a coordinate weakly congruent to the layout: rank-1 tuples above its leaves are
    unwrapped, anything else that does not fit is refused.
    """
    if type(coord) is not tuple:
        if type(coord) not in (int, Sym, Basis) and coord is not None:
            raise OperandType(f"a coordinate is an integer tuple, not {type(coord).__name__} `{coord}`")
        return coord
    if weakly_congruent(coord, layout.shape):
        return coord
    coord = _unwrapped(coord, layout.shape)
    if not weakly_congruent(coord, layout.shape):
        raise ProfileMismatch(f"is_profile_weakly_congruent({to_str(coord)}, {layout}) is False")
    return coord


def _unwrapped(coord: IntTuple, shape: IntTuple) -> IntTuple:
    """Return the coordinate without rank-1 tuples which meet a leaf of the shape."""
    if type(coord) is not tuple:
        return coord
    if type(shape) is not tuple:
        return _unwrapped(coord[0], shape) if len(coord) == 1 else coord
    if len(coord) != len(shape):
        return coord
    return tuple([_unwrapped(c, s) for c, s in zip(coord, shape)])


def _evaluate(coord: IntTuple, layout: Any) -> Any:
    if type(layout) is ComposedLayout:
        index = coord_add(layout.offset, _evaluate(coord, layout.outer))
        return apply_inner(layout.inner, index)
    index = _index(coord, layout.shape, layout.stride)
    return index if type(index) is not tuple else coord_add(coprofile_of(layout), index)


def apply_inner(inner: Any, index: IntTuple) -> Any:
    """Return what the inner part of a composed layout makes of an index."""
    if type(inner) is Swizzle:
        return apply_swizzle(index, inner)
    if type(inner) is CoordSwizzle:
        return inner(index)
    return _evaluate(as_coordinate(index), inner)


def coordinate_at(coord: IntTuple, layout: Any) -> IntTuple:
    """Return the index of a fitting coordinate, as a tuple wherever the layout gives coordinates."""
    return as_coordinate(_evaluate(coord, layout))


def _index(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> IntTuple:
    """Return sum(coord * stride); the sum of several basis leaves is a coordinate tuple."""
    if type(shape) is not tuple:
        if type(coord) is tuple or type(stride) is tuple:
            raise ProfileMismatch(f"{to_str(coord)} does not fit {to_str(shape)}:{to_str(stride)}")
        return leaf.mul(0 if coord is None else coord, stride)
    if type(stride) is not tuple or len(stride) != len(shape):
        raise ProfileMismatch(f"shape {to_str(shape)} and stride {to_str(stride)} nest differently")
    coords = coord if type(coord) is tuple else split(coord, shape)
    result: IntTuple = 0
    for c, s, d in zip(coords, shape, stride):
        term = _index(c, s, d)
        result = coord_add(result, term)
    return result


def split(coord: Any, shape: tuple) -> list:
    """Return one linear coordinate per mode, first mode fastest; the last is not reduced."""
    if coord is None or leaf.is_value(coord, 0):
        return [0] * len(shape)
    out = []
    for s in shape[:-1]:
        extent = product(s)
        out.append(leaf.mod(coord, extent))
        coord = leaf.div(coord, extent)
    return out + [coord]


def _checked_index(index: IntTuple, layout: Any) -> IntTuple:
    """Return the index with leaves where the layout has them; refuse what does not fit."""
    expect_plain(layout)
    index = fitted(index, layout)
    layout.flat()
    return index


@operation
def idx2crd(index: IntTuple, layout: Layout) -> IntTuple:
    """Return the coordinate of an index by its strides: each leaf is (index / stride) % shape,
    0 for extent 1.

    A tuple index is taken apart mode by mode.
    Raises DivisionByZero: an extent above 1 has stride 0
    """
    _checked_index(index, layout)
    return _coordinate(index, layout.shape, layout.stride)


def _coordinate(index: IntTuple, shape: IntTuple, stride: IntTuple) -> IntTuple:
    if type(index) is tuple and type(shape) is not tuple:
        return tuple([_coordinate(i, shape, stride) for i in index])
    if type(shape) is tuple:
        if type(index) is tuple:
            return tuple([_coordinate(i, s, d) for i, s, d in zip(index, shape, stride)])
        return tuple([_coordinate(index, s, d) for s, d in zip(shape, stride)])
    if leaf.is_value(shape, 1):
        return 0
    if leaf.is_value(stride, 0):
        raise DivisionByZero(f"mode {to_str(shape)}:0 leaves no trace in the index")
    if type(stride) is Basis:
        raise OperandType(f"basis stride {stride} cannot be divided by; the index is a coordinate already")
    return leaf.mod(leaf.div(0 if index is None else index, stride), shape)


def _linear(coord: IntTuple, shape: IntTuple) -> Any:
    """Return the column-major linear coordinate of a coordinate congruent to `shape`."""
    if type(shape) is not tuple:
        return coord
    terms: list = []
    step: Any = 1
    for c, s in zip(coord, shape):
        terms.append(leaf.mul(_linear(c, s), step))
        step = leaf.mul(step, product(s))
    return reduce(lambda above, term: leaf.add(term, above), reversed(terms))


@operation
def get_hier_coord(index: IntTuple, layout: Layout) -> IntTuple:
    """Return the coordinate nested like the shape: `idx2crd`."""
    return idx2crd(index, layout)


@operation
def get_flat_coord(index: IntTuple, layout: Layout) -> IntTuple:
    """Return one linear coordinate per top-level mode."""
    index = _checked_index(index, layout)
    coord = _coordinate(index, layout.shape, layout.stride)
    if type(coord) is not tuple:
        return coord
    return tuple([_linear(c, s) for c, s in zip(coord, layout.shape)])


@operation
def get_1d_coord(index: IntTuple, layout: Layout) -> Any:
    """Return the column-major linear coordinate of an index."""
    index = _checked_index(index, layout)
    return _linear(_coordinate(index, layout.shape, layout.stride), layout.shape)


def all_coords(shape: IntTuple) -> list:
    """Return every coordinate of a static shape, first mode fastest; for tests and pictures."""
    if type(shape) is not tuple:
        return list(range(shape))
    out: list = [()]
    for s in reversed(as_modes(shape)):
        out = [(c,) + rest for rest in out for c in all_coords(s)]
    return out


def all_indices(layout: Any) -> list:
    """Return the value of a static layout at every linear coordinate, in order; for tests and
    pictures.
    """
    count = product(layout.shape)
    return [coordinate_at(i, layout) for i in range(count)]

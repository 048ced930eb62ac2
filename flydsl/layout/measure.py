"""Inspection: rank, depth, size, cosize, coshape, coprofile and the parts of layouts.

Neighbours: `layout` holds the values. Nothing here changes a layout.
"""

from __future__ import annotations

from typing import Any

from . import leaf
from .errors import OperandType
from .int_tuple import (
    IntTuple,
    basis_tuple,
    coord_add,
    map_leaves,
    product,
    star_product,
    tuple_depth,
    tuple_rank,
)
from .layout import ComposedLayout, Layout, Tile, coprofile_of, expect_layout
from .leaf import Basis
from .memo import operation


def _shape_of(x: Any) -> IntTuple:
    if isinstance(x, (Layout, ComposedLayout)):
        return x.shape
    if type(x) is Tile or not (x is None or isinstance(x, (int, tuple, leaf.Sym, Basis))):
        raise OperandType(f"Unsupported type {type(x).__name__}")
    return x


@operation
def rank(x: Any) -> int:
    """Return the number of top-level modes; a leaf has one."""
    return tuple_rank(_shape_of(x))


@operation
def depth(x: Any) -> int:
    """Return the nesting depth; a leaf has 0."""
    return tuple_depth(_shape_of(x))


@operation
def size(x: Any) -> Any:
    """Return the number of elements in the domain: the product of the shape."""
    return star_product(_shape_of(x))


@operation
def coshape(layout: Any) -> IntTuple:
    """Return sum((shape_i - 1) * stride_i) + 1, per coordinate where strides are basis leaves.

    A composed layout has the coshape of its outer part.
    """
    expect_layout(layout)
    if type(layout) is ComposedLayout:
        return coshape(layout.outer)
    shapes, strides = layout.flat()
    last: IntTuple = 0
    for s, d in zip(shapes, strides):
        reach = leaf.mul(leaf.sub(s, 1), d)
        if type(reach) is Basis:
            reach = basis_tuple(reach.value, reach.modes)
        last = coord_add(last, reach)
    last = coord_add(coprofile_of(layout), last)
    return map_leaves(lambda x: leaf.add(x, 1), last)


@operation
def cosize(layout: Any) -> Any:
    """Return the largest index + 1: the product of the coshape."""
    return product(coshape(layout))


@operation
def coprofile(layout: Any) -> IntTuple:
    """Return zeros nested like the values of the layout: 0, or (0,(0,0)) for basis strides."""
    expect_layout(layout)
    return coprofile_of(layout)


def get_shape(layout: Any) -> IntTuple:
    """Return the shape."""
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise OperandType("expected a layout", "get_shape", (layout,))
    return layout.shape


def get_stride(layout: Any) -> IntTuple:
    """Return the stride; a composed layout has none."""
    if not isinstance(layout, Layout):
        raise OperandType("expected a plain layout", "get_stride", (layout,))
    return layout.stride


def _expect_composed(op: str, layout: Any) -> None:
    if type(layout) is not ComposedLayout:
        raise OperandType("expected a composed layout", op, (layout,))


def composed_get_inner(layout: ComposedLayout) -> Any:
    """Return what is applied last."""
    _expect_composed("composed_get_inner", layout)
    return layout.inner


def composed_get_offset(layout: ComposedLayout) -> IntTuple:
    """Return what is added to the outer result."""
    _expect_composed("composed_get_offset", layout)
    return layout.offset


def composed_get_outer(layout: ComposedLayout) -> Any:
    """Return what is applied to the coordinate first."""
    _expect_composed("composed_get_outer", layout)
    return layout.outer

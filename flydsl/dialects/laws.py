"""What each layout op means, as functions on plain values. Imports no MLIR.

A law takes and returns the values of `flydsl.layout`. Called with type-level values it is type inference; called with payloads (IR values in
leaves and pointers) under `layout.use_builder` it is the lowering. Here the functions of the algebra are lifted to views: an op on a
view changes its layout and, where coordinates are fixed, moves its iterator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flydsl import layout as la
from flydsl.atoms import tiled_copy, tiled_mma
from flydsl.layout import view as lv
from flydsl.layout.int_tuple import coord_add
from flydsl.layout.view import CoordTensor, MemRef, Ptr

VIEWS = (MemRef, CoordTensor)


def add_offset(iterator: Any, offset: Any) -> Any:
    """Return the iterator moved by `offset` elements (a pointer) or by a coordinate (an int tuple)."""
    if isinstance(iterator, Ptr):
        return lv.add_offset(iterator, offset)
    return coord_add(iterator, offset)


def make_view(iterator: Any, layout: Any) -> Any:
    """Return a layout over an iterator."""
    return lv.make_view(iterator, layout)


def get_iter(view: Any) -> Any:
    """Return the iterator of a view: a pointer, or the base coordinate."""
    return view.ptr if isinstance(view, MemRef) else view.base


def get_layout(view: Any) -> Any:
    """Return the layout of a view."""
    return view.layout


def _on_layout(fn: Callable) -> Callable:
    """Lift a layout function to views: it acts on the layout, the iterator stays."""

    @wraps(fn)
    def law(x: Any, *args: Any) -> Any:
        return lv.with_layout(x, fn, *args) if isinstance(x, VIEWS) else fn(x, *args)

    return law


def _of_layout(fn: Callable) -> Callable:
    """Lift a function that looks at a layout to views."""

    @wraps(fn)
    def law(x: Any, *args: Any) -> Any:
        return fn(x.layout if isinstance(x, VIEWS) else x, *args)

    return law


def slice_(x: Any, coord: Any) -> Any:
    """Return the modes of `x` that `coord` keeps (None); of a view the fixed part moves the iterator."""
    return lv.slice_view(x, coord) if isinstance(x, VIEWS) else la.slice_(x, coord)


def apply_swizzle(x: Any, swizzle: la.Swizzle) -> Any:
    """Attach a byte-address swizzle to a pointer, or swizzle an index."""
    return lv.swizzled(x, swizzle) if isinstance(x, Ptr) else la.apply_swizzle(x, swizzle)


def at(view: Any, coord: Any) -> Any:
    """Return the iterator of a view moved to a full coordinate: a pointer, or the coordinate itself."""
    return add_offset(get_iter(view), la.crd2idx(coord, view.layout))


get_shape = _of_layout(la.get_shape)
get_stride = _of_layout(la.get_stride)
size = _of_layout(la.size)
cosize = _of_layout(la.cosize)
coshape = _of_layout(la.coshape)
coprofile = _of_layout(la.coprofile)
make_layout_like = _of_layout(la.make_layout_like)
make_fragment_layout_like = _of_layout(la.make_fragment_layout_like)
crd2idx = la.crd2idx

coalesce = _on_layout(la.coalesce)
composition = _on_layout(la.composition)
logical_divide = _on_layout(la.logical_divide)
zipped_divide = _on_layout(la.zipped_divide)
tiled_divide = _on_layout(la.tiled_divide)
flat_divide = _on_layout(la.flat_divide)
select = _on_layout(la.select)
take = _on_layout(la.take)
group = _on_layout(la.group)
append = _on_layout(la.append)
prepend = _on_layout(la.prepend)
dice = _on_layout(la.dice)
get_ = _on_layout(la.get_)


def partition_copy(tiled: Any, view: Any, thread: Any, side: str) -> Any:
    """Return the part of a view that one thread of a tiled copy has on `side` "src" or "dst"."""
    return _moved(view, *tiled_copy.partition(tiled, side, view.layout, _leaf(thread)))


def partition_mma(tiled: Any, view: Any, thread: Any, operand: str) -> Any:
    """Return the part of operand "A", "B" or "C" that one thread of a tiled MMA has."""
    return _moved(view, *tiled_mma.partition(tiled, operand, view.layout, _leaf(thread)))


def retile(tiled: Any, view: Any) -> Any:
    """Return a fragment seen in the value grouping of a tiled copy."""
    return lv.with_layout(view, lambda layout: tiled_copy.retile(tiled, layout))


def _moved(view: Any, layout: Any, offset: Any) -> Any:
    return lv.make_view(add_offset(get_iter(view), offset), layout)


def _leaf(x: Any) -> Any:
    return x[0] if isinstance(x, tuple) else x

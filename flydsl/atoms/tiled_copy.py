"""Tiled copies: a copy atom repeated over threads and values, and how it deals out a tensor.

Everything works on layouts. Functions return `(layout, offset)`: the part's layout, and how far
it starts from the tensor's own start (an index, or a coordinate for coordinate tensors). Leaves
and thread numbers may be dynamic: the same code infers types, folds statics and emits IR, as
`flydsl.layout.leaf` explains. Neighbours: `tiled_mma` makes tiled copies of its operands;
`expr` and the lowering pass call these.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

from flydsl.layout import (
    ComposedLayout,
    Layout,
    LayoutError,
    Tile,
    coalesce,
    column_major,
    composition,
    int_tuple_product_each,
    logical_product,
    make_layout_tv,
    make_tile,
    recast_layout,
    right_inverse,
    size,
    slice_,
    zip_,
    zipped_divide,
)
from flydsl.layout.layout import from_modes, layout_modes, on_outer
from flydsl.layout.memo import operation
from flydsl.layout.modes import slice_with_offset
from flydsl.utils.record import record

from .copy_ops import CopyAtom
from .errors import AtomError, AtomTooWide, one_of

LayoutLike = Layout | ComposedLayout


@record
class TiledCopy:
    """`layout_tv` maps (thread, value) to the column-major index in `tile`; the atom moves part
    of the values.
    """

    atom: CopyAtom
    layout_tv: Layout
    tile: Tile

    def __post_init__(self) -> None:
        if self.layout_tv.rank != 2:
            raise AtomError(reason=f"a thread-value layout has two modes, got `{self.layout_tv}`")
        if not self.layout_tv.is_static:
            raise AtomError(reason=f"a thread-value layout is static, got `{self.layout_tv}`")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.atom, self.layout_tv, self.tile))

    @property
    def text(self) -> str:
        """The printed type."""
        return f"!fly.tiled_copy<{self.atom.text}, !fly.layout<{self.layout_tv}>, !fly.tile<{self.tile}>>"

    def __str__(self) -> str:
        return self.text

    @cached_property
    def tile_shape(self) -> tuple[int, ...]:
        """Extents of the tile."""
        return tuple(size(m) if isinstance(m, Layout) else m for m in self.tile.unpack())

    @cached_property
    def threads(self) -> int:
        """Number of threads that share a tile."""
        return size(self.layout_tv[0])

    @cached_property
    def layout_src_tv(self) -> Layout:
        """(thread, (value of the atom, rest)) -> index in the tile, for the source."""
        return _sided_tv(self, "src")

    @cached_property
    def layout_dst_tv(self) -> Layout:
        """(thread, (value of the atom, rest)) -> index in the tile, for the destination."""
        return _sided_tv(self, "dst")

    def layout_side_tv(self, side: str) -> Layout:
        """Return the map for side "src" or "dst"."""
        one_of("side", side, ("src", "dst"))
        return self.layout_src_tv if side == "src" else self.layout_dst_tv


@lru_cache(maxsize=4096)
def make_tiled_copy(atom: CopyAtom, layout_tv: Layout, tile: Any) -> TiledCopy:
    """Return the tiled copy of an explicit thread-value layout; `tile` is a Tile or a tuple of
    its entries.
    """
    return TiledCopy(atom, layout_tv, tile if isinstance(tile, Tile) else make_tile(*tile))


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """Return the tiled copy in which every thread of `thr_layout` has the values of
    `val_layout`.
    """
    tile, layout_tv = make_layout_tv(thr_layout, val_layout)
    return make_tiled_copy(atom, layout_tv, tuple(tile) if isinstance(tile, tuple) else (tile,))


def _sided_tv(tiled: TiledCopy, side: str) -> Layout:
    """Return ((thread), (atom value, rest value)) -> tile index as one side of the atom numbers
    them.

    The atom's own threads must be the innermost ones of the tiled thread mode.
    """
    ref, sided = (
        tiled.atom.layout_ref,
        tiled.atom.layout_src if side == "src" else tiled.atom.layout_dst,
    )
    by_atom = zipped_divide(tiled.layout_tv, make_tile(size(ref[0]), size(ref[1])))
    inner = composition(by_atom[0], composition(right_inverse(ref), sided))
    return coalesce(zip_(inner, by_atom[1]), (1, (1, 1)))


def deal(tiled: TiledCopy, side: str, layout: LayoutLike) -> LayoutLike:
    """Return the tensor's layout as (thread, (atom value, rest value), rest of each mode...)."""
    return on_outer(_deal, layout, tiled, side)


@operation
def _deal(layout: Layout, tiled: TiledCopy, side: str) -> Layout:
    if layout.rank < tiled.tile.rank:
        raise AtomError(
            reason=f"a tensor of layout `{layout}` has fewer modes than the tile {tiled.tile}"
        )
    divided = zipped_divide(layout, tiled.tile)
    try:
        thread_value = composition(divided[0], tiled.layout_side_tv(side))
    except LayoutError as error:
        values, own = size(tiled.atom.layout_ref[1]), size(tiled.layout_tv[1])
        if values <= own:
            raise
        raise AtomTooWide(atom=tiled.atom.short, values=values, own=own, tiled=tiled) from error
    return from_modes([*layout_modes(thread_value), *layout_modes(divided[1])])


def partition(
    tiled: TiledCopy, side: str, layout: LayoutLike, thread: Any
) -> tuple[LayoutLike, Any]:
    """Return (layout, offset) of one thread's part: ((atom value, rest value), rest of each
    mode...).

    Shapes   thread: a static or dynamic leaf
    """
    dealt = deal(tiled, side, layout)
    return take_thread(dealt, thread)


def take_thread(dealt: LayoutLike, thread: Any) -> tuple[LayoutLike, Any]:
    """Return (layout, offset) of a dealt layout at one thread coordinate; a swizzle keeps its
    own offset.
    """
    coord = (thread, *[None] * (dealt.rank - 1))
    if isinstance(dealt, ComposedLayout):
        return slice_(dealt, coord), 0
    return slice_with_offset(dealt, coord)


def retile(tiled: TiledCopy, fragment: LayoutLike) -> LayoutLike:
    """Return a fragment's layout seen in the copy's value grouping: ((atom value, rest value),
    rest...).

    Shapes   fragment: (value, rest...) as an MMA partition or another copy made it
    """
    return on_outer(_retile, fragment, tiled)


@operation
def _retile(fragment: Layout, tiled: TiledCopy) -> Layout:
    modes = layout_modes(fragment)
    values = size(modes[0])
    order, repeats = _value_order(tiled, values)
    divided = zipped_divide(fragment, make_tile(values, *repeats))
    regrouped = composition(divided[0], coalesce(order, (1, 1)))
    return from_modes([regrouped, *layout_modes(divided[1])[1:]])


@lru_cache(maxsize=4096)
def _value_order(tiled: TiledCopy, values: int) -> tuple[Layout, tuple[int, ...]]:
    """Return ((atom value, rest value) -> (v, m, n) index, repeats per mode) of `values` values
    in the tile.

    The first `values` values of the tile's thread-value layout are the fragment's first mode;
    what the tile has beyond them is found in the fragment's other modes, in the order in which
    the tile numbers them.
    """
    tile_to_tv = composition(right_inverse(tiled.layout_tv), column_major(tiled.tile_shape))
    if tiled.tile.rank == 1:
        tile_to_tv = from_modes([tile_to_tv])
    groups = recast_layout(tile_to_tv, 1, tiled.threads * values)
    order = logical_product(Layout(values, 1), right_inverse(groups))
    atom_values = size(tiled.atom.layout_ref[1])
    return zipped_divide(order, Layout(atom_values, 1)), int_tuple_product_each(groups.shape)

"""The four divides: cut a layout into tiles and the rest that counts them.

Law   a divide permutes nothing: its values are those of composition(layout, (tiler,
complement(tiler)))
"""

from __future__ import annotations

from typing import Any

from . import leaf
from .compose import compose_leaf, compose_pair, leaves_pair, open_ended, refuse_carries
from .errors import NotInjective, NotStatic, OperandType, RankMismatch
from .int_tuple import product, to_str
from .inverse import gap_leaves
from .layout import (
    ComposedLayout,
    Layout,
    Tile,
    expect_layout,
    from_modes,
    layout_modes,
    make_tile,
    on_outer,
)
from .memo import operation


def _as_divisor(divisor: Any) -> Any:
    """Return a layout or tile; a tuple means the tile of its entries, one integer is refused."""
    if isinstance(divisor, (Layout, Tile, ComposedLayout)):
        return divisor
    if isinstance(divisor, (tuple, list)):
        return make_tile(*divisor)
    return divisor


@operation
def _logical_divide(layout: Any, divisor: Any) -> Any:
    if type(layout) is ComposedLayout:
        return on_outer(_logical_divide, layout, divisor)
    expect_layout(layout)
    if type(divisor) is Tile:
        return _divide_by_tile(layout, divisor)
    if type(divisor) is not Layout:
        raise OperandType(f"the divisor must be a layout or a tile, not {to_str(divisor)}; write (4,) or 4:1")
    return _joined(_split(layout, divisor))


def _split(layout: Layout, divisor: Any) -> tuple:
    """Return (tile shape, tile stride, rest shape, rest stride) of a division by an int k or a
    layout.

    An int k means k:1, whose complement is ceil(size / k):k.
    """
    merged = open_ended(layout)
    extent = product(layout.shape)
    if type(divisor) is int:
        if divisor <= 0:
            raise NotInjective(f"a tile of {divisor} elements is empty")
        count = extent if divisor == 1 else leaf.ceil_div(extent, divisor)
        return compose_leaf(merged, divisor, 1) + compose_leaf(merged, count, divisor)
    if type(divisor) is not Layout:
        raise NotStatic(f"a tile is static, but its mode {to_str(divisor)} is not")
    gaps = gap_leaves(divisor, extent, True)
    tile = compose_pair(merged, divisor.shape, divisor.stride)
    rest = compose_pair(merged, *leaves_pair(*gaps))
    if len(merged[0]) > 1:
        refuse_carries(merged, (divisor.flat(), gaps), ((tile[0], rest[0]), (tile[1], rest[1])))
    return tile + rest


def _joined(parts: tuple) -> Layout:
    """Return (tile, rest) as a layout of rank 2."""
    return Layout((parts[0], parts[2]), (parts[1], parts[3]))


def _divide_by_tile(layout: Layout, tile: Tile) -> Layout:
    modes = layout_modes(layout)
    done = [_divide_mode(m, t) for m, t in zip(modes, tile.modes)]
    return from_modes(done + modes[len(tile.modes) :])


def _divide_mode(mode: Layout, entry: Any) -> Layout:
    if entry is None:
        return mode
    if type(entry) is Tile:
        return _divide_by_tile(mode, entry)
    return _joined(_split(mode, entry))


def _zip_split(layout: Layout, tile: Tile, flat: bool | None = None) -> Layout:
    """Divide mode by mode and collect ((tiles), (rests)), ((tiles), rests...) or (tiles...,
    rests...).

    `flat` None, False, True choose among the three; modes which the tile does not reach are rests.
    """
    modes = layout_modes(layout)
    n = len(tile.modes)
    if n > len(modes):
        raise RankMismatch(f"the tile {tile} has more modes than {layout}")
    parts = [_split_mode(m, t) for m, t in zip(modes, tile.modes)]
    tile_s, tile_d = tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
    rest_s = tuple([p[2] for p in parts] + [m.shape for m in modes[n:]])
    rest_d = tuple([p[3] for p in parts] + [m.stride for m in modes[n:]])
    if flat is None:
        return Layout((tile_s, rest_s), (tile_d, rest_d))
    if flat:
        return Layout(tile_s + rest_s, tile_d + rest_d)
    return Layout((tile_s,) + rest_s, (tile_d,) + rest_d)


def _split_mode(mode: Layout, entry: Any) -> tuple:
    if type(entry) is not Tile:
        if entry is None:
            raise OperandType("`*` keeps a mode only in logical_divide")
        return _split(mode, entry)
    if type(mode.shape) is not tuple:
        raise RankMismatch(f"the nested tile {entry} meets the leaf {mode}")
    zipped = _zip_split(mode, entry)
    return zipped.shape[0], zipped.stride[0], zipped.shape[1], zipped.stride[1]


@operation
def _zipped_divide(layout: Any, divisor: Any) -> Any:
    if type(layout) is ComposedLayout:
        return on_outer(_zipped_divide, layout, divisor)
    expect_layout(layout)
    if type(divisor) is not Tile:
        return _logical_divide.uncached(layout, divisor)
    return _zip_split(layout, divisor)


def regroup(zipped: Layout, flat: bool) -> Layout:
    """Return ((tiles), rest...) or (tiles..., rest...) of ((tiles), (rest))."""
    tile, rest = layout_modes(zipped)
    tiles = layout_modes(tile) if flat else [tile]
    return from_modes(tiles + layout_modes(rest))


def _regrouped_divide(layout: Any, divisor: Any, flat: bool) -> Any:
    if type(layout) is ComposedLayout:
        return on_outer(_regrouped_divide, layout, divisor, flat)
    expect_layout(layout)
    if type(divisor) is Tile:
        return _zip_split(layout, divisor, flat)
    return regroup(_logical_divide.uncached(layout, divisor), flat)


@operation
def _tiled_divide(layout: Any, divisor: Any) -> Any:
    return _regrouped_divide(layout, divisor, False)


@operation
def _flat_divide(layout: Any, divisor: Any) -> Any:
    return _regrouped_divide(layout, divisor, True)


def logical_divide(layout: Any, divisor: Any) -> Any:
    """Return (tile, rest), or mode by mode for a tile: ((tile0, rest0), (tile1, rest1), ...).

    The rest covers the layout rounded up to whole tiles. A tuple divisor means
    `make_tile(*divisor)`.
    """
    return _logical_divide(layout, _as_divisor(divisor))


def zipped_divide(layout: Any, divisor: Any) -> Any:
    """Return ((tile0, tile1, ...), (rest0, rest1, ..., modes which the tile does not reach))."""
    return _zipped_divide(layout, _as_divisor(divisor))


def tiled_divide(layout: Any, divisor: Any) -> Any:
    """Return ((tile0, tile1, ...), rest0, rest1, ...)."""
    return _tiled_divide(layout, _as_divisor(divisor))


def flat_divide(layout: Any, divisor: Any) -> Any:
    """Return (tile0, tile1, ..., rest0, rest1, ...)."""
    return _flat_divide(layout, _as_divisor(divisor))

"""The four divides: cut a layout into tiles and the rest that counts them.

Law   a divide permutes nothing: its values are those of composition(layout, (tiler,
complement(tiler)))
"""

from __future__ import annotations

from typing import Any

from .compose import composition
from .errors import OperandType, RankMismatch
from .int_tuple import to_str
from .inverse import complement
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
from .measure import size
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
        raise OperandType(
            f"the divisor must be a layout or a tile, not {to_str(divisor)}; write (4,) or 4:1"
        )
    rest = complement(divisor, size(layout))
    return composition(layout, Layout((divisor.shape, rest.shape), (divisor.stride, rest.stride)))


def _divide_by_tile(layout: Layout, tile: Tile) -> Layout:
    modes = layout_modes(layout)
    done = [_divide_mode(m, t) for m, t in zip(modes, tile.modes)]
    return from_modes(done + modes[len(tile.modes) :])


def _divide_mode(mode: Layout, entry: Any) -> Layout:
    if entry is None:
        return mode
    return _logical_divide(mode, entry if isinstance(entry, (Layout, Tile)) else Layout(entry, 1))


def _zip_split(mode: Layout, tile: Tile) -> Layout:
    """Divide a nested mode by a nested tile: ((tiles), (rests))."""
    tiles, rests, kept = _split_modes(mode, tile)
    return from_modes([from_modes(tiles), from_modes(rests + kept)])


def _split_modes(layout: Layout, tile: Tile) -> tuple[list, list, list]:
    """Return the tile parts, the rest parts, and the modes which the tile does not reach."""
    if any(t is None for t in tile.modes):
        raise OperandType(f"`*` keeps a mode only in logical_divide, not in {tile} here")
    modes = layout_modes(layout)
    n = len(tile.modes)
    if n > len(modes):
        raise RankMismatch(f"the tile {tile} has more modes than {layout}")
    pairs = [layout_modes(_split_mode(m, t)) for m, t in zip(modes, tile.modes)]
    return [p[0] for p in pairs], [p[1] for p in pairs], modes[n:]


def _split_mode(mode: Layout, entry: Any) -> Layout:
    if type(entry) is not Tile:
        return _divide_mode(mode, entry)
    if type(mode.shape) is not tuple:
        raise RankMismatch(f"the nested tile {entry} meets the leaf {mode}")
    return _zip_split(mode, entry)


@operation
def _zipped_divide(layout: Any, divisor: Any) -> Any:
    if type(layout) is ComposedLayout:
        return on_outer(_zipped_divide, layout, divisor)
    expect_layout(layout)
    if type(divisor) is not Tile:
        return _logical_divide(layout, divisor)
    return _zip_split(layout, divisor)


def regroup(zipped: Layout, flat: bool) -> Layout:
    """Return ((tiles), rest...) or (tiles..., rest...) of ((tiles), (rest))."""
    tile, rest = layout_modes(zipped)
    tiles = layout_modes(tile) if flat else [tile]
    return from_modes(tiles + layout_modes(rest))


@operation
def _tiled_divide(layout: Any, divisor: Any) -> Any:
    return on_outer(lambda l: regroup(_zipped_divide(l, divisor), flat=False), layout)


@operation
def _flat_divide(layout: Any, divisor: Any) -> Any:
    return on_outer(lambda l: regroup(_zipped_divide(l, divisor), flat=True), layout)


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

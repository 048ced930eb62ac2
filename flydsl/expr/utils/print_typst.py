"""`fx.utils.print_typst`: draw a layout, an MMA atom, a tiled MMA or a tiled copy as a typst document while tracing.

The names with a leading underscore are the helpers that programs written for other versions call; the work is in
`flydsl.layout.draw`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flydsl.diag import WrongKind
from flydsl.expr.atoms import MmaAtom, TiledCopy, TiledMma
from flydsl.expr.layout_errors import user_error
from flydsl.expr.layouts import ComposedLayout, Layout
from flydsl.expr.values import shown
from flydsl.layout.draw import index_grid, tv_grid
from flydsl.layout.draw import typst as draw
from flydsl.layout.errors import LayoutError


def print_typst(arg: Any, *, color: Callable[..., str] | None = None, file: str | None = None) -> None:
    """Write the drawing of `arg` to standard output, or append it to `file` (a new file begins with the page set-up).

    color    called with the index of a cell, or with thread and value of a thread-value map; returns "#rrggbb"
    Raises   WrongKind: neither a layout, an MMA atom, a tiled MMA nor a tiled copy; a typed error of the layout
             algebra: it is not static or has too many cells
    """
    try:
        text = _document(arg, color)
    except LayoutError as error:
        raise user_error(error, "print_typst") from None
    if file is None:
        sys.stdout.write(draw.HEAD + "\n" + text)
        return
    path = Path(file)
    begun = path.exists() and path.stat().st_size > 0
    with path.open("a", encoding="utf-8") as out:
        out.write(("\n" if begun else draw.HEAD + "\n") + text)


def _document(arg: Any, color: Callable[..., str] | None) -> str:
    if isinstance(arg, (Layout, ComposedLayout)):
        return draw.picture_block(index_grid(arg.plain, color=color))
    if isinstance(arg, TiledCopy):
        return _copy(arg, color)
    if isinstance(arg, MmaAtom):
        return _mma(arg, arg.plain.layout, arg.plain.shape_mnk, color)
    if isinstance(arg, TiledMma):
        return _mma(arg, arg.plain.tv_layout, arg.plain.tile_size_mnk, color)
    kinds = "a Layout, ComposedLayout, MmaAtom, TiledMma or TiledCopy"
    raise WrongKind(subject="the argument of print_typst()", wanted=kinds, got=shown(arg))


def _copy(tiled: TiledCopy, color: Callable[..., str] | None) -> str:
    """Draw who reads and who writes each element of the tile, side by side in boxes of one size."""
    plain = tiled.plain
    pair = [
        tv_grid(tv, plain.tile_shape, f"{name} (M x N): {tv}", color)
        for name, tv in (("source", plain.layout_src_tv), ("destination", plain.layout_dst_tv))
    ]
    size = draw.shared_size(*map(draw.picture_size, pair))
    blocks = [draw.picture_block(p, size) for p in pair]
    return f"{draw.headline(str(plain))}\n\n{draw.arranged(blocks, 2)}\n"


def _mma(arg: Any, layout_of: Callable[[str], Any], mnk: tuple, color: Callable[..., str] | None) -> str:
    """Draw A left of C and B above C, so that a row of A and a column of B meet in the element they make."""
    m, n, k = mnk
    a, b, c = (
        tv_grid(layout_of(name), tile, f"{name} ({axes}): {layout_of(name)}", color)
        for name, tile, axes in (("A", (m, k), "M x K"), ("B", (n, k), "K x N"), ("C", (m, n), "M x N"))
    )
    b = b.transposed()
    sizes = dict(zip("ABC", map(draw.picture_size, (a, b, c)), strict=True))
    size_a, size_b, size_c = draw.mma_sizes(**sizes)
    blocks = ["", draw.picture_block(b, size_b), draw.picture_block(a, size_a), draw.picture_block(c, size_c)]
    return f"{draw.headline(str(arg.plain))}\n\n{draw.arranged(blocks, 2)}\n"


_typst_grid_cell_size = draw.grid_cell_size


def _typst_grid_block(
    rows: int, cols: int, cells: draw.Cells, *, cell_width: str | None = None, cell_height: str | None = None
) -> str:
    width, height = draw.grid_cell_size(rows, cols, cells)
    return draw.grid_block(rows, cols, cells, size=(cell_width or width, cell_height or height))


def _typst_copy_grid_cell_sizes(
    rows: int, cols: int, cells_src: draw.Cells, cells_dst: draw.Cells
) -> tuple[draw.Size, draw.Size]:
    """Return the box sizes of source and destination: one height, each its own width."""
    src, dst = (draw.grid_cell_size(rows, cols, cells) for cells in (cells_src, cells_dst))
    height = draw.higher(src, dst)
    return (src[0], height), (dst[0], height)


def _typst_mma_grid_cell_sizes(
    m: int, n: int, k: int, cells_A: draw.Cells, cells_B: draw.Cells, cells_C: draw.Cells
) -> dict[str, draw.Size]:
    """Return the box sizes of A (m x k), B (k x n) and C (m x n): A and C share heights, B and C widths."""
    sizes = draw.mma_sizes(
        draw.grid_cell_size(m, k, cells_A), draw.grid_cell_size(k, n, cells_B), draw.grid_cell_size(m, n, cells_C)
    )
    return dict(zip("ABC", sizes, strict=True))

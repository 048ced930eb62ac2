"""Builders: index grids, coordinate grids, thread-value maps, and two layouts side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.layout.coords import crd2idx
from flydsl.layout.draw.picture import Cell, Picture
from flydsl.layout.errors import NotStatic, OperandType
from flydsl.layout.int_tuple import as_modes, product, to_str
from flydsl.layout.layout import ComposedLayout, Layout
from flydsl.layout.swizzle import Swizzle

LIMIT = 1 << 14


def extents(layout: Any) -> tuple[int, int]:
    """Return (rows, columns) of the drawing: mode 0 runs down, all other modes run right."""
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise OperandType("only layouts can be drawn", "draw", (layout,))
    if not layout.is_static:
        raise NotStatic("only static layouts can be drawn; put numbers in for `?`", "draw", (layout,))
    modes = as_modes(layout.shape)
    if len(modes) == 1:
        rows, cols = 1, product(modes[0])
    else:
        rows, cols = product(modes[0]), product(modes[1:])
    if not 0 < rows * cols <= LIMIT:
        raise OperandType(f"{rows * cols} cells are too many to draw (or none)", "draw", (layout,))
    return rows, cols


def place(layout: Any, row: int, col: int, rows: int) -> Any:
    """Return what the layout gives for a place of the drawing."""
    return crd2idx.uncached(col if rows == 1 else row + col * rows, layout)


def _labels(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def index_grid(layout: Any, title: str = "", color: Callable[..., str] | None = None) -> Picture:
    """Return the picture of a layout: in each coordinate its index.

    The colour shows the index modulo 8; under a swizzle it shows the piece which the swizzle
    moves as one. `color` maps an index to "#rrggbb" instead.
    """
    rows, cols = extents(layout)
    values = [[place(layout, r, c, rows) for c in range(cols)] for r in range(rows)]
    tint, caption = _tint_of(layout)
    paint = color or (lambda v: "")
    table = tuple(tuple(Cell(to_str(v), tint=tint(v), paint=paint(v)) for v in row) for row in values)
    caption = caption.partition("; colour")[0] if color else caption
    return Picture(title or str(layout), table, _labels(rows), _labels(cols), caption)


def _tint_of(layout: Any) -> tuple[Any, str]:
    """Return (index -> tint, caption)."""
    inner = getattr(layout, "inner", None)
    if isinstance(inner, Swizzle) and not inner.is_trivial:
        base = inner.base
        caption = f"row: mode 0, column: the other modes, cell: index; colour: its piece of {1 << base}"
        return lambda v: v >> base, caption

    def by_value(v: Any) -> int:
        return v if isinstance(v, int) else sum(_flat(v))

    return by_value, "row: mode 0, column: the other modes, cell: index; colour: index modulo 8"


def _flat(v: Any) -> list:
    return [v] if isinstance(v, int) else [x for i in v for x in _flat(i)]


def coord_grid(layout: Any, title: str = "") -> Picture:
    """Return the picture of memory: in each index the linear coordinate which it holds (`.` for
    a gap).
    """
    rows, cols = extents(layout)
    holder = {crd2idx.uncached(i, layout): i for i in range(rows * cols)}
    length = max(holder) + 1
    width = min(length, 32)
    lines = -(-length // width)
    table = tuple(tuple(_holder_cell(holder, r * width + c, length) for c in range(width)) for r in range(lines))
    caption = "place: index in memory, cell: linear coordinate stored there"
    labels = tuple(str(r * width) for r in range(lines))
    return Picture(title or f"memory of {layout}", table, labels, _labels(width), caption)


def _holder_cell(holder: dict, index: int, length: int) -> Cell | None:
    if index >= length:
        return None
    return Cell(str(holder[index]), tint=holder[index]) if index in holder else Cell(".", tint=7)


def tv_grid(tv: Layout, tile: tuple, title: str = "", color: Callable[..., str] | None = None) -> Picture:
    """Return the thread-value map of a tile: who holds each element, as thread over value.

    `color` maps (thread, value) to "#rrggbb"; without it the colour shows the thread.

    Shapes   tv: (thread, value) -> column-major index in the tile; tile: its sizes (at most two
    above 1)
    A place which two hold shows both, so a map that is no bijection is seen at once.
    """
    sizes = tuple(product(m) for m in as_modes(tile))
    rows, cols = sizes[0], product(sizes[1:]) if len(sizes) > 1 else 1
    threads, values = (product(m) for m in as_modes(tv.shape)[:2])
    held: dict[int, list[tuple[int, int]]] = {}
    for t in range(threads):
        for v in range(values):
            held.setdefault(crd2idx.uncached((t, v), tv), []).append((t, v))
    table = tuple(tuple(_holder(held.get(r + c * rows, []), color) for c in range(cols)) for r in range(rows))
    title = title or f"tile {to_str(tile)}, (thread, value): {tv}"
    caption = "T thread, V value" + ("" if color else "; colour: thread")
    return Picture(title, table, _labels(rows), _labels(cols), caption)


def _holder(pairs: list[tuple[int, int]], color: Callable[..., str] | None) -> Cell | None:
    if not pairs:
        return None
    threads = "/".join(f"T{t}" for t, _ in pairs[:2])
    values = "/".join(f"V{v}" for _, v in pairs[:2])
    paint = color(*pairs[0]) if color else ""
    return Cell(threads, values, tint=pairs[0][0], mark=len(pairs) > 1, paint=paint)


def compare(left: Picture, right: Picture) -> Picture:
    """Return the left picture with the right one beside it."""
    return Picture(
        left.title,
        left.rows,
        left.row_labels,
        left.col_labels,
        left.caption,
        left.beside + (right,),
    )

"""Picture -> typst: grids of equal boxes with coloured cells, compiled by `typst compile` as they are.

A grid is a mapping from (row, column) to (fill, markup) or (fill, markup, stroke). Its boxes all have one size, which
follows the longest line and the most lines of its cells, so neighbours that belong together can be given one size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from flydsl.layout.draw.picture import Cell, Picture

FONT_PT = 8.0
CHAR_PT = 0.61 * FONT_PT  # width of a monospaced character
LINE_PT = 1.3 * FONT_PT
LEAST_PT = 16.0
LINEBREAK = "#linebreak()"
HEAD = "#set page(width: auto, height: auto, margin: 8pt)\n" + (
    f'#set text(font: "DejaVu Sans Mono", size: {FONT_PT:g}pt)\n'
)

Cells = Mapping[tuple[int, int], Sequence[str]]
Size = tuple[str, str]


def _points(chars: int, lines: int) -> Size:
    """Return (width, height) of a box for this many characters and lines, each with 2pt around the text."""
    return f"{max(chars * CHAR_PT + 4, LEAST_PT):g}pt", f"{max(lines * LINE_PT + 4, LEAST_PT):g}pt"


def _labels(count: int, wanted: bool) -> list[str]:
    return [str(i) for i in range(count)] if wanted else []


def grid_cell_size(rows: int, cols: int, cells: Cells, row_labels: bool = True, col_labels: bool = True) -> Size:
    """Return (width, height) of the boxes of a grid, as typst lengths, from its plain markup and the labels shown."""
    texts = [cell[1].split(LINEBREAK) for cell in cells.values()]
    texts += [[label] for label in _labels(rows, row_labels) + _labels(cols, col_labels)]
    chars = max((len(line.strip()) for lines in texts for line in lines), default=1)
    return _points(chars, max(map(len, texts), default=1))


def wider(*sizes: Size) -> str:
    """Return the largest width of several sizes."""
    return max((width for width, _ in sizes), key=_number)


def shared_size(*sizes: Size) -> Size:
    """Return the size which all of them fit into."""
    return wider(*sizes), higher(*sizes)


def mma_sizes(A: Size, B: Size, C: Size) -> tuple[Size, Size, Size]:
    """Return box sizes for A left of C and B above C, so that rows and columns meet."""
    height, width = higher(A, C), wider(B, C)
    return (A[0], height), (width, B[1]), (width, height)


def higher(*sizes: Size) -> str:
    """Return the largest height of several sizes."""
    return max((height for _, height in sizes), key=_number)


def _number(length: str) -> float:
    return float(length.removesuffix("pt"))


def _box(markup: str, width: str, height: str) -> str:
    return f"[#box(width: {width}, height: {height}, inset: 1pt)[#align(center + horizon)[{markup}]]]"


def grid_block(
    rows: int,
    cols: int,
    cells: Cells,
    row_labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
    size: Size | None = None,
) -> str:
    """Return the grid with a column of row labels and a row of column labels (by default numbers); places without
    a cell stay empty.
    """
    width, height = size or grid_cell_size(rows, cols, cells)
    row_labels = _labels(rows, True) if row_labels is None else row_labels
    col_labels = _labels(cols, True) if col_labels is None else col_labels
    small = [f"#text(size: 0.75em, fill: luma(80), {_quoted(label)})" for label in (*col_labels, *row_labels)]
    lines = [
        "#grid(",
        f"  columns: {cols + 1},",
        "  inset: 0pt,",
        "  align: center + horizon,",
        "  [], " + ", ".join(_box(label, width, height) for label in small[:cols]) + ",",
    ]
    for r in range(rows):
        line = [_box(small[cols + r], width, height)]
        line += [_placed(cells.get((r, c)), width, height) for c in range(cols)]
        lines.append("  " + ", ".join(line) + ",")
    return "\n".join([*lines, ")"])


def _placed(cell: Sequence[str] | None, width: str, height: str) -> str:
    if cell is None:
        return "[]"
    fill, markup, stroke = (*cell, "0.3pt")[:3]
    return f'grid.cell(fill: rgb("{fill}"), stroke: {stroke}){_box(markup, width, height)}'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _markup(cell: Cell) -> tuple[str, str, str]:
    ink = "white" if cell.is_dark else "black"
    text = f"#text(fill: {ink}, {_quoted(cell.text)})"
    if cell.small:
        text += f"{LINEBREAK}#text(fill: {ink}, size: 0.9em, {_quoted(cell.small)})"
    return cell.fill, text, "1.2pt" if cell.mark else "0.3pt"


def picture_size(p: Picture) -> Size:
    """Return (width, height) of the boxes which the cells and column labels of a picture need."""
    return _points(max(p.widest, *map(len, p.col_labels)), 2 if p.has_small else 1)


def picture_block(p: Picture, size: Size | None = None) -> str:
    """Return title, grid and caption of a picture, in boxes of its own or of the given size."""
    places = {(r, c): _markup(x) for r, row in enumerate(p.rows) for c, x in enumerate(row) if x is not None}
    grid = grid_block(len(p.rows), len(p.col_labels), places, p.row_labels, p.col_labels, size or picture_size(p))
    title = f'#text(weight: "bold", {_quoted(p.title)})'
    return "\n".join([title, "", grid, f"#text(size: 7pt, {_quoted(p.caption)})", ""])


def headline(text: str) -> str:
    """Return a framed line above drawings."""
    return f"#box(inset: 4pt, stroke: 0.3pt, {_quoted(text)})"


def arranged(blocks: Sequence[str], columns: int) -> str:
    """Return blocks beside and below each other; an empty one leaves its place free."""
    lines = ["#grid(", f"  columns: {columns},", "  gutter: 8pt,", "  align: left + top,"]
    return "\n".join([*lines, *(f"  [\n{block}\n  ]," for block in blocks), ")"])


def to_typst(picture: Picture) -> str:
    """Return the picture as a typst document."""
    return HEAD + "\n" + "\n".join(map(picture_block, (picture, *picture.beside)))

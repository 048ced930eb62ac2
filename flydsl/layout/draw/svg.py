"""Picture -> SVG text: sizes follow the widest cell, so labels never overlap."""

from __future__ import annotations

from html import escape

from flydsl.layout.draw.picture import Cell, Picture
from flydsl.utils.record import record

FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
CHAR = 0.61  # width of a monospaced character over its font size
SMALL_GRID = 16 * 16  # more cells than this get the tighter sizes
MARGIN = 10


@record
class _Sizes:
    """Pixels of one picture."""

    font: float
    cell_w: float
    cell_h: float
    left: float
    top: float
    width: float
    height: float
    title: tuple[str, ...]
    caption: tuple[str, ...]


def _wrapped(text: str, width: float, font: float) -> tuple[str, ...]:
    """Return the text in lines that fit, broken at spaces, or anywhere where there is none."""
    room = max(int(width / (font * CHAR)), 12)
    lines, line = [], ""
    for word in text.split(" "):
        while len(word) > room:
            lines, line, word = lines + ([line] if line else []) + [word[:room]], "", word[room:]
        if line and len(line) + 1 + len(word) > room:
            lines, line = lines + [line], word
        else:
            line = f"{line} {word}" if line else word
    return tuple(lines + [line]) if line else tuple(lines)


def _sizes(p: Picture) -> _Sizes:
    tight = len(p.rows) * len(p.col_labels) > SMALL_GRID
    font = 9.0 if tight else 12.0
    cell_w = max(p.widest * font * CHAR + (10 if p.has_small else 6), 18.0 if tight else 28.0)
    cell_h = font * (2.6 if p.has_small else 1.7) + (7 if p.has_small else 4)
    left = MARGIN + max(len(l) for l in p.row_labels) * 9 * CHAR + 6
    width = max(left + cell_w * len(p.col_labels) + MARGIN, 320.0)
    title = _wrapped(p.title, width - 2 * MARGIN, 13)
    caption = _wrapped(p.caption, width - 2 * MARGIN, 10)
    top = MARGIN + 17 * len(title) + 18
    height = top + cell_h * len(p.rows) + 8 + 14 * len(caption) + MARGIN
    return _Sizes(font, cell_w, cell_h, left, top, width, height, title, caption)


def _text(x: float, y: float, size: float, text: str, color: str = "#1a1a1a", at: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}" text-anchor="{at}">{escape(text)}</text>'


def _cell(cell: Cell, x: float, y: float, s: _Sizes, small: bool) -> list[str]:
    ink = "#ffffff" if cell.is_dark else "#1a1a1a"
    stroke, width = ("#1a1a1a", 1.4) if cell.mark else ("#8a8a8a", 0.5)
    out = [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{s.cell_w:.1f}" height="{s.cell_h:.1f}" '
        f'fill="{cell.fill}" stroke="{stroke}" stroke-width="{width}"/>'
    ]
    middle = x + s.cell_w / 2
    if small:
        out.append(_text(middle, y + s.cell_h * 0.43, s.font, cell.text, ink))
        out.append(_text(middle, y + s.cell_h * 0.84, s.font * 0.92, cell.small, ink))
    else:
        out.append(_text(middle, y + s.cell_h / 2 + s.font * 0.36, s.font, cell.text, ink))
    return out


def _every(label_width: float, cell: float) -> int:
    """Return at which step labels are written so that they do not touch."""
    step = 1
    while step * cell < label_width + 4:
        step *= 2
    return step


def _body(p: Picture, s: _Sizes, x0: float) -> list[str]:
    out = [_text(x0 + MARGIN, MARGIN + 12 + 17 * i, 13, line, at="start") for i, line in enumerate(s.title)]
    step = _every(max(len(l) for l in p.col_labels) * 9 * CHAR, s.cell_w)
    for c, label in enumerate(p.col_labels):
        if c % step == 0:
            out.append(_text(x0 + s.left + (c + 0.5) * s.cell_w, s.top - 5, 9, label, "#555555"))
    for r, (label, row) in enumerate(zip(p.row_labels, p.rows)):
        y = s.top + r * s.cell_h
        out.append(_text(x0 + s.left - 5, y + s.cell_h / 2 + 3, 9, label, "#555555", "end"))
        for c, cell in enumerate(row):
            if cell is not None and not cell.mark:
                out += _cell(cell, x0 + s.left + c * s.cell_w, y, s, p.has_small)
    for r, row in enumerate(p.rows):  # frames last, so that no neighbour covers them
        for c, cell in enumerate(row):
            if cell is not None and cell.mark:
                out += _cell(cell, x0 + s.left + c * s.cell_w, s.top + r * s.cell_h, s, p.has_small)
    below = s.top + s.cell_h * len(p.rows) + 16
    out += [_text(x0 + MARGIN, below + 14 * i, 10, line, "#555555", "start") for i, line in enumerate(s.caption)]
    return out


def to_svg(picture: Picture) -> str:
    """Return the picture as a complete SVG document."""
    parts, x, height = [], 0.0, 0.0
    for p in (picture, *picture.beside):
        sizes = _sizes(p)
        parts += _body(p, sizes, x)
        x += sizes.width
        height = max(height, sizes.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {x:.0f} {height:.0f}" font-family="{FONT}">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )

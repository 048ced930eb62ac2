"""Picture -> lines for a terminal, with or without colour."""

from __future__ import annotations

from flydsl.layout.draw.picture import Cell, Picture


def _painted(text: str, cell: Cell | None, color: bool) -> str:
    if cell is None or not color:
        return text
    ink = 231 if cell.is_dark else 16
    bold = "\x1b[1m" if cell.mark else ""
    return f"{bold}\x1b[38;5;{ink};48;5;{cell.terminal_fill}m{text}\x1b[0m"


def _content(cell: Cell | None) -> str:
    return "" if cell is None else cell.text + cell.small


def to_terminal(picture: Picture, color: bool = True) -> str:
    """Return the picture as text; without colour it is plain ASCII."""
    width = max([len(_content(c)) for row in picture.rows for c in row] + [len(l) for l in picture.col_labels])
    margin = max(len(l) for l in picture.row_labels)
    lines = [
        picture.title,
        " " * margin + " " + " ".join(l.rjust(width) for l in picture.col_labels),
    ]
    for label, row in zip(picture.row_labels, picture.rows):
        cells = [_painted(_content(c).rjust(width), c, color) for c in row]
        lines.append(label.rjust(margin) + " " + " ".join(cells))
    if picture.caption:
        lines.append(picture.caption)
    for other in picture.beside:
        lines += ["", to_terminal(other, color).rstrip("\n")]
    return "\n".join(lines) + "\n"

"""Picture -> typst: a table with coloured cells, compiled by `typst compile` as it is."""

from __future__ import annotations

import json

from flydsl.layout.draw.picture import Cell, Picture


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "table.cell(stroke: none)[]"
    ink = "white" if cell.is_dark else "black"
    stroke = "1.2pt" if cell.mark else "0.3pt"
    text = f"text(fill: {ink}, {_quoted(cell.text)})"
    if cell.small:
        text += f" + linebreak() + text(fill: {ink}, size: 0.9em, {_quoted(cell.small)})"
    return f'table.cell(fill: rgb("{cell.fill}"), stroke: {stroke}, {text})'


def _table(p: Picture) -> list[str]:
    out = [
        f'#text(weight: "bold", {_quoted(p.title)})',
        "",
        f"#table(columns: {len(p.col_labels) + 1}, align: center + horizon, inset: 3pt,",
        "  stroke: none,",
        "  [], " + ", ".join(f"text(size: 6pt, {_quoted(l)})" for l in p.col_labels) + ",",
    ]
    for label, row in zip(p.row_labels, p.rows):
        cells = ", ".join(_cell(c) for c in row)
        out.append(f"  text(size: 6pt, {_quoted(label)}), {cells},")
    return out + [")", f"#text(size: 7pt, {_quoted(p.caption)})", ""]


def to_typst(picture: Picture) -> str:
    """Return the picture as a typst document."""
    head = [
        "#set page(width: auto, height: auto, margin: 8pt)",
        '#set text(font: "DejaVu Sans Mono", size: 8pt)',
        "",
    ]
    return "\n".join(head + [line for p in (picture, *picture.beside) for line in _table(p)]) + "\n"

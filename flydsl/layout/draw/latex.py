"""Picture -> LaTeX: a TikZ picture, either to \\input or as a standalone document."""

from __future__ import annotations

from flydsl.layout.draw.picture import Cell, Picture

_SPECIAL = {c: "\\" + c for c in "#$%&_{}"} | {
    "^": "\\^{}",
    "~": "\\~{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
}


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in text)


def _color(fill: str) -> str:
    red, green, blue = (int(fill[i : i + 2], 16) for i in (1, 3, 5))
    return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"


def _label(at: str, text: str, style: str = "font=\\tiny") -> str:
    return f"\\node[{style}] at ({at}) {{{text}}};"


def _cell(cell: Cell, x: float, y: float, width: float, height: float) -> str:
    text = _escaped(cell.text) + (f"\\\\{_escaped(cell.small)}" if cell.small else "")
    line = "very thick" if cell.mark else "very thin"
    ink = "white" if cell.is_dark else "black"
    style = (
        f"draw, {line}, fill={_color(cell.fill)}, text={ink}, minimum width={width:.2f}cm, "
        f"minimum height={height:.2f}cm, inner sep=0pt, align=center, font=\\ttfamily\\scriptsize"
    )
    return _label(f"{x:.2f},{y:.2f}", text, style)


def _body(p: Picture, shift: float) -> list[str]:
    width = max(0.16 * p.widest + 0.2, 0.6)
    height = 0.8 if p.has_small else 0.5
    out = [
        f"\\begin{{scope}}[xshift={shift:.2f}cm]",
        _label("0,0.60", _escaped(p.title), "anchor=south west, font=\\ttfamily\\small"),
    ]
    out += [_label(f"{(c + 0.5) * width:.2f},0.2", label) for c, label in enumerate(p.col_labels)]
    for r, (label, row) in enumerate(zip(p.row_labels, p.rows)):
        y = -(r + 0.5) * height
        out.append(_label(f"-0.05,{y:.2f}", label, "font=\\tiny, anchor=east"))
        places = [(c, cell) for c, cell in enumerate(row) if cell is not None]
        out += [_cell(cell, (c + 0.5) * width, y, width, height) for c, cell in places]
    return out + ["\\end{scope}"]


def to_latex(picture: Picture, standalone: bool = True) -> str:
    """Return the picture as a TikZ picture, by default as a document of its own."""
    lines, shift = ["\\begin{tikzpicture}"], 0.0
    for p in (picture, *picture.beside):
        lines += _body(p, shift)
        shift += max(0.16 * p.widest + 0.2, 0.6) * len(p.col_labels) + 1.0
    lines.append("\\end{tikzpicture}")
    if standalone:
        lines = [
            "\\documentclass[tikz,border=4pt]{standalone}",
            "\\begin{document}",
            *lines,
            "\\end{document}",
        ]
    return "\n".join(lines) + "\n"

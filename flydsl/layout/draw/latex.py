"""Picture -> LaTeX: a TikZ picture, either to \\input or as a standalone document."""

from __future__ import annotations

from flydsl.layout.draw.picture import Picture

_SPECIAL = {c: "\\" + c for c in "#$%&_{}"} | {
    "^": "\\^{}",
    "~": "\\~{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
}


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in text)


def _color(fill: str) -> str:
    return "{rgb,255:red,%d;green,%d;blue,%d}" % tuple(int(fill[i : i + 2], 16) for i in (1, 3, 5))


def _body(p: Picture, shift: float) -> list[str]:
    width = max(0.16 * p.widest + 0.2, 0.6)
    height = 0.8 if p.has_small else 0.5
    out = [
        "\\begin{scope}[xshift=%.2fcm]" % shift,
        "\\node[anchor=south west, font=\\ttfamily\\small] at (0,%.2f) {%s};"
        % (0.6, _escaped(p.title)),
    ]
    for c, label in enumerate(p.col_labels):
        out.append("\\node[font=\\tiny] at (%.2f,0.2) {%s};" % ((c + 0.5) * width, label))
    for r, (label, row) in enumerate(zip(p.row_labels, p.rows)):
        y = -(r + 0.5) * height
        out.append("\\node[font=\\tiny, anchor=east] at (-0.05,%.2f) {%s};" % (y, label))
        for c, cell in enumerate(row):
            if cell is None:
                continue
            text = _escaped(cell.text) + (f"\\\\{_escaped(cell.small)}" if cell.small else "")
            line = "very thick" if cell.mark else "very thin"
            ink = "white" if cell.is_dark else "black"
            out.append(
                "\\node[draw, %s, fill=%s, text=%s, minimum width=%.2fcm, minimum height=%.2fcm, "
                "inner sep=0pt, align=center, font=\\ttfamily\\scriptsize] at (%.2f,%.2f) {%s};"
                % (line, _color(cell.fill), ink, width, height, (c + 0.5) * width, y, text)
            )
    out.append("\\end{scope}")
    return out


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

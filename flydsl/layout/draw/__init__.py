"""Pictures of layouts: what lies where, which thread holds what, which bank serves it.

A builder makes a `Picture` (a table of labelled cells), a renderer makes text of it:
terminal, SVG, LaTeX (TikZ) or typst. No renderer knows layouts, no builder knows an output format.
"""

from __future__ import annotations

from typing import Any

from flydsl.layout.draw.banks import Access, BankFacts, bank_grid, conflict_degrees, facts_of
from flydsl.layout.draw.grids import compare, coord_grid, index_grid, tv_grid
from flydsl.layout.draw.latex import to_latex
from flydsl.layout.draw.picture import Cell, Picture
from flydsl.layout.draw.svg import to_svg
from flydsl.layout.draw.terminal import to_terminal
from flydsl.layout.draw.typst import to_typst
from flydsl.layout.errors import LayoutError


def layout_text(layout: Any, color: bool = False) -> str:
    """Return a layout as text: its notation, and its index grid where it is static and small
    enough.
    """
    try:
        return to_terminal(index_grid(layout), color)
    except LayoutError:
        return f"{layout}\n"


__all__ = [
    "Access",
    "BankFacts",
    "Cell",
    "Picture",
    "bank_grid",
    "compare",
    "conflict_degrees",
    "coord_grid",
    "facts_of",
    "index_grid",
    "layout_text",
    "to_latex",
    "to_svg",
    "to_terminal",
    "to_typst",
    "tv_grid",
]

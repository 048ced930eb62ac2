"""What a notebook shows for a layout: its index grid, when it is static and small enough."""

from __future__ import annotations

from typing import Any

from flydsl.layout.draw.grids import index_grid
from flydsl.layout.draw.svg import to_svg
from flydsl.layout.errors import LayoutError


def svg_of(layout: Any) -> str | None:
    """Return the SVG of a layout, or None (then the notebook prints its text)."""
    try:
        return to_svg(index_grid(layout))
    except LayoutError:
        return None

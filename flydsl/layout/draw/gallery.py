"""The pictures of docs/layout.md, by name: `python -m flydsl.layout.draw.gallery docs/img`
writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from flydsl.layout.divide import zipped_divide
from flydsl.layout.draw.banks import GFX942, Access, bank_grid
from flydsl.layout.draw.grids import coord_grid, index_grid, tv_grid
from flydsl.layout.draw.picture import Picture
from flydsl.layout.draw.svg import to_svg
from flydsl.layout.layout import Layout, make_composed_layout
from flydsl.layout.swizzle import Swizzle
from flydsl.layout.tv import make_layout_tv

LDS = Layout((16, 64), (64, 1))
READ = Access(Layout(((16, 4), 8), ((1, 128), 16)))


def _tv() -> Picture:
    tile, tv = make_layout_tv(Layout((4, 4), (4, 1)), Layout((1, 4), (1, 1)))
    return tv_grid(tv, tile)


def _mfma() -> Picture:
    tv = Layout(((16, 4), 4), ((1, 64), 16))
    return tv_grid(tv, (16, 16), "16x16x16 A operand: 64 lanes, 4 values each")


PICTURES: dict[str, Callable[[], Picture]] = {
    "layout_row_major": lambda: index_grid(Layout((4, 8), (8, 1))),
    "layout_memory": lambda: coord_grid(Layout((4, 8), (8, 1))),
    "layout_nested": lambda: index_grid(Layout(((2, 2), (2, 4)), ((1, 4), (2, 8)))),
    "layout_zipped": lambda: index_grid(zipped_divide(Layout((8, 8), (8, 1)), (2, 4))),
    "layout_tv": _tv,
    "layout_mfma_a": _mfma,
    "layout_swizzle": lambda: index_grid(make_composed_layout(Swizzle(3, 0, 3), Layout((8, 8), (8, 1)))),
    "layout_banks_plain": lambda: bank_grid(LDS, 16, GFX942, READ),
    "layout_banks_swizzled": lambda: bank_grid(make_composed_layout(Swizzle(3, 3, 3), LDS), 16, GFX942, READ),
}


def write(folder: Path) -> list[Path]:
    """Write every picture and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for name, build in PICTURES.items():
        path = folder / f"{name}.svg"
        path.write_text(to_svg(build()), encoding="utf-8")
        out.append(path)
    return out


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        sys.stdout.write(f"{written}\n")

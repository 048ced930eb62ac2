"""Typst drawings: boxes of one size per grid, and `fx.utils.print_typst` for everything it draws."""

from __future__ import annotations

import re

import pytest

import flydsl.expr as fx
import flydsl.layout as fl
from flydsl.diag import WrongKind
from flydsl.layout import draw
from flydsl.layout.draw import typst


def boxes(text: str) -> list[tuple[str, str]]:
    """Return (width, height) of every box of a document."""
    return re.findall(r"#box\(width: ([\d.]+)pt, height: ([\d.]+)pt, inset: 1pt\)", text)


def cells(text: str) -> list[str]:
    """Return the fill of every coloured cell."""
    return re.findall(r'grid\.cell\(fill: rgb\("(#[0-9a-f]{6})"\)', text)


def test_one_size_per_grid_and_every_cell_is_there():
    text = draw.to_typst(draw.index_grid(fl.parse("(4,8):(8,1)")))
    assert len(set(boxes(text))) == 1
    assert len(boxes(text)) == 4 * 8 + 4 + 8
    assert len(cells(text)) == 32
    assert text.count("(") == text.count(")") and text.count("[") == text.count("]")


def test_boxes_follow_the_longest_line_and_the_number_of_lines():
    small = typst.grid_cell_size(1, 1, {(0, 0): ("#ffffff", "3")})
    large = typst.grid_cell_size(1, 1, {(0, 0): ("#ffffff", "T100 #linebreak() V12")})
    for less, more in zip(small, large, strict=True):
        assert float(less.removesuffix("pt")) < float(more.removesuffix("pt"))


def test_grids_of_an_mma_meet_in_c():
    a, b, c = typst.mma_sizes(A=("10pt", "20pt"), B=("30pt", "5pt"), C=("9pt", "8pt"))
    assert (a, b, c) == (("10pt", "20pt"), ("30pt", "5pt"), ("30pt", "20pt"))


def test_layout_to_standard_output_and_to_a_file(capsys, tmp_path):
    layout = fx.make_layout((2, 3), (3, 1))
    fx.utils.print_typst(layout)
    shown = capsys.readouterr().out
    assert shown.startswith("#set page(") and len(cells(shown)) == 6 and '"(2,3):(3,1)"' in shown
    path = tmp_path / "two.typ"
    fx.utils.print_typst(layout, file=str(path))
    swizzled = fx.make_composed_layout(fx.static(fx.SwizzleType.get(1, 0, 1)), fx.make_layout((2, 2), (2, 1)))
    fx.utils.print_typst(swizzled, file=path)
    text = path.read_text(encoding="utf-8")
    assert text.count("#set page(") == 1 and len(cells(text)) == 6 + 4


def test_colour_is_asked_for_each_index(capsys):
    asked = []
    fx.utils.print_typst(fx.make_layout((2, 2), (2, 1)), color=lambda i: asked.append(i) or f"#00000{i}")
    text = capsys.readouterr().out
    assert sorted(asked) == [0, 1, 2, 3] and sorted(cells(text)) == [f"#00000{i}" for i in range(4)]
    assert "fill: white" in text and "fill: black" not in text, "dark boxes have light text"


def test_tiled_copy_shows_both_sides(capsys):
    tile, tv = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))
    tiled = fx.make_tiled_copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), tv, tile)
    asked = []
    fx.utils.print_typst(tiled, color=lambda t, v: asked.append((t, v)) or "#ffffff")
    assert sorted(asked) == sorted(2 * [(t, v) for t in range(4) for v in range(8)])
    assert len(cells(capsys.readouterr().out)) == 2 * 4 * 8


def test_mma_atom_shows_a_b_and_c(capsys):
    fx.utils.print_typst(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)))
    text = capsys.readouterr().out
    assert len(cells(text)) == 3 * 16 * 16
    for name in ("A (M x K)", "B (K x N)", "C (M x N)"):
        assert name in text


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(WrongKind, match="print_typst"):
        fx.utils.print_typst(3)
    with pytest.raises(TypeError, match="cells are too many"):
        fx.utils.print_typst(fx.make_layout((1024, 1024), (1024, 1)))


def test_layouts_of_the_front_end_are_pictures_in_notebooks():
    assert fx.make_layout((4, 8), (8, 1))._repr_svg_() == fl.parse("(4,8):(8,1)")._repr_svg_()

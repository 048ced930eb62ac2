"""The documentation's snippets run, its pictures are the ones the code draws, and every renderer works."""

from __future__ import annotations

import doctest
import re
import xml.etree.ElementTree as ET

import pytest

import flydsl.layout as fl
from flydsl.layout import cli, draw
from flydsl.layout.draw.gallery import PICTURES
from tests.unit.layout.shared_data import ROOT

PAGE = ROOT / "docs" / "layout.md"


def test_snippets_run():
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 30 and result.failed == 0


def test_pictures_of_the_page_are_generated():
    shown = set(re.findall(r"img/(\w+)\.svg", PAGE.read_text(encoding="utf-8")))
    assert shown == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_current(name):
    path = ROOT / "docs" / "img" / f"{name}.svg"
    assert path.read_text(encoding="utf-8") == draw.to_svg(PICTURES[name]()), (
        "run python -m flydsl.layout.draw.gallery docs/img"
    )


@pytest.mark.parametrize("shape", ["(8,8):(8,1)", "(64,32):(32,1)", "S<3,3,3> o 0 o (64,32):(32,1)", "7:1"])
def test_labels_stay_inside_their_cells(shape):
    """Each text is narrower than its cell, and two texts of a row never meet."""
    root = ET.fromstring(draw.to_svg(draw.index_grid(fl.parse(shape))))
    space = "{http://www.w3.org/2000/svg}"
    cell = min(float(r.get("width")) for r in root.iter(f"{space}rect") if "%" not in r.get("width"))
    width, height = float(root.get("width")), float(root.get("height"))
    for text in root.iter(f"{space}text"):
        wide = len(text.text) * 0.61 * float(text.get("font-size"))
        if text.get("text-anchor") == "middle":
            assert wide <= cell
        assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height
        assert float(text.get("font-size")) >= 9


def test_renderers_agree_on_the_cells():
    picture = draw.index_grid(fl.parse("(2,3):(3,1)"))
    for text in (
        draw.to_terminal(picture, False),
        draw.to_latex(picture),
        draw.to_typst(picture),
        draw.to_svg(picture),
    ):
        for number in "012345":
            assert number in text
    assert "\x1b[" not in draw.to_terminal(picture, False) and "\x1b[" in draw.to_terminal(picture)
    assert draw.to_latex(picture).count("\\node") == draw.to_latex(picture).count("};")


def test_bank_law_moving_by_a_row_of_banks_changes_nothing():
    facts = draw.BankFacts(32, 4)
    access = draw.Access(fl.parse("((16,4),8):((1,128),16)"))
    for text in ("(16,64):(64,1)", "(16,64):(72,1)", "(16,64):(66,1)"):
        plain = fl.parse(text)
        moved = fl.make_composed_layout(fl.parse("1000000:1"), 64 * 5, plain)
        assert draw.conflict_degrees(plain, access, 16, facts) == draw.conflict_degrees(moved, access, 16, facts)


def test_padding_and_more_banks():
    access = draw.Access(fl.parse("((16,4),8):((1,128),16)"))
    plain, padded = fl.parse("(16,64):(64,1)"), fl.parse("(16,64):(72,1)")
    assert set(draw.conflict_degrees(plain, access, 16, draw.BankFacts(32, 4))) == {8}
    assert set(draw.conflict_degrees(padded, access, 16, draw.BankFacts(32, 4))) == {1}
    assert set(draw.conflict_degrees(plain, access, 16, draw.BankFacts(64, 4))) == {8}
    picture = draw.bank_grid(plain, 16, draw.BankFacts(32, 4, "gfx942"), access)
    assert "gfx942: 32 banks x 4 B" in picture.title and "conflict degree 8" in picture.title


def test_tv_map_marks_what_two_threads_hold():
    twice = draw.tv_grid(fl.parse("(4,2):(1,1)"), (4, 2))
    assert any(c.mark for c in twice.cells)
    once = draw.tv_grid(fl.parse("(4,2):(1,4)"), (4, 2))
    assert not any(c.mark for c in once.cells) and len(once.cells) == 8


def test_notebook_picture():
    assert fl.parse("(4,8):(8,1)")._repr_svg_().startswith("<svg")
    assert fl.parse("(?,8):(8,1)")._repr_svg_() is None


def test_command_line(tmp_path, capsys):
    svg = tmp_path / "out.svg"
    assert cli.main(["(4,64):(64,1)", "--op", "divide", "(2,16)", "--svg", str(svg)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("((2,2),(16,4)):((64,128),(1,16))\n") and svg.read_text().startswith("<svg")
    assert (
        cli.main(
            [
                "(16,64):(64,1)",
                "--op",
                "compose",
                "S<3,3,3>",
                "--banks",
                "gfx942",
                "--bits",
                "f16",
                "--access",
                "((16,4),8):((1,128),16)",
                "--latex",
                str(tmp_path / "a.tex"),
            ]
        )
        == 0
    )
    assert cli.main(["(4,1):(1,1)", "--tv", "(1,8):(1,1)"]) == 0
    assert "T3V7" in capsys.readouterr().out
    assert cli.main(["(4,8):(3,5)", "--op", "complement"]) == 2
    assert "error[FLY_LAYOUT_NOT_INJECTIVE]" in capsys.readouterr().err
    assert cli.main(["(4,8", "--no-picture"]) == 2

"""docs/atoms.md is what the tables say, and its pictures are right."""
from pathlib import Path

from flydsl.atoms import catalogue
from flydsl.layout import parse

PAGE = Path(__file__).resolve().parents[3] / "docs" / "atoms.md"


def test_the_page_is_up_to_date():
    text = "\n".join(catalogue.pages()) + "\n"
    assert PAGE.read_text() == text, "run: python -m flydsl.atoms.catalogue > docs/atoms.md"


def test_every_instruction_is_listed():
    from flydsl import atoms
    text = PAGE.read_text()
    for chip in ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"):
        for row in atoms.supported(chip):
            assert f"`{row.isa}`" in text


def test_picture():
    lines = catalogue.picture(parse("((4,2),2):((1,8),4)"), 4, 4)
    assert lines == ["0.0 0.1 4.0 4.1", "1.0 1.1 5.0 5.1", "2.0 2.1 6.0 6.1", "3.0 3.1 7.0 7.1"]

"""Runs every .mlir file below this folder: its first line says the passes (`// RUN: passes=a+b [arch=...]`), CHECK lines what comes out.

A line `// ERROR: TEXT` instead of CHECK lines: the passes must refuse the input with a message that contains TEXT.
"""

import io
import pathlib
import re

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from flydsl.tools.opt import optimise

HERE = pathlib.Path(__file__).parent
FILES = sorted(p for p in HERE.rglob("*.mlir") if p.read_text().startswith("// RUN:"))


def filecheck(checks: str, text: str) -> None:
    """Match text against the CHECK lines of `checks`."""
    options = Options(match_filename="checks", input_file="output")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    assert Matcher(options, FInput("output", text), parser).run() == 0, text


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HERE)))
def test_file(path: pathlib.Path) -> None:
    text = path.read_text()
    run = dict(re.findall(r"(\w+)=(\S+)", text.splitlines()[0]))
    passes = [p for p in run.get("passes", "").split("+") if p]
    expected = re.search(r"^// ERROR: (.*)$", text, re.M)
    if expected:
        with pytest.raises(Exception, match=re.escape(expected[1])):
            optimise(text, passes, run.get("arch", "gfx942"))
        return
    filecheck(text, optimise(text, passes, run.get("arch", "gfx942")))


def test_unknown_pass_is_refused() -> None:
    with pytest.raises(Exception, match="no-such-pass"):
        optimise("module {}", ["no-such-pass"])

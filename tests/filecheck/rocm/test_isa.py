"""Compiles every .mlir file of this folder for the chips its first line names and matches the ISA with FileCheck.

First line: `// ISA: gfx942 gfx950 ...`. Checks: `// CHECK...` for all of them, `// GFX942...` for one chip (its name in capitals).
"""

import io
import pathlib

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from flydsl.targets.rocm import compile_lowered

HERE = pathlib.Path(__file__).parent
CASES = [(path, arch) for path in sorted(HERE.glob("*.mlir")) for arch in path.read_text().splitlines()[0].split()[2:]]


def check(prefix: str, checks: str, text: str) -> None:
    options = Options(match_filename="checks", input_file="isa", check_prefixes=[prefix])
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    assert Matcher(options, FInput("isa", text), parser).run() == 0, f"{prefix}:\n{text[:4000]}"


@pytest.mark.parametrize("path, arch", CASES, ids=lambda v: v.stem if isinstance(v, pathlib.Path) else v)
def test_isa(path: pathlib.Path, arch: str) -> None:
    source = path.read_text()
    isa = compile_lowered(source, arch, emit=("isa",)).isa
    prefixes = [p for p in ("CHECK", arch.upper()) if f"// {p}" in source]
    assert prefixes, f"{path.name} checks nothing for {arch}"
    for prefix in prefixes:
        check(prefix, source, isa)

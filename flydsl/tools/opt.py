"""Run passes on IR text: `python -m flydsl.tools.opt -p 'fly-layout-lowering,canonicalize' file.mlir`.

Both spellings of Fly types are read, the reference's is printed. Passes of our own go by their name, anything else is an upstream pipeline.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys

import flydsl.dialects  # noqa: F401  (contexts load the Fly dialects)
from flydsl import arch as chips
from flydsl.diag import FlyError, InputUnreadable, IrSyntax
from flydsl.diag.stack import shows_internal_frames
from flydsl.dialects.values import parse_inner, split_top
from flydsl.ir import get_context, get_types, parse_module, print_op
from flydsl.ir.spelling import matching_bracket
from flydsl.ir.verify import verify
from flydsl.layout.errors import LayoutError
from flydsl.passes.registry import run_pass
from flydsl.pipeline import TO_LOWERED

_TYPE = re.compile(r"!fly\.(int_tuple|layout|composed_layout|swizzle|tile|ptr|memref|coord_tensor)<")


def optimise(text: str, passes: list[str], arch: str = "gfx942", locations: bool = False) -> str:
    """Return IR text after passes.

    Raises   UnknownArch, IrSyntax, VerifyFailed, PassName, PassFailed
    """
    chips.get(arch)
    module = parse_module(text, get_context())
    with module.context:
        verify(module, "parsing")
        _check_types(print_op(module))
        for name in passes:
            run_pass(name, module, get_types(), arch)
        verify(module, passes[-1] if passes else "parsing")
    return print_op(module, locations)


def _check_types(text: str) -> None:
    """Refuse a layout, pointer or view whose parameters mean nothing: MLIR keeps them as text. Raises IrSyntax."""
    for found in _TYPE.finditer(text):
        end = matching_bracket(text, found.end() - 1)
        try:
            parse_inner(found[1], text[found.end() : end])
        except LayoutError as e:
            raise IrSyntax(problem=e.condition, text=text[found.start() : end + 1]) from e


def main(argv: list[str] | None = None) -> int:
    """Read a file or standard input, print the result; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="-")
    parser.add_argument("-p", "--passes", default="", help="comma-separated; `lower` is the whole way to lowered IR")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--locations", action="store_true")
    args = parser.parse_args(argv)
    passes = list(TO_LOWERED) if args.passes == "lower" else [p for p in split_top(args.passes) if p]
    try:
        text = optimise(_text(args.file), passes, args.arch, args.locations)
    except FlyError as e:
        if shows_internal_frames():
            raise
        sys.stderr.write(f"{e}\n")
        return 1
    sys.stdout.write(text + "\n")
    return 0


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return pathlib.Path(file).read_text()
    except (OSError, UnicodeDecodeError) as e:
        problem = e.strerror if isinstance(e, OSError) else "it is no text"
        raise InputUnreadable(path=file, problem=problem, otherwise=", or `-` for standard input") from e


if __name__ == "__main__":
    sys.exit(main())

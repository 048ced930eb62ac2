"""Run passes on IR text: `python -m flydsl.tools.opt -p 'fly-layout-lowering,canonicalize' file.mlir`.

Both spellings of Fly types are read, the reference's is printed. Passes of our own go by their name, anything else is an upstream pipeline.
"""

from __future__ import annotations

import argparse
import sys

import flydsl.dialects  # noqa: F401  (contexts load the Fly dialects)
from flydsl.dialects.values import split_top
from flydsl.ir import get_context, get_types, parse_module, print_op
from flydsl.ir.verify import verify
from flydsl.passes.registry import run_pass
from flydsl.pipeline import TO_LOWERED


def optimise(text: str, passes: list[str], arch: str = "gfx942", locations: bool = False) -> str:
    """Return IR text after passes."""
    module = parse_module(text, get_context())
    with module.context:
        verify(module, "parsing")
        for name in passes:
            run_pass(name, module, get_types(), arch)
        verify(module, passes[-1] if passes else "parsing")
    return print_op(module, locations)


def main(argv: list[str] | None = None) -> int:
    """Read a file or standard input, print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="-")
    parser.add_argument("-p", "--passes", default="", help="comma-separated; `lower` is the whole way to lowered IR")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--locations", action="store_true")
    args = parser.parse_args(argv)
    text = sys.stdin.read() if args.file == "-" else open(args.file).read()
    passes = list(TO_LOWERED) if args.passes == "lower" else [p for p in split_top(args.passes) if p]
    sys.stdout.write(optimise(text, passes, args.arch, args.locations) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

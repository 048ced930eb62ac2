"""`flydsl explain CODE`: the long form of an error, with an example before and after where there is one."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
import textwrap

from flydsl.diag import FlyError, catalogue
from flydsl.diag.examples import EXAMPLES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help="a code such as FLY_NOT_TRACING; none lists all")


def all_errors() -> dict[str, type[FlyError]]:
    """Return the whole catalogue: each of these modules adds its classes when it is imported."""
    for module in ("diag.errors", "atoms.errors", "atoms.waitcnt", "expr.fastmath", "expr.layout_errors"):
        importlib.import_module(f"flydsl.{module}")
    return catalogue


def run(args: argparse.Namespace) -> int:
    errors = all_errors()
    if args.code is None:
        for code, cls in sorted(errors.items()):
            sys.stdout.write(f"{code:36} {cls.what}\n")
        return 0
    cls = errors.get(args.code.upper())
    if cls is None:
        close = difflib.get_close_matches(args.code.upper(), errors, 3)
        sys.stderr.write(f"no error has the code {args.code}; close: {', '.join(close) or 'none'}\n")
        return 1
    sys.stdout.write(f"{cls.code}\n  what: {cls.what}\n  why:  {cls.why}\n  fix:  {cls.fix}\n")
    example = EXAMPLES.get(cls.code) or cls.example
    if example:
        before, after = (textwrap.indent(text, "    ") for text in example)
        sys.stdout.write(f"\nbefore:\n{before}\n\nafter:\n{after}\n")
    return 0

"""`flydsl explain CODE`: the long form of an error, with an example before and after where there is one."""

from __future__ import annotations

import argparse
import difflib
import sys
import textwrap

from flydsl.diag import catalogue
from flydsl.diag.examples import EXAMPLES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help="a code such as FLY_NOT_TRACING; none lists all")


def run(args: argparse.Namespace) -> int:
    import flydsl.atoms.errors
    import flydsl.diag.errors  # noqa: F401

    if args.code is None:
        for code, cls in sorted(catalogue.items()):
            sys.stdout.write(f"{code:36} {cls.what}\n")
        return 0
    cls = catalogue.get(args.code.upper())
    if cls is None:
        close = difflib.get_close_matches(args.code.upper(), catalogue, 3)
        sys.stderr.write(f"no error has the code {args.code}; close: {', '.join(close) or 'none'}\n")
        return 1
    sys.stdout.write(f"{cls.code}\n  what: {cls.what}\n  why:  {cls.why}\n  fix:  {cls.fix}\n")
    example = cls.example or EXAMPLES.get(cls.code)
    if example:
        before, after = (textwrap.indent(text, "    ") for text in example)
        sys.stdout.write(f"\nbefore:\n{before}\n\nafter:\n{after}\n")
    return 0

"""`flydsl layout`: evaluate, print and draw layouts; the work is in `flydsl.layout.cli`."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="LAYOUT and options; see `flydsl layout LAYOUT --help`")


def run(args: argparse.Namespace) -> int:
    from flydsl.layout.cli import main

    return main(args.rest)

"""`flydsl layout`: parse a layout, apply an operation, print and draw the result.

flydsl layout '(4,64):(64,1)' --op divide '(2,16)' --svg out.svg
flydsl layout '(8,64):(64,1)' --op compose 'S<3,3,3>' --banks gfx942 --bits 16
flydsl layout '(32,8):(8,1)' --tv '(1,8):(1,1)'
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from flydsl.layout import cases, compose, divide, draw, inverse, product, recast
from flydsl.layout.draw.banks import GFX942, GFX950, Access, BankFacts
from flydsl.layout.errors import LayoutError, OperandType
from flydsl.layout.layout import ComposedLayout, Layout, make_composed_layout, make_tile
from flydsl.layout.measure import cosize, size
from flydsl.layout.parse import parse
from flydsl.layout.swizzle import CoordSwizzle, Swizzle
from flydsl.layout.tv import make_layout_tv
from flydsl.layout.view import element_bits

SHORT = {
    "divide": divide.logical_divide,
    "product": product.logical_product,
    "compose": compose.composition,
    "recast": recast.recast_layout,
    "inverse": inverse.right_inverse,
}


def _operand(text: str) -> Any:
    return parse(text)


def _apply(layout: Any, op: str, texts: list[str]) -> Any:
    """Return the result of one operation; a swizzle composes from outside, a tuple divides as a
    tile.
    """
    operands = [_operand(t) for t in texts]
    if op == "compose" and len(operands) == 1 and isinstance(operands[0], (Swizzle, CoordSwizzle)):
        return make_composed_layout(operands[0], layout)
    if op.endswith("divide") and operands and isinstance(operands[0], tuple):
        operands[0] = make_tile(*operands[0])
    fn = SHORT.get(op) or cases.OPS.get(op)
    if fn is None:
        known = ", ".join(sorted(set(SHORT) | set(cases.OPS)))
        raise OperandType(f"no operation {op}; there are {known}", "layout", (layout,))
    return fn(layout, *operands)


def _facts(chip: str) -> BankFacts:
    known = {"gfx942": GFX942, "gfx950": GFX950}
    if chip in known:
        return known[chip]
    if chip.isdigit():
        return BankFacts(int(chip))
    raise OperandType(f"{chip} is none of {', '.join(known)} and no number of banks", "banks", (chip,))


def _picture(layout: Any, options: argparse.Namespace) -> draw.Picture:
    if options.tv:
        tile, tv = make_layout_tv(layout, parse(options.tv))
        return draw.tv_grid(tv, tile)
    if options.banks:
        access = Access(parse(options.access)) if options.access else None
        return draw.bank_grid(layout, options.bits, _facts(options.banks), access)
    return draw.coord_grid(layout) if options.memory else draw.index_grid(layout)


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="flydsl layout",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("layout", help="a layout, composed layout or tuple in printed notation")
    p.add_argument(
        "--op",
        nargs="+",
        metavar=("NAME", "OPERAND"),
        action="append",
        default=[],
        help="apply an operation; can be repeated",
    )
    p.add_argument("--tv", metavar="VALUES", help="draw the thread-value map with this value layout")
    p.add_argument("--memory", action="store_true", help="draw memory order instead of coordinates")
    p.add_argument("--banks", metavar="CHIP", help="draw LDS banks: gfx942, gfx950 or a number of banks")
    p.add_argument("--bits", type=_width, default=16, help="bits (or type) of an element, for --banks")
    p.add_argument("--access", metavar="TV", help="(lane, value) -> element of the tile, for --banks")
    p.add_argument("--svg", type=Path, help="write the picture as SVG")
    p.add_argument("--latex", type=Path, help="write the picture as LaTeX (TikZ)")
    p.add_argument("--typst", type=Path, help="write the picture as typst")
    p.add_argument("--no-color", action="store_true", help="print without colour")
    p.add_argument("--no-picture", action="store_true", help="print the result only")
    return p


def _width(text: str) -> int:
    return int(text) if text.isdigit() else element_bits(text)


def _report(layout: Any) -> str:
    lines = [str(layout)]
    if isinstance(layout, (Layout, ComposedLayout)):
        lines.append(f"size {size(layout)}, cosize {cosize(layout)}")
    return "\n".join(lines) + "\n"


def _run(options: argparse.Namespace) -> str:
    value = parse(options.layout)
    for name, *texts in options.op:
        value = _apply(value, name, texts)
    if not isinstance(value, (Layout, ComposedLayout)):
        return cases.to_text(value) + "\n"
    out = _report(value)
    if options.no_picture or not value.is_static:
        return out
    picture = _picture(value, options)
    for path, render in (
        (options.svg, draw.to_svg),
        (options.latex, draw.to_latex),
        (options.typst, draw.to_typst),
    ):
        if path:
            path.write_text(render(picture), encoding="utf-8")
            out += f"wrote {path}\n"
    if options.svg or options.latex or options.typst:
        return out
    color = not options.no_color and sys.stdout.isatty()
    return out + draw.to_terminal(picture, color)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        sys.stdout.write(_run(options))
    except LayoutError as error:
        sys.stderr.write(f"error[{error.code}]: {error}\n  why: {error.why}\n  fix: {error.fix}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Evaluate oracle records: `python -m flydsl.layout.cases FILE.jsonl`.

One record is one operation on printed operands with the printed result. Prints each
disagreement and, last,
`agree N of M, documented deviations K`; exit status 0 when nothing else is left.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import int_tuple as it
from . import layout as ly
from . import measure, modes, view
from .compose import coalesce, composition, layout_of
from .coords import crd2idx, get_1d_coord, get_flat_coord, idx2crd
from .deviations import find_deviation
from .divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .errors import LayoutError, OperandType
from .inverse import complement, gap_leaves, left_inverse, right_inverse
from .layout import ComposedLayout, Layout
from .leaf import Sym
from .parse import parse, parse_path
from .product import (
    blocked_product,
    flat_product,
    logical_product,
    make_fragment_layout_like,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .recast import recast_layout
from .swizzle import Swizzle
from .tv import make_layout_tv
from .view import CoordTensor, MemRef


def _on_view(fn: Callable) -> Callable:
    def apply(x: Any, *args: Any) -> Any:
        if isinstance(x, (MemRef, CoordTensor)):
            return view.with_layout(x, fn, *args)
        return fn(x, *args)

    return apply


def _of_layout(fn: Callable) -> Callable:
    """A view has the shape, the size and the like of its layout."""
    return lambda *args: fn(*[x.layout if isinstance(x, (MemRef, CoordTensor)) else x for x in args])


def _no_tuple_divisor(fn: Callable) -> Callable:
    """In the notation a tile is written [..]; a tuple is not one."""

    def apply(x: Any, divisor: Any) -> Any:
        if isinstance(divisor, tuple):
            raise OperandType("the divisor must be a layout or a tile")
        return _on_view(fn)(x, divisor)

    return apply


def _unchecked_layout(shape: Any, stride: Any) -> Layout:
    for x in (shape, stride):
        if isinstance(x, (Layout, ComposedLayout)):
            raise OperandType("expected an integer tuple, got a layout")
    return Layout(shape, stride)


def _complement(layout: Any, *bound: Any) -> Any:
    """`*` as the bound counts as 0 wherever it is divided by a number."""
    if bound != (None,):
        return complement(layout, *bound)
    return ly.on_outer(lambda l: layout_of(*gap_leaves(l, None, True)), layout)


def _slice(x: Any, coord: Any) -> Any:
    return view.slice_view(x, coord) if isinstance(x, (MemRef, CoordTensor)) else modes.slice_(x, coord)


def _crd2idx(coord: Any, layout: Any) -> Any:
    """A swizzle alone is the map that it is inside a composed layout."""
    return layout(coord) if isinstance(layout, Swizzle) else crd2idx(coord, layout)


def _add_offset(base: Any, offset: Any) -> Any:
    """The base of a coordinate tensor is an integer or a coordinate, which moves by adding."""
    return view.add_offset(base, offset) if isinstance(base, view.Ptr) else it.int_tuple_add(base, offset)


def _path_op(fn: Callable) -> Callable:
    return lambda x, path: _on_view(fn)(x, path)


def _predicate(fn: Callable) -> Callable:
    """A comparison with a dynamic leaf is an i1 in the record, even where its value is already
    certain.
    """

    def apply(a: Any, b: Any) -> Any:
        result = fn(a, b)
        return "i1" if _has_sym(a) or _has_sym(b) else result

    return apply


def _has_sym(x: Any) -> bool:
    return any(isinstance(i, Sym) or isinstance(getattr(i, "value", None), Sym) for i in it.leaves(x))


OPS: dict[str, Callable] = {
    "make_layout": _unchecked_layout,
    "make_ordered_layout": ly.make_ordered_layout,
    "make_identity_layout": ly.make_identity_layout,
    "make_layout_like": ly.make_layout_like,
    "make_fragment_layout_like": _of_layout(make_fragment_layout_like),
    "make_composed_layout": ly.make_composed_layout,
    "composed_get_inner": measure.composed_get_inner,
    "composed_get_offset": measure.composed_get_offset,
    "composed_get_outer": measure.composed_get_outer,
    "coalesce": _on_view(coalesce),
    "complement": _on_view(_complement),
    "composition": _on_view(composition),
    "right_inverse": _on_view(right_inverse),
    "left_inverse": _on_view(left_inverse),
    "logical_divide": _no_tuple_divisor(logical_divide),
    "zipped_divide": _no_tuple_divisor(zipped_divide),
    "tiled_divide": _no_tuple_divisor(tiled_divide),
    "flat_divide": _no_tuple_divisor(flat_divide),
    "logical_product": _on_view(logical_product),
    "zipped_product": _on_view(zipped_product),
    "tiled_product": _on_view(tiled_product),
    "flat_product": _on_view(flat_product),
    "blocked_product": _on_view(blocked_product),
    "raked_product": _on_view(raked_product),
    "recast_layout": recast_layout,
    "tile_to_shape": _on_view(tile_to_shape),
    "make_layout_tv": make_layout_tv,
    "size": _of_layout(measure.size),
    "cosize": _of_layout(measure.cosize),
    "coshape": _of_layout(measure.coshape),
    "coprofile": _of_layout(measure.coprofile),
    "get_shape": _of_layout(measure.get_shape),
    "get_stride": _of_layout(measure.get_stride),
    "rank": _of_layout(measure.rank),
    "depth": _of_layout(measure.depth),
    "has_none": it.has_none,
    "get": _path_op(modes.get_),
    "select": _path_op(modes.select),
    "group": _on_view(modes.group),
    "take": _on_view(modes.take),
    "append": modes.append,
    "prepend": modes.prepend,
    "slice": _slice,
    "dice": modes.dice,
    "crd2idx": _crd2idx,
    "idx2crd": idx2crd,
    "get_flat_coord": get_flat_coord,
    "get_1d_coord": get_1d_coord,
    "int_tuple_add": it.int_tuple_add,
    "int_tuple_sub": it.int_tuple_sub,
    "int_tuple_mul": it.int_tuple_mul,
    "int_tuple_div": it.int_tuple_div,
    "int_tuple_mod": it.int_tuple_mod,
    "int_tuple_product": it.int_tuple_product,
    "int_tuple_product_each": it.int_tuple_product_each,
    "int_tuple_product_like": it.int_tuple_product_like,
    "shape_div": it.shape_div,
    "ceil_div": it.ceil_div,
    "elem_less": _predicate(it.elem_less),
    "equal": _predicate(it.equal),
    "is_profile_congruent": _of_layout(ly.is_profile_congruent),
    "is_profile_weakly_congruent": _of_layout(ly.is_profile_weakly_congruent),
    "apply_swizzle": view.swizzled,
    "add_offset": _add_offset,
    "make_view": view.make_view,
}


def to_text(x: Any) -> str:
    """Return the printed form of a result."""
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], Layout):
        return f"{it.to_str(x[0])} ; {x[1]}"
    return x if isinstance(x, str) else it.to_str(x)


def operands(op: str, args: list[str]) -> list[Any]:
    """Return the parsed operands of a record."""
    out = []
    for i, text in enumerate(args):
        is_path = op in ("get", "select") and i == 1
        out.append(parse_path(text) if is_path else parse(text))
    return out


def evaluate(op: str, args: list[str]) -> Any:
    """Return the result of one operation on printed operands."""
    return OPS[op](*operands(op, args))


def check(record: dict) -> tuple[str, str]:
    """Return (verdict, our text); verdict is agree, deviation or disagree.

    A refusal agrees with any refusal; an answer where the reference aborted is acceptable by
    the data's rules.
    """
    op, args = record["op"], record["args"]
    try:
        ours = to_text(evaluate(op, args))
        refused = False
    except LayoutError as error:
        ours, refused = f"{type(error).__name__}: {error}", True
    except Exception as error:  # a crash of ours is reported as the disagreement it is, with the record
        return "disagree", f"CRASH {type(error).__name__}: {error}"
    if record["error"]:
        answered = not refused and record.get("error_kind") == "rejected"
        return ("disagree" if answered else "agree"), ours
    if not refused and ours == record["result"]:
        return "agree", ours
    row = find_deviation(op, args, record["result"], None if refused else ours)
    return ("deviation" if row else "disagree"), ours + (f"   [{row.name}]" if row else "")


def records(path: str) -> Iterator[dict]:
    """Yield the records of a JSON lines file."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def main(argv: list[str] | None = None) -> int:
    """Evaluate each file named in `argv`; `-v` prints the documented deviations too."""
    argv = sys.argv[1:] if argv is None else argv
    verbose = "-v" in argv
    counts = {"agree": 0, "deviation": 0, "disagree": 0}
    for path in (a for a in argv if a != "-v"):
        for record in records(path):
            verdict, ours = check(record)
            counts[verdict] += 1
            if verdict == "disagree" or verbose and verdict == "deviation":
                expected = record["result"] if not record["error"] else f"error ({record.get('error_kind')})"
                sys.stdout.write(
                    f"{record['op']} {' ; '.join(record['args'])}\n    expected {expected}\n    got      {ours}\n"
                )
    total = sum(counts.values())
    sys.stdout.write(f"agree {counts['agree']} of {total}, documented deviations {counts['deviation']}\n")
    return 1 if counts["disagree"] else 0


if __name__ == "__main__":
    sys.exit(main())

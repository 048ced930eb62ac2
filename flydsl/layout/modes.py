"""Picking and grouping modes of tuples and layouts alike: select, take, group, append, slice, dice.

On a composed layout they act on the outer part; `slice_` folds the fixed coordinates into its
offset.
"""

from __future__ import annotations

from typing import Any

from .coords import _evaluate, crd2idx, fitted
from .errors import ModeOutOfRange, OperandType, RankMismatch
from .int_tuple import (
    IntTuple,
    as_modes,
    coord_add,
    dice_tuple,
    has_none,
    make_int_tuple,
    slice_tuple,
    to_str,
    tuple_rank,
    zip_tuple,
)
from .layout import ComposedLayout, Layout, get_mode, on_outer
from .leaf import Basis, Sym
from .memo import operation


def _lift(fn: Any, x: Any, *args: Any) -> Any:
    """Apply a function on tuples to a tuple, or to shape and stride of a layout."""
    if type(x) is Layout:
        x.flat()
        return Layout(fn(x.shape, *args), fn(x.stride, *args))
    if type(x) is ComposedLayout:
        return on_outer(lambda l: _lift(fn, l, *args), x)
    if x is None or isinstance(x, (int, tuple, Sym, Basis)):
        return fn(x, *args)
    raise OperandType(f"{type(x).__name__} has no modes that could be picked")


def get_(x: Any, mode: Any) -> Any:
    """Return the sub-tuple or sub-layout at a mode number or a path of them."""
    if not isinstance(x, (Layout, ComposedLayout, tuple)) and mode in ((), []):
        return x
    return get_mode(x, mode)


get = get_


@operation
def _select(x: Any, picked: tuple) -> Any:
    if not picked:
        raise RankMismatch("no mode selected")
    return _lift(_select_tuple, x, picked)


def _select_tuple(x: IntTuple, picked: tuple) -> IntTuple:
    if type(x) is not tuple:
        raise ModeOutOfRange(f"the leaf {to_str(x)} has no modes to select")
    for p in picked:
        if not 0 <= p < len(x):
            raise ModeOutOfRange(f"no mode {p} in rank {len(x)}")
    return x[picked[0]] if len(picked) == 1 else tuple([x[p] for p in picked])


def select(x: Any, picked: Any) -> Any:
    """Return the modes in the given order; a single one is returned itself, not as a rank-1
    tuple.
    """
    return _select(x, tuple(picked))


@operation
def take(x: Any, begin: int, end: int) -> Any:
    """Return modes begin..end-1 (end -1: the rank); a single one is returned itself."""
    return _lift(_take_tuple, x, begin, end)


def _range(x: IntTuple, begin: int, end: int) -> int:
    end = tuple_rank(x) if end == -1 else end
    if not 0 <= begin < end <= tuple_rank(x):
        raise ModeOutOfRange(f"modes {begin}..{end - 1} are not in rank {tuple_rank(x)}")
    return end


def _take_tuple(x: IntTuple, begin: int, end: int) -> IntTuple:
    if type(x) is not tuple:
        raise ModeOutOfRange(f"the leaf {to_str(x)} has no modes to take")
    end = _range(x, begin, end)
    return x[begin] if end - begin == 1 else x[begin:end]


@operation
def group(x: Any, begin: int, end: int) -> Any:
    """Return `x` with modes begin..end-1 (end -1: the rank) as one nested mode; a leaf stays a
    leaf.
    """
    return _lift(_group_tuple, x, begin, end)


def _group_tuple(x: IntTuple, begin: int, end: int) -> IntTuple:
    if type(x) is not tuple:
        return x
    end = len(x) if end == -1 else end
    if begin == end and 0 <= begin <= len(x):
        return x
    end = _range(x, begin, end)
    return x[:begin] + (x[begin:end],) + x[end:]


@operation
def _append(base: Any, elem: Any, n: int | None) -> Any:
    return _extend(base, elem, n, False)


@operation
def _prepend(base: Any, elem: Any, n: int | None) -> Any:
    return _extend(base, elem, n, True)


def _extend(base: Any, elem: Any, n: int | None, front: bool) -> Any:
    if isinstance(base, ComposedLayout):
        return on_outer(lambda l: _extend(l, elem, n, front), base)
    if isinstance(base, Layout) != isinstance(elem, Layout) or isinstance(elem, ComposedLayout):
        raise OperandType("a layout takes layouts, a tuple takes tuples")
    if n is not None and type(n) is not int:
        raise OperandType(f"the wanted rank must be an int, not {to_str(n)}")
    rank = tuple_rank(base.shape if isinstance(base, Layout) else base)
    count = 1 if n is None or n == -1 else n - rank
    if count == -1 and n == 0 and not _is_tuple(base):
        count = 0
    if count < 0:
        raise RankMismatch(f"rank {rank} is above the wanted rank {n}")
    join = _join_front if front else _join_back
    if isinstance(base, Layout):
        return Layout(join(base.shape, elem.shape, count), join(base.stride, elem.stride, count))
    return join(base, elem, count)


def _is_tuple(x: Any) -> bool:
    return type(x.shape if isinstance(x, Layout) else x) is tuple


def _join_back(x: IntTuple, elem: IntTuple, count: int) -> tuple:
    return as_modes(x) + (elem,) * count


def _join_front(x: IntTuple, elem: IntTuple, count: int) -> tuple:
    return (elem,) * count + as_modes(x)


def append(base: Any, elem: Any, n: int | None = None) -> Any:
    """Return `base` with `elem` as a further last mode; with n: repeated until the rank is n."""
    return _append(_as_operand(base), _as_operand(elem), n)


def prepend(base: Any, elem: Any, n: int | None = None) -> Any:
    """Return `base` with `elem` as a further first mode; with n: repeated until the rank is n."""
    return _prepend(_as_operand(base), _as_operand(elem), n)


def _as_operand(x: Any) -> Any:
    return x if isinstance(x, (Layout, ComposedLayout)) else make_int_tuple(x)


def _unwrap(modes: tuple, what: str) -> IntTuple:
    if not modes:
        raise RankMismatch(f"the coordinate {what}")
    return modes[0] if len(modes) == 1 else modes


@operation
def slice_(x: Any, coord: IntTuple) -> Any:
    """Return the modes where `coord` is None, collected at the outer level; a single one is
    unwrapped.

    The coordinate None keeps all. A composed layout moves the index of the fixed coordinates
    into its offset.
    Raises RankMismatch: no None in the coordinate
    """
    if type(x) is ComposedLayout:
        return _slice_composed(x, coord)
    return _lift(_slice_tuple, x, coord)


def _slice_tuple(x: IntTuple, coord: IntTuple) -> IntTuple:
    kept = _unwrap(slice_tuple(x, coord), "keeps no mode (it has no None)")
    return kept if coord is None else _fully_unwrapped(kept)


def _dice_tuple(x: IntTuple, coord: IntTuple) -> IntTuple:
    kept = _unwrap(dice_tuple(x, coord), "keeps no mode (it is all None)")
    return _fully_unwrapped(kept) if type(coord) is tuple else kept


def _fully_unwrapped(x: IntTuple) -> IntTuple:
    while type(x) is tuple and len(x) == 1:
        x = x[0]
    return x


def slice_with_offset(layout: Any, coord: IntTuple) -> tuple[Any, IntTuple]:
    """Return (the sliced layout, the index of the fixed coordinates)."""
    coord = fitted(coord, layout)
    return _lift(_slice_tuple, layout, coord), _evaluate(coord, layout)


def _slice_composed(x: ComposedLayout, coord: IntTuple) -> ComposedLayout:
    if type(x.outer) is ComposedLayout:
        return ComposedLayout(x.inner, x.offset, _slice_composed(x.outer, coord))
    kept, moved = slice_with_offset(x.outer, coord)
    return ComposedLayout(x.inner, coord_add(x.offset, moved), kept)


@operation
def dice(x: Any, coord: IntTuple) -> Any:
    """Return the modes where `coord` is not None, collected at the outer level; a single one is
    unwrapped.
    """
    if type(x) is ComposedLayout:
        raise OperandType("expected a plain layout or a tuple, got a composed layout")
    if isinstance(coord, (Layout, ComposedLayout)):
        raise OperandType(f"a coordinate is a tuple, not a layout `{coord}`")
    return _lift(_dice_tuple, x, coord)


def zip_(a: Any, b: Any) -> Any:
    """Return the modes of two tuples or layouts as pairs."""
    if isinstance(a, Layout) and isinstance(b, Layout):
        return Layout(zip_tuple(a.shape, b.shape), zip_tuple(a.stride, b.stride))
    if isinstance(a, Layout) or isinstance(b, Layout):
        raise OperandType("zip takes two layouts or two tuples", "zip", (a, b))
    return zip_tuple(a, b)


def call_layout(layout: Any, coord: tuple) -> Any:
    """Return layout(*coord): an index, or the sub-layout where the coordinate is None."""
    if has_none(coord):
        return slice_(layout, coord)
    if type(layout.shape) is not tuple and len(coord) == 1:
        coord = coord[0]
    return crd2idx(coord, layout)

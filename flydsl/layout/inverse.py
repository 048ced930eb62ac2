"""complement, right_inverse, left_inverse: what fills the gaps of a layout, and what undoes it.

Laws  (a, complement(a, n)) reaches every index below n exactly once (above n when n is no
multiple);
      l(right_inverse(l)(i)) == i; left_inverse(l)(l(i)) == i
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from . import leaf
from .compose import layout_of, merge_leaves
from .coords import crd2idx
from .errors import BasisMismatch, NotDivisible, NotInjective, NotStatic, OperandType
from .int_tuple import to_str
from .layout import ComposedLayout, Layout, expect_layout, on_outer
from .leaf import Basis
from .measure import cosize
from .memo import operation

ENUMERATE = 4096  # ragged layouts up to this size are decided by trying every element


@operation
def _complement(layout: Any, bound: Any) -> Any:
    return gaps(layout, bound, exact=True)


def gaps(layout: Any, bound: Any, exact: bool) -> Any:
    """Return the layout of the gaps below `bound`; unless `exact`, a ragged end of a gap stays
    unused.
    """
    if type(layout) is ComposedLayout:
        return on_outer(gaps, layout, bound, exact)
    expect_layout(layout)
    if type(bound) is tuple or bound is not None and type(bound) not in (int, leaf.Sym):
        raise OperandType(f"the bound must be one integer, not {to_str(bound)}")
    shapes, strides = gap_leaves(layout, cosize(layout) if bound is None else bound, exact)
    return layout_of(shapes, strides)


def gap_leaves(layout: Layout, bound: Any, exact: bool) -> tuple[list, list]:
    """Return the leaves of `gaps`."""
    modes = _positive_modes(layout)
    if not modes:
        return [bound], [1]
    shapes, strides, last = [], [], 1
    for s, d in modes:
        if type(last) is int and type(d) is int and d % last and _leaves_hole(d, last, bound, exact):
            raise NotInjective(f"stride {d} is no multiple of {last}, where the modes below it end")
        static = type(d) is type(last) is int
        shapes.append(d // last if static else leaf.div(d, last))
        strides.append(last)
        last = s * d if static and type(s) is int else leaf.mul(s, d)
    shapes.append(leaf.ceil_div(bound, last))
    strides.append(last)
    return merge_leaves(shapes, strides)


def _leaves_hole(stride: int, end: int, bound: Any, exact: bool) -> bool:
    """Return whether no count of copies of what ends at `end` fills the indices below `stride`
    (and below `bound`) once.
    """
    return stride < end or exact and (type(bound) is not int or stride // end * end < bound)


def _positive_modes(layout: Layout) -> list[tuple]:
    """Return (extent, stride) of the coalesced modes which take space, by ascending stride."""
    shapes, strides = layout.flat()
    if 0 in strides:
        kept = [(s, d) for s, d in zip(shapes, strides) if not leaf.is_value(d, 0)]
        shapes, strides = [s for s, _ in kept], [d for _, d in kept]
    shapes, strides = merge_leaves(shapes, strides)
    for s, d in zip(shapes, strides):
        if type(s) is type(d) is int and s > 0 and d >= 0:
            continue
        if type(d) is Basis:
            raise BasisMismatch(f"stride {d} is a coordinate, which has no complement")
        if type(d) is not int and len(shapes) > 1:
            raise NotStatic(f"stride {d} is known only at run time, so the modes cannot be ordered")
        if type(d) is int and d < 0 or type(s) is int and s <= 0:
            raise NotInjective(f"mode {s}:{d} runs below index 0 or is empty")
    modes = list(zip(shapes, strides))
    if len(modes) > 1:
        modes.sort(key=itemgetter(1))
    return modes


def complement(layout: Any, codomain: Any = None) -> Any:
    """Return the layout of the gaps: together with `layout` it reaches each index below
    `codomain` once.

    Default codomain is cosize(layout). Stride-0 modes count as extent 1.
    Raises NotInjective: modes overlap or interleave; NotStatic: a stride is dynamic
    """
    return _complement(layout, codomain)


def _with_prefix(layout: Layout) -> list[tuple]:
    """Return (extent, stride, linear step in the domain) of the coalesced leaves, by ascending
    static stride.
    """
    shapes, strides = merge_leaves(*layout.flat())
    out, step = [], 1
    for s, d in zip(shapes, strides):
        out.append((s, d, step))
        step = step * s if type(step) is type(s) is int else leaf.mul(step, s)
    return out


@operation
def right_inverse(layout: Any) -> Any:
    """Return the longest layout r with layout(r(i)) == i; it stops at the first gap.

    With basis strides, i is the coordinate which the first unit basis leaf names.
    """
    if type(layout) is ComposedLayout:
        return on_outer(right_inverse, layout)
    expect_layout(layout)
    current, path = 1, None
    shapes, strides = [], []
    for s, d, step in sorted(_with_prefix(layout), key=_static_stride):
        value = d.value if type(d) is Basis else d
        if type(value) is not int or value != current or type(s) is not int:
            continue
        if path not in (None, _path(d)):
            continue
        path = _path(d)
        shapes.append(s)
        strides.append(step)
        current *= s
    return layout_of(*merge_leaves(tuple(shapes), tuple(strides)))


def _path(d: Any) -> tuple:
    return d.modes if type(d) is Basis else ()


def _static_stride(mode: tuple) -> int:
    d = mode[1].value if type(mode[1]) is Basis else mode[1]
    return d if type(d) is int else 1 << 62


@operation
def left_inverse(layout: Any) -> Any:
    """Return a layout l with l(layout(i)) == i; indices which layout never takes map anywhere.

    Raises NotDivisible: the modes overlap or interleave, so no layout undoes them
    """
    if type(layout) is ComposedLayout:
        return on_outer(left_inverse, layout)
    expect_layout(layout)
    modes = _with_prefix(layout)
    if any(type(d) is Basis for _, d, _ in modes):
        raise BasisMismatch("coordinate strides have no left inverse")
    modes = sorted([m for m in modes if type(m[1]) is int and m[1] != 0], key=itemgetter(1))
    ragged = None
    shapes, strides, current, reach, last_step = [], [], 1, 1, 0
    for s, d, step in modes:
        if d < 0:
            raise NotInjective(f"stride {d} runs below index 0")
        if d % current or type(reach) is int and d < reach:
            ragged = f"stride {d} is no multiple of {reach}, where the modes below it end"
        shapes.append(d // current)
        strides.append(last_step)
        current, last_step, reach = d, step, leaf.mul(s, d)
    if modes:
        shapes.append(modes[-1][0])
        strides.append(last_step)
    result = layout_of(*merge_leaves(tuple(shapes), tuple(strides)))
    if ragged and not _undoes(result, modes):
        raise NotDivisible(ragged)
    return result


def _undoes(inverse: Layout, modes: list[tuple]) -> bool:
    """Return by enumeration whether `inverse` maps each index of the modes back to its coordinate.

    Only static modes of at most ENUMERATE elements are tried: beyond, the answer is no.
    """
    if not all(type(x) is int for mode in modes for x in mode):
        return False
    pairs = [(0, 0)]
    for s, d, step in modes:
        if len(pairs) * s > ENUMERATE:
            return False
        pairs = [(i + c * d, n + c * step) for i, n in pairs for c in range(s)]
    return all(crd2idx(i, inverse) == n for i, n in pairs)

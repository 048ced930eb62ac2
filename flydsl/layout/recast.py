"""recast_layout: the layout of the same memory seen as elements of another width.

Law   the bits of the memory reached are the same; there and back gives the same function
"""

from __future__ import annotations

from math import gcd
from typing import Any

from . import leaf
from .errors import BasisMismatch, NotDivisible, OperandType
from .int_tuple import map_leaves
from .layout import ComposedLayout, Layout, expect_layout
from .leaf import Basis, Sym
from .memo import operation
from .swizzle import Swizzle


def _bits(x: Any) -> int:
    width = x if isinstance(x, int) else getattr(x, "width", None)
    if not isinstance(width, int) or width <= 0:
        raise OperandType(f"{x} is no element width: bits above 0 or a type with a width", "recast_layout", (x,))
    return width


def recast_layout(layout: Any, old_bits: Any, new_bits: Any) -> Any:
    """Return the layout in elements of `new_bits` of memory laid out in elements of `old_bits`.

    Widths are bits or types with a `width`. A widening by k needs each stride to divide or be
    divided by k.
    Raises NotDivisible: a stride, offset or swizzle base cuts through a wide element
    """
    return _recast_layout(layout, _bits(old_bits), _bits(new_bits))


@operation
def _recast_layout(layout: Any, old_bits: int, new_bits: int) -> Any:
    g = gcd(old_bits, new_bits)
    up, down = new_bits // g, old_bits // g
    if type(layout) is ComposedLayout:
        return _recast_composed(layout, up, down)
    expect_layout(layout)
    if up > 1:
        layout = _upcast(layout, up)
    return _downcast(layout, down) if down > 1 else layout


def _upcast(layout: Layout, k: int) -> Layout:
    pairs = [_widen(s, d, k) for s, d in zip(*layout.flat())]
    shapes, strides = iter([p[0] for p in pairs]), iter([p[1] for p in pairs])
    return Layout(
        map_leaves(lambda _: next(shapes), layout.shape),
        map_leaves(lambda _: next(strides), layout.stride),
    )


def _widen(s: Any, d: Any, k: int) -> tuple[Any, Any]:
    """Return extent and stride of one leaf in elements k times as wide."""
    if type(d) is Sym:
        if d.div % k:
            raise NotDivisible(f"stride {d} is not known to be a multiple of {k}")
        return s, leaf.div(d, k)
    if type(d) is Basis:
        raise BasisMismatch(f"the coordinate stride {d} has no width")
    if d == 0:
        return s, 0
    if d % k and k % d:
        raise NotDivisible(f"neither of stride {d} and the widening {k} divides the other")
    run = -(-k // abs(d))
    return leaf.ceil_div(s, run), -(-abs(d) // k) * (1 if d > 0 else -1)


def _downcast(layout: Layout, k: int) -> Layout:
    """Multiply the extent of the contiguous leaf, and every other stride, by k."""
    shapes, strides = layout.flat()
    run = _contiguous(shapes, strides)
    new_shapes = iter([leaf.mul(s, k) if i == run else s for i, s in enumerate(shapes)])
    new_strides = iter([d if i == run else leaf.mul(d, k) for i, d in enumerate(strides)])
    return Layout(
        map_leaves(lambda _: next(new_shapes), layout.shape),
        map_leaves(lambda _: next(new_strides), layout.stride),
    )


def _contiguous(shapes: tuple, strides: tuple) -> int | None:
    """Return the number of the leaf which runs through neighbouring elements: stride 1, extent
    above 1 if any has.
    """
    units = [i for i, d in enumerate(strides) if leaf.is_value(d, 1)]
    long = [i for i in units if not leaf.is_value(shapes[i], 1)]
    return (long or units or [None])[0]


def _recast_composed(layout: ComposedLayout, up: int, down: int) -> ComposedLayout:
    outer = _recast_layout(layout.outer, down, up)
    return ComposedLayout(
        _recast_inner(layout.inner, up, down),
        map_leaves(lambda o: _scale_offset(o, up, down), layout.offset),
        outer,
    )


def _recast_inner(inner: Any, up: int, down: int) -> Any:
    if isinstance(inner, (Layout, ComposedLayout)):
        return _recast_layout(inner, down, up)
    if up == down:
        return inner
    if type(inner) is not Swizzle:
        raise OperandType(f"{inner} acts on coordinates, which have no width")
    if (up & (up - 1)) or (down & (down - 1)):
        raise NotDivisible(f"a swizzle moves whole powers of two, not {down}/{up}")
    base = inner.base - up.bit_length() + down.bit_length()
    if base < 0:
        raise NotDivisible(f"{inner} moves pieces smaller than the wide element")
    return Swizzle(inner.bits, base, inner.shift)


def _scale_offset(offset: Any, up: int, down: int) -> Any:
    offset = leaf.mul(offset, down)
    if up == 1:
        return offset
    known = offset if type(offset) is int else offset.div
    if known % up:
        raise NotDivisible(f"offset {offset} is not known to be a multiple of {up}")
    return leaf.div(offset, up)

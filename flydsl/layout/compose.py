"""coalesce and composition: simplify a layout, and put one layout after another.

Law   coalesce(l)(i) == l(i); composition(a, b)(c) == a(b(c)) for every coordinate of b
"""

from __future__ import annotations

from typing import Any

from . import leaf
from .errors import BasisMismatch, NotDivisible, OperandType
from .int_tuple import IntTuple, map_leaves, product
from .layout import ComposedLayout, Layout, Tile, expect_layout, from_modes, layout_modes, on_outer
from .leaf import Basis, Sym
from .memo import operation

ENUMERATE = 4096  # ragged compositions up to this size are decided by trying every element


def merge_leaves(shapes: tuple, strides: tuple, keep_last: bool = False) -> tuple[list, list]:
    """Drop extents 1 and merge neighbours with shape_i * stride_i == stride_{i+1} (static
    numbers only).

    With `keep_last` the last leaf stays even with extent 1: composition extends it without end.
    """
    out_s: list = []
    out_d: list = []
    for i in range(len(shapes) - 1, -1, -1):
        s, d = shapes[i], strides[i]
        if type(s) is int:
            if s == 1 and (out_s or not keep_last):
                continue
            if out_s and type(out_s[-1]) is int:
                after = out_d[-1]
                if s * d == after if type(d) is int and type(after) is int else _follows(s, d, after):
                    out_s[-1] *= s
                    out_d[-1] = d
                    continue
        out_s.append(s)
        out_d.append(d)
    out_s.reverse()
    out_d.reverse()
    return out_s, out_d


def _follows(s: int, d: Any, following: Any) -> bool:
    """Return whether a leaf s:d with a basis stride runs on into one of stride `following`."""
    return (
        type(d) is Basis
        and type(following) is Basis
        and d.modes == following.modes
        and type(d.value) is int
        and type(following.value) is int
        and s * d.value == following.value
    )


def layout_of(shapes: list, strides: list) -> Layout:
    """Return the flat layout of these leaves: none is 1:0, a single one is a leaf."""
    return Layout(*leaves_pair(shapes, strides))


def leaves_pair(shapes: list, strides: list) -> tuple[IntTuple, IntTuple]:
    """Return shape and stride of these leaves: none is 1:0, a single one is a leaf."""
    if len(shapes) == 1:
        return shapes[0], strides[0]
    return (tuple(shapes), tuple(strides)) if shapes else (1, 0)


@operation
def _coalesce(layout: Any, pattern: IntTuple) -> Any:
    if type(layout) is ComposedLayout:
        return on_outer(_coalesce, layout, pattern)
    expect_layout(layout)
    if type(pattern) in (Layout, ComposedLayout, Tile):
        raise OperandType(f"the pattern is an integer tuple, not {type(pattern).__name__} `{pattern}`")
    if type(pattern) is not tuple:
        shapes, strides = layout.flat()
        if len(shapes) == 1 and not leaf.is_value(shapes[0], 1):
            return layout
        return layout_of(*merge_leaves(shapes, strides))
    if type(layout.shape) is not tuple:
        layout = Layout((layout.shape,), (layout.stride,))
    modes = layout_modes(layout)
    done = [_coalesce(m, p) for m, p in zip(modes, pattern)]
    return from_modes(done + modes[len(pattern) :])


def coalesce(layout: Any, pattern: IntTuple = None) -> Any:
    """Return the layout with as few leaves as possible and the same function of the linear
    coordinate.

    A layout of a single leaf is returned as it is, even as a rank-1 tuple. With a pattern: the
    modes below
    each pattern leaf are coalesced; modes beyond the pattern stay; a leaf which meets a pattern
    tuple counts as a rank-1 mode.
    """
    return _coalesce(layout, pattern)


@operation
def composition(a: Any, b: Any) -> Any:
    """Return the layout c -> a(b(c)), nested like b; b may be a tile, which acts mode by mode.

    Missing and None modes of a tile keep the mode of a. A composed a changes in its outer part.
    The last mode of a is taken as open-ended, so b may reach beyond a.
    Raises NotDivisible: an extent or stride of b cuts through a mode of a
    """
    if type(a) is ComposedLayout:
        return on_outer(composition, a, b)
    expect_layout(a)
    if type(b) is Tile:
        return _by_tile(a, b)
    if type(b) is ComposedLayout:
        raise OperandType("the inner operand must be a plain layout or a tile, not a composed layout")
    expect_layout(b)
    merged = open_ended(a)
    pair = compose_pair(merged, b.shape, b.stride)
    if len(merged[0]) > 1:
        refuse_carries(merged, (b.flat(),), pair)
    return Layout(*pair)


def _by_tile(a: Layout, tile: Tile) -> Layout:
    modes = layout_modes(a)
    entries = tile.modes + (None,) * (len(modes) - len(tile.modes))
    done = [_compose_mode(m, t) for m, t in zip(modes, entries)]
    return done[0] if len(done) == 1 else from_modes(done)


def _compose_mode(mode: Layout, entry: Any) -> Layout:
    if entry is None:
        return Layout(*canonical_pair(mode.shape, mode.stride))
    if type(entry) is Tile:
        return composition(mode, entry)
    inner = entry if type(entry) is Layout else Layout(entry, 1)
    return Layout(*compose_pair(open_ended(mode), inner.shape, inner.stride))


def open_ended(a: Layout) -> tuple[list, list]:
    """Return the merged leaves of a, ready to be walked through: the last one has no end."""
    if type(a.shape) is not tuple:
        return [a.shape], [a.stride]
    return merge_leaves(*a.flat(), keep_last=True)


def compose_pair(merged: tuple[list, list], shape: IntTuple, stride: IntTuple) -> tuple[IntTuple, IntTuple]:
    """Return shape and stride of a after shape:stride, where `merged` is open_ended(a)."""
    if type(shape) is not tuple:
        return compose_leaf(merged, shape, stride)
    if len(shape) == 1:
        return compose_pair(merged, shape[0], stride[0])
    out_s, out_d = [], []
    for s, d in zip(shape, stride):
        s, d = compose_pair(merged, s, d)
        out_s.append(s)
        out_d.append(d)
    return tuple(out_s), tuple(out_d)


def compose_leaf(merged: tuple[list, list], shape: Any, stride: Any) -> tuple[IntTuple, IntTuple]:
    """Return shape and stride of merged leaves after one leaf shape:stride."""
    if type(stride) is Basis:
        raise BasisMismatch(f"the inner layout steps by the coordinate {stride}, not by an index")
    if type(shape) is int and shape == 1:
        return 1, 0
    if type(stride) is int and stride == 0:
        return shape, 0
    shapes, strides = merged
    if len(shapes) == 1:
        return shape, leaf.mul(stride, strides[0])
    out_s, out_d = _walk(shapes, strides, shape, stride)
    return (out_s[0], out_d[0]) if len(out_s) == 1 else (tuple(out_s), tuple(out_d))


def refuse_carries(merged: tuple[list, list], parts: Any, result: tuple) -> None:
    """Refuse an inner layout, given as (shapes, strides) of its parts, whose leaves together
    overflow an extent of a; `result` is the (shape, stride) that was found.

    Mode by mode, each leaf of the inner layout is right by itself; their sum is right unless it
    carries
    from one leaf of a into the next. Small layouts are then decided by trying every element.
    """
    reach = 0
    for part in parts:
        for s, d in zip(*part):
            if type(s) is not int or type(d) is not int:
                return
            reach += (s - 1) * d
    shapes, strides = merged
    if type(shapes[0]) is int and reach < shapes[0]:
        return
    leaves = [pair for part in parts for pair in zip(*part)]
    moving = [(s, d) for s, d in leaves if s != 1 and d != 0]
    if len(moving) < 2:
        return
    filled = [0] * len(shapes)
    for s, d in moving:
        _fill(filled, shapes, s, d)
    for s, top in zip(shapes[:-1], filled):
        if type(s) is int and top >= s and not _same_values(merged, leaves, Layout(*result)):
            raise NotDivisible(f"the modes together reach {top} in an extent of {s} and carry")


def _fill(filled: list, shapes: list, rest: int, step: int) -> None:
    """Add the largest coordinate which rest:step reaches in each leaf of `shapes`."""
    for n, s in enumerate(shapes[:-1]):
        if type(s) is not int:
            return
        if step % s == 0:
            step //= s
            continue
        part = min(-(-s // step), rest)
        filled[n] += (part - 1) * step
        rest, step = rest // part, 1
        if rest == 1:
            return


def _same_values(merged: tuple[list, list], inner: list, result: Layout) -> bool:
    """Return whether the result has the values of a after the inner leaves, within the domain
    of a.
    """
    extent = product(tuple(merged[0]))
    if type(extent) is not int or not result.is_static:
        return False
    points = points_within(inner, extent, ENUMERATE)
    out_s, out_d = result.flat()
    return points is not None and all(_at(i, out_s, out_d) == _at(index, *merged) for i, index in points)


def points_within(inner: list[tuple], extent: int, most: int) -> list[tuple[int, int]] | None:
    """Return (linear coordinate, index) of the inner leaves wherever the index is below `extent`.

    None when there are more than `most` candidates.
    """
    points, step = [(0, 0)], 1
    for s, d in inner:
        reach = min(s, -(-extent // d)) if d > 0 else s
        if len(points) * reach > most:
            return None
        points = [(i + c * step, index + c * d) for c in range(reach) for i, index in points if index + c * d < extent]
        step *= s
    return points


def _walk(shapes: list, strides: list, rest: Any, step: Any) -> tuple[list, list]:
    """Return the leaves of a after rest:step. Each leaf of a but the last gives what fits into it.

    `rest` is the extent still to cover, `step` the stride in units of the current leaf.
    """
    if type(step) is int and step < 0:
        raise NotDivisible(f"stride {step} runs below index 0")
    asked = (rest, step)
    ragged = None
    out_s: list = []
    out_d: list = []
    for n in range(len(shapes) - 1):
        s, d = shapes[n], strides[n]
        if type(s) is int and s <= 0:
            raise NotDivisible(f"the mode {s}:{d} is empty")
        if type(s) is int and type(step) is int:
            if step % s == 0:
                step //= s
                continue
            if step > s:
                raise NotDivisible(f"stride {step} is neither below nor a multiple of extent {s}")
            fits, next_step = -(-s // step), 1
        else:
            fits, next_step = leaf.ceil_div(s, step), leaf.ceil_div(step, s)
        if type(fits) is int and fits == 1:
            step = next_step
            continue
        if type(rest) is int and rest == 1:
            break
        part, left = (rest, 1) if type(rest) is type(fits) is int and 0 < rest <= fits else _share(fits, rest, s)
        out_s.append(part)
        out_d.append(step * d if type(step) is type(d) is int else leaf.mul(step, d))
        if type(left) is int and left > 1 and type(s) is int and type(step) is int and s % step:
            ragged = f"extent {s} is not a multiple of stride {step}, which runs on beyond it"
        rest, step = left, next_step
    if not out_s or not (type(rest) is int and rest == 1):
        out_s.append(rest)
        out_d.append(leaf.mul(step, strides[-1]))
    if ragged and not _walks(out_s, out_d, shapes, strides, *asked):
        raise NotDivisible(ragged)
    return out_s, out_d


def _share(fits: Any, rest: Any, s: Any) -> tuple[Any, Any]:
    """Return (the extent that lies in a leaf of extent s, the extent left over)."""
    part = leaf.minimum(fits, rest)
    if type(rest) is not int or type(part) is not int:
        return part, leaf.ceil_div(rest, part)  # nobody has proved that it divides: cover more rather than less
    if part <= 0 or rest % part:
        raise NotDivisible(f"extent {rest} is not a multiple of the {part} steps which fit into extent {s}")
    return part, rest // part


def _walks(out_s: list, out_d: list, shapes: list, strides: list, rest: Any, step: Any) -> bool:
    """Return by enumeration whether the result has the values of shapes:strides at 0, step, 2
    step, ...

    Only indices in the domain count. Only static extents up to ENUMERATE are tried: beyond, no.
    """
    extent = product(tuple(shapes))
    if type(rest) is not int or type(extent) is not int:
        return False
    if any(type(d) is Sym for d in strides):
        generic = [d if type(d) is not Sym else 1000003 ** (n + 1) for n, d in enumerate(strides)]
        try:
            _walk(shapes, generic, rest, step)
        except NotDivisible:
            return False
        return True
    points = points_within([(rest, step)], extent, ENUMERATE)
    return points is not None and all(_at(i, out_s, out_d) == _at(index, shapes, strides) for i, index in points)


def _at(index: int, shapes: list, strides: list) -> dict:
    """Return the value at a linear coordinate, as {basis path: number}; the last leaf is
    open-ended.
    """
    value: dict = {}
    for n, (s, d) in enumerate(zip(shapes, strides)):
        c = index if n == len(shapes) - 1 else index % s
        index //= s
        path, number = (d.modes, d.value) if type(d) is Basis else ((), d)
        value[path] = value.get(path, 0) + c * number
    return {path: v for path, v in value.items() if v}


def canonical_pair(shape: IntTuple, stride: IntTuple) -> tuple[IntTuple, IntTuple]:
    """Return shape and stride with rank-1 tuples unwrapped and extents 1 at stride 0."""
    if type(shape) is tuple:
        if len(shape) == 1:
            return canonical_pair(shape[0], stride[0])
        out_s, out_d = [], []
        for s, d in zip(shape, stride):
            s, d = canonical_pair(s, d)
            out_s.append(s)
            out_d.append(d)
        return tuple(out_s), tuple(out_d)
    return (1, 0) if type(shape) is int and shape == 1 else (shape, stride)


def scaled(layout: Layout, factor: Any) -> Layout:
    """Return the layout with every stride multiplied."""
    return Layout(layout.shape, map_leaves(lambda d: leaf.mul(d, factor), layout.stride))

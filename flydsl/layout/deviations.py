"""The table of documented deviations: where the reference's result breaks the law of its operation.

Each row names operations, the reason, and an example. `find_deviation` accepts a differing
result only with
an enumerated counterexample against the reference's result, and only when ours is a refusal or
passes the
same enumeration. Tests read the table and recompute every example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from flydsl.utils.record import record

from . import leaf
from .compose import canonical_pair, composition, points_within
from .coords import all_indices, coordinate_at, idx2crd
from .divide import _as_divisor, flat_divide, logical_divide, tiled_divide, zipped_divide
from .errors import (
    BasisMismatch,
    DivisionByZero,
    LayoutError,
    NotDivisible,
    NotInjective,
    OperandType,
    ProfileMismatch,
)
from .int_tuple import (
    as_modes,
    ceil_div,
    congruent,
    elem_less,
    equal,
    int_tuple_product_each,
    leaves,
    map_leaves,
    product,
    shape_div,
    to_str,
    tuple_is_static,
    tuple_rank,
)
from .inverse import complement, gaps, left_inverse
from .layout import ComposedLayout, Layout, Tile, from_modes, layout_modes, make_ordered_layout
from .leaf import Sym
from .measure import cosize, size
from .modes import append
from .parse import parse
from .product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tiled_product,
    zipped_product,
)

LIMIT = 1 << 16
_DIVIDES = {
    "logical_divide": logical_divide,
    "zipped_divide": zipped_divide,
    "tiled_divide": tiled_divide,
    "flat_divide": flat_divide,
}
_PRODUCTS = {
    "logical_product": logical_product,
    "zipped_product": zipped_product,
    "tiled_product": tiled_product,
    "flat_product": flat_product,
    "blocked_product": blocked_product,
    "raked_product": raked_product,
}
_COMPARISONS = {"elem_less": elem_less, "equal": equal}
_OPERATIONS = {
    "complement": complement,
    "left_inverse": left_inverse,
    "composition": composition,
    **_DIVIDES,
    **_PRODUCTS,
}


@record
class Deviation:
    """One row: `broken(operands, result, op)` returns the counterexample of a result as text,
    or None.
    """

    name: str
    ops: tuple[str, ...]
    reason: str
    broken: Callable
    example: tuple[str, tuple[str, ...], str]


def _outer(x: Any) -> Any:
    while isinstance(x, ComposedLayout):
        x = x.outer
    return x


def _enumerable(*layouts: Any) -> bool:
    return all(isinstance(x, Layout) and x.is_static and abs(product(x.shape)) <= LIMIT for x in layouts)


def _trimmed(x: Any) -> Any:
    """Return a coordinate without zeros at the end of its modes: a mode which no stride names is 0."""
    if type(x) is not tuple:
        return x
    modes = [_trimmed(i) for i in x]
    while modes and modes[-1] in (0, ()):
        modes.pop()
    return tuple(modes)


def _first_difference(got: list, wanted: list) -> str | None:
    pairs = ((g, w) for g, w in zip(got, wanted) if _trimmed(g) != _trimmed(w))
    return next((f"it gives {to_str(g)} where the law asks for {to_str(w)}" for g, w in pairs), None)


def broken_composition(operands: list, result: Any, op: str) -> str | None:
    """composition(a, b)(c) == a(b(c)), by mode for a tile; dynamic leaves of a may be any
    number.
    """
    a, b, r = _outer(operands[0]), operands[1], _outer(result)
    cases = [(a, b, r)]
    if isinstance(b, Tile):
        triples = zip(layout_modes(a), b.modes, as_parts(r, len(layout_modes(a))))
        cases = [
            (m, t if isinstance(t, Layout) else Layout(t, 1), p)
            for m, t, p in triples
            if t is not None and not isinstance(t, Tile)
        ]
    for one, inner, part in cases:
        found = _broken_leaves(_with_numbers(one, 3), inner, part.shape, part.stride)
        if found:
            return found
    return None


def broken_basis(operands: list, result: Any, op: str) -> str | None:
    """As `broken_composition`, for an inner layout with basis strides."""
    inner = operands[1]
    if isinstance(inner, Tile) or not any(isinstance(d, leaf.Basis) for d in leaves(inner.stride)):
        return None
    try:
        return broken_composition(operands[:1] + [_with_numbers(inner, 3)], _with_numbers(result, 3), op)
    except ProfileMismatch as error:
        return f"the outer layout does not take such coordinates: {error.condition}"


def _broken_leaves(a: Layout, inner: Layout, shape: Any, stride: Any) -> str | None:
    """Compare shape:stride with a after inner: as a whole, or one leaf of inner after the other."""
    if not (inner.is_static and tuple_is_static(shape) and tuple_is_static(stride)):
        return None
    found = _differs(a, inner, Layout(shape, stride))
    if found:
        return found
    for s, d, part in _leaf_parts(inner.shape, inner.stride, shape, stride):
        found = _differs(a, Layout(s, d), part) if s <= LIMIT else None
        if found:
            return f"{part} for the leaf {s}:{to_str(d)}: {found}"
    return None


def _differs(a: Layout, inner: Layout, part: Layout) -> str | None:
    """Compare part(i) with a(inner(i)) wherever inner stays in the domain of a."""
    if product(part.shape) != product(inner.shape):
        return f"it has {product(part.shape)} elements, the law asks for {product(inner.shape)}"
    if any(isinstance(d, leaf.Basis) for d in leaves(inner.stride)):
        points = [(i, coordinate_at(i, inner)) for i in range(product(inner.shape))]
    else:
        points = points_within(list(zip(*inner.flat())), product(a.shape), 4 * LIMIT) or []
    for i, index in points:
        got, wanted = coordinate_at(i, part), coordinate_at(index, a)
        if _trimmed(got) != _trimmed(wanted):
            return f"at {i} it gives {to_str(got)}, the law asks for {to_str(wanted)}"
    return None


def _leaf_parts(shape: Any, stride: Any, part_shape: Any, part_stride: Any) -> Iterator[tuple]:
    """Yield (extent, stride, what became of it) for each leaf; rank-1 tuples have been
    unwrapped.
    """
    if type(shape) is not tuple:
        yield shape, stride, Layout(part_shape, part_stride)
    elif len(shape) == 1:
        yield from _leaf_parts(shape[0], stride[0], part_shape, part_stride)
    else:
        for quad in zip(shape, stride, part_shape, part_stride):
            yield from _leaf_parts(*quad)


def as_parts(layout: Layout, count: int) -> list[Layout]:
    """Return the top-level modes, or the layout itself where a single mode was unwrapped."""
    return [layout] if count == 1 else layout_modes(layout)


def broken_complement(operands: list, result: Any, op: str) -> str | None:
    """(a, complement) reaches every index below the bound exactly once."""
    a, r = _outer(operands[0]), _outer(result)
    if any(type(s) is int and s <= 0 for s in leaves(r.shape)):
        return "it has no elements"
    bound = operands[1] if len(operands) > 1 else cosize(a)
    if type(bound) is not int:
        return None
    if not _enumerable(a, r):
        return _missed_index(a, r, bound)
    if product(r.shape) <= 0 < bound or bound <= 0:
        return f"it has {product(r.shape)} elements"
    ones = [(s, d) for s, d in zip(*a.flat()) if d != 0] or [(1, 0)]
    filtered = Layout(tuple(s for s, _ in ones), tuple(d for _, d in ones))
    return _not_a_bijection(filtered, r, bound)


def _missed_index(a: Layout, rest: Layout, bound: int) -> str | None:
    """As `_not_a_bijection` for layouts too large to enumerate: tries the indices around every
    stride and every end of a leaf.
    """
    if not (isinstance(a, Layout) and isinstance(rest, Layout) and a.is_static and rest.is_static):
        return None
    pairs = [p for side in (a, rest) for p in zip(*side.flat()) if p[1] != 0 and p[0] != 1]
    if any(s < 1 or d < 0 for s, d in pairs):
        return None
    pairs.sort(key=lambda p: p[1])
    marks = {d for _, d in pairs} | {s * d for s, d in pairs}
    marks |= {(e // d) * d for e in marks for _, d in pairs}
    for i in sorted({m + k for m in marks for k in (-1, 0, 1)}):
        ways = _ways(i, pairs) if i >= 0 else 1
        if ways > 1 or ways == 0 and i < bound:
            return f"index {i} is reached {ways} times"
    return None


def _ways(index: int, pairs: list[tuple[int, int]]) -> int:
    """Return in how many ways (at most 2) index is a sum of c * d with 0 <= c < s for the (s, d)
    of `pairs`, which ascend by d.
    """
    if not pairs:
        return int(index == 0)
    s, d = pairs[-1]
    below = sum((n - 1) * step for n, step in pairs[:-1])
    found = 0
    for c in range(max(-((below - index) // d), 0), min(s - 1, index // d) + 1):
        found += _ways(index - c * d, pairs[:-1])
        if found > 1:
            return 2
    return found


def _some(layout: Layout) -> list[int]:
    """Return every linear coordinate of a layout, or of a large one the first ones and those where
    leaves end.
    """
    count = product(layout.shape)
    if count <= LIMIT:
        return list(range(count))
    picked, step = set(range(4096)), 1
    for s in leaves(layout.shape):
        ends = {step, (s // 2) * step, (s - 1) * step}
        picked |= ends | {i + j for i in ends for j in sorted(picked)[-64:]}
        step *= s
    return sorted(i for i in picked if i < count)


def _not_a_bijection(a: Layout, rest: Layout, bound: int) -> str | None:
    reached = Counter(i + j for i in all_indices(a) for j in all_indices(rest))
    for i in range(bound):
        if reached[i] != 1:
            return f"index {i} is reached {reached[i]} times"
    twice = next((i for i, n in reached.items() if n > 1), None)
    return None if twice is None else f"index {twice} is reached {reached[twice]} times"


def broken_left_inverse(operands: list, result: Any, op: str) -> str | None:
    """left_inverse(l)(l(i)) == i."""
    a, r = _outer(operands[0]), _outer(result)
    if not a.is_static:
        return None
    if product(r.shape) <= 0:
        return f"it has {product(r.shape)} elements"
    for i in _some(a):
        index = coordinate_at(i, a)
        back = coordinate_at(index, r)
        if back != i:
            return f"l({i}) = {index} maps back to {back}"
    return None


def broken_right_inverse(operands: list, result: Any, op: str) -> str | None:
    """l(right_inverse(l)(i)) is i, along one coordinate where l has basis strides."""
    a, r = _outer(operands[0]), _outer(result)
    if not _enumerable(a, r):
        return None
    for i in range(product(r.shape)):
        value = coordinate_at(coordinate_at(i, r), a)
        if [v for v in leaves(value) if v] != [i][: i > 0]:
            return f"r({i}) is taken to {to_str(value)}"
    return None


def _divide_parts(op: str, layout: Layout, divisor: Any, r: Layout) -> list[tuple]:
    """Return (mode, divisor of the mode, tile part, rest part) of a divided layout."""
    modes = layout_modes(r)
    if not isinstance(divisor, Tile):
        n = len(as_modes(divisor.shape)) if op.startswith("flat") else 1
        tile = modes[0] if n == 1 else from_modes(modes[:n])
        rest = modes[n] if len(modes) == n + 1 else from_modes(modes[n:])
        return [(layout, divisor, tile, rest)]
    n = len(divisor.modes)
    if op.startswith("logical"):
        pairs = [layout_modes(m) if len(as_modes(m.shape)) == 2 else None for m in modes[:n]]
    elif op.startswith("flat"):
        pairs = list(zip(modes[:n], modes[n : 2 * n]))
    elif op.startswith("tiled"):
        pairs = list(zip(layout_modes(modes[0]), modes[1 : n + 1]))
    else:
        pairs = list(zip(layout_modes(modes[0]), layout_modes(modes[1])))
    out = []
    for mode, entry, pair in zip(layout_modes(layout), divisor.modes, pairs):
        if entry is not None and not isinstance(entry, Tile) and pair is not None:
            out.append((mode, entry if isinstance(entry, Layout) else Layout(entry, 1), *pair))
    return out


def broken_divide(operands: list, result: Any, op: str) -> str | None:
    """Each mode splits into tile and rest as `broken_divide_part` says."""
    layout, r = (_outer(getattr(x, "layout", x)) for x in (operands[0], result))
    for mode, d, tile, rest in _divide_parts(op, layout, _as_divisor(operands[1]), r):
        found = broken_divide_part(mode, d, tile, rest)
        if found:
            return found
    return None


def broken_divide_part(mode: Layout, d: Layout, tile: Layout, rest: Layout) -> str | None:
    """tile(i) == mode(d(i)) and rest(j) == mode(complement(d)(j)); without complement: nothing
    is lost.
    """
    if product(rest.shape) == 0:
        return "it has no elements"
    if not (mode.is_static and d.is_static and tile.is_static and rest.is_static):
        return None
    found = _not_after(mode, d, tile)
    if found:
        return "tile: " + found
    try:
        gap = complement(d, size(mode))
    except LayoutError:
        if not _enumerable(mode, d, tile, rest):
            return None
        pairs = ((t, r) for t in all_indices(tile) for r in all_indices(rest))
        reached = Counter(t + r for t, r in pairs if type(t) is int and type(r) is int)
        lost = next((v for v in all_indices(mode) if not reached[v]), None)
        twice = next((v for v, n in reached.items() if n > all_indices(mode).count(v)), None)
        if lost is None and twice is None:
            return None
        return f"value {lost} of the layout is lost" if lost is not None else f"{twice} comes twice"
    found = _not_after(mode, gap, rest)
    return None if found is None else "rest: " + found


def _not_after(mode: Layout, inner: Layout, part: Layout) -> str | None:
    """Return where part(i) is not mode(inner(i)), tried at `_some` places."""
    picked = _some(inner)
    got = [coordinate_at(i, part) for i in picked]
    found = _first_difference(got, [coordinate_at(coordinate_at(i, inner), mode) for i in picked])
    if found or product(part.shape) == product(inner.shape):
        return found
    return f"it has {product(part.shape)} elements, the law asks for {product(inner.shape)}"


def broken_star(operands: list, result: Any, op: str) -> str | None:
    """What `*` leaves alone belongs to the rest, whole."""
    tile, r = operands[1], _outer(getattr(result, "layout", result))
    if not isinstance(tile, Tile) or None not in tile.modes:
        return None
    parts = layout_modes(r)[len(tile.modes) if op == "flat_divide" else 1 :]
    rest = as_modes(parts[0].shape) if op == "zipped_divide" else tuple(p.shape for p in parts)
    layout = _outer(getattr(operands[0], "layout", operands[0]))
    for mode, entry in zip(as_modes(layout.shape), tile.modes):
        if entry is None and mode not in rest:
            return f"the kept mode {to_str(mode)} is not among the rest {to_str(rest)}"
    return None


def broken_product(operands: list, result: Any, op: str) -> str | None:
    """The copies are gaps(block) after the tiler."""
    block, tiler, r = _outer(operands[0]), operands[1], _outer(result)
    if not block.is_static or not tiler.is_static:
        return None
    try:
        room = gaps(block, leaf.mul(size(block), cosize(tiler)), False)
    except LayoutError as error:
        return f"block and copies collide: {error.condition}"
    shape, stride = _copies(op, block, tiler, r)
    return _broken_leaves(room, tiler, shape, stride)


def _copies(op: str, block: Layout, tiler: Layout, r: Layout) -> tuple[Any, Any]:
    """Return shape and stride of the copies inside the result of a product."""
    if op in ("blocked_product", "raked_product"):
        place = 1 if op == "blocked_product" else 0
        if tuple_rank(block.shape) == tuple_rank(tiler.shape) == 1:
            return r.shape[place], r.stride[place]
        count = tuple_rank(tiler.shape)
        picked = [(s[place], d[place]) for s, d in zip(r.shape[:count], r.stride[:count])]
        shape, stride = tuple(s for s, _ in picked), tuple(d for _, d in picked)
        return (shape, stride) if count > 1 else (shape[0], stride[0])
    first = 1
    if op == "flat_product":
        first = tuple_rank(canonical_pair(block.shape, block.stride)[0])
    shape, stride = r.shape[first:], r.stride[first:]
    return (shape, stride) if len(shape) > 1 else (shape[0], stride[0])


def _broken_tile_to_shape(operands: list, result: Any, op: str) -> str | None:
    block, target, order = operands
    outer = _outer(block)
    extents = as_modes(int_tuple_product_each(target))
    outer = append(outer, Layout(1, 0), max(len(extents), len(as_modes(outer.shape))))
    shape = ceil_div(extents, as_modes(int_tuple_product_each(outer.shape)))
    return broken_product([outer, make_ordered_layout(shape, order)], result, "blocked_product")


def broken_recast(operands: list, result: Any, op: str) -> str | None:
    """Every bit reached before is reached, and none more often (widening may round up)."""
    layout, old, new = operands
    a, r = _outer(layout), _outer(result)
    if old <= 0 or new <= 0:
        return f"an element of {min(old, new)} bits holds nothing"
    if any(isinstance(d, leaf.Basis) for d in leaves(a.stride)):
        return f"the coordinates of {a} have no width, and {r} has lost them"
    if new < old:
        a, r = _with_numbers(a, 3), _with_numbers(r, 3)
    a, r = _small_leaves(a, r, old, new)
    before = Counter(i * old + b for i in all_indices(a) for b in range(old))
    after = Counter(i * new + b for i in all_indices(r) for b in range(new))
    most = max(before.values(), default=0)
    wrong = next((b for b in sorted(before | after) if not 0 < after[b] <= most), None)
    return None if wrong is None else f"bit {wrong}: {before[wrong]} times before, {after[wrong]} after"


def _small_leaves(a: Layout, r: Layout, old: int, new: int) -> tuple[Layout, Layout]:
    """Return both layouts with only the static leaves of small strides, few enough to enumerate
    their elements of `old` and `new` bits.
    """
    pairs = [p for p in zip(zip(*a.flat()), zip(*r.flat())) if p[0][1]]
    pairs = [p for p in pairs if all(type(n) is int for n in p[0] + p[1])]
    pairs.sort(key=lambda p: abs(p[0][1]))
    kept, before, after = [((1, 0), (1, 0))], old, new
    for one, other in pairs:
        before, after = before * max(one[0], 1), after * max(other[0], 1)
        if max(before, after) > 8 * LIMIT:
            break
        kept.append((one, other))
    return tuple(Layout(tuple(p[n][0] for p in kept), tuple(p[n][1] for p in kept)) for n in (0, 1))


def broken_ceil_div(operands: list, result: Any, op: str) -> str | None:
    """Each leaf is a / b rounded up."""
    wanted = (ceil_div if op == "ceil_div" else shape_div)(*operands)
    for got, want in zip(leaves(result), leaves(wanted)):
        if type(got) is int and type(want) is int and got != want:
            return f"{got} is not the quotient rounded up, {want}"
    return None


def broken_ordered(operands: list, result: Any, op: str) -> str | None:
    """shape and stride nest alike."""
    if congruent(result.shape, result.stride):
        return None
    return f"stride {to_str(result.stride)} does not nest like shape {to_str(result.shape)}"


def broken_for_numbers(operands: list, result: Any, op: str) -> str | None:
    """With small numbers in place of the dynamic leaves, or with large ones, there is no lawful
    result.
    """
    operands = [getattr(x, "layout", x) for x in operands]
    if all(map(_is_static, operands)):
        return None
    small = [_refusal(op, operands, factor) for factor in (3, 2, 5)]
    return small[-1] if all(small) else _refusal(op, operands, 99_999_989)


def _refusal(op: str, operands: list, factor: int) -> str | None:
    """Return why the operation is refused with `factor` times what each dynamic leaf promises."""
    numbers = [_with_numbers(x, factor) for x in operands]
    try:
        _OPERATIONS[op](*numbers)
    except (NotDivisible, NotInjective) as error:
        return f"{' ; '.join(map(to_str, numbers))}: {error.condition}"
    return None


def _is_static(x: Any) -> bool:
    x = _outer(x)
    return x.is_static if isinstance(x, Layout) else isinstance(x, Tile) or tuple_is_static(x)


def _with_numbers(x: Any, factor: int) -> Any:
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, _with_numbers(x.offset, factor), _with_numbers(x.outer, factor))
    if isinstance(x, Layout):
        return Layout(_with_numbers(x.shape, factor), _with_numbers(x.stride, factor))
    if isinstance(x, Tile):
        return x
    return map_leaves(lambda i: i.div * factor if isinstance(i, Sym) else i, x)


def undefined_quotient(operands: list, result: Any, op: str) -> str | None:
    """With any number in place of the dynamic leaves the same call divides by zero."""
    numbers = [map_leaves(lambda i: i.div if isinstance(i, Sym) else i, x) for x in operands]
    try:
        ceil_div(*numbers)
    except DivisionByZero as error:
        return f"for {to_str(numbers[0])}: {error.condition}"
    return None


def undefined_index(operands: list, result: Any, op: str) -> str | None:
    """With any numbers in place of the dynamic leaves the same call divides by zero."""
    index, layout = operands
    if tuple_is_static(index) and layout.is_static:
        return None
    number = map_leaves(lambda i: 0 if isinstance(i, Sym) else i, index)
    try:
        idx2crd(number, _with_numbers(layout, 3))
    except DivisionByZero as error:
        return f"index {to_str(number)}: {error.condition}"
    return None


def undefined_comparison(operands: list, result: Any, op: str) -> str | None:
    """With any number in place of the dynamic leaves the same comparison is refused."""
    if all(map(_is_static, operands)):
        return None
    numbers = [_with_numbers(x, 3) for x in operands]
    try:
        _COMPARISONS[op](*numbers)
    except (BasisMismatch, OperandType) as error:
        return f"{' ; '.join(map(to_str, numbers))}: {error.condition}"
    return None


def broken_tv(operands: list, result: Any, op: str) -> str | None:
    """tv(t, v) lies in the tile where mode by mode, values inside threads, the thread layout
    has t and the value layout has v.
    """
    threads, vals = operands
    tile, tv = result
    if not (threads.is_static and vals.is_static and tv.is_static):
        return None
    sizes = [[product(m.shape) for m in layout_modes(x)] for x in operands]
    sizes = [s + [1] * (len(as_modes(tile)) - len(s)) for s in sizes]
    few = _some(threads) if product(vals.shape) <= 256 else _some(threads)[:256]
    for t in few:
        for v in _some(vals):
            places, rest = [], coordinate_at((t, v), tv)
            for n in as_modes(tile):
                places.append(rest % n)
                rest //= n
            at = [0, 0]
            for k, c in enumerate(places):
                at[0] += _mode_index(threads, k, c // sizes[1][k])
                at[1] += _mode_index(vals, k, c % sizes[1][k])
            if at != [t, v] or rest:
                return f"thread {t}, value {v} lies where the layouts have {at[0]} and {at[1]}"
    return None


def _mode_index(layout: Layout, mode: int, coord: int) -> int:
    """Return the index of a coordinate along one mode; a mode that is not there has only 0."""
    modes = layout_modes(layout)
    return coordinate_at(coord, modes[mode]) if mode < len(modes) else 0


TABLE: tuple[Deviation, ...] = (
    Deviation(
        "composition-basis",
        ("composition",),
        "a basis stride of the inner layout is a coordinate, not an index: the reference aborts "
        "for most and returns one inner layout unchanged; we refuse them all",
        broken_basis,
        ("composition", ("(4,(2,3)):(1,(4,8))", "3:1E1E1"), "3:1E1E1"),
    ),
    Deviation(
        "composition-ragged",
        ("composition",),
        "a stride of the inner layout does not divide the extent it runs through and goes on "
        "into the next mode: no layout is the composition, so we refuse",
        broken_composition,
        ("composition", ("(4,6):(6,1)", "4:3"), "(2,2):(18,1)"),
    ),
    Deviation(
        "complement-not-injective",
        ("complement",),
        "modes overlap, interleave or run below 0: nothing completes them to a bijection, so we "
        "refuse (the reference returns empty or incomplete layouts)",
        broken_complement,
        ("complement", ("(4,8):(3,5)",), "(3,0,2):(1,12,40)"),
    ),
    Deviation(
        "left-inverse-interleaved",
        ("left_inverse",),
        "strides interleave or are negative: the reference's layout does not map indices back, so we refuse",
        broken_left_inverse,
        ("left_inverse", ("(6,9):(19,69)",), "(19,3,9):(0,1,6)"),
    ),
    Deviation(
        "right-inverse-basis",
        ("right_inverse",),
        "the reference goes on from one coordinate into another; we stop at the end of the first",
        broken_right_inverse,
        ("right_inverse", ("(4,8):(1E0,4E1)",), "32:1"),
    ),
    Deviation(
        "divide-ragged",
        tuple(_DIVIDES),
        "the divisor has no complement, or the rest cuts through a mode: values are lost, "
        "doubled or wrong, so we refuse",
        broken_divide,
        ("logical_divide", ("((6,8,4)):((0,6,0))", "[4]"), "((4,(2,8,3))):((0,(0,6,0)))"),
    ),
    Deviation(
        "divide-star",
        ("zipped_divide", "tiled_divide", "flat_divide"),
        "`*` keeps a mode, which only logical_divide can say: the reference takes a kept mode of "
        "rank 2 apart as if it were (tile, rest), and aborts for others; we refuse",
        broken_star,
        ("flat_divide", ("((2,4),16):((1,2),8)", "[*|8]"), "(2,8,4,2):(1,8,2,64)"),
    ),
    Deviation(
        "product-ragged",
        tuple(_PRODUCTS),
        "the tiler steps through a gap of the block which it does not divide: copies land "
        "elsewhere than the law says (some on the block itself), so we refuse",
        broken_product,
        ("zipped_product", ("32:5", "(16):(4)"), "(32,(2,8)):(5,(4,160))"),
    ),
    Deviation(
        "tile-to-shape-ragged",
        ("tile_to_shape",),
        "the copies step through a gap of the block which they do not divide, as in product-ragged",
        _broken_tile_to_shape,
        (
            "tile_to_shape",
            ("(16,16):(1,64)", "(48,64)", "(0,1)"),
            "((16,3),(16,(2,2))):((1,16),(64,(48,1024)))",
        ),
    ),
    Deviation(
        "recast-twice-contiguous",
        ("recast_layout",),
        "several leaves have stride 1: only the one which runs through neighbours may be split, "
        "or elements are counted twice; a width of 0 bits is refused",
        broken_recast,
        ("recast_layout", ("(4,8):(1,4)", "6", "8"), "(3,24):(1,1)"),
    ),
    Deviation(
        "tv-not-compact",
        ("make_layout_tv",),
        "the thread or the value layout leaves out numbers or has them twice: no map gives each "
        "thread and value its place, so we refuse",
        broken_tv,
        ("make_layout_tv", ("(3,7):(32,32)", "(2,2):(1,1)"), "(6,14) ; (21,4):(1,21)"),
    ),
    Deviation(
        "ceil-div-negative",
        ("ceil_div", "shape_div"),
        "a negative dividend is rounded toward zero after adding the divisor; we round up",
        broken_ceil_div,
        ("ceil_div", ("(4,-4)", "(3,3)"), "(2,0)"),
    ),
    Deviation(
        "ordered-profile",
        ("make_ordered_layout",),
        "the order nests deeper than the shape: the reference's shape and stride nest differently, we refuse",
        broken_ordered,
        ("make_ordered_layout", ("4", "(0)"), "4:(1)"),
    ),
    Deviation(
        "dynamic-ragged",
        tuple(_OPERATIONS),
        "with small numbers, or with large ones, in place of the dynamic leaves no result is lawful "
        "(see the static rows), so we refuse while tracing",
        broken_for_numbers,
        ("left_inverse", ("(12,5,?{div=4}):(5,1,20)",), "(5,4,?{div=4}):(12,1,60)"),
    ),
    Deviation(
        "dynamic-by-zero",
        ("int_tuple_div", "int_tuple_mod", "shape_div", "ceil_div"),
        "a dynamic leaf over a static 0 divides by zero when it runs; we refuse it while "
        "tracing, as the reference does for static leaves",
        undefined_quotient,
        ("ceil_div", ("?", "0"), "?"),
    ),
    Deviation(
        "index-by-stride-zero",
        ("idx2crd", "get_flat_coord", "get_1d_coord"),
        "a dynamic index into an extent above 1 with stride 0, or modulo an extent 0, divides by "
        "zero when it runs; we refuse it while tracing, as the reference does for static indices",
        undefined_index,
        ("get_1d_coord", ("?{div=2}", "(32,2):(0,32)"), "?"),
    ),
    Deviation(
        "compare-kinds",
        ("elem_less", "equal"),
        "a basis leaf is not ordered and a layout is no integer: the reference refuses that too, "
        "but not where another leaf is dynamic",
        undefined_comparison,
        ("elem_less", ("2", "(1E0,?)"), "i1"),
    ),
)


def find_deviation(op: str, args: Any, expected: str, ours: str | None) -> Deviation | None:
    """Return the row which explains that `expected` differs from ours (None: refused), or None."""
    operands = [parse(a) for a in args]
    for row in TABLE:
        if op not in row.ops or not counterexample(row, op, operands, parse_result(expected)):
            continue
        if ours is None or not counterexample(row, op, operands, parse_result(ours)):
            return row
    return None


def parse_result(text: str) -> Any:
    """Return the value of a printed result, which may be two values, or a truth value."""
    if text in ("i1", "true", "false"):
        return text
    parts = [parse(part) for part in text.split(" ; ")]
    return parts[0] if len(parts) == 1 else tuple(parts)


def counterexample(row: Deviation, op: str, operands: list, result: Any) -> str | None:
    """Return how `result` breaks the law of the row, or None; what cannot be evaluated proves
    nothing.
    """
    try:
        return row.broken(operands, result, op)
    except (LayoutError, AttributeError, TypeError, ValueError):  # operands of kinds which the law does not know
        return None

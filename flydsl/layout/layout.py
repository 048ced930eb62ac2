"""The values of the algebra: `Layout`, `ComposedLayout`, `Tile`, and their constructors.

A layout maps a coordinate (or a linear index into the column-major order of its shape) to
sum(coord * stride).
Neighbours: `coords` evaluates, `modes` picks and groups, `compose`, `inverse`, `divide`,
`product` calculate.
"""

from __future__ import annotations

from typing import Any

from . import leaf
from .errors import ModeOutOfRange, NotStatic, OperandType, ProfileMismatch
from .int_tuple import (
    IntTuple,
    at_path,
    basis_tuple,
    congruent,
    coord_add,
    flatten_tuple,
    leaves,
    make_int_tuple,
    map_leaves,
    to_str,
    tuple_depth,
    tuple_is_static,
    tuple_rank,
    unflatten_tuple,
    weakly_congruent,
)
from .leaf import Basis, Sym
from .memo import carries_payload, operation
from .swizzle import CoordSwizzle, Swizzle


class Layout:
    """`shape:stride`, two integer tuples which normally nest alike; immutable, equal by content.

    The constructor checks nothing (as in the notation, `(4,8):1` can be written); `make_layout`
    does.
    """

    __slots__ = ("shape", "stride", "_hash", "_flat", "_payload")
    __match_args__ = ("shape", "stride")

    def __init__(self, shape: IntTuple, stride: IntTuple):
        _set_shape(self, shape)
        _set_stride(self, stride)
        _set_hash(self, None)
        _set_flat(self, None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Layout is immutable, cannot set {name}")

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Layout and self.shape == other.shape and self.stride == other.stride)

    def __hash__(self) -> int:
        known = self._hash
        if known is None:
            known = hash((self.shape, self.stride))
            _set_hash(self, known)
        return known

    def __str__(self) -> str:
        return f"{to_str(self.shape)}:{to_str(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"

    def __reduce__(self) -> tuple:
        return Layout, (self.shape, self.stride)

    def __call__(self, *coord: Any) -> Any:
        """Return the index of a coordinate, or the sub-layout when the coordinate has a None."""
        from .modes import call_layout  # built on Layout

        return call_layout(self, make_int_tuple(coord))

    def __getitem__(self, mode: Any) -> Layout:
        return get_mode(self, mode)

    def __len__(self) -> int:
        return tuple_rank(self.shape)

    def _repr_svg_(self) -> str | None:
        from .draw.notebook import svg_of

        return svg_of(self)

    def carries_payload(self) -> bool:
        try:
            return self._payload
        except AttributeError:
            _set_payload(self, carries_payload(self.shape) or carries_payload(self.stride))
            return self._payload

    def flat(self) -> tuple[tuple, tuple]:
        """Return (shape leaves, stride leaves); refuse sides which nest differently."""
        known = self._flat
        if known is None:
            known = _pair_leaves(self.shape, self.stride)
            _set_flat(self, known)
        return known

    rank = property(lambda self: tuple_rank(self.shape))
    depth = property(lambda self: tuple_depth(self.shape))
    is_leaf = property(lambda self: type(self.shape) is not tuple)
    is_static_shape = property(lambda self: tuple_is_static(self.shape))
    is_static_stride = property(lambda self: tuple_is_static(self.stride))
    is_static = property(lambda self: self.is_static_shape and self.is_static_stride)


def _pair_leaves(shape: IntTuple, stride: IntTuple) -> tuple[tuple, tuple]:
    """Return the leaves of both sides, which must nest alike."""
    if type(shape) is not tuple and type(stride) is not tuple:
        return (shape,), (stride,)
    if type(shape) is type(stride) and len(shape) == len(stride):
        if tuple not in map(type, shape) and tuple not in map(type, stride):
            return shape, stride
    out_s: list = []
    out_d: list = []
    if not _collect_pairs(shape, stride, out_s, out_d):
        raise ProfileMismatch(f"shape {to_str(shape)} and stride {to_str(stride)} nest differently")
    return tuple(out_s), tuple(out_d)


def _collect_pairs(shape: IntTuple, stride: IntTuple, out_s: list, out_d: list) -> bool:
    if type(shape) is not tuple or type(stride) is not tuple or len(shape) != len(stride):
        return False
    for s, d in zip(shape, stride):
        if type(s) is tuple or type(d) is tuple:
            if not _collect_pairs(s, d, out_s, out_d):
                return False
        else:
            out_s.append(s)
            out_d.append(d)
    return True


_set_shape, _set_stride = Layout.shape.__set__, Layout.stride.__set__
_set_hash, _set_flat = Layout._hash.__set__, Layout._flat.__set__
_set_payload = Layout._payload.__set__


class ComposedLayout:
    """`inner o offset o outer`: coordinate c maps to inner(offset + outer(c)).

    Operations which need strides act on the innermost plain layout and keep inner and offset.
    """

    __slots__ = ("inner", "offset", "outer", "_hash")
    __match_args__ = ("inner", "offset", "outer")

    def __init__(self, inner: Any, offset: IntTuple, outer: Any):
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "outer", outer)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"ComposedLayout is immutable, cannot set {name}")

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is ComposedLayout
            and self.inner == other.inner
            and self.offset == other.offset
            and self.outer == other.outer
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.inner, self.offset, self.outer)))
            return self._hash

    def __str__(self) -> str:
        outer = f"[{self.outer}]" if isinstance(self.outer, ComposedLayout) else str(self.outer)
        return f"{self.inner} o {to_str(self.offset)} o {outer}"

    def __repr__(self) -> str:
        return f"ComposedLayout({self.inner!r}, {self.offset!r}, {self.outer!r})"

    def __reduce__(self) -> tuple:
        return ComposedLayout, (self.inner, self.offset, self.outer)

    __call__ = Layout.__call__
    __getitem__ = Layout.__getitem__
    __len__ = Layout.__len__
    _repr_svg_ = Layout._repr_svg_

    def carries_payload(self) -> bool:
        return carries_payload(self.offset) or carries_payload(self.outer) or carries_payload(self.inner)

    shape = property(lambda self: self.outer.shape)
    rank = property(lambda self: self.outer.rank)
    depth = property(lambda self: self.outer.depth)
    is_leaf = property(lambda self: self.outer.is_leaf)
    is_static_inner = property(lambda self: getattr(self.inner, "is_static", True))
    is_static_offset = property(lambda self: tuple_is_static(self.offset))
    is_static_outer = property(lambda self: self.outer.is_static)
    is_static = property(lambda self: self.is_static_inner and self.is_static_offset and self.is_static_outer)

    @property
    def stride(self) -> IntTuple:
        raise OperandType("ComposedLayout doesn't have a meaningful stride", "get_stride", (self,))


class Tile:
    """`[m0|m1|...]`, a divisor by mode; an entry is an int, a Layout, None (keep the mode) or a
    nested Tile.
    """

    __slots__ = ("modes", "_hash")
    __match_args__ = ("modes",)

    def __init__(self, modes: Any):
        object.__setattr__(self, "modes", tuple(modes))
        object.__setattr__(self, "_hash", hash(("Tile", self.modes)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Tile is immutable, cannot set {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is Tile and self.modes == other.modes

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return "[" + "|".join(to_str(m) for m in self.modes) + "]"

    def __repr__(self) -> str:
        return f"Tile({self.modes!r})"

    def __len__(self) -> int:
        return len(self.modes)

    def __reduce__(self) -> tuple:
        return Tile, (self.modes,)

    rank = property(lambda self: len(self.modes))

    def unpack(self) -> tuple:
        """Return the entries as Python values, nested tiles as tuples."""
        return tuple(m.unpack() if type(m) is Tile else m for m in self.modes)


LayoutLike = Layout | ComposedLayout


def expect_layout(*operands: Any) -> None:
    """Refuse operands which are no layout."""
    for x in operands:
        if type(x) is not Layout and type(x) is not ComposedLayout:
            raise OperandType(f"expected a layout, got {type(x).__name__} `{to_str(x)}`")


def expect_plain(*operands: Any) -> None:
    """Refuse operands which are no plain layout."""
    for x in operands:
        if type(x) is not Layout:
            raise OperandType(f"expected a plain layout, got {type(x).__name__} `{to_str(x)}`")


def on_outer(fn: Any, layout: Any, *args: Any) -> Any:
    """Return `fn(layout, ...)`; on a composed layout fn acts on the outer part and the rest is
    kept.
    """
    if type(layout) is ComposedLayout:
        return ComposedLayout(layout.inner, layout.offset, fn(layout.outer, *args))
    expect_layout(layout)
    return fn(layout, *args)


def get_mode(x: Any, mode: Any) -> Any:
    """Return the sub-tree of a tuple or the sub-layout at a mode number or a path of them."""
    path = (mode,) if isinstance(mode, int) else tuple(mode)
    if len(path) > 1 and len(path) <= tuple_depth(_profile_of(x)):
        path = _without_leaf_zeros(_profile_of(x), path)
    if type(x) is ComposedLayout:
        return ComposedLayout(x.inner, x.offset, get_mode(x.outer, path))
    if type(x) is Layout:
        _check_path(x.shape, path, x)
        return Layout(at_path(x.shape, path), at_path(x.stride, path))
    _check_path(x, path, x)
    return at_path(x, path)


def _without_leaf_zeros(profile: IntTuple, path: tuple) -> tuple:
    """Return the path without its trailing zeros below a leaf: a leaf is its own mode 0."""
    kept = []
    for i, p in enumerate(path):
        if type(profile) is not tuple and not any(path[i:]):
            break
        kept.append(p)
        profile = profile[p] if type(profile) is tuple and 0 <= p < len(profile) else profile
    return tuple(kept)


def _check_path(profile: IntTuple, path: tuple, x: Any) -> None:
    for p in path:
        if type(profile) is not tuple or type(p) is not int or not 0 <= p < len(profile):
            kind = "int tuple" if x is profile or type(x) is tuple else "layout"
            raise ModeOutOfRange(
                f"Index {p} out of range for {kind} with rank {tuple_rank(profile)}",
                "get",
                (x, path),
            )
        profile = profile[p]


def make_layout(shape: Any, stride: Any) -> Layout:
    """Return the layout shape:stride; both must nest alike."""
    shape, stride = make_int_tuple(shape), make_int_tuple(stride)
    if not congruent(shape, stride):
        raise ProfileMismatch(
            f"is_profile_congruent({to_str(shape)}, {to_str(stride)}) is False",
            "make_layout",
            (shape, stride),
        )
    return Layout(shape, stride)


def compact_column_major(shape: IntTuple, start: Any = 1) -> IntTuple:
    """Return strides which fill `shape` without gaps, first mode fastest, beginning with
    `start`.
    """
    return _compact(shape, start)[0]


def _compact(shape: IntTuple, step: Any) -> tuple[IntTuple, Any]:
    if type(shape) is not tuple:
        return step, leaf.mul(step, shape)
    out = []
    for s in shape:
        d, step = _compact(s, step)
        out.append(d)
    return tuple(out), step


def column_major(shape: Any) -> Layout:
    """Return the compact layout of `shape`, first mode fastest."""
    shape = make_int_tuple(shape)
    return Layout(shape, compact_column_major(shape))


@operation
def ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    if type(shape) is type(order) is tuple and len(shape) == len(order):
        if tuple not in map(type, shape) and set(map(type, order)) == {int}:
            return Layout(shape, _flat_order(shape, order))
    for x in (shape, order):
        if type(x) not in (int, tuple, Sym) and x is not None:
            raise OperandType(f"expected an integer tuple, got {type(x).__name__}")
    if type(order) is not tuple:
        return column_major(shape)
    if not weakly_congruent(order, shape):
        raise ProfileMismatch(f"is_profile_weakly_congruent({to_str(order)}, {to_str(shape)}) is False")
    slots: list[tuple[Any, IntTuple]] = []
    _order_slots(shape, order, slots)
    starts: list = [1] * len(slots)
    step: Any = 1
    for places in _ranking([o for o, _ in slots]):
        for n in places:
            starts[n] = step
        for n in places:
            for s in leaves(slots[n][1]):
                step = leaf.mul(step, s)
    strides = iter([compact_column_major(mode, starts[n]) for n, (_, mode) in enumerate(slots)])
    return Layout(shape, _order_fill(order, strides))


def _flat_order(shape: tuple, order: tuple) -> tuple:
    """Return the strides of a flat shape by order numbers, of which equal ones start together."""
    strides: list = [1] * len(shape)
    step: Any = 1
    filled: Any = 1
    last = None
    for n in sorted(range(len(order)), key=order.__getitem__):
        if order[n] != last:
            last, step = order[n], filled
        strides[n] = step
        s = shape[n]
        filled = filled * s if type(filled) is type(s) is int else leaf.mul(filled, s)
    return tuple(strides)


def _ranking(orders: list) -> list[list[int]]:
    """Return the places of equal order numbers, ascending; dynamic ones follow, each by itself;
    `*` is 0.
    """
    groups: dict = {}
    for n, o in enumerate(orders):
        if type(o) is int or o is None:
            groups.setdefault(o or 0, []).append(n)
    dynamic = [[n] for n, o in enumerate(orders) if type(o) is not int and o is not None]
    return [groups[o] for o in sorted(groups)] + dynamic


def _order_slots(shape: IntTuple, order: IntTuple, out: list) -> None:
    if type(order) is not tuple:
        out.append((order, shape))
        return
    for s, o in zip(shape, order):
        _order_slots(s, o, out)


def _order_fill(order: IntTuple, strides: Any) -> IntTuple:
    if type(order) is not tuple:
        return next(strides)
    return tuple([_order_fill(o, strides) for o in order])


def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """Return the compact layout whose modes are laid out by ascending `order`.

    Order may stop at a nested mode, which is then column-major inside. Equal numbers get the
    same start
    (they are not ranked against each other). A leaf order means column-major.
    """
    try:
        return ordered_layout(shape, order)
    except OperandType:  # lists and the like, which the memo cannot look up
        return ordered_layout(make_int_tuple(shape), make_int_tuple(order))


@operation
def make_layout_like(layout: Layout) -> Layout:
    """Return the compact layout of the same shape whose modes keep the stride order of `layout`.

    Modes of stride 0 count as extent 1, and equal strides get equal strides (see
    `make_ordered_layout`).
    """
    expect_plain(layout)
    shapes, strides = layout.flat()
    for d in strides:
        if type(d) is Basis:
            raise NotStatic(f"stride {d} has no rank among the others")
    extents = iter([1 if leaf.is_value(d, 0) else s for s, d in zip(shapes, strides)])
    shape = map_leaves(lambda _: next(extents), layout.shape)
    return Layout(layout.shape, ordered_layout(shape, layout.stride).stride)


def make_identity_layout(shape: Any) -> Layout:
    """Return the layout which maps each coordinate to itself: strides are unit basis leaves; a
    leaf gets 1.
    """
    shape = make_int_tuple(shape)
    if type(shape) is not tuple:
        return Layout(shape, 1)
    return Layout(shape, _unit_strides(shape, ()))


def _unit_strides(shape: IntTuple, path: tuple) -> IntTuple:
    if type(shape) is not tuple:
        return Basis(1, path)
    return tuple([_unit_strides(s, path + (i,)) for i, s in enumerate(shape)])


def coprofile_of(layout: Any) -> IntTuple:
    """Return zeros nested like the values of `layout`: 0, or one zero per coordinate where several
    strides are basis leaves (the values of a single one are basis leaves).
    """
    if type(layout) is ComposedLayout:
        inner = layout.inner
        if isinstance(inner, (Layout, ComposedLayout)):
            return coprofile_of(inner)
        return coprofile_of(layout.outer)
    paths = [d.modes for d in leaves(layout.stride) if type(d) is Basis]
    out: IntTuple = 0
    for path in paths if len(paths) > 1 else ():
        out = coord_add(out, basis_tuple(0, path))
    return out


def make_composed_layout(inner: Any, *rest: Any) -> ComposedLayout:
    """Return inner o offset o outer from `(inner, outer)` or `(inner, offset, outer)`; offset
    defaults to zeros.
    """
    offset, outer = rest if len(rest) == 2 else (None, *rest)
    if not isinstance(inner, (Swizzle, CoordSwizzle, Layout, ComposedLayout)):
        raise OperandType("inner must be a swizzle or a layout", "make_composed_layout", (inner, outer))
    if not isinstance(outer, (Layout, ComposedLayout)):
        raise OperandType("outer must be a layout", "make_composed_layout", (inner, outer))
    offset = coprofile_of(outer) if offset is None else make_int_tuple(offset)
    return ComposedLayout(inner, offset, outer)


def make_tile(*modes: Any) -> Tile:
    """Return a tile; entries are ints, layouts, None or nested tuples, all static."""
    return Tile(tuple(_tile_mode(m) for m in modes))


def _tile_mode(m: Any) -> Any:
    if isinstance(m, (tuple, list)):
        return make_tile(*m)
    if type(m) is Sym or type(m) is Layout and not m.is_static:
        raise NotStatic(f"a tile is static, but {m} is not", "make_tile", (m,))
    if m is None or isinstance(m, (Layout, Tile)):
        return m
    if isinstance(m, int):
        return int(m)
    raise OperandType(f"{type(m).__name__} cannot be a mode of a tile", "make_tile", (m,))


def flatten(x: Any) -> Any:
    """Return a tuple or layout with all leaves as top-level modes; a leaf stays a leaf."""
    if isinstance(x, (Layout, ComposedLayout)):
        return on_outer(lambda l: Layout(flatten_tuple(l.shape), flatten_tuple(l.stride)), x)
    return flatten_tuple(x)


def unflatten(x: Any, profile: IntTuple) -> Any:
    """Return the leaves of a tuple or layout nested like `profile`."""
    if isinstance(x, (Layout, ComposedLayout)):
        return on_outer(
            lambda l: Layout(unflatten_tuple(l.shape, profile), unflatten_tuple(l.stride, profile)),
            x,
        )
    return unflatten_tuple(x, profile)


def layout_modes(layout: Layout) -> list[Layout]:
    """Return the top-level modes as layouts."""
    if type(layout.shape) is not tuple:
        return [layout]
    if type(layout.stride) is not tuple or len(layout.stride) != len(layout.shape):
        layout.flat()
    return [Layout(s, d) for s, d in zip(layout.shape, layout.stride)]


def from_modes(modes: Any) -> Layout:
    """Return the layout whose top-level modes are the given ones."""
    return Layout(tuple([m.shape for m in modes]), tuple([m.stride for m in modes]))


def _profile_of(x: Any) -> IntTuple:
    return x.shape if isinstance(x, (Layout, ComposedLayout)) else x


@operation
def is_profile_congruent(a: Any, b: Any) -> bool:
    """Return whether two tuples or layouts nest alike."""
    return congruent(_profile_of(a), _profile_of(b))


@operation
def is_profile_weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether `a` is a coordinate profile for `b`: each leaf of `a` may stand for a
    whole mode of `b`.
    """
    return weakly_congruent(_profile_of(a), _profile_of(b))

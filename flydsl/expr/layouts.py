"""Layouts, swizzles and tiles of `fx`, and what makes them.

The algebra on them (divide, compose, ...) is in `algebra`; the plain values are those of `flydsl.layout`.
"""

from __future__ import annotations

from typing import Any

from flydsl import layout as la
from flydsl.diag import StrideUndefined, TileDynamic
from flydsl.dialects.values import is_static
from flydsl.expr.int_tuples import IntTuple, as_int, int_tuple
from flydsl.expr.layout_errors import user_error
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.values import FlyValue, build, expect, wrap
from flydsl.layout.errors import LayoutError


class _Shaped(FlyValue):
    """What layouts and composed layouts share."""

    __slots__ = ()

    @property
    def is_static(self) -> bool:
        """Whether shape, strides (and offset) are all known while tracing."""
        return self._value is None

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return self.plain.rank

    @property
    def depth(self) -> int:
        """Nesting depth; a leaf has 0."""
        return self.plain.depth

    @property
    def is_leaf(self) -> bool:
        """Whether the shape is a single integer."""
        return self.plain.is_leaf

    @property
    def shape(self) -> IntTuple:
        """The extents."""
        return build("fly.get_shape", (self,))

    def _repr_svg_(self) -> str | None:
        """What a notebook shows: the index grid, or None (then the text) unless the layout is static and small."""
        return self.plain._repr_svg_()

    def __len__(self) -> int:
        return self.plain.rank

    def __getitem__(self, mode: Any) -> Layout | ComposedLayout:
        return get_(self, mode)

    def __iter__(self):
        return iter([get_(self, i) for i in range(self.rank)])

    def __call__(self, *coord: Any) -> Any:
        """Return the index of a coordinate as an IntTuple, or the sub-layout where the coordinate has a None."""
        c = int_tuple(coord)
        if la.has_none(c.plain):
            return build("fly.slice", (self, c))
        if self.is_leaf and len(coord) == 1:
            c = c[0]
        return build("fly.crd2idx", (c, self))


class Layout(_Shaped, plains=(la.Layout,)):
    """`shape:stride`, a map from coordinates to indices."""

    __slots__ = ()

    @property
    def is_static_shape(self) -> bool:
        """Whether all extents are known while tracing."""
        return self.plain.is_static_shape

    @property
    def is_static_stride(self) -> bool:
        """Whether all strides are known while tracing."""
        return self.plain.is_static_stride

    @property
    def stride(self) -> IntTuple:
        """The steps."""
        return build("fly.get_stride", (self,))

    def get_hier_coord(self, index: Any) -> IntTuple:
        """Return the coordinate of an index, nested like the shape."""
        return build("fly.idx2crd", (int_tuple(index), self))

    def get_flat_coord(self, index: Any) -> IntTuple:
        """Return the coordinate of an index with one integer per top-level mode."""
        return build("fly.get_flat_coord", (int_tuple(index), self))

    def get_1d_coord(self, index: Any) -> IntTuple:
        """Return the column-major linear coordinate of an index."""
        return build("fly.get_1d_coord", (int_tuple(index), self))


class ComposedLayout(_Shaped, plains=(la.ComposedLayout,)):
    """`inner o offset o outer`: the index is inner(offset + outer(coord)); inner is mostly a swizzle."""

    __slots__ = ()

    @property
    def is_static_inner(self) -> bool:
        """Whether the inner part is known while tracing."""
        return self.plain.is_static_inner

    @property
    def is_static_offset(self) -> bool:
        """Whether the offset is known while tracing."""
        return self.plain.is_static_offset

    @property
    def is_static_outer(self) -> bool:
        """Whether the outer layout is known while tracing."""
        return self.plain.is_static_outer

    @property
    def inner(self) -> Swizzle | CoordSwizzle | Layout | ComposedLayout:
        """What is applied last."""
        return build("fly.composed_get_inner", (self,))

    @property
    def offset(self) -> IntTuple:
        """What is added to the outer result."""
        return build("fly.composed_get_offset", (self,))

    @property
    def outer(self) -> Layout | ComposedLayout:
        """What is applied to the coordinate first."""
        return build("fly.composed_get_outer", (self,))

    @property
    def stride(self) -> IntTuple:
        raise StrideUndefined(layout=self.plain)


class Swizzle(FlyValue, plains=(la.Swizzle,)):
    """`S<mask,base,shift>`: XORs `mask` bits found `base + shift` up onto the bits at `base`."""

    __slots__ = ()

    @property
    def mask(self) -> int:
        """How many bits are moved."""
        return self.plain.bits

    @property
    def base(self) -> int:
        """How many low bits stay as they are."""
        return self.plain.base

    @property
    def shift(self) -> int:
        """How far up the bits that are XORed in stand."""
        return self.plain.shift


class CoordSwizzle(FlyValue, plains=(la.CoordSwizzle,)):
    """`CS<...>`: XORs bits of a row coordinate onto a column coordinate."""

    __slots__ = ()


class Tile(FlyValue, plains=(la.Tile,)):
    """A divisor by mode; an entry is an int, a layout, None (the mode stays) or a nested tile. Always static."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """Number of entries."""
        return len(self.plain.modes)

    def unpack(self) -> tuple:
        """Return the entries: ints, None, Layouts, nested tuples."""
        return _unpack(self.plain)

    def __len__(self) -> int:
        return self.rank

    def __iter__(self):
        return iter(self.unpack())

    def __getitem__(self, mode: int) -> Any:
        return self.unpack()[mode]


def _unpack(tile: la.Tile) -> tuple:
    return tuple(
        _unpack(m) if isinstance(m, la.Tile) else wrap(m) if isinstance(m, la.Layout) else m for m in tile.modes
    )


LAYOUTS = (Layout, ComposedLayout)


# --- construction ------------------------------------------------------------------------------------------------


def make_layout(shape: Any, stride: Any) -> Layout:
    """Return shape:stride; both must nest alike."""
    return build("fly.make_layout", (int_tuple(shape), int_tuple(stride)))


def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """Return the compact layout whose modes are laid out by ascending `order`; a single order number means column-
    major.
    """
    return build("fly.make_ordered_layout", (int_tuple(shape), int_tuple(order)))


def make_layout_like(ref: FlyValue) -> Layout:
    """Return the compact layout of the same shape that keeps the stride order of `ref`."""
    return build("fly.make_layout_like", (_layout(ref, "make_layout_like"),))


def make_identity_layout(shape: Any) -> Layout:
    """Return the layout that maps each coordinate to itself."""
    return build("fly.make_identity_layout", (int_tuple(shape),))


def make_fragment_layout_like(tensor: FlyValue) -> Layout:
    """Return the register layout of a tensor or layout: mode 0 adjacent, the others by their strides. Static shapes
    only.
    """
    try:
        return wrap(la.make_fragment_layout_like(_layout(tensor, "make_fragment_layout_like").plain))
    except LayoutError as error:
        raise user_error(error, "make_fragment_layout_like") from None


def make_composed_layout(inner: FlyValue, offset_or_outer: Any, outer: FlyValue | None = None) -> ComposedLayout:
    """Return inner o offset o outer; without an offset it is 0 (zeros for basis strides)."""
    inner = expect(inner, (Swizzle, CoordSwizzle, Layout, ComposedLayout), "inner of make_composed_layout")
    if outer is None:
        offset_or_outer, outer = None, offset_or_outer
    outer = expect(outer, LAYOUTS, "outer of make_composed_layout")
    return build("fly.make_composed_layout", (inner, int_tuple(offset_or_outer), outer))


def make_tile(*args: Any) -> Tile:
    """Return a tile of ints, None, nested tuples and static layouts."""
    return wrap(la.Tile(tuple([_tile_mode(m) for m in args])))


def _tile_mode(m: Any) -> Any:
    if type(m) is int or m is None:
        return m
    if isinstance(m, (tuple, list)):
        return la.Tile(tuple([_tile_mode(i) for i in m]))
    if isinstance(m, (Layout, Tile, IntTuple)):
        if not is_static(m.plain):
            raise TileDynamic(got=m.plain)
        return m.plain if not isinstance(m.plain, tuple) else la.Tile(tuple([_tile_mode(i) for i in m.plain]))
    if isinstance(m, (la.Layout, la.Tile)):
        return m
    if isinstance(m, Numeric) and not m.is_static():
        raise TileDynamic(got="?")
    return as_int(m, "a mode of a tile")


def as_divisor(divisor: Any) -> Tile | Layout:
    """Return a layout or tile as it is; anything else is unpacked into `make_tile`."""
    if isinstance(divisor, (Tile, Layout)):
        return divisor
    if isinstance(divisor, IntTuple) and not divisor.is_leaf:
        return make_tile(*divisor.plain)
    if isinstance(divisor, ComposedLayout):
        return expect(divisor, (Layout, Tile), "the divisor")
    if not isinstance(divisor, (tuple, list)):
        return expect(divisor, (Layout, Tile, tuple), "the divisor")
    return make_tile(*divisor)


def _layout(x: Any, what: str) -> FlyValue:
    """Return a layout itself, or that of a tensor."""
    if isinstance(x, LAYOUTS):
        return x
    layout = getattr(x, "layout", None)
    return layout if isinstance(layout, LAYOUTS) else expect(x, LAYOUTS, f"the operand of {what}")


def get_(int_tuple_or_layout: Any, mode: Any) -> Any:
    """Return the sub-tuple, sub-layout or sub-tensor at a mode number or a path of them."""
    x = int_tuple_or_layout
    if not isinstance(x, FlyValue):
        x = int_tuple(x)
    path = (int(mode),) if not isinstance(mode, (tuple, list)) else tuple([int(m) for m in mode])
    if x.__class__ is IntTuple:
        return x[path]
    return build("fly.get", (x,), (path,))

"""The layout algebra of `fx`: coordinates, modes, composition, inverses, divides and products.

One line per function: operands are converted, `values.build` folds or emits. Everything accepts layouts; divides,
slices and mode functions accept tensors, too, and then move along the pointer. Results and laws are those of
`flydsl.layout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from flydsl import layout as la
from flydsl.diag import SliceKeepsNothing
from flydsl.dialects.values import inner_text
from flydsl.expr.int_tuples import IntTuple, as_int, get_scalar, int_tuple
from flydsl.expr.layout_errors import user_error
from flydsl.expr.layouts import LAYOUTS, ComposedLayout, Layout, Tile, as_divisor
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Index
from flydsl.expr.values import FlyValue, build, expect, wrap
from flydsl.layout.errors import LayoutError

V = TypeVar("V", bound=FlyValue)  # a layout gives a layout, a tensor a tensor


def _any(x: Any) -> FlyValue:
    """Return a value of the dialect as it is, anything else as an int tuple."""
    return x if isinstance(x, FlyValue) else int_tuple(x)


def _plain_layout(x: Any, what: str) -> FlyValue:
    return x if isinstance(x, LAYOUTS) else expect(x, LAYOUTS, f"the operand of {what}")


# --- inspection --------------------------------------------------------------------------------------------------


def rank(int_or_tuple: Any) -> int:
    """Return the number of top-level modes; a leaf has one."""
    return _measure(la.rank, int_or_tuple, "rank")


def depth(int_or_tuple: Any) -> int:
    """Return the nesting depth; a leaf has 0."""
    return _measure(la.depth, int_or_tuple, "depth")


def _measure(law: Any, x: Any, name: str) -> int:
    x = _any(x)
    try:
        return law(getattr(x.plain, "layout", x.plain))
    except LayoutError as error:
        raise user_error(error, name) from None


def size(int_tuple_: Any) -> IntTuple:
    """Return the product of the shape, as a leaf."""
    return build("fly.size", (_any(int_tuple_),))


def cosize(layout: Any) -> IntTuple:
    """Return the largest index + 1."""
    return build("fly.cosize", (layout if isinstance(layout, FlyValue) else _plain_layout(layout, "cosize"),))


def coshape(layout: Any) -> IntTuple:
    """Return the largest index + 1 per coordinate of the codomain."""
    return build("fly.coshape", (layout if isinstance(layout, FlyValue) else _plain_layout(layout, "coshape"),))


def coprofile(layout: Any) -> IntTuple:
    """Return zeros nested like the values of the layout."""
    return build("fly.coprofile", (layout if isinstance(layout, FlyValue) else _plain_layout(layout, "coprofile"),))


def get_shape(layout: FlyValue) -> IntTuple:
    """Return the shape of a layout or tensor."""
    return build("fly.get_shape", (expect(layout, FlyValue, "the operand of get_shape"),))


def get_stride(layout: FlyValue) -> IntTuple:
    """Return the stride of a layout or tensor."""
    return build("fly.get_stride", (expect(layout, FlyValue, "the operand of get_stride"),))


def composed_get_inner(input: ComposedLayout) -> Any:
    """Return what a composed layout applies last."""
    return expect(input, ComposedLayout, "the operand of composed_get_inner").inner


def composed_get_offset(input: ComposedLayout) -> IntTuple:
    """Return what a composed layout adds to the outer result."""
    return expect(input, ComposedLayout, "the operand of composed_get_offset").offset


def composed_get_outer(input: ComposedLayout) -> Any:
    """Return what a composed layout applies to the coordinate."""
    return expect(input, ComposedLayout, "the operand of composed_get_outer").outer


def get(int_tuple: Any, mode: int) -> Any:
    """Return one mode: of a Python sequence its item, of an IntTuple its scalar as a raw `index` value (kept for old
    kernels).
    """
    if not isinstance(int_tuple, IntTuple):
        return int_tuple[as_int(mode, "the mode of get")]
    scalar = get_scalar(int_tuple[as_int(mode, "the mode of get")])
    return Index(from_python_value(scalar)).ir_value()


def is_profile_congruent(a: Any, b: Any) -> bool:
    """Return whether two tuples or layouts nest alike."""
    return la.is_profile_congruent(_any(a).plain, _any(b).plain)


def is_profile_weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether each leaf of `a` stands where `b` has a leaf or a whole mode."""
    return la.is_profile_weakly_congruent(_any(a).plain, _any(b).plain)


# --- coordinates -------------------------------------------------------------------------------------------------


def crd2idx(crd: Any, layout: FlyValue) -> IntTuple:
    """Return the index of a coordinate; each of its leaves may stand for a whole mode. None counts as 0."""
    return build("fly.crd2idx", (int_tuple(crd), _plain_layout(layout, "crd2idx")))


def idx2crd(index: Any, layout: Layout) -> IntTuple:
    """Return the coordinate of an index by the strides."""
    return build("fly.idx2crd", (int_tuple(index), _plain_layout(layout, "idx2crd")))


def get_flat_coord(index: Any, layout: Layout) -> IntTuple:
    """Return the coordinate of an index, one integer per top-level mode."""
    return build("fly.get_flat_coord", (int_tuple(index), _plain_layout(layout, "get_flat_coord")))


def get_1d_coord(index: Any, layout: Layout) -> IntTuple:
    """Return the column-major linear coordinate of an index."""
    return build("fly.get_1d_coord", (int_tuple(index), _plain_layout(layout, "get_1d_coord")))


# --- modes -------------------------------------------------------------------------------------------------------


def select(int_tuple: Any, indices: Sequence[int]) -> Any:
    """Return the modes with these numbers, in this order; a single one is unwrapped."""
    return build("fly.select", (_any(int_tuple),), (tuple([as_int(i, "a mode of select") for i in _listed(indices)]),))


def _listed(indices: Any) -> Sequence[int]:
    return indices if isinstance(indices, (list, tuple)) else (indices,)


def take(int_tuple: Any, begin: int, end: int) -> Any:
    """Return modes begin..end-1; a single one is unwrapped."""
    return build("fly.take", (_any(int_tuple),), (as_int(begin, "begin"), as_int(end, "end")))


def group(int_tuple: Any, begin: int, end: int) -> Any:
    """Return the operand with modes begin..end-1 as one nested mode."""
    return build("fly.group", (_any(int_tuple),), (as_int(begin, "begin"), as_int(end, "end")))


def append(base: Any, elem: Any, *, n: int | None = None) -> Any:
    """Return `base` with `elem` as a further last mode; with n it is repeated until the rank is n."""
    return build("fly.append", (_any(base), _any(elem)), () if n is None else (as_int(n, "n"),))


def prepend(base: Any, elem: Any, *, n: int | None = None) -> Any:
    """Return `base` with `elem` as a further first mode; with n it is repeated until the rank is n."""
    return build("fly.prepend", (_any(base), _any(elem)), () if n is None else (as_int(n, "n"),))


def slice(src: Any, coord: Any) -> Any:
    """Return the modes that `coord` keeps (None); of a tensor the fixed part moves the pointer."""
    c = int_tuple(expect(coord, (tuple, list, IntTuple), "the coordinate of slice"))
    if not la.has_none(c.plain):
        raise SliceKeepsNothing(coord=inner_text(c.plain))
    return build("fly.slice", (_any(src), c))


def dice(src: Any, coord: Any) -> Any:
    """Return the modes that `coord` does not keep: where it is not None."""
    return build("fly.dice", (_any(src), int_tuple(coord)))


# --- composition and inverses ------------------------------------------------------------------------------------


def coalesce(layout: V, pattern: Any = None) -> V:
    """Return the layout with adjacent modes merged; with a pattern only below each of its leaves."""
    return build("fly.coalesce", (expect(layout, FlyValue, "the operand of coalesce"), int_tuple(pattern)))


def composition(layout: V, tiler: Any) -> V:
    """Return `layout` after `tiler`, a layout or (by mode) a tile."""
    tiler = expect(tiler, (Layout, Tile), "the tiler of composition")
    return build("fly.composition", (expect(layout, FlyValue, "the operand of composition"), tiler))


def complement(layout: Layout, codomain_size: Any = None) -> Layout:
    """Return the layout of the gaps that `layout` leaves below `codomain_size` (default: its cosize)."""
    return build("fly.complement", (_plain_layout(layout, "complement"), int_tuple(codomain_size)))


def right_inverse(layout: Layout) -> Layout:
    """Return r with layout(r(i)) == i for i below size(r)."""
    return build("fly.right_inverse", (_plain_layout(layout, "right_inverse"),))


def left_inverse(layout: Layout) -> Layout:
    """Return r with r(layout(i)) == i."""
    return build("fly.left_inverse", (_plain_layout(layout, "left_inverse"),))


def recast_layout(layout: V, old_type_bits: Any, new_type_bits: Any) -> V:
    """Return the layout of the same memory seen in elements of another width; widths are bits or types."""
    widths = (_bits(old_type_bits), _bits(new_type_bits))
    return build("fly.recast_layout", (_plain_layout(layout, "recast_layout"),), widths)


def _bits(x: Any) -> int:
    width = getattr(x, "width", None)
    return width if isinstance(width, int) else as_int(x, "a width in bits")


# --- divides -----------------------------------------------------------------------------------------------------


def logical_divide(layout: V, divisor: Any) -> V:
    """Return (tile, rest); by a tile, each mode is split in two."""
    return build("fly.logical_divide", (expect(layout, FlyValue, "the operand of logical_divide"), as_divisor(divisor)))


def zipped_divide(layout: V, divisor: Any) -> V:
    """Return ((tile modes), (rest modes))."""
    return build("fly.zipped_divide", (expect(layout, FlyValue, "the operand of zipped_divide"), as_divisor(divisor)))


def tiled_divide(layout: V, divisor: Any) -> V:
    """Return ((tile modes), rest, rest, ...)."""
    return build("fly.tiled_divide", (expect(layout, FlyValue, "the operand of tiled_divide"), as_divisor(divisor)))


def flat_divide(layout: V, divisor: Any) -> V:
    """Return (tile..., rest...)."""
    return build("fly.flat_divide", (expect(layout, FlyValue, "the operand of flat_divide"), as_divisor(divisor)))


# --- products ----------------------------------------------------------------------------------------------------


def _product(op: str, layout: FlyValue, tiler: FlyValue) -> FlyValue:
    what = f"the operand of {op}"
    return build(f"fly.{op}", (expect(layout, LAYOUTS, what), expect(tiler, Layout, f"the tiler of {op}")))


def logical_product(layout: V, tiler: Layout) -> V:
    """Return (block, repeats of it)."""
    return _product("logical_product", layout, tiler)


def zipped_product(layout: V, tiler: Layout) -> V:
    """Return ((block modes), (repeat modes))."""
    return _product("zipped_product", layout, tiler)


def tiled_product(layout: V, tiler: Layout) -> V:
    """Return ((block modes), repeat, repeat, ...)."""
    return _product("tiled_product", layout, tiler)


def flat_product(layout: V, tiler: Layout) -> V:
    """Return (block..., repeat...)."""
    return _product("flat_product", layout, tiler)


def blocked_product(layout: V, tiler: Layout) -> V:
    """Return the product mode by mode, the block inside."""
    return _product("blocked_product", layout, tiler)


def raked_product(layout: V, tiler: Layout) -> V:
    """Return the product mode by mode, the repeats inside."""
    return _product("raked_product", layout, tiler)


def tile_to_shape(block: V, trg_shape: Any, ord_shape: Any) -> V:
    """Return `block` repeated to fill a shape, its repeats in the given order of modes."""
    block = _plain_layout(block, "tile_to_shape")
    return build("fly.tile_to_shape", (block, int_tuple(trg_shape), int_tuple(ord_shape)))


# --- thread-value layouts ----------------------------------------------------------------------------------------


def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[Any, Layout]:
    """Return (sizes of the tile, the layout that maps (thread, value) to the column-major index in the tile)."""
    thr = expect(thr_layout, Layout, "thr_layout of make_layout_tv")
    val = expect(val_layout, Layout, "val_layout of make_layout_tv")
    try:
        tile, tv = la.make_layout_tv(thr.plain, val.plain)
    except LayoutError as error:
        raise user_error(error, "make_layout_tv") from None
    return tile, wrap(tv)

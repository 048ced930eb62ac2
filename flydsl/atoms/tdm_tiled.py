"""Tiled tensor DMA (gfx1250): atoms derived from a tensor and its LDS layout, and their
partition over warps.

A tiled atom moves one warp's share of a tile. The tensor is seen through a coordinate tensor
whose basis leaf E0 is the contiguous dimension, so that tiles, slices and partitions are the
algebra's. Neighbours: `tdm` has the operations and the descriptor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from flydsl.layout import (
    Basis,
    ComposedLayout,
    CoordTensor,
    Layout,
    LayoutLike,
    MemRef,
    Tile,
    coalesce,
    composition,
    crd2idx,
    make_layout_like,
    right_inverse,
    size,
)
from flydsl.layout.coords import all_indices
from flydsl.layout.int_tuple import leaves as leaves_of
from flydsl.layout.int_tuple import unflatten_tuple
from flydsl.layout.layout import from_modes, layout_modes, on_outer
from flydsl.utils.record import record

from .copy_ops import CopyAtom
from .elements import bit_width
from .errors import AtomError, one_of
from .tdm import MAX_RANK, TensorLoad, TensorStore, padding_codes
from .tiled_copy import take_thread

_MAX_TILE = 0xFFFF  # tile_dim fields of the descriptor have 16 bits


@dataclass
class _Dimension:
    """One dimension of the descriptor: adjacent leaves of the tensor that lie behind one another.

    `tile` and `extent` count elements of the tile and of the tensor along it, `scales` say which
    step of the dimension one step of each leaf is.
    """

    tile: int
    extent: Any
    stride: Any
    scales: dict[int, int]


@record
class _Leaf:
    """A leaf of the tensor's layout; `part` elements of it are in the tile."""

    extent: Any
    stride: Any
    part: int


def make_tiled_tdm_atom(
    direction: str,
    tensor: MemRef,
    smem_layout: Layout,
    tile: Tile,
    num_warps: int = 1,
    *,
    cache_modifier: int = 0,
    atomic_barrier: bool = False,
    init_boundary_check: bool = True,
) -> tuple[CopyAtom, CoordTensor]:
    """Return (atom of one warp's share, coordinate tensor of the whole tensor).

    Shapes   tensor, tile: one mode per dimension, at most five leaves; smem_layout: as many
             elements as the tile, numbered like it
    Raises   AtomError: more leaves, an innermost dimension that is not contiguous, warps that do
             not divide the tile, LDS padded at two places; OutOfRange: padding
    """
    one_of("direction", direction, ("load", "store"))
    elem, bits = tensor.ptr.elem, bit_width(tensor.ptr.elem)
    if bits not in (8, 16, 32, 64):
        raise AtomError(reason=f"tensor DMA moves elements of 8, 16, 32 or 64 bits, not {elem}")
    leaves = _leaves(tensor.layout, smem_layout, tile)
    dimensions = _dimensions(leaves, smem_layout)
    if dimensions[0].stride != 1:
        raise AtomError(
            reason=f"the contiguous mode of the tensor `{tensor.layout}` and of LDS "
            f"`{smem_layout}` must be the same"
        )
    pad_interval, pad_amount = _padding(smem_layout)
    padding_codes(pad_interval, pad_amount, bits)
    shape = _share([d.tile for d in reversed(dimensions)], num_warps)
    if pad_interval and prod(shape) % pad_interval:
        raise AtomError(
            reason=f"a warp's share of {prod(shape)} elements is no multiple of the padding "
            f"interval of {pad_interval}"
        )
    cls = TensorLoad if direction == "load" else TensorStore
    profile, rank = tensor.layout.shape, len(dimensions)
    to_tdm = unflatten_tuple(_basis(dimensions, len(leaves), lambda i: rank - 1 - i), profile)
    strides = unflatten_tuple(_basis(dimensions, len(leaves), lambda i: i), profile)
    op = cls(
        tuple(shape), elem, to_tdm, pad_interval, pad_amount, cache_modifier, atomic_barrier
    )
    return CopyAtom(op, bits), CoordTensor((0,) * rank, Layout(profile, strides))


def _basis(dimensions: list[_Dimension], count: int, number: Callable[[int], int]) -> tuple:
    """Return per leaf its dimension as a basis leaf, 0 for leaves that no dimension counts."""
    out: list[Any] = [0] * count
    for i, dimension in enumerate(dimensions):
        for leaf, scale in dimension.scales.items():
            out[leaf] = Basis(scale, (number(i),))
    return tuple(out)


def _leaves(layout: Layout, smem: Layout, tile: Tile) -> list[_Leaf]:
    """Return the tensor's leaves, each with its part of the tile."""
    if type(layout.shape) is not tuple or tile.rank != layout.rank:
        raise AtomError(
            reason=f"the tile {tile} must have one extent for each mode of the tensor `{layout}`"
        )
    if any(type(t) is not int for t in tile.modes) or size(smem) != prod(tile.modes):
        raise AtomError(reason=f"LDS layout `{smem}` does not have the elements of the tile {tile}")
    leaves = []
    for mode, extent in zip(layout_modes(layout), tile.modes):
        leaves += _parts(mode, extent, layout)
    if len(leaves) > MAX_RANK:
        raise AtomError(reason=f"tensor DMA has at most {MAX_RANK} dimensions, got {len(leaves)}")
    return leaves


def _parts(mode: Layout, extent: int, layout: Layout) -> list[_Leaf]:
    """Return a mode's leaves; the tile fills the first of them before it goes on to the next."""
    shapes, strides = leaves_of(mode.shape), leaves_of(mode.stride)
    out, left = [], extent
    for i, (shape, stride) in enumerate(zip(shapes, strides)):
        part = left
        if type(shape) is int and i + 1 < len(shapes) and left > shape:
            if left % shape:
                raise AtomError(
                    reason=f"{extent} elements do not end between the leaves of mode `{mode}` "
                    f"of `{layout}`"
                )
            part = shape
        out.append(_Leaf(shape, stride, part))
        left //= part
    return out


def _dimensions(leaves: list[_Leaf], smem: Layout) -> list[_Dimension]:
    """Return the descriptor's dimensions, the contiguous one first: those of the tile as LDS holds
    them, then the ones that the tile does not extend along.
    """
    parts = Layout(
        tuple(leaf.part for leaf in leaves), tuple(Basis(1, (i,)) for i in range(len(leaves)))
    )
    in_lds_order = composition(parts, right_inverse(make_layout_like(smem)))
    found: list[_Dimension] = []
    steps = zip(leaves_of(in_lds_order.shape), leaves_of(in_lds_order.stride))
    for count, basis in steps:
        if count > 1:
            _extend(found, leaves, count, basis)
    for i, leaf in enumerate(leaves):
        if leaf.part == 1 and leaf.extent != 1 and leaf.stride != 0:
            at = 0 if leaf.stride == 1 else len(found)
            found.insert(at, _Dimension(1, leaf.extent, leaf.stride, {i: 1}))
    if not found:
        raise AtomError(reason=f"LDS layout `{smem}` and the tensor have one element")
    return found


def _extend(found: list[_Dimension], leaves: list[_Leaf], count: int, basis: Basis) -> None:
    """Add the next `count` elements in LDS: to the last dimension where they follow it in memory."""
    at, scale = basis.modes[0], basis.value
    leaf = leaves[at]
    if scale != 1:
        raise AtomError(reason=f"LDS does not hold the elements of tensor dimension {at} in order")
    if leaf.stride == 0:
        found.append(_Dimension(count, leaf.extent, 0, {}))
        return
    last = found[-1] if found else None
    if last and last.scales and _follows(last, leaf) and last.tile * count <= _MAX_TILE:
        last.scales[at] = last.extent
        last.tile, last.extent = last.tile * count, last.extent * leaf.extent
        return
    found.append(_Dimension(count, leaf.extent, leaf.stride, {at: 1}))


def _follows(last: _Dimension, leaf: _Leaf) -> bool:
    """Whether the tile has all of the last dimension and the leaf begins behind it in memory."""
    known = (last.extent, last.stride, leaf.extent, leaf.stride)
    if any(type(x) is not int for x in known):
        return False
    return last.tile == last.extent and leaf.stride == last.stride * last.extent


def _padding(smem: Layout) -> tuple[int, int]:
    """Return (interval, amount) in elements when one mode steps further than what lies below it
    fills.
    """
    merged = coalesce(smem)
    steps = sorted(zip(leaves_of(merged.stride), leaves_of(merged.shape)))
    interval = amount = 0
    expected = 1
    for stride, extent in steps:
        if extent == 1:
            continue
        if gap := stride - expected:
            if expected == 1:
                raise AtomError(reason=f"LDS layout `{smem}` has no contiguous mode")
            if gap < 0 or interval:
                raise AtomError(
                    reason=f"LDS layout `{smem}` is neither compact nor padded at one place"
                )
            interval, amount = expected, gap
        expected = stride * extent
    return interval, amount


def _share(extents: list[int], num_warps: int) -> list[int]:
    """Return one warp's extents: warps cut the outermost dimension down to 1, then the next."""
    out, left = list(extents), num_warps
    for i, extent in enumerate(extents):
        cut = gcd(extent, left)
        out[i], left = extent // cut, left // cut
        if left > 1 and out[i] > 1:
            break
    if num_warps < 1 or left > 1:
        raise AtomError(reason=f"{num_warps} warps cannot share a tile of {extents} evenly")
    return out


def tdm_partition(
    atom: CopyAtom, warp: Any, warp_layout: Layout, smem: LayoutLike, gmem: LayoutLike
) -> tuple[tuple[LayoutLike, Any], tuple[LayoutLike, Any]]:
    """Return ((layout, offset) in LDS, (layout, offset) in the coordinate tensor) of one warp's
    part.

    Both are ((atom, iteration), rest...). Mode 0 of the two tensors is the tile that all warps
    move together; it is cut in the order in which LDS holds it: atom by atom, warp by warp,
    then iterations.

    Shapes   warp: a leaf or a coordinate of `warp_layout`, which maps it to the warp's place
    Raises   AtomError: mode 0 is no multiple of the cooperative tile; warp_layout is no
             bijection
    """
    warps = size(warp_layout)
    if sorted(all_indices(warp_layout)) != list(range(warps)):
        raise AtomError(
            reason="warp layout must bijectively map participants to consecutive IDs starting at "
            f"zero, got `{warp_layout}`"
        )
    values = atom.op.values(atom.val_bits)
    total = size(smem[0])
    if total % (values * warps) or size(gmem[0]) != total:
        raise AtomError(
            reason="tdm_partition_layout: both mode-0 sizes must be multiples of the cooperative "
            f"tile size {values * warps} (atom size * num_warps), got {total} and {size(gmem[0])}"
        )
    outer = smem[0].outer if isinstance(smem, ComposedLayout) else smem[0]
    chunks = Layout((values, warps, total // (values * warps)), (1, values, values * warps))
    order = composition(right_inverse(make_layout_like(outer)), chunks)
    place = crd2idx(warp, warp_layout)
    return _warp_part(smem, order, place), _warp_part(gmem, order, place)


def _warp_part(layout: LayoutLike, order: Layout, place: Any) -> tuple[LayoutLike, Any]:
    def cut(plain: Layout) -> Layout:
        atom, warps, iterations = layout_modes(composition(plain[0], order))
        values = from_modes([coalesce(atom), coalesce(iterations)])
        return from_modes([warps, values, *layout_modes(plain)[1:]])

    return take_thread(on_outer(cut, layout), place)

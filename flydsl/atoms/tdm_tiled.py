"""Tiled tensor DMA (gfx1250): atoms derived from a tensor and its LDS layout, and their
partition over warps.

A tiled atom moves one warp's share of a tile. The tensor is seen through a coordinate tensor
whose basis leaf E0 is the contiguous dimension, so that tiles, slices and partitions are the
algebra's. Neighbours: `tdm` has the operations and the descriptor.
"""

from __future__ import annotations

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
from flydsl.layout.layout import from_modes, layout_modes, on_outer

from .copy_ops import CopyAtom
from .elements import bit_width
from .errors import AtomError, one_of
from .tdm import MAX_RANK, TensorLoad, TensorStore, padding_codes
from .tiled_copy import take_thread

_CONTIGUOUS_BYTES = 16


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

    Shapes   tensor, smem_layout, tile: one mode per dimension, at most five
    Raises   AtomError: a mode that one tensor dimension cannot describe, warps that do not
             divide the tile, LDS that is ordered unlike the tensor; OutOfRange: padding
    """
    one_of("direction", direction, ("load", "store"))
    elem, bits = tensor.ptr.elem, bit_width(tensor.ptr.elem)
    if bits not in (8, 16, 32, 64):
        raise AtomError(reason=f"tensor DMA moves elements of 8, 16, 32 or 64 bits, not {elem}")
    order = _memory_order(tensor.layout, smem_layout, tile)
    extents = [tile.modes[mode] for mode in order]
    pad_interval, pad_amount = _padding(smem_layout, order, extents)
    padding_codes(pad_interval, pad_amount, bits)
    shape = _share(extents, num_warps)
    if shape[-1] * bits < 8 * _CONTIGUOUS_BYTES and num_warps > 1:
        raise AtomError(
            reason=f"{num_warps} warps leave {shape[-1]} contiguous {elem} each, "
            f"less than {_CONTIGUOUS_BYTES} bytes"
        )
    cls = TensorLoad if direction == "load" else TensorStore
    op = cls(
        tuple(shape),
        elem,
        tuple(Basis(1, (mode,)) for mode in order),
        pad_interval,
        pad_amount,
        cache_modifier,
        atomic_barrier,
    )
    return CopyAtom(op, bits), coordinate_tensor(tensor.layout, order)


def coordinate_tensor(layout: Layout, order: list[int]) -> CoordTensor:
    """Return the tensor's coordinates: mode `order[i]` counts dimension rank-1-i."""
    rank = len(order)
    strides: list[Any] = [None] * rank
    for i, mode in enumerate(order):
        strides[mode] = Basis(1, (rank - 1 - i,))
    return CoordTensor((0,) * rank, Layout(layout.shape, tuple(strides)))


def _memory_order(layout: Layout, smem: Layout, tile: Tile) -> list[int]:
    """Return the modes from the outermost to the contiguous one, as both layouts have them."""
    if type(layout.shape) is not tuple or any(type(s) is tuple for s in layout.shape):
        raise AtomError(
            reason=f"a tensor of layout `{layout}` is not one extent and stride per dimension"
        )
    if layout.rank > MAX_RANK:
        raise AtomError(reason=f"tensor DMA has at most {MAX_RANK} dimensions, got {layout.rank}")
    modes = [coalesce(m) for m in layout_modes(smem)]
    if (
        smem.rank != layout.rank
        or tile.rank != layout.rank
        or any(type(m.shape) is tuple for m in modes)
    ):
        raise AtomError(
            reason=f"LDS layout `{smem}` and tile {tile} must have the {layout.rank} modes of `{layout}`"
        )
    extents = [size(m) for m in layout_modes(smem)]
    if extents != list(tile.modes):
        raise AtomError(reason=f"LDS layout `{smem}` does not have the shape of the tile {tile}")
    strides = _strides(smem)
    order = sorted(range(layout.rank), key=lambda i: strides[i])
    contiguous = order[0]
    if strides[contiguous] != 1 or layout.stride[contiguous] != 1:
        raise AtomError(
            reason=f"the contiguous mode of the tensor `{layout}` and of LDS `{smem}` must be the same"
        )
    return order[::-1]


def _strides(smem: Layout) -> list[int]:
    """Return the stride at which each mode's elements begin to repeat, also of modes of extent
    1.
    """
    out = []
    for mode in layout_modes(smem):
        merged = coalesce(mode)
        out.append(merged.stride if merged.shape != 1 else _only_stride(mode))
    return out


def _only_stride(mode: Layout) -> int:
    while type(mode.stride) is tuple:
        mode = layout_modes(mode)[0]
    return mode.stride


def _padding(smem: Layout, order: list[int], extents: list[int]) -> tuple[int, int]:
    """Return (interval, amount) in elements when one mode steps further than what lies below it
    fills.
    """
    strides = _strides(smem)
    interval = amount = 0
    expected = 1
    for i in range(len(order) - 1, -1, -1):
        stride = strides[order[i]]
        gap = stride - expected
        if gap and extents[i] > 1:
            if gap < 0 or interval:
                raise AtomError(
                    reason=f"LDS layout `{smem}` is neither compact nor padded at one place"
                )
            interval, amount = expected, gap
        expected = stride * extents[i] if extents[i] > 1 else expected
    return interval, amount


def _share(extents: list[int], num_warps: int) -> list[int]:
    """Return one warp's extents: warps halve the outermost dimension until it is 1, then the
    next.
    """
    if num_warps < 1 or num_warps & (num_warps - 1):
        raise AtomError(reason=f"num_warps must be a power of two, got {num_warps}")
    out, left = list(extents), num_warps
    for i in range(len(extents)):
        while left > 1 and out[i] % 2 == 0:
            out[i] //= 2
            left //= 2
    if left > 1:
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

"""Tensor DMA of gfx1250 by descriptors: make one, issue a load or store, move its address, wait.

The words are packed by `flydsl.atoms.tdm`. Every lane of a wave must pass the same descriptor. `cdna5` has the same
unit as copy atoms.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flydsl.atoms import tdm
from flydsl.atoms.errors import AtomError, one_of
from flydsl.expr.rocdl.addresses import global_address, lds_address
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.memory import tensor_load_to_lds, tensor_store_from_lds, zero_words
from flydsl.expr.rocdl.values import const_i32, dsl, i32, require
from flydsl.expr.rocdl.wave import wave_id as _wave_id
from flydsl.expr.rocdl.words import leaf, replaced, vector_of, word_of, words
from flydsl.ir import current, emit1, ir
from flydsl.layout import leaf as algebra
from flydsl.layout.leaf import Sym
from flydsl.utils.record import record

PREFETCH_SCOPE_SE = 8
PREFETCH_SCOPE_DEVICE = 16
_ADDRESS_LOW, _ADDRESS_HIGH, _LDS = 2, 3, 1  # words of group 0
_HIGH_BITS = 0x3FFFFFFF  # of the high word: the address; above it the kind of descriptor
_CACHE_LINE_BYTES = 128
_UNSIGNED_LESS = 6  # arith.cmpi predicate

compute_padding_encoding = tdm.compute_padding_encoding
compute_warp_distribution = tdm.compute_warp_distribution


@record
class TDMDescriptor2D:
    """Descriptor of a tile of a two-dimensional tensor: 4 and 8 words."""

    dgroup0: Any
    dgroup1: Any


@record
class TDMGatherDescriptor:
    """Descriptor of rows picked by their numbers: 4, 8, 4 and 4 words."""

    dgroup0: Any
    dgroup1: Any
    dgroup2: Any
    dgroup3: Any


def make_tensor_descriptor_2d(
    global_ptr: Any,
    lds_memref: Any,
    global_offset: tuple,
    tensor_shape: tuple[Any, Any],
    strides: tuple[Any, Any],
    tile_shape: tuple[int, int],
    elem_bytes: int = 2,
    pad_interval: int = 0,
    pad_amount: int = 0,
    num_warps: int = 1,
    cache_policy: int = 0,
    pred: Any = 1,
    workgroup_mask: Any = 0,
    lds_byte_offset: Any = None,
    for_store: bool = False,
    atomic_barrier_enable: bool = False,
    early_timeout: bool = False,
    oob_outer_bound: Any = None,
    oob_inner_bound: Any = None,
) -> TDMDescriptor2D:
    """Return this wave's descriptor of its share of a tile.

    Shapes   pairs are (outer, inner); the inner stride is 1. `tensor_shape` does not bound the copy: `oob_outer_bound`
             does, counted from the start of the tensor, and `oob_inner_bound`, counted from the start of the tile
    Units    offsets, shapes, strides, padding in elements; lds_byte_offset in bytes
    Raises   AtomError: padding within the rows of a store, warps that do not fit
    """
    require("tdm", "tdm_ops.make_tensor_descriptor_2d")
    bits = 8 * elem_bytes
    padding = tdm.padding_codes(pad_interval, pad_amount, bits)
    warps, shares = tdm.compute_warp_distribution(tile_shape, num_warps)
    with words():
        warp = leaf(_wave_id()) if num_warps > 1 else 0
        starts = [algebra.mul(p, share) for p, share in zip(tdm.warp_coord(warp, warps), shares)]
        linear = algebra.add(algebra.mul(starts[0], tile_shape[1]), starts[1])
        place = tdm.padded_offset(linear, pad_interval, pad_amount)
        view = tdm.TileView(
            elem_bits=bits,
            tile=(shares[1] + _store_padding(for_store, pad_interval, pad_amount, shares[1]), shares[0]),
            extents=_extents(shares, starts, global_offset, oob_outer_bound, oob_inner_bound),
            strides=(leaf(strides[0], 64),),
            global_address=_moved(global_ptr, global_offset, starts, strides, elem_bytes),
            lds_address=_lds_place(lds_memref, place, elem_bytes, lds_byte_offset),
            padding=None if for_store else padding,
            workgroup_mask=leaf(workgroup_mask),
            atomic_barrier=atomic_barrier_enable,
            early_timeout=early_timeout,
            valid=leaf(pred),
        )
        group0, group1, *_ = tdm.pack_descriptor(view)
        return TDMDescriptor2D(vector_of(group0), vector_of(group1))


def _store_padding(for_store: bool, interval: int, amount: int, row: int) -> int:
    """Return the padding at the end of each row, which a store reads as part of the row and drops beyond the extent."""
    if not for_store or not interval:
        return 0
    if interval != row:
        raise AtomError(reason=f"a store cannot skip padding every {interval} elements within rows of {row}")
    return amount


def _extents(shares: list[int], starts: list, offset: tuple, outer: Any, inner: Any) -> tuple:
    """Return (inner, outer) extents past which lanes read 0 and drop stores."""
    first = shares[1] if inner is None else leaf(inner)
    if outer is None:
        return first, shares[0]
    begin = algebra.add(leaf(offset[0]), starts[0])
    left = algebra.sub(leaf(outer), begin)
    if isinstance(left, Sym):
        return first, algebra.emit("max", left, 0, left.width, 1)
    return first, max(left, 0)


def _moved(global_ptr: Any, offset: tuple, starts: list, strides: tuple, elem_bytes: int) -> Sym:
    moved = 0
    for o, start, stride in zip(offset, starts, strides):
        at = algebra.add(leaf(o, 64), start)
        moved = algebra.add(moved, algebra.mul(at, leaf(stride, 64)))
    return algebra.add(leaf(global_address(global_ptr), 64), algebra.mul(moved, elem_bytes))


def _lds_place(memref: Any, place: int | Sym, elem_bytes: int, byte_offset: Any) -> Sym:
    base = leaf(lds_address(memref))
    if byte_offset is not None:
        base = algebra.add(base, leaf(byte_offset))
    return algebra.add(base, algebra.mul(place, elem_bytes))


def make_tensor_gather_descriptor(
    global_ptr: Any,
    lds_memref: Any,
    row_indices: Sequence[Any],
    row_width: int,
    tensor_dim0: Any,
    tensor_dim1: Any,
    stride: Any,
    elem_bytes: int = 1,
    pad_interval: int = 0,
    pad_amount: int = 0,
    index_size: int = 32,
    gather_tile_dim1: int | None = None,
    lds_byte_offset: Any = None,
    global_byte_offset: Any = None,
    workgroup_mask: Any = 0,
) -> TDMGatherDescriptor:
    """Return the descriptor of whole rows picked by number: at most 8 numbers of 32 bits, or 16 of 16 bits.

    Units    row_width, tensor_dim0 (inner), tensor_dim1 (rows), stride in elements
    Raises   OutOfRange: too many rows
    """
    require("tdm", "tdm_ops.make_tensor_gather_descriptor")
    bits = 8 * elem_bytes
    with words():
        view = tdm.TileView(
            elem_bits=bits,
            tile=(row_width, len(row_indices) if gather_tile_dim1 is None else gather_tile_dim1),
            extents=(leaf(tensor_dim0), leaf(tensor_dim1)),
            strides=(leaf(stride, 64),),
            global_address=_byte_moved(global_address(global_ptr), global_byte_offset, 64),
            lds_address=_byte_moved(lds_address(lds_memref), lds_byte_offset, 32),
            padding=tdm.padding_codes(pad_interval, pad_amount, bits),
            workgroup_mask=leaf(workgroup_mask),
        )
        groups = tdm.pack_gather_descriptor(view, [leaf(r) for r in row_indices], index_size)
        return TDMGatherDescriptor(*(vector_of(g) for g in groups[:4]))


def make_tensor_gather_dgroup0(
    global_ptr: Any,
    lds_memref: Any,
    *,
    index_size: int = 32,
    lds_byte_offset: Any = None,
    global_byte_offset: Any = None,
) -> ir.Value:
    """Return group 0 of a gather descriptor for other addresses; the rest of a descriptor can be kept."""
    one_of("index_size", index_size, tdm.GATHER_ROWS)
    with words():
        view = tdm.TileView(
            elem_bits=8, tile=(1, 1), extents=(1, 1), strides=(1,),
            global_address=_byte_moved(global_address(global_ptr), global_byte_offset, 64),
            lds_address=_byte_moved(lds_address(lds_memref), lds_byte_offset, 32),
        )  # fmt: skip
        return vector_of(tdm.pack_gather_descriptor(view, [0], index_size)[0])


def _byte_moved(address: ir.Value, offset: Any, width: int) -> Sym:
    base = leaf(address, width)
    return base if offset is None else algebra.add(base, leaf(offset, width))


# --- issue and wait --------------------------------------------------------------------------------------------------


def tensor_load_2d(desc: TDMDescriptor2D, cache_policy: int = 0) -> None:
    """Load the tile into LDS."""
    tensor_load_to_lds(desc.dgroup0, desc.dgroup1, zero_words(4), zero_words(4), zero_words(8), cache_policy)


def tensor_store_2d(desc: TDMDescriptor2D, cache_policy: int = 0) -> None:
    """Store the tile from LDS."""
    tensor_store_from_lds(desc.dgroup0, desc.dgroup1, zero_words(4), zero_words(4), zero_words(8), cache_policy)


def tensor_load_gather(desc: TDMGatherDescriptor, cache_policy: int = 0) -> None:
    """Load the picked rows into LDS."""
    groups = (desc.dgroup0, desc.dgroup1, desc.dgroup2, desc.dgroup3)
    tensor_load_to_lds(*groups, zero_words(8), cache_policy)


def tensor_store_gather(desc: TDMGatherDescriptor, cache_policy: int = 0) -> None:
    """Store LDS to the picked rows."""
    groups = (desc.dgroup0, desc.dgroup1, desc.dgroup2, desc.dgroup3)
    tensor_store_from_lds(*groups, zero_words(8), cache_policy)


def tensor_wait(count: int = 0) -> None:
    """Wait until at most `count` tensor operations of the wave are unfinished."""
    builder("s_wait_tensorcnt")(count)


# --- moving a descriptor ---------------------------------------------------------------------------------------------


def add_addr_with_carry(base_addr_lo: Any, base_addr_hi: Any, delta_i32: Any) -> tuple[Any, Any]:
    """Return (low, high) word of a 64-bit address plus an unsigned 32-bit distance."""
    types = current().types
    low, high = i32(base_addr_lo), i32(base_addr_hi)
    moved = emit1("arith.addi", types.i32, (low, i32(delta_i32)))
    predicate = {"predicate": ir.IntegerAttr.get(types.i64, _UNSIGNED_LESS)}
    carry = emit1("arith.extui", types.i32, (emit1("arith.cmpi", types.i1, (moved, low), predicate),))
    return dsl(None, moved), dsl(None, emit1("arith.addi", types.i32, (high, carry)))


def _with_low(desc: Any, low: Any) -> Any:
    return replace(desc, dgroup0=replaced(desc.dgroup0, _ADDRESS_LOW, low))


def _with_low_high(desc: Any, low: Any, high: Any) -> Any:
    types = current().types
    kind = emit1("arith.andi", types.i32, (word_of(desc.dgroup0, _ADDRESS_HIGH), const_i32(~_HIGH_BITS)))
    address = emit1("arith.andi", types.i32, (i32(high), const_i32(_HIGH_BITS)))
    word = emit1("arith.ori", types.i32, (kind, address))
    group = replaced(replaced(desc.dgroup0, _ADDRESS_LOW, low), _ADDRESS_HIGH, word)
    return replace(desc, dgroup0=group)


def update_tensor_descriptor_2d_addr_lo(desc: TDMDescriptor2D, new_addr_lo: Any) -> TDMDescriptor2D:
    """Return the descriptor with another low word of the global address."""
    return _with_low(desc, new_addr_lo)


def update_tensor_descriptor_2d_addr_lo_hi(
    desc: TDMDescriptor2D, new_addr_lo: Any, new_addr_hi: Any
) -> TDMDescriptor2D:
    """Return the descriptor with another global address; the kind in the high word is kept."""
    return _with_low_high(desc, new_addr_lo, new_addr_hi)


def update_tensor_descriptor_2d_addr64(
    desc: TDMDescriptor2D, base_addr_lo: Any, base_addr_hi: Any, delta_i32: Any
) -> TDMDescriptor2D:
    """Return the descriptor at base + delta bytes."""
    return _with_low_high(desc, *add_addr_with_carry(base_addr_lo, base_addr_hi, delta_i32))


def update_tensor_descriptor_2d_lds_addr(desc: TDMDescriptor2D, new_lds_addr: Any) -> TDMDescriptor2D:
    """Return the descriptor with another LDS address."""
    return replace(desc, dgroup0=replaced(desc.dgroup0, _LDS, new_lds_addr))


def update_tensor_gather_descriptor_addr_lo(desc: TDMGatherDescriptor, new_addr_lo: Any) -> TDMGatherDescriptor:
    """Return the descriptor with another low word of the global address."""
    return _with_low(desc, new_addr_lo)


def update_tensor_gather_descriptor_addr_lo_hi(
    desc: TDMGatherDescriptor, new_addr_lo: Any, new_addr_hi: Any
) -> TDMGatherDescriptor:
    """Return the descriptor with another global address; the kind in the high word is kept."""
    return _with_low_high(desc, new_addr_lo, new_addr_hi)


def update_tensor_gather_descriptor_addr64(
    desc: TDMGatherDescriptor, base_addr_lo: Any, base_addr_hi: Any, delta_i32: Any
) -> TDMGatherDescriptor:
    """Return the descriptor at base + delta bytes."""
    return _with_low_high(desc, *add_addr_with_carry(base_addr_lo, base_addr_hi, delta_i32))


def l2_prefetch_tile(
    global_ptr: Any,
    global_offset: tuple,
    tile_shape: tuple[int, int],
    strides: tuple[Any, Any],
    elem_bytes: int = 2,
    num_warps: int = 1,
    wave_id: Any = None,
    thread_id: Any = None,
    block_threads: int = 256,
    scope: int = PREFETCH_SCOPE_SE,
) -> None:
    """Ask for the lines of a tile to be brought into the L2 cache; the threads of the block share them out."""
    require("tdm", "tdm_ops.l2_prefetch_tile")
    types = current().types
    per_row = -(-tile_shape[1] * elem_bytes // _CACHE_LINE_BYTES)
    lines = tile_shape[0] * per_row
    with words():
        thread = leaf(emit1("rocdl.workitem.id.x", types.i32) if thread_id is None else thread_id)
        for first in range(0, lines, block_threads):
            line = algebra.minimum(algebra.add(thread, first), lines - 1)
            row, byte = algebra.div(line, per_row), algebra.mul(algebra.mod(line, per_row), _CACHE_LINE_BYTES)
            at = _moved(global_ptr, global_offset, [row, 0], strides, elem_bytes)
            address = algebra.add(at, byte)
            pointer = emit1("llvm.inttoptr", types.llvm_ptr(1), (address.value,))
            builder("global_prefetch")(pointer, cache_policy=scope)

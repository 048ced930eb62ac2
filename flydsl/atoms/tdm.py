"""Tensor DMA of gfx1250: the atoms, how warps share a tile, padding codes and descriptor words.

Dimensions are listed outermost first, as tile shapes are written; the descriptor numbers them
from the innermost. Extents, strides and addresses may be dynamic leaves; a word made from a
64-bit leaf is truncated to 32 bits by whoever stores it. Neighbours: `tdm_tiled` derives these
atoms from tensors. Source: LLVM's gfx1250 documentation of `tensor_load_to_lds` for the fields;
tests/diff/test_atoms_oracle.py compares every word with the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from flydsl.layout import leaf
from flydsl.layout.int_tuple import to_str
from flydsl.utils.record import record

from .copy_ops import GLOBAL, SHARED, CopyOp
from .elements import bit_width
from .errors import AtomError, OutOfRange, one_of

MAX_RANK = 5
UNBOUNDED = 0x7FFFFFFF
_DWORD_BITS = 32
_TENSOR_TYPE = 2 << 30
_PAD_INTERVALS = range(1, 9)  # log2 of the interval in dwords: 2 to 256
_PAD_AMOUNTS = range(1, 129)  # dwords


@record
class _TensorDma(CopyOp):
    """What the tensor copies share: one instruction moves a whole tile and is counted by
    tensorcnt.
    """

    feature: ClassVar[str] = "tdm"
    is_asynchronous: ClassVar[bool] = True
    is_whole_tile: ClassVar[bool] = True


@record
class TDM(_TensorDma):
    """A tile of a raw global tensor to or from LDS, shared out over `warps` warps; direction by
    the memories.
    """

    rank: int
    warps: int = 1
    pad_interval: int = 0
    pad_amount: int = 0
    cache: int = 0
    atomic_barrier: bool = False
    early_timeout: bool = False

    key: ClassVar[str] = "tdm"
    name: ClassVar[str] = "fly_rocdl.gfx1250.tdm"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((GLOBAL, SHARED), (SHARED, GLOBAL))

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= MAX_RANK:
            raise OutOfRange(subject="rank of TDM", expected=f"in [1, {MAX_RANK}]", value=self.rank)
        if self.warps < 1 or self.warps & (self.warps - 1):
            raise OutOfRange(subject="num_warps", expected="a power of two", value=self.warps)
        if bool(self.pad_interval) != bool(self.pad_amount):
            raise OutOfRange(
                subject="pad_interval and pad_amount",
                expected="both 0 or both positive",
                value=(self.pad_interval, self.pad_amount),
            )

    bits = 1  # moves a tile, not a number of bits per thread

    def values(self, val_bits: int) -> int:
        return 1

    @property
    def parameters(self) -> str:
        return (
            f"rank = {self.rank}, warps = {self.warps}, pad = {self.pad_interval}, {self.pad_amount}, "
            f"cache = {self.cache}, barrier = {str(self.atomic_barrier).lower()}, "
            f"timeout = {str(self.early_timeout).lower()}"
        )

    @property
    def state_fields(self) -> dict[str, str]:
        """extent_i and stride_i count from the outermost dimension; the innermost has no
        stride.
        """
        extents = {f"extent_{i}": "i32" for i in range(self.rank)}
        strides = {f"stride_{i}": "i64" for i in range(self.rank - 1)}
        return {**extents, **strides, "imm_offset": "i64", "workgroup_mask": "i32"}


_TENSOR_FACTS = ("tensor_extent", "tensor_stride")


@record
class _TiledTensorDma(_TensorDma):
    """One warp's tile `shape` (outermost first) of a tensor seen through a coordinate tensor.

    Shapes   tensor2tdm: per leaf of the tensor its dimension of `shape` as a basis leaf, 0 for none
    """

    shape: tuple[int, ...]
    elem: str
    tensor2tdm: Any
    pad_interval: int = 0
    pad_amount: int = 0
    cache: int = 0
    atomic_barrier: bool = False

    @property
    def state_fields(self) -> dict[str, str]:
        """atomic_barrier_addr is a byte address in LDS; only a copy with `atomic_barrier` has it."""
        barrier = {"atomic_barrier_addr": "i32"} if self.atomic_barrier else {}
        return {"workgroup_mask": "i32", "early_timeout": "i1", **barrier, "boundary_check": "i1"}

    def check_state(self, field: str) -> str:
        """Return the type of a state field; what the atom holds of its tensor (`tensor_*`) is state that only
        `make_tiled_tdm_atom` sets.
        """
        name, _, mode = field.rpartition("_")
        if field == "tensor_base" or name in _TENSOR_FACTS and mode.isdigit():
            return "i32" if name == "tensor_extent" else "i64"
        return super().check_state(field)

    @property
    def bits(self) -> int:
        """Bits of the whole tile."""
        return self.values(0) * bit_width(self.elem)

    def values(self, val_bits: int) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def parameters(self) -> str:
        text = f"shape = [{', '.join(map(str, self.shape))}], elem = {self.elem}, tensor2tdm = {to_str(self.tensor2tdm)}"
        if self.atomic_barrier:
            text += ", atomicBarrier = true"
        if self.cache:
            text += f", cacheModifier = {self.cache}"
        if self.pad_interval:
            text += f", padInterval = {self.pad_interval}, padAmount = {self.pad_amount}"
        return text


@record
class TensorLoad(_TiledTensorDma):
    """Global tensor to LDS; may insert padding."""

    key: ClassVar[str] = "tensor_load"
    name: ClassVar[str] = "fly_rocdl.cdna5.tensor_load"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((GLOBAL, SHARED),)


@record
class TensorStore(_TiledTensorDma):
    """LDS to global tensor; padding cannot be skipped on the way back."""

    key: ClassVar[str] = "tensor_store"
    name: ClassVar[str] = "fly_rocdl.cdna5.tensor_store"
    spaces: ClassVar[tuple[tuple[str, str], ...]] = ((SHARED, GLOBAL),)

    def __post_init__(self) -> None:
        if self.pad_interval:
            raise AtomError(reason="a tensor store cannot read padded LDS")


def compute_padding_encoding(
    pad_interval_elems: int, pad_amount_elems: int, elem_bits: int = 16
) -> tuple[int, int]:
    """Return the codes (log2(interval dwords) - 1, amount dwords - 1); (0, 0) means no padding.

    An amount below one dword switches padding off. An interval that is no power of two dwords
    is an AssertionError, as in the reference's helper of this name.
    """
    interval = pad_interval_elems * elem_bits // _DWORD_BITS
    amount = pad_amount_elems * elem_bits // _DWORD_BITS
    if interval <= 0 or amount <= 0:
        return 0, 0
    assert interval & (interval - 1) == 0, (
        f"pad interval of {interval} dwords is not a power of two"
    )
    return interval.bit_length() - 2, amount - 1


def padding_codes(pad_interval: int, pad_amount: int, elem_bits: int) -> tuple[int, int] | None:
    """Return the (interval, amount) codes of a padding in elements, None without padding.

    Raises   OutOfRange: not whole dwords, or outside of what the fields hold
    """
    if not pad_interval and not pad_amount:
        return None
    interval, amount = pad_interval * elem_bits, pad_amount * elem_bits
    dwords = interval // _DWORD_BITS
    if (
        interval % _DWORD_BITS
        or dwords & (dwords - 1)
        or dwords.bit_length() - 1 not in _PAD_INTERVALS
    ):
        raise OutOfRange(
            subject="pad_interval",
            expected="2 to 256 dwords, a power of two",
            value=f"{pad_interval} elements of {elem_bits} bits",
        )
    if amount % _DWORD_BITS or amount // _DWORD_BITS not in _PAD_AMOUNTS:
        raise OutOfRange(
            subject="pad_amount",
            expected="1 to 128 whole dwords",
            value=f"{pad_amount} elements of {elem_bits} bits",
        )
    return dwords.bit_length() - 2, amount // _DWORD_BITS - 1


def compute_warp_distribution(
    block_shape: Sequence[int], num_warps: int
) -> tuple[list[int], list[int]]:
    """Return (warps per dimension, extents per warp), filling the outermost dimension first.

    Each dimension takes the largest power of two that neither it nor the warps left over
    exceed.
    """
    left, warps, extents = num_warps, [], []
    for extent in block_shape:
        here = 1
        while here * 2 <= extent and here * 2 <= left:
            here *= 2
        left //= here
        warps.append(here)
        extents.append(-(-extent // here))
    if left > 1:
        raise AtomError(reason=f"{num_warps} warps do not fit on a tile of {list(block_shape)}")
    return warps, extents


def _and(a: Any, mask: int) -> Any:
    return leaf.bits("and", a, mask)


def _or(*parts: Any) -> Any:
    out: Any = 0
    for part in parts:
        out = (
            part
            if type(out) is int and out == 0
            else out
            if type(part) is int and part == 0
            else leaf.bits("or", out, part)
        )
    return out


def _shl(a: Any, n: int) -> Any:
    return leaf.bits("shl", a, n)


def _shr(a: Any, n: int) -> Any:
    return leaf.bits("shr", a, n)


def _low16(a: Any) -> Any:
    return _and(a, 0xFFFF)


def _in_high16(a: Any) -> Any:
    return _shl(_and(a, 0xFFFF), 16)


@record
class TileView:
    """What one warp's descriptor says; lists are innermost first.

    Units    strides in elements (that of dimension 0 is 1 and left out); lds_address,
             global_address, atomic_barrier_addr (a multiple of 8 in LDS) in bytes
    """

    elem_bits: int
    tile: tuple[int, ...]
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]
    global_address: Any
    lds_address: Any
    padding: tuple[int, int] | None = None
    workgroup_mask: Any = 0
    atomic_barrier: bool = False
    atomic_barrier_addr: Any = 0
    early_timeout: Any = False
    valid: Any = 1

    def at(self, which: str, i: int) -> Any:
        """Return element i of a list, 0 past its end."""
        values = getattr(self, which)
        return values[i] if i < len(values) else 0


def pack_descriptor(view: TileView) -> tuple[tuple, tuple, tuple, tuple, tuple]:
    """Return the five groups of dwords (4, 8, 4, 4, 8) that the instruction takes."""
    return _group0(view), _group1(view), _group2(view), _group3(view), (0,) * 8


def _group0(v: TileView) -> tuple:
    low = _and(v.global_address, 0xFFFFFFFF)
    high = _or(_and(_shr(v.global_address, 32), 0x1FFFFFF), _TENSOR_TYPE)
    return v.valid, v.lds_address, low, high


def _flags(v: TileView) -> int:
    size_code = (v.elem_bits // 8).bit_length() - 1
    word = size_code << 16 | v.atomic_barrier << 18
    if v.padding is not None:
        word |= 1 << 20 | v.padding[0] << 22 | v.padding[1] << 25
    return word


def _group1(v: TileView) -> tuple:
    timeout = (
        v.early_timeout << 21 if isinstance(v.early_timeout, int) else _shl(v.early_timeout, 21)
    )
    extent0, extent1 = v.at("extents", 0), v.at("extents", 1)
    stride0, stride1 = v.at("strides", 0), v.at("strides", 1)
    return (
        _or(_flags(v), timeout, _low16(v.workgroup_mask)),
        _or(_low16(_shr(v.atomic_barrier_addr, 3)), _in_high16(extent0)),
        _or(_low16(_shr(extent0, 16)), _in_high16(extent1)),
        _or(_low16(_shr(extent1, 16)), v.at("tile", 0) << 16),
        v.at("tile", 1) | v.at("tile", 2) << 16,
        _and(stride0, 0xFFFFFFFF),
        _or(_low16(_shr(stride0, 32)), _in_high16(stride1)),
        _and(_shr(stride1, 16), 0xFFFFFFFF),
    )


def _group2(v: TileView) -> tuple:
    stride2 = v.at("strides", 2)
    return (
        v.at("extents", 2),
        v.at("extents", 3),
        _and(stride2, 0xFFFFFFFF),
        _or(_low16(_shr(stride2, 32)), v.at("tile", 3) << 16),
    )


def _group3(v: TileView) -> tuple:
    stride3, extent4 = v.at("strides", 3), v.at("extents", 4)
    return (
        _and(stride3, 0xFFFFFFFF),
        _or(_low16(_shr(stride3, 32)), _in_high16(extent4)),
        _or(_low16(_shr(extent4, 16)), v.at("tile", 4) << 16),
        0,
    )


_GATHER, _WIDE_INDEX = 1 << 31, 1 << 30
GATHER_ROWS = {16: 16, 32: 8}


def pack_gather_descriptor(
    view: TileView, rows: Sequence[Any], index_bits: int = 32
) -> tuple[tuple, tuple, tuple, tuple, tuple]:
    """Return the five groups of a gather or scatter of whole rows, chosen by their numbers.

    Shapes   view: two dimensions, tile (row width, number of rows); rows: at most 8 of 32 bits or
             16 of 16 bits
    Raises   OutOfRange: too many rows, or an index width that does not exist
    """
    one_of("index_size", index_bits, GATHER_ROWS)
    if not 0 < len(rows) <= GATHER_ROWS[index_bits]:
        raise OutOfRange(
            subject="number of row indices",
            expected=f"in [1, {GATHER_ROWS[index_bits]}] for {index_bits}-bit indices",
            value=len(rows),
        )
    first, *rest = _group0(view)
    mode = _GATHER | (_WIDE_INDEX if index_bits == 32 else 0)
    words = _index_words(rows, index_bits)
    return (_or(first, mode), *rest), _group1(view), words[:4], words[4:], (0,) * 8


def _index_words(rows: Sequence[Any], index_bits: int) -> tuple:
    padded = [*rows, *[0] * (GATHER_ROWS[index_bits] - len(rows))]
    if index_bits == 32:
        return tuple(padded)
    return tuple(_or(_low16(low), _in_high16(high)) for low, high in zip(padded[::2], padded[1::2]))


def warp_coord(warp: Any, warps: Sequence[int]) -> tuple:
    """Return a warp's place per dimension, outermost first and fastest."""
    out = []
    for count in warps:
        out.append(leaf.mod(warp, count))
        warp = leaf.div(warp, count)
    return tuple(out)


def padded_offset(offset: Any, pad_interval: int, pad_amount: int) -> Any:
    """Return where an element of the compact tile lies in padded LDS, in elements."""
    if not pad_interval:
        return offset
    return leaf.add(offset, leaf.mul(leaf.div(offset, pad_interval), pad_amount))


def tdm_view(
    op: TDM,
    elem: str,
    tile: Sequence[int],
    extents: Sequence[Any],
    strides: Sequence[Any],
    global_address: Any,
    lds_address: Any,
    warp: Any = 0,
    **state: Any,
) -> TileView:
    """Return what one warp's descriptor says about its share of a tile.

    Shapes   tile, extents: outermost first; strides: the same without the innermost, in
             elements
    Raises   OutOfRange, AtomError: widths, padding or warps that the unit cannot take
    """
    elem_bits = bit_width(elem)
    if elem_bits not in (8, 16, 32, 64):
        raise OutOfRange(
            subject="element width of TDM", expected="8, 16, 32 or 64 bits", value=elem_bits
        )
    if not len(tile) == len(extents) == op.rank:
        raise AtomError(
            reason=f"{op.short} wants {op.rank} extents, got {len(tile)} and {len(extents)}"
        )
    warps, shares = compute_warp_distribution(tile, op.warps)
    steps = [*strides, 1]
    moved, left, linear = 0, [], 0
    for i, (place, share) in enumerate(zip(warp_coord(warp, warps), shares)):
        start = leaf.mul(place, share)
        moved = leaf.add(moved, leaf.mul(start, steps[i]))
        linear = leaf.add(linear, leaf.mul(start, _product(tile[i + 1 :])))
        left.append(_remaining(extents[i], start))
    lds = padded_offset(linear, op.pad_interval, op.pad_amount)
    offset = leaf.add(leaf.mul(moved, elem_bits // 8), state.pop("imm_offset", 0))
    return TileView(
        elem_bits,
        tuple(reversed(shares)),
        tuple(reversed(left)),
        tuple(reversed(list(strides))),
        leaf.add(global_address, offset),
        leaf.add(lds_address, leaf.mul(lds, elem_bits // 8)),
        padding_codes(op.pad_interval, op.pad_amount, elem_bits),
        atomic_barrier=op.atomic_barrier,
        early_timeout=op.early_timeout,
        **state,
    )


def _product(extents: Sequence[int]) -> int:
    out = 1
    for extent in extents:
        out *= extent
    return out


def _remaining(extent: Any, start: Any) -> Any:
    """Return how much of a dimension lies past `start`, never negative."""
    rest = leaf.sub(extent, start)
    if type(rest) is int:
        return max(rest, 0)
    return leaf.sub(extent, leaf.minimum(start, extent))


__all__ = [
    "MAX_RANK",
    "TDM",
    "TensorLoad",
    "TensorStore",
    "TileView",
    "UNBOUNDED",
    "compute_padding_encoding",
    "compute_warp_distribution",
    "GATHER_ROWS",
    "pack_descriptor",
    "pack_gather_descriptor",
    "padded_offset",
    "padding_codes",
    "tdm_view",
    "warp_coord",
]

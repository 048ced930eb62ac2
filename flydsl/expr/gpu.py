"""`fx.gpu`: who am I, barriers, shuffles, shared memory."""

from __future__ import annotations

from typing import Any

from flydsl import arch
from flydsl.diag import ShuffleMode, ShuffleValue, ShuffleWidth
from flydsl.dialects.values import SHARED
from flydsl.expr.enum import AddressSpace
from flydsl.expr.kernel_scope import DYNAMIC_ALIGN, at_entry, dynamic_shared_symbol, index_at_entry, kernel_owner
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.base import wrap as wrap_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Int4, Int8, Int16, Int32, Int64, Uint8
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.pointers import Pointer, recast_iter, static_pointer
from flydsl.expr.shared import SharedAllocator
from flydsl.expr.struct import Arena, Array, Empty, Storage
from flydsl.expr.tuple3d import Tuple3D
from flydsl.ir import current, emit, get_context, ir
from flydsl.layout.view import Ptr

_DIMENSIONS = ("x", "y", "z")
_INTEGER = {4: Int4, 8: Int8, 16: Int16}


def _dimension(dim: Any) -> str:
    name = str(getattr(dim, "name", dim)).rpartition(".")[2]
    if name not in _DIMENSIONS:
        name = _DIMENSIONS[int(dim)]
    return name


def _attrs(dim: str) -> dict:
    types = current().types
    attrs = types.memo.get(("gpu dim", dim))
    if attrs is None:
        attrs = types.memo["gpu dim", dim] = {"dimension": ir.Attribute.parse(f"#gpu<dim {dim}>", current().context)}
    return attrs


def _factory(op: str) -> Any:
    def read(dim: str) -> Int32:
        kernel_owner(f"fx.{op}")
        return wrap_scalar(Int32, at_entry((op, dim), op, _attrs(dim), f"fx.{op}"))

    return read


thread_idx = Tuple3D(_factory("gpu.thread_id"))
block_idx = Tuple3D(_factory("gpu.block_id"))
block_dim = Tuple3D(_factory("gpu.block_dim"))
grid_dim = Tuple3D(_factory("gpu.grid_dim"))


def thread_id(dim: Any = "x") -> ArithValue:
    """Return the thread's number in its block, as a raw `index` value."""
    return _index("gpu.thread_id", dim)


def block_id(dim: Any = "x") -> ArithValue:
    """Return the block's number in the grid, as a raw `index` value."""
    return _index("gpu.block_id", dim)


def _index(op: str, dim: Any) -> ArithValue:
    name = _dimension(dim)
    return ArithValue(index_at_entry((op, name), op, _attrs(name), op))


def lane_id() -> Int32:
    """Return the thread's place in its wave."""
    return wrap_scalar(Int32, at_entry(("gpu.lane_id",), "gpu.lane_id", None, "fx.gpu.lane_id"))


def num_warp_threads() -> int:
    """Return how many lanes a wave of the chip has."""
    return arch.get(current().arch).wave_size


def known_block_size() -> tuple[int, int, int] | None:
    """Return the block size that is compiled into the kernel, or None where it is known at launch only."""
    block = getattr(kernel_owner("fx.gpu.known_block_size"), "known_block_size", None)
    return None if block is None else tuple(block)


def barrier(*_: Any, **__: Any) -> None:
    """Wait until all threads of the block are here; LDS writes before it are seen by all after it."""
    emit("gpu.barrier")


# --- shuffles ------------------------------------------------------------------------------------------------------


def shuffle(value: Any, offset: Any, width: Any, mode: str = "xor") -> Any:
    """Return `value` as another lane has it; `mode` is xor, up, down or idx, and lanes stay in groups of `width`.

    Outside of the group a lane gets its own value. A lane that is off gives 0 (for up and down: the own value).

    Raises   ShuffleWidth: a constant width that is no power of two up to the wave's size
    """
    mode = str(getattr(mode, "name", mode)).lower()
    if mode not in ("xor", "up", "down", "idx"):
        raise ShuffleMode(mode=mode)
    distance, lanes = raw_scalar(Int32(offset)), raw_scalar(Int32(width))
    _check_width(lanes)
    if hasattr(value, "numel"):
        return _shuffle_vector(value, distance, lanes, mode)
    is_raw = isinstance(value, ir.Value)
    x = from_python_value(value)
    result = _shuffle_scalar(x, distance, lanes, mode)
    return result.ir_value() if is_raw else result


def _check_width(lanes: ir.Value) -> None:
    owner, wave = lanes.owner, num_warp_threads()
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return
    width = ir.IntegerAttr(owner.attributes["value"]).value
    if not 0 < width <= wave or width & (width - 1):
        raise ShuffleWidth(width=width, wave=wave, arch=current().arch)


def _shuffle_scalar(x: Numeric, distance: ir.Value, lanes: ir.Value, mode: str) -> Numeric:
    cls = x.__class__
    if cls.width == 32:
        return wrap_scalar(cls, _shuffle_raw(raw_scalar(x), distance, lanes, mode))
    if cls.width == 64:
        return _by_words(x, distance, lanes, mode)
    if cls.width > 64:
        raise ShuffleValue(got=cls.__name__)
    bits = x if cls.is_integer else x.bitcast(_INTEGER[cls.width])
    moved = wrap_scalar(Int32, _shuffle_raw(raw_scalar(bits.to(Int32)), distance, lanes, mode))
    narrow = moved.to(bits.__class__)
    return narrow if cls.is_integer else narrow.bitcast(cls)


def _by_words(x: Numeric, distance: ir.Value, lanes: ir.Value, mode: str) -> Numeric:
    bits = x.to(Int64) if x.is_integer else x.bitcast(Int64)
    low, high = bits.to(Int32), (bits >> 32).to(Int32)
    words = [wrap_scalar(Int32, _shuffle_raw(raw_scalar(w), distance, lanes, mode)) for w in (low, high)]
    joined = (words[1].to(Int64) << 32) | (words[0].to(Int64) & 0xFFFFFFFF)
    return joined.to(x.__class__) if x.is_integer else joined.bitcast(x.__class__)


def _shuffle_raw(value: ir.Value, distance: ir.Value, lanes: ir.Value, mode: str) -> ir.Value:
    types = current().types
    attrs = types.memo.get(("shuffle", mode))
    if attrs is None:
        attrs = {"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>", current().context)}
        types.memo["shuffle", mode] = attrs
    return emit("gpu.shuffle", (value.type, types.i1), (value, distance, lanes), attrs).results[0]


def _shuffle_vector(value: Any, distance: ir.Value, lanes: ir.Value, mode: str) -> Any:
    bits = value.numel * value.dtype.width
    if bits % 32:
        raise ShuffleValue(got=str(value))
    words = value.bitcast(Int32)
    moved = [_shuffle_scalar(words[i], distance, lanes, mode) for i in range(bits // 32)]
    return type(words).from_elements(moved).bitcast(value.dtype).reshape(value.shape)


def shuffle_xor(value: Any, offset: Any, width: Any) -> Any:
    """Return the value of the lane whose number differs by XOR `offset`."""
    return shuffle(value, offset, width, "xor")


def shuffle_up(value: Any, offset: Any, width: Any) -> Any:
    """Return the value of the lane `offset` below; the lowest lanes keep their own."""
    return shuffle(value, offset, width, "up")


def shuffle_down(value: Any, offset: Any, width: Any) -> Any:
    """Return the value of the lane `offset` above; the highest lanes keep their own."""
    return shuffle(value, offset, width, "down")


def shuffle_idx(value: Any, lane: Any, width: Any) -> Any:
    """Return the value of lane `lane` of the group."""
    return shuffle(value, lane, width, "idx")


# --- shared memory ---------------------------------------------------------------------------------------------------


def get_dyn_shared(dtype: Any = None) -> Pointer:
    """Return the pointer to the dynamic LDS block, whose size the launch states; bytes unless `dtype` is given."""
    symbol = dynamic_shared_symbol("fx.get_dyn_shared")
    base = static_pointer(Ptr("i8", SHARED, DYNAMIC_ALIGN), symbol)
    return base if dtype is None else recast_iter(dtype, base)


def smem_space(int: bool = False) -> Any:
    """Return LDS as a memory space of plain memrefs: the attribute, or its number."""
    return 2 if int else ir.Attribute.parse("#gpu.address_space<workgroup>", get_context())


lds_space = smem_space

__all__ = [
    "AddressSpace",
    "Arena",
    "Array",
    "Empty",
    "SharedAllocator",
    "Storage",
    "Tuple3D",
    "Uint8",
    "barrier",
    "block_dim",
    "block_id",
    "block_idx",
    "get_dyn_shared",
    "grid_dim",
    "known_block_size",
    "lane_id",
    "lds_space",
    "num_warp_threads",
    "shuffle",
    "shuffle_down",
    "shuffle_idx",
    "shuffle_up",
    "shuffle_xor",
    "smem_space",
    "thread_id",
    "thread_idx",
]

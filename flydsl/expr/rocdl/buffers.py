"""Buffer tensors: a global pointer behind a descriptor that checks bounds; and scalar loads through one.

A load out of range gives 0, a store or atomic is dropped. Offsets are 32-bit: beyond 4 GiB, move the pointer first.
"""

from dataclasses import replace
from typing import Any

from flydsl.diag import BufferSize, BufferSpace, RocdlOperand
from flydsl.dialects.values import BUFFER_DESC, GLOBAL
from flydsl.expr.numeric import Int32
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.pointers import buffer_parts
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.values import chip, const_i32, dsl, i32, operand, scalar, static_int
from flydsl.expr.values import FlyValue, build, emit_as, raw, shown
from flydsl.expr.vector import Vector
from flydsl.ir import constant, current, emit1, ir
from flydsl.layout.view import MemRef, Ptr

ALL_BYTES = 0xFFFFFFFF
_s_load = builder("ptr_s_buffer_load")


def make_buffer_tensor(tensor: Any, max_size: bool = True, *, num_records_bytes: Any = None) -> Any:
    """Return the tensor behind a buffer descriptor, with the same layout.

    Units    num_records_bytes: size checked against, an int, Int32 or Int64; without it `max_size` turns checking
    off, and max_size=False takes the extent of the layout Raises   BufferSpace: not a global tensor
    """
    _expect(tensor, MemRef, "make_buffer_tensor")
    pointer, layout = build("fly.get_iter", (tensor,)), build("fly.get_layout", (tensor,))
    size = num_records_bytes
    if size is None and not max_size:
        size = extent_bytes(layout, tensor.plain.ptr.elem)
    return build("fly.make_view", (_buffer_ptr(pointer, size, "make_buffer_tensor"), layout))


def make_buffer_ptr(ptr: Any, num_records_bytes: Any = None) -> Any:
    """Return a global pointer behind a buffer descriptor of that many bytes; None: no bound checking."""
    _expect(ptr, Ptr, "make_buffer_ptr")
    return _buffer_ptr(ptr, num_records_bytes, "make_buffer_ptr")


def get_buffer_rsrc(ptr: Any) -> ir.Value:
    """Return the resource (`!llvm.ptr<8>`) of a buffer pointer or tensor, for raw intrinsics."""
    return _parts(ptr, "get_buffer_rsrc")[0]


def s_buffer_load(ptr: Any, offset: Any, *, count: int = 1, cache_modifier: int = 0) -> Any:
    """Load 1 or 4 consecutive dwords through the scalar cache: an Int32 or a Vector of 4. The offset must be wave-
    uniform.

    Units    offset in elements of the pointer
    """
    if count not in (1, 4):
        raise RocdlOperand(
            name="s_buffer_load",
            param="count",
            expected="1 or 4",
            got=count,
            signature="s_buffer_load(ptr, offset, *, count=1, cache_modifier=0)",
            advice="load in several steps",
        )
    types = current().types
    rsrc, moved = _parts(ptr, "s_buffer_load")
    elem_bits = _bits_of(_pointer_plain(ptr).elem)
    elements = emit1("arith.addi", types.i32, (moved, i32(offset)))
    if elem_bits >= 8:
        at = emit1("arith.muli", types.i32, (elements, const_i32(elem_bits // 8)))
    else:
        at = emit1("arith.divui", types.i32, (elements, const_i32(8 // elem_bits)))
    type_ = types.i32 if count == 1 else types.vector(4, types.i32)
    return dsl(
        Int32 if count == 1 else Vector,
        operand(_s_load(type_, rsrc, at, aux=static_int(cache_modifier, "s_buffer_load", "cache_modifier"))),
    )


def _parts(ptr: Any, function: str) -> tuple[ir.Value, ir.Value]:
    """Return resource and offset in elements."""
    plain = _pointer_plain(ptr)
    if plain is None or plain.space != BUFFER_DESC:
        raise BufferSpace(
            function=function,
            wanted="buffer",
            got=shown(ptr),
            reason="only buffer pointers have a descriptor",
            advice="make one with fx.rocdl.make_buffer_ptr or fx.rocdl.make_buffer_tensor",
        )
    pointer = build("fly.get_iter", (ptr,)) if isinstance(ptr.plain, MemRef) else ptr
    return buffer_parts(pointer)


def _pointer_plain(ptr: Any) -> Ptr | None:
    plain = ptr.plain if isinstance(ptr, FlyValue) else None
    return plain.ptr if isinstance(plain, MemRef) else plain if isinstance(plain, Ptr) else None


def _expect(x: Any, plain: type, function: str) -> None:
    """Refuse what is not a global tensor (MemRef) or pointer (Ptr)."""
    found = _pointer_plain(x)
    if found is None or not isinstance(x.plain, plain) or found.space != GLOBAL:
        what = "tensor" if plain is MemRef else "pointer"
        raise BufferSpace(
            function=function,
            wanted="global",
            got=shown(x),
            reason="a buffer descriptor describes global memory; LDS and registers have none",
            advice=f"pass the {what} as it came in as an argument",
        )


def _buffer_ptr(pointer: FlyValue, size: Any, function: str) -> Any:
    types, plain = current().types, pointer.plain
    flags = chip().buffer.word(bounded=size is not None)
    stride = constant(types.by_name["i16"], 0)
    operands = (raw(pointer), stride, records(size, types), constant(types.i32, flags))
    return emit_as("fly.make_buffer_ptr", replace(plain, space=BUFFER_DESC, value=None), operands)


def records(size: Any, types: Any) -> ir.Value:
    """Return the size in bytes as an i64; 32-bit values are unsigned."""
    if size is None:
        return constant(types.i64, ALL_BYTES)
    if isinstance(size, Numeric) and size.is_static():
        size = int(size.value)
    if isinstance(size, int):
        if not 0 <= size <= ALL_BYTES:
            raise BufferSize(value=size)
        return constant(types.i64, size)
    value = operand(size, None, "make_buffer_tensor", "num_records_bytes")
    if value.type == types.i32:
        return emit1("arith.extui", types.i64, (value,))
    return value if value.type == types.i64 else scalar(value, "Int64")


def extent_bytes(layout: FlyValue, elem: str) -> Any:
    """Return the bytes up to the last element, static or as an i64; at most what a descriptor can hold."""
    extent = build("fly.cosize", (layout,))
    bits = _bits_of(elem)
    if extent.is_static:
        return min(-(-int(extent.plain) * bits // 8), ALL_BYTES)
    types = current().types
    width = types.i64 if getattr(extent.plain, "width", 32) == 64 else types.i32
    value = emit1("fly.get_scalar", width, (raw(extent),))
    if width == types.i32:
        value = emit1("arith.extui", types.i64, (value,))
    bits_total = emit1("arith.muli", types.i64, (value, constant(types.i64, bits)))
    rounded = emit1("arith.addi", types.i64, (bits_total, constant(types.i64, 7))) if bits % 8 else bits_total
    size = emit1("arith.shrui", types.i64, (rounded, constant(types.i64, 3)))
    return emit1("arith.minui", types.i64, (size, constant(types.i64, ALL_BYTES)))


def _bits_of(elem: str) -> int:
    from flydsl.atoms import bit_width

    return bit_width(elem)

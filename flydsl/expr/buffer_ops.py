"""Buffer loads and stores on raw resources, for kernels that count offsets by hand.

A resource is a raw `!llvm.ptr<8>`. A load out of range gives 0, a store is dropped: masks work that way too. Buffer
tensors (`fx.rocdl.make_buffer_tensor` with `fx.copy`) are the layout form of the same instructions.
"""

from typing import Any

from flydsl.diag import BufferAccess, BufferSpace
from flydsl.dialects.values import GLOBAL
from flydsl.expr.numeric import Float32, Index
from flydsl.expr.numeric.base import Numeric, NumericMeta
from flydsl.expr.pointers import Pointer, to_llvm_ptr
from flydsl.expr.rocdl.bits import bit_size, bitcast
from flydsl.expr.rocdl.buffers import extent_bytes, records
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.values import chip, const_i32, dsl, i32, i64, operand, result_type, scalar
from flydsl.expr.tensors import Tensor
from flydsl.expr.values import build, shown
from flydsl.expr.vector import Vector
from flydsl.ir import constant, current, emit1, ir
from flydsl.layout.view import MemRef

__all__ = [
    "buffer_load",
    "buffer_store",
    "create_buffer_resource",
    "create_buffer_resource_from_addr",
    "create_llvm_ptr",
    "extract_base_index",
    "get_element_ptr",
]

_DYNAMIC = -(1 << 31)  # marks an index of llvm.getelementptr that is an operand
_OUT_OF_RANGE = -1  # as unsigned: the last byte offset, outside any descriptor
_LOAD, _STORE, _SCALAR_LOAD = (
    builder("raw_ptr_buffer_load"),
    builder("raw_ptr_buffer_store"),
    builder("ptr_s_buffer_load"),
)


def create_buffer_resource(
    memref: Any, stride: int = 0, max_size: bool = True, *, num_records_bytes: Any = None, base_byte_offset: Any = None
) -> ir.Value:
    """Return a resource over a global tensor, pointer or raw `!llvm.ptr`.

    Units    num_records_bytes: size checked against; without it `max_size` turns checking off and max_size=False
    takes the extent of the tensor; base_byte_offset is added to the address in 64 bits
    """
    base = _base_pointer(memref)
    if base_byte_offset is not None:
        base = get_element_ptr(base, base_byte_offset)
    size = num_records_bytes
    if size is None and not max_size and isinstance(memref, Tensor):
        size = extent_bytes(build("fly.get_layout", (memref,)), memref.plain.ptr.elem)
    return _resource(base, stride, size)


def create_buffer_resource_from_addr(addr_i64: Any, *, num_records_bytes: Any = None) -> ir.Value:
    """Return a resource over the memory at a 64-bit address."""
    return _resource(create_llvm_ptr(addr_i64, 1), 0, num_records_bytes)


def _resource(base: ir.Value, stride: int, size: Any) -> ir.Value:
    types = current().types
    flags = constant(types.i32, chip().buffer.word(bounded=size is not None))
    args = (base, constant(types.i16, int(stride)), records(size, types), flags)
    return emit1("rocdl.make.buffer.rsrc", types.llvm_ptr(8), args)


def _base_pointer(x: Any) -> ir.Value:
    if isinstance(x, Tensor) and isinstance(x.plain, MemRef):
        x = build("fly.get_iter", (x,))
    if isinstance(x, Pointer):
        if x.plain.space != GLOBAL:
            raise BufferSpace(
                function="create_buffer_resource",
                wanted="global",
                got=shown(x),
                reason="a buffer descriptor describes global memory",
                advice="pass a tensor or pointer of global memory",
            )
        return to_llvm_ptr(x)
    value = operand(x, None, "create_buffer_resource", "memref")
    return value if is_raw_pointer(value) else _raw_base(value)


def _raw_base(value: ir.Value) -> ir.Value:
    """Return the pointer in a raw value: a Fly memref or pointer, an upstream memref, an address."""
    from flydsl.dialects.fly.types import is_fly_type, value_of
    from flydsl.expr.values import CLASS_OF_PLAIN

    if is_fly_type(value.type):
        return _base_pointer(CLASS_OF_PLAIN[type(value_of(value.type))](value))
    if isinstance(value.type, ir.MemRefType):
        types = current().types
        index = emit1("memref.extract_aligned_pointer_as_index", types.index, (value,))
        return create_llvm_ptr(index, 1)
    return create_llvm_ptr(value, 1)


def is_raw_pointer(value: ir.Value) -> bool:
    """Return whether a raw value is an `!llvm.ptr` of any address space."""
    types = current().types
    pointers = types.memo.get("raw pointers")
    if pointers is None:
        pointers = types.memo["raw pointers"] = {types.llvm_ptr(space) for space in range(10)}
    return value.type in pointers


def create_llvm_ptr(value: Any, address_space: int = 0) -> ir.Value:
    """Return a raw pointer of an address: an integer, an index, a Pointer or a raw pointer as it is."""
    if isinstance(value, (Pointer, Tensor)):
        return to_llvm_ptr(value)
    raw = value if isinstance(value, ir.Value) else None if isinstance(value, (int, Numeric)) else operand(value)
    if raw is not None and is_raw_pointer(raw):
        return raw
    return emit1("llvm.inttoptr", current().types.llvm_ptr(address_space), (i64(value if raw is None else raw),))


def extract_base_index(tensor: Any, address_space: int = 1) -> Any:
    """Return the address of a tensor's first element as an Index."""
    types = current().types
    base = to_llvm_ptr(tensor) if isinstance(tensor, (Pointer, Tensor)) else create_llvm_ptr(tensor, address_space)
    return dsl(Index, emit1("arith.index_cast", types.index, (emit1("llvm.ptrtoint", types.i64, (base,)),)))


def get_element_ptr(
    base_ptr: Any,
    byte_offset: Any = None,
    static_byte_offset: int = 0,
    elem_type: Any = None,
    no_wrap_flags: Any = None,
) -> ir.Value:
    """Return a raw pointer moved by `byte_offset` (a number, integer or index) plus `static_byte_offset`.

    `elem_type` counts the offsets in other units than bytes. `no_wrap_flags` is accepted; it would only allow
    optimisations.
    """
    base = to_llvm_ptr(base_ptr) if isinstance(base_ptr, (Pointer, Tensor)) else operand(base_ptr)
    unit = (
        result_type(elem_type() if callable(elem_type) and not isinstance(elem_type, NumericMeta) else elem_type)
        if elem_type is not None
        else current().types.i8
    )
    dynamic, static = _split_offset(byte_offset, static_byte_offset)
    attrs = _gep_attrs(unit, _DYNAMIC if dynamic else static)
    return emit1("llvm.getelementptr", base.type, (base, *dynamic), attrs)


def _split_offset(offset: Any, static: int) -> tuple[tuple[ir.Value, ...], int]:
    if isinstance(offset, Numeric) and offset.is_static():
        offset = int(offset.value)
    if offset is None or isinstance(offset, int):
        return (), (offset or 0) + int(static)
    value = operand(offset)
    if isinstance(value.type, ir.IndexType):
        value = i64(value)
    if static:
        value = emit1("arith.addi", value.type, (value, constant(value.type, int(static))))
    return (value,), 0


def _gep_attrs(unit: ir.Type, index: int) -> dict:
    memo = current().types.memo
    key = ("gep", unit, index)
    attrs = memo.get(key)
    if attrs is None:
        attrs = memo[key] = {
            "elem_type": ir.TypeAttr.get(unit),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([index], unit.context),
        }
    return attrs


def buffer_load(
    rsrc: Any,
    offset: Any,
    vec_width: int = 4,
    dtype: Any = None,
    mask: Any = None,
    cache_modifier: int = 0,
    soffset_bytes: Any = None,
    is_scalar: bool = False,
) -> Any:
    """Load `vec_width` elements of `dtype` (default Float32): a scalar for 1, else a Vector. Where `mask` is false: 0.

    Units    offset in elements of `dtype`; soffset_bytes in bytes, wave-uniform. `is_scalar` loads through the scalar
    cache, offset uniform, whole dwords
    """
    types = current().types
    elem = types.f32 if dtype is None else result_type(dtype, "buffer_load")
    bits = _check_width(bit_size(elem), vec_width)
    at = _byte_offset(offset, bit_size(elem), mask)
    carrier = _carrier(elem, vec_width, bits, types)
    if is_scalar:
        value = emit1(
            "rocdl.ptr.s.buffer.load",
            carrier,
            (operand(rsrc), at),
            {"aux": ir.IntegerAttr.get(types.i32, cache_modifier)},
        )
    else:
        value = operand(
            _LOAD(carrier, rsrc, at, i32(0 if soffset_bytes is None else soffset_bytes), aux=cache_modifier)
        )
    return dsl(_class_of(dtype, vec_width), bitcast(value, elem if vec_width == 1 else types.vector(vec_width, elem)))


def buffer_store(
    data: Any,
    rsrc: Any,
    offset: Any,
    mask: Any = None,
    cache_modifier: int = 0,
    *,
    soffset_bytes: Any = None,
    offset_is_bytes: bool = False,
) -> ir.Operation:
    """Store a scalar or vector; nothing where `mask` is false.

    Units    offset in elements of the data, or in bytes; soffset_bytes in bytes, wave-uniform
    """
    value = operand(data, None, "buffer_store", "data")
    type_, count = value.type, 1
    if isinstance(type_, ir.VectorType):
        type_, count = type_.element_type, bit_size(value.type) // bit_size(type_.element_type)
    bits = _check_width(bit_size(type_), count)
    at = _byte_offset(offset, 8 if offset_is_bytes else bit_size(type_), mask)
    return _STORE(
        bitcast(value, _carrier(type_, count, bits, current().types)),
        rsrc,
        at,
        i32(0 if soffset_bytes is None else soffset_bytes),
        aux=cache_modifier,
    )


def _check_width(elem_bits: int, count: int) -> int:
    """Return the bits of one access.

    Raises   BufferAccess: there is no instruction of this width
    """
    bits = elem_bits * count
    if bits not in (8, 16, 32, 64, 96, 128):
        raise BufferAccess(bits=bits, count=count, elem_bits=elem_bits)
    return bits


def _carrier(elem: ir.Type, count: int, bits: int, types: Any) -> ir.Type:
    """Return the type in which the instruction moves the data: itself, or integers where LLVM has no such buffer
    access.
    """
    if bits < 32:
        return types.by_name[f"i{bits}"]
    plain = isinstance(elem, (ir.F32Type, ir.F16Type, ir.BF16Type)) or elem == types.i32
    if plain:
        return elem if count == 1 else types.vector(count, elem)
    return types.i32 if bits == 32 else types.vector(bits // 32, types.i32)


def _byte_offset(offset: Any, unit_bits: int, mask: Any) -> ir.Value:
    if isinstance(offset, Numeric) and offset.is_static():
        offset = int(offset.value)
    types = current().types
    if isinstance(offset, int):
        at = const_i32(offset * unit_bits // 8)
    else:
        at = i32(offset)
        if unit_bits > 8:
            at = emit1("arith.muli", types.i32, (at, const_i32(unit_bits // 8)))
        elif unit_bits < 8:
            at = emit1("arith.divui", types.i32, (at, const_i32(8 // unit_bits)))
    if mask is None:
        return at
    return emit1("arith.select", types.i32, (scalar(mask, "Boolean"), at, const_i32(_OUT_OF_RANGE)))


def _class_of(dtype: Any, count: int) -> Any:
    """Return the class of a loaded value; an IR type asks for a raw one."""
    if dtype is not None and not isinstance(dtype, NumericMeta):
        return None
    return Vector if count > 1 else dtype or Float32

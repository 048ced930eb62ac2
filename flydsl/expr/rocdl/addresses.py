"""Addresses as integers: what descriptors and raw intrinsics are made of."""

from typing import Any

from flydsl.dialects.values import BUFFER_DESC
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.pointers import Pointer, to_llvm_ptr
from flydsl.expr.rocdl.values import i32, i64, operand, static_int
from flydsl.expr.tensors import Tensor
from flydsl.expr.values import build
from flydsl.ir import constant, current, emit1, ir


def global_address(x: Any) -> ir.Value:
    """Return the address of global memory as an i64: of a tensor, pointer, raw pointer or integer."""
    return _address(x, current().types.i64, i64)


def lds_address(x: Any) -> ir.Value:
    """Return the address in LDS as an i32: of a tensor, pointer, raw pointer, memref or integer."""
    return _address(x, current().types.i32, i32)


def _address(x: Any, type_: ir.Type, convert: Any) -> ir.Value:
    if isinstance(x, (Tensor, Pointer)):
        x = build("fly.get_iter", (x,)) if isinstance(x, Tensor) else x
        if x.plain.space == BUFFER_DESC:
            raise ValueError("a buffer pointer has no plain address; pass the global tensor it was made of")
        return emit1("llvm.ptrtoint", type_, (to_llvm_ptr(x),))
    if isinstance(x, (int, Numeric)):
        return convert(x)
    value = operand(x, None, "address", "pointer")
    if isinstance(value.type, ir.MemRefType):
        index = emit1("memref.extract_aligned_pointer_as_index", current().types.index, (value,))
        return convert(index)
    if isinstance(value.type, (ir.IntegerType, ir.IndexType)):
        return convert(value)
    return emit1("llvm.ptrtoint", type_, (value,))


def lds_pointer(memref: Any, elem_offset: Any, elem_bytes: int) -> ir.Value:
    """Return the raw LDS pointer `elem_offset` elements after the start of `memref`."""
    types = current().types
    base = lds_address(memref)
    if isinstance(elem_offset, int) or (isinstance(elem_offset, Numeric) and elem_offset.is_static()):
        moved = constant(types.i32, static_int(elem_offset, "lds_pointer", "elem_offset") * elem_bytes)
    else:
        moved = emit1("arith.muli", types.i32, (i32(elem_offset), constant(types.i32, elem_bytes)))
    return emit1("llvm.inttoptr", types.llvm_ptr(3), (emit1("arith.addi", types.i32, (base, moved)),))

"""Ops on pointers and views: addresses, loads, stores, register memory, LDS."""

from typing import Any

from flydsl.dialects.fly.base import Allocates, Fly, Pure, Reads, Writes
from flydsl.ir import ext, ir

Operand, Result = ext.Operand, ext.Result


class MakeBufferPtr(Fly.Operation, name="make_buffer_ptr", traits=[Pure]):
    """A buffer-resource pointer over a global one. Operands: stride (i16), record count in bytes (i64), flags (i32)."""

    base: Operand[Any]
    stride: Operand[Any]
    num_records: Operand[Any]
    flags: Operand[Any]
    result: Result[Any]


class BufferParts(Fly.Operation, name="buffer_parts", traits=[Pure]):
    """The resource (`!llvm.ptr<8>`) and the offset in elements (i32) of a buffer pointer."""

    source: Operand[Any]
    rsrc: Result[Any]
    offset: Result[Any]


class FromBufferParts(Fly.Operation, name="from_buffer_parts", traits=[Pure]):
    """A buffer pointer made of a resource and an offset in elements."""

    rsrc: Operand[Any]
    offset: Operand[Any]
    result: Result[Any]


class RecastIter(Fly.Operation, name="recast_iter", traits=[Pure]):
    """The same address with another element type."""

    source: Operand[Any]
    result: Result[Any]


class PtrToInt(Fly.Operation, name="ptrtoint", traits=[Pure]):
    """The address in bytes: i64 for global and generic pointers, i32 for shared ones."""

    source: Operand[Any]
    result: Result[Any]


class IntToPtr(Fly.Operation, name="inttoptr", traits=[Pure]):
    """A pointer made of an address in bytes."""

    source: Operand[Any]
    result: Result[Any]


class ToLlvmPtr(Fly.Operation, name="to_llvm_ptr", traits=[Pure]):
    """The raw `!llvm.ptr` of a pointer, its address space chosen by the target."""

    source: Operand[Any]
    result: Result[Any]


class FromLlvmPtr(Fly.Operation, name="from_llvm_ptr", traits=[Pure]):
    """A Fly pointer made of a raw one."""

    source: Operand[Any]
    result: Result[Any]


class Alloca(Fly.Operation, name="alloca", traits=[Allocates]):
    """Register memory of one lane: the result is a register memref, or after layout lowering a pointer to `elems` elements."""

    result: Result[Any]


class SharedPtr(Fly.Operation, name="shared_ptr", traits=[Pure]):
    """The address of a workgroup's LDS variable `symbol`."""

    symbol: ir.FlatSymbolRefAttr
    result: Result[Any]


class MemrefLoad(Fly.Operation, name="memref_load", traits=[Reads]):
    """The element of a view at a full coordinate."""

    view: Operand[Any]
    coord: Operand[Any]
    result: Result[Any]


class MemrefStore(Fly.Operation, name="memref_store", traits=[Writes]):
    """Write the element of a view at a full coordinate."""

    value: Operand[Any]
    view: Operand[Any]
    coord: Operand[Any]


class MemrefLoadVec(Fly.Operation, name="memref_load_vec", traits=[Reads]):
    """All elements of a view of static layout, in coordinate order, as one vector."""

    view: Operand[Any]
    result: Result[Any]


class MemrefStoreVec(Fly.Operation, name="memref_store_vec", traits=[Writes]):
    """Write all elements of a view of static layout, in coordinate order."""

    value: Operand[Any]
    view: Operand[Any]


class PtrLoad(Fly.Operation, name="ptr_load", traits=[Reads]):
    """A scalar or a vector of adjacent elements at a pointer."""

    ptr: Operand[Any]
    result: Result[Any]


class PtrStore(Fly.Operation, name="ptr_store", traits=[Writes]):
    """Write a scalar or a vector of adjacent elements at a pointer."""

    value: Operand[Any]
    ptr: Operand[Any]


class PtrAdd(Fly.Operation, name="ptr_add", traits=[Pure]):
    """A pointer moved by `offset` elements, and by those of `dynamic` where present (after layout lowering only)."""

    ptr: Operand[Any]
    dynamic: Operand[Any] | None
    offset: ir.IntegerAttr
    result: Result[Any]

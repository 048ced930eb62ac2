"""Pointers: addresses, plain loads and stores, register and LDS memory, buffer resources."""

from flydsl.dialects import value_of
from flydsl.dialects.values import BUFFER_DESC, LLVM_SPACE, REGISTER, SHARED
from flydsl.ir import ir
from flydsl.layout.view import Ptr, element_bits
from flydsl.passes.convert_fly_to_rocdl.conversion import Conversion, Raw, rule


def stored_bits(elem: str) -> int:
    """Return the bits that an element takes in memory: an i1 takes a byte."""
    return 8 if elem == "i1" else element_bits(elem)


@rule("from_llvm_ptr")
def _from_llvm_ptr(conv: Conversion, op: ir.Operation) -> None:
    conv.define(op.result, op.operands[0])


@rule("to_llvm_ptr")
def _to_llvm_ptr(conv: Conversion, op: ir.Operation) -> None:
    raw = conv.pointer(op.operands[0])
    op.result.replace_all_uses_with(buffer_address(conv, raw) if raw.is_buffer else raw.pointer)


def buffer_address(conv: Conversion, raw: Raw) -> ir.Value:
    """Return a buffer pointer's resource moved to its offset: only an offset of 0 keeps the bounds."""
    return conv.advance(raw.pointer, memory_type(conv, conv.elem(raw.info.elem)), raw.offset)


@rule("alloca")
def _alloca(conv: Conversion, op: ir.Operation) -> None:
    """Register memory that could not be promoted: private memory of the lane."""
    info: Ptr = value_of(op.result.type)
    elems = ir.IntegerAttr(op.attributes["elems"]).value
    if element_bits(info.elem) in (4, 6):
        elems = -(-elems * stored_bits(info.elem) // 8)
    align = max(info.align_bytes, min(16, elems * stored_bits(info.elem) // 8))
    attrs = {
        "elem_type": ir.TypeAttr.get(memory_type(conv, conv.elem(info.elem))),
        "alignment": ir.IntegerAttr.get(conv.types.i64, align),
    }
    pointer_type = conv.types.llvm_ptr(LLVM_SPACE[REGISTER])
    conv.define(op.result, conv.editor.value("llvm.alloca", pointer_type, [conv.editor.i64(elems)], attrs))


@rule("shared_ptr")
def _shared_ptr(conv: Conversion, op: ir.Operation) -> None:
    attrs = {"global_name": op.attributes["symbol"]}
    pointer_type = conv.types.llvm_ptr(LLVM_SPACE[SHARED])
    conv.define(op.result, conv.editor.value("llvm.mlir.addressof", pointer_type, (), attrs))


@rule("make_buffer_ptr")
def _make_buffer_ptr(conv: Conversion, op: ir.Operation) -> None:
    base, stride, records, flags = op.operands
    operands = [conv.pointer(base).pointer, stride, records, flags]
    rsrc = conv.editor.value("rocdl.make.buffer.rsrc", conv.types.llvm_ptr(LLVM_SPACE[BUFFER_DESC]), operands)
    conv.define(op.result, rsrc, conv.editor.i32(0))


@rule("buffer_parts")
def _buffer_parts(conv: Conversion, op: ir.Operation) -> None:
    raw = conv.pointer(op.operands[0])
    op.results[0].replace_all_uses_with(raw.pointer)
    op.results[1].replace_all_uses_with(raw.offset)


@rule("from_buffer_parts")
def _from_buffer_parts(conv: Conversion, op: ir.Operation) -> None:
    conv.define(op.result, op.operands[0], op.operands[1])


@rule("recast_iter")
def _recast_iter(conv: Conversion, op: ir.Operation) -> None:
    raw = conv.pointer(op.operands[0])
    offset = raw.offset
    if raw.is_buffer:
        offset = _scaled(conv, offset, stored_bits(raw.info.elem), stored_bits(value_of(op.result.type).elem))
    conv.define(op.result, raw.pointer, offset)


def _scaled(conv: Conversion, offset: ir.Value, old_bits: int, new_bits: int) -> ir.Value:
    """Return an element offset in units of the new element."""
    if old_bits == new_bits:
        return offset
    if old_bits > new_bits:
        return conv.editor.value("arith.muli", conv.types.i32, [offset, conv.editor.i32(old_bits // new_bits)])
    return conv.editor.value("arith.divsi", conv.types.i32, [offset, conv.editor.i32(new_bits // old_bits)])


@rule("ptrtoint")
def _ptrtoint(conv: Conversion, op: ir.Operation) -> None:
    pointer = conv.pointer(op.operands[0]).pointer
    op.result.replace_all_uses_with(conv.editor.value("llvm.ptrtoint", op.result.type, [pointer]))


@rule("inttoptr")
def _inttoptr(conv: Conversion, op: ir.Operation) -> None:
    space = value_of(op.result.type).space
    conv.define(op.result, conv.editor.value("llvm.inttoptr", conv.types.llvm_ptr(LLVM_SPACE[space]), [op.operands[0]]))


@rule("ptr_add")
def _ptr_add(conv: Conversion, op: ir.Operation) -> None:
    raw = conv.pointer(op.operands[0])
    static = ir.IntegerAttr(op.attributes["offset"]).value
    dynamic = op.operands[1] if len(op.operands) > 1 else None
    if raw.is_buffer:
        conv.define(op.result, raw.pointer, _add_offset(conv, raw.offset, dynamic, static))
        return
    bits = stored_bits(raw.info.elem)
    pointer = raw.pointer
    if bits % 8:
        conv.define(op.result, _advance_packed(conv, pointer, dynamic, static, bits))
        return
    elem = memory_type(conv, conv.elem(raw.info.elem))
    if dynamic is not None:
        pointer = conv.advance(pointer, elem, dynamic)
    conv.define(op.result, conv.advance(pointer, elem, static))


def _add_offset(conv: Conversion, offset: ir.Value, dynamic: ir.Value | None, static: int) -> ir.Value:
    i32 = conv.types.i32
    for term in (dynamic, static or None):
        if term is None:
            continue
        if isinstance(term, int):
            term = conv.editor.i32(term) if -(2**31) <= term < 2**31 else conv.editor.i64(term)
        if term.type != i32:
            term = conv.editor.value("arith.trunci", i32, [term], {"fly.buffer_offset": ir.UnitAttr.get()})
        is_zero = offset == conv.editor.i32(0)
        offset = term if is_zero else conv.editor.value("arith.addi", i32, [offset, term])
    return offset


def _advance_packed(
    conv: Conversion, pointer: ir.Value, dynamic: ir.Value | None, static: int, bits: int
) -> ir.Value:
    """Move a pointer to elements narrower than a byte: offsets are whole bytes together."""
    i8 = conv.types.i8
    if dynamic is not None:
        factor, shift = conv.editor.constant(dynamic.type, bits), conv.editor.constant(dynamic.type, 3)
        scaled = conv.editor.value("arith.muli", dynamic.type, [dynamic, factor])
        pointer = conv.advance(pointer, i8, conv.editor.value("arith.shrsi", dynamic.type, [scaled, shift]))
    return conv.advance(pointer, i8, static * bits // 8)


# Plain loads and stores


def effective(conv: Conversion, raw: Raw) -> ir.Value:
    """Return the LLVM pointer of an access, the pointer's swizzle applied to its byte address."""
    swizzle = raw.info.swizzle
    if swizzle is None or swizzle.bits == 0:
        return raw.pointer
    int_type = conv.types.i32 if raw.info.space == SHARED else conv.types.i64
    editor = conv.editor
    address = editor.value("llvm.ptrtoint", int_type, [raw.pointer])
    mask = editor.constant(int_type, ((1 << swizzle.bits) - 1) << (swizzle.base + swizzle.shift))
    picked = editor.value("arith.andi", int_type, [address, mask])
    moved = editor.value("arith.shrui", int_type, [picked, editor.constant(int_type, swizzle.shift)])
    return editor.value("llvm.inttoptr", raw.pointer.type, [editor.value("arith.xori", int_type, [address, moved])])


def byte_offset(conv: Conversion, raw: Raw) -> ir.Value:
    """Return the offset of a buffer pointer in bytes."""
    return scaled_bytes(conv, raw.offset, stored_bits(raw.info.elem))


def scaled_bytes(conv: Conversion, offset: ir.Value, bits: int) -> ir.Value:
    """Return an i32 count of elements of `bits` bits in bytes."""
    if bits == 8:
        return offset
    if bits > 8:
        return conv.editor.value("arith.muli", conv.types.i32, [offset, conv.editor.i32(bits // 8)])
    scaled = conv.editor.value("arith.muli", conv.types.i32, [offset, conv.editor.i32(bits)])
    return conv.editor.value("arith.shrui", conv.types.i32, [scaled, conv.editor.i32(3)])


def memory_type(conv: Conversion, type_: ir.Type) -> ir.Type:
    """Return how a value lies in memory: an i1 takes a byte."""
    if type_ == conv.types.i1:
        return conv.types.i8
    if isinstance(type_, ir.VectorType) and ir.VectorType(type_).element_type == conv.types.i1:
        return conv.types.vector(ir.VectorType(type_).shape[0], conv.types.i8)
    return type_


def from_memory(conv: Conversion, v: ir.Value, type_: ir.Type) -> ir.Value:
    """Return a loaded value as `type_`; a byte is true when it is not 0."""
    if v.type == type_:
        return v
    zero = _zero(conv, v.type)
    predicate = ir.IntegerAttr.get(conv.types.i64, 1)
    return conv.editor.value("arith.cmpi", type_, [v, zero], {"predicate": predicate})


def to_memory(conv: Conversion, v: ir.Value) -> ir.Value:
    """Return a value as it lies in memory."""
    target = memory_type(conv, v.type)
    return v if target == v.type else conv.editor.value("arith.extui", target, [v])


def _zero(conv: Conversion, type_: ir.Type) -> ir.Value:
    if not isinstance(type_, ir.VectorType):
        return conv.editor.constant(type_, 0)
    attr = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(ir.VectorType(type_).element_type, 0))
    return conv.editor.value("arith.constant", type_, (), {"value": attr})


@rule("ptr_load")
def _ptr_load(conv: Conversion, op: ir.Operation) -> None:
    raw = conv.pointer(op.operands[0])
    type_ = op.result.type
    stored = memory_type(conv, type_)
    if raw.is_buffer:
        value = buffer_load(conv, raw, stored)
    else:
        value = conv.load(effective(conv, raw), stored, raw.info.align_bytes, **_hints(op))
    op.result.replace_all_uses_with(from_memory(conv, value, type_))


@rule("ptr_store")
def _ptr_store(conv: Conversion, op: ir.Operation) -> None:
    raw = conv.pointer(op.operands[1])
    value = to_memory(conv, op.operands[0])
    if raw.is_buffer:
        buffer_store(conv, raw, value)
    else:
        conv.store(value, effective(conv, raw), raw.info.align_bytes, **_hints(op))


def _hints(op: ir.Operation) -> dict:
    """Return the memory hints that an access carries on to LLVM (nontemporal, volatile, ordering, syncscope)."""
    return {n: op.attributes[n] for n in ("nontemporal", "volatile_", "ordering", "syncscope") if n in op.attributes}


# Buffer accesses


def bits_of_type(type_: ir.Type) -> int:
    """Return the width of a scalar or vector type in bits."""
    if isinstance(type_, ir.VectorType):
        vector = ir.VectorType(type_)
        return vector.shape[0] * bits_of_type(vector.element_type)
    return element_bits(str(type_))


def carrier(conv: Conversion, bits: int) -> ir.Type:
    """Return the integer type in which a buffer instruction moves `bits` bits."""
    types = conv.types
    return {8: types.i8, 16: types.i16, 32: types.i32}.get(bits) or types.vector(bits // 32, types.i32)


def buffer_load(
    conv: Conversion, raw: Raw, type_: ir.Type, soffset: ir.Value | None = None, aux: int = 0
) -> ir.Value:
    """Return a value loaded through a resource; `soffset` in bytes; wider than 128 bits in pieces of 128."""
    offset = byte_offset(conv, raw)
    operands = [raw.pointer, offset, soffset or conv.editor.i32(0)]
    moved = carrier(conv, bits_of_type(type_))
    value = conv.editor.value("rocdl.raw.ptr.buffer.load", moved, operands, {"aux": conv.i32_attr(aux)})
    return conv.bitcast(value, type_)


def buffer_store(conv: Conversion, raw: Raw, value: ir.Value, soffset: ir.Value | None = None, aux: int = 0) -> None:
    """Store a value through a resource; `soffset` in bytes."""
    moved = conv.bitcast(value, carrier(conv, bits_of_type(value.type)))
    operands = [moved, raw.pointer, byte_offset(conv, raw), soffset or conv.editor.i32(0)]
    conv.editor.op("rocdl.raw.ptr.buffer.store", (), operands, {"aux": conv.i32_attr(aux)})

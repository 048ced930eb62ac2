"""Payloads of lowering: integers as SSA values, addresses as a pointer value plus a static offset."""

from typing import Any

from flydsl import layout as la
from flydsl.diag import StaticOffset
from flydsl.dialects import type_of
from flydsl.dialects.values import BUFFER_DESC
from flydsl.ir import Types, ir
from flydsl.ir.location import span_of_location
from flydsl.layout.view import Ptr, add_offset, element_bits
from flydsl.passes.rewriting import Editor
from flydsl.utils.record import record

_ARITH = {
    "add": "arith.addi",
    "sub": "arith.subi",
    "mul": "arith.muli",
    "div": "arith.divsi",
    "mod": "arith.remsi",
    "min": "arith.minsi",
    "max": "arith.maxsi",
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
    "shl": "arith.shli",
    "shr": "arith.shrsi",
    "ceil_div": "arith.ceildivsi",
}
_COMPARE = {"lt": 2, "eq": 0}


@record
class Address:
    """A pointer value and a static offset from it in elements, not yet added."""

    base: ir.Value
    offset: int = 0


class IrBuilder:
    """Makes payloads of algebra results with `arith` ops (see `layout.leaf.Builder`)."""

    def __init__(self, editor: Editor):
        self.editor = editor
        self.types: Types = editor.types

    def binary(self, op: str, lhs: Any, rhs: Any, width: int) -> ir.Value:
        """Return `lhs op rhs`; comparisons and their conjunctions are i1."""
        if op in _COMPARE:
            wide = self._is_wide(lhs) or self._is_wide(rhs)
            predicate = ir.IntegerAttr.get(self.types.i64, _COMPARE[op])
            operands = [self.integer(lhs, 64 if wide else 32), self.integer(rhs, 64 if wide else 32)]
            return self.editor.value("arith.cmpi", self.types.i1, operands, {"predicate": predicate})
        if self._is_bit(lhs) or self._is_bit(rhs):
            return self.editor.value(_ARITH[op], self.types.i1, [self.bit(lhs), self.bit(rhs)])
        type_ = self.types.i64 if width == 64 else self.types.i32
        return self.editor.value(_ARITH[op], type_, [self.integer(lhs, width), self.integer(rhs, width)])

    def pointer(self, ptr: Ptr, offset: Any) -> Address:
        """Return the address of `ptr` moved by `offset` elements: a static offset is only remembered."""
        address: Address = ptr.value
        if isinstance(offset, int):
            return Address(address.base, address.offset + offset)
        moved = add_offset(ptr.with_value(None), la.Sym(offset.width, offset.div))
        base = self.editor.value("fly.ptr_add", type_of(moved), [address.base, offset.value], self._offset(0))
        return Address(base, address.offset)

    def materialise(self, ptr: Ptr) -> ir.Value:
        """Return the pointer value of `ptr`, its static offset added."""
        address: Address = ptr.value
        if address.offset == 0:
            return address.base
        self._check_reach(ptr, address.offset)
        attrs = self._offset(address.offset)
        return self.editor.value("fly.ptr_add", type_of(ptr.with_value(None)), [address.base], attrs)

    def _check_reach(self, ptr: Ptr, offset: int) -> None:
        """Refuse a static offset whose bytes do not fit: a buffer's have 32 bits without sign, addresses 64."""
        first = offset * element_bits(ptr.elem) // 8
        bits = 32 if ptr.space == BUFFER_DESC else 64
        if not -(1 << 63) <= first < 1 << 63 or abs(first) >= 1 << bits:
            raise StaticOffset(at=span_of_location(self.editor.loc), offset=offset, elem=ptr.elem, first=first, bits=bits)

    def _offset(self, value: int) -> dict:
        return {"offset": ir.IntegerAttr.get(self.types.i64, value)}

    def integer(self, v: Any, width: int) -> ir.Value:
        """Return a Python int or SSA integer as a value of `width` bits."""
        type_ = self.types.i64 if width == 64 else self.types.i32
        if isinstance(v, int):
            return self.editor.constant(type_, v - (1 << width) if v >> (width - 1) == 1 else v)
        if v.type == type_:
            return v
        op = "arith.extsi" if width == 64 else "arith.trunci"
        return self.editor.value(op, type_, [v])

    def leaf(self, leaf: Any, width: int | None = None) -> ir.Value:
        """Return a leaf (int or Sym with payload) as an integer value."""
        if isinstance(leaf, la.Sym):
            return self.integer(leaf.value, width or leaf.width)
        return self.integer(int(leaf), width or 32)

    def bit(self, v: Any) -> ir.Value:
        """Return a truth value as i1."""
        v = v.value if isinstance(v, la.Sym) else v
        return self.editor.constant(self.types.i1, v) if isinstance(v, (bool, int)) else v

    def _is_wide(self, v: Any) -> bool:
        return not isinstance(v, int) and v.type == self.types.i64

    def _is_bit(self, v: Any) -> bool:
        return isinstance(v, bool) or (not isinstance(v, int) and v.type == self.types.i1)

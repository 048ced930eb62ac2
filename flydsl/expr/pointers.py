"""Pointers of `fx`: an element type, a memory, an alignment and perhaps a byte swizzle; loads, stores and address
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from flydsl.diag import (
    ElementConversion,
    NotIterable,
    PointerConversion,
    PointerOperand,
    RecastType,
    SpaceWrong,
    UnknownIrType,
)
from flydsl.dialects.values import BUFFER_DESC, LLVM_SPACE, REGISTER, SHARED
from flydsl.expr.enum import SPACES, AddressSpace, TargetAddressSpace, space_name
from flydsl.expr.fly_types import DTYPE, FlyType, PointerType, element_name, plain_of_type
from flydsl.expr.int_tuples import IntTuple, int_tuple, int_tuple_sub, is_numeric_class
from flydsl.expr.layouts import LAYOUTS, Swizzle
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.base import wrap as wrap_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Int32, Int64
from flydsl.expr.values import FlyValue, build, emit_as, expect, shown
from flydsl.ir import current, emit, emit1, ir
from flydsl.layout.view import Ptr, element_bits


class Pointer(FlyValue, plains=(Ptr,)):
    """An address of elements of one type. `Pointer[dtype, space]` is a type for fields of structs."""

    __slots__ = ()

    def __class_getitem__(cls, params: Any) -> type:
        from flydsl.expr.arrays import pointer_field

        return pointer_field(params)

    @property
    def dtype(self) -> type[Numeric]:
        """The scalar class of the elements; integers without sign count as signed."""
        return dtype_of(self.plain.elem)

    element_type = value_type = dtype

    @property
    def address_space(self) -> AddressSpace | TargetAddressSpace:
        """The memory that it points to."""
        return SPACES[self.plain.space]

    memspace = address_space

    @property
    def alignment(self) -> int:
        """What the address is known to be a multiple of, in bytes."""
        return self.plain.align_bytes

    @property
    def llvm_ptr(self) -> ir.Value:
        """The raw `!llvm.ptr`."""
        return to_llvm_ptr(self)

    def __add__(self, offset: Any) -> Pointer:
        return add_offset(self, offset)

    __radd__ = __add__

    def __sub__(self, offset: Any) -> Pointer:
        return add_offset(self, -offset if isinstance(offset, (int, Numeric)) else int_tuple_sub(0, offset))

    def __iter__(self) -> NoReturn:
        raise NotIterable(kind="pointer", detail="")

    def __getitem__(self, offset: Any) -> Any:
        return ptr_load(self + offset)

    def __setitem__(self, offset: Any, value: Any) -> None:
        ptr_store(value, self + offset)

    def load(self, dtype: Any = None) -> Any:
        """Return the element here, or a vector of adjacent ones (`dtype` a Vector alias or vector type)."""
        return ptr_load(self, dtype)

    def store(self, value: Any) -> None:
        """Write a scalar, converted to the element type, or a vector of adjacent elements."""
        ptr_store(value, self)

    def view(self, layout: FlyValue) -> Any:
        """Return the tensor of this layout that begins here."""
        return build("fly.make_view", (self, expect(layout, LAYOUTS, "the layout of a view")))


def dtype_of(elem: str) -> type[Numeric]:
    """Return the scalar class of an element type by its MLIR name."""
    cls = DTYPE.get(elem)
    if cls is None:
        raise UnknownIrType(type=elem, advice="reinterpret the pointer with fx.recast_iter to a type that fx has")
    return cls


def expect_pointer(x: Any, what: str) -> Pointer:
    """Return `x` if it is a Pointer."""
    return x if x.__class__ is Pointer else expect(x, Pointer, what)


# --- address arithmetic --------------------------------------------------------------------------------------------


def add_offset(ptr: Any, offset: Any) -> Any:
    """Return an iterator moved by `offset`: a pointer by elements, a coordinate by a coordinate."""
    if ptr.__class__ is Pointer and type(offset) is int and offset == 0:
        return ptr
    ptr = ptr if isinstance(ptr, Pointer) else int_tuple(ptr)
    return build("fly.add_offset", (ptr, int_tuple(offset)))


def apply_swizzle(ptr: Any, swizzle: Swizzle) -> Any:
    """Return the pointer whose byte address goes through `swizzle` at every access, after all offsets."""
    swizzle = expect(swizzle, Swizzle, "the swizzle of apply_swizzle")
    return build("fly.apply_swizzle", (ptr if isinstance(ptr, Pointer) else int_tuple(ptr), swizzle))


def recast_iter(result_type: Any, src: Any) -> Pointer:
    """Return the same address with another element type: a scalar class, or a pointer type (alignment included)."""
    src = expect_pointer(getattr(src, "iter", src), "the source of recast_iter")
    if isinstance(result_type, (FlyType, ir.Type)) and not isinstance(result_type, PointerType):
        raise RecastType(got=str(result_type))
    if isinstance(result_type, PointerType):
        wanted = plain_of_type(result_type)
        if wanted.space != src.plain.space:
            raise SpaceWrong(op="recast_iter", got=src.plain.space, wanted=wanted.space)
        plain = wanted if wanted.swizzle is not None else replace(wanted, swizzle=src.plain.swizzle)
    elif is_numeric_class(result_type) and hasattr(result_type, "element"):
        elem = result_type.element.mlir
        plain = replace(src.plain, elem=elem, align_bytes=src.plain.align_bytes)
    else:
        raise RecastType(got=f"class {result_type.__name__}" if isinstance(result_type, type) else shown(result_type))
    return src if plain == src.plain else emit_as("fly.recast_iter", plain, (src._raw(),))


def ptrtoint(ptr: Pointer) -> Int64 | Int32:
    """Return the address in bytes: Int64, or Int32 for LDS."""
    ptr = expect_pointer(ptr, "the operand of ptrtoint")
    space = ptr.plain.space
    if space in (REGISTER, BUFFER_DESC):
        raise SpaceWrong(op="ptrtoint", got=space, wanted="generic, global or shared")
    cls = Int32 if space == SHARED else Int64
    return wrap_scalar(cls, emit1("fly.ptrtoint", cls.ir_type, (ptr._raw(),)))


def inttoptr(result_type: Any, src: Any) -> Pointer:
    """Return the pointer at an address in bytes; the integer is an Int64, for LDS an Int32."""
    plain = plain_of_type(result_type)
    if not isinstance(plain, Ptr) or plain.space in (REGISTER, BUFFER_DESC):
        raise PointerConversion(got=str(result_type))
    x = from_python_value(src)
    wanted = Int32 if plain.space == SHARED else Int64
    if not x.is_integer or (not x.is_static() and x.width != wanted.width):
        raise PointerOperand(got=type(x).__name__, wanted=wanted.__name__, space=plain.space)
    return emit_as("fly.inttoptr", plain, (raw_scalar(x.to(wanted)),))


def to_llvm_ptr(ptr: Pointer) -> ir.Value:
    """Return the raw `!llvm.ptr` of a pointer, for the `llvm` dialect."""
    ptr = expect_pointer(getattr(ptr, "iter", ptr), "the operand of to_llvm_ptr")
    space = ptr.plain.space
    if space == BUFFER_DESC:
        raise SpaceWrong(op="to_llvm_ptr", got=space, wanted="generic, global, shared or register")
    return emit1("fly.to_llvm_ptr", current().types.llvm_ptr(LLVM_SPACE[space]), (ptr._raw(),))


def from_llvm_ptr(plain: Ptr, value: ir.Value) -> Pointer:
    """Return the pointer of type `plain` made of a raw one."""
    return emit_as("fly.from_llvm_ptr", plain, (value,))


def make_buffer_ptr(base: Pointer, stride: Any, num_records: Any, flags: Any, alignment: int = 0) -> Pointer:
    """Return a pointer behind a buffer descriptor: stride i16, record count in bytes i64, flags i32 (raw values)."""
    base = expect_pointer(base, "the base of a buffer pointer")
    if base.plain.space not in ("global", "generic"):
        raise SpaceWrong(op="make_buffer_ptr", got=base.plain.space, wanted="global")
    plain = Ptr(base.plain.elem, BUFFER_DESC, alignment or base.plain.align_bytes)
    return emit_as("fly.make_buffer_ptr", plain, (base._raw(), stride, num_records, flags))


def buffer_parts(ptr: Pointer) -> tuple[ir.Value, ir.Value]:
    """Return (resource `!llvm.ptr<8>`, offset in elements i32) of a buffer pointer."""
    types = current().types
    op = emit("fly.buffer_parts", (types.llvm_ptr(8), types.i32), (ptr._raw(),))
    return op.results[0], op.results[1]


def make_ptr(result_type: Any, args: Sequence[Any], *, dict_attrs: dict | None = None) -> Pointer:
    """Return a pointer of an explicit type made of raw parts.

    A buffer pointer takes (global pointer, stride i16, record count i64, flags i32); the others take one address: an
    integer, a raw `!llvm.ptr` or a Pointer.
    """
    plain = plain_of_type(result_type)
    if not isinstance(plain, Ptr):
        raise PointerConversion(got=str(result_type))
    if plain.space == BUFFER_DESC and len(args) == 4:
        base, *rest = args
        parts = [raw_scalar(x) if isinstance(x, Numeric) else x for x in rest]
        return emit_as("fly.make_buffer_ptr", plain, (expect_pointer(base, "the base")._raw(), *parts))
    if len(args) != 1:
        raise PointerOperand(got=f"{len(args)} operands", wanted="one address", space=plain.space)
    (address,) = args
    if isinstance(address, Pointer):
        return recast_iter(result_type, address)
    if isinstance(address, ir.Value) and str(address.type).startswith("!llvm.ptr"):
        return from_llvm_ptr(plain, address)
    return inttoptr(result_type, address)


# --- loads and stores ----------------------------------------------------------------------------------------------


def element_type(elem: str) -> ir.Type:
    """Return the MLIR type of an element by name."""
    return current().types.by_name[elem]


def ptr_load(ptr: Pointer, result_type: Any = None) -> Any:
    """Return the element at `ptr`, or what `result_type` says: a scalar class, a Vector alias, an MLIR type, or what has
    one as `ir_type`.
    """
    ptr = expect_pointer(ptr, "the operand of ptr_load")
    if result_type is None:
        elem = ptr.plain.elem
        return wrap_element(elem, emit1("fly.ptr_load", element_type(elem), (ptr._raw(),)))
    if is_numeric_class(result_type) and hasattr(result_type, "element"):
        ptr = _of_element(ptr, result_type.element.mlir)
        return wrap_scalar(result_type, emit1("fly.ptr_load", result_type.ir_type, (ptr._raw(),)))
    return _load_as(ptr, result_type)


def _load_as(ptr: Pointer, result_type: Any) -> Any:
    from flydsl.expr.vector.core import Vector

    alias = isinstance(result_type, type) and issubclass(result_type, Vector)
    type_ = getattr(result_type, "ir_type", result_type)  # any class that names an MLIR type so
    if isinstance(type_, ir.Type) and type_ in current().types.by_name.values():
        elem = element_name(type_)
        return wrap_element(elem, emit1("fly.ptr_load", type_, (_of_element(ptr, elem)._raw(),)))
    if not isinstance(type_, ir.VectorType):
        raise ElementConversion(got=shown(result_type), dtype="a scalar class, a Vector alias or a vector type")
    ptr = _of_element(ptr, element_name(type_.element_type))
    value = emit1("fly.ptr_load", type_, (ptr._raw(),))
    return result_type(value) if alias else Vector(value)


def _of_element(ptr: Pointer, elem: str) -> Pointer:
    """Return the pointer with element type `elem`, for an access of that type."""
    if ptr.plain.elem == elem:
        return ptr
    return emit_as("fly.recast_iter", replace(ptr.plain, elem=elem), (ptr._raw(),))


def ptr_store(value: Any, ptr: Pointer) -> None:
    """Write a scalar (converted to the element type) or a vector of adjacent elements at `ptr`."""
    ptr = expect_pointer(ptr, "the pointer of ptr_store")
    vector = as_vector(value)
    if vector is not None:
        ptr = _of_element(ptr, element_name(vector.type.element_type))
        emit("fly.ptr_store", (), (vector, ptr._raw()))
    else:
        emit("fly.ptr_store", (), (scalar_for(ptr.plain.elem, value), ptr._raw()))


def wrap_element(elem: str, value: ir.Value) -> Any:
    """Return an element of a tensor as a scalar of `fx`; element types without a class stay raw."""
    cls = DTYPE.get(elem)
    return value if cls is None else wrap_scalar(cls, value)


def as_vector(value: Any) -> ir.Value | None:
    """Return the raw vector of a Vector or raw vector value, None for anything else."""
    if isinstance(value, ir.Value):
        return value if isinstance(value.type, ir.VectorType) else None
    if isinstance(value, (int, float, Numeric)):
        return None
    extract = getattr(value, "ir_value", None)
    found = extract() if extract is not None and not isinstance(value, (type, FlyValue)) else None
    return found if isinstance(found, ir.Value) and isinstance(found.type, ir.VectorType) else None


def scalar_for(elem: str, value: Any) -> ir.Value:
    """Return the raw value of a scalar converted to the element type."""
    if isinstance(value, IntTuple):
        value = value.to_py_value()
    if isinstance(value, ir.Value) and value.type == element_type(elem):
        return value
    try:
        x = from_python_value(value)
    except (TypeError, ValueError):
        raise ElementConversion(got=shown(value), dtype=elem) from None
    cls = dtype_of(elem)
    if x.element.mlir == elem:
        return raw_scalar(x)
    return raw_scalar(x.to(cls))


def carried_pointer(ptr: Pointer) -> list[ir.Value]:
    """Return the raw values that a pointer is carried by through loops and branches."""
    if ptr.plain.space == BUFFER_DESC:
        return list(buffer_parts(ptr))
    return [to_llvm_ptr(ptr)]


def rebuilt_pointer(plain: Ptr, values: Sequence[ir.Value]) -> Pointer:
    """Return a pointer from what `carried_pointer` gave; `values` may hold more than it needs."""
    if plain.space == BUFFER_DESC:
        return emit_as("fly.from_buffer_parts", plain, values[:2])
    return from_llvm_ptr(plain, values[0])


def static_pointer(plain: Ptr, symbol: str) -> Pointer:
    """Return the address of a workgroup's LDS variable."""
    attrs = {"symbol": ir.FlatSymbolRefAttr.get(symbol, current().context)}
    return emit_as("fly.shared_ptr", plain, (), attrs)


def pointer_type(elem: Any, space: Any, alignment: int = 0) -> Ptr:
    """Return the plain pointer type of an element type, a memory and an alignment in bytes."""
    return Ptr(element_name(elem), space_name(space), alignment)


def bits_of(ptr: Ptr) -> int:
    """Return the width of an element."""
    return element_bits(ptr.elem)

"""`fx.atomic_*`, `fx.generic_load`, `fx.generic_store`, `fx.memory_fence`: single accesses with an ordering, on any
pointer.

The atomics return the value before. Floats have add, sub, min, max and xchg. Neighbours: `fx.copy` with an atomic
atom for tensors.
"""

from __future__ import annotations

from typing import Any

from flydsl.diag import AtomicOrderingBad, AtomicValue
from flydsl.expr.enum import AtomicOrdering, SyncScope
from flydsl.expr.int_tuples import is_numeric_class
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.base import wrap as wrap_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Boolean, Int8, Int16, Int32, Int64
from flydsl.expr.pointers import Pointer, as_vector, dtype_of, expect_pointer, to_llvm_ptr
from flydsl.expr.values import shown
from flydsl.expr.vector.core import Vector
from flydsl.ir import current, emit, emit1, ir

_BIN_OPS = {
    "xchg": 0, "add": 1, "sub": 2, "and": 3, "or": 5, "xor": 6, "max": 7, "min": 8, "umax": 9, "umin": 10, "fadd": 11, "fsub": 12,
    "fmax": 13, "fmin": 14,
}  # fmt: skip  # numbers of MLIR's llvm dialect
_ORDERINGS = {"not_atomic": 0, "unordered": 1, "monotonic": 2, "acquire": 4, "release": 5, "acq_rel": 6, "seq_cst": 7}
_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "max": "fmax", "min": "fmin", "xchg": "xchg"}
_SAME_WIDTH = {8: Int8, 16: Int16, 32: Int32, 64: Int64}


def _ordering(ordering: Any) -> int:
    try:
        return _ORDERINGS[AtomicOrdering(ordering).value]
    except ValueError:
        raise AtomicOrderingBad(got=ordering, allowed=", ".join(_ORDERINGS)) from None


def _attrs(ordering: int, syncscope: Any, **more: ir.Attribute) -> dict[str, ir.Attribute]:
    attrs = {"ordering": ir.IntegerAttr.get(current().types.i64, ordering), **more}
    scope = getattr(syncscope, "value", syncscope)
    if scope:
        attrs["syncscope"] = ir.StringAttr.get(str(scope))
    return attrs


def _operand(ptr: Pointer, value: Any) -> tuple[ir.Value, Any]:
    """Return (raw value in the pointer's element type, what wraps a result of that type)."""
    vector = as_vector(value)
    if vector is not None:
        return vector, lambda v: Vector(v)
    wanted = dtype_of(ptr.plain.elem)
    x = from_python_value(value)
    if x.element.mlir != ptr.plain.elem:
        x = x.to(wanted)
    cls = type(x)
    return raw_scalar(x), lambda v: wrap_scalar(cls, v)


def _read_modify_write(op: str, ptr: Any, value: Any, syncscope: Any, ordering: Any) -> Any:
    ptr = expect_pointer(getattr(ptr, "iter", ptr), f"the pointer of atomic_{op}")
    operand, wrapped = _operand(ptr, value)
    bin_op = _BIN_OPS[_kind(op, value, ptr)]
    attrs = _attrs(_ordering(ordering), syncscope, bin_op=ir.IntegerAttr.get(current().types.i64, bin_op))
    return wrapped(emit1("llvm.atomicrmw", operand.type, (to_llvm_ptr(ptr), operand), attrs))


def _kind(op: str, value: Any, ptr: Pointer) -> str:
    dtype = (
        value.dtype
        if isinstance(value, Vector)
        else type(value)
        if isinstance(value, Numeric)
        else dtype_of(ptr.plain.elem)
    )
    if dtype_of(ptr.plain.elem).is_float:
        if op not in _FLOAT_OPS:
            raise AtomicValue(op=op, got=shown(value), dtype=ptr.plain.elem)
        return _FLOAT_OPS[op]
    return f"u{op}" if op in ("max", "min") and dtype.signed is False else op


def atomic_add(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Add to memory; return the value before."""
    return _read_modify_write("add", ptr, value, syncscope, ordering)


def atomic_sub(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Subtract from memory; return the value before."""
    return _read_modify_write("sub", ptr, value, syncscope, ordering)


def atomic_min(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Put the smaller of both into memory (unsigned if the value is); return the value before."""
    return _read_modify_write("min", ptr, value, syncscope, ordering)


def atomic_max(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Put the larger of both into memory (unsigned if the value is); return the value before."""
    return _read_modify_write("max", ptr, value, syncscope, ordering)


def atomic_and(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """And into memory bit by bit; return the value before."""
    return _read_modify_write("and", ptr, value, syncscope, ordering)


def atomic_or(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Or into memory bit by bit; return the value before."""
    return _read_modify_write("or", ptr, value, syncscope, ordering)


def atomic_xor(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Xor into memory bit by bit; return the value before."""
    return _read_modify_write("xor", ptr, value, syncscope, ordering)


def atomic_xchg(ptr: Pointer, value: Any, *, syncscope: Any = None, ordering: Any = AtomicOrdering.Monotonic) -> Any:
    """Exchange with memory; return the value before."""
    return _read_modify_write("xchg", ptr, value, syncscope, ordering)


def atomic_fmax(
    ptr: Pointer,
    value: Any,
    *,
    is_positive: bool | None = None,
    syncscope: Any = None,
    ordering: Any = AtomicOrdering.Monotonic,
) -> Any:
    """Put the larger float into memory; return the value before.

    `is_positive` promises the sign of value and memory: then an integer atomic is used, which every memory unit has.
    """
    return _float_extreme("max", ptr, value, is_positive, syncscope, ordering)


def atomic_fmin(
    ptr: Pointer,
    value: Any,
    *,
    is_positive: bool | None = None,
    syncscope: Any = None,
    ordering: Any = AtomicOrdering.Monotonic,
) -> Any:
    """Put the smaller float into memory; return the value before.

    `is_positive` promises the sign of value and memory: then an integer atomic is used, which every memory unit has.
    """
    return _float_extreme("min", ptr, value, is_positive, syncscope, ordering)


def _float_extreme(op: str, ptr: Any, value: Any, is_positive: bool | None, syncscope: Any, ordering: Any) -> Any:
    ptr = expect_pointer(getattr(ptr, "iter", ptr), f"the pointer of atomic_f{op}")
    dtype = dtype_of(ptr.plain.elem)
    if not dtype.is_float:
        raise AtomicValue(op=f"f{op}", got=shown(value), dtype=ptr.plain.elem)
    if is_positive is None:
        return _read_modify_write(op, ptr, value, syncscope, ordering)
    # Bits of floats of one sign are ordered like integers; of negative ones the other way round.
    kind = op if is_positive else {"max": "umin", "min": "umax"}[op]
    bits = _SAME_WIDTH[dtype.width]
    x = from_python_value(value)
    operand = raw_scalar((x if x.__class__ is dtype else x.to(dtype)).bitcast(bits))
    attrs = _attrs(_ordering(ordering), syncscope, bin_op=ir.IntegerAttr.get(current().types.i64, _BIN_OPS[kind]))
    return wrap_scalar(bits, emit1("llvm.atomicrmw", operand.type, (to_llvm_ptr(ptr), operand), attrs)).bitcast(dtype)


def atomic_cas(
    ptr: Pointer,
    cmp: Any,
    val: Any,
    *,
    syncscope: Any = None,
    success_ordering: Any = AtomicOrdering.Monotonic,
    failure_ordering: Any = AtomicOrdering.Monotonic,
    weak: bool = False,
) -> tuple[Any, Boolean]:
    """Write `val` if memory holds `cmp`; return (the value before, whether it was written)."""
    ptr = expect_pointer(getattr(ptr, "iter", ptr), "the pointer of atomic_cas")
    expected, wrapped = _operand(ptr, cmp)
    new, _ = _operand(ptr, val)
    types = current().types
    pair = ir.Type.parse(f"!llvm.struct<({expected.type}, i1)>", current().context)
    attrs = _attrs(_ordering(success_ordering), syncscope)
    attrs["success_ordering"] = attrs.pop("ordering")
    attrs["failure_ordering"] = ir.IntegerAttr.get(types.i64, _ordering(failure_ordering))
    if weak:
        attrs["weak"] = ir.UnitAttr.get()
    both = emit1("llvm.cmpxchg", pair, (to_llvm_ptr(ptr), expected, new), attrs)
    old = emit1("llvm.extractvalue", expected.type, (both,), {"position": ir.DenseI64ArrayAttr.get([0])})
    done = emit1("llvm.extractvalue", types.i1, (both,), {"position": ir.DenseI64ArrayAttr.get([1])})
    return wrapped(old), wrap_scalar(Boolean, done)


def memory_fence(*, syncscope: Any = None, ordering: Any = AtomicOrdering.SeqCst) -> None:
    """Order this thread's memory accesses before and after, as others of the scope see them."""
    emit("llvm.fence", (), (), _attrs(_ordering(ordering), syncscope))


def _access(
    memory_order: Any, syncscope: Any, alignment: int, nontemporal: bool, volatile: bool
) -> dict[str, ir.Attribute]:
    attrs = _attrs(_ordering(memory_order), syncscope, alignment=ir.IntegerAttr.get(current().types.i64, alignment))
    if nontemporal:
        attrs["nontemporal"] = ir.UnitAttr.get()
    if volatile:
        attrs["volatile_"] = ir.UnitAttr.get()
    return attrs


def generic_load(
    ptr: Pointer,
    *,
    dtype: Any = None,
    count: int | None = None,
    memory_order: Any = AtomicOrdering.NotAtomic,
    syncscope: Any = None,
    nontemporal: bool = False,
    volatile: bool = False,
) -> Any:
    """Load a scalar, or a Vector of `count` adjacent elements, with an ordering."""
    ptr = expect_pointer(getattr(ptr, "iter", ptr), "the pointer of generic_load")
    dtype = dtype_of(ptr.plain.elem) if dtype is None else dtype
    vector = count is not None or not is_numeric_class(dtype)
    type_ = current().types.vector(count, dtype.ir_type) if count is not None else dtype.ir_type
    attrs = _access(memory_order, syncscope, ptr.alignment, nontemporal, volatile)
    value = emit1("llvm.load", type_, (to_llvm_ptr(ptr),), attrs)
    if not vector:
        return wrap_scalar(dtype, value)
    return Vector(value) if count is not None else dtype(value)


def generic_store(
    ptr: Pointer,
    value: Any,
    *,
    memory_order: Any = AtomicOrdering.NotAtomic,
    syncscope: Any = None,
    nontemporal: bool = False,
    volatile: bool = False,
) -> None:
    """Store a scalar or a vector with an ordering; Python numbers take the pointer's element type."""
    ptr = expect_pointer(getattr(ptr, "iter", ptr), "the pointer of generic_store")
    operand = as_vector(value)
    if operand is None:
        operand = raw_scalar(value) if isinstance(value, Numeric) else _operand(ptr, value)[0]
    attrs = _access(memory_order, syncscope, ptr.alignment, nontemporal, volatile)
    emit("llvm.store", (), (operand, to_llvm_ptr(ptr)), attrs)


__all__ = [
    "AtomicOrdering", "SyncScope", "atomic_add", "atomic_and", "atomic_cas", "atomic_fmax", "atomic_fmin",
    "atomic_max", "atomic_min", "atomic_or", "atomic_sub", "atomic_xchg", "atomic_xor", "generic_load",
    "generic_store", "memory_fence",
]  # fmt: skip

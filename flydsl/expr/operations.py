"""Copy and matrix operations that exist on every chip, and values made of their type alone."""

from __future__ import annotations

from typing import Any

from flydsl.atoms import UniversalAtomic as PlainUniversalAtomic
from flydsl.atoms import UniversalCopy as PlainUniversalCopy
from flydsl.atoms import UniversalFMA as PlainUniversalFMA
from flydsl.diag import StaticType
from flydsl.dialects.values import is_static
from flydsl.expr.enum import AtomicOp
from flydsl.expr.fly_types import CopyOpUniversalAtomicType, MmaOpUniversalFMAType, element_name, plain_of_type
from flydsl.expr.int_tuples import as_int
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.values import FlyValue, wrap


def static(result_type: Any) -> FlyValue:
    """Return the value of a type that says all: a layout, tuple, tile, swizzle or atom without run-time parts."""
    plain = plain_of_type(result_type)
    if not is_static(plain):
        raise StaticType(got=str(result_type))
    return wrap(plain)


def assume(result_type: Any, dst: Any, src: Any) -> Any:
    """Return `dst` in another type, on the author's word that it holds."""
    return from_python_value(dst) if result_type is None else result_type(dst)


def UniversalCopy(bit_size: int) -> PlainUniversalCopy:
    """Return the plain load or store of `bit_size` bits between any two memories."""
    return PlainUniversalCopy(as_int(bit_size, "the width of UniversalCopy"))


def UniversalCopy8b() -> PlainUniversalCopy:
    """Return the plain copy of 8 bits."""
    return PlainUniversalCopy(8)


def UniversalCopy16b() -> PlainUniversalCopy:
    """Return the plain copy of 16 bits."""
    return PlainUniversalCopy(16)


def UniversalCopy32b() -> PlainUniversalCopy:
    """Return the plain copy of 32 bits."""
    return PlainUniversalCopy(32)


def UniversalCopy64b() -> PlainUniversalCopy:
    """Return the plain copy of 64 bits."""
    return PlainUniversalCopy(64)


def UniversalCopy128b() -> PlainUniversalCopy:
    """Return the plain copy of 128 bits."""
    return PlainUniversalCopy(128)


def UniversalAtomic(atomic_op: Any, val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the read-modify-write of one value in global memory or LDS; `atomic_op` is an AtomicOp or its name."""
    return CopyOpUniversalAtomicType.get(atomic_op, val_type, syncscope)


def UniversalAtomicAdd(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic add."""
    return UniversalAtomic(AtomicOp.Add, val_type, syncscope)


def UniversalAtomicMax(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic maximum."""
    return UniversalAtomic(AtomicOp.Max, val_type, syncscope)


def UniversalAtomicMin(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic minimum."""
    return UniversalAtomic(AtomicOp.Min, val_type, syncscope)


def UniversalAtomicAnd(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic bitwise and."""
    return UniversalAtomic(AtomicOp.And, val_type, syncscope)


def UniversalAtomicOr(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic bitwise or."""
    return UniversalAtomic(AtomicOp.Or, val_type, syncscope)


def UniversalAtomicInc(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic increment that wraps to 0 above the operand."""
    return UniversalAtomic(AtomicOp.Inc, val_type, syncscope)


def UniversalAtomicDec(val_type: Any, syncscope: str = "") -> PlainUniversalAtomic:
    """Return the atomic decrement that wraps to the operand below 0."""
    return UniversalAtomic(AtomicOp.Dec, val_type, syncscope)


def UniversalFMA(ty: Any) -> PlainUniversalFMA:
    """Return the one-thread multiply-add of an element type, as a 1x1x1 matrix operation."""
    return MmaOpUniversalFMAType.get(element_name(ty))

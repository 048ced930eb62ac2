"""What library types implement, as functions: values that flatten to IR (`DslType`), launch arguments
(`JitArgument`), memory (`Storable`).

Each function calls the method of its name, or takes containers apart; a type that lacks the method is refused by
name.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

from flydsl.diag import NotDslType, NotJitArgument, NotStorable, ValueCount
from flydsl.expr.carrying import flat_types
from flydsl.expr.numeric.base import Numeric, NumericMeta
from flydsl.expr.pointers import ptr_store, recast_iter
from flydsl.expr.values import FlyValue
from flydsl.expr.vector.core import Vector
from flydsl.ir import get_types, ir

CAbiSlot = tuple[type, Callable[[Any, Any], None]]


@runtime_checkable
class DslType(Protocol):
    """A value that is flattened to IR values and rebuilt from them."""

    def __extract_to_ir_values__(self) -> list[ir.Value]: ...

    @classmethod
    def __construct_from_ir_values__(cls, values: Sequence[ir.Value], exemplar: Any = None) -> Any: ...


@runtime_checkable
class JitArgument(Protocol):
    """An argument of a launch: its IR types, and how its C slots are filled."""

    def __get_ir_types__(self) -> list[ir.Type]: ...

    def __c_abi_spec__(self) -> list[CAbiSlot]: ...


@runtime_checkable
class Storable(Protocol):
    """A type that lies in memory."""

    @classmethod
    def __dsl_size_of__(cls) -> int: ...

    @classmethod
    def __dsl_align_of__(cls) -> int: ...

    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Any: ...

    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None: ...


def _parts(obj: Any) -> list[Any] | None:
    """Return the elements of a container that is handled structurally, None for anything else."""
    if isinstance(obj, (list, tuple)):
        return list(obj)
    if isinstance(obj, dict):
        return list(obj.values())
    if isinstance(obj, SimpleNamespace):
        return list(obj.__dict__.values())
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type) and not hasattr(obj, "__extract_to_ir_values__"):
        return [getattr(obj, f.name) for f in dataclasses.fields(obj)]
    return None


def _joined(fn: Callable[[Any], list], parts: list[Any]) -> list:
    return [x for part in parts for x in fn(part)]


# --- DslType ---------------------------------------------------------------------------------------------------------


def extract_to_ir_values(obj: Any) -> list[ir.Value]:
    """Return the IR values that a value is made of."""
    parts = _parts(obj)
    if parts is not None:
        return _joined(extract_to_ir_values, parts)
    method = getattr(obj, "__extract_to_ir_values__", None)
    if method is None:
        raise NotDslType(got=type(obj).__name__)
    return list(method())


def construct_from_ir_values(dsl_type: Any, args: Any, values: Sequence[ir.Value]) -> Any:
    """Return a value like the exemplar `args`, of class `dsl_type`, made of IR values."""
    values = list(values)
    parts = _parts(args)
    if parts is not None:
        return _rebuilt_container(args, parts, values)
    method = getattr(dsl_type, "__construct_from_ir_values__", None)
    if method is None:
        raise NotDslType(got=getattr(dsl_type, "__name__", str(dsl_type)))
    return method(values, exemplar=args)


def _rebuilt_container(args: Any, parts: list[Any], values: list[ir.Value]) -> Any:
    out, given = [], len(values)
    for part in parts:
        count = ir_value_count(part)
        out.append(construct_from_ir_values(type(part), part, values[:count]))
        values = values[count:]
    if values:
        raise ValueCount(owner=type(args).__name__, expected=given - len(values), got=given)
    if dataclasses.is_dataclass(args):
        return dataclasses.replace(args, **dict(zip([f.name for f in dataclasses.fields(args)], out, strict=True)))
    if isinstance(args, dict):
        return dict(zip(args, out, strict=True))
    if isinstance(args, SimpleNamespace):
        return SimpleNamespace(**dict(zip(args.__dict__, out, strict=True)))
    return tuple(out) if isinstance(args, tuple) else out


def ir_value_count(obj: Any) -> int:
    """Return how many IR values a value flattens to, without reading any: it may belong to another function."""
    if isinstance(obj, FlyValue):
        state = getattr(obj, "state", None)
        return len(flat_types(obj.plain, get_types())) if state is None else len(state)
    if isinstance(obj, (Numeric, Vector)):
        return 1
    parts = _parts(obj)
    if parts is None:
        count = getattr(obj, "__ir_value_count__", None)
        return count() if count is not None else len(extract_to_ir_values(obj))
    return sum(ir_value_count(p) for p in parts)


# --- JitArgument -----------------------------------------------------------------------------------------------------


def get_ir_types(obj: Any) -> list[ir.Type]:
    """Return the IR types of the parameters that an argument becomes."""
    parts = _parts(obj)
    if parts is not None:
        return _joined(get_ir_types, parts)
    method = getattr(obj, "__get_ir_types__", None)
    if method is not None:
        return list(method())
    if isinstance(obj, FlyValue):
        return [obj.type]
    return [v.type for v in extract_to_ir_values(obj)]


def cache_signature(obj: Any) -> object:
    """Return what the code that is compiled for an argument depends on."""
    parts = _parts(obj)
    if parts is not None:
        keys = tuple(obj) if isinstance(obj, dict) else ()
        return (type(obj).__name__, keys, *[cache_signature(p) for p in parts])
    method = getattr(obj, "__cache_signature__", None)
    if method is not None:
        return method()
    if isinstance(obj, Numeric):
        return type(obj).__name__
    raise NotJitArgument(got=type(obj).__name__, part="cache signature")


_CTYPES = {
    "i1": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "index": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip
_UNSIGNED = {"i8": ctypes.c_uint8, "i16": ctypes.c_uint16, "i32": ctypes.c_uint32, "i64": ctypes.c_uint64}


def c_abi_spec(obj: Any) -> list[CAbiSlot]:
    """Return (ctype, fill(argument, storage)) of each C slot of an argument."""
    parts = _parts(obj)
    if parts is not None:
        return _joined(c_abi_spec, parts)
    method = getattr(obj, "__c_abi_spec__", None)
    if method is not None:
        return list(method())
    if isinstance(obj, Numeric):
        return [_scalar_slot(obj)]
    raise NotJitArgument(got=type(obj).__name__, part="C-ABI description")


def _scalar_slot(x: Numeric) -> CAbiSlot:
    name = x.element.mlir
    ctype = _CTYPES.get(name) if x.signed is not False else _UNSIGNED.get(name)
    if ctype is None:
        raise NotJitArgument(got=type(x).__name__, part="C-ABI description")

    def fill(argument: Any, storage: Any) -> None:
        storage.value = argument.value

    return ctype, fill


# --- Storable --------------------------------------------------------------------------------------------------------


def _storable(dsl_type: Any, name: str) -> Callable:
    if isinstance(dsl_type, NumericMeta) and (getattr(dsl_type, "width", 0) % 8 or not getattr(dsl_type, "width", 0)):
        raise NotStorable(got=dsl_type.__name__, why_text="sub-byte scalars have no address of their own")
    method = getattr(dsl_type, name, None)
    if method is None:
        got = getattr(dsl_type, "__name__", str(dsl_type))
        raise NotStorable(got=got, why_text="it is a value of registers, without a layout in memory")
    return method


def dsl_size_of(dsl_type: Any) -> int:
    """Return how many bytes a value of the type takes in memory."""
    return _storable(dsl_type, "__dsl_size_of__")()


def dsl_align_of(dsl_type: Any) -> int:
    """Return what the address of a value of the type must be a multiple of, in bytes."""
    return _storable(dsl_type, "__dsl_align_of__")()


def peek_from_ptr(dsl_type: Any, ptr: Any) -> Any:
    """Return the value of the type at `ptr`."""
    return _storable(dsl_type, "__peek_from_ptr__")(ptr)


def poke_into_ptr(dsl_type: Any, ptr: Any, value: Any) -> None:
    """Write a value of the type at `ptr`."""
    method = _storable(dsl_type, "__poke_into_ptr__")
    if isinstance(value, Numeric):
        ptr_store(value, recast_iter(type(value), ptr))
    elif isinstance(value, Vector):
        ptr_store(value, ptr)
    else:
        method(ptr, value)

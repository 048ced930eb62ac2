"""What classes implement to be arguments, to cross control flow and to be stored; functions that call it on any value."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

from flydsl.diag import ProtocolMissing
from flydsl.frontend import carry
from flydsl.frontend.carry import Same
from flydsl.ir import ir

__all__ = [
    "DslType",
    "JitArgument",
    "Storable",
    "c_abi_spec",
    "cache_signature",
    "construct_from_ir_values",
    "dsl_align_of",
    "dsl_size_of",
    "extract_to_ir_values",
    "get_ir_types",
    "peek_from_ptr",
    "poke_into_ptr",
]


@runtime_checkable
class DslType(Protocol):
    """A value made of IR values: it can be carried through loops and branches."""

    @classmethod
    def __construct_from_ir_values__(cls, values: Sequence["ir.Value"], exemplar: Any = None) -> Any: ...

    def __extract_to_ir_values__(self) -> list["ir.Value"]: ...


@runtime_checkable
class JitArgument(Protocol):
    """A host value that can be an argument of a jit function."""

    def __get_ir_types__(self) -> list["ir.Type"]: ...

    def __c_abi_spec__(self) -> list[tuple]: ...


@runtime_checkable
class Storable(Protocol):
    """A value with a place in memory."""

    @classmethod
    def __dsl_size_of__(cls) -> int: ...

    @classmethod
    def __dsl_align_of__(cls) -> int: ...

    @classmethod
    def __peek_from_ptr__(cls, pointer: Any) -> Any: ...

    def __poke_into_ptr__(self, pointer: Any) -> None: ...


def extract_to_ir_values(value: Any) -> list["ir.Value"]:
    """Return the IR values of a DSL value, a number, or a container of them.

    Raises   ProtocolMissing: some part has no IR values
    """
    node = carry.plan(value)
    _refuse_opaque(node)
    out: list[ir.Value] = []
    node.flatten(value, out)
    return out


def _refuse_opaque(node: carry.Node) -> None:
    if isinstance(node, Same):
        raise ProtocolMissing(
            action="extract IR values from", value=carry.describe(node.value), method="__extract_to_ir_values__"
        )
    for inner in getattr(node, "nodes", ()):
        _refuse_opaque(inner)


def construct_from_ir_values(dsl_type: Any, args: Any, values: Sequence["ir.Value"]) -> Any:
    """Return a value of `dsl_type`, shaped like `args`, made of IR values."""
    if args is None:
        return dsl_type.__construct_from_ir_values__(list(values))
    node = carry.plan(args)
    node.flatten(args, [])
    return node.rebuild(iter(values))


def get_ir_types(value: Any) -> list["ir.Type"]:
    """Return the IR types that an argument takes."""
    parts = _parts(value)
    if parts is not None:
        return [t for p in parts for t in get_ir_types(p)]
    if hasattr(value, "__get_ir_types__"):
        return list(value.__get_ir_types__())
    return [v.type for v in extract_to_ir_values(value)]


def c_abi_spec(value: Any) -> list[tuple]:
    """Return (ctype, fill) for each slot that an argument takes."""
    parts = _parts(value)
    if parts is not None:
        return [slot for p in parts for slot in c_abi_spec(p)]
    return list(_method(value, "__c_abi_spec__", "pass to a launch")())


def cache_signature(value: Any) -> Any:
    """Return what of an argument decides the compiled code."""
    parts = _parts(value)
    if parts is not None:
        return (type(value), *(cache_signature(p) for p in parts))
    method = getattr(value, "__cache_signature__", None)
    return method() if method is not None else (type(value), *map(str, get_ir_types(value)))


def dsl_size_of(value: Any) -> int:
    """Return the bytes that a value or type takes in memory."""
    return _method(value, "__dsl_size_of__", "store")()


def dsl_align_of(value: Any) -> int:
    """Return the alignment in bytes of a value or type."""
    return _method(value, "__dsl_align_of__", "store")()


def peek_from_ptr(dsl_type: Any, pointer: Any) -> Any:
    """Return the value of a type that is stored at a pointer."""
    return _method(dsl_type, "__peek_from_ptr__", "load")(pointer)


def poke_into_ptr(value: Any, pointer: Any) -> None:
    """Store a value at a pointer."""
    _method(value, "__poke_into_ptr__", "store")(pointer)


def _parts(value: Any) -> list | None:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    return list(vars(value).values()) if isinstance(value, SimpleNamespace) else None


def _method(value: Any, name: str, action: str) -> Any:
    found = getattr(value, name, None)
    if found is None:
        raise ProtocolMissing(action=action, value=carry.describe(value), method=name)
    return found

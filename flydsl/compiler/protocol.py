"""What classes implement to be arguments, to cross control flow and to be stored; functions that call it."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from flydsl.diag import ProtocolMissing
from flydsl.expr.protocol import (
    c_abi_spec,
    cache_signature,
    construct_from_ir_values,
    dsl_align_of,
    dsl_size_of,
    get_ir_types,
    peek_from_ptr,
    poke_into_ptr,
)
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

    @classmethod
    def __poke_into_ptr__(cls, pointer: Any, value: Any) -> None: ...


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

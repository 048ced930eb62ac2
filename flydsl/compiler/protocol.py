"""What classes implement to be arguments, to cross control flow and to be stored; functions that call it."""

from typing import Any

from flydsl.diag import ProtocolMissing
from flydsl.expr.protocol import (
    DslType,
    JitArgument,
    Storable,
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

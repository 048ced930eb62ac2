"""Fly types: each has one string parameter, the text that the reference prints between `<` and `>`.

`type_of` and `value_of` go between a plain value (see `dialects.values`) and its type; both are cached per context.
"""

from typing import Any

from flydsl.dialects.fly.base import Fly
from flydsl.dialects.values import KIND_OF_CLASS, inner_text, parse_inner
from flydsl.ir import ir

KINDS = (
    "int_tuple",
    "layout",
    "composed_layout",
    "tile",
    "swizzle",
    "coord_swizzle",
    "ptr",
    "memref",
    "coord_tensor",
    "copy_atom",
    "mma_atom",
    "tiled_copy",
    "tiled_mma",
)


def _define(kind: str) -> type:
    doc = f"`!fly.{kind}<...>`"
    return type(kind, (Fly.Type,), {"__annotations__": {"text": ir.StringAttr}, "__doc__": doc}, name=kind)


TYPES = {kind: _define(kind) for kind in KINDS}


class _Tables:
    """The two caches of one context."""

    __slots__ = ("of_type", "of_value")

    def __init__(self):
        self.of_value: dict = {}
        self.of_type: dict = {}


def _tables(context: ir.Context) -> _Tables:
    try:
        return context.fly_type_tables
    except AttributeError:
        context.fly_type_tables = tables = _Tables()
        return tables


def type_of(value: Any, context: ir.Context | None = None) -> ir.Type:
    """Return the Fly type of a plain value; the value must not carry payloads."""
    context = context or ir.Context.current
    tables = _tables(context)
    key = (value.__class__, value)
    t = tables.of_value.get(key)
    if t is None:
        text = ir.StringAttr.get(inner_text(value), context)
        t = ir.DynamicType.get(f"fly.{KIND_OF_CLASS[type(value)]}", [text], context=context)
        tables.of_value[key] = t
        tables.of_type[t] = value
    return t


def value_of(type_: ir.Type) -> Any:
    """Return the plain value that a Fly type states."""
    table = _tables(type_.context).of_type
    value = table.get(type_, table)
    if value is table:
        kind, _, rest = str(type_).removeprefix("!fly.").partition("<")
        text = rest[1:-2].replace("\\22", '"').replace("\\5C", "\\")  # as MLIR prints them inside a string
        value = table[type_] = parse_inner(kind, text)
    return value


def is_fly_type(type_: ir.Type) -> bool:
    """Return whether `type_` belongs to the fly dialect."""
    if not isinstance(type_, ir.DynamicType):
        return False
    return type_.__class__.__name__ in TYPES or type_ in _tables(type_.context).of_type  # just made, or read from a value

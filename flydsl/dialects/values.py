"""The plain values behind Fly types, and their dynamic leaves. Imports no MLIR.

Layouts, tuples, tiles, swizzles, pointers and views are the values of `flydsl.layout`, atoms those of `flydsl.atoms`. A value with payloads
(IR values in its dynamic leaves and pointers) is what lowering works on; without payloads it is a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flydsl import layout as la
from flydsl.layout.int_tuple import to_str
from flydsl.layout.parse import parse
from flydsl.layout.view import CoordTensor, MemRef, Ptr

REGISTER, SHARED, GLOBAL, GENERIC = "register", "shared", "global", "generic"
BUFFER_DESC = "#fly_rocdl.buffer_desc"
LLVM_SPACE = {GENERIC: 0, GLOBAL: 1, SHARED: 3, REGISTER: 5, BUFFER_DESC: 8}

KIND_OF_CLASS: dict[type, str] = {
    int: "int_tuple",
    tuple: "int_tuple",
    type(None): "int_tuple",
    la.Sym: "int_tuple",
    la.Basis: "int_tuple",
    la.Layout: "layout",
    la.ComposedLayout: "composed_layout",
    la.Tile: "tile",
    la.Swizzle: "swizzle",
    la.CoordSwizzle: "coord_swizzle",
    Ptr: "ptr",
    MemRef: "memref",
    CoordTensor: "coord_tensor",
}
_WHOLE_TYPES = ("ptr", "memref", "coord_tensor", "copy_atom", "mma_atom", "tiled_copy", "tiled_mma")
_PARSERS: dict[str, Callable[[str], Any]] = {}
_PRINTERS: dict[str, Callable[[Any], str]] = {}


def register_kind(
    kind: str, cls: type, parse_whole: Callable[[str], Any], print_whole: Callable[[Any], str] = str
) -> None:
    """Make `cls` a value class of `!fly.<kind>`; the functions go between a value and the whole text of its type."""
    KIND_OF_CLASS[cls] = kind
    _PARSERS[kind] = parse_whole
    _PRINTERS[kind] = print_whole


def inner_text(value: Any) -> str:
    """Return what is printed between `<` and `>` of the type of `value`."""
    kind = KIND_OF_CLASS[type(value)]
    if kind in _WHOLE_TYPES:
        return _PRINTERS.get(kind, str)(value)[len(kind) + 6 : -1]
    return to_str(value) if kind == "int_tuple" else str(value)


def parse_inner(kind: str, text: str) -> Any:
    """Return the value of `!fly.<kind><text>`."""
    if kind in _WHOLE_TYPES:
        return _PARSERS.get(kind, parse)(f"!fly.{kind}<{text}>")
    return parse(text)


def dynamic_leaves(value: Any) -> tuple:
    """Return the dynamic leaves (Sym) of a value in order: of a view the iterator's come first."""
    out: list = []
    _collect(value, out)
    return tuple(out)


def _collect(value: Any, out: list) -> None:
    for part in _parts(value):
        if isinstance(part, la.Sym):
            out.append(part)
        else:
            _collect(part, out)


def _parts(value: Any) -> tuple:
    match value:
        case la.Sym():
            return (value,)
        case tuple():
            return value
        case la.Basis():
            return (value.value,)
        case la.Layout():
            return (value.shape, value.stride)
        case la.ComposedLayout():
            return (value.inner, value.offset, value.outer)
        case MemRef():
            return (value.layout,)
        case CoordTensor():
            return (value.base, value.layout)
    return ()


def with_leaves(value: Any, leaves: Iterator) -> Any:
    """Return `value` with its dynamic leaves replaced, in the order of `dynamic_leaves`, by the next of `leaves`."""
    match value:
        case la.Sym():
            return next(leaves)
        case tuple():
            return tuple(with_leaves(v, leaves) for v in value)
        case la.Basis():
            return la.Basis(with_leaves(value.value, leaves), value.modes)
        case la.Layout():
            shape = with_leaves(value.shape, leaves)
            return la.Layout(shape, with_leaves(value.stride, leaves))
        case la.ComposedLayout():
            inner, offset = with_leaves(value.inner, leaves), with_leaves(value.offset, leaves)
            return la.ComposedLayout(inner, offset, with_leaves(value.outer, leaves))
        case MemRef():
            return MemRef(value.ptr, with_leaves(value.layout, leaves))
        case CoordTensor():
            base = with_leaves(value.base, leaves)
            return CoordTensor(base, with_leaves(value.layout, leaves))
    return value


def is_static(value: Any) -> bool:
    """Return whether a value has no dynamic leaf and points to no memory: its type says everything."""
    return not isinstance(value, (Ptr, MemRef)) and not dynamic_leaves(value)


def split_top(text: str) -> list[str]:
    """Split at commas that stand outside all brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "(<[{":
            depth += 1
        elif c in ")]}" or (c == ">" and text[i - 1] != "-"):
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts

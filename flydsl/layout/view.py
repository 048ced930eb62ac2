"""Views as types: a pointer, a memref (layout over a pointer), a coordinate tensor (layout over
a base).

Only what the algebra decides about them: alignment after an offset, slicing, regrouping of modes.
Element values, loads and stores belong to the front end.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from functools import cache
from math import gcd
from typing import Any

from flydsl.utils.record import record

from . import leaf
from .errors import OperandType
from .int_tuple import IntTuple, coord_add, to_str
from .layout import ComposedLayout, Layout
from .leaf import Basis, Payloads, Sym
from .memo import carries_payload
from .modes import slice_, slice_with_offset
from .swizzle import Swizzle

SPACES = ("generic", "global", "shared", "register", "#fly_rocdl.buffer_desc")  # as types spell them


@cache
def element_bits(elem: str) -> int:
    """Return the width of an element type such as f16, i8, bf16, f8E4M3FNUZ."""
    found = re.match(r"[a-z]+(\d+)", elem)
    if elem == "index":
        return 64
    if not found:
        raise OperandType(f"{elem} is no element type", "element_bits", (elem,))
    return int(found.group(1))


def element_bytes(elem: str) -> int:
    """Return the bytes of an element, rounded up."""
    return -(-element_bits(elem) // 8)


def _without_hash(x: Any) -> dict:
    """Return what is pickled: hashes of strings differ from process to process."""
    return {name: value for name, value in x.__dict__.items() if name != "_hash"}


@record
class Ptr:
    """An address of `elem` in `space`; `align_bytes` 0 means the element's own alignment.

    `value` is the payload, as in a `Sym`: the builder makes that of a moved pointer, comparison
    ignores it.
    """

    elem: str
    space: str
    align_bytes: int = 0
    swizzle: Swizzle | None = None
    value: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        if not self.align_bytes:
            object.__setattr__(self, "align_bytes", element_bytes(self.elem))
        if self.value is not None:
            Payloads.made = True

    def carries_payload(self) -> bool:
        return self.value is not None

    def with_value(self, value: Any, align_bytes: int | None = None) -> Ptr:
        """Return the pointer with another payload, and alignment if one is given; a tenth of what `replace` takes."""
        new = object.__new__(Ptr)
        fields = new.__dict__
        fields.update(self.__dict__)
        fields["value"] = value
        if align_bytes is not None and align_bytes != self.align_bytes:
            fields["align_bytes"] = align_bytes
            fields.pop("_hash", None)
        if value is not None:
            Payloads.made = True
        return new

    def __hash__(self) -> int:
        """Views and pointers are keys of every memo while tracing, so the hash is computed once."""
        try:
            return self.__dict__["_hash"]
        except KeyError:
            self.__dict__["_hash"] = h = hash((self.elem, self.space, self.align_bytes, self.swizzle))
            return h

    def __getstate__(self) -> dict:
        return _without_hash(self)

    def suffix(self) -> str:
        """Return the printed alignment and swizzle; a recast to wider elements leaves an alignment below the element's."""
        align = f", align<{self.align_bytes}>" if self.align_bytes != element_bytes(self.elem) else ""
        return align + (f", {self.swizzle}" if self.swizzle is not None else "")

    def __str__(self) -> str:
        return f"!fly.ptr<{self.elem}, {self.space}{self.suffix()}>"


@record
class MemRef:
    """A layout over a pointer."""

    ptr: Ptr
    layout: Any

    def carries_payload(self) -> bool:
        return self.ptr.carries_payload() or carries_payload(self.layout)

    def __hash__(self) -> int:
        try:
            return self.__dict__["_hash"]
        except KeyError:
            self.__dict__["_hash"] = h = hash((self.ptr, self.layout))
            return h

    def __getstate__(self) -> dict:
        return _without_hash(self)

    def __str__(self) -> str:
        return f"!fly.memref<{self.ptr.elem}, {self.ptr.space}, {self.layout}{self.ptr.suffix()}>"


@record
class CoordTensor:
    """A layout over a base coordinate or integer: a tensor without memory whose elements are
    base + layout(c).
    """

    base: IntTuple
    layout: Any

    def carries_payload(self) -> bool:
        return carries_payload(self.base) or carries_payload(self.layout)

    def __hash__(self) -> int:
        try:
            return self.__dict__["_hash"]
        except KeyError:
            self.__dict__["_hash"] = h = hash((self.base, self.layout))
            return h

    def __getstate__(self) -> dict:
        return _without_hash(self)

    def __str__(self) -> str:
        return f"!fly.coord_tensor<{to_str(self.base)}, {self.layout}>"


def add_offset(ptr: Ptr, offset: Any) -> Ptr:
    """Return the pointer moved by `offset` elements: the alignment is what both sides promise.

    Units    offset in elements
    """
    if not isinstance(ptr, Ptr):
        raise OperandType("expected a pointer", "add_offset", (ptr, offset))
    known = offset.div if type(offset) is Sym else 0 if offset is None else offset
    if type(known) is not int:
        raise OperandType(f"expected an integer offset, got {to_str(offset)}", "add_offset", (ptr, offset))
    if known == 0:
        return ptr
    align_bits = gcd(ptr.align_bytes * 8, known * element_bits(ptr.elem))
    moved = None if ptr.value is None else leaf.current_builder().pointer(ptr, offset)
    return ptr.with_value(moved, max(align_bits // 8, 1))


def swizzled(ptr: Ptr, swizzle: Swizzle) -> Ptr:
    """Return the pointer whose byte addresses go through `swizzle` at the access; it replaces
    an earlier one.

    Of the alignment no more is kept than 2^base elements.
    """
    if not isinstance(ptr, Ptr) or not isinstance(swizzle, Swizzle):
        raise OperandType("expected a pointer and a swizzle", "apply_swizzle", (ptr, swizzle))
    align_bits = gcd(ptr.align_bytes * 8, element_bits(ptr.elem) << swizzle.base)
    return replace(ptr, swizzle=swizzle, align_bytes=max(align_bits // 8, 1))


def make_view(base: Any, layout: Any) -> Any:
    """Return a memref over a pointer, or a coordinate tensor over a coordinate or integer."""
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise OperandType("expected a layout", "make_view", (base, layout))
    if isinstance(base, Ptr):
        return MemRef(base, layout)
    if base is not None and not isinstance(base, (int, tuple, Sym, Basis)):
        raise OperandType("expected a pointer, a coordinate or an integer", "make_view", (base, layout))
    return CoordTensor(base, layout)


def slice_view(view: Any, coord: IntTuple) -> Any:
    """Return the view of the modes where `coord` is None; the fixed part moves pointer, base or
    inner offset.
    """
    if isinstance(view.layout, ComposedLayout):
        return replace(view, layout=slice_(view.layout, coord))
    layout, moved = slice_with_offset(view.layout, coord)
    if isinstance(view, CoordTensor):
        return CoordTensor(coord_add(view.base, moved), layout)
    return MemRef(add_offset(view.ptr, moved), layout)


def with_layout(view: Any, fn: Any, *args: Any) -> Any:
    """Return the view with its layout replaced by fn(layout, ...)."""
    return replace(view, layout=fn(view.layout, *args))


View = MemRef | CoordTensor

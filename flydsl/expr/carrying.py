"""How values of the fly dialect travel through loops, branches and function calls: as raw pointers and integers.

A pointer or tensor becomes its raw pointer (a buffer pointer: resource and offset) and its dynamic leaves; layouts
and int tuples become their leaves; static values and register tensors (memory of the lane) become nothing; an atom
becomes the state that is set on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from flydsl import layout as la
from flydsl.dialects.values import BUFFER_DESC, LLVM_SPACE, REGISTER, dynamic_leaves, with_leaves
from flydsl.expr.int_tuples import IntTuple, from_leaves, get_leaf_values
from flydsl.expr.pointers import carried_pointer, rebuilt_pointer
from flydsl.expr.values import FlyValue, build, wrap
from flydsl.ir import Types, ir
from flydsl.layout.view import CoordTensor, MemRef, Ptr


def flatten(x: FlyValue) -> list[ir.Value]:
    """Return the raw values that `rebuild` needs beside the value's type."""
    plain = x.plain
    if plain.__class__ is MemRef:
        if plain.ptr.space == REGISTER:
            return []
        return carried_pointer(x.iter) + (get_leaf_values(x) if dynamic_leaves(plain) else [])
    if plain.__class__ is Ptr:
        return carried_pointer(x)
    if x.__class__ is IntTuple:
        return list(x.leaf_values())
    return get_leaf_values(x) if dynamic_leaves(plain) else []


def rebuild(exemplar: FlyValue, values: Sequence[ir.Value]) -> FlyValue:
    """Return the value of the exemplar's type made of what `flatten` gave."""
    plain = exemplar.plain
    if plain.__class__ is MemRef and plain.ptr.space == REGISTER:
        return exemplar
    if not dynamic_leaves(plain) and not isinstance(plain, (Ptr, MemRef)):
        return exemplar
    return from_values(plain, values)


def from_values(plain: Any, values: Sequence[ir.Value]) -> FlyValue:
    """Return the value of type `plain` made of its flat values."""
    if isinstance(plain, (Ptr, MemRef)):
        ptr = plain if isinstance(plain, Ptr) else plain.ptr
        pointer = rebuilt_pointer(ptr, values)
        if isinstance(plain, Ptr):
            return pointer
        rest = values[2 if ptr.space == BUFFER_DESC else 1 :]
        return build("fly.make_view", (pointer, _assemble(plain.layout, iter(rest))))
    return _assemble(plain, iter(values))


def _assemble(plain: Any, leaves: Iterator[ir.Value]) -> FlyValue:
    """Return a value without memory from its dynamic leaves in order."""
    count = len(dynamic_leaves(plain))
    if not count:
        return wrap(plain)
    match plain:
        case la.Layout():
            shape = _assemble(plain.shape, leaves)
            return build("fly.make_layout", (shape, _assemble(plain.stride, leaves)))
        case la.ComposedLayout():
            parts = [_assemble(p, leaves) for p in (plain.inner, plain.offset, plain.outer)]
            return build("fly.make_composed_layout", tuple(parts))
        case CoordTensor():
            base = _assemble(plain.base, leaves)
            return build("fly.make_view", (base, _assemble(plain.layout, leaves)))
    return from_leaves(plain, [next(leaves) for _ in range(count)])


def can_continue(entry: Any, produced: Any) -> bool:
    """Return whether a value of type `produced` may take the place of one of type `entry` in the next round of a
    loop.

    Both are plain values. The produced one may promise more (a larger divisor or alignment), never less or something
    else.
    """
    if entry == produced:
        return True
    mine, theirs = dynamic_leaves(entry), dynamic_leaves(produced)
    if type(entry) is not type(produced) or len(mine) != len(theirs):
        return False
    if any(a.width != b.width or b.div % a.div for a, b in zip(mine, theirs, strict=True)):
        return False
    return with_leaves(_aligned_as(entry, produced), iter(mine)) == entry


def _aligned_as(entry: Any, produced: Any) -> Any:
    if isinstance(produced, MemRef):
        return replace(produced, ptr=_aligned_as(entry.ptr, produced.ptr))
    if isinstance(produced, Ptr) and produced.align_bytes % entry.align_bytes == 0:
        return replace(produced, align_bytes=entry.align_bytes)
    return produced


def flat_types(plain: Any, types: Types) -> list[ir.Type]:
    """Return the types of what `flatten` gives for a value of type `plain`."""
    leaves = [types.i64 if leaf.width == 64 else types.i32 for leaf in dynamic_leaves(plain)]
    if not isinstance(plain, (Ptr, MemRef)):
        return leaves
    space = (plain if isinstance(plain, Ptr) else plain.ptr).space
    if space == BUFFER_DESC:
        return [types.llvm_ptr(8), types.i32, *leaves]
    if space == REGISTER and isinstance(plain, MemRef):
        return []
    return [types.llvm_ptr(LLVM_SPACE[space]), *leaves]

"""`fx.copy` and its relatives: everything is checked here, at the user's line; one op is emitted, which lowering
expands into atom calls.

Shapes   source and destination are (value, mode...): the value mode is one atom call, or ((atom value), (rest value))
of several; the calls run through rest values and all other modes, which must be static
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

from flydsl import layout as la
from flydsl.atoms.copy_ops import SHARED
from flydsl.atoms.copy_ops import CopyAtom as PlainCopyAtom
from flydsl.diag import (
    CopyCalls,
    CopyDynamic,
    CopyElement,
    CopyNotContiguous,
    CopyRank,
    CopySizes,
    CopyValues,
    GatherShape,
    PredicateShape,
    VectorMisaligned,
    warn,
)
from flydsl.dialects.values import REGISTER, inner_text
from flydsl.expr.algebra import slice as slice_tensor
from flydsl.expr.atoms import CopyAtom, copy_atom_of
from flydsl.expr.call_text import argument, warn_user
from flydsl.expr.int_tuples import segments
from flydsl.expr.layouts import make_layout
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Boolean
from flydsl.expr.pointers import Pointer, add_offset, expect_pointer
from flydsl.expr.tensors import Tensor, expect_tensor, make_view
from flydsl.expr.values import wrap
from flydsl.ir import current, emit, ir
from flydsl.layout.view import MemRef, element_bits


def copy(copy_atom: Any, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, **state: Any) -> None:
    """Copy `src` to `dst` with an atom, or the atom of a tiled copy; keywords set the atom's state for this call.

    Shapes   pred: register tensor of Boolean, one per atom call: the modes of src without the value mode, or with one
    of extent 1
    """
    atom = copy_atom_of(copy_atom, "fx.copy")
    source, target = expect_tensor(src, "the source of fx.copy"), expect_tensor(dst, "the destination of fx.copy")
    trace = current()
    key = ("copy", atom.plain, source.plain, target.plain)
    if key not in trace.types.memo:
        atom.plain.op.check(trace.arch)
        check_copy(atom.plain, source.plain, target.plain)
        trace.types.memo[key] = True
    operands = [with_state(atom, state)._raw(), source._raw(), target._raw()]
    if pred is not None and not atom.plain.op.is_whole_tile:
        operands.append(predicates(pred, source, atom.plain)._raw())
    emit("fly.copy", (), operands, segments(trace.types, (1, 1, 1, len(operands) - 3)))


def with_state(atom: CopyAtom, state: Mapping[str, Any]) -> CopyAtom:
    """Return the atom with those of the given state fields set that it has; others are ignored."""
    for field, value in state.items():
        if field in atom.plain.state_fields:
            atom = atom.set_value(field, value)
    return atom


def copy_atom_call(copy_atom: Any, src: Tensor, dst: Tensor, *, pred: Any = None) -> None:
    """Issue the atom once; `pred` is a Boolean or a one-element tensor."""
    atom = copy_atom_of(copy_atom, "fx.copy_atom_call")
    source = expect_tensor(src, "the source of fx.copy_atom_call")
    target = expect_tensor(dst, "the destination of fx.copy_atom_call")
    trace = current()
    key = ("copy_atom_call", atom.plain, source.plain, target.plain)
    if key not in trace.types.memo:
        atom.plain.op.check(trace.arch)
        check_call(atom.plain, source.plain, target.plain)
        trace.types.memo[key] = True
    operands = [atom._raw(), source._raw(), target._raw()]
    if pred is not None:
        operands.append(_bit(pred))
    emit("fly.copy_atom_call", (), operands, segments(trace.types, (1, 1, 1, len(operands) - 3)))


def _bit(pred: Any) -> ir.Value:
    if isinstance(pred, Tensor):
        if la.size(pred.plain.layout.shape) != 1:
            raise PredicateShape(pred=inner_text(pred.plain), wanted="one element", calls=1)
        pred = pred[(0,) * pred.rank if pred.rank > 1 else 0]
    return raw_scalar(from_python_value(pred).to(Boolean))


# --- checks --------------------------------------------------------------------------------------------------------


def check_copy(atom: PlainCopyAtom, src: Any, dst: Any) -> None:
    """Refuse what cannot become a sequence of atom calls."""
    if atom.op.is_whole_tile:
        return
    _check_memories(atom, src, dst)
    if src.layout.rank != dst.layout.rank:
        raise CopyRank(src=src.layout, dst=dst.layout, src_rank=src.layout.rank, dst_rank=dst.layout.rank)
    calls = []
    for side, view, values in _sides(atom, src, dst):
        sizes = _mode_sizes(side, view)
        if _is_address(view, sizes[0], values):
            calls.append([1, *sizes[1:]])
            continue
        if sizes[0] % values:
            operand, mode = argument(side, _NAMES[side]), inner_text(_modes(view)[0])
            raise CopyValues(operand=operand, mode=mode, atom=atom.short, count=values, notes=_both(src, dst))
        calls.append([sizes[0] // values, *sizes[1:]])
        _check_adjacent(atom, side, view, values)
    for view in (src, dst):
        _warn_misaligned(atom, view)
    if calls[0] != calls[1]:
        raise CopySizes(src=src.layout, dst=dst.layout, src_calls=_counts(calls[0]), dst_calls=_counts(calls[1]))


def _warn_misaligned(atom: PlainCopyAtom, view: MemRef) -> None:
    """Warn where a wide access of LDS is not known to be aligned; global memory takes any multiple of 4 bytes alike."""
    bits, ptr = atom.op.bits, view.ptr
    if ptr.space == SHARED and bits > atom.val_bits:
        align = ptr.align_bytes or max(1, element_bits(ptr.elem) // 8)
        if align < bits // 16:
            warn(VectorMisaligned(bits=bits, align=align))


def check_call(atom: PlainCopyAtom, src: Any, dst: Any) -> None:
    """Refuse operands of one call that hold another number of values than the atom moves."""
    if atom.op.is_whole_tile:
        return
    _check_memories(atom, src, dst)
    for side, view, values in _sides(atom, src, dst):
        count = _product(_mode_sizes(side, view))
        if _is_address(view, count, values):
            continue
        if count != values:
            operand = argument(side, _NAMES[side])
            raise CopyCalls(operand=operand, layout=view.layout, atom=atom.short, count=values, notes=_both(src, dst))
        _warn_misaligned(atom, view)
        _check_adjacent(atom, side, view, values)


def _both(src: MemRef, dst: MemRef) -> tuple[str, ...]:
    return (f"source `{inner_text(src)}`, destination `{inner_text(dst)}`",)


def _is_address(view: MemRef, size: int, values: int) -> bool:
    """Return whether a single element in memory stands for the start of an atom's adjacent values, as kernels write
    it that divide by 1.
    """
    return size == 1 and values > 1 and view.ptr.space != REGISTER


_NAMES = {1: "the source", 2: "the destination"}


def _sides(atom: PlainCopyAtom, src: MemRef, dst: MemRef) -> tuple:
    """Return (argument position, view, values per thread and call) of both sides."""
    return (1, src, la.size(atom.layout_src[1])), (2, dst, la.size(atom.layout_dst[1]))


def _check_memories(atom: PlainCopyAtom, src: Any, dst: Any) -> None:
    for side, view in ((1, src), (2, dst)):
        if not isinstance(view, MemRef):
            raise CopyElement(
                operand=argument(side, _NAMES[side]), got="coordinates", atom=atom.short, bits=atom.val_bits
            )
    atom.op.check_spaces(src.ptr.space, dst.ptr.space)
    for side, view in ((1, src), (2, dst)):
        if element_bits(view.ptr.elem) != atom.val_bits:
            _other_width(atom, side, view)
    if not atom.op.values(atom.val_bits):
        atom.op.check_element(atom.val_bits)


def _other_width(atom: PlainCopyAtom, side: int, view: MemRef) -> None:
    """Registers must have the atom's element width; memory of another one is moved as bits, which deserves a warning."""
    operand = argument(side, _NAMES[side])
    if view.ptr.space == REGISTER:
        raise CopyElement(operand=operand, got=view.ptr.elem, atom=atom.short, bits=atom.val_bits)
    warn_user(
        f"{atom.short} moves values of {atom.val_bits} bits, but {operand} holds {view.ptr.elem}: "
        f"each call moves {atom.op.bits} bits from its address on, without conversion"
    )


def _modes(view: MemRef) -> tuple:
    shape = view.layout.shape
    return shape if isinstance(shape, tuple) else (shape,)


def _mode_sizes(side: int, view: MemRef) -> list[int]:
    for mode in _modes(view):
        if not la.tuple_is_static(mode):
            raise CopyDynamic(operand=argument(side, _NAMES[side]), layout=view.layout)
    return [la.size(m) for m in _modes(view)]


def _product(sizes: list[int]) -> int:
    out = 1
    for s in sizes:
        out *= s
    return out


def _counts(calls: list[int]) -> str:
    return "(" + ",".join(map(str, calls)) + ")"


def _check_adjacent(atom: PlainCopyAtom, side: int, view: MemRef, values: int) -> None:
    """Refuse memory whose values of one call are not provably side by side; registers may lie in any order."""
    if values <= 1 or view.ptr.space == REGISTER:
        return
    step = adjacent_step(view.layout, values)
    if step is not None:
        mode = la.get_(view.layout, 0) if isinstance(view.layout.shape, tuple) else view.layout
        raise CopyNotContiguous(
            operand=argument(side, _NAMES[side]),
            bits=atom.op.bits,
            count=values,
            dtype=view.ptr.elem,
            step=step,
            mode=mode,
        )


def adjacent_step(layout: Any, values: int) -> str | None:
    """Return None where each run of `values` in the first mode is adjacent, else what breaks it, as a message says
    it.
    """
    if isinstance(layout, la.ComposedLayout):
        return _composed_step(layout, values)
    mode = la.get_(layout, 0) if isinstance(layout.shape, tuple) else layout
    return _plain_step(mode, values)


def _plain_step(mode: la.Layout, values: int) -> str | None:
    expected, left = 1, values
    for extent, stride in zip(*mode.flat(), strict=True):
        if left == 1:
            return None
        if extent == 1:
            continue
        taken = gcd(extent, left)
        if type(stride) is not int or stride != expected or taken != min(extent, left):
            return f"steps by {stride}"
        left //= taken
        expected *= taken
    return None if left == 1 else "ends too early"


def _composed_step(layout: la.ComposedLayout, values: int) -> str | None:
    """A swizzle keeps runs that are aligned and no longer than 2^base elements."""
    outer = layout.outer
    if not isinstance(layout.inner, la.Swizzle) or isinstance(outer, la.ComposedLayout):
        return f"goes through `{layout.inner}`"
    step = adjacent_step(outer, values)
    if step is not None or layout.inner.is_trivial:
        return step
    if (1 << layout.inner.base) % values:
        return f"is swizzled in pieces of {1 << layout.inner.base}"
    return None if _starts_aligned(layout, values) else f"is swizzled and starts at no known multiple of {values}"


def _starts_aligned(layout: la.ComposedLayout, values: int) -> bool:
    if _divisor(layout.offset) % values:
        return False
    expected = 1
    for extent, stride in zip(*layout.outer.flat(), strict=True):
        if expected < values and type(stride) is int and stride == expected:
            expected *= extent
        elif extent != 1 and _divisor(stride) % values:
            return False
    return True


def _divisor(leaf: Any) -> int:
    return leaf.div if isinstance(leaf, la.Sym) else leaf


# --- predicates ------------------------------------------------------------------------------------------------------


def predicates(pred: Tensor, src: Tensor, atom: PlainCopyAtom) -> Tensor:
    """Return the predicates as a view with one element per atom call, in the order of the calls."""
    t = expect_tensor(pred, "pred of fx.copy")
    modes = [la.size(m) for m in _modes(src.plain)]
    calls = [modes[0] // la.size(atom.layout_src[1]), *modes[1:]]
    plain = t.plain
    if not isinstance(plain, MemRef) or plain.ptr.elem != "i1" or not plain.layout.is_static:
        raise PredicateShape(pred=inner_text(plain), wanted=_counts(calls), calls=_product(calls))
    if plain.layout.rank == len(calls) - 1:
        t = _with_value_mode(t, la.Layout(calls[0], 0))
    first, *rest = (la.size(m) for m in _modes(t.plain))
    if rest != calls[1:] or first not in (1, calls[0], modes[0]):
        raise PredicateShape(pred=inner_text(plain), wanted=_counts(calls), calls=_product(calls))
    if first == calls[0]:
        return t
    per_call = first // calls[0] if first > 1 else 0
    return _replace_value_mode(t, calls[0], per_call)


def _with_value_mode(t: Tensor, mode: la.Layout) -> Tensor:
    layout = t.plain.layout
    shape, stride = _modes(t.plain), layout.stride if isinstance(layout.shape, tuple) else (layout.stride,)
    return make_view(t.iter, make_layout((mode.shape, *shape), (mode.stride, *stride)))


def _replace_value_mode(t: Tensor, calls: int, per_call: int) -> Tensor:
    """Return the view with `calls` in the first mode: of each call's values the first, or always the same one."""
    value = la.get_(t.plain.layout, 0)
    mode = la.Layout(calls, 0) if per_call == 0 else la.composition(value, la.Layout(calls, per_call))
    rest = t.plain.layout
    parts = [mode] + [la.get_(rest, i) for i in range(1, rest.rank)]
    layout = la.Layout(tuple(p.shape for p in parts), tuple(p.stride for p in parts))
    return make_view(t.iter, wrap(layout))


# --- gather and scatter ------------------------------------------------------------------------------------------------


def gather(copy_atom: Any, base_iter: Pointer, offset_tensor: Tensor, dst_tensor: Tensor, *, pred: Any = None) -> None:
    """Load one atom's values from `base_iter` + each offset.

    Shapes   dst ((atom value, TV), rest...), offsets and pred (TV, rest...)
    Units    offsets in elements
    """
    for part, pointer, bit in _indirect(copy_atom, base_iter, offset_tensor, dst_tensor, pred, "gather"):
        copy_atom_call(copy_atom, make_view(pointer, part.layout_of_values), part.registers, pred=bit)


def scatter(copy_atom: Any, src_tensor: Tensor, base_iter: Pointer, offset_tensor: Tensor, *, pred: Any = None) -> None:
    """Store one atom's values to `base_iter` + each offset.

    Shapes   src ((atom value, TV), rest...), offsets and pred (TV, rest...)
    Units    offsets in elements
    """
    for part, pointer, bit in _indirect(copy_atom, base_iter, offset_tensor, src_tensor, pred, "scatter"):
        copy_atom_call(copy_atom, part.registers, make_view(pointer, part.layout_of_values), pred=bit)


class _Part:
    """One call's registers, and the adjacent layout of its values in memory."""

    __slots__ = ("layout_of_values", "registers")

    def __init__(self, registers: Tensor, values: int):
        self.registers = registers
        self.layout_of_values = wrap(la.Layout(values, 1))


def _indirect(copy_atom: Any, base: Pointer, offsets: Tensor, registers: Tensor, pred: Any, op: str) -> Any:
    atom = copy_atom_of(copy_atom, f"fx.{op}").plain
    base = expect_pointer(base, f"the base of fx.{op}")
    table, data = expect_tensor(offsets, f"the offsets of fx.{op}"), expect_tensor(registers, f"the data of fx.{op}")
    values = la.size(atom.layout_src[1])
    shape = _modes(data.plain)
    extents = _table_extents(shape, values)
    flat = [la.size(m) for m in _modes(table.plain)] if la.tuple_is_static(table.plain.layout.shape) else None
    if extents is None or flat != extents:
        raise GatherShape(op=op, data=data.plain.layout, offsets=table.plain.layout, count=values)
    for coord in _coords(extents):
        where = coord if len(coord) > 1 else coord[0]
        value_mode = (None, coord[0]) if isinstance(shape[0], tuple) else None
        is_nested = isinstance(data.plain.layout.shape, tuple)
        piece = slice_tensor(data, (value_mode, *coord[1:]) if is_nested else value_mode)
        bit = None if pred is None else pred[where] if isinstance(pred, Tensor) else pred
        yield _Part(piece, values), add_offset(base, table[where]), bit


def _table_extents(shape: tuple, values: int) -> list[int] | None:
    if not la.tuple_is_static(shape):
        return None
    first = shape[0]
    if isinstance(first, tuple):
        if len(first) != 2 or la.size(first[0]) != values:
            return None
        return [la.size(first[1]), *(la.size(m) for m in shape[1:])]
    return [1, *(la.size(m) for m in shape[1:])] if first == values else None


def _coords(extents: list[int]) -> list[tuple[int, ...]]:
    """Return all coordinates, first mode fastest."""
    out: list[tuple[int, ...]] = [()]
    for extent in reversed(extents):
        out = [(i, *rest) for rest in out for i in range(extent)]
    return out

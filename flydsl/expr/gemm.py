"""`fx.gemm` and `fx.mma_atom_call`: matrix operations on register fragments.

Shapes   a (V, M, K), b (V, N, K), c and d (V, M, N); without a K loop a (V, M), b (V, N); a single product has rank 1
everywhere
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from flydsl import layout as la
from flydsl.atoms import bit_width
from flydsl.diag import CallbackResult, GemmFragment, GemmOrder, GemmRank, GemmSizes, GemmTwoOrders
from flydsl.dialects.values import REGISTER, inner_text
from flydsl.expr.algebra import slice as slice_tensor
from flydsl.expr.atoms import MmaAtom, mma_atom_of
from flydsl.expr.enum import GemmTraversalOrder
from flydsl.expr.int_tuples import segments
from flydsl.expr.layouts import Layout
from flydsl.expr.tensors import Tensor, expect_tensor
from flydsl.expr.values import expect, shown
from flydsl.ir import current, emit, ir
from flydsl.layout.view import MemRef, element_bits

Step = tuple[int, int, int]
_PRINTED = {order.name.lower(): order for order in GemmTraversalOrder}
_NEUTRAL_SCALE = 0x7F7F7F7F  # four E8M0 bytes of 2^0


def gemm(
    mma_atom: Any,
    d: Tensor,
    a: Any,
    b: Any,
    c: Tensor,
    *,
    traversal_order: GemmTraversalOrder | None = None,
    traversal_layout: Layout | None = None,
    atom_callback: Callable | None = None,
    **state: Any,
) -> None:
    """Compute d = a * b + c on register fragments, one instruction for each (m, n, k).

    The first visit of a cell (m, n) reads c, later ones go on from d. `a` and `b` may be `[data, scale]` for scaled
    atoms: the scale is an Int32 fragment (1, M, K). `atom_callback(atom, (m, n, k))` returns the atom to use for a
    step. Keywords set the atom's state for all steps.
    """
    atom = _stateful(mma_atom_of(mma_atom, "fx.gemm"), state)
    a, scale_a = _data_and_scale(a, "a")
    b, scale_b = _data_and_scale(b, "b")
    tensors = [expect_tensor(t, f"{name} of fx.gemm") for name, t in zip("dabc", (d, a, b, c), strict=True)]
    extents = _extents(atom, *[t.plain for t in tensors])
    steps = _steps(extents, traversal_order, traversal_layout)
    atom = _with_neutral(atom, scale_a, scale_b)
    if atom_callback is None:
        _emit_gemm(atom, tensors, (scale_a, scale_b), steps)
    else:
        _unrolled(atom, tensors, (scale_a, scale_b), steps, atom_callback)


def mma_atom_call(mma_atom: Any, d: Tensor, a: Tensor, b: Tensor, c: Tensor, **state: Any) -> None:
    """Issue one matrix instruction: d = a * b + c."""
    atom = _stateful(mma_atom_of(mma_atom, "fx.mma_atom_call"), state)
    tensors = [expect_tensor(t, f"{name} of fx.mma_atom_call") for name, t in zip("dabc", (d, a, b, c), strict=True)]
    plains = [t.plain for t in tensors]
    memo = current().types.memo
    key = ("mma_atom_call", atom.plain, *plains)
    if key not in memo:
        _check_fragments(atom, plains, whole=True)
        memo[key] = True
    emit("fly.mma_atom_call", (), [atom._raw(), *[t._raw() for t in tensors]])


def _stateful(atom: MmaAtom, state: dict[str, Any]) -> MmaAtom:
    for field, value in state.items():
        atom = atom.set_value(field, value)
    return atom


def _data_and_scale(x: Any, name: str) -> tuple[Any, Tensor | None]:
    if not isinstance(x, (list, tuple)):
        return x, None
    if len(x) != 2:
        raise GemmFragment(operand=name, got=f"{len(x)} parts", wanted="[data, scale]")
    return x[0], expect_tensor(x[1], f"the scale of {name}")


def _with_neutral(atom: MmaAtom, scale_a: Tensor | None, scale_b: Tensor | None) -> MmaAtom:
    """Set the scale that is not given to 1: an absent one would count as 2^-127 beside the other."""
    fields = atom.plain.state_fields
    given = {"scale_a": scale_a is not None, "scale_b": scale_b is not None}
    for field, is_given in given.items():
        if is_given and field not in fields:
            atom.plain.check_state(field)
    set_ = {f: given[f] or f in atom.state for f in given if f in fields}
    if any(set_.values()) and not all(set_.values()):
        (missing,) = [f for f, is_set in set_.items() if not is_set]
        neutral = _NEUTRAL_SCALE if fields[missing] == "i32" else _NEUTRAL_SCALE << 32 | _NEUTRAL_SCALE
        atom = atom.set_value(missing, neutral)
    return atom


# --- checks --------------------------------------------------------------------------------------------------------


def _extents(atom: MmaAtom, d: Any, a: Any, b: Any, c: Any) -> Step:
    """Return (M, N, K) of four fragments."""
    memo = current().types.memo
    key = ("gemm", atom.plain, d, a, b, c)
    known = memo.get(key)
    if known is None:
        _check_fragments(atom, [d, a, b, c], whole=False)
        known = memo[key] = _checked_extents(d, a, b, c)
    return known


def _checked_extents(d: MemRef, a: MemRef, b: MemRef, c: MemRef) -> Step:
    ranks = tuple(t.layout.rank for t in (d, a, b, c))
    if ranks == (1, 1, 1, 1):
        return 1, 1, 1
    if ranks not in ((3, 2, 2, 3), (3, 3, 3, 3)):
        raise GemmRank(d=d.layout, a=a.layout, b=b.layout, c=c.layout)
    sizes_d, sizes_a, sizes_b, sizes_c = ([la.size(m) for m in t.layout.shape[1:]] for t in (d, a, b, c))
    if sizes_d != sizes_c or sizes_d[0] != sizes_a[0] or sizes_d[1] != sizes_b[0]:
        raise GemmSizes(mode="M/N", d=d.layout, a=a.layout, b=b.layout, c=c.layout)
    if sizes_a[1:] != sizes_b[1:]:
        raise GemmSizes(mode="K", d=d.layout, a=a.layout, b=b.layout, c=c.layout)
    return sizes_d[0], sizes_d[1], sizes_a[1] if len(sizes_a) > 1 else 1


def _check_fragments(atom: MmaAtom, plains: list[Any], whole: bool) -> None:
    """Refuse operands that are not registers, or whose value mode or element width is not the instruction's."""
    op = atom.plain
    for name, plain in zip("dabc", plains, strict=True):
        if not isinstance(plain, MemRef) or plain.ptr.space != REGISTER or not plain.layout.is_static:
            raise GemmFragment(operand=name, got=f"`{inner_text(plain)}`", wanted="a register tensor of static layout")
        own = {"a": op.a, "b": op.b}.get(name, op.acc)
        if bit_width(own) != element_bits(plain.ptr.elem) and not plain.ptr.elem.startswith("i"):
            raise GemmFragment(
                operand=name, got=f"`{inner_text(plain)}`", wanted=f"elements of {own}, or integers that hold them"
            )
        count = op.registers_of(name.upper(), plain.ptr.elem)
        shape = plain.layout.shape
        values = la.size(shape) if whole or not isinstance(shape, tuple) or len(shape) == 1 else la.size(shape[0])
        if values != count:
            raise GemmFragment(
                operand=name,
                got=f"`{inner_text(plain)}`",
                wanted=f"{count} elements of {plain.ptr.elem} for {op.short} in mode 0",
            )


# --- order ---------------------------------------------------------------------------------------------------------


def _steps(extents: Step, order: Any, layout: Any) -> tuple[Step, ...]:
    if order is not None and layout is not None:
        raise GemmTwoOrders()
    if layout is not None:
        return _steps_of_layout(extents, expect(layout, Layout, "traversal_layout").plain)
    if order is None:
        order = GemmTraversalOrder.NMK
    if isinstance(order, str):  # as IR prints it
        order = _PRINTED.get(order, order)
    if not isinstance(order, GemmTraversalOrder):
        raise GemmOrder(got=repr(order), members=", ".join(m.name for m in GemmTraversalOrder))
    return steps_in_order(extents, order)


@lru_cache(maxsize=1024)
def steps_in_order(extents: Step, order: GemmTraversalOrder) -> tuple[Step, ...]:
    """Return the steps (m, n, k): the first letter of the order's name runs fastest."""
    letters, _, serpentine = order.name.partition("_")
    fast, middle, slow = (dict(zip("MNK", extents, strict=True))[c] for c in letters)
    out = []
    row = 0
    for s in range(slow):
        middles = range(middle) if not serpentine or s % 2 == 0 else range(middle - 1, -1, -1)
        for m in middles:
            fasts = range(fast) if not serpentine or row % 2 == 0 else range(fast - 1, -1, -1)
            row += 1
            for f in fasts:
                at = dict(zip(letters, (f, m, s), strict=True))
                out.append((at["M"], at["N"], at["K"]))
    return tuple(out)


def _steps_of_layout(extents: Step, layout: la.Layout) -> tuple[Step, ...]:
    """Return the steps of a layout that maps the step's number to m + M*n + M*N*k."""
    m, n, k = extents
    total = m * n * k
    if not layout.is_static or la.size(layout) != total:
        raise GemmOrder(got=f"`{layout}`", members=f"a static layout of size {total}")
    indices = [la.crd2idx(i, layout) for i in range(total)]
    if sorted(indices) != list(range(total)):
        raise GemmOrder(got=f"`{layout}`", members=f"a layout that visits each of the {total} products once")
    return tuple((i % m, i // m % n, i // (m * n)) for i in indices)


# --- emission ------------------------------------------------------------------------------------------------------


def _emit_gemm(atom: MmaAtom, tensors: Sequence[Tensor], scales: tuple, steps: tuple[Step, ...]) -> None:
    types = current().types
    given = [s for s in scales if s is not None]
    operands = [atom._raw(), *[t._raw() for t in tensors], *[s._raw() for s in given]]
    attrs = dict(segments(types, (1, 1, 1, 1, 1, int(scales[0] is not None), int(scales[1] is not None))))
    order = types.memo.get(("gemm order", steps))
    if order is None:
        order = types.memo["gemm order", steps] = ir.DenseI64ArrayAttr.get([i for step in steps for i in step])
    emit("fly.gemm", (), operands, {**attrs, "order": order})


def _unrolled(
    atom: MmaAtom, tensors: Sequence[Tensor], scales: tuple, steps: tuple[Step, ...], callback: Callable
) -> None:
    d, a, b, c = tensors
    seen: set[tuple[int, int]] = set()
    for m, n, k in steps:
        stepped = atom
        for field, scale, outer in (("scale_a", scales[0], m), ("scale_b", scales[1], n)):
            if scale is not None:
                stepped = stepped.set_value(field, scale[_scale_coord(scale, outer, k)])
        chosen = callback(stepped, (m, n, k))
        if not isinstance(chosen, MmaAtom):
            raise CallbackResult(got=shown(chosen))
        addend = d if (m, n) in seen else c
        seen.add((m, n))
        parts = [_part(d, m, n), _part(a, m, k), _part(b, n, k), _part(addend, m, n)]
        emit("fly.mma_atom_call", (), [chosen._raw(), *[p._raw() for p in parts]])


def _scale_coord(scale: Tensor, outer: int, k: int) -> Any:
    return (0, outer, k)[: scale.rank] if scale.rank > 1 else 0


def _part(t: Tensor, *coords: int) -> Tensor:
    return t if t.rank == 1 else slice_tensor(t, (None, *coords[: t.rank - 1]))

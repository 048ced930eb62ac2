"""Rules of element accesses, copies and matrix operations."""

from collections.abc import Iterator
from itertools import product as cartesian
from typing import Any

from flydsl import layout as la
from flydsl.atoms.copy_ops import CopyAtom
from flydsl.atoms.mma_ops import MmaOp
from flydsl.dialects import laws, value_of
from flydsl.dialects.fly.types import is_fly_type
from flydsl.ir import ir
from flydsl.layout.view import MemRef, Ptr
from flydsl.passes.fly_layout_lowering import tensor_dma
from flydsl.passes.fly_layout_lowering.access import runs_of
from flydsl.passes.fly_layout_lowering.lowering import Lowering, rule


@rule("memref_load")
def _memref_load(low: Lowering, op: ir.Operation) -> None:
    view, coord = (low.plain(v) for v in op.operands)
    op.result.replace_all_uses_with(low.access.load(laws.at(view, coord), op.result.type))
    low.forget(op)


@rule("memref_store")
def _memref_store(low: Lowering, op: ir.Operation) -> None:
    view, coord = low.plain(op.operands[1]), low.plain(op.operands[2])
    low.access.store(op.operands[0], laws.at(view, coord))
    op.erase()


@rule("memref_load_vec")
def _memref_load_vec(low: Lowering, op: ir.Operation) -> None:
    view = low.plain(op.operands[0])
    elem = ir.VectorType(op.result.type).element_type
    if isinstance(view, MemRef):
        op.result.replace_all_uses_with(low.access.load_vector(view, elem))
    else:
        op.result.replace_all_uses_with(_coordinate_values(low, view, op.result.type))
    low.forget(op)


def _coordinate_values(low: Lowering, view: Any, vector: ir.Type) -> ir.Value:
    """The values of an integer-valued coordinate tensor."""
    width = 64 if ir.VectorType(vector).element_type == low.types.i64 else 32
    indices = [laws.at(view, i) for i in range(la.size(view.layout))]
    return low.editor.value("vector.from_elements", vector, [low.builder.leaf(i, width) for i in indices])


@rule("memref_store_vec")
def _memref_store_vec(low: Lowering, op: ir.Operation) -> None:
    value, view = op.operands[0], low.plain(op.operands[1])
    low.access.store_vector(value, view, ir.VectorType(value.type).element_type)
    op.erase()


# Copies


def calls_of(view: MemRef, count: int) -> Iterator[tuple[int, tuple]]:
    """Yield (first value in mode 0, coordinates of the other modes) of each atom call that moves `count` values."""
    shape = view.layout.shape if isinstance(view.layout.shape, tuple) else (view.layout.shape,)
    sizes = [la.size(mode) for mode in shape]
    for rest in cartesian(*(range(n) for n in reversed(sizes[1:]))):
        for first in range(0, sizes[0], count):
            yield first, tuple(reversed(rest))


@rule("copy", "copy_atom_call")
def _copy(low: Lowering, op: ir.Operation) -> None:
    atom_value, src, dst, pred = _copy_operands(low, op)
    atom: CopyAtom = value_of(atom_value.type)
    if atom.op.is_whole_tile:
        tensor_dma.emit(low, op, atom_value, atom, src, dst)
        op.erase()
        return
    src_count, dst_count = la.size(atom.layout_src[1]), la.size(atom.layout_dst[1])
    if op.name == "fly.copy_atom_call":
        _emit_copy(low, atom_value, *_side(low, src, 0, src_count, None), *_side(low, dst, 0, dst_count, None), pred)
    else:
        steps = zip(calls_of(src, src_count), calls_of(dst, dst_count), strict=True)
        for i, ((src_first, src_rest), (dst_first, dst_rest)) in enumerate(steps):
            source = _side(low, src, src_first, src_count, src_rest)
            target = _side(low, dst, dst_first, dst_count, dst_rest)
            _emit_copy(low, atom_value, *source, *target, _predicate(low, pred, i))
    op.erase()


@rule("copy_atom_call_ssa", "mma_atom_call_ssa")
def _atom_call_ssa(low: Lowering, op: ir.Operation) -> None:
    """The form of raw code: registers are vectors already, memory operands are pointers."""
    for i, v in enumerate(op.operands):
        plain = low.plain(v) if is_fly_type(v.type) else None
        if isinstance(plain, Ptr):
            op.operands[i] = low.builder.materialise(plain)


def _copy_operands(low: Lowering, op: ir.Operation) -> tuple:
    """Return (atom value, source view, destination view, predicate: register view, i1 value or None)."""
    operands = list(op.operands)
    pred = None
    if len(operands) > 3:
        pred = operands[3] if operands[3].type == low.types.i1 else low.plain(operands[3])
    return operands[0], low.plain(operands[1]), low.plain(operands[2]), pred


Sides = dict[tuple, tuple[ir.Value, tuple | None]]  # (id of view, coordinates of its other modes) -> `_side`


def _side(low: Lowering, view: MemRef, first: int, count: int, rest: tuple | None) -> tuple[ir.Value, tuple | None]:
    """Return (pointer of the first value, offsets of the values or None when adjacent) of one atom call."""
    if rest is None:
        rest = tuple(0 for _ in view.layout.shape[1:]) if isinstance(view.layout.shape, tuple) else ()
    runs = runs_of(view, first, count, rest)
    pointer = low.builder.materialise(runs[0].pointer)
    if len(runs) == 1:
        return pointer, None
    start = runs[0].pointer.value
    offsets: list[int] = []
    for run in runs:
        address = run.pointer.value
        if address.base != start.base:
            return pointer, None
        offsets += [address.offset - start.offset + j for j in range(run.count)]
    return pointer, tuple(offsets)


def _predicate(low: Lowering, pred: MemRef | ir.Value | None, call: int) -> ir.Value | None:
    """Return the i1 of the `call`-th atom call: the predicates are numbered like the calls."""
    if pred is None or isinstance(pred, ir.Value):
        return pred
    return low.access.load(laws.at(pred, call), low.types.i1)


def _emit_copy(
    low: Lowering,
    atom: ir.Value,
    src: ir.Value,
    src_offsets: tuple | None,
    dst: ir.Value,
    dst_offsets: tuple | None = None,
    pred: ir.Value | None = None,
) -> None:
    attrs = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0 if pred is None else 1])}
    for name, offsets in (("src_offsets", src_offsets), ("dst_offsets", dst_offsets)):
        if offsets is not None:
            attrs[name] = ir.DenseI64ArrayAttr.get(list(offsets))
    operands = [atom, src, dst] if pred is None else [atom, src, dst, pred]
    low.editor.op("fly.copy_atom_call", (), operands, attrs)


# Matrix operations


@rule("mma_atom_call")
def _mma_atom_call(low: Lowering, op: ir.Operation) -> None:
    atom_value = op.operands[0]
    d, a, b, c = (low.plain(v) for v in op.operands[1:])
    _emit_mma(low, atom_value, (d, a, b, c), (None,) * 4, {})
    op.erase()


@rule("gemm")
def _gemm(low: Lowering, op: ir.Operation) -> None:
    """One atom call per step of `order`, a flat list of m, n, k."""
    operands = list(op.operands)
    atom_value = operands[0]
    d, a, b, c = (low.plain(v) for v in operands[1:5])
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    scales = iter(low.plain(v) for v in operands[5:])
    scale_a = next(scales) if segments[5] else None
    scale_b = next(scales) if segments[6] else None
    order = list(ir.DenseI64ArrayAttr(op.attributes["order"]))
    seen = set()
    sides: Sides = {}
    for i in range(0, len(order), 3):
        m, n, k = order[i : i + 3]
        atom = _with_scales(low, atom_value, scale_a, scale_b, (m, n, k))
        addend = d if (m, n) in seen else c
        seen.add((m, n))
        rests = (_modes(d, m, n), _modes(a, m, k), _modes(b, n, k), _modes(addend, m, n))
        _emit_mma(low, atom, (d, a, b, addend), rests, sides)
    op.erase()


def _modes(view: MemRef, *coords: int) -> tuple:
    """Return the coordinates that a fragment has after its value mode: a rank-2 one has no K mode."""
    return coords[: view.layout.rank - 1]


def _with_scales(low: Lowering, atom: ir.Value, scale_a: Any, scale_b: Any, step: tuple) -> ir.Value:
    m, n, k = step
    for name, scale, outer in (("scale_a", scale_a, m), ("scale_b", scale_b, n)):
        if scale is None:
            continue
        value = low.access.load(laws.at(scale, (0, *_modes(scale, outer, k))), low.types.i32)
        atom = low.editor.value("fly.atom_set_value", atom.type, [atom, value], {"field": ir.StringAttr.get(name)})
    return atom


def _emit_mma(
    low: Lowering, atom_value: ir.Value, views: tuple[MemRef, ...], rests: tuple[tuple | None, ...], sides: Sides
) -> None:
    """Emit one call on `views` d, a, b, c; `sides` holds what earlier calls of the same op made of a fragment."""
    atom: MmaOp = value_of(atom_value.type)
    operands, attrs = [atom_value], {}
    for name, view, rest in zip("dabc", views, rests, strict=True):
        side = sides.get((id(view), rest))
        if side is None:
            count = atom.registers_of(name.upper(), view.ptr.elem)
            side = sides[id(view), rest] = _side(low, view, 0, count, rest)
        pointer, offsets = side
        operands.append(pointer)
        if offsets is not None:
            attrs[f"{name}_offsets"] = ir.DenseI64ArrayAttr.get(list(offsets))
    low.editor.op("fly.mma_atom_call", (), operands, attrs)



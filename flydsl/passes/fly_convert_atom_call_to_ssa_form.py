"""fly-convert-atom-call-to-ssa-form: atom calls take and return vectors instead of register pointers.

Before  `fly.copy_atom_call` and `fly.mma_atom_call` on pointers (`*_offsets` where a register side is not adjacent)
After   `fly.copy_atom_call_ssa`, `fly.mma_atom_call_ssa`; registers are read and written by `fly.ptr_load` and
        `fly.ptr_store`; a predicated call stands in an `scf.if`
"""

from collections.abc import Sequence
from functools import lru_cache

from flydsl import layout as la
from flydsl.atoms.copy_ops import CopyAtom
from flydsl.atoms.mma_ops import MmaOp
from flydsl.dialects import type_of, value_of
from flydsl.dialects.values import REGISTER
from flydsl.ir import Types, ir
from flydsl.layout.view import Ptr, add_offset
from flydsl.passes.rewriting import Editor, adjacent, entry_block, functions, visit


def run(module: ir.Module, types: Types) -> None:
    """Rewrite every atom call of `module`."""
    editor = Editor(types)

    def rewrite(op: ir.Operation) -> None:
        if op.name == "fly.copy_atom_call":
            _copy(editor.before(op), op)
        elif op.name == "fly.mma_atom_call":
            _mma(editor.before(op), op)

    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            editor.enter_function(entry)
            visit(entry, rewrite)


def _copy(editor: Editor, op: ir.Operation) -> None:
    operands = list(op.operands)
    if len(operands) == 4:
        guard = editor.op("scf.if", (), [operands[3]], regions=2)
        block = guard.regions[0].blocks.append()
        editor.at_end(block, op.location)
        _copy_unguarded(editor, op, operands)
        editor.op("scf.yield")
    else:
        _copy_unguarded(editor, op, operands)
    op.erase()


def _copy_unguarded(editor: Editor, op: ir.Operation, operands: list[ir.Value]) -> None:
    atom_value, src, dst = operands[:3]
    atom: CopyAtom = value_of(atom_value.type)
    src_info, dst_info = value_of(src.type), value_of(dst.type)
    from_register, to_register = src_info.space == REGISTER, dst_info.space == REGISTER
    if from_register:
        count = la.size(atom.layout_src[1])
        src = load_values(editor, src, src_info, _offsets(op, "src_offsets", count))
        if to_register:
            target = editor.types.vector(count, _elem(editor, dst_info)) if count > 1 else _elem(editor, dst_info)
            src = src if src.type == target else editor.value("llvm.bitcast", target, [src])
            store_values(editor, src, dst, dst_info, _offsets(op, "dst_offsets", count))
            return
        _call(editor, atom_value, src, dst, None)
        return
    if to_register:
        count = la.size(atom.layout_dst[1])
        elem = _elem(editor, dst_info)
        vector = editor.types.vector(count, elem) if count > 1 else elem
        value = _call(editor, atom_value, src, None, vector)
        store_values(editor, value, dst, dst_info, _offsets(op, "dst_offsets", count))
        return
    _call(editor, atom_value, src, dst, None)


def _call(
    editor: Editor, atom: ir.Value, src: ir.Value, dst: ir.Value | None, result: ir.Type | None
) -> ir.Value | None:
    segments = ir.DenseI32ArrayAttr.get([1, 1, 0 if dst is None else 1, 0])
    operands = [atom, src] if dst is None else [atom, src, dst]
    attrs = {"operandSegmentSizes": segments}
    op = editor.op("fly.copy_atom_call_ssa", [] if result is None else [result], operands, attrs)
    return op.result if result is not None else None


def _mma(editor: Editor, op: ir.Operation) -> None:
    atom_value, d, a, b, c = op.operands
    atom: MmaOp = value_of(atom_value.type)
    values = []
    for operand, pointer, offsets in (("A", a, "a_offsets"), ("B", b, "b_offsets"), ("C", c, "c_offsets")):
        info = value_of(pointer.type)
        values.append(load_values(editor, pointer, info, _offsets(op, offsets, atom.registers_of(operand, info.elem))))
    info = value_of(d.type)
    result = editor.value("fly.mma_atom_call_ssa", values[2].type, [atom_value, *values])
    store_values(editor, result, d, info, _offsets(op, "d_offsets", atom.registers_of("D", info.elem)))
    op.erase()


def _offsets(op: ir.Operation, name: str, count: int) -> Sequence[int]:
    attributes = op.attributes
    return tuple(ir.DenseI64ArrayAttr(attributes[name])) if name in attributes else range(count)


def _elem(editor: Editor, info: Ptr) -> ir.Type:
    return editor.types.by_name[info.elem]


@lru_cache(maxsize=1024)
def _runs(offsets: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (position, offset, count) of each run of adjacent offsets."""
    if isinstance(offsets, range):
        return [(0, offsets.start, len(offsets))]
    return [(position, offsets[position], count) for position, count in adjacent(offsets)]


def _moved(editor: Editor, pointer: ir.Value, info: Ptr, offset: int) -> ir.Value:
    if offset == 0:
        return pointer
    attrs = {"offset": ir.IntegerAttr.get(editor.types.i64, offset)}
    return editor.value("fly.ptr_add", type_of(add_offset(info, offset)), [pointer], attrs)


def load_values(editor: Editor, pointer: ir.Value, info: Ptr, offsets: Sequence[int]) -> ir.Value:
    """Load the elements at `offsets` from a pointer: a scalar for one, else a vector."""
    elem = _elem(editor, info)
    if len(offsets) == 1:
        return editor.value("fly.ptr_load", elem, [_moved(editor, pointer, info, offsets[0])])
    whole = editor.types.vector(len(offsets), elem)
    runs = _runs(offsets)
    if len(runs) == 1:
        return editor.value("fly.ptr_load", whole, [_moved(editor, pointer, info, offsets[0])])
    result = editor.value("ub.poison", whole)
    for position, offset, count in runs:
        part = editor.types.vector(count, elem)
        value = editor.value("fly.ptr_load", part, [_moved(editor, pointer, info, offset)])
        attrs = {"offsets": editor.ints(position), "strides": editor.ints(1)}
        result = editor.value("vector.insert_strided_slice", whole, [value, result], attrs)
    return result


def store_values(editor: Editor, value: ir.Value, pointer: ir.Value, info: Ptr, offsets: Sequence[int]) -> None:
    """Store a scalar, or the elements of a vector, at `offsets` from a pointer."""
    runs = _runs(offsets)
    if len(runs) == 1:
        editor.op("fly.ptr_store", (), [value, _moved(editor, pointer, info, offsets[0])])
        return
    elem = _elem(editor, info)
    for position, offset, count in runs:
        attrs = {"offsets": editor.ints(position), "sizes": editor.ints(count), "strides": editor.ints(1)}
        part = editor.value("vector.extract_strided_slice", editor.types.vector(count, elem), [value], attrs)
        editor.op("fly.ptr_store", (), [part, _moved(editor, pointer, info, offset)])

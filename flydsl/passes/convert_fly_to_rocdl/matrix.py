"""MMA atoms: the instruction of the atom's row, operands in its register types."""

from flydsl.atoms import mma_calls
from flydsl.atoms.matrix_rows import MatrixRow
from flydsl.atoms.mma_ops import MmaOp
from flydsl.dialects import value_of
from flydsl.ir import ir, parse_type
from flydsl.passes.convert_fly_to_rocdl.conversion import Conversion, rule
from flydsl.passes.convert_fly_to_rocdl.copies import atom_state

# Constant operands of the intrinsics under the names of the rocdl ops' attributes.
_ATTRIBUTES = {
    "cbsz": "cbsz",
    "abid": "abid",
    "blgp": "blgp",
    "opsel_a": "opselA",
    "opsel_b": "opselB",
    "sign_a": "signA",
    "sign_b": "signB",
    "clamp": "clamp",
    "mod_c": "modC",
    "reuse_a": "reuseA",
    "reuse_b": "reuseB",
    "opsel": "opsel",
    "fmt_a": "fmtA",
    "fmt_b": "fmtB",
    "scale_fmt_a": "fmtScaleA",
    "scale_fmt_b": "fmtScaleB",
}
_MFMA_SCALE_FORMATS = {"fmt_a": "cbsz", "fmt_b": "blgp"}


@rule("mma_atom_call_ssa")
def _mma_atom_call_ssa(conv: Conversion, op: ir.Operation) -> None:
    atom_value, a, b, c = op.operands
    atom: MmaOp = value_of(atom_value.type)
    row = atom.row(conv.arch)
    if row is None:
        op.result.replace_all_uses_with(_fused(conv, a, b, c))
        return
    context = op.context
    registers = [parse_type(text, context) for text in row.regs]
    operands = [conv.bitcast(v, t) for v, t in zip((a, b, c), registers, strict=True)]
    values, attrs = _arguments(conv, atom, row, operands, atom_state(atom_value))
    result = conv.editor.value(row.rocdl, registers[2], values, attrs)
    op.result.replace_all_uses_with(conv.bitcast(result, op.result.type))


def _fused(conv: Conversion, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """The universal FMA: one multiply-add per lane."""
    if isinstance(a.type, ir.IntegerType):
        return conv.editor.value("arith.addi", c.type, [conv.editor.value("arith.muli", c.type, [a, b]), c])
    return conv.editor.value("math.fma", c.type, [a, b, c])


def _arguments(
    conv: Conversion, atom: MmaOp, row: MatrixRow, operands: list[ir.Value], state: dict
) -> tuple[list[ir.Value], dict]:
    """Return the run-time operands in the row's order, and the constants as attributes."""
    data = dict(zip("abc", operands, strict=True))
    values, attrs = [], {}
    for name, kind, constant in mma_calls.arguments(atom, row):
        if constant is None:
            values.append(data[name] if name in data else _scale(conv, state, name, row))
            continue
        attribute = _MFMA_SCALE_FORMATS.get(name, _ATTRIBUTES[name]) if row.family == "mfma_scale" else _ATTRIBUTES[name]
        type_ = conv.types.i1 if kind == "i1" else conv.types.by_name[kind]
        attrs[attribute] = ir.IntegerAttr.get(type_, constant)
    return values, attrs


def _scale(conv: Conversion, state: dict, name: str, row: MatrixRow) -> ir.Value:
    """The scale operand: what the atom's state holds, else zero."""
    type_ = conv.types.by_name[row.scale_type]
    value = state.get(name)
    if value is None:
        return conv.editor.constant(type_, 0)
    return conv.bitcast(value, type_)

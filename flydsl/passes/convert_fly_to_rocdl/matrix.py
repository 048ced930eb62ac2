"""MMA atoms: the instruction of the atom's row, operands in its register types."""

from typing import NamedTuple

from flydsl.atoms import mma_calls
from flydsl.atoms.errors import OutOfRange
from flydsl.atoms.matrix_rows import MatrixRow
from flydsl.atoms.mma_ops import MmaOp
from flydsl.dialects import value_of
from flydsl.dialects.rocdl_enums import attribute_text
from flydsl.ir import ir, parse_type
from flydsl.passes.convert_fly_to_rocdl.conversion import Conversion, rule
from flydsl.passes.convert_fly_to_rocdl.copies import atom_state

# Constant operand of the intrinsics -> (attribute of the rocdl op, its kind).
_ATTRIBUTES = {
    "cbsz": ("cbsz", "i32"),
    "abid": ("abid", "i32"),
    "blgp": ("blgp", "perm_b"),
    "opsel_a": ("opselA", "i32"),
    "opsel_b": ("opselB", "i32"),
    "sign_a": ("signA", "i1"),
    "sign_b": ("signB", "i1"),
    "clamp": ("clamp", "i1"),
    "mod_c": ("modC", "mod_c"),
    "reuse_a": ("reuseA", "i1"),
    "reuse_b": ("reuseB", "i1"),
    "opsel": ("opsel", "i1"),
    "fmt_a": ("fmtA", "format"),
    "fmt_b": ("fmtB", "format"),
    "scale_fmt_a": ("fmtScaleA", "scale_format"),
    "scale_fmt_b": ("fmtScaleB", "scale_format"),
}
# What a family names otherwise.
_FAMILY_ATTRIBUTES = {
    "mfma_scale": {"fmt_a": ("cbsz", "format"), "fmt_b": ("blgp", "format")},
    "wmma_scale": {"opsel_a": ("scaleAType", "scale_row"), "opsel_b": ("scaleBType", "scale_row")},
}


@rule("mma_atom_call_ssa")
def _mma_atom_call_ssa(conv: Conversion, op: ir.Operation) -> None:
    atom_value, a, b, c = op.operands
    form = _form(conv, atom_value.type)
    if form is None:
        op.result.replace_all_uses_with(_fused(conv, a, b, c))
        return
    operands = {n: conv.bitcast(v, t) for n, v, t in zip("abc", (a, b, c), form.registers, strict=True)}
    if len(form.run_time) > 3:
        state = atom_state(atom_value)
        operands |= {n: _scale(conv, state, n, form.row) for n in form.run_time if n not in operands}
    values = [operands[n] for n in form.run_time]
    result = conv.editor.value(form.row.rocdl, form.registers[2], values, form.attributes)
    op.result.replace_all_uses_with(conv.bitcast(result, op.result.type))


class _Form(NamedTuple):
    """What all calls of an atom share: `run_time` names the operands in the instruction's order."""

    row: MatrixRow
    registers: list[ir.Type]
    run_time: list[str]
    attributes: dict[str, ir.Attribute]


def _form(conv: Conversion, atom_type: ir.Type) -> _Form | None:
    """Return the form of an atom's calls; None for the universal FMA, which no instruction stands for."""
    forms = conv.forms
    if atom_type not in forms:
        atom: MmaOp = value_of(atom_type)
        row = atom.row(conv.arch)
        forms[atom_type] = None if row is None else _form_of(conv, atom, row)
    return forms[atom_type]


def _fused(conv: Conversion, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """The universal FMA: one multiply-add per lane."""
    if isinstance(a.type, ir.IntegerType):
        return conv.editor.value("arith.addi", c.type, [conv.editor.value("arith.muli", c.type, [a, b]), c])
    return conv.editor.value("math.fma", c.type, [a, b, c])


def _form_of(conv: Conversion, atom: MmaOp, row: MatrixRow) -> _Form:
    run_time, attrs = [], {}
    for name, _, constant in mma_calls.arguments(atom, row):
        if constant is None:
            run_time.append(name)
            continue
        attribute, attribute_kind = _FAMILY_ATTRIBUTES.get(row.family, {}).get(name, _ATTRIBUTES[name])
        if attribute_kind == "scale_row" and constant > 1:
            raise OutOfRange(subject=name, expected="0 or 1: the half wave that holds the scales", value=constant)
        if row.acc == "f64" and name == "blgp":
            attribute_kind = "neg"
        attrs[attribute] = _attribute(conv, attribute_kind, constant)
    return _Form(row, [parse_type(text) for text in row.regs], run_time, attrs)


def _attribute(conv: Conversion, kind: str, value: int) -> ir.Attribute:
    if kind == "i1":
        return ir.BoolAttr.get(bool(value))
    return conv.i32_attr(value) if kind == "i32" else ir.Attribute.parse(attribute_text(kind, value))


def _scale(conv: Conversion, state: dict, name: str, row: MatrixRow) -> ir.Value:
    """The scale operand: what the atom's state holds, else zero."""
    type_ = conv.types.by_name[row.scale_type]
    value = state.get(name)
    if value is None:
        return conv.editor.constant(type_, 0)
    return conv.bitcast(value, type_)

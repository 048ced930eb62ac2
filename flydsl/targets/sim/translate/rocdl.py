"""Rules of `rocdl` that are neither memory, nor matrix, nor waits: lane exchange, small arithmetic, packed
conversions."""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.rules import attribute, int_attribute, rule
from flydsl.targets.sim.translate.values import Scalar, Struct, Vector
from flydsl.targets.sim.translate.vector import as_pieces


def bool_attribute(op: Any, name: str) -> bool:
    """Return a boolean (or i1) attribute."""
    text = str(attribute(op, name, "false"))
    return text.startswith(("true", "-1", "1"))


@rule("rocdl.readfirstlane")
def readfirstlane(t: FunctionTranslator, op: Any) -> None:
    per_lane(t, op, lambda x: f"h_readfirstlane(M, {x}, {t.mask})")


@rule("rocdl.readlane")
def readlane(t: FunctionTranslator, op: Any) -> None:
    lane = t.scalar(op.operands[1])
    per_lane(t, op, lambda x: f"h_readlane(M, {x}, {lane}, {t.mask})")


def per_lane(t: FunctionTranslator, op: Any, make: Any) -> None:
    """Apply a lane exchange to a scalar, or to each element of a vector."""
    value = t.get(op.operands[0])
    if isinstance(value, Scalar):
        t.set_scalar(op.results[0], make(value.text), value.base)
        return
    elements = [Scalar(t.let(make(t.element(value, i).text)), value.type.scalar()) for i in range(value.n)]
    t.set_pieces(op.results[0], [p for e in elements for p in as_pieces(e)])


@rule("rocdl.ballot")
def ballot(t: FunctionTranslator, op: Any) -> None:
    elem = t.type_of(op.results[0]).elem
    t.set_scalar(op.results[0], f"h_ballot(M, {t.scalar(op.operands[0])}, {t.mask}, T_{elem})")


@rule("rocdl.mbcnt.lo", "rocdl.mbcnt.hi")
def mbcnt(t: FunctionTranslator, op: Any) -> None:
    mask, base = (t.scalar(v) for v in op.operands)
    t.set_scalar(op.results[0], f"h_mbcnt(M, {mask}, {base}, {op.name.endswith('hi')})")


@rule("rocdl.ds_bpermute")
def ds_bpermute(t: FunctionTranslator, op: Any) -> None:
    index, value = (t.scalar(v) for v in op.operands)
    t.set_scalar(op.results[0], f"h_bpermute(M, {index}, {value}, {t.mask})")


@rule("rocdl.ds_swizzle")
def ds_swizzle(t: FunctionTranslator, op: Any) -> None:
    offset = t.const_of(op.operands[1])
    if offset is None:
        raise t.refuse("with a run-time pattern", "give the pattern as a constant")
    t.set_scalar(op.results[0], f"h_swizzle(M, {t.scalar(op.operands[0])}, {int(offset)}, {t.mask})")


@rule("rocdl.update.dpp")
def update_dpp(t: FunctionTranslator, op: Any) -> None:
    old, src = (t.scalar(v) for v in op.operands)
    ctrl, rows, banks = (int_attribute(op, n) for n in ("dppCtrl", "rowMask", "bankMask"))
    bound = bool_attribute(op, "boundCtrl")
    t.set_scalar(op.results[0], f"h_dpp(M, {old}, {src}, {ctrl}, {rows}, {banks}, {bound}, {t.mask})")


@rule("rocdl.permlane16.swap", "rocdl.permlane32.swap")
def permlane_swap(t: FunctionTranslator, op: Any) -> None:
    half = 16 if "16" in op.name else 32
    a, b = (t.scalar(v) for v in op.operands)
    pair = t.let(f"h_permlane_swap(M, {a}, {b}, {half})")
    type_ = t.type_of(op.results[0])
    t.define(op.results[0], Struct(type_, [Scalar(t.let(f"{pair}[{i}]"), f) for i, f in enumerate(type_.fields)]))


@rule("rocdl.permlanex16", "rocdl.permlane16.var", "rocdl.permlanex16.var")
def permlane16(t: FunctionTranslator, op: Any) -> None:
    if op.name.endswith("var"):
        raise t.refuse("with selectors per lane", "use ds_bpermute")
    old, src, low, high = (t.scalar(v) for v in list(op.operands)[:4])
    t.set_scalar(op.results[0], f"h_permlane16(M, {old}, {src}, {low}, {high}, True, {t.mask})")


def text_of(t: FunctionTranslator, value: Any) -> str:
    """Return the name of a scalar, or of one array for a vector."""
    return t.operand_array(value)


def is_vector(t: FunctionTranslator, value: Any) -> bool:
    return isinstance(t.get(value), Vector)

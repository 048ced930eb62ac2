"""Rules of matrix ops: operands are packed once per definition and scope, accumulators stay matrices."""

from __future__ import annotations

from typing import Any

from flydsl.atoms.errors import AtomError
from flydsl.dialects.rocdl_enums import ENUMS
from flydsl.targets.sim.matrix import h_plan
from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.rules import attribute, int_attribute, prefix_rule
from flydsl.targets.sim.translate.values import Piece, Scalar, Vector

FORMATS = {"fp8_e4m3": "fp8", "fp8_e5m2": "bf8", "fp6_e2m3": "fp6", "fp6_e3m2": "bf6", "fp4_e2m1": "fp4"}
MOD_C = {"none": 0, "neg": 1, "abs": 2, "neg_abs": 3}


def keyword(op: Any, name: str, default: str = "none") -> str:
    """Return the keyword of an enumeration attribute such as `#rocdl<matrix_format fp4_e2m1>`."""
    attr = attribute(op, name)
    return default if attr is None else str(attr).rstrip(">").split()[-1].split("<")[-1]


def flag(op: Any, name: str) -> bool:
    """Return a boolean attribute, false when absent."""
    return str(attribute(op, name, "false")) == "true"


def plan_name(
    t: FunctionTranslator, op: Any, formats: tuple[str, str] | None = None, controls: tuple[int, int, int] = (0, 0, 0)
) -> str:
    """Return the name of the instruction's plan, a constant of the generated module."""
    regs = tuple(str(v.type) for v in list(op.operands)[:2])
    try:
        h_plan(op.name, t.module.arch, regs, formats, controls)
    except AtomError as e:
        raise t.refuse(e.message, "use an instruction of the chip; see flydsl.atoms") from e
    return t.module_constant(f"h_plan({op.name!r}, {t.module.arch!r}, {regs!r}, {formats!r}, {controls!r})")


def packed(t: FunctionTranslator, value: Any, call: str, *key: Any) -> str:
    """Return the name of an operand's packed form, made once per scope."""
    v = t.get(value)
    identity = tuple((p.text, p.off, p.length) for p in v.pieces) if isinstance(v, Vector) else v.text
    text = t.operand_array(value)
    return t.cached(("pack", call, identity, *key), lambda: t.let(call.format(text)))


def accumulator(t: FunctionTranslator, value: Any) -> str:
    """Return the text of C: an accumulator as it is, or an array."""
    v = t.get(value)
    if (
        isinstance(v, Vector)
        and len(v.pieces) == 1
        and not v.pieces[0].is_splat
        and v.pieces[0].length == v.pieces[0].total
    ):
        return v.pieces[0].text
    return t.operand_array(value)


def define_acc(t: FunctionTranslator, op: Any, call: str) -> None:
    """Bind the result to an accumulator."""
    type_ = t.type_of(op.results[0])
    name = t.let(call)
    if not type_.is_vector:
        t.define(op.results[0], Scalar(t.let(f"{name}.lanes()[..., 0]"), type_))
        return
    t.accs.add(name)
    t.define(op.results[0], Vector(type_, [Piece(name, 0, type_.n, type_.n)]))


@prefix_rule("rocdl.mfma.scale.")
def mfma_scale(t: FunctionTranslator, op: Any) -> None:
    formats = (FORMATS[keyword(op, "cbsz")], FORMATS[keyword(op, "blgp")])
    plan = plan_name(t, op, formats)
    a, b, c, scale_a, scale_b = list(op.operands)
    opsel = (int_attribute(op, "opselA"), int_attribute(op, "opselB"))
    if t.const_of(scale_a) == 0 and t.const_of(scale_b) == 0:  # the compiler picks the unscaled instruction
        pa, pb = packed(t, a, f"h_pack_a(M, {plan}, {{0}})"), packed(t, b, f"h_pack_b(M, {plan}, {{0}})")
    else:
        pa = packed(t, a, f"h_pack_scaled(M, {plan}, 'a', {{0}}, {t.scalar(scale_a)}, {opsel[0]})")
        pb = packed(t, b, f"h_pack_scaled(M, {plan}, 'b', {{0}}, {t.scalar(scale_b)}, {opsel[1]})")
    define_acc(t, op, f"h_mma(M, {plan}, {pa}, {pb}, {accumulator(t, c)})")


@prefix_rule("rocdl.smfmac.")
def smfmac(t: FunctionTranslator, op: Any) -> None:
    plan = plan_name(t, op)
    a, b, c, index = list(op.operands)
    cbsz, abid = int_attribute(op, "cbsz"), int_attribute(op, "abid")
    places = t.scalar(index)
    pa = packed(t, a, f"h_pack_a_sparse(M, {plan}, {{0}}, {places}, {cbsz}, {abid})", places, cbsz, abid)
    pb = packed(t, b, f"h_pack_b(M, {plan}, {{0}})")
    define_acc(t, op, f"h_mma(M, {plan}, {pa}, {pb}, {accumulator(t, c)})")


@prefix_rule("rocdl.mfma.")
def mfma(t: FunctionTranslator, op: Any) -> None:
    permutation = keyword(op, "blgp")
    is_f64 = ".f64." in op.name  # there the field negates operands
    plan = plan_name(t, op, None, controls_of(t, op, "none" if is_f64 else permutation))
    a, b, c = list(op.operands)[:3]
    pa, pb = packed(t, a, f"h_pack_a(M, {plan}, {{0}})", plan), packed(t, b, f"h_pack_b(M, {plan}, {{0}})", plan)
    if is_f64 and ("neg_a" in permutation) != ("neg_b" in permutation):
        pa = f"(-{pa})"
    mod_c = MOD_C["neg"] if is_f64 and "neg_c" in permutation else 0
    if mod_c:
        define_acc(t, op, f"h_mma_modified(M, {plan}, {pa}, {pb}, {accumulator(t, c)}, {mod_c}, False)")
    else:
        define_acc(t, op, f"h_mma(M, {plan}, {pa}, {pb}, {accumulator(t, c)})")


def controls_of(t: FunctionTranslator, op: Any, permutation: str) -> tuple[int, int, int]:
    """Return CBSZ, ABID and BLGP of an instruction that has such controls.

    Forms with several blocks have all three, single blocks of f32 the permutation of B only (CDNA3 instruction set,
    section 7).
    """
    cbsz, abid = int_attribute(op, "cbsz"), int_attribute(op, "abid")
    blgp = int(permutation) if permutation.isdigit() else ENUMS["perm_b"][1].index(permutation)
    plan = h_plan_of(t, op)
    if (cbsz or abid) and (plan.blocks >> cbsz == 0 or abid >> cbsz):
        text = f"with cbsz = {cbsz}, abid = {abid} on {plan.blocks} blocks"
        raise t.refuse(text, "cbsz is at most log2(blocks), abid less than 2**cbsz")
    if blgp and plan.blocks == 1 and plan.a != "f32":
        raise t.refuse(f"with blgp = {permutation}, which this form does not have", "use a form with several blocks")
    return cbsz, abid, blgp


@prefix_rule("rocdl.wmma.scale.", "rocdl.wmma.scale16.")
def wmma_scale(t: FunctionTranslator, op: Any) -> None:
    formats = (FORMATS[keyword(op, "fmtA", "fp4_e2m1")], FORMATS[keyword(op, "fmtB", "fp4_e2m1")])
    for name in ("fmtScaleA", "fmtScaleB"):
        if keyword(op, name, "e8m0").lower() not in ("e8", "e8m0", "0"):
            raise t.refuse(f"with scales of format {keyword(op, name)}", "use E8M0 scales")
    plan = plan_name(t, op, formats)
    a, b, c, scale_a, scale_b = list(op.operands)
    halves = [scale_half(op, n) for n in ("scaleAType", "scaleBType")]
    pa = packed(t, a, f"h_pack_block_scaled(M, {plan}, 'a', {{0}}, {t.scalar(scale_a)}, {halves[0]})")
    pb = packed(t, b, f"h_pack_block_scaled(M, {plan}, 'b', {{0}}, {t.scalar(scale_b)}, {halves[1]})")
    mod_c = MOD_C[keyword(op, "modC")]
    define_acc(t, op, f"h_mma_modified(M, {plan}, {pa}, {pb}, {accumulator(t, c)}, {mod_c}, False)")


def scale_half(op: Any, name: str) -> int:
    """Return which half wave holds the scales."""
    text = keyword(op, name, "0").lower()
    return 1 if text in ("1", "row1", "second", "second_half", "high") else 0


@prefix_rule("rocdl.wmma.")
def wmma(t: FunctionTranslator, op: Any) -> None:
    plan = plan_name(t, op)
    a, b, c = list(op.operands)[:3]
    is_int = ".i32." in op.name
    sign_a, sign_b = (flag(op, "signA"), flag(op, "signB")) if is_int else (True, True)
    pa = packed(t, a, f"h_pack_a(M, {plan}, {{0}}, {sign_a})")
    pb = packed(t, b, f"h_pack_b(M, {plan}, {{0}}, {sign_b})")
    if h_plan_of(t, op).opsel_result:
        t.set_array(op.results[0], f"h_mma_halves(M, {plan}, {pa}, {pb}, {t.operand_array(c)}, {flag(op, 'opsel')})")
        return
    mod_c, clamp = MOD_C[keyword(op, "modC")], flag(op, "clamp")
    if mod_c or clamp:
        define_acc(t, op, f"h_mma_modified(M, {plan}, {pa}, {pb}, {accumulator(t, c)}, {mod_c}, {clamp})")
    else:
        define_acc(t, op, f"h_mma(M, {plan}, {pa}, {pb}, {accumulator(t, c)})")


def h_plan_of(t: FunctionTranslator, op: Any) -> Any:
    return h_plan(op.name, t.module.arch, tuple(str(v.type) for v in list(op.operands)[:2]), None)

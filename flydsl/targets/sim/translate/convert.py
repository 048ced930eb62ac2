"""Rules of the packed conversions, dot products and byte permutes of `rocdl`, and of intrinsics without a rocdl op."""

from __future__ import annotations

import re
from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.matrix import flag
from flydsl.targets.sim.translate.rules import attribute, find_intrinsic, int_attribute, intrinsic, prefix_rule, rule

SMALL = "fp8|bf8|fp6|bf6|fp4"
DECODE = re.compile(rf"(?:scalef32\.)?(?:pk(\d*)\.)?(f32|f16|bf16)\.({SMALL})$")
ENCODE = re.compile(rf"(?:scalef32\.)?(sr\.)?(?:2x)?(pk(\d*)\.)?({SMALL})\.(f32|f16|bf16)$")
CODE_BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}


@prefix_rule("rocdl.cvt.")
def cvt(t: FunctionTranslator, op: Any) -> None:
    name = op.name.removeprefix("rocdl.cvt.")
    if name == "pkrtz":
        t.set_array(op.results[0], f"h_cvt_pkrtz({', '.join(t.scalar(v) for v in op.operands)})")
    elif match := DECODE.match(name):
        decode(t, op, match.group(3), match.group(2), "scalef32" in name)
    elif match := ENCODE.match(name):
        encode(t, op, match.group(4), "scalef32" in name, bool(match.group(1)))
    else:
        raise t.refuse("", "use the scalef32 forms of gfx950, or convert in steps")


def decode(t: FunctionTranslator, op: Any, kind: str, dst: str, scaled: bool) -> None:
    """Small floats to f32, f16 or bf16."""
    operands = list(op.operands)
    type_ = t.type_of(op.results[0])
    if "oldVdst" in _operand_names(op):
        old, src, scale = (t.operand_array(v) for v in operands)
        byte, high = int_attribute(op, "srcSelIndex"), flag(op, "dstLoHiSel")
        t.set_array(op.results[0], f"h_cvt_f16_into(M, {old}, {src}, {scale}, '{kind}', {byte}, {high})")
        return
    src = t.operand_array(operands[0])
    scale = t.scalar(operands[1]) if scaled else "None"
    first = 0
    if attribute(op, "wordSel") is not None:
        first = 2 * flag(op, "wordSel")
    elif attribute(op, "srcLoHiSel") is not None:
        first = 2 * flag(op, "srcLoHiSel")
    elif attribute(op, "srcSelIndex") is not None:
        first = int_attribute(op, "srcSelIndex") * (2 if CODE_BITS[kind] == 4 else 1)
    elif attribute(op, "byteSel") is not None:
        first = int_attribute(op, "byteSel")
    call = f"h_cvt_unpack(M, {src}, '{kind}', {first}, {type_.n or 1}, T_{dst}, {scale})"
    if type_.is_vector:
        t.set_array(op.results[0], call)
    else:
        t.set_scalar(op.results[0], f"{call}[..., 0]")


def encode(t: FunctionTranslator, op: Any, kind: str, scaled: bool, stochastic: bool) -> None:
    """f32, f16 or bf16 to small floats."""
    names = _operand_names(op)
    texts = dict(zip(names, (t.operand_array(v) for v in op.operands)))
    parts = "".join(
        f"{texts[n]}, " for n in names if n in ("src", "src0", "src1", "srcA") or (n == "srcB" and not stochastic)
    )
    seed = texts.get("seed", texts["srcB"] if stochastic and "srcB" in texts else "None")
    scale = texts.get("scale", "None")
    type_ = t.type_of(op.results[0])
    old = texts.get("oldVdst", texts.get("old"))
    if "lossy" in t.value_checks:
        t.emit(f"M.check_lossy_codes({t.site()}, ({parts}), '{kind}', {scale}, {t.mask})")
    if old is None:
        call = f"h_cvt_words(M, ({parts}), '{kind}', {scale}, {seed}, T_{type_.elem})"
        t.set(op.results[0], call if type_.is_vector else f"{call}[..., 0]")
    elif type_.is_vector:
        t.set_array(op.results[0], f"h_cvt_half(M, {old}, ({parts}), '{kind}', {flag(op, 'dstLoHiSel')}, {scale})")
    else:
        at = 16 * flag(op, "wordSel") + 8 * int_attribute(op, "byteSel") + 8 * int_attribute(op, "dstSelIndex")
        t.set_scalar(op.results[0], f"h_cvt_into(M, {old}, ({parts}), '{kind}', {at}, {scale}, {seed})")


def _operand_names(op: Any) -> list[str]:
    """Return the names of a conversion's operands, in order (the dialect's own, which the bindings do not tell)."""
    name, count = op.name, len(op.operands)
    if "scalef32" not in name:
        if ".sr." in name:
            return ["src", "seed", "old"]
        return ["srcA", "srcB", "old"][:count] if count == 3 else ["src"]
    if ".sr." in name:
        return ["oldVdst", "src", "seed", "scale"] if count == 4 else ["src", "seed", "scale"]
    if count == 4:
        return ["oldVdst", "src0", "src1", "scale"]
    if count == 3:
        return ["src0", "src1", "scale"] if "2xpk16" in name else ["oldVdst", "src", "scale"]
    return ["src", "scale"]


DOTS = {
    "sdot2": (16, (1, 1)),
    "udot2": (16, (0, 0)),
    "sdot4": (8, (1, 1)),
    "udot4": (8, (0, 0)),
    "sdot8": (4, (1, 1)),
    "udot8": (4, (0, 0)),
}


@rule(*(f"rocdl.{n}" for n in DOTS), "rocdl.sudot4", "rocdl.sudot8")
def dot(t: FunctionTranslator, op: Any) -> None:
    name = op.name.removeprefix("rocdl.")
    if name.startswith("sudot"):
        bits, signs = {"sudot4": 8, "sudot8": 4}[name], (flag(op, "signA"), flag(op, "signB"))
    else:
        bits, (a, b) = DOTS[name]
        signs = (bool(a), bool(b))
    texts = ", ".join(t.operand_array(v) for v in op.operands)
    t.set_scalar(op.results[0], f"h_dot({texts}, {bits}, {signs}, {flag(op, 'clamp')})")


@rule("rocdl.fdot2", "rocdl.fdot2.f16.f16", "rocdl.fdot2.bf16.bf16", "rocdl.fdot2.f32.bf16")
def fdot2(t: FunctionTranslator, op: Any) -> None:
    if flag(op, "clamp"):
        raise t.refuse("with clamp", "clamp the result")
    t.set_scalar(op.results[0], f"h_fdot2({', '.join(t.operand_array(v) for v in op.operands)})")


# --- intrinsics ------------------------------------------------------------------------------------------------------


@rule("llvm.call_intrinsic")
def call_intrinsic(t: FunctionTranslator, op: Any) -> None:
    name = attribute(op, "intrin").value
    fn = find_intrinsic(name)
    if fn is None:
        raise t.refuse(f"of `{name}`", "use the rocdl op of this instruction, or add a rule in translate/convert.py")
    fn(t, op)


HARDWARE = {
    "rcp": "h_hw_rcp",
    "rsq": "h_hw_rsq",
    "sqrt": "h_hw_sqrt",
    "log": "h_hw_log",
    "exp2": "h_hw_exp2",
    "sin": "h_hw_sin",
    "cos": "h_hw_cos",
}


@intrinsic(*(f"llvm.amdgcn.{n}" for n in HARDWARE))
def hardware_math(t: FunctionTranslator, op: Any) -> None:
    name = attribute(op, "intrin").value.split(".")[2]
    t.elementwise(op.results[0], list(op.operands), f"{HARDWARE[name]}({{0}})".format)


@intrinsic("llvm.amdgcn.fmed3")
def med3(t: FunctionTranslator, op: Any) -> None:
    t.elementwise(op.results[0], list(op.operands), "h_fmed3({0}, {1}, {2})".format)


@intrinsic("llvm.amdgcn.perm")
def perm(t: FunctionTranslator, op: Any) -> None:
    t.set_scalar(op.results[0], f"h_perm({', '.join(t.scalar(v) for v in op.operands)})")


@intrinsic("llvm.amdgcn.cvt.off.f32.i4")
def cvt_off(t: FunctionTranslator, op: Any) -> None:
    t.set_scalar(op.results[0], f"h_cvt_off_i4({t.scalar(op.operands[0])})")


@intrinsic("llvm.amdgcn.cvt.sr.bf16.f32")
def cvt_sr_bf16(t: FunctionTranslator, op: Any) -> None:
    old, x, seed = (t.operand_array(v) for v in list(op.operands)[:3])
    t.set_array(op.results[0], f"h_cvt_sr_bf16({old}, {x}, {seed}, {bool(t.const_of(op.operands[3]))})")


@intrinsic("llvm.amdgcn.cvt.pkrtz")
def cvt_pkrtz(t: FunctionTranslator, op: Any) -> None:
    t.set_array(op.results[0], f"h_cvt_pkrtz({', '.join(t.scalar(v) for v in op.operands)})")


@intrinsic("llvm.amdgcn.readfirstlane")
def readfirstlane(t: FunctionTranslator, op: Any) -> None:
    t.set_scalar(op.results[0], f"h_readfirstlane(M, {t.scalar(op.operands[0])}, {t.mask})")


@intrinsic("llvm.amdgcn.readlane")
def readlane(t: FunctionTranslator, op: Any) -> None:
    t.set_scalar(op.results[0], f"h_readlane(M, {t.scalar(op.operands[0])}, {t.scalar(op.operands[1])}, {t.mask})")


@intrinsic("llvm.amdgcn.ballot")
def ballot(t: FunctionTranslator, op: Any) -> None:
    elem = t.type_of(op.results[0]).elem
    t.set_scalar(op.results[0], f"h_ballot(M, {t.scalar(op.operands[0])}, {t.mask}, T_{elem})")


@intrinsic("llvm.amdgcn.mul.u24", "llvm.amdgcn.mul.i24")
def mul24(t: FunctionTranslator, op: Any) -> None:
    form = (
        "(({0} & {c}) * ({1} & {c}))"
        if "u24" in attribute(op, "intrin").value
        else "((({0} << {s}) >> {s}) * (({1} << {s}) >> {s}))"
    )
    c, s = t.constant("i32", 0xFFFFFF).text, t.constant("i32", 8).text
    t.elementwise(op.results[0], list(op.operands), lambda a, b: form.format(a, b, c=c, s=s))


@intrinsic(
    "llvm.amdgcn.s.setreg",
    "llvm.amdgcn.s.setprio",
    "llvm.amdgcn.sched.barrier",
    "llvm.amdgcn.sched.group.barrier",
    "llvm.amdgcn.s.nop",
)
def no_effect(t: FunctionTranslator, op: Any) -> None:
    """Hints and mode bits that do not change results here."""


ASSEMBLY = {"v_cvt_pk_bf16_f32 $0, $1, $2": "h_cvt_pk_bf16({0}, {1})"}


@rule("llvm.inline_asm")
def inline_asm(t: FunctionTranslator, op: Any) -> None:
    """Assembly is opaque, except for the few one-instruction templates that the package itself writes."""
    template = attribute(op, "asm_string").value.strip()
    form = ASSEMBLY.get(template)
    if form is None:
        raise t.refuse(f"`{template}`", "guard inline assembly by the target, or use the instruction's rocdl op")
    t.set(op.results[0], form.format(*(t.operand_array(v) for v in op.operands)))

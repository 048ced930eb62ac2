"""Exchange of values between the lanes of a wave, and byte permutes."""

from typing import Any

from flydsl.atoms import dpp
from flydsl.diag import RocdlOperand
from flydsl.expr.rocdl.bits import map_words
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.intrinsics import call
from flydsl.expr.rocdl.values import arch_name, chip, dsl, i32, operand, result_type, scalar, static_int
from flydsl.ir import current, emit1

_ballot = builder("ballot")
_ds_bpermute = builder("ds_bpermute")
_readlane = builder("readlane")
_update_dpp = builder("update_dpp")
_wave_id = builder("wave_id")
readfirstlane = builder("readfirstlane")


def readlane(res: Any, src: Any, lane: Any, **ignored: Any) -> Any:
    """Return the value of `src` in `lane`, a Python int or a wave-uniform Int32."""
    return _readlane(res, src, i32(lane))


def ballot(res: Any, pred: Any, **ignored: Any) -> Any:
    """Return the mask of lanes in which `pred` holds; `res` is 64 bits wide, or 32 on chips of wave 32."""
    signature, types = _ballot.spec.text, current().types
    type_, wave = result_type(res, "ballot", signature), chip().wave_size
    if type_ != types.i64 and (type_ != types.i32 or wave == 64):
        raise RocdlOperand(
            name="ballot",
            param="res",
            expected="64 bits wide" if wave == 64 else "32 or 64 bits wide",
            got=str(type_),
            signature=signature,
            advice=f"ask for fx.Int64: a wave of {arch_name()} has {wave} lanes, one bit each",
        )
    return _ballot(res, scalar(pred, "Boolean"))


def ds_bpermute(res: Any, index: Any, src: Any, **ignored: Any) -> Any:
    """Return the value of `src` in lane `index / 4` (a byte offset, as the instruction wants it).

    Values that are not i32 go bit for bit; wider ones in parts of 32 bits.
    """
    signature = _ds_bpermute.spec.text
    type_ = result_type(res, "ds_bpermute", signature)
    value, index = operand(src, type_, "ds_bpermute", "src", signature), i32(index)
    if value.type != type_:
        raise RocdlOperand(
            name="ds_bpermute",
            param="src",
            expected=f"{type_}, the result type",
            got=str(value.type),
            signature=signature,
            advice="convert or bitcast it to the result type",
        )
    i32_type = current().types.i32
    return dsl(res, map_words(value, lambda word: emit1("rocdl.ds_bpermute", i32_type, (index, word))))


def update_dpp(
    res: Any, old: Any, src: Any, dpp_ctrl: Any, row_mask: Any, bank_mask: Any, bound_ctrl: Any, **ignored: Any
) -> Any:
    """Return `src` of the lane that `dpp_ctrl` pairs with this one (codes: `flydsl.atoms.dpp`).

    Lanes masked out keep `old`; lanes whose partner is out of bounds too, or get 0 when `bound_ctrl` is set.

    Raises   OutOfRange: no such code; UnsupportedChip
    """
    code = dpp.check(static_int(dpp_ctrl, "update_dpp", "dpp_ctrl"), arch_name())
    return _update_dpp(res, old, src, code, row_mask, bank_mask, bound_ctrl)


def perm_b32(src_hi: Any, src_lo: Any, sel: Any, **ignored: Any) -> Any:
    """Return four bytes picked by the bytes of `sel`: 0-3 from `src_lo`, 4-7 from `src_hi`, 0x0C gives 0."""
    return dsl(None, call("llvm.amdgcn.perm", current().types.i32, (i32(src_hi), i32(src_lo), i32(sel))))


def wave_id() -> Any:
    """Return the index of the wave in its workgroup, uniform (gfx12 and later)."""
    return _wave_id(current().types.i32)

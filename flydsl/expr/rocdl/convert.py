"""Conversions that need more than one rocdl op: stochastic rounding, packed bf16, 4-bit offsets."""

from typing import Any

from flydsl.diag import RocdlStatic
from flydsl.expr.numeric.base import CLASSES
from flydsl.expr.rocdl.bits import bitcast
from flydsl.expr.rocdl.intrinsics import call
from flydsl.expr.rocdl.values import const_i32, dsl, f32, i32, require, static_int
from flydsl.ir import constant, current, emit1


def cvt_pk_bf16_f32(src_a_f32: Any, src_b_f32: Any) -> Any:
    """Return an i32: bf16 of `src_a_f32` in the low half, of `src_b_f32` in the high one, rounded to nearest even.

    Written as a truncation of two values, for which LLVM takes v_cvt_pk_bf16_f32 where the chip has it: inline
    assembly would need an assembler and hide the operation from the scheduler and the simulator.
    """
    types = current().types
    pair = emit1("vector.from_elements", types.vector(2, types.f32), (f32(src_a_f32), f32(src_b_f32)))
    rounded = emit1("arith.truncf", types.vector(2, types.bf16), (pair,))
    return dsl(None, bitcast(rounded, types.i32))


def cvt_off_f32_i4(src_i32: Any, byte_sel: Any = None) -> Any:
    """Return the f32 of the low nibble of byte `byte_sel` of `src_i32`, signed, divided by 16.

    Source   CDNA3 ISA, v_cvt_off_f32_i4: nibbles 0 to 7 give n/16, 8 to 15 give (n - 16)/16
    """
    types, value = current().types, i32(src_i32)
    if byte_sel is not None:
        byte = static_int(byte_sel, "cvt_off_f32_i4", "byte_sel")
        if not 0 <= byte < 4:
            raise RocdlStatic(name="cvt_off_f32_i4", param="byte_sel", expected="integer in [0, 3]", got=byte)
        if byte:
            value = emit1("arith.shrui", types.i32, (value, const_i32(8 * byte)))
    return dsl(None, call("llvm.amdgcn.cvt.off.f32.i4", types.f32, (value,)))


def cvt_sr_f32_to_bf16(x: Any, rand: Any) -> Any:
    """Return the BFloat16 of `x`, rounded up with the probability of its remainder, by the 32 random bits of `rand`
    (gfx950).
    """
    require("cvt_scalef32", "cvt_sr_f32_to_bf16")
    types = current().types
    pair = types.vector(2, types.bf16)
    old = emit1("llvm.mlir.poison", pair)
    args = (old, f32(x), i32(rand), constant(types.i1, False))
    both = call("llvm.amdgcn.cvt.sr.bf16.f32", pair, args)
    return dsl(CLASSES["BFloat16"], emit1("llvm.extractelement", types.bf16, (both, const_i32(0))))

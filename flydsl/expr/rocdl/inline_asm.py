"""Instructions that FlyDSL reaches through inline assembly, and `inline_asm` itself.

Where LLVM 22.1 has an intrinsic the helper uses that: it needs no assembler and runs in the simulator.
"""

from flydsl.expr.rocdl.convert import cvt_off_f32_i4, cvt_pk_bf16_f32
from flydsl.expr.rocdl.intrinsics import inline_asm

__all__ = ["cvt_off_f32_i4", "cvt_pk_bf16_f32", "inline_asm"]

"""Atomic copy atoms: a register value is combined with memory, and nothing comes back."""

from flydsl.atoms.copy_ops import BufferAtomic, UniversalAtomic
from flydsl.atoms.copy_rows import require_instruction, row
from flydsl.atoms.elements import is_float
from flydsl.dialects.values import BUFFER_DESC, GLOBAL, REGISTER
from flydsl.ir import ir
from flydsl.passes.convert_fly_to_rocdl.conversion import Conversion
from flydsl.passes.convert_fly_to_rocdl.copies import Call, copy_rule, soffset_bytes
from flydsl.passes.convert_fly_to_rocdl.pointers import byte_offset, effective

# Numbers of the llvm dialect's AtomicBinOp and AtomicOrdering.
_BIN_OPS = {
    "add": 1, "and": 3, "or": 5, "max": 7, "min": 8, "umax": 9, "umin": 10, "fadd": 11, "fmax": 13, "fmin": 14,
    "uinc_wrap": 15, "udec_wrap": 16,
}  # fmt: skip
_MONOTONIC = 2


@copy_rule("universal_atomic")
def _universal_atomic(conv: Conversion, call: Call) -> None:
    """`atomicrmw`, relaxed. Floats in global memory: the memory is this device's own, so that LLVM may use the
    instruction."""
    op: UniversalAtomic = call.atom.op
    i64 = conv.types.i64
    attrs = {
        "bin_op": ir.IntegerAttr.get(i64, _BIN_OPS[op.rmw]),
        "ordering": ir.IntegerAttr.get(i64, _MONOTONIC),
        "alignment": ir.IntegerAttr.get(i64, call.align_bytes),
    }
    if op.scope:
        attrs["syncscope"] = ir.StringAttr.get(op.scope)
    if is_float(op.elem) and call.target.info.space == GLOBAL:
        attrs["rocdl.no_fine_grained_memory"] = ir.UnitAttr.get()
        attrs["rocdl.no_remote_memory"] = ir.UnitAttr.get()
    conv.editor.op("llvm.atomicrmw", [call.source.type], [effective(conv, call.target), call.source], attrs)


@copy_rule("buffer_atomic")
def _buffer_atomic(conv: Conversion, call: Call) -> None:
    """One buffer instruction; `soffset` counts elements of the buffer tensor."""
    op: BufferAtomic = call.atom.op
    found = require_instruction(op, row(op, op.elem, REGISTER, BUFFER_DESC, conv.arch), conv.arch)
    soffset = soffset_bytes(conv, call.state, call.target) or conv.editor.i32(0)
    operands = [call.source, call.target.pointer, byte_offset(conv, call.target), soffset]
    conv.editor.op(found.rocdl, [call.source.type], operands, {"aux": conv.i32_attr(0)})

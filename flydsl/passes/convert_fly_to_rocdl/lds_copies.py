"""Copies between global memory and LDS that bypass registers, and transposing reads of LDS."""

from flydsl.atoms.copy_ops import LDSReadTrans
from flydsl.ir import ir, parse_type
from flydsl.passes.convert_fly_to_rocdl.conversion import Conversion
from flydsl.passes.convert_fly_to_rocdl.copies import Call, copy_rule, soffset_bytes
from flydsl.passes.convert_fly_to_rocdl.pointers import byte_offset, effective

_BUFFER_OPS = {
    "buffer_copy_lds": "rocdl.raw.ptr.buffer.load.lds",
    "buffer_load_async_lds": "rocdl.raw.ptr.buffer.load.async.lds",
}


@copy_rule("buffer_copy_lds", "buffer_load_async_lds")
def _buffer_to_lds(conv: Conversion, call: Call) -> None:
    """LDS DMA: lane l lands at the first lane's LDS address plus l times the width."""
    source, op = call.source, call.atom.op
    soffset = soffset_bytes(conv, call.state, source) or conv.editor.i32(0)
    immediate = call.state.get("imm_offset") or conv.editor.i32(0)
    operands = [
        source.pointer,
        call.target.pointer,
        conv.editor.i32(op.bits // 8),
        byte_offset(conv, source),
        soffset,
        immediate,
    ]
    conv.editor.op(_BUFFER_OPS[op.key], (), operands, {"aux": conv.i32_attr(0)})


@copy_rule("global_load_async_lds")
def _global_to_lds(conv: Conversion, call: Call) -> None:
    """The same from a global pointer, each lane its own address."""
    attrs = {"size": conv.i32_attr(call.atom.op.bits // 8), "offset": conv.i32_attr(0), "aux": conv.i32_attr(0)}
    conv.editor.op("rocdl.global.load.async.lds", (), [call.source.pointer, call.target.pointer], attrs)


@copy_rule("lds_read_trans")
def _lds_read_trans(conv: Conversion, call: Call) -> None:
    """Sixteen lanes read sixteen rows; each receives a column."""
    op: LDSReadTrans = call.atom.op
    name = f"rocdl.ds.read.tr{op.granularity}.b{op.bits}"
    registers = parse_type(op.register_type, call.op.context)
    value = conv.editor.value(name, registers, [effective(conv, call.source)])
    call.finish(conv.bitcast(value, call.result) if isinstance(call.result, ir.Type) else value)

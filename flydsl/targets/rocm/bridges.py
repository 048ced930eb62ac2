"""rocdl ops whose intrinsic looks different in LLVM 22.1, and checks of constant operands.

Each rule replaces an op by a call with the signature of the intrinsic table. Ops that have no counterpart get
the nearest older instruction with the same meaning, waiting more if need be.
"""

from __future__ import annotations

from collections.abc import Callable

from flydsl.diag.errors.target import IntrinsicUnknown
from flydsl.ir import ir
from flydsl.ir.expression import Builder
from flydsl.targets.rocm.guards import place
from flydsl.targets.rocm.prepare import call_intrinsic, replace_op, require_constant

_LDS_SIZES = (1, 2, 4, 12, 16)


def _integer(op: ir.Operation, name: str, default: int = 0) -> int:
    """Return an integer, boolean or enum attribute as a number."""
    if name not in op.attributes:
        return default
    attribute = op.attributes[name]
    if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr)):
        return int(attribute.value)
    word = str(attribute).rstrip(">").split("<")[-1].split()[-1]
    return {"none": 0, "neg": 1, "abs": 2, "neg_abs": 3}[word]


def _wmma(op: ir.Operation, device: ir.Operation) -> None:
    """(a, b, c) with modifiers: LLVM 22.1 has a negation flag before a and b."""
    b = Builder(op)
    i1, i16 = b.type("i1"), b.type("i16")
    first, second, acc = op.operands
    no = b.constant(i1, 0)
    operands = [
        no,
        first,
        no,
        second,
        b.constant(i16, _integer(op, "modC")),
        acc,
        b.constant(i1, _integer(op, "reuseA")),
        b.constant(i1, _integer(op, "reuseB")),
    ]
    name = op.name.removeprefix("rocdl.")
    replace_op(op, [call_intrinsic(b, device, f"llvm.amdgcn.{name}", op.results[0].type, operands)])


def _tensor_move(op: ir.Operation, device: ir.Operation) -> None:
    """Five descriptor groups; LLVM 22.1 takes the first four (the fifth is reserved on gfx1250)."""
    b = Builder(op)
    policy = b.constant(b.type("i32"), _integer(op, "cachePolicy"))
    name = op.name.removeprefix("rocdl.")
    call_intrinsic(b, device, f"llvm.amdgcn.{name}", None, [*list(op.operands)[:4], policy])
    op.erase()


def _async_load(op: ir.Operation, device: ir.Operation) -> None:
    """The asynchronous form is the same instruction, whose wait LLVM leaves to `wait.asyncmark`; here LLVM
    waits itself."""
    _check_size(op)
    name = {
        "rocdl.raw.ptr.buffer.load.async.lds": "rocdl.raw.ptr.buffer.load.lds",
        "rocdl.global.load.async.lds": "rocdl.global.load.lds",
        "rocdl.load.async.to.lds": "rocdl.load.to.lds",
    }[op.name]
    attributes = {named.name: named.attr for named in _named(op)}
    Builder(op).emit(name, None, list(op.operands), attributes)
    op.erase()


def _named(op: ir.Operation) -> list[ir.NamedAttribute]:
    return [op.attributes[i] for i in range(len(op.attributes))]


def _wait_mark(op: ir.Operation, device: ir.Operation) -> None:
    """Wait for all outstanding vector memory, which covers every group."""
    b = Builder(op)
    call_intrinsic(b, device, "llvm.amdgcn.s.waitcnt", None, [b.constant(b.type("i32"), _ALL_VECTOR_MEMORY)])
    op.erase()


_ALL_VECTOR_MEMORY = 0x0F70  # gfx9: vmcnt 0, the other counters at their maximum


def _drop(op: ir.Operation, device: ir.Operation) -> None:
    op.erase()


def _check_load_lds(op: ir.Operation, device: ir.Operation) -> None:
    for index in (2, 5) if op.name == "rocdl.raw.ptr.buffer.load.lds" else ():
        require_constant(op, index, op.name)
    _check_size(op)


def _check_size(op: ir.Operation) -> None:
    if "size" in op.attributes:
        size = ir.IntegerAttr(op.attributes["size"]).value
    else:
        size = ir.IntegerAttr(op.operands[2].owner.attributes["value"]).value
    if size not in _LDS_SIZES:
        raise IntrinsicUnknown(
            name=op.name,
            hint=f" for {size} bytes",
            at=place(op),
            reason_text=f"one lane moves {', '.join(map(str, _LDS_SIZES))} bytes to LDS",
        )


def _scalar_load(op: ir.Operation, device: ir.Operation) -> None:
    """LLVM 22.1 takes the resource as four words."""
    b = Builder(op)
    rsrc, offset = op.operands
    words = b.emit("llvm.bitcast", b.type("vector<4xi32>"), [b.emit("llvm.ptrtoint", b.type("i128"), [rsrc])])
    result = op.results[0].type
    suffix = "v4i32" if isinstance(result, ir.VectorType) else "i32"
    aux = b.constant(b.type("i32"), _integer(op, "aux"))
    name = f"llvm.amdgcn.s.buffer.load.{suffix}"
    replace_op(op, [call_intrinsic(b, device, name, result, [words, offset, aux])])


def _check_swizzle(op: ir.Operation, device: ir.Operation) -> None:
    require_constant(op, 1, op.name)


_WMMA_GFX1250 = (
    "f32.16x16x4.f32",
    "f32.16x16x32.f16",
    "f32.16x16x32.bf16",
    "f16.16x16x32.f16",
    "bf16.16x16x32.bf16",
    "bf16f32.16x16x32.bf16",
)
RULES: dict[str, Callable[[ir.Operation, ir.Operation], None]] = {
    **{f"rocdl.wmma.{name}": _wmma for name in _WMMA_GFX1250},
    "rocdl.tensor.load.to.lds": _tensor_move,
    "rocdl.tensor.store.from.lds": _tensor_move,
    "rocdl.raw.ptr.buffer.load.async.lds": _async_load,
    "rocdl.global.load.async.lds": _async_load,
    "rocdl.load.async.to.lds": _async_load,
    "rocdl.asyncmark": _drop,
    "rocdl.wait.asyncmark": _wait_mark,
    "rocdl.raw.ptr.buffer.load.lds": _check_load_lds,
    "rocdl.global.load.lds": _check_load_lds,
    "rocdl.load.to.lds": _check_load_lds,
    "rocdl.ds_swizzle": _check_swizzle,
    "rocdl.ptr.s.buffer.load": _scalar_load,
}

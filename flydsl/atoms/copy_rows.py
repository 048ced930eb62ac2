"""Instructions behind the copy atoms: names in rocdl and LLVM, arguments, and the mnemonic per
chip.

`row(op, elem, src, dst, arch)` is the one entry; `CopyRow.rule` selects the rules in
`targets/`. Arguments are written as LLVM types with `_` for run-time operands, the way the
oracle data writes them.
"""

from __future__ import annotations

from flydsl import arch as chips
from flydsl.utils.record import record

from .copy_ops import (
    BUFFER,
    GENERIC,
    GLOBAL,
    REGISTER,
    SHARED,
    BufferAtomic,
    BufferCopy,
    BufferCopyLDS,
    CopyOp,
    GlobalLoadAsyncLDS,
    LDSReadTrans,
    UniversalAtomic,
    UniversalCopy,
)
from .elements import bit_width, llvm_type, mangled, storage, vector
from .errors import UnsupportedAtomic, UnsupportedWidth

LLVM_SPACE = {GENERIC: 0, GLOBAL: 1, SHARED: 3, REGISTER: 5, BUFFER: 8}


@record
class CopyRow:
    """How one use of a copy atom becomes an instruction.

    rocdl, intrinsic: None where plain loads and stores do it; isa: None where the compiler
    picks the instructions from alignment and uniformity, "" where the chip has none
    """

    rule: str
    rocdl: str | None = None
    intrinsic: str | None = None
    result: str = "void"
    arguments: str = ""
    isa: str | None = None
    memory: str = ""  # an atomicrmw, where that is the instruction
    helpers: tuple[str, ...] = ()  # further rocdl ops the rule needs


def row(op: CopyOp, elem: str, src: str, dst: str, arch: str) -> CopyRow:
    """Return the instruction of `op` on `elem` between two memories on a chip.

    Raises   UnsupportedSpaces, UnsupportedChip, UnsupportedAtomic, UnsupportedWidth,
             WidthMismatch
    """
    op.check(arch)
    op.check_spaces(src, dst)
    match op:
        case UniversalCopy():
            return _universal_copy(op, src, dst)
        case BufferCopy():
            return _buffer_copy(op, src == BUFFER, arch)
        case BufferCopyLDS():
            return _lds_dma(op)
        case LDSReadTrans():
            op.tv_src(bit_width(elem))
            return _read_trans(op)
        case UniversalAtomic():
            return _universal_atomic(op, dst)
        case BufferAtomic():
            return _buffer_atomic(op, arch)
    return _tensor_dma(op, src == SHARED)


def _tensor_dma(op: CopyOp, store: bool) -> CopyRow:
    return CopyRow(
        op.key,
        "rocdl.tensor.store.from.lds" if store else "rocdl.tensor.load.to.lds",
        "llvm.amdgcn.tensor.store.from.lds" if store else "llvm.amdgcn.tensor.load.to.lds",
        arguments="<4 x i32> _, <8 x i32> _, <4 x i32> _, <4 x i32> _, <8 x i32> _, i32 _",
        isa="tensor_store_from_lds" if store else "tensor_load_to_lds",
        helpers=("rocdl.wave.id",) if getattr(op, "warps", 1) > 1 else (),
    )


def _universal_copy(op: UniversalCopy, src: str, dst: str) -> CopyRow:
    if op.bits % 8:
        raise UnsupportedWidth(atom=op.short, bits=op.bits, supported=("whole bytes",))
    return CopyRow(
        op.key,
        intrinsic=f"llvm.memcpy.p{LLVM_SPACE[dst]}.p{LLVM_SPACE[src]}.i32",
        arguments=f"{_pointer(dst)} _, {_pointer(src)} _, i32 {op.bits // 8}, i1 false",
    )


def _pointer(space: str) -> str:
    return f"ptr addrspace({LLVM_SPACE[space]})" if LLVM_SPACE[space] else "ptr"


# [CDNA3 ISA 9.1, RDNA3 ISA 8.1] the same access is spelt by dwords up to gfx9 and by bits from
# gfx11 on.
_DWORDS = {32: "dword", 64: "dwordx2", 96: "dwordx3", 128: "dwordx4"}


def width_suffix(bits: int, is_load: bool, arch: str) -> str:
    """Return the tail of a memory mnemonic: `dwordx4` or `b128`, `ubyte` or `u8`."""
    if chips.get(arch).family.startswith("cdna") and chips.get(arch).wave_size == 64:
        small = {8: "ubyte", 16: "ushort"} if is_load else {8: "byte", 16: "short"}
        return small.get(bits) or _DWORDS[bits]
    return f"u{bits}" if is_load and bits < 32 else f"b{bits}"


def buffer_data_type(bits: int) -> str:
    """Return the MLIR type that a raw buffer access of this width takes: LLVM cannot select
    i96.
    """
    return "vector<3xi32>" if bits == 96 else f"i{bits}"


def _buffer_copy(op: BufferCopy, is_load: bool, arch: str) -> CopyRow:
    data = buffer_data_type(op.bits)
    verb, tail = ("load" if is_load else "store"), width_suffix(op.bits, is_load, arch)
    rest = f"ptr addrspace(8) _, i32 _, i32 0, i32 {op.cache}"
    return CopyRow(
        op.key,
        f"rocdl.raw.ptr.buffer.{verb}",
        f"llvm.amdgcn.raw.ptr.buffer.{verb}.{mangled(data)}",
        llvm_type(data) if is_load else "void",
        rest if is_load else f"{llvm_type(data)} _, {rest}",
        f"buffer_{verb}_{tail}",
    )


def _lds_dma(op: BufferCopyLDS) -> CopyRow:
    bytes_, tail = op.bits // 8, _DWORDS[op.bits]
    if isinstance(op, GlobalLoadAsyncLDS):
        return CopyRow(
            op.key,
            "rocdl.global.load.async.lds",
            "llvm.amdgcn.global.load.async.lds",
            arguments=f"ptr addrspace(1) _, ptr addrspace(3) _, i32 {bytes_}, i32 0, i32 0",
            isa=f"global_load_lds_{tail}",
        )
    name = "raw.ptr.buffer.load.async.lds" if op.is_asynchronous else "raw.ptr.buffer.load.lds"
    return CopyRow(
        op.key,
        f"rocdl.{name}",
        f"llvm.amdgcn.{name}",
        isa=f"buffer_load_{tail}",
        arguments=f"ptr addrspace(8) _, ptr addrspace(3) _, i32 {bytes_}, i32 _, i32 0, i32 0, i32 0",
    )


def _read_trans(op: LDSReadTrans) -> CopyRow:
    name = f"ds.read.tr{op.granularity}.b{op.bits}"
    return CopyRow(
        op.key,
        f"rocdl.{name}",
        f"llvm.amdgcn.{name}.{mangled(op.register_type)}",
        llvm_type(op.register_type),
        "ptr addrspace(3) _",
        f"ds_read_b{op.bits}_tr_b{op.granularity}",
    )


def _universal_atomic(op: UniversalAtomic, dst: str) -> CopyRow:
    scope = f' syncscope("{op.scope}")' if op.scope else ""
    text = (
        f"atomicrmw {op.rmw} {_pointer(dst)} _, {llvm_type(storage(op.elem))} _{scope} monotonic, "
        f"align {op.bits // 8}"
    )
    return CopyRow(op.key, memory=text)


_MFMA, _WMMA, _GFX11, _GFX12, _GFX1250 = "mfma", "wmma", "wmma_gfx11", "wmma_gfx12", "wmma_gfx1250"
# (instruction, type) -> mnemonic by what the chip must have; every other pair has no instruction.
# [CDNA3 ISA 9.1, RDNA3 ISA 8.1, RDNA4 ISA 9.1, and what LLVM selects]
_BUFFER_ATOMIC_ISA: dict[tuple[str, str], dict[str, str]] = {
    ("fadd", "f32"): dict.fromkeys((_MFMA, _WMMA), "buffer_atomic_add_f32"),
    ("fadd", "f64"): dict.fromkeys((_MFMA, _GFX1250), "buffer_atomic_add_f64"),
    ("fadd", "v2f16"): dict.fromkeys((_MFMA, _GFX12, _GFX1250), "buffer_atomic_pk_add_f16"),
    ("fadd", "v2bf16"): dict.fromkeys(("mfma_double_k", _GFX12, _GFX1250), "buffer_atomic_pk_add_bf16"),
    ("fmax", "f32"): {_GFX11: "buffer_atomic_max_f32", **dict.fromkeys((_GFX12, _GFX1250), "buffer_atomic_max_num_f32")},
    ("fmax", "f64"): {_MFMA: "buffer_atomic_max_f64", _GFX1250: "buffer_atomic_max_num_f64"},
    ("smax", "i32"): {_MFMA: "buffer_atomic_smax", _WMMA: "buffer_atomic_max_i32"},
    ("smax", "i64"): {_MFMA: "buffer_atomic_smax_x2", _WMMA: "buffer_atomic_max_i64"},
    ("umin", "i32"): {_MFMA: "buffer_atomic_umin", _WMMA: "buffer_atomic_min_u32"},
    ("umin", "i64"): {_MFMA: "buffer_atomic_umin_x2", _WMMA: "buffer_atomic_min_u64"},
}


def buffer_atomic_mnemonic(instruction: str, kind: str, arch: str) -> str:
    """Return the chip's name of the buffer atomic `instruction` ("fadd", ...) on `kind` ("v2f16", ...), "" when it has none."""
    names, chip = _BUFFER_ATOMIC_ISA.get((instruction, kind), {}), chips.get(arch)
    return next((name for feature, name in names.items() if chip.has(feature)), "")


def _buffer_atomic(op: BufferAtomic, arch: str) -> CopyRow:
    data, name = storage(op.elem), op.instruction
    return CopyRow(
        op.key,
        f"rocdl.raw.ptr.buffer.atomic.{name}",
        f"llvm.amdgcn.raw.ptr.buffer.atomic.{name}.{mangled(data)}",
        llvm_type(data),
        f"{llvm_type(data)} _, ptr addrspace(8) _, i32 _, i32 0, i32 0",
        buffer_atomic_mnemonic(name, mangled(data), arch),
    )


def require_instruction(op: CopyOp, found: CopyRow, arch: str) -> CopyRow:
    """Return the row itself; refuse one whose intrinsic the chip cannot execute.

    Raises   UnsupportedAtomic
    """
    if found.isa == "":
        kinds = tuple(
            kind
            for name, kind in _BUFFER_ATOMIC_ISA
            if name == found.rocdl.rsplit(".", 1)[1] and buffer_atomic_mnemonic(name, kind, arch)
        )
        raise UnsupportedAtomic(atom=op.short, op=op.op, elem=op.elem, supported=kinds)
    return found


def register_access(elem: str, values: int) -> tuple[str, int]:
    """Return (LLVM type, alignment in bytes) of a fragment's values as one access to private
    memory.
    """
    data = vector(values, storage(elem))
    if data == "i64":
        return "i64", 4  # private memory aligns a scalar i64 to 4 before the data layout is known
    size = -(-bit_width(data) // 8)
    return llvm_type(data), 1 << (size - 1).bit_length()

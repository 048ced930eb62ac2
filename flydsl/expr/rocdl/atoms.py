"""Constructors of AMD copy and matrix atoms: user classes in, frozen records of `flydsl.atoms` out.

Chips are checked while tracing, when the target is known; elements, widths and shapes always.
"""

from typing import Any

from flydsl import atoms
from flydsl.expr.numeric.base import NumericMeta
from flydsl.expr.rocdl.values import arch_name
from flydsl.ir import ir
from flydsl.ir.trace import active


def element(type_: Any) -> str:
    """Return an element type (scalar class, IR type or text) in MLIR's spelling."""
    if isinstance(type_, NumericMeta):
        return type_.element.mlir
    if isinstance(type_, (ir.Type, str)):
        return str(type_)
    ir_type = getattr(type_, "ir_type", None)
    if isinstance(ir_type, ir.Type):
        return str(ir_type)
    raise TypeError(f"an element type is wanted, got {type_!r}")


def _checked(op: Any) -> Any:
    trace = active.trace
    return op if trace is None else op.check(trace.arch)


# --- copies ------------------------------------------------------------------------------------------------------


def BufferCopy(bit_size: int, cache_modifier: int = 0) -> atoms.BufferCopy:
    """Return the copy between a buffer tensor and registers of `bit_size` bits per thread.

    `cache_modifier`: cache bits of the instruction, 0 none, 2 non-temporal.
    """
    return atoms.BufferCopy(bit_size, cache_modifier)


def BufferCopy8b(cache_modifier: int = 0) -> atoms.BufferCopy:
    """Return the 8-bit buffer copy."""
    return atoms.BufferCopy(8, cache_modifier)


def BufferCopy16b(cache_modifier: int = 0) -> atoms.BufferCopy:
    """Return the 16-bit buffer copy."""
    return atoms.BufferCopy(16, cache_modifier)


def BufferCopy32b(cache_modifier: int = 0) -> atoms.BufferCopy:
    """Return the 32-bit buffer copy."""
    return atoms.BufferCopy(32, cache_modifier)


def BufferCopy64b(cache_modifier: int = 0) -> atoms.BufferCopy:
    """Return the 64-bit buffer copy."""
    return atoms.BufferCopy(64, cache_modifier)


def BufferCopy128b(cache_modifier: int = 0) -> atoms.BufferCopy:
    """Return the 128-bit buffer copy."""
    return atoms.BufferCopy(128, cache_modifier)


def BufferCopyLDS(bit_size: int) -> atoms.BufferCopyLDS:
    """Return the DMA from a buffer tensor to LDS: 32 bits per lane, on gfx950 also 128. Wait with vmcnt."""
    return _checked(atoms.BufferCopyLDS(bit_size))


def BufferCopyLDS32b() -> atoms.BufferCopyLDS:
    """Return the 32-bit DMA from a buffer tensor to LDS."""
    return BufferCopyLDS(32)


def BufferCopyLDS64b() -> atoms.BufferCopyLDS:
    """Refuse: no chip has DMA to LDS of 64 bits."""
    return BufferCopyLDS(64)


def BufferCopyLDS128b() -> atoms.BufferCopyLDS:
    """Return the 128-bit DMA from a buffer tensor to LDS (gfx950)."""
    return BufferCopyLDS(128)


def BufferAtomic(atomic_op: Any, val_type: Any) -> atoms.BufferAtomic:
    """Return the read-modify-write through a buffer descriptor; `atomic_op` is an AtomicOp or its name."""
    name = getattr(atomic_op, "name", atomic_op).lower()
    return _checked(atoms.BufferAtomic(name, element(val_type)))


def BufferAtomicAdd(val_type: Any) -> atoms.BufferAtomic:
    """Return the buffer atomic add of floats."""
    return BufferAtomic("add", val_type)


def BufferAtomicMax(val_type: Any) -> atoms.BufferAtomic:
    """Return the buffer atomic maximum of floats or signed integers."""
    return BufferAtomic("max", val_type)


def BufferAtomicMin(val_type: Any) -> atoms.BufferAtomic:
    """Return the buffer atomic minimum of unsigned integers."""
    return BufferAtomic("min", val_type)


def BufferAtomicPkAdd(val_type: Any) -> atoms.BufferAtomic:
    """Return the buffer atomic add of a pair of f16 or bf16."""
    return _checked(atoms.BufferAtomic("add", f"vector<2x{element(val_type)}>"))


# --- matrix instructions -----------------------------------------------------------------------------------------


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None) -> atoms.MFMA:
    """Return the CDNA matrix instruction m x n x k; the accumulator is f32 unless given (integers need Int32).

    Raises   UnsupportedShape, UnsupportedTypes: list what exists
    """
    acc = None if elem_ty_acc is None else element(elem_ty_acc)
    op, trace = atoms.mfma(m, n, k, element(elem_ty_ab), acc), active.trace
    return op if trace is None else op.check_making(trace.arch)


def MFMA_Scale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
) -> atoms.MFMAScale:
    """Return the gfx950 matrix instruction with one E8M0 scale per 32 values of k: 16x16x128 or 32x32x64.

    `opsel_a`, `opsel_b` choose the byte of the 32-bit scale register.
    """
    a = element(elem_ty_a)
    b = a if elem_ty_b is None else element(elem_ty_b)
    acc = "f32" if elem_ty_acc is None else element(elem_ty_acc)
    return _checked(atoms.MFMAScale(m, n, k, a, b, acc, opsel_a, opsel_b))


def WMMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, **kwargs: Any) -> atoms.WMMA:
    """Return the matrix instruction of the current wave32 chip.

    Keywords: elem_ty_b, sign_a, sign_b, clamp (integers), mod_c (floats on gfx1250).
    """
    b = kwargs.pop("elem_ty_b", None)
    acc = None if elem_ty_acc is None else element(elem_ty_acc)
    return atoms.wmma(arch_name(), m, n, k, element(elem_ty_ab), acc, b=None if b is None else element(b), **kwargs)


def WMMAScale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
    mod_c: int = 0,
    reuse_a: bool = False,
    reuse_b: bool = False,
    block_size: int = 32,
) -> atoms.WMMAScale:
    """Return the gfx1250 matrix instruction with a scale per 32 or 16 values of k: 16x16x128, f4 also 32x16x128."""
    a = element(elem_ty_a)
    b = a if elem_ty_b is None else element(elem_ty_b)
    acc = "f32" if elem_ty_acc is None else element(elem_ty_acc)
    op = atoms.WMMAScale(m, n, k, a, b, acc, opsel_a, opsel_b, mod_c, reuse_a, reuse_b, block_size)
    return _checked(op)

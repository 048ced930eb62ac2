"""gfx950: scaled matrix instructions, asynchronous DMA to LDS, transposing LDS reads, stochastic rounding."""

from flydsl import atoms
from flydsl.expr.rocdl.atoms import MFMA_Scale, _checked
from flydsl.expr.rocdl.convert import cvt_sr_f32_to_bf16

__all__ = [
    "BufferLoadAsyncLDS",
    "BufferLoadAsyncLDS32b",
    "BufferLoadAsyncLDS96b",
    "BufferLoadAsyncLDS128b",
    "GlobalLoadAsyncLDS",
    "GlobalLoadAsyncLDS32b",
    "GlobalLoadAsyncLDS96b",
    "GlobalLoadAsyncLDS128b",
    "LDSReadTrans",
    "LDSReadTrans4_64b",
    "LDSReadTrans6_96b",
    "LDSReadTrans8_64b",
    "LDSReadTrans16_64b",
    "MFMAScale",
    "MFMA_Scale",
    "cvt_sr_f32_to_bf16",
]

MFMAScale = MFMA_Scale


def BufferLoadAsyncLDS(bit_size: int) -> atoms.BufferLoadAsyncLDS:
    """Return the asynchronous DMA from a buffer tensor to LDS, 32, 96 or 128 bits per lane.

    Close groups with `asyncmark`, wait with `wait_asyncmark`.
    """
    return _checked(atoms.BufferLoadAsyncLDS(bit_size))


def BufferLoadAsyncLDS32b() -> atoms.BufferLoadAsyncLDS:
    """Return the 32-bit form of `BufferLoadAsyncLDS`."""
    return BufferLoadAsyncLDS(32)


def BufferLoadAsyncLDS96b() -> atoms.BufferLoadAsyncLDS:
    """Return the 96-bit form of `BufferLoadAsyncLDS`."""
    return BufferLoadAsyncLDS(96)


def BufferLoadAsyncLDS128b() -> atoms.BufferLoadAsyncLDS:
    """Return the 128-bit form of `BufferLoadAsyncLDS`."""
    return BufferLoadAsyncLDS(128)


def GlobalLoadAsyncLDS(bit_size: int) -> atoms.GlobalLoadAsyncLDS:
    """Return the asynchronous DMA from global memory to LDS, 32, 96 or 128 bits per lane."""
    return _checked(atoms.GlobalLoadAsyncLDS(bit_size))


def GlobalLoadAsyncLDS32b() -> atoms.GlobalLoadAsyncLDS:
    """Return the 32-bit form of `GlobalLoadAsyncLDS`."""
    return GlobalLoadAsyncLDS(32)


def GlobalLoadAsyncLDS96b() -> atoms.GlobalLoadAsyncLDS:
    """Return the 96-bit form of `GlobalLoadAsyncLDS`."""
    return GlobalLoadAsyncLDS(96)


def GlobalLoadAsyncLDS128b() -> atoms.GlobalLoadAsyncLDS:
    """Return the 128-bit form of `GlobalLoadAsyncLDS`."""
    return GlobalLoadAsyncLDS(128)


def LDSReadTrans(trans_granularity: int, bit_size: int) -> atoms.LDSReadTrans:
    """Return the LDS read in which 16 lanes receive 16 rows transposed, in units of `trans_granularity` bits."""
    return _checked(atoms.LDSReadTrans(trans_granularity, bit_size))


def LDSReadTrans4_64b() -> atoms.LDSReadTrans:
    """Return the transposing LDS read of 4-bit elements."""
    return LDSReadTrans(4, 64)


def LDSReadTrans6_96b() -> atoms.LDSReadTrans:
    """Return the transposing LDS read of 6-bit elements."""
    return LDSReadTrans(6, 96)


def LDSReadTrans8_64b() -> atoms.LDSReadTrans:
    """Return the transposing LDS read of 8-bit elements."""
    return LDSReadTrans(8, 64)


def LDSReadTrans16_64b() -> atoms.LDSReadTrans:
    """Return the transposing LDS read of 16-bit elements."""
    return LDSReadTrans(16, 64)

"""The part of `fx.rocdl` that exists for every AMD chip; what a name does may depend on the current one."""

from flydsl.expr.enum import AtomicOp, is_generic_address_space, is_target_address_space
from flydsl.expr.rocdl.atoms import (
    MFMA,
    WMMA,
    BufferAtomic,
    BufferAtomicAdd,
    BufferAtomicMax,
    BufferAtomicMin,
    BufferAtomicPkAdd,
    BufferCopy,
    BufferCopy8b,
    BufferCopy16b,
    BufferCopy32b,
    BufferCopy64b,
    BufferCopy128b,
    BufferCopyLDS,
    BufferCopyLDS32b,
    BufferCopyLDS64b,
    BufferCopyLDS128b,
)
from flydsl.expr.rocdl.buffers import get_buffer_rsrc, make_buffer_ptr, make_buffer_tensor, s_buffer_load
from flydsl.expr.rocdl.enum import TargetAddressSpace
from flydsl.expr.rocdl.memory import require_lds_dma_support
from flydsl.expr.rocdl.waits import asyncmark, normalize_s_waitcnt_field, s_waitcnt, wait_asyncmark

__all__ = [
    "MFMA",
    "WMMA",
    "AtomicOp",
    "BufferAtomic",
    "BufferAtomicAdd",
    "BufferAtomicMax",
    "BufferAtomicMin",
    "BufferAtomicPkAdd",
    "BufferCopy",
    "BufferCopy8b",
    "BufferCopy16b",
    "BufferCopy32b",
    "BufferCopy64b",
    "BufferCopy128b",
    "BufferCopyLDS",
    "BufferCopyLDS32b",
    "BufferCopyLDS64b",
    "BufferCopyLDS128b",
    "TargetAddressSpace",
    "asyncmark",
    "get_buffer_rsrc",
    "is_generic_address_space",
    "is_target_address_space",
    "make_buffer_ptr",
    "make_buffer_tensor",
    "normalize_s_waitcnt_field",
    "require_lds_dma_support",
    "s_buffer_load",
    "s_waitcnt",
    "wait_asyncmark",
]

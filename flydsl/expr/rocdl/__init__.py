"""AMD instructions and atoms: `fx.rocdl`.

Helpers that kernels use are imported by name below. Every other instruction of MLIR's rocdl dialect is made on first
use from a row of `table`: `fx.rocdl.rsq(fx.Float32, x)`. Names that do not exist raise AttributeError with the close
ones; instructions that the current chip does not have are refused when they are called.
"""

from typing import TYPE_CHECKING, Any

from flydsl.atoms import BufferAtomic as CopyOpCDNA3BufferAtomicType
from flydsl.atoms import BufferCopy as CopyOpCDNA3BufferCopyType
from flydsl.atoms import BufferCopyLDS as CopyOpCDNA3BufferCopyLDSType
from flydsl.expr.enum import AddressSpace, AtomicOp, is_generic_address_space, is_target_address_space
from flydsl.expr.rocdl import (
    cdna3,
    cdna4,
    cdna5,
    cluster,
    enum,
    experimental,
    inline_asm,
    rdna3,
    rdna4,
    tdm_ops,
    universal,
)
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
    MFMA_Scale,
    WMMAScale,
)
from flydsl.expr.rocdl.buffers import get_buffer_rsrc, make_buffer_ptr, make_buffer_tensor, s_buffer_load
from flydsl.expr.rocdl.cdna5 import TDM, TensorLoad, TensorStore, make_tdm_atom, make_tiled_tdm_atom, tdm_partition
from flydsl.expr.rocdl.cluster import cluster_workgroup_id_x, cluster_workgroup_id_y, cluster_workgroup_id_z
from flydsl.expr.rocdl.convert import cvt_off_f32_i4, cvt_pk_bf16_f32
from flydsl.expr.rocdl.enum import SyncScope, TargetAddressSpace
from flydsl.expr.rocdl.memory import (
    buffer_load_to_lds,
    cluster_load_async_to_lds,
    disable_xdl_arb_stall,
    lds_transpose_load,
    raw_ptr_buffer_atomic_fadd,
    raw_ptr_buffer_atomic_fmax,
    raw_ptr_buffer_atomic_smax,
    raw_ptr_buffer_atomic_umin,
    raw_ptr_buffer_load,
    raw_ptr_buffer_load_lds,
    raw_ptr_buffer_store,
    require_lds_dma_support,
    s_wait_asynccnt,
    tensor_load_to_lds,
    tensor_store_from_lds,
)
from flydsl.expr.rocdl.schedule import (
    mask_dsrd,
    mask_dswr,
    mask_mfma,
    mask_vmem_rd,
    sched_barrier,
    sched_dsrd,
    sched_dswr,
    sched_group_barrier,
    sched_mfma,
    sched_vmem,
)
from flydsl.expr.rocdl.values import arch_name as get_rocm_arch
from flydsl.expr.rocdl.waits import asyncmark, normalize_s_waitcnt_field, s_waitcnt, wait_asyncmark
from flydsl.expr.rocdl.wave import ballot, ds_bpermute, perm_b32, readfirstlane, readlane, update_dpp, wave_id

if TYPE_CHECKING:
    from collections.abc import Callable

MFMAScale = MFMA_Scale

__all__ = [
    "tdm_partition",
    "make_tiled_tdm_atom",
    "make_tdm_atom",
    "TensorStore",
    "TensorLoad",
    "TDM",
    "tdm_ops",
    "cdna5",
    "AddressSpace",
    "AtomicOp",
    "BufferAtomic",
    "BufferAtomicAdd",
    "BufferAtomicMax",
    "BufferAtomicMin",
    "BufferAtomicPkAdd",
    "BufferCopy",
    "BufferCopy128b",
    "BufferCopy16b",
    "BufferCopy32b",
    "BufferCopy64b",
    "BufferCopy8b",
    "BufferCopyLDS",
    "BufferCopyLDS128b",
    "BufferCopyLDS32b",
    "BufferCopyLDS64b",
    "CopyOpCDNA3BufferAtomicType",
    "CopyOpCDNA3BufferCopyLDSType",
    "CopyOpCDNA3BufferCopyType",
    "MFMA",
    "MFMAScale",
    "MFMA_Scale",
    "SyncScope",
    "TargetAddressSpace",
    "WMMA",
    "WMMAScale",
    "asyncmark",
    "ballot",
    "buffer_load_to_lds",
    "cdna3",
    "cdna4",
    "cluster",
    "cluster_load_async_to_lds",
    "cluster_workgroup_id_x",
    "cluster_workgroup_id_y",
    "cluster_workgroup_id_z",
    "cvt_off_f32_i4",
    "cvt_pk_bf16_f32",
    "disable_xdl_arb_stall",
    "ds_bpermute",
    "enum",
    "experimental",
    "get_buffer_rsrc",
    "get_rocm_arch",
    "inline_asm",
    "is_generic_address_space",
    "is_target_address_space",
    "lds_transpose_load",
    "make_buffer_ptr",
    "make_buffer_tensor",
    "mask_dsrd",
    "mask_dswr",
    "mask_mfma",
    "mask_vmem_rd",
    "normalize_s_waitcnt_field",
    "perm_b32",
    "raw_ptr_buffer_atomic_fadd",
    "raw_ptr_buffer_atomic_fmax",
    "raw_ptr_buffer_atomic_smax",
    "raw_ptr_buffer_atomic_umin",
    "raw_ptr_buffer_load",
    "raw_ptr_buffer_load_lds",
    "raw_ptr_buffer_store",
    "rdna3",
    "rdna4",
    "readfirstlane",
    "readlane",
    "require_lds_dma_support",
    "s_buffer_load",
    "s_wait_asynccnt",
    "s_waitcnt",
    "sched_barrier",
    "sched_dsrd",
    "sched_dswr",
    "sched_group_barrier",
    "sched_mfma",
    "sched_vmem",
    "tensor_load_to_lds",
    "tensor_store_from_lds",
    "universal",
    "update_dpp",
    "wait_asyncmark",
    "wave_id",
]


def __getattr__(name: str) -> "Callable[..., Any]":
    from flydsl.expr.rocdl.build import builder

    function = None if name.startswith("_") else builder(name)
    if function is None:
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from flydsl.diag import RocdlUnknown

        raise RocdlUnknown(name=name, module="fx.rocdl", known=__dir__())
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    from flydsl.expr.rocdl.table import names

    return sorted({*__all__, *names()})

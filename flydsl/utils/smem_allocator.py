"""`SmemAllocator` and `SmemPtr`, the older way to LDS, under the name that kernels import; and the LDS sizes of the
chips.
"""

from typing import Any

from flydsl.expr.gpu import lds_space
from flydsl.expr.legacy_lds import (
    SmemAllocator,
    SmemPtr,
    get_index_value,
    get_mlir_type_align,
    get_mlir_type_size,
    get_op_result_or_value,
)
from flydsl.expr.type_shortcuts import T

__all__ = [
    "SMEM_CAPACITY_MAP",
    "SmemAllocator",
    "SmemPtr",
    "T",
    "check_smem_capacity",
    "get_index_value",
    "get_mlir_type_align",
    "get_mlir_type_size",
    "get_op_result_or_value",
    "lds_space",
]


def __getattr__(name: str) -> Any:
    if name in ("SMEM_CAPACITY_MAP", "check_smem_capacity"):
        from flydsl.runtime import device

        return getattr(device, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

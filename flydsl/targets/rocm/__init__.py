"""The rocm target: lowered IR to AMDGPU ISA and code objects, through upstream MLIR conversions and llvmlite.

The names below are found on first use: the HIP runtime imports `targets.rocm.hip` where neither MLIR nor LLVM is
installed.
"""

import importlib

from flydsl.targets.rocm.isa_stats import KernelStats, assert_isa, isa_stats

_HOMES = {
    "CodegenOptions": "options",
    "RocmArtifact": "compile",
    "RocmTarget": "target",
    "compile_lowered": "compile",
}

__all__ = ["CodegenOptions", "KernelStats", "RocmArtifact", "RocmTarget", "assert_isa", "compile_lowered", "isa_stats"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

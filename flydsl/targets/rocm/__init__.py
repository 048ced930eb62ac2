"""The rocm target: lowered IR to AMDGPU ISA and code objects, through upstream MLIR conversions and llvmlite.

The names below are found on first use: the HIP runtime imports `targets.rocm.hip` where neither MLIR nor LLVM is
installed.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flydsl.targets.rocm.compile import RocmArtifact, compile_lowered
    from flydsl.targets.rocm.options import CodegenOptions
    from flydsl.targets.rocm.target import RocmTarget

_HOMES = {
    "CodegenOptions": "options",
    "RocmArtifact": "compile",
    "RocmTarget": "target",
    "compile_lowered": "compile",
}

__all__ = ["CodegenOptions", "RocmArtifact", "RocmTarget", "compile_lowered"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

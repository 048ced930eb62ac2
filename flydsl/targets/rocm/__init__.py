"""The rocm target: lowered IR to AMDGPU ISA and code objects, through upstream MLIR conversions and llvmlite."""

from flydsl.targets.rocm.compile import RocmArtifact, compile_lowered
from flydsl.targets.rocm.isa_stats import KernelStats, assert_isa, isa_stats
from flydsl.targets.rocm.isolate import prepare
from flydsl.targets.rocm.options import CodegenOptions
from flydsl.targets.rocm.target import RocmTarget

__all__ = [
    "CodegenOptions",
    "KernelStats",
    "RocmArtifact",
    "RocmTarget",
    "assert_isa",
    "compile_lowered",
    "isa_stats",
    "prepare",
]

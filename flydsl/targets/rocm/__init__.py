"""The rocm target: lowered IR to AMDGPU ISA and code objects, through upstream MLIR conversions and llvmlite."""

from flydsl.targets.rocm.compile import RocmArtifact, compile_lowered
from flydsl.targets.rocm.options import CodegenOptions

__all__ = ["CodegenOptions", "RocmArtifact", "compile_lowered"]

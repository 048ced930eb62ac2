"""`RocmTarget`: the rocm target as the compiler sees it (`targets.base.Target`)."""

from __future__ import annotations

from dataclasses import field

from flydsl.ir import ir
from flydsl.targets.rocm.compile import Dump, RocmArtifact, compile_lowered
from flydsl.targets.rocm.options import CodegenOptions
from flydsl.targets.rocm.to_llvm import PIPELINE
from flydsl.utils.record import record


@record
class RocmTarget:
    """Code generation for one chip; `outputs` are made at once, the others when they are asked for."""

    arch: str
    options: CodegenOptions = field(default_factory=CodegenOptions)
    outputs: tuple[str, ...] = ("hsaco",)
    name: str = "rocm"
    pipeline: tuple[str, ...] = PIPELINE

    def emit(self, module: ir.Module | str, dump: Dump | None = None) -> RocmArtifact:
        """Return the artifact of a lowered module."""
        return compile_lowered(module, self.arch, self.options, self.outputs, dump)

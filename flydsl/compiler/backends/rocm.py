"""The backend for AMD GPUs; the simulator runs what it lowers, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flydsl import arch as chips
from flydsl.compiler.backends.base import BaseBackend, GPUTarget
from flydsl.pipeline import TO_LOWERED
from flydsl.runtime.device import get_warp_size, target_arch


class RocmBackend(BaseBackend):
    """Lowers to upstream dialects and rocdl; `targets.rocm` makes a code object of that."""

    @staticmethod
    def detect_target() -> GPUTarget:
        """Return the chip that kernels are compiled for: `ARCH`, else the chip in use (`runtime.device`)."""
        return RocmBackend.make_target(target_arch())

    @classmethod
    def make_target(cls, arch: str) -> GPUTarget:
        name = chips.get(arch.split(":")[0]).name
        return GPUTarget("rocm", name, get_warp_size(name))

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "rocm" and target.arch in chips.names()

    def pipeline_fragments(self, *, compile_hints: Mapping[str, Any]) -> list[str]:
        return list(TO_LOWERED)

    def gpu_module_targets(self) -> list[str]:
        return [f'#rocdl.target<chip = "{self.target.arch}">']

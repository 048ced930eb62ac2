"""Which chip is meant: detection, and the facts that kernel builders ask for."""

from __future__ import annotations

import functools

from flydsl import arch as chips
from flydsl.diag import SharedMemoryTooLarge
from flydsl.utils import env

DEFAULT_ARCH = "gfx942"
SMEM_CAPACITY_MAP = {name: chips.get(name).lds.bytes for name in chips.names()}


def target_arch() -> str:
    """Return the chip that kernels are compiled for: `ARCH`, else the detected one."""
    return env.compile.arch or get_rocm_arch()


def get_rocm_arch() -> str:
    """Return the chip in use: `FLYDSL_GPU_ARCH`, `ARCH`, `HSA_OVERRIDE_GFX_VERSION`, an AMD GPU, else gfx942 (simulated)."""
    name = env.compile.gpu_arch or env.compile.arch or _from_override(env.compile.hsa_override) or _detected()
    return name.split(":")[0] or DEFAULT_ARCH


def _from_override(version: str) -> str:
    parts = version.split(".")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        return ""
    return f"gfx{int(parts[0])}{int(parts[1]):x}{int(parts[2]):x}"


@functools.lru_cache(maxsize=1)
def _detected() -> str:
    """Return the chip of the first AMD GPU as the kernel driver names it, or an empty string."""
    import glob

    for path in sorted(glob.glob("/sys/class/kfd/kfd/topology/nodes/*/properties")):
        try:
            with open(path) as f:
                properties = dict(line.split(None, 1) for line in f if " " in line)
        except OSError:
            continue
        version = int(properties.get("gfx_target_version", "0"))
        if version:
            major, minor, step = version // 10000, version // 100 % 100, version % 100
            return f"gfx{major}{minor:x}{step:x}"
    return ""


def is_rdna_arch(arch: str | None = None) -> bool:
    """Return whether a chip is RDNA: gfx10, gfx11, gfx120x; gfx1250 is not."""
    arch = arch or get_rocm_arch()
    return arch.startswith(("gfx10", "gfx11", "gfx120"))


def get_warp_size(arch: str | None = None) -> int:
    """Return the lanes of a wave: 32 for gfx10, gfx11, gfx12 including gfx1250, else 64."""
    arch = arch or get_rocm_arch()
    return 32 if arch.startswith(("gfx10", "gfx11", "gfx12")) else 64


def get_rocm_device_count() -> int:
    """Return how many AMD GPUs HIP finds; 0 without HIP."""
    from flydsl.runtime.kinds import hip_device_count

    return hip_device_count()


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Refuse more LDS per workgroup than the chip has. RuntimeError with bytes, limit and chip."""
    arch = arch or get_rocm_arch()
    limit = SMEM_CAPACITY_MAP.get(arch, 65536)
    if allocated_bytes > limit:
        raise SharedMemoryTooLarge(used=allocated_bytes, limit=limit, arch=arch)


def supports_bf16_global_atomics(arch: str | None = None) -> bool:
    """Return whether packed bf16 atomic adds on global memory exist: gfx94x, gfx95x, gfx12 and later."""
    return (arch or get_rocm_arch()).startswith(("gfx94", "gfx95", "gfx12"))


def bf16_global_atomics_arch_description() -> str:
    """Return the chips with packed bf16 atomic adds, for messages."""
    return "gfx94x, gfx95x, gfx12x"

"""Which chip is meant: detection, and the facts that kernel builders ask for.

The environment decides: `ARCH` for code, `FLYDSL_GPU_ARCH`, `HSA_OVERRIDE_GFX_VERSION`. Where it says nothing, a call
compiles for the chip of the device that holds its tensors (`chosen_for`), and everything else means the first GPU.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flydsl import arch as chips
from flydsl.diag import SharedMemoryTooLarge
from flydsl.runtime.driver import driver_gpus, visible
from flydsl.utils import env

DEFAULT_ARCH = "gfx942"
SMEM_CAPACITY_MAP = {name: chips.get(name).lds.bytes for name in chips.names()}


class _Local(threading.local):
    chip = ""


_local = _Local()


def target_arch() -> str:
    """Return the chip that kernels are compiled for: `ARCH`, else the chip in use."""
    return env.compile.arch or get_rocm_arch()


def get_rocm_arch() -> str:
    """Return the chip in use: `FLYDSL_GPU_ARCH`, `ARCH`, `HSA_OVERRIDE_GFX_VERSION`, that of the device which a call is
    compiled for, the first AMD GPU, else gfx942 (simulated)."""
    name = _from_environment() or _local.chip or _detected()
    return name.split(":")[0] or DEFAULT_ARCH


@contextmanager
def chosen_for(chip: str) -> Iterator[None]:
    """Let the chip in use be `chip` in this thread, unless the environment names one; an empty text, or a block inside
    another, changes nothing."""
    before = _local.chip
    _local.chip = before or chip
    try:
        yield
    finally:
        _local.chip = before


def chip_for(device: int | None) -> str:
    """Return the chip of a device (None: the current one) that a call is compiled for; empty where something else
    decides: the environment, an enclosing `chosen_for`, a runtime without devices."""
    if _from_environment() or _local.chip:
        return ""
    from flydsl.runtime.kinds import current_runtime

    return current_runtime().chip_of(device)


def _from_environment() -> str:
    return env.compile.gpu_arch or env.compile.arch or _from_override(env.compile.hsa_override)


def _from_override(version: str) -> str:
    parts = version.split(".")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        return ""
    return f"gfx{int(parts[0])}{int(parts[1]):x}{int(parts[2]):x}"


@functools.lru_cache(maxsize=1)
def _detected() -> str:
    """Return the chip of the first visible AMD GPU as the kernel driver names it, or an empty string."""
    return next((gpu.chip for gpu in visible(driver_gpus())), "")


# --- facts -----------------------------------------------------------------------------------------------------------


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

"""How the tests of this folder run kernels: `run` in the simulator, `trace` only up to the IR."""

from collections.abc import Callable
from typing import Any

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env


def run(body: Callable, x: Any = None, n: int = 0, *, out: Any = None, grid: int = 1, block: int = 64, arch: str = "gfx942") -> np.ndarray:
    """Run `body(x, out, n)` as a kernel in the simulator and return `out` (default: 64 float32 of -1)."""
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(grid, 1, 1), block=(block, 1, 1))

    x = np.arange(256, dtype=np.float32) if x is None else x
    out = np.full(64, -1, np.float32) if out is None else out
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(x, out, n)
    return out


def artifact(body: Callable, x: Any = None, n: int = 0, *, out: Any = None, block: int = 64, arch: str = "gfx942") -> Any:
    """Compile `body(x, out, n)` as a kernel and return its artifact: `.source_ir`, `.codegen(("isa",)).isa`."""
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(block, 1, 1))

    x = np.arange(256, dtype=np.float32) if x is None else x
    out = np.full(64, -1, np.float32) if out is None else out
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        return launch.artifact_for(launch.wrap_arguments((x, out, n), {}))


def isa(body: Callable, *args: Any, **kwargs: Any) -> str:
    """Return the final assembly of a kernel."""
    with env.override(ARCH=kwargs.get("arch", "gfx942")):
        return artifact(body, *args, **kwargs).codegen(("isa",)).isa


def trace(body: Callable, arch: str = "gfx942") -> None:
    """Trace and lower `body()` as a kernel without launching it; what it computes about layouts it stores by itself."""
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch():
        kernel().launch(grid=(1, 1, 1), block=(64, 1, 1))

    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch.artifact_for(launch.wrap_arguments((), {}))

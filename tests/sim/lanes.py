"""One block of a kernel on an array of one element per lane, for tests that compare lanes with Python."""

from typing import Any

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env


def launched(kernel: Any, lanes: int, arch: str = "gfx942") -> list[int]:
    """Return what one block of `kernel` on this chip leaves in an array of zeros, an element per lane."""

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(lanes, 1, 1))

    out = np.zeros(lanes, np.int32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(out)
    return out.tolist()

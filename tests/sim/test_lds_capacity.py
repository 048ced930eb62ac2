"""LDS beyond a workgroup's share is refused while tracing, chip by chip, with what takes the space."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

LIMITS = {"gfx942": 65536, "gfx950": 163840, "gfx1100": 65536, "gfx1201": 65536, "gfx1250": 327680}


@flyc.kernel
def kernel(out: fx.Tensor, count: fx.Constexpr[int]):
    @fx.struct
    class Smem:
        a: fx.Array[fx.Float32, count]
        b: fx.Array[fx.Float16, 128]

    smem = fx.SharedAllocator().allocate(Smem).peek()
    smem.a[fx.thread_idx.x] = fx.Float32(1.0)
    fx.barrier()
    out[fx.thread_idx.x] = smem.a[fx.thread_idx.x]


@flyc.jit
def launch(out: fx.Tensor, count: fx.Constexpr[int]):
    kernel(out, count).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("arch", LIMITS)
def test_capacity(arch):
    most = (LIMITS[arch] - 256) // 4
    out = np.zeros(64, np.float32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(out, most)
        assert (out == 1).all()
        with pytest.raises(RuntimeError) as error:
            launch(out, most + 1)
    assert f"has {LIMITS[arch]}: Smem.a {4 * most + 4}; Smem.b 256" in str(error.value)

"""Many launches with varying shapes: memory and file handles stay flat, nothing is compiled again."""

import gc
import os
import resource

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_function import JitFunction


@flyc.kernel
def scale_kernel(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32):
    b[0] = a[0] * f + n


@flyc.jit
def scale(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32):
    scale_kernel(a, b, f, n).launch(grid=((n + 255) // 256,), block=(256, 1, 1))


def resident_kb() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() // 1024


def soak(launches: int) -> None:
    run = JitFunction(scale.func)
    whole = np.zeros(4096, np.float32)
    matrix = np.zeros((64, 64), np.float16)

    def some(first: int, count: int) -> None:
        for i in range(first, first + count):
            n = i % 4000 + 1
            if i % 7 == 0:
                run(matrix[0, : n % 64 + 1], matrix[1], 0.5, n)
            elif i % 11 == 0:
                run(whole[:n], b=whole, f=float(i), n=n)
            else:
                run(whole[:n], whole[4096 - n :], 1.5, n)

    some(0, launches // 10)
    gc.collect()
    memory, handles = resident_kb(), len(os.listdir("/proc/self/fd"))
    some(launches // 10, launches - launches // 10)
    gc.collect()
    assert run.cache_info().misses == 2
    assert run.cache_info().hits == launches - 2
    assert resident_kb() - memory < 4096
    assert len(os.listdir("/proc/self/fd")) == handles


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="/proc")
def test_soak(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")
    soak(5_000)


@pytest.mark.nightly
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="/proc")
def test_soak_of_100_000_launches(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")
    soak(100_000)

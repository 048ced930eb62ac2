"""Unroll hints of `range(...)` reach LLVM: the number of additions in the code says how often the body was copied."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx


def additions(hints):
    @flyc.kernel
    def kernel(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        acc = fx.Float32(0)
        for i in range(n, **hints):
            acc = acc + x[i]
        out[fx.thread_idx.x] = acc

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    compiled = flyc.compile(launch, x, out, 5)
    launch(x, out, 5)
    assert (out == 10).all()
    return compiled.artifact.codegen(("isa",)).isa.count("v_add_f32")


def test_hints():
    plain = additions({})
    assert additions({"unroll": 4}) == plain + 4  # four copies and the loop for the rest
    assert additions({"unroll": 1}) == plain
    assert additions({"unroll_full": True}) > plain


@pytest.mark.parametrize("bounds, expected", [((4,), 4), ((1, 4), 3)])
def test_full_unrolling_of_static_bounds(bounds, expected):
    @flyc.kernel
    def kernel(x: fx.Tensor, out: fx.Tensor):
        acc = fx.Float32(0)
        for i in range(*bounds, unroll_full=True):
            acc = acc + x[i]
        out[fx.thread_idx.x] = acc

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    compiled = flyc.compile(launch, x, out)
    isa = compiled.artifact.codegen(("isa",)).isa
    assert "s_cbranch" not in isa and isa.count("v_add_f32") == expected

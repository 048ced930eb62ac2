"""Compiling several specialisations in worker processes."""

import os

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_function import JitFunction
from flydsl.compiler.parallel import Job, compile_many

X = np.zeros(64, np.float32)


@flyc.kernel
def fill_kernel(a: fx.Tensor, c: fx.Constexpr[int]):
    if c == 13:
        raise ValueError("13 is not supported")
    if c == 14:
        os._exit(9)
    a[fx.thread_idx.x] = c * 1.0


@flyc.jit
def fill(a: fx.Tensor, c: fx.Constexpr[int]):
    fill_kernel(a, c).launch(grid=(1,), block=(64, 1, 1))


@pytest.mark.parametrize("with_cache", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_compile_many(workers, with_cache, tmp_path, monkeypatch) -> None:
    if with_cache:
        monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "cache"))
    run = JitFunction(fill.func)
    done = []
    jobs = [Job(run, (X, c)) for c in (1, 2, 13, 3)]
    jobs += [Job(run, (X, 1), hints={"waves_per_eu": 2}), Job(run, (X, 1), environment={"ARCH": "gfx950"})]
    results = compile_many(jobs, workers, lambda n, total: done.append((n, total)))
    assert [r.job for r in results] == jobs
    assert done == [(i + 1, 6) for i in range(6)]
    assert "13 is not supported" in results[2].error and results[2].artifact is None
    codes = [r.artifact.code_object()[0] for r in results if r.artifact]
    assert len(codes) == 5 and all(c[:4] == b"\x7fELF" for c in codes)
    assert results[5].artifact.arch == "gfx950" and results[0].artifact.arch == "gfx942"
    before = run.cache_info().misses
    out = np.zeros_like(X)
    run(out, 3)
    assert run.cache_info().misses == before and (out == 3).all()
    if workers > 1:
        assert before == 0, "what the workers compiled was compiled again"


def test_a_worker_that_dies_is_one_failed_job() -> None:
    run = JitFunction(fill.func)
    results = compile_many([Job(run, (X, c)) for c in (14, 1, 14, 2, 3)], workers=2)
    assert [r.error for r in results] == ["the compiling process died", None, "the compiling process died", None, None]

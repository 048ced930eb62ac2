"""Compiling several specialisations in worker processes."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import worker_pool
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


@pytest.fixture(autouse=True)
def no_workers_left():
    worker_pool.shut_down()
    yield
    worker_pool.shut_down()


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


# --- warm workers ----------------------------------------------------------------------------------------------------

FACTOR = 2.0


@flyc.kernel
def scale_kernel(a: fx.Tensor, c: fx.Constexpr[int], *, offset: fx.Constexpr[int] = 0):
    a[fx.thread_idx.x] = FACTOR * c + offset


@flyc.jit
def scale(a: fx.Tensor, c: fx.Constexpr[int], *, offset: fx.Constexpr[int] = 0):
    scale_kernel(a, c, offset=offset).launch(grid=(1,), block=(64, 1, 1))


def values(results) -> list[float]:
    """Run the artifacts; return what each stores."""
    found = []
    for r in results:
        assert r.error is None, r.error
        out = np.zeros_like(X)
        function = r.job.function
        function.launch(r.artifact, function.wrap_arguments((out, *r.job.args[1:]), r.job.kwargs))
        found.append(float(out[5]))
    return found


def test_workers_serve_the_next_batch() -> None:
    run = JitFunction(scale.func)
    assert values(compile_many([Job(run, (X, c)) for c in (1, 2)], 2)) == [2, 4]
    pids = sorted(worker_pool.idle_pids())
    assert len(pids) == 2
    jobs = [Job(run, (X, c), {"offset": 1}) for c in (3, 4, 5)] + [Job(run, (X, 6), environment={"ARCH": "gfx950"})]
    jobs += [Job(run, (X, 7), hints={"waves_per_eu": 2})]
    results = compile_many(jobs, 2)
    assert values(results) == [7, 9, 11, 12, 14] and results[3].artifact.arch == "gfx950"
    assert sorted(worker_pool.idle_pids()) == pids
    assert run.cache_info().misses == 0


def test_a_worker_that_knows_an_older_state_is_replaced(monkeypatch) -> None:
    run = JitFunction(scale.func)
    compile_many([Job(run, (X, c)) for c in (1, 2)], 2)
    before = set(worker_pool.idle_pids())
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert values(compile_many([Job(run, (X, c)) for c in (1, 2)], 2)) == [5, 10]
    assert run.cache_info().misses == 0, "compiled here instead of in a new worker"
    assert before.isdisjoint(worker_pool.idle_pids())


def test_functions_and_constants_that_are_younger_than_the_workers() -> None:
    compile_many([Job(JitFunction(scale.func), (X, c)) for c in (1, 2)], 2)

    @flyc.kernel
    def late_kernel(a: fx.Tensor, f: fx.Constexpr):
        a[fx.thread_idx.x] = f(3.0)

    @flyc.jit
    def late(a: fx.Tensor, f: fx.Constexpr):
        late_kernel(a, f).launch(grid=(1,), block=(64, 1, 1))

    for _ in range(2):  # a lambda cannot be sent at all
        assert values(compile_many([Job(late, (X, lambda x, k=k: x * k)) for k in (2, 3)], 2)) == [6, 9]
    assert len(worker_pool.idle_pids()) == 2


def test_idle_workers_end(monkeypatch) -> None:
    monkeypatch.setattr(worker_pool, "IDLE_S", 0.2)
    run = JitFunction(scale.func)
    compile_many([Job(run, (X, c)) for c in (1, 2)], 2)
    pids = worker_pool.idle_pids()
    until = time.monotonic() + 30
    while any(state(pid) not in ("", "Z") for pid in pids):
        assert time.monotonic() < until, [state(pid) for pid in pids]
        time.sleep(0.05)
    assert values(compile_many([Job(run, (X, c)) for c in (3, 4)], 2)) == [6, 8]
    assert not any(state(pid) for pid in pids), "an ended worker was not waited for"


def state(pid: int) -> str:
    """Return the state letter of a process; empty where there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_a_killed_idle_worker_is_no_failed_job() -> None:
    run = JitFunction(scale.func)
    compile_many([Job(run, (X, c)) for c in (1, 2)], 2)
    for pid in worker_pool.idle_pids():
        os.kill(pid, signal.SIGKILL)
    assert values(compile_many([Job(run, (X, c)) for c in (3, 4)], 2)) == [6, 8]


PROGRAM = """
import os, sys
sys.path.insert(0, {folder!r})
import test_parallel as t
from flydsl.compiler import worker_pool
t.compile_many([t.Job(t.scale, (t.X, c)) for c in (1, 2)], 2)
pids = worker_pool.idle_pids()
assert len(pids) == 2
if os.fork() == 0:  # a child of the user's: it has no workers, and keeps none alive
    assert worker_pool.idle_pids() == []
    t.time.sleep({child_s})
    os._exit(0)
print(*pids, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "os._exit(4)", "os.kill(os.getpid(), 9)"])
def test_workers_end_with_their_process(end) -> None:
    """However it ends, and though a child of it lives on."""
    code = PROGRAM.format(folder=str(pathlib.Path(__file__).parent), end=end, child_s=3)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.wait()
    assert len(pids) == 2
    until = time.monotonic() + 2
    while any(state(pid) not in ("", "Z") for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert all(state(pid) in ("", "Z") for pid in pids)
    process.stdout.close()

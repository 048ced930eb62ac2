"""Warnings about suspicious code: each with its code at the user's line (marked `# <-`), and silence for the version that the fix describes."""

import inspect
import warnings

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyWarning
from flydsl.utils import env


def unread_state(x, out, n):
    total = fx.Float32(0)
    for i, state in range(n, init=[total, fx.Float32(1)]):  # <-
        yield [state[0] + x[i], fx.Float32(2)]


def read_state(x, out, n):
    for i, state in range(n, init=[fx.Float32(0)]):
        results = yield [state[0] + x[i]]
    out[0] = results


def dynamic_register(x, out, n):
    frag = fx.make_rmem_tensor(4, fx.Float32)
    frag.fill(1)
    for k in range(4):
        out[fx.thread_idx.x] = frag[k]  # <-


def static_register(x, out, n):
    frag = fx.make_rmem_tensor(4, fx.Float32)
    frag.fill(1)
    for k in fx.range_constexpr(4):
        out[fx.thread_idx.x] = frag[k]


def scattered(x, out, n):
    for k in range(4):
        out[fx.thread_idx.x * 64 + k] = x[k]  # <-


def coalesced(x, out, n):
    for k in range(4):
        out[k * 64 + fx.thread_idx.x] = x[k]


def misaligned(x, out, n):
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 1024]).peek()
    frag = fx.make_rmem_tensor(4, fx.Float32)
    frag.fill(1)
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    fx.copy(atom, frag, fx.make_view(lds.ptr + 4 * fx.thread_idx.x, fx.make_layout(4, 1)))  # <-


def aligned(x, out, n):
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 1024]).peek()
    frag = fx.make_rmem_tensor(4, fx.Float32)
    frag.fill(1)
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    fx.copy(atom, frag, fx.make_view(lds.ptr + fx.int_tuple_mul(fx.thread_idx.x, 4), fx.make_layout(4, 1)))


def divergent_barrier(x, out, n):
    if fx.thread_idx.x + n < 32:
        fx.barrier()  # <-


def divergent_loop(x, out, n):
    for k in range(fx.lane_id()):
        fx.barrier()  # <-


def uniform_barrier(x, out, n):
    if fx.block_idx.x < n:
        fx.barrier()


def prints(x, out, n):
    if x[0] > 1.0:
        print("large")  # <-
    else:
        out[0] = 1.0


def prints_statically(x, out, n):
    if fx.const_expr(True):
        print("large")
    if x[0] > 1.0:
        fx.printf("large")


CASES = [
    (unread_state, read_state, "FLY_WARN_YIELD_UNUSED"),
    (dynamic_register, static_register, "FLY_WARN_REGISTER_INDEX"),
    (scattered, coalesced, "FLY_WARN_UNCOALESCED"),
    (misaligned, aligned, "FLY_WARN_MISALIGNED"),
    (divergent_barrier, uniform_barrier, "FLY_WARN_BARRIER_DIVERGES"),
    (divergent_loop, uniform_barrier, "FLY_WARN_BARRIER_DIVERGES"),
    (prints, prints_statically, "FLY_WARN_SIDE_EFFECT"),
]


def issued(body) -> list[FlyWarning]:
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    arrays = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    with warnings.catch_warnings(record=True) as caught, env.override(ARCH="gfx942"):
        warnings.simplefilter("always")
        launch.artifact_for(launch.wrap_arguments((*arrays, 3), {}))
    return [w.message for w in caught if isinstance(w.message, FlyWarning)]


@pytest.mark.parametrize("body, sound, code", CASES, ids=[c[0].__name__ for c in CASES])
def test_suspicious_code(body, sound, code):
    lines, first = inspect.getsourcelines(body)
    marked = first + next(i for i, line in enumerate(lines) if line.rstrip().endswith("# <-"))
    found = issued(body)
    assert {w.code for w in found} == {code}, found
    (warning, *_) = found
    text = str(warning)
    assert warning.span.file == __file__ and warning.span.line == marked, text
    assert text.startswith(f"warning[{code}]") and "why:" in text and "fix:" in text
    assert issued(sound) == []


def test_warnings_can_be_errors_or_off():
    with env.override(FLYDSL_WARN="0"):
        assert issued(divergent_barrier) == []
    kernel = flyc.kernel(divergent_barrier)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with warnings.catch_warnings(), pytest.raises(FlyWarning):
        warnings.simplefilter("error", FlyWarning)
        launch.artifact_for(launch.wrap_arguments((np.zeros(4, np.float32), np.zeros(4, np.float32), 3), {}))

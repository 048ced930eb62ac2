"""Independent errors of one kernel are reported together, those that follow from another are not."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env


def errors_of(body) -> FlyError:
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with env.override(ARCH="gfx942"), pytest.raises(FlyError) as e:
        launch(np.zeros(64, np.float32), np.zeros(64, np.float32), 3)
    return e.value


def line(body, offset: int) -> int:
    return body.__code__.co_firstlineno + offset


def test_three_independent_errors():
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        layout = fx.make_layout((4, 8), (1, 2, 3))  # 1
        shifted = fx.Int32(x[i]) << 1.5  # 2
        out[i] = shifted + fx.size(layout)  # follows from both
        again = shifted
        if i < n:
            again = again + 1  # follows
        fx.make_rmem_tensor((4, n), fx.Float32)  # 3
        unknown_function(i)  # noqa: F821  4, Python's own

    error = errors_of(body)
    places = [error.span.line, *(getattr(o, "span", None) and o.span.line for o in error.others)]
    assert places == [line(body, 2), line(body, 3), line(body, 8), None]
    assert isinstance(error.others[-1], NameError)
    text = str(error)
    assert text.count("error[FLY_") == 3 and text.count("fix:") == 3, text
    assert "NameError: name 'unknown_function' is not defined" in text and f"test_several.py:{line(body, 9)}" in text


def test_one_error_stays_one():
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
        bad = fx.Int32(n) << 1.5
        for k in range(n):
            bad = bad + k
        out[0] = bad
        lds[fx.thread_idx.x] = bad
        fx.barrier()

    assert errors_of(body).others == ()


def test_errors_behind_a_region_that_failed():
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x < n:
            for k in range(n):
                out[k] = fx.Int32(k) << 1.5
        while n > 3:
            n = n - 1.5
        out[0] = 1.0

    error = errors_of(body)
    assert [error.span.line, *(o.span.line for o in error.others)] == [line(body, 3), line(body, 5)]


def test_errors_inside_loops_and_branches():
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        total = fx.Float32(0)
        for k in range(n):
            a = fx.Int32(k) << 1.5  # 1
            total = total + a  # follows
            if k < 3:
                b = fx.make_layout((4, 8), (1, 2, 3))  # 2
            else:
                b = fx.make_layout(4, 1)
                c = fx.make_rmem_tensor((4, n), fx.Float32)  # 3
                c[0] = 1.0  # follows
            out[k] = fx.size(b)  # follows
        rest = n
        while rest > 3:
            rest = rest - 1
            out[0] = x[0] & 3  # 4
        out[1] = total  # follows

    error = errors_of(body)
    assert [error.span.line, *(o.span.line for o in error.others)] == [line(body, k) for k in (3, 6, 9, 15)]


def test_errors_of_nested_functions_are_those_of_the_call():
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        def shifted(v):
            v = v + 1
            return v << 1.5

        for k in range(n):
            a = shifted(k)
            out[k] = a
            out[k] = shifted(k + 1)

    assert errors_of(body).others == ()


def test_a_sound_kernel_runs_after_one_with_errors():
    test_three_independent_errors()

    @flyc.kernel
    def fine(out: fx.Tensor):
        if fx.thread_idx.x < 5:
            out[fx.thread_idx.x] = 1.0

    @flyc.jit
    def launch(out: fx.Tensor):
        fine(out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    out = np.zeros(64, np.float32)
    launch(out)
    assert out.sum() == 5


def test_variables_that_an_inner_function_misses_follow():
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x

        def read():
            return shifted + 1

        def write(value):
            out[i] = value * read()

        shifted = fx.Int32(n) << 1.5  # 1
        write(2)
        write(read())

    error = errors_of(body)
    assert error.span.line == line(body, 9)
    assert error.others == ()

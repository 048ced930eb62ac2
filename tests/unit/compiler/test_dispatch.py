"""Calls of jit functions: the generated fast path, what makes it give way, and what it refuses. On the runtime that does nothing."""

import ctypes
import sys
import threading
import types

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_function import JitFunction
from flydsl.diag import FlyError
from flydsl.runtime import null


@pytest.fixture(autouse=True)
def null_runtime(monkeypatch):
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "null")


@pytest.fixture
def launches(monkeypatch):
    """The arguments of every launch."""
    found = []
    monkeypatch.setattr(null, "_launch", lambda *launch: found.append(launch))
    return found


def fresh(function: JitFunction) -> JitFunction:
    """Return the same function without anything compiled."""
    return JitFunction(function.func)


def slow_calls(function: JitFunction) -> list:
    """Return a list that grows with each call that leaves the fast path."""
    calls = []
    original = function._call_slowly
    function._call_slowly = lambda args: (calls.append(args), original(args))
    return calls


@flyc.kernel
def scale_kernel(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        b[i] = a[i] * f


@flyc.jit
def scale(a: fx.Tensor, b: fx.Tensor, f: fx.Float32, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    scale_kernel(a, b, f, n).launch(grid=((n + 255) // 256,), block=(256, 1, 1), stream=stream)


X = np.zeros(1000, np.float32)


def test_arguments_of_the_launch(launches) -> None:
    run = fresh(scale)
    for n in (1000, 700):
        x, y = X[:n], np.zeros(n, np.float32)
        run(x, y, 2.5, n, 77)
        kernel, grid, block, _, _, stream, arguments = launches[-1]
        assert (kernel, grid, block, stream) == ("scale_kernel_0", ((n + 255) // 256, 1, 1), (256, 1, 1), 77)
        assert arguments == (x.ctypes.data, n, y.ctypes.data, n, 2.5, n)


def test_second_call_is_fast() -> None:
    run = fresh(scale)
    slow = slow_calls(run)
    for n in (1000, 10, 999):
        run(np.zeros(n, np.float32), X, 0.5, n)
    assert len(slow) == 1
    assert run.cache_info()[:3] == (2, 1, 1)


def test_torch(torch, launches) -> None:
    run = fresh(scale)
    slow = slow_calls(run)
    for n in (64, 128):
        t = torch.zeros(n)
        run(t, t, 1.0, n)
        assert launches[-1][-1] == (t.data_ptr(), n, t.data_ptr(), n, 1.0, n)
    assert len(slow) == 1


def test_several_signatures_stay_fast(torch) -> None:
    run = fresh(scale)
    kinds = [
        np.zeros(8, np.float32),
        torch.zeros(8),
        np.zeros(8, np.float16),
        torch.zeros(8, dtype=torch.bfloat16),
        np.zeros((4, 4), "f4"),
    ]
    kinds = [k for k in kinds if k.ndim == 1]
    for k in kinds:
        run(k, k, 1.0, 8)
    slow = slow_calls(run)
    for k in kinds * 3:
        run(k, k, 1.0, 8)
    assert not slow
    assert run.cache_info().currsize == 3  # NumPy and torch f32 share one


@flyc.kernel
def matrix_kernel(a: fx.Tensor):
    a[0, 0] = 1.0


@flyc.jit
def matrix(a: fx.Tensor):
    matrix_kernel(a).launch(grid=(1,), block=(64, 1, 1))


def test_strides(torch, launches) -> None:
    run = fresh(matrix)
    row = np.zeros((6, 8), np.float32)
    for a in (row, row.T, torch.zeros(6, 8), torch.zeros(6, 8).T):
        for _ in range(2):
            run(a)
            strides = a.stride() if hasattr(a, "stride") else [s // 4 for s in a.strides]
            other = next(s for s in strides if s != 1)
            address = a.data_ptr() if hasattr(a, "data_ptr") else a.ctypes.data
            assert launches[-1][-1] == (address, *a.shape, other)
    assert run.cache_info().currsize == 2  # by which dimension is contiguous


def test_keywords_and_defaults(launches) -> None:
    run = fresh(scale)
    run(X, X, n=5, f=1.0)
    slow = slow_calls(run)
    run(X, X, n=6, f=2.0)
    run(a=X, b=X, f=2.0, n=7, stream=None)
    assert [launch[-1][-2:] for launch in launches] == [(1.0, 5), (2.0, 6), (2.0, 7)]
    assert len(slow) == 1  # the stream was fx.Stream, now it is None


def test_what_is_no_stream_is_refused(torch, launches) -> None:
    run = fresh(scale)
    compiled = flyc.compile(run, X, X, 1.0, 5, None)
    for call in (run, compiled):
        for stream in (None, 7, np.int64(7), fx.Stream(7), types.SimpleNamespace(cuda_stream=7), ctypes.c_void_p(7)):
            for _ in range(2):
                call(X, X, 1.0, 5, stream)
        for stream in (True, 2.5, "7", object(), torch.ones(1, dtype=torch.int64), fx.Stream(object())):
            for _ in range(2):
                with pytest.raises(TypeError, match="FLY_STREAM"):
                    call(X, X, 1.0, 5, stream)
    assert [launch[-2] for launch in launches] == ([0] * 2 + [7] * 10) * 2


def test_compiled_functions_fill_in_defaults(launches) -> None:
    """Calls with and without the argument that has a default, in any order; each launches once."""
    compiled = flyc.compile(fresh(scale), X, X, 1.0, 5)
    for n in range(1, 4):
        compiled(X, X, 2.0, n)
        compiled(X, X, 3.0, n, 77)
        compiled(X, X, 4.0, n)
    stream = [launch[-2] for launch in launches]
    assert stream == [0, 77, 0] * 3
    assert [launch[-1][-2:] for launch in launches] == [(f, n) for n in range(1, 4) for f in (2.0, 3.0, 4.0)]
    for args in ((), (X, X, 1.0), (X, X, 1.0, 5, None, 6)):
        with pytest.raises(TypeError, match="FLY_ARGUMENT_COUNT"):
            compiled(*args)
    assert len(launches) == 9


def test_wrong_calls_raise_on_the_fast_path(torch) -> None:
    run = fresh(scale)
    run(X, X, 1.0, 5)
    compiled = flyc.compile(run, X, X, 1.0, 5, None)
    wrong = [
        X.astype(np.complex64),
        np.zeros((), np.float32),
        X[::2],
        torch.zeros(5, device="meta"),
        X.astype(">f4"),
        "text",
    ]
    for value in wrong:
        for call in (lambda v=value: run(v, X, 1.0, 5), lambda v=value: compiled(X, v, 1.0, 5, None)):
            with pytest.raises(FlyError):
                call()
    for value in (X.astype(np.float16), np.zeros((2, 2), np.float32)):
        with pytest.raises(FlyError, match="compiled for another `a`"):
            compiled(value, X, 1.0, 5, None)
    for call in (run, compiled):
        with pytest.raises(FlyError, match="cannot be called"):
            call(X, X, 1.0)
        with pytest.raises(FlyError, match="cannot be called"):
            call(X, X, 1.0, 5, None, 1)
        with pytest.raises(OverflowError, match="does not fit Int32"):
            call(X, X, 1.0, 2**40, None)
    run(X, X, 1.0, 5)
    compiled(X, X, 1.0, 5, None)


def test_floats_for_integers_must_be_whole(launches) -> None:
    run = fresh(scale)
    compiled = flyc.compile(run, X, X, 1.0, 5, None)
    for call in (run, compiled):
        call(X, X, 1.0, 5.0, None)
        assert launches[-1][-1][-1] == 5 and type(launches[-1][-1][-1]) is int
        for value in (5.7, float("nan"), float("inf"), 2.0**40):
            with pytest.raises(OverflowError, match="does not fit Int32"):
                call(X, X, 1.0, value, None)


def test_unaligned_arrays_are_refused() -> None:
    data = np.zeros(41, np.uint8)[1:].view(np.float32)
    with pytest.raises(FlyError, match="not aligned"):
        fresh(scale)(data, data, 1.0, 5)


def test_more_than_two_to_the_31_elements_are_refused(torch) -> None:
    run = fresh(matrix)
    small = torch.zeros(1, 4).expand(4, 4)
    run(small)
    with pytest.raises(FlyError, match="2\\^31"):
        run(torch.zeros(1, 4).expand(2**31, 4))


@flyc.kernel
def constant_kernel(a: fx.Tensor, c: fx.Constexpr[int]):
    a[0] = c * 1.0


@flyc.jit
def constant(a: fx.Tensor, c: fx.Constexpr[int]):
    constant_kernel(a, c).launch(grid=(1,), block=(64, 1, 1))


def test_constants_specialise(launches) -> None:
    run = fresh(constant)
    for value in (1, 2, True, 1.0, "a", 1):
        if value == "a":
            continue
        run(X, value)
    assert run.cache_info().currsize == 4
    slow = slow_calls(run)
    for value in (1, 2, True) * 3:
        run(X, value)
    assert not slow


@flyc.kernel
def call_kernel(a: fx.Tensor, f: fx.Constexpr):
    a[0] = f(a[0])


@flyc.jit
def call(a: fx.Tensor, f: fx.Constexpr):
    call_kernel(a, f).launch(grid=(1,), block=(64, 1, 1))


FACTOR = 2.0


def times(x):
    return x * FACTOR


def test_function_as_constant(monkeypatch) -> None:
    run = fresh(call)
    run(X, times)
    run(X, times)
    assert run.cache_info().misses == 1
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    run(X, times)
    assert run.cache_info().misses == 2


@flyc.jit
def flat(pointer: fx.Int64, n: fx.Int32, typed: fx.Pointer):
    pointer_kernel(typed, n).launch(grid=(1,), block=(64, 1, 1))


@flyc.kernel
def pointer_kernel(p: fx.Pointer, n: fx.Int32):
    p[n] = fx.Float32(1.0)


def test_flat_pointers_and_scalars(launches) -> None:
    """Callers that keep a CompiledFunction on the jit function and pass addresses and numbers."""

    def run_compiled(function, *args):
        kept = getattr(function, "_cf", None)
        if kept is None:
            function._cf = flyc.compile(function, *args)
        else:
            kept(*args)

    run = fresh(flat)
    for i in range(4):
        run_compiled(run, X.ctypes.data, i, flyc.from_c_void_p(fx.Float32, X.ctypes.data + 4 * i))
        assert launches[-1][-1] == (X.ctypes.data + 4 * i, i)
    assert len(launches) == 4  # the compiling call launches, too
    slow = []
    run._cf._call_slowly = slow.append
    run_compiled(run, 5, 6, flyc.from_c_void_p(fx.Float32, 0))
    assert not slow
    with pytest.raises(TypeError, match="compiled for another `typed`"):
        flyc.compile(run, 1, 2, flyc.from_c_void_p(fx.Float32, 8))(1, 2, flyc.from_c_void_p(fx.Float16, 8))


def test_static_layouts_specialise(launches) -> None:
    run = fresh(matrix)
    for shape in ((4, 4), (8, 4), (4, 4)):
        run(flyc.from_dlpack(np.zeros(shape, np.float32)))
    assert run.cache_info()[:3] == (1, 2, 2)
    slow = slow_calls(run)
    run(flyc.from_dlpack(np.zeros((8, 4), np.float32)))
    assert not slow


# --- compiled functions with declared layouts ------------------------------------------------------------------------


def test_compiled_for_a_static_layout(torch, launches) -> None:
    """Tensors of that very layout fit as they are, on the fast path, too; any other is refused."""
    x = np.zeros((4, 8), np.float32)
    compiled = flyc.compile(fresh(matrix), flyc.from_dlpack(x))
    for _ in range(2):
        for value in (x, torch.zeros(4, 8), flyc.from_dlpack(x + 1)):
            compiled(value)
    assert len(launches) == 6 and all(len(launch[-1]) == 1 for launch in launches)
    compiled._call_slowly = None
    compiled(x.copy())
    del compiled._call_slowly
    others = [np.zeros((8, 4), np.float32), np.zeros((4, 9), np.float32), x.T, torch.zeros(4, 16)[:, :8]]
    others += [x.astype(np.float16), torch.zeros(4, 8, dtype=torch.int32), np.zeros(32, np.float32)]
    with pytest.raises(FlyError, match="no dimension of this tensor is contiguous"):
        compiled(x[:, ::2])
    for value in others:
        for wrapped in (value, flyc.from_dlpack(value)):
            with pytest.raises(FlyError, match=r"compiled for another `a`.*shape \(4, 8\), strides \(8, 1\)"):
                compiled(wrapped)
    assert len(launches) == 7


def test_compiled_for_promised_divisibility_and_alignment(torch, launches) -> None:
    x = torch.zeros(4, 64, dtype=torch.float16)
    declared = flyc.from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1, divisibility=16)
    declared.mark_shape_dynamic(1, 32)
    compiled = flyc.compile(fresh(matrix), declared)
    for _ in range(2):
        for n in (64, 96):
            compiled(torch.zeros(3, n, dtype=torch.float16))
            assert launches[-1][-1][1:] == (3, n, n)
    slow = []
    compiled._call_slowly = slow.append
    compiled(torch.zeros(5, 128, dtype=torch.float16))
    assert not slow
    del compiled._call_slowly
    unaligned = torch.zeros(4 * 64 + 1, dtype=torch.float16)[1:].view(4, 64)
    for value in (torch.zeros(3, 48, dtype=torch.float16), torch.zeros(3, 72, dtype=torch.float16)[:, :64], unaligned):
        with pytest.raises(FlyError, match="compiled for another `a`.*multiple of 32"):
            compiled(value)


def test_a_tensor_that_is_not_what_it_was_declared_to_be() -> None:
    x = np.zeros((4, 40), np.float32)
    run = fresh(matrix)
    for declared, problem in (
        (flyc.from_dlpack(x).mark_shape_dynamic(1, 16), "extent 1 is 40, not a multiple of divisibility=16"),
        (flyc.from_dlpack(x).mark_layout_dynamic(divisibility=16), "stride 0 is 40, not a multiple"),
        (flyc.from_dlpack(x[:, 1:], assumed_align=1 << 20), "assumed_align=1048576"),
    ):
        for _ in range(2):
            with pytest.raises(FlyError, match=problem):
                run(declared)


# --- captured state ---------------------------------------------------------------------------------------------------

TILE = 64
UNREAD = 1
TABLE = {"tile": 4, "list": [1, 2]}
SETTINGS = types.ModuleType("test_dispatch_settings")
SETTINGS.WIDTH = 8
SETTINGS.inner = types.SimpleNamespace(depth=3)
sys.modules["test_dispatch_settings"] = SETTINGS


class Config:
    scale = 2

    def __init__(self):
        self.tile = 16
        self.calls = 0

    def factor(self):
        return self.scale * self.tile


CONFIG = Config()


def helper(i, step=1):
    return second_helper(i) + step


def second_helper(i):
    return i * 3


@flyc.kernel
def reading_kernel(a: fx.Tensor):
    i = fx.thread_idx.x
    import test_dispatch_settings

    total = (
        TILE
        + TABLE["tile"]
        + TABLE["list"][0]
        + SETTINGS.WIDTH
        + SETTINGS.inner.depth
        + CONFIG.factor()
        + test_dispatch_settings.WIDTH
    )
    a[helper(i)] = total * 1.0


@flyc.jit
def reading(a: fx.Tensor):
    reading_kernel(a).launch(grid=(1,), block=(64, 1, 1))


def other_helper(i, step=1):
    return i + step


EDITS = {
    "global": lambda m: m.setitem(globals(), "TILE", 65),
    "dict item": lambda m: m.setitem(TABLE, "tile", 5),
    "nested list item": lambda m: m.setitem(TABLE, "list", [9, 2]),
    "list item in place": lambda m: m.setattr(sys.modules[__name__], "TABLE", {"tile": 4, "list": [7, 2]}),
    "module attribute": lambda m: m.setattr(SETTINGS, "WIDTH", 9),
    "nested attribute": lambda m: m.setattr(SETTINGS.inner, "depth", 4),
    "instance attribute": lambda m: m.setattr(CONFIG, "tile", 17),
    "class attribute": lambda m: m.setattr(Config, "scale", 3),
    "class attribute shadowed": lambda m: m.setattr(CONFIG, "scale", 5, raising=False),
    "method": lambda m: m.setattr(Config, "factor", lambda self: self.tile),
    "helper": lambda m: m.setitem(globals(), "helper", other_helper),
    "helper of the helper": lambda m: m.setitem(globals(), "second_helper", other_helper),
    "code of a helper": lambda m: m.setattr(second_helper, "__code__", (lambda i: i * 5).__code__),
    "default argument": lambda m: m.setattr(helper, "__defaults__", (2,)),
    "builtin shadowed": lambda m: m.setitem(globals(), "helper", lambda i, step=1: i),
    "environment": lambda m: m.setenv("FLYDSL_COMPILE_OPT_LEVEL", "1"),
    "arch": lambda m: m.setenv("ARCH", "gfx950"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_captured_state_is_noticed(edit, monkeypatch) -> None:
    run = fresh(reading)
    run(X)
    run(X)
    assert run.cache_info()[:2] == (1, 1)
    with monkeypatch.context() as m:
        EDITS[edit](m)
        run(X)
        assert run.cache_info().misses == 2, edit
        run(X)
        assert run.cache_info().misses == 2, edit
    run(X)
    assert run.cache_info().misses == 2, f"{edit}: taking it back recompiled"


def test_in_place_change_of_a_list(monkeypatch) -> None:
    run = fresh(reading)
    run(X)
    TABLE["list"][0] = 11
    try:
        run(X)
    finally:
        TABLE["list"][0] = 1
    assert run.cache_info().misses == 2


def test_what_is_not_read_does_not_recompile(monkeypatch) -> None:
    run = fresh(reading)
    run(X)
    monkeypatch.setitem(globals(), "UNREAD", 2)
    monkeypatch.setitem(globals(), "NEW_NAME", 2)
    monkeypatch.setattr(CONFIG, "calls", 7)
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setitem(globals(), "TILE", int("64"))
    slow = slow_calls(run)
    run(X)
    assert run.cache_info().misses == 1 and len(slow) <= 1


def make(value):
    @flyc.kernel
    def kernel(a: fx.Tensor):
        a[0] = value * 1.0

    @flyc.jit
    def run(a: fx.Tensor):
        kernel(a).launch(grid=(1,), block=(64, 1, 1))

    def change(new):
        nonlocal value
        value = new

    return run, change


def test_closure() -> None:
    run, change = make(3)
    run(X)
    run(X)
    change(4)
    run(X)
    assert run.cache_info()[:2] == (1, 2)
    change(3)
    run(X)
    assert run.cache_info()[:2] == (2, 2)


def test_compile_wraps_its_arguments_once(monkeypatch, launches) -> None:
    """The compiling call launches with what it has wrapped."""
    wraps = []
    original = JitFunction._wrapped
    monkeypatch.setattr(JitFunction, "_wrapped", lambda self, args: wraps.append(args) or original(self, args))
    flyc.compile(fresh(flat), X.ctypes.data, 1, flyc.from_c_void_p(fx.Float32, X.ctypes.data))
    assert len(wraps) == len(launches) == 1
    flyc.compile(fresh(scale), X, X, 1.0, 5)  # host tensors are placeholders
    assert len(wraps) == 2 and len(launches) == 1


def test_hints_specialise() -> None:
    run = fresh(scale)
    run(X, X, 1.0, 5)
    with flyc.CompilationContext.compile_hints({"waves_per_eu": 2}):
        run(X, X, 1.0, 5)
    assert run.cache_info().misses == 2
    run(X, X, 1.0, 5)
    assert run.cache_info().misses == 2
    flyc.compile[{"waves_per_eu": 3}](run)
    run(X, X, 1.0, 5)
    assert run.cache_info().misses == 3


class Operator:
    def __init__(self, width):
        self.width = width
        self.count = 0

    @flyc.jit
    def run(self, a: fx.Tensor, n: fx.Int32 = 1):
        constant_kernel(a, self.width).launch(grid=(n,), block=(64, 1, 1))

    @flyc.jit
    def __call__(self, a: fx.Tensor):
        constant_kernel(a, self.width).launch(grid=(2,), block=(64, 1, 1))


def test_methods(launches) -> None:
    first, second = Operator(1), Operator(2)
    for op in (first, second, first):
        op.run(X, n=3)
        op.count += 1  # not read by the function
    assert first.run.cache_info()[:2] == (1, 1) and second.run.cache_info()[:2] == (0, 1)
    first.width = 5
    first.run(X, 3)
    assert first.run.cache_info().misses == 2
    first(X)
    assert [launch[1] for launch in launches] == [(3, 1, 1)] * 4 + [(2, 1, 1)]


def test_inside_another_jit_function() -> None:
    @flyc.jit
    def outer(a: fx.Tensor):
        constant(a, 3)

    constants = fresh(constant)
    assert constants.cache_info().misses == 0
    outer(X)
    assert outer.cache_info().misses == 1


def test_turning_the_cache_off(monkeypatch) -> None:
    run = fresh(scale)
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    for _ in range(2):
        run(X, X, 1.0, 5)
    assert run.cache_info() is None and run._misses == 2


def test_threads() -> None:
    run = fresh(scale)
    errors = []

    def work():
        try:
            for n in range(50):
                run(X, X, 1.0, n)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and run.cache_info().misses == 1


def test_unknown_runtime_kind(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "gpu")
    with pytest.raises(ValueError, match="expected one of auto, sim, null, rocm"):
        fresh(scale)(X, X, 1.0, 5)

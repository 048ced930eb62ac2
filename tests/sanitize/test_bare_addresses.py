"""Bare addresses: checked against the arrays that earlier launches were given, freed ones too."""

import gc
import mmap
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.runtime.known_arrays import KEPT_ARRAYS
from flydsl.targets.sim.known_memory import KnownArray, KnownMemory, known

N = 64


@pytest.fixture
def arrays():
    return [np.zeros(2 * N, np.float32) for _ in range(3)]


@flyc.kernel
def twice_kernel(src: fx.Tensor, dst: fx.Tensor):
    x = src[fx.thread_idx.x]
    dst[fx.thread_idx.x] = x + x


@flyc.jit
def twice(src: fx.Tensor, dst: fx.Tensor):
    twice_kernel(src, dst).launch(grid=(1, 1, 1), block=(N, 1, 1))


@flyc.kernel
def through_pointer_kernel(p: fx.Pointer, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    if i < n:
        out[i] = p[i]


@flyc.jit
def through_pointer(p: fx.Pointer, out: fx.Tensor, n: fx.Int32):
    through_pointer_kernel(p, out, n).launch(grid=(1,), block=(N, 1, 1))


def pointer(address: int):
    return flyc.from_c_void_p(fx.Float32, address)


SOURCE = Path(__file__).read_text().splitlines()
POINTED = next(i for i, line in enumerate(SOURCE, 1) if line.strip() == "out[i] = p[i]")


@pytest.mark.parametrize("size", [2 * N, 1 << 24])  # memory that is kept, and memory that goes back to the system
def test_an_array_that_is_gone(arrays, size) -> None:
    """Fails, or ends the process, if something is written when an array ends: NumPy 2.5 has given its memory back by then."""
    _, b, c = arrays
    a = np.zeros(size, np.float32)
    a[:N] = 1
    twice(a, b)
    address = a.ctypes.data
    with flydsl.sim.check() as found:
        through_pointer(pointer(address), c, N)
    assert not found and c[:N].all()
    c[:] = 0
    del a
    gc.collect()
    with flydsl.sim.check() as found:
        through_pointer(pointer(address), c, N)
    assert [(f.kind, f.severity, f.tensor, f.span.line) for f in found] == [("freed", "error", "src", POINTED)]
    assert not c.any()


def test_an_array_that_only_a_weak_reference_brings_back_is_not_freed(arrays) -> None:
    _, b, c = arrays
    a = np.ones(2 * N, np.float32)
    address, back = a.ctypes.data, weakref.ref(a)
    twice(a, b)
    del a
    again = back()
    with flydsl.sim.check() as found:
        through_pointer(pointer(address), c, N)
    assert not found and again is not None and (c[:N] == 1).all()


def test_memory_that_another_array_got_is_not_freed(arrays) -> None:
    _, b, c = arrays
    a = np.ones(2 * N, np.float32)
    twice(a, b)
    address, known_since = a.ctypes.data, known.at(a.ctypes.data)
    del a
    others = [np.ones(2 * N, np.float32) for _ in range(KEPT_ARRAYS)]
    assert known_since.is_free() and not known_since.is_alive()
    for other in others:
        twice(other, b)
    assert not known_since.is_free() and not known_since.is_alive()
    others = []
    while not others or others[-1].ctypes.data != address and len(others) < 100:
        others.append(np.full(2 * N, 3, np.float32))
    with flydsl.sim.check() as found:
        through_pointer(pointer(others[-1].ctypes.data), c, N)
    assert not found and (c[:N] == 3).all()


def test_a_pointer_into_an_array_of_an_earlier_launch_is_bounded_by_it(arrays) -> None:
    a, b, c = arrays
    twice(a, b)
    with flydsl.sim.check() as found:
        through_pointer(pointer(a.ctypes.data + 4 * (N + 1)), c, N)
    assert [(f.kind, f.tensor, f.span.line, f.count) for f in found] == [("bounds", "src", POINTED, 1)]


def test_arrays_of_launches_of_several_threads() -> None:
    memory, errors = KnownMemory(), []

    def see(base: int) -> None:
        try:
            for start in range(base, base + (120 << 6), 1 << 6):  # 960 of at most 1024
                memory.see(KnownArray("a", start, start + 64, is_alive=lambda: False, is_free=lambda: True))
                assert memory.at(start).start == start
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=see, args=(i << 32,)) for i in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors


def test_a_pointer_that_runs_into_a_tensor_of_the_launch(arrays) -> None:
    memory = mmap.mmap(-1, 4096)
    whole = np.frombuffer(memory, np.float32)
    out = whole[16:]
    assert known.at(whole.ctypes.data) is None
    with flydsl.sim.check() as found:
        through_pointer(pointer(whole.ctypes.data), out, 16)
    assert not found
    with flydsl.sim.check() as found:
        through_pointer(pointer(whole.ctypes.data), out, 17)
    (fault,) = found
    assert fault.kind == "bounds" and "in `out`, which this pointer does not belong to" in fault.message


def test_a_tensor_that_was_freed_on_the_simulated_gpu(torch) -> None:
    from flydsl.runtime.torch_cuda import simulated_cuda

    with simulated_cuda(), flydsl.sim.check() as found:
        a, b = (torch.zeros(2 * N, device="cuda") for _ in range(2))
        twice(a, b)
        address = a.data_ptr()
        through_pointer(pointer(address), b, N)
        assert not found
        del a
        gc.collect()
        through_pointer(pointer(address), b, N)
    assert [(f.kind, f.severity, f.span.line) for f in found] == [("freed", "error", POINTED)]

"""Attributes of a kernel that public kernels set in the jit function before they launch."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx


def make():
    @flyc.kernel
    def kernel(x: fx.Tensor):
        x[fx.thread_idx.x] = fx.Float32(fx.block_dim.x)

    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Constexpr[int]):
        kernel._known_block_size = [n, 1, 1]
        kernel._func.__name__ = f"of_{n}_threads"
        kernel(x).launch(grid=(1, 1, 1), block=(n, 1, 1))

    return kernel, launch


def test_what_a_jit_function_sets_holds_for_its_trace():
    kernel, launch = make()
    x = np.zeros(128, np.float32)
    for n in (64, 128):
        launch(x, n)
        assert np.array_equal(x[:n], np.full(n, n, np.float32))
        artifact = launch._last_compiled[1]
        assert artifact.kernel_names == (f"of_{n}_threads_0",)
        assert f"known_block_size = array<i32: {n}, 1, 1>" in artifact.ir
    assert kernel._known_block_size is None


def test_setting_it_does_not_compile_again():
    _, launch = make()
    x = np.zeros(128, np.float32)
    for n in (64, 128, 64, 128):
        launch(x, n)
    assert len(launch._artifacts) == 2


def test_what_is_set_outside_is_compiled_in():
    kernel, _ = make()

    @flyc.jit
    def plain(x: fx.Tensor, n: fx.Int32):
        kernel(x).launch(grid=(1, 1, 1), block=(n, 1, 1))

    x = np.zeros(128, np.float32)
    for n in (64, 128):
        kernel._known_block_size = (n, 1, 1)
        assert kernel._known_block_size == [n, 1, 1]
        plain(x, n)
        assert f"known_block_size = array<i32: {n}, 1, 1>" in plain._last_compiled[1].ir

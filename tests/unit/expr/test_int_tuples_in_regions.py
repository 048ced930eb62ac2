"""Int tuples whose IR is made on demand: what one region made is not used in another."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx


def run(kernel) -> np.ndarray:
    out = np.zeros(64, np.int32)

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Int32):
        kernel(out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    launch(out, 3)
    return out


def test_a_slice_first_used_in_a_loop_is_usable_behind_it():
    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Int32):
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Int32)
        tiled = fx.make_tiled_copy_tv(atom, fx.make_layout(64, 1), fx.make_layout(1, 1))
        mine = tiled.get_slice(fx.thread_idx.x)
        view = fx.make_view(fx.get_iter(out), fx.make_layout((1, 64), (1, 1)))

        def add(amount):
            part = mine.partition_D(view)
            part[0, 0, 0] = part[0, 0, 0] + amount

        for i in range(n):
            add(i)
        add(10)

    assert np.array_equal(run(kernel), np.full(64, 13))


def test_leaves_of_a_coordinate_first_read_in_a_branch():
    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Int32):
        coordinate = fx.idx2crd(fx.thread_idx.x, fx.make_layout((8, 8), (1, 8)))

        def sum_of_modes():
            return fx.get_scalar(coordinate[0]) + fx.get_scalar(coordinate[1])

        if n > 2:
            out[fx.thread_idx.x] = sum_of_modes()
        out[fx.thread_idx.x] = out[fx.thread_idx.x] + sum_of_modes()

    lanes = np.arange(64)
    assert np.array_equal(run(kernel), 2 * (lanes % 8 + lanes // 8))

"""Index of the first maximum of each row, as int64: a run-time loop with branches, then a reduction of (value, index) pairs.
As in NumPy, NaN is above everything."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

BLOCK = 128


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def argmax_kernel(X: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    tid, row = fx.thread_idx.x, fx.block_idx.x
    width = fx.gpu.num_warp_threads()
    best = fx.Float32(float("-inf"))
    where = fx.Int32(0x7FFFFFFF)  # after every index
    for i in fx.range(tid, n, BLOCK):
        x = X[row, i]
        if is_ahead(x, i, best, where):
            best = x
            where = i

    offset = width // 2
    while fx.const_expr(offset > 0):
        other = fx.gpu.shuffle_xor(best, offset, width)
        other_where = fx.gpu.shuffle_xor(where, offset, width)
        if is_ahead(other, other_where, best, where):
            best = other
            where = other_where
        offset //= 2

    values = fx.SharedAllocator().allocate(Pairs).peek()
    if tid % width == 0:
        values.best[tid // width] = best
        values.where[tid // width] = where
    fx.barrier()
    if tid == 0:
        for w in fx.range_constexpr(1, BLOCK // width):
            other, other_where = values.best[w], values.where[w]
            if is_ahead(other, other_where, best, where):
                best = other
                where = other_where
        out[row] = where.to(fx.Int64)


def is_ahead(x, i, best, where):
    """Whether element `i`, which is `x`, comes before element `where`, which is `best`."""
    larger = (x > best) | ((x != x) & (best == best))
    equal = (x == best) | ((x != x) & (best != best))
    return larger | (equal & (i < where))


@fx.struct
class Pairs:
    best: fx.Array[fx.Float32, BLOCK // 32]
    where: fx.Array[fx.Int32, BLOCK // 32]


@flyc.jit
def argmax(X: fx.Tensor, out: fx.Tensor, m: fx.Int32, n: fx.Int32):
    argmax_kernel(X, out, n).launch(grid=(m,), block=(BLOCK, 1, 1))


def main() -> None:
    rng = np.random.default_rng(3)
    for m, n in [(50, 1000), (7, 129), (3, 5), (4, 1)]:
        x = rng.integers(-100, 100, (m, n)).astype(np.float32)  # many equal maxima: the first one counts
        x[1, :] = -np.inf
        x[2, n // 2 :] = np.nan
        out = np.full(m, -1, np.int64)
        argmax(x, out, m, n)
        if env.compile.compile_only:
            print(f"compiled argmax {m}x{n}")
            continue
        wrong = int((out != x.argmax(axis=1)).sum())
        assert wrong == 0, f"{m}x{n}: {wrong} rows differ"
        print(f"PASS argmax {m}x{n}: worst error {float(wrong):.1e}")


if __name__ == "__main__":
    main()

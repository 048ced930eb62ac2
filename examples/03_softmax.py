"""Row softmax for any row length: the row lives in registers, maximum and sum are reduced over waves and then over the workgroup."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

BLOCK = 256
LOG2E = 1.4426950408889634


def wave_reduce(value, combine, width):
    offset = width // 2
    while offset:
        value = combine(value, fx.gpu.shuffle_xor(value, offset, width))
        offset //= 2
    return value


@flyc.jit
def block_reduce(value, combine, neutral, scratch, width):
    """Reduce over the workgroup; `scratch` holds one value per wave and may be reused after the returned value is read."""
    waves = BLOCK // width
    wave, lane = fx.thread_idx.x // width, fx.thread_idx.x % width
    value = wave_reduce(value, combine, width)
    fx.barrier()  # the last user of the scratch may still read it
    if lane == 0:
        scratch[wave] = value
    fx.barrier()
    result = neutral
    for w in fx.range_constexpr(waves):
        result = combine(result, scratch[w])
    return result


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def softmax_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Constexpr[int], vec: fx.Constexpr[int]):
    tid, row = fx.thread_idx.x, fx.block_idx.x
    width = fx.gpu.num_warp_threads()
    dtype = X.dtype
    n_vec = n // vec
    steps = (n_vec + BLOCK - 1) // BLOCK

    scratch = fx.SharedAllocator().allocate(fx.Array[fx.Float32, BLOCK // 32]).peek()
    x_row = fx.logical_divide(X[row, None], fx.make_layout(vec, 1))  # (vec, n_vec)
    y_row = fx.logical_divide(Y[row, None], fx.make_layout(vec, 1))
    atom = fx.make_copy_atom(fx.UniversalCopy(dtype.width * vec), dtype)

    values = []
    local_max = fx.Float32(float("-inf"))
    for s in fx.range_constexpr(steps):
        index = s * BLOCK + tid
        frag = fx.make_rmem_tensor(vec, dtype)
        frag.fill(float("-inf"))
        if index < n_vec:
            fx.copy(atom, x_row[None, index], frag)
        x = frag.load().to(fx.Float32)
        values.append(x)
        local_max = fx.max(local_max, x.reduce("max"))
    row_max = block_reduce(local_max, fx.max, fx.Float32(float("-inf")), scratch, width)

    local_sum = fx.Float32(0.0)
    for s in fx.range_constexpr(steps):
        values[s] = fx.exp2((values[s] - row_max) * LOG2E)
        local_sum = local_sum + values[s].reduce("add")
    row_sum = block_reduce(local_sum, lambda a, b: a + b, fx.Float32(0.0), scratch, width)

    for s in fx.range_constexpr(steps):
        index = s * BLOCK + tid
        out = fx.make_rmem_tensor(vec, dtype)
        out.store((values[s] / row_sum).to(dtype))
        if index < n_vec:
            fx.copy(atom, out, y_row[None, index])


@flyc.jit
def softmax(
    X: fx.Tensor,
    Y: fx.Tensor,
    m: fx.Int32,
    n: fx.Constexpr[int],
    vec: fx.Constexpr[int],
    stream: fx.Stream = fx.Stream(None),
):
    softmax_kernel(X, Y, n, vec).launch(grid=(m,), block=(BLOCK, 1, 1), stream=stream)


def reference(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main() -> None:
    import ml_dtypes  # NumPy's bfloat16

    rng = np.random.default_rng(2)
    cases = [(64, 1024, np.float32), (7, 1000, np.float32), (3, 37, np.float32), (33, 2048, ml_dtypes.bfloat16)]
    for m, n, dtype in cases + [(5, 777, ml_dtypes.bfloat16), (2, 1, np.float32)]:
        x = (4 * rng.standard_normal((m, n))).astype(dtype)
        y = np.full((m, n), np.nan, dtype)
        widest = 16 // x.itemsize
        softmax(x, y, m, n, widest if n % widest == 0 else 1)
        if env.compile.compile_only:
            print(f"compiled softmax {m}x{n} {np.dtype(dtype).name}")
            continue
        error = np.abs(y.astype(np.float64) - reference(x)).max()
        bound = 1e-6 if dtype is np.float32 else 2e-3
        assert error <= bound, f"{m}x{n} {np.dtype(dtype)}: error {error}"
        print(f"PASS softmax {m}x{n} {np.dtype(dtype).name}: worst error {error:.1e}")


if __name__ == "__main__":
    main()

"""Layer normalisation of f16 rows with weight and bias: buffer copies, two block reductions, 8 values per access."""

import numpy as np
from vector_add import tensor

import flydsl.compiler as flyc
import flydsl.expr as fx

BLOCK, N, VEC = 256, 4096, 8
STEPS = N // (BLOCK * VEC)
WAVES = BLOCK // 64


def wave_sum(value):
    for offset in (32, 16, 8, 4, 2, 1):
        value = value + fx.gpu.shuffle_xor(value, offset, 64)
    return value


@flyc.jit
def block_sum(value, scratch):
    wave, lane = fx.thread_idx.x // 64, fx.thread_idx.x % 64
    value = wave_sum(value)
    if lane == 0:
        scratch[wave] = value
    fx.gpu.barrier()
    total = fx.Float32(0.0)
    for w in fx.range_constexpr(WAVES):
        total = total + scratch[w]
    return total


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def layernorm_kernel(X: fx.Tensor, W: fx.Tensor, B: fx.Tensor, Y: fx.Tensor, eps: fx.Float32):
    tid, row = fx.thread_idx.x, fx.block_idx.x
    buffers = [fx.rocdl.make_buffer_tensor(t) for t in (X, W, B, Y)]
    x_row = fx.logical_divide(buffers[0][row, None], fx.make_layout(VEC, 1))
    y_row = fx.logical_divide(buffers[3][row, None], fx.make_layout(VEC, 1))
    weights, biases = (fx.logical_divide(b, fx.make_layout(VEC, 1)) for b in buffers[1:3])
    scratch = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 2 * WAVES]).peek()
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)

    def read(view, index):
        fragment = fx.make_rmem_tensor(VEC, fx.Float16)
        fx.copy(atom, view[None, index], fragment)
        return fragment.load().to(fx.Float32)

    values = [read(x_row, s * BLOCK + tid) for s in range(STEPS)]
    total = fx.Float32(0.0)
    squares = fx.Float32(0.0)
    for s in fx.range_constexpr(STEPS):
        total = total + values[s].reduce("add")
        squares = squares + (values[s] * values[s]).reduce("add")
    mean = block_sum(total, scratch) / N
    fx.gpu.barrier()
    variance = block_sum(squares, scratch) / N - mean * mean
    scale = fx.math.rsqrt(variance + eps)
    for s in fx.range_constexpr(STEPS):
        index = s * BLOCK + tid
        result = (values[s] - mean) * scale * read(weights, index) + read(biases, index)
        fragment = fx.make_rmem_tensor(VEC, fx.Float16)
        fragment.store(result.to(fx.Float16))
        fx.copy(atom, fragment, y_row[None, index])


@flyc.jit
def launch(X: fx.Tensor, W: fx.Tensor, B: fx.Tensor, Y: fx.Tensor, m: fx.Int32, eps: fx.Float32):
    layernorm_kernel(X, W, B, Y, eps).launch(grid=(m,), block=(BLOCK, 1, 1))


def arguments() -> tuple:
    rows, row = tensor((2048, N), np.float16), tensor((N,), np.float16)
    return rows, row, row, rows, 2048, 1e-5

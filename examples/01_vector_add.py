"""C = A + B in two dimensions: 128-bit copies through registers, tails guarded by coordinate predicates."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

ROWS, COL_THREADS = 16, 64  # a workgroup of 256 threads covers ROWS x (64 * vec) elements


@flyc.kernel
def vector_add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, vec: fx.Constexpr[int]):
    tile = (ROWS, COL_THREADS * vec)
    here = (None, (fx.block_idx.y, fx.block_idx.x))
    gA = fx.zipped_divide(A, tile)[here]  # (BM, BN)
    gB = fx.zipped_divide(B, tile)[here]
    gC = fx.zipped_divide(C, tile)[here]
    coords = fx.make_view((0, 0), fx.make_identity_layout(C.shape))
    cC = fx.zipped_divide(coords, tile)[here]

    atom = fx.make_copy_atom(fx.UniversalCopy(32 * vec), fx.Float32)
    threads, values = fx.make_layout((4, COL_THREADS), (COL_THREADS, 1)), fx.make_layout((1, vec), (1, 1))
    thr = fx.make_tiled_copy_tv(atom, threads, values).get_slice(fx.thread_idx.x)
    thr_A, thr_B, thr_C = thr.partition_S(gA), thr.partition_S(gB), thr.partition_D(gC)  # (V, M, N)
    thr_cC = thr.partition_D(cC)

    pred = fx.make_rmem_tensor((ROWS // 4, 1), fx.Boolean)
    for m in fx.range_constexpr(ROWS // 4):
        pred[m, 0] = fx.elem_less(thr_cC[0, m, 0], C.shape)

    frag_A, frag_B, frag_C = fx.make_fragment_like(thr_A), fx.make_fragment_like(thr_B), fx.make_fragment_like(thr_C)
    fx.copy(atom, thr_A, frag_A, pred=pred)
    fx.copy(atom, thr_B, frag_B, pred=pred)
    frag_C.store(frag_A.load() + frag_B.load())
    fx.copy(atom, frag_C, thr_C, pred=pred)


@flyc.jit
def launch(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    m: fx.Int32,
    n: fx.Int32,
    vec: fx.Constexpr[int],
    stream: fx.Stream = fx.Stream(None),
):
    grid = ((n + COL_THREADS * vec - 1) // (COL_THREADS * vec), (m + ROWS - 1) // ROWS)
    vector_add(A, B, C, vec).launch(grid=grid, block=(256, 1, 1), stream=stream)


def main() -> None:
    rng = np.random.default_rng(0)
    for m, n in [(1000, 4000), (33, 260), (5, 131), (1, 1)]:
        a, b = (rng.standard_normal((m, n), dtype=np.float32) for _ in range(2))
        c = np.full((m, n), np.nan, np.float32)
        vec = 4 if n % 4 == 0 else 1  # a row of odd length starts at any address
        launch(a, b, c, m, n, vec)
        if env.compile.compile_only:
            print(f"compiled vector add {m}x{n} f32, {32 * vec}-bit copies")
            continue
        error = np.abs(c - (a.astype(np.float64) + b)).max()
        assert error <= 1e-6, f"{m}x{n}: error {error}"
        print(f"PASS vector add {m}x{n} f32, {32 * vec}-bit copies: worst error {error:.1e}")


if __name__ == "__main__":
    main()

"""C = A * B^T in f16 with f32 accumulation, straight from global memory into the fragments of a tiled MMA; any M, N
and K.

Rows past the end of A and B lie outside their bounded buffers and load as 0. Columns past K, which in memory are the
next row's, and the border of C are masked by predicates made from coordinate tensors. Runs on gfx942 and gfx950.
"""

import os

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.runtime.device import get_rocm_arch
from flydsl.utils import env

BM, BN, BK = 64, 64, 32
BLOCK = 256


def masks(coords, calls, inside):
    """Return one predicate per copy: `inside` of the first coordinate that it moves. Shapes: coords ((V, calls), R, C),
    result (calls, R, C)."""
    _, rows, cols = (fx.size(m).to_py_value() for m in coords.shape)
    pred = fx.make_rmem_tensor((calls, rows, cols), fx.Boolean)
    for v in fx.range_constexpr(calls):
        for r in fx.range_constexpr(rows):
            for c in fx.range_constexpr(cols):
                pred[v, r, c] = inside(*coords[(0, v), r, c].unpack())
    return pred


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def gemm_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, m: fx.Int32, n: fx.Int32, k: fx.Int32, vec: fx.Constexpr[int]
):
    tid = fx.thread_idx.x
    bm, bn = fx.block_idx.x, fx.block_idx.y
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((2, 2, 1), (1, 2, 0))
    )
    thr_mma = mma.get_slice(tid)

    def tiles(t, shape, *block):
        """Return the tiles of a tensor that this workgroup works on, and their coordinates."""
        data = fx.rocdl.make_buffer_tensor(t, max_size=False)
        coords = fx.make_view((0, 0), fx.make_identity_layout((t.shape[0], t.shape[1])))
        here = (None, None, *block)
        return (fx.flat_divide(x, shape)[here] for x in (data, coords))

    gA, cA = tiles(A, (BM, BK), bm, None)  # (BM, BK, k)
    gB, cB = tiles(B, (BN, BK), bn, None)  # (BN, BK, k)
    gC, cC = tiles(C, (BM, BN), bm, bn)  # (BM, BN)

    load = fx.make_copy_atom(fx.rocdl.BufferCopy(16 * vec), fx.Float16)
    load_A = fx.make_tiled_copy_A(load, mma).get_slice(tid)
    load_B = fx.make_tiled_copy_B(load, mma).get_slice(tid)
    thr_gA, thr_cA = load_A.partition_S(gA), load_A.partition_S(cA)  # ((vec, 4 / vec), M, K, k)
    thr_gB, thr_cB = load_B.partition_S(gB), load_B.partition_S(cB)  # ((vec, 4 / vec), N, K, k)
    frag_A, frag_B = thr_mma.make_fragment_A(gA[None, None, 0]), thr_mma.make_fragment_B(gB[None, None, 0])
    frag_C = thr_mma.make_fragment_C(gC)
    frag_C.fill(0)

    for t in range(0, (k + BK - 1) // BK):
        frag_A.fill(0)
        frag_B.fill(0)
        in_k = lambda row, col: col < k
        pA = masks(thr_cA[None, None, None, t], 4 // vec, in_k)
        pB = masks(thr_cB[None, None, None, t], 4 // vec, in_k)
        fx.copy(load, thr_gA[None, None, None, t], load_A.retile(frag_A), pred=pA)
        fx.copy(load, thr_gB[None, None, None, t], load_B.retile(frag_B), pred=pB)
        fx.gemm(mma, frag_C, frag_A, frag_B, frag_C)

    store = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    store_C = fx.make_tiled_copy_C(store, mma).get_slice(tid)
    pC = masks(store_C.partition_D(cC), 4, lambda row, col: (row < m) & (col < n))
    fx.copy(store, store_C.retile(frag_C), store_C.partition_D(gC), pred=pC)


@flyc.jit
def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, m: fx.Int32, n: fx.Int32, k: fx.Int32, vec: fx.Constexpr[int]):
    grid = ((m + BM - 1) // BM, (n + BN - 1) // BN, 1)
    gemm_kernel(A, B, C, m, n, k, vec).launch(grid=grid, block=(BLOCK, 1, 1))


def main() -> None:
    if not get_rocm_arch().startswith("gfx9"):
        os.environ["FLYDSL_GPU_ARCH"] = os.environ["ARCH"] = "gfx942"
        print("this chip has no MFMA instructions: running for gfx942 in the simulator")
    rng = np.random.default_rng(6)
    for m, n, k in [(128, 192, 256), (65, 130, 100), (33, 17, 45), (1, 1, 1)]:
        a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
        c = np.full((m, n), np.nan, np.float32)
        gemm(a, b, c, m, n, k, 4 if k % 4 == 0 else 1)
        if env.compile.compile_only:
            print(f"compiled f16 GEMM {m}x{n}x{k}")
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        error = (np.abs(c - a @ b.T) / (np.abs(a) @ np.abs(b.T))).max()
        assert error <= k * 2**-24, f"{m}x{n}x{k}: error {error}"
        print(f"PASS f16 GEMM {m}x{n}x{k}: worst error {error:.1e} of sum |a*b|")


if __name__ == "__main__":
    main()

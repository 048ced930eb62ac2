"""C = A * B^T on the wave32 chips: one kernel, whose WMMA shape follows from the chip and the element type.

Tiles of A and B go through LDS in rows padded by 16 bytes, so that the lanes of a fragment read meet in no bank. M is
free (rows past the end lie outside the bounded buffers), N is a multiple of 64, K of 128 bytes. Runs on gfx1100,
gfx1201 and gfx1250.
"""

import ml_dtypes
import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.runtime.device import get_rocm_arch
from flydsl.utils import env

BM, BN, ROW_BYTES = 64, 64, 128
BLOCK = 128  # 2 x 2 waves of 32 lanes

F16, BF16, FP8, I8 = fx.Float16, fx.BFloat16, fx.Float8E4M3FN, fx.Int8
INSTRUCTION_K = {
    "gfx1100": {F16: 16, BF16: 16, I8: 16},
    "gfx1201": {F16: 16, BF16: 16, FP8: 16, I8: 16},
    "gfx1250": {F16: 32, BF16: 32, FP8: 128, I8: 64},
}
NUMPY = {F16: np.float16, BF16: ml_dtypes.bfloat16, FP8: ml_dtypes.float8_e4m3fn, I8: np.int8}


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def wmma_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, k_tiles: fx.Int32, inst_k: fx.Constexpr[int]):
    tid = fx.thread_idx.x
    bm, bn = fx.block_idx.x, fx.block_idx.y
    dtype, acc = A.dtype, C.dtype
    per_copy = 128 // dtype.width
    bk = ROW_BYTES * 8 // dtype.width

    signs = {"sign_a": True, "sign_b": True} if fx.const_expr(dtype is I8) else {}
    atom = fx.make_mma_atom(fx.rocdl.WMMA(16, 16, inst_k, dtype, acc, **signs))
    mma = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    thr_mma = mma.get_slice(tid)

    def tiles(t, shape, *block):
        here = (None, None, *block)
        return fx.flat_divide(fx.rocdl.make_buffer_tensor(t, max_size=False), shape)[here]

    gA, gB = tiles(A, (BM, bk), bm, None), tiles(B, (BN, bk), bn, None)  # (rows, BK, k)
    gC = tiles(C, (BM, BN), bm, bn)

    row = bk + per_copy
    lds = fx.SharedAllocator()
    sA = lds.allocate(fx.Array[dtype, BM * row, 16]).peek().view(fx.make_layout((BM, bk), (row, 1)))
    sB = lds.allocate(fx.Array[dtype, BN * row, 16]).peek().view(fx.make_layout((BN, bk), (row, 1)))

    lanes_per_row = bk // per_copy
    rows_by_lanes = fx.make_layout((BLOCK // lanes_per_row, lanes_per_row), (lanes_per_row, 1))
    load_atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), dtype)
    lds_atom = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
    load = fx.make_tiled_copy_tv(load_atom, rows_by_lanes, fx.make_layout((1, per_copy), (1, 1))).get_slice(tid)
    staged_A = fx.make_fragment_like(load.partition_S(gA[None, None, 0]))
    staged_B = fx.make_fragment_like(load.partition_S(gB[None, None, 0]))

    run = 16 if fx.const_expr(fx.rocdl.get_rocm_arch().startswith("gfx11")) else 8  # adjacent k of one row in a lane
    width = min(128, run * dtype.width)
    frag_atom = fx.make_copy_atom(fx.UniversalCopy(width), dtype)
    read_A = fx.make_tiled_copy_A(frag_atom, mma).get_slice(tid)
    read_B = fx.make_tiled_copy_B(frag_atom, mma).get_slice(tid)
    frag_A, frag_B, frag_C = thr_mma.make_fragment_A(sA), thr_mma.make_fragment_B(sB), thr_mma.make_fragment_C(gC)
    frag_C.fill(0)

    for t in range(0, k_tiles):
        fx.copy(load_atom, load.partition_S(gA[None, None, t]), staged_A)
        fx.copy(load_atom, load.partition_S(gB[None, None, t]), staged_B)
        fx.barrier()  # the last tile has been read
        fx.copy(lds_atom, staged_A, load.partition_D(sA))
        fx.copy(lds_atom, staged_B, load.partition_D(sB))
        fx.barrier()
        fx.copy(frag_atom, read_A.partition_S(sA), read_A.retile(frag_A))
        fx.copy(frag_atom, read_B.partition_S(sB), read_B.retile(frag_B))
        fx.gemm(mma, frag_C, frag_A, frag_B, frag_C)

    store_atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), acc)
    store = fx.make_tiled_copy_C(store_atom, mma).get_slice(tid)
    fx.copy(store_atom, store.retile(frag_C), store.partition_D(gC))


@flyc.jit
def wmma_gemm(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, m: fx.Int32, n: fx.Int32, k_tiles: fx.Int32, inst_k: fx.Constexpr[int]
):
    wmma_kernel(A, B, C, k_tiles, inst_k).launch(grid=((m + BM - 1) // BM, n // BN, 1), block=(BLOCK, 1, 1))


def check(arch: str, dtype: type[fx.Numeric], inst_k: int, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(8)
    if dtype is I8:
        a, b = (rng.integers(-128, 128, (rows, k), np.int8) for rows in (m, n))
        c = np.full((m, n), -1, np.int32)
    else:
        a, b = (rng.standard_normal((rows, k)).astype(NUMPY[dtype]) for rows in (m, n))
        c = np.full((m, n), np.nan, np.float32)
    wmma_gemm(a, b, c, m, n, k * a.itemsize // ROW_BYTES, inst_k)
    what = f"{arch} {dtype.__name__} GEMM {m}x{n}x{k} by WMMA 16x16x{inst_k}"
    if env.compile.compile_only:
        print(f"compiled {what}")
        return
    a, b = a.astype(np.float64), b.astype(np.float64)
    error = (np.abs(c - a @ b.T) / (np.abs(a) @ np.abs(b.T))).max()
    bound = 0 if dtype is I8 else k * 2**-24
    assert error <= bound, f"{arch} {dtype.__name__} {m}x{n}x{k}: error {error}"
    print(f"PASS {what}: worst error {error:.1e} of sum |a*b|")


def main() -> None:
    asked = get_rocm_arch()
    chips = [asked] if asked in INSTRUCTION_K else list(INSTRUCTION_K)
    if asked not in INSTRUCTION_K:
        print(f"{asked} has no WMMA instructions: running for {', '.join(chips)} in the simulator")
    for arch in chips:
        with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
            for dtype, inst_k in INSTRUCTION_K[arch].items():
                check(arch, dtype, inst_k, 100, 128, 256)


if __name__ == "__main__":
    main()

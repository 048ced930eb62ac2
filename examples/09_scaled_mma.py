"""C = A * B^T with microscaling (MX) operands on gfx950: FP4 or FP8 elements, one power-of-two scale per 32 values of
k.

One matrix instruction takes 128 values of k; each lane holds 32 of them, of one row, and one scale, that of 32 values
of its row. FP4 lanes hold 32 neighbours, FP8 lanes two runs of 16, 64 apart: `k_order` gives the tiled MMA that loads
an operand this order. A 32-bit register carries four scale bytes, so the host stores the scales such that the four
bytes which a lane needs for 512 values of k are one word: [row][K/512][lane group] [step]. Which byte counts (op-sel)
belongs to the instruction: `atom_callback` gives each step of `fx.gemm` its own. M is free, N is a multiple of 64, K
of 512.
"""

import ml_dtypes
import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.runtime.device import get_rocm_arch
from flydsl.utils import env

BM, BN, BK = 64, 64, 512
BLOCK = 256  # 2 x 2 waves
STEPS, GROUPS, PER_SCALE = 4, 4, 32

FORMATS = {"fp4": fx.Float4E2M1FN, "fp8": fx.Float8E4M3FN}
NUMPY = {"fp4": ml_dtypes.float4_e2m1fn, "fp8": ml_dtypes.float8_e4m3fn}


def k_order(fmt):
    """Return where in k the values of all lanes lie: (in a run, run, lane group) -> k."""
    return None if fmt == "fp4" else fx.make_layout((16, 2, GROUPS), (1, 64, 16))


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def scaled_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    scale_A: fx.Tensor,
    scale_B: fx.Tensor,
    C: fx.Tensor,
    k: fx.Int32,
    format_a: fx.Constexpr[str],
    format_b: fx.Constexpr[str],
):
    tid = fx.thread_idx.x
    bm, bn = fx.block_idx.x, fx.block_idx.y
    dtype_a, dtype_b = FORMATS[format_a], FORMATS[format_b]

    steps = [
        fx.make_mma_atom(fx.rocdl.MFMA_Scale(16, 16, 128, dtype_a, dtype_b, opsel_a=s, opsel_b=s)) for s in range(STEPS)
    ]
    waves = fx.make_layout((2, 2, 1), (1, 2, 0))
    mma_A, mma_B = (
        fx.make_tiled_mma(steps[0], waves, fx.make_tile(None, None, k_order(f))) for f in (format_a, format_b)
    )

    def elements(t, dtype, rows, block):
        """Return the tiles (rows, BK, k) of packed bytes seen as elements."""
        data = fx.rocdl.make_buffer_tensor(t, max_size=False)
        packed = fx.make_view(fx.recast_iter(dtype, data.iter), fx.make_layout((t.shape[0], k), (k, 1)))
        return fx.flat_divide(packed, (rows, BK))[None, None, block, None]

    gA, gB = elements(A, dtype_a, BM, bm), elements(B, dtype_b, BN, bn)
    gC = fx.flat_divide(fx.rocdl.make_buffer_tensor(C, max_size=False), (BM, BN))[None, None, bm, bn]
    words_A = fx.rocdl.make_buffer_tensor(scale_A, max_size=False)  # (M, K/512, lane group) of Int32
    words_B = fx.rocdl.make_buffer_tensor(scale_B, max_size=False)

    load_A = fx.make_tiled_copy_A(fx.make_copy_atom(fx.rocdl.BufferCopy128b(), dtype_a), mma_A)
    load_B = fx.make_tiled_copy_B(fx.make_copy_atom(fx.rocdl.BufferCopy128b(), dtype_b), mma_B)
    thr_A, thr_B = load_A.get_slice(tid), load_B.get_slice(tid)
    frag_A, frag_B = mma_A.make_fragment_A(gA[None, None, 0]), mma_B.make_fragment_B(gB[None, None, 0])
    frag_C = mma_A.make_fragment_C(gC)
    frag_C.fill(0)

    lane, wave = tid % 64, tid // 64
    row, group = lane % 16, lane // 16
    rows_A = [bm * BM + 16 * (2 * i + wave % 2) + row for i in range(BM // 32)]
    rows_B = [bn * BN + 16 * (2 * i + wave // 2) + row for i in range(BN // 32)]

    for t in range(0, k // BK):
        fx.copy(load_A, thr_A.partition_S(gA[None, None, t]), thr_A.retile(frag_A))
        fx.copy(load_B, thr_B.partition_S(gB[None, None, t]), thr_B.retile(frag_B))
        sA = [words_A[r, t, group] for r in rows_A]
        sB = [words_B[r, t, group] for r in rows_B]

        def with_scales(atom, mnk, sA=sA, sB=sB):
            m, n, step = mnk
            return steps[step].set_value({"scale_a": sA[m], "scale_b": sB[n]})

        fx.gemm(mma_A, frag_C, frag_A, frag_B, frag_C, atom_callback=with_scales)

    store = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    thr_C = fx.make_tiled_copy_C(store, mma_A).get_slice(tid)
    fx.copy(store, thr_C.retile(frag_C), thr_C.partition_D(gC))


@flyc.jit
def scaled_gemm(
    A: fx.Tensor,
    B: fx.Tensor,
    scale_A: fx.Tensor,
    scale_B: fx.Tensor,
    C: fx.Tensor,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    format_a: fx.Constexpr[str],
    format_b: fx.Constexpr[str],
):
    kernel = scaled_kernel(A, B, scale_A, scale_B, C, k, format_a, format_b)
    kernel.launch(grid=((m + BM - 1) // BM, n // BN, 1), block=(BLOCK, 1, 1))


def quantise(x: np.ndarray, fmt: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return packed elements, scale words as the kernel wants them, and the values that both stand for (float64)."""
    rows, k = x.shape
    blocks = x.reshape(rows, k // PER_SCALE, PER_SCALE)
    largest = {"fp4": 6.0, "fp8": 448.0}[fmt]
    exponent = np.ceil(np.log2(np.abs(blocks).max(axis=-1) / largest)).astype(np.int32)
    elements = np.ldexp(blocks, -exponent[..., None]).astype(NUMPY[fmt])
    values = np.ldexp(elements.astype(np.float64), exponent[..., None]).reshape(rows, k)
    codes = elements.reshape(rows, k).view(np.uint8)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4 if fmt == "fp4" else codes
    scales = (exponent + 127).astype(np.uint8).reshape(rows, k // BK, STEPS, GROUPS)
    words = np.ascontiguousarray(scales.swapaxes(2, 3)).view(np.int32)[..., 0]
    return np.ascontiguousarray(packed), words, values


def main() -> None:
    rng = np.random.default_rng(9)
    if get_rocm_arch() != "gfx950":
        print(f"{get_rocm_arch()} has no scaled MFMA instructions: running for gfx950 in the simulator")
    with env.override(ARCH="gfx950", FLYDSL_GPU_ARCH="gfx950"):
        for format_a, format_b, m, n, k in [
            ("fp4", "fp4", 128, 64, 1024),
            ("fp8", "fp8", 100, 128, 512),
            ("fp8", "fp4", 33, 64, 512),
        ]:
            spread = 2.0 ** rng.integers(-6, 7, (m, k // PER_SCALE))  # blocks of very different size
            a, words_a, true_a = quantise(rng.standard_normal((m, k)) * np.repeat(spread, PER_SCALE, axis=1), format_a)
            b, words_b, true_b = quantise(rng.standard_normal((n, k)), format_b)
            c = np.full((m, n), np.nan, np.float32)
            scaled_gemm(a, b, words_a, words_b, c, m, n, k, format_a, format_b)
            what = f"MX{format_a.upper()} x MX{format_b.upper()} GEMM {m}x{n}x{k}"
            if env.compile.compile_only:
                print(f"compiled {what}")
                continue
            error = (np.abs(c - true_a @ true_b.T) / (np.abs(true_a) @ np.abs(true_b.T))).max()
            assert error <= k * 2**-24, f"{format_a} x {format_b} {m}x{n}x{k}: error {error}"
            print(f"PASS {what}: worst error {error:.1e} of sum |a*b|")


if __name__ == "__main__":
    main()

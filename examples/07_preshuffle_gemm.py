"""C = A * B^T with B stored so that every lane loads its operands with 128-bit loads: f16, bf16, fp8 and i8 inputs,
16-bit output.

A goes through LDS, double buffered, its 16-byte pieces xor-swizzled by the row; B goes from global memory straight to
fragments. While one tile is multiplied, the next one is on its way: A into registers and, at the end of the step, into
the other LDS buffer; B into the other fragment. The loop does two steps per trip, so that buffers are known at compile
time; it carries where the next tiles begin by `init=`, and the fragments by itself. Scheduling hints interleave the
memory instructions with the matrix instructions. 8-bit inputs have a scale per row of A and per row of B.

With `dma` A goes to LDS without passing through registers. The unit writes a wave's data to consecutive addresses, so
it is the source that is swizzled: each lane fetches the piece that belongs to its place. The data is there once
`s_waitcnt(vmcnt=0)` and a barrier have passed.

M is free (rows past the end are outside the bounded buffers); N is a multiple of the tile's N, K of the tile's K.
gfx942 and gfx950.
"""

import ml_dtypes
import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.runtime.device import get_rocm_arch
from flydsl.utils import env

BLOCK = 256  # four waves side by side along N
LOAD_BYTES = 16


def k_permutation(inst_k, per_load):
    """Return how the k of a tile is dealt to instructions, such that one load of a lane feeds consecutive
    instructions."""
    per_lane = inst_k // 4
    steps = per_load // per_lane
    return None if steps == 1 else fx.make_layout((per_lane, 4, steps), (1, per_load, per_lane))


READ_AHEAD = 5  # LDS reads that are on their way while earlier ones are multiplied


def interleave(mfma, vmem, ds_read, ds_write):
    """Hint the order of one step: LDS reads a little ahead of their use, global loads in the middle, LDS writes at the
    end."""
    slots = [[0, 0, 0] for _ in range(mfma)]
    for i in range(ds_read):
        slots[max(0, i - READ_AHEAD) * mfma // ds_read][0] += 1
    for kind, count, first, last in ((1, vmem, 0.2, 0.8), (2, ds_write, 0.7, 1.0)):
        for i in range(count):
            slots[min(mfma - 1, int(mfma * (first + (last - first) * i / count)))][kind] += 1
    run = 0
    for reads, loads, writes in slots:
        if run and (reads or loads or writes):
            fx.rocdl.sched_mfma(run)
            run = 0
        for hint, count in ((fx.rocdl.sched_dsrd, reads), (fx.rocdl.sched_vmem, loads), (fx.rocdl.sched_dswr, writes)):
            if count:
                hint(count)
        run += 1
    fx.rocdl.sched_mfma(run)
    fx.rocdl.sched_barrier(0)


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    scale_A: fx.Tensor,
    scale_B: fx.Tensor,
    n: fx.Constexpr[int],
    k: fx.Constexpr[int],
    tile: fx.Constexpr[tuple],
    inst_k: fx.Constexpr[int],
    dma: fx.Constexpr[bool],
):
    tid = fx.thread_idx.x
    bm, bn = fx.block_idx.x, fx.block_idx.y
    TM, TN, TK = tile
    dtype, out = A.dtype, C.dtype
    is_int = dtype is fx.Int8
    acc = fx.Int32 if fx.const_expr(is_int) else fx.Float32
    per_load = LOAD_BYTES * 8 // dtype.width

    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, inst_k, dtype, acc))
    permutation = fx.make_tile(None, None, k_permutation(inst_k, per_load))
    mma = fx.make_tiled_mma(atom, fx.make_layout((1, 4, 1), (0, 1, 0)), permutation)
    thr_mma = mma.get_slice(tid)

    # B in memory: [N / 16][K / per_load][16][per_load], seen as (N, K)
    shuffled = fx.make_layout(((16, n // 16), (per_load, k // per_load)), ((per_load, 16 * k), (1, 16 * per_load)))
    buf_A, buf_B, buf_C = (fx.rocdl.make_buffer_tensor(t, max_size=False) for t in (A, B, C))
    gA = fx.flat_divide(buf_A, (TM, TK))[None, None, bm, None]  # (TM, TK, k)
    gB = fx.flat_divide(fx.make_view(buf_B.iter, shuffled), (TN, TK))[None, None, bn, None]  # (TN, TK, k)
    gC = fx.flat_divide(buf_C, (TM, TN))[None, None, bm, bn]  # (TM, TN)

    pieces = TK // per_load  # of a row, 16 bytes each
    bits = min(3, pieces.bit_length() - 1)
    swizzle = fx.static(fx.SwizzleType.get(bits, per_load.bit_length() - 1, pieces.bit_length() - 1))
    rows = fx.make_ordered_layout((TM, TK, 2), (1, 0, 2))
    lds = fx.SharedAllocator().allocate(fx.Array[dtype, 2 * TM * TK, 1024]).peek()
    sA = lds.view(fx.make_composed_layout(swizzle, rows))  # (TM, TK, 2)

    load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), dtype)
    move = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
    by_rows = fx.make_layout((BLOCK // pieces, pieces), (pieces, 1))
    thr_load = fx.make_tiled_copy_tv(load, by_rows, fx.make_layout((1, per_load), (1, 1))).get_slice(tid)
    thr_read = fx.make_tiled_copy_A(move, mma).get_slice(tid)
    thr_B = fx.make_tiled_copy_B(load, mma).get_slice(tid)

    thr_gA, thr_sA = thr_load.partition_S(gA), thr_load.partition_D(sA)  # (V, M, K, k), (V, M, K, 2)
    read_sA = thr_read.partition_S(sA)  # (V, M, K, 2)
    thr_gB = thr_B.partition_S(gB)  # (V, N, K, k)

    dma_bits = 128 if fx.rocdl.get_rocm_arch() == "gfx950" else 32
    if fx.const_expr(dma):
        direct = fx.make_copy_atom(fx.rocdl.BufferCopyLDS(dma_bits), dtype)
        per_lane, per_row = dma_bits // dtype.width, TK * dtype.width // dma_bits
        lanes = fx.make_layout((BLOCK // per_row, per_row), (per_row, 1))
        assert BLOCK // per_row % 2**bits == 0, "the rows of one pass must be whole periods of the swizzle"
        tiled = fx.make_tiled_copy_tv(direct, lanes, fx.make_layout((1, per_lane), (1, 1)))
        source = tid ^ (tid // per_row % 2**bits * (per_load // per_lane))
        thr_gA = tiled.get_slice(source).partition_S(gA)
        thr_sA = tiled.get_slice(tid).partition_D(lds.view(rows))

    staged_A = fx.make_fragment_like(thr_sA[None, None, None, 0])
    frag_A = thr_mma.make_fragment_A(sA[None, None, 0])
    frag_B = thr_mma.make_fragment_B(gB[None, None, 0], stages=2)
    frag_C = thr_mma.make_fragment_C(gC)
    into_A, into_B = thr_read.retile(frag_A), thr_B.retile(frag_B)
    step_A, step_B = fx.get_scalar(gA.stride[2]), fx.get_scalar(gB.stride[2])

    per_lane_loads = TK // (4 * per_load)
    steps = TK // inst_k // per_lane_loads  # instructions per load
    moves = TM * TK * dtype.width // (BLOCK * (dma_bits if dma else 128))
    counts = {
        "mfma": TM // 16 * (TN // 64) * (TK // inst_k),
        "vmem": moves + TN // 64 * per_lane_loads,
        "ds_read": TM // 16 * per_lane_loads,
        "ds_write": 0 if dma else moves,
    }

    def fetch(at_A, at_B, buffer):
        """Start loading a tile: A into registers or LDS, B into a fragment. Where it begins is uniform, so it goes into
        soffset."""
        if fx.const_expr(dma):
            fx.copy(direct, thr_gA[None, None, None, 0], thr_sA[None, None, None, buffer], soffset=at_A)
        else:
            fx.copy(load, thr_gA[None, None, None, 0], staged_A, soffset=at_A)
        fx.copy(load, thr_gB[None, None, None, 0], into_B[None, None, None, buffer], soffset=at_B)

    def arrive(buffer):
        """Have the tile that was fetched in LDS, for all waves to read."""
        if fx.const_expr(dma):
            fx.rocdl.s_waitcnt(vmcnt=0)
        else:
            fx.copy(move, staged_A, thr_sA[None, None, None, buffer])
        fx.barrier()

    def multiply(buffer):
        for s in fx.range_constexpr(per_lane_loads):
            fx.copy(move, read_sA[None, None, s, buffer], into_A[None, None, s])
            piece = (None, s) if steps > 1 and per_lane_loads > 1 else s if per_lane_loads > 1 else None
            order = fx.GemmTraversalOrder.NKM if steps > 1 else None
            fx.gemm(
                mma, frag_C, frag_A[None, None, piece], frag_B[None, None, piece, buffer], frag_C, traversal_order=order
            )

    def step(buffer, at_A, at_B):
        """Multiply the tile in `buffer` while the next one is fetched into the other."""
        fetch(at_A, at_B, 1 - buffer)
        multiply(buffer)
        arrive(1 - buffer)
        interleave(**counts)

    tiles = k // TK
    fetch(0, 0, 0)
    frag_C.fill(0)
    arrive(0)
    for _, (at_A, at_B) in fx.range(0, tiles - 2 + tiles % 2, 2, init=[step_A, step_B]):
        step(0, at_A, at_B)
        step(1, at_A + step_A, at_B + step_B)
        at_A, at_B = yield [at_A + 2 * step_A, at_B + 2 * step_B]
    if fx.const_expr(tiles % 2 == 0):
        step(0, at_A, at_B)
        multiply(1)
    else:
        multiply(0)

    values = frag_C.load()
    if fx.const_expr(dtype.width == 8):
        read = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
        thr_scale = fx.make_tiled_copy_C(read, mma).get_slice(tid)
        values = values.to(fx.Float32)
        for scale, stride in ((scale_A, (1, 0)), (scale_B, (0, 1))):
            buf = fx.rocdl.make_buffer_tensor(scale, max_size=False)
            spread = fx.make_view(buf.iter, fx.make_layout((A.shape[0], n), stride))
            factors = (
                thr_mma.make_fragment_C(gC) if fx.const_expr(not is_int) else fx.make_fragment_like(frag_C, fx.Float32)
            )
            tile_of = fx.flat_divide(spread, (TM, TN))[None, None, bm, bn]
            fx.copy(read, thr_scale.partition_S(tile_of), thr_scale.retile(factors))
            values = values * factors.load()
    store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), out)
    thr_store = fx.make_tiled_copy_C(store, mma).get_slice(tid)
    frag_out = fx.make_fragment_like(frag_C, out)
    frag_out.store(values.to(out))
    fx.copy(store, thr_store.retile(frag_out), thr_store.partition_D(gC))


@flyc.jit
def preshuffle_gemm(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    scale_A: fx.Tensor,
    scale_B: fx.Tensor,
    m: fx.Int32,
    n: fx.Constexpr[int],
    k: fx.Constexpr[int],
    tile: fx.Constexpr[tuple],
    inst_k: fx.Constexpr[int],
    dma: fx.Constexpr[bool] = False,
    stream: fx.Stream = fx.Stream(None),
):
    TM, TN, TK = tile
    assert n % TN == 0 and k % TK == 0, f"n = {n} and k = {k} are no multiples of the tile {tile}"
    kernel = gemm_kernel(A, B, C, scale_A, scale_B, n, k, tile, inst_k, dma)
    kernel.launch(grid=((m + TM - 1) // TM, n // TN, 1), block=(BLOCK, 1, 1), stream=stream)


def preshuffle(b: np.ndarray) -> np.ndarray:
    """Return B (N, K) in the order [N / 16][K / 16 bytes][16][16 bytes], shape kept."""
    n, k = b.shape
    per_load = LOAD_BYTES // b.itemsize
    blocks = b.reshape(n // 16, 16, k // per_load, per_load).swapaxes(1, 2)
    return np.ascontiguousarray(blocks).reshape(n, k)


def inputs(rng: np.random.Generator, dtype: type, m: int, n: int, k: int) -> list[np.ndarray]:
    """Return A, B and their scales."""
    if dtype is np.int8:
        a, b = (rng.integers(-128, 128, (rows, k), np.int8) for rows in (m, n))
    else:
        a, b = (rng.standard_normal((rows, k)).astype(dtype) for rows in (m, n))
    return [a, b, *(rng.uniform(0.5, 2, rows).astype(np.float32) / 64 for rows in (m, n))]


def main() -> None:
    arch = get_rocm_arch() if get_rocm_arch() in ("gfx942", "gfx950") else "gfx942"
    if arch != get_rocm_arch():
        print(f"{get_rocm_arch()} has no MFMA instructions: running for {arch} in the simulator")
    rng = np.random.default_rng(7)
    fp8 = ml_dtypes.float8_e4m3fnuz if arch == "gfx942" else ml_dtypes.float8_e4m3fn
    deep = 32 if arch == "gfx950" else 16  # gfx950 takes 32 values of k per f16 instruction
    cases = [
        (np.float16, np.float16, (64, 128, 64), deep, (100, 256, 384)),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, (32, 128, 128), deep, (70, 128, 512)),
        (fp8, ml_dtypes.bfloat16, (64, 128, 128), 32, (64, 256, 384)),
        (np.int8, np.float16, (16, 64, 256), 32, (33, 128, 512)),
    ]
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        for (dtype, out, tile, inst_k, (m, n, k)), dma in [*((case, False) for case in cases), (cases[0], True)]:
            a, b, scale_a, scale_b = inputs(rng, dtype, m, n, k)
            c = np.full((m, n), np.nan, out)
            preshuffle_gemm(a, preshuffle(b), c, scale_a, scale_b, m, n, k, tile, inst_k, dma)
            name, how = np.dtype(dtype).name, ", A by DMA" if dma else ""
            what = f"{name} preshuffled GEMM {m}x{n}x{k}, tile {tile}{how}"
            if env.compile.compile_only:
                print(f"compiled {what}")
                continue
            a, b = a.astype(np.float64), b.astype(np.float64)
            expected, magnitude = a @ b.T, np.abs(a) @ np.abs(b.T)
            if a.itemsize and np.dtype(dtype).itemsize == 1:
                scales = np.outer(scale_a, scale_b).astype(np.float64)
                expected, magnitude = expected * scales, magnitude * scales
            half_ulp = 2.0 ** (-8 if out is ml_dtypes.bfloat16 else -11)
            bound = half_ulp * np.abs(expected) + (k + 4) * 2**-24 * magnitude + 2.0**-24
            error = (np.abs(c.astype(np.float64) - expected) / bound).max()
            assert error <= 1, f"{name} {m}x{n}x{k}: {error} of the bound"
            print(f"PASS {what}: worst error {error:.2f} of the rounding bound")


if __name__ == "__main__":
    main()

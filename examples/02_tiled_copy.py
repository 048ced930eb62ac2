"""Transpose through LDS with tiled copies: a wave reads 64 neighbours of a source row and writes 64 neighbours of a result
row, so both sides of global memory are coalesced and the turn happens in LDS; then the same along columns. Tiles that
stick out are guarded by coordinate predicates."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

TILE = 64
PAD = 1  # a padded row starts in the next bank, so that columns are free of conflicts


@fx.struct
class Smem:
    tile: fx.Array[fx.Float32, TILE * (TILE + PAD), 16]


@flyc.kernel
def transpose(src: fx.Tensor, dst: fx.Tensor, along_rows: fx.Constexpr[bool]):
    bm, bn = fx.block_idx.y, fx.block_idx.x
    g_src = fx.zipped_divide(src, (TILE, TILE))[None, (bm, bn)]  # (BM, BN)
    g_dst = fx.zipped_divide(dst, (TILE, TILE))[None, (bn, bm)]
    smem = fx.SharedAllocator().allocate(Smem).peek()
    s_in = smem.tile.view(fx.make_layout((TILE, TILE), (TILE + PAD, 1)))
    s_out = smem.tile.view(fx.make_layout((TILE, TILE), (1, TILE + PAD)))  # the same memory, transposed

    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    threads = fx.make_layout((4, 64), (64, 1)) if along_rows else fx.make_layout((64, 4), (1, 64))
    one = fx.make_layout((1, 1), (1, 1))
    thread = fx.make_tiled_copy_tv(atom, threads, one).get_slice(fx.thread_idx.x)

    frag = fx.make_fragment_like(thread.partition_S(g_src))
    frag.fill(0.0)
    fx.copy(atom, thread.partition_S(g_src), frag, pred=inside(thread, src, (bm, bn)))
    fx.copy(atom, frag, thread.partition_D(s_in))
    fx.barrier()
    frag_out = fx.make_fragment_like(thread.partition_S(s_out))
    fx.copy(atom, thread.partition_S(s_out), frag_out)
    fx.copy(atom, frag_out, thread.partition_D(g_dst), pred=inside(thread, dst, (bn, bm)))


def inside(thread, tensor, tile):
    """Return which of the thread's elements of a tile lie in the tensor, one predicate per copy."""
    coords = fx.make_view((0, 0), fx.make_identity_layout(tensor.shape))
    mine = thread.partition_S(fx.zipped_divide(coords, (TILE, TILE))[None, tile])  # (one value, M, N)
    rows, cols = fx.get_scalar(mine.shape[1]), fx.get_scalar(mine.shape[2])
    pred = fx.make_rmem_tensor((rows, cols), fx.Boolean)
    for i in fx.range_constexpr(rows):
        for j in fx.range_constexpr(cols):
            pred[i, j] = fx.elem_less(mine[0, i, j], tensor.shape)
    return pred


@flyc.jit
def launch(src: fx.Tensor, dst: fx.Tensor, m: fx.Int32, n: fx.Int32, along_rows: fx.Constexpr[bool]):
    transpose(src, dst, along_rows).launch(grid=((n + TILE - 1) // TILE, (m + TILE - 1) // TILE), block=(256, 1, 1))


def main() -> None:
    rng = np.random.default_rng(1)
    for m, n in [(256, 512), (64, 192), (100, 63), (1, 1)]:
        for along_rows in (True, False):
            src = rng.standard_normal((m, n), dtype=np.float32)
            dst = np.full((n, m), np.nan, np.float32)
            launch(src, dst, m, n, along_rows)
            order = "along rows" if along_rows else "along columns"
            if env.compile.compile_only:
                print(f"compiled transpose {m}x{n} through LDS, {order}")
                continue
            error = np.abs(dst.astype(np.float64) - src.T).max()
            assert error == 0, f"{m}x{n}: error {error}"
            print(f"PASS transpose {m}x{n} through LDS, {order}: worst error {error:.1e}")


if __name__ == "__main__":
    main()

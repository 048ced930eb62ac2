"""Transpose through LDS with tiled copies, in both orders: rows in and columns out, and columns in and rows out."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx

TILE = 64
PAD = 1  # a padded row starts in the next bank, so that columns are free of conflicts


@fx.struct
class Smem:
    tile: fx.Array[fx.Float32, TILE * (TILE + PAD), 16]


@flyc.kernel
def transpose(src: fx.Tensor, dst: fx.Tensor, rows_first: fx.Constexpr[bool]):
    bm, bn = fx.block_idx.y, fx.block_idx.x
    g_src = fx.zipped_divide(src, (TILE, TILE))[None, (bm, bn)]  # (BM, BN)
    g_dst = fx.zipped_divide(dst, (TILE, TILE))[None, (bn, bm)]
    smem = fx.SharedAllocator().allocate(Smem).peek()
    s_in = smem.tile.view(fx.make_layout((TILE, TILE), (TILE + PAD, 1)))
    s_out = smem.tile.view(fx.make_layout((TILE, TILE), (1, TILE + PAD)))  # the same memory, transposed

    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    by_rows = fx.make_layout((4, 64), (64, 1))
    by_columns = fx.make_layout((64, 4), (1, 64))
    one = fx.make_layout((1, 1), (1, 1))
    cin = by_rows if rows_first else by_columns
    cout = by_rows if not rows_first else by_columns
    load = fx.make_tiled_copy_tv(atom, cin, one).get_slice(fx.thread_idx.x)
    store = fx.make_tiled_copy_tv(atom, cout, one).get_slice(fx.thread_idx.x)

    frag = fx.make_fragment_like(load.partition_S(g_src))
    fx.copy(atom, load.partition_S(g_src), frag)
    fx.copy(atom, frag, load.partition_D(s_in))
    fx.barrier()
    frag_out = fx.make_fragment_like(store.partition_S(s_out))
    fx.copy(atom, store.partition_S(s_out), frag_out)
    fx.copy(atom, frag_out, store.partition_D(g_dst))


@flyc.jit
def launch(src: fx.Tensor, dst: fx.Tensor, m: fx.Int32, n: fx.Int32, rows_first: fx.Constexpr[bool]):
    transpose(src, dst, rows_first).launch(grid=(n // TILE, m // TILE), block=(256, 1, 1))


def main() -> None:
    rng = np.random.default_rng(1)
    for m, n in [(256, 512), (64, 192)]:
        for rows_first in (True, False):
            src = rng.standard_normal((m, n), dtype=np.float32)
            dst = np.full((n, m), np.nan, np.float32)
            launch(src, dst, m, n, rows_first)
            error = np.abs(dst.astype(np.float64) - src.T).max()
            assert error == 0, f"{m}x{n}: error {error}"
            order = "rows in, columns out" if rows_first else "columns in, rows out"
            print(f"PASS transpose {m}x{n} through LDS, {order}: worst error {error:.1e}")


if __name__ == "__main__":
    main()

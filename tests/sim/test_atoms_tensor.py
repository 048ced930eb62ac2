"""Tiled tensor DMA (gfx1250) of tensors whose modes are merged, nested, repeated or of extent 1: the tile in LDS is
what NumPy's indexing says.
"""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.rocdl import cdna5
from flydsl.utils import env

SIZE = 4096
# name: (shape, stride, tile, tile coordinate, the tensor as NumPy sees it)
CASES = {
    "merged": ((8, 4, 64), (256, 64, 1), (2, 4, 64), (2, 0, 0), lambda x: x[:2048].reshape(8, 4, 64)),
    "middle": ((8, 8, 64), (512, 64, 1), (2, 8, 32), (1, 0, 1), lambda x: x.reshape(8, 8, 64)),
    "nested": (
        ((2, 32), 64),
        ((2048, 64), 1),
        (8, 32),
        (3, 1),
        lambda x: x.reshape(2, 32, 64).transpose(1, 0, 2).reshape(64, 64),
    ),
    "nested inside": (
        (32, (64, 2)),
        (64, (1, 2048)),
        (8, 64),
        (2, 1),
        lambda x: x.reshape(2, 32, 64).transpose(1, 0, 2).reshape(32, 128),
    ),
    "repeated": ((16, 64), (0, 1), (4, 64), (1, 0), lambda x: np.broadcast_to(x[:64], (16, 64))),
    "one": ((1, 64, 64), (4096, 64, 1), (1, 8, 64), (0, 5, 0), lambda x: x.reshape(1, 64, 64)),
    "past the end": (
        (6, 4, 64),
        (256, 64, 1),
        (4, 4, 64),
        (1, 0, 0),
        lambda x: np.pad(x[: 6 * 256].reshape(6, 4, 64), ((0, 2), (0, 0), (0, 0))),
    ),
}


@pytest.fixture(autouse=True)
def _chip():
    with env.override(ARCH="gfx1250", FLYDSL_GPU_ARCH="gfx1250"):
        yield


def row_major(shape):
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def atom_and_parts(A, which, warps, smem, op):
    """Return (atom, LDS part, part of the tensor) of this warp."""
    shape, stride, tile, at, _ = CASES[which]
    view = fx.make_view(fx.get_iter(A), fx.make_layout(shape, stride))
    lds = fx.make_layout(tile, row_major(tile))
    atom, coord = cdna5.make_tiled_tdm_atom(op, view, lds, tile, warps)
    whole = smem.view(fx.make_layout((tile, 1), (row_major(tile), 0)))
    tiles = fx.zipped_divide(coord, tile)
    s, g = cdna5.tdm_partition(atom, fx.rocdl.wave_id(), fx.make_layout(warps, 1), whole, tiles)
    return atom, s[None, 0], g[None, at]


@flyc.kernel
def load_kernel(A: fx.Tensor, C: fx.Tensor, which: fx.Constexpr[str], warps: fx.Constexpr[int], n: fx.Constexpr[int]):
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Float16, n, 128]).peek()
    atom, s, g = atom_and_parts(A, which, warps, smem, cdna5.TensorLoad())
    fx.copy(atom, g, s)
    fx.rocdl.s_wait_tensorcnt(0)
    fx.barrier()
    for i in range(fx.thread_idx.x, n, 32 * warps):
        C[i] = smem[i]


@flyc.kernel
def store_kernel(A: fx.Tensor, C: fx.Tensor, which: fx.Constexpr[str], warps: fx.Constexpr[int], n: fx.Constexpr[int]):
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Float16, n, 128]).peek()
    for i in range(fx.thread_idx.x, n, 32 * warps):
        smem[i] = C[i]
    fx.barrier()
    atom, s, g = atom_and_parts(A, which, warps, smem, cdna5.TensorStore())
    fx.copy(atom, s, g)
    fx.rocdl.s_wait_tensorcnt(0)


@flyc.jit
def launch(
    A: fx.Tensor,
    C: fx.Tensor,
    is_load: fx.Constexpr[bool],
    which: fx.Constexpr[str],
    warps: fx.Constexpr[int],
    n: fx.Constexpr[int],
):
    if fx.const_expr(is_load):
        load_kernel(A, C, which, warps, n).launch(grid=(1, 1, 1), block=(32 * warps, 1, 1))
    else:
        store_kernel(A, C, which, warps, n).launch(grid=(1, 1, 1), block=(32 * warps, 1, 1))


def tile_of(which, x):
    """Return the case's tile of the tensor over `x`."""
    _, _, tile, at, tensor = CASES[which]
    return tensor(x)[tuple(slice(a * t, (a + 1) * t) for a, t in zip(at, tile))]


@pytest.mark.parametrize("warps", [1, 2, 4])
@pytest.mark.parametrize("which", CASES)
def test_a_load_brings_the_tile(which, warps):
    a = np.random.default_rng(2).standard_normal(SIZE).astype(np.float16)
    expected = tile_of(which, a).reshape(-1)
    c = np.full(expected.size, 9, np.float16)
    launch(a, c, True, which, warps, expected.size)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("which", [c for c in CASES if c != "repeated"])
def test_a_store_writes_the_tile_and_nothing_else(which):
    a = np.zeros(SIZE, np.float16)
    n = tile_of(which, a).size
    c = np.random.default_rng(3).standard_normal(n).astype(np.float16)
    launch(a, c, False, which, 2, n)
    got = tile_of(which, a).reshape(-1)
    inside = got.size if which != "past the end" else got.size // 2
    np.testing.assert_array_equal(got[:inside], c[:inside])
    assert np.count_nonzero(a) == np.count_nonzero(c[:inside])

"""Tensor DMA atoms of gfx1250: tiles of odd-sized tensors through LDS and back, in the simulator and as instructions."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag.errors.simulator import SimFindings
from flydsl.expr.rocdl import cdna5
from flydsl.utils import env

TM, TN, WARPS = 64, 128, 4
BLOCK = 32 * WARPS


@pytest.fixture(autouse=True)
def _chip():
    with env.override(ARCH="gfx1250", FLYDSL_GPU_ARCH="gfx1250"):
        yield


def smem_layout(pad, stages=None):
    return fx.make_layout((TM, TN), (TN + pad, 1))


def through_registers(src, dst, dtype):
    """Copy a tile with 128-bit accesses."""
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
    lanes = fx.make_layout((8, 16), (16, 1))
    thr = fx.make_tiled_copy_tv(atom, lanes, fx.make_layout((1, 8), (1, 1))).get_slice(fx.thread_idx.x)
    frag = fx.make_fragment_like(thr.partition_S(src))
    fx.copy(atom, thr.partition_S(src), frag)
    fx.copy(atom, frag, thr.partition_D(dst))


def parts(atom, coord, smem, pad):
    """Return this warp's parts of LDS and of the tensor."""
    whole = smem.view(fx.make_layout(((TM, TN), 1), ((TN + pad, 1), 0)))
    tiles = fx.zipped_divide(coord, (TM, TN))
    return cdna5.tdm_partition(atom, fx.rocdl.wave_id(), fx.make_layout(WARPS, 1), whole, tiles)


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def tiled_load_kernel(A: fx.Tensor, C: fx.Tensor, pad: fx.Constexpr[int], waits: fx.Constexpr[bool]):
    bm, bn = fx.block_idx.x, fx.block_idx.y
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Float16, TM * (TN + pad), 128]).peek()
    atom, coord = cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), A, smem_layout(pad), (TM, TN), WARPS)
    ps, pg = parts(atom, coord, smem, pad)
    fx.copy(atom, pg[None, (bm, bn)], ps[None, 0])
    if fx.const_expr(waits):
        fx.rocdl.s_wait_tensorcnt(0)
    fx.barrier()
    through_registers(smem.view(smem_layout(pad)), fx.zipped_divide(C, (TM, TN))[None, (bm, bn)], fx.Float16)


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def tiled_store_kernel(A: fx.Tensor, C: fx.Tensor, pad: fx.Constexpr[int], waits: fx.Constexpr[bool]):
    bm, bn = fx.block_idx.x, fx.block_idx.y
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Float16, TM * TN, 128]).peek()
    through_registers(fx.zipped_divide(A, (TM, TN))[None, (bm, bn)], smem.view(smem_layout(0)), fx.Float16)
    fx.barrier()
    atom, coord = cdna5.make_tiled_tdm_atom(cdna5.TensorStore(), C, smem_layout(0), (TM, TN), WARPS)
    ps, pg = parts(atom, coord, smem, 0)
    fx.copy(atom, ps[None, 0], pg[None, (bm, bn)])
    fx.rocdl.s_wait_tensorcnt(0)


@flyc.kernel(known_block_size=(BLOCK, 1, 1))
def raw_kernel(A: fx.Tensor, C: fx.Tensor, pad: fx.Constexpr[int], waits: fx.Constexpr[bool]):
    bm, bn = fx.block_idx.x, fx.block_idx.y
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Float16, TM * (TN + pad), 128]).peek()
    s = smem.view(smem_layout(pad))
    m, n = fx.get_scalar(A.shape[0]), fx.get_scalar(A.shape[1])
    interval = {"pad_interval": TN, "pad_amount": pad} if fx.const_expr(pad > 0) else {}
    atom = cdna5.make_tdm_atom(A, (m - bm * TM, n - bn * TN), num_warps=WARPS, **interval)
    fx.copy(atom, fx.zipped_divide(A, (TM, TN))[None, (bm, bn)], smem.view(smem_layout(0)))
    fx.rocdl.s_wait_tensorcnt(0)
    fx.barrier()
    through_registers(s, fx.zipped_divide(C, (TM, TN))[None, (bm, bn)], fx.Float16)


KERNELS = {"tiled_load": tiled_load_kernel, "tiled_store": tiled_store_kernel, "raw": raw_kernel}


@flyc.jit
def launch(
    A: fx.Tensor,
    C: fx.Tensor,
    which: fx.Constexpr[str],
    pad: fx.Constexpr[int],
    waits: fx.Constexpr[bool],
    gm: fx.Int32,
    gn: fx.Int32,
):
    KERNELS[which](A, C, pad, waits).launch(grid=(gm, gn, 1), block=(BLOCK, 1, 1))


def isa_of(*args):
    artifact = launch.artifact_for(launch.wrap_arguments(args, {}))
    return artifact.codegen(("isa",)).isa


@pytest.mark.parametrize("which, pad", [("tiled_load", 0), ("tiled_load", 8), ("raw", 0), ("raw", 8)])
def test_load_fills_with_zeros_outside(which, pad):
    a = np.random.default_rng(1).standard_normal((100, 200)).astype(np.float16)
    c = np.full((128, 256), 7, np.float16)
    launch(a, c, which, pad, True, 2, 2)
    expected = np.zeros_like(c)
    expected[:100, :200] = a
    np.testing.assert_array_equal(c, expected)
    assert isa_of(a, c, which, pad, True, 2, 2).count("tensor_load_to_lds") == 1


def test_store_drops_what_is_outside():
    a = np.random.default_rng(2).standard_normal((128, 256)).astype(np.float16)
    c = np.full((100, 200), 7, np.float16)
    launch(a, c, "tiled_store", 0, True, 2, 2)
    np.testing.assert_array_equal(c, a[:100, :200])
    assert isa_of(a, c, "tiled_store", 0, True, 2, 2).count("tensor_store_from_lds") == 1


def test_a_missing_wait_is_reported():
    a, c = np.ones((64, 128), np.float16), np.zeros((64, 128), np.float16)
    with pytest.raises(Exception, match="tensorcnt|FLY_SIM"):
        launch(a, c, "tiled_load", 0, False, 1, 1)


def test_store_into_memory_that_may_only_be_read():
    a = np.ones((64, 128), np.float16)
    c = np.frombuffer(bytes(a.nbytes), np.float16).reshape(a.shape)
    with pytest.raises(SimFindings, match="write to `C`, which the host passed as read-only"):
        launch(a, c, "tiled_store", 0, True, 1, 1)
    assert not c.any()

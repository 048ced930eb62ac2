"""Kernels that mix the DSL with raw dialects, run in the simulator and compared with NumPy."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import arith, fly, llvm, scf, vector
from flydsl._mlir.extras import types as T
from flydsl.expr import buffer_ops
from flydsl.utils import env

LANES = 64


def _store(pointer, index, value):
    """Raw store of an i32 at a run-time index."""
    at = buffer_ops.get_element_ptr(pointer, index * 4)
    llvm.StoreOp(value, at, alignment=4)


@flyc.kernel
def guarded(src: fx.Tensor, dst: fx.Tensor, n: fx.Int32):
    """Raw pointers, a hand-built guard with DSL ops inside, a hand-built loop, an atomic."""
    lane = fx.thread_idx.x
    base = fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr<1>"), dst)
    loop = scf.ForOp(0, arith.IndexCastOp(T.index(), n).result, 1, [fx.Int32(0)])
    with ir.InsertionPoint(loop.body):
        i = fx.Int32(loop.induction_variable)
        scf.YieldOp([loop.inner_iter_args[0] + i * i])
    guard = scf.IfOp(lane < n)
    with ir.InsertionPoint(guard.then_block):
        x = src[lane]
        _store(base, lane, x * 3 + loop.results[0])
        llvm.AtomicRMWOp(
            llvm.AtomicBinOp.add, base_at(base, LANES), x, llvm.AtomicOrdering.monotonic, syncscope="agent"
        )
        scf.YieldOp([])


def base_at(base, index):
    return buffer_ops.get_element_ptr(base, index * 4)


@flyc.jit
def launch_guarded(src: fx.Tensor, dst: fx.Tensor, n: fx.Int32):
    guarded(src, dst, n).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


@pytest.mark.parametrize("n", [0, 1, 40, 64])
def test_hand_built_guard_loop_and_atomic(n):
    src = np.arange(1, LANES + 1, dtype=np.int32)
    dst = np.full(LANES + 1, -1, np.int32)
    dst[LANES] = 100
    launch_guarded(src, dst, n)
    want = np.full(LANES + 1, -1, np.int32)
    want[:n] = src[:n] * 3 + sum(i * i for i in range(n))
    want[LANES] = 100 + src[:n].sum()
    np.testing.assert_array_equal(dst, want)


@flyc.kernel
def by_vectors(src: fx.Tensor, dst: fx.Tensor):
    """Copies whose register side is a vector; odd lanes are masked."""
    lane = fx.thread_idx.x
    load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Int32)
    store = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Int32)
    div = fx.logical_divide(fx.rocdl.make_buffer_tensor(src), fx.make_layout(4, 1))
    vec = fx.Vector.make_type(4, fx.Int32)
    even = (lane & 1) == 0
    got = fly.copy_atom_call_ssa([vec], load, fx.slice(div, (None, lane)), pred=even)
    got = vector.shuffle(got, got, [3, 2, 1, 0])
    out = fx.logical_divide(dst, fx.make_layout(4, 1))
    fly.copy_atom_call_ssa([], store, fx.Vector(got) + 1, dst=fx.slice(out, (None, lane)))


@flyc.jit
def launch_by_vectors(src: fx.Tensor, dst: fx.Tensor):
    by_vectors(src, dst).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def test_copies_by_vectors():
    src = np.arange(LANES * 4, dtype=np.int32)
    dst = np.zeros_like(src)
    launch_by_vectors(src, dst)
    want = src.reshape(LANES, 4)[:, ::-1].copy()
    want[1::2] = 0
    np.testing.assert_array_equal(dst.reshape(LANES, 4), want + 1)


@flyc.kernel
def by_matrix(a: fx.Tensor, b: fx.Tensor, d: fx.Tensor, raw: fx.Constexpr[bool]):
    """One 16x16x16 product from vectors, by the atom and by the raw instruction."""
    lane = fx.thread_idx.x
    row, block = lane % 16, lane // 16
    va = fx.Vector.from_elements([a[row * 16 + block * 4 + j] for j in range(4)], fx.Float16)
    vb = fx.Vector.from_elements([b[row * 16 + block * 4 + j] for j in range(4)], fx.Float16)
    zero = fx.Vector.filled(4, 0.0, fx.Float32)
    result = fx.Vector.make_type(4, fx.Float32)
    if fx.const_expr(raw):
        acc = fx.rocdl.mfma_f32_16x16x16f16(result, [va, vb, zero, 0, 0, 0])
    else:
        acc = fly.mma_atom_call_ssa([result], fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), va, vb, zero)
    acc = fx.Vector(acc)
    for j in fx.range_constexpr(4):
        d[(block * 4 + j) * 16 + row] = acc[j]


@flyc.jit
def launch_by_matrix(a: fx.Tensor, b: fx.Tensor, d: fx.Tensor, raw: fx.Constexpr[bool]):
    by_matrix(a, b, d, raw).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


@pytest.mark.parametrize("raw", [False, True])
def test_matrix_instruction_on_vectors(raw):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, (16, 16)).astype(np.float16) for _ in range(2))
    d = np.zeros((16, 16), np.float32)
    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942"):
        launch_by_matrix(a.reshape(-1), b.reshape(-1), d.reshape(-1), raw)
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)


@flyc.kernel
def exchanged(src: fx.Tensor, dst: fx.Tensor):
    """Lane exchange and byte permutes on raw and DSL values."""
    lane = fx.thread_idx.x
    x = src[lane]
    total = fx.rocdl.readfirstlane(fx.Int32, x) + fx.rocdl.readlane(fx.T.i32, x, 5)
    mirrored = fx.rocdl.ds_bpermute(fx.T.i32, (63 - lane) * 4, x)
    shifted = fx.rocdl.update_dpp(fx.T.i32, fx.Int32(0), x, 0x111, 0xF, 0xF, True)
    votes = fx.rocdl.ballot(fx.T.i64, x > 10)
    swapped = fx.rocdl.perm_b32(x, x, fx.Int32(0x00010203))
    for j, value in enumerate((total, mirrored, shifted, fx.Int64(votes).to(fx.Int32), swapped)):
        dst[lane * 5 + j] = fx.Int32(value)


@flyc.jit
def launch_exchanged(src: fx.Tensor, dst: fx.Tensor):
    exchanged(src, dst).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def test_lane_exchange():
    src = (np.arange(LANES, dtype=np.int32) * 0x01020301) ^ 7
    dst = np.zeros(LANES * 5, np.int32)
    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942"):
        launch_exchanged(src, dst)
    got = dst.reshape(LANES, 5)
    np.testing.assert_array_equal(got[:, 0], np.full(LANES, src[0] + src[5], np.int32))
    np.testing.assert_array_equal(got[:, 1], src[::-1])
    np.testing.assert_array_equal(got[:, 2], np.where(np.arange(LANES) % 16 == 0, 0, np.roll(src, 1)))
    votes = sum(1 << i for i in range(32) if src[i] > 10)
    np.testing.assert_array_equal(got[:, 3].view(np.uint32), np.full(LANES, votes, np.uint32))
    np.testing.assert_array_equal(got[:, 4], src.byteswap())


@flyc.kernel
def through_buffers(src: fx.Tensor, dst: fx.Tensor, n: fx.Int32):
    """Raw buffer accesses: bounds by the resource, masks, narrow elements, scalar loads."""
    lane = fx.thread_idx.x
    rsrc = buffer_ops.create_buffer_resource(src, num_records_bytes=n * 2)
    out = buffer_ops.create_buffer_resource(dst, max_size=False)
    pair = buffer_ops.buffer_load(rsrc, lane * 2, 2, fx.Int16)
    one = buffer_ops.buffer_load(rsrc, lane, 1, fx.Int16, mask=lane > 3)
    uniform = fx.rocdl.s_buffer_load(fx.get_iter(fx.rocdl.make_buffer_tensor(src)), 2)
    total = pair[0].to(fx.Int32) + pair[1].to(fx.Int32) * 1000 + one.to(fx.Int32) * 1000000 + uniform
    buffer_ops.buffer_store(total, out, lane, mask=lane != 7)
    buffer_ops.buffer_store(total, out, lane + 1000)  # out of range: dropped


@flyc.jit
def launch_through_buffers(src: fx.Tensor, dst: fx.Tensor, n: fx.Int32):
    through_buffers(src, dst, n).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def test_buffers():
    n = 100  # whole dwords: the hardware checks each dword of an access as a whole
    src = (np.arange(2 * LANES) % 90).astype(np.int16)
    dst = np.full(LANES, -5, np.int32)
    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942"):
        launch_through_buffers(src, dst, n)
    bounded = np.where(np.arange(2 * LANES) < n, src, 0).astype(np.int64)
    lanes = np.arange(LANES)
    uniform = int(src[2:4].view(np.int32)[0])
    want = bounded[::2] + bounded[1::2] * 1000 + np.where(lanes > 3, bounded[:LANES], 0) * 1000000 + uniform
    want = want.astype(np.int32)
    want[7] = -5
    np.testing.assert_array_equal(dst, want)

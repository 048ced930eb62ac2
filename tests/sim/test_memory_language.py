"""Loads, copies, atomics, shuffles, LDS and structs as kernels write them, against NumPy."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl.compiler import CompilationContext
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import SmemAllocator, SmemPtr

L = fx.make_layout
LANES = np.arange(64)


def launched(kernel, threads: int = 64, blocks: int = 1):
    """Return a function that launches `kernel` on its arrays."""

    @flyc.jit
    def run3(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor):
        kernel(a, b, c).launch(grid=(blocks, 1, 1), block=(threads, 1, 1))

    return run3


@flyc.kernel
def atomics(counts: fx.Tensor, floats: fx.Tensor, old: fx.Tensor):
    tid = fx.thread_idx.x
    p, f = fx.get_iter(counts), fx.get_iter(floats)
    old[tid] = fx.atomic_add(p, fx.Int32(2))
    fx.atomic_max(p + 1, tid)
    fx.atomic_min(p + 2, tid - 5)
    fx.atomic_max(p + 3, fx.Uint32(0) - (tid + 1).to(fx.Uint32))
    fx.atomic_or(p + 4, fx.Int32(1) << (tid % 32))
    fx.atomic_fmax(f, tid.to(fx.Float32), is_positive=True)
    fx.atomic_fmin(f + 1, (tid + 1).to(fx.Float32) * -1.0, is_positive=False)
    fx.atomic_add(f + 2, fx.Float32(0.5))
    _, swapped = fx.atomic_cas(p + 5, fx.Int32(0), tid + 1)
    if swapped:
        fx.atomic_add(p + 6, fx.Int32(1))


def test_atomics():
    counts, floats, old = np.zeros(8, np.int32), np.array([0, -1, 0, 0], np.float32), np.zeros(64, np.int32)
    launched(atomics)(counts, floats, old)
    assert sorted(old) == list(range(0, 128, 2))
    assert list(counts[:5]) == [128, 63, -5, -1, -1]  # unsigned maximum of -1..-64 is 0xFFFFFFFF
    assert counts[5] != 0 and counts[6] == 1
    assert list(floats[:3]) == [63.0, -64.0, 32.0]


@flyc.kernel
def shuffles(ints: fx.Tensor, halves: fx.Tensor, wide: fx.Tensor):
    tid = fx.thread_idx.x
    ints[tid] = fx.gpu.shuffle_xor(tid * 3, 5, 64)
    halves[tid] = fx.gpu.shuffle(tid.to(fx.Float16), 63 - tid, 64, mode="idx")
    wide[tid] = fx.gpu.shuffle_up(tid.to(fx.Int64) * (1 << 33) - 7, 1, 64)


def test_shuffles_of_all_widths():
    ints, halves, wide = np.zeros(64, np.int32), np.zeros(64, np.float16), np.zeros(64, np.int64)
    launched(shuffles)(ints, halves, wide)
    assert np.array_equal(ints, (LANES ^ 5) * 3)
    assert np.array_equal(halves, (63 - LANES).astype(np.float16))
    assert np.array_equal(wide, np.maximum(LANES - 1, 0).astype(np.int64) * (1 << 33) - 7)


@fx.struct
class Tiles:
    a: fx.Array[fx.Float32, 64, 16]
    flag: fx.Int32
    b: fx.Array[fx.Float32, 64]


@pytest.mark.parametrize("static", [True, False])
def test_lds_of_a_struct(static):
    @flyc.kernel
    def through_lds(x: fx.Tensor, y: fx.Tensor, flags: fx.Tensor):
        tid = fx.thread_idx.x
        tiles = fx.SharedAllocator(static=static).allocate(Tiles)
        a, b = tiles.a.peek(), tiles.b.peek()
        a[tid] = x[tid]
        b[63 - tid] = x[tid]
        if tid == 7:
            tiles.flag.poke(fx.Int32(42))
        fx.barrier()
        y[tid] = a.view(L(64, 1))[63 - tid] + b[tid]
        flags[tid] = tiles.flag.peek()

    x = np.arange(64, dtype=np.float32)
    y, flags = np.zeros(64, np.float32), np.zeros(64, np.int32)
    launched(through_lds)(x, y, flags)
    assert np.array_equal(y, 2 * x[::-1])
    assert set(flags) == {42}


def test_union_overlays_its_fields():
    @fx.union
    class Bits:
        f: fx.Array[fx.Float32, 64]
        i: fx.Array[fx.Int32, 64]

    @flyc.kernel
    def bits_of(x: fx.Tensor, y: fx.Tensor, _: fx.Tensor):
        tid = fx.thread_idx.x
        both = fx.SharedAllocator().allocate(Bits)
        both.f.peek()[tid] = x[tid]
        fx.barrier()
        y[tid] = both.i.peek()[tid]

    x, y = np.linspace(-3, 3, 64, dtype=np.float32), np.zeros(64, np.int32)
    launched(bits_of)(x, y, np.zeros(1, np.float32))
    assert np.array_equal(y, x.view(np.int32))


@pytest.mark.filterwarnings("ignore:SmemAllocator")
def test_legacy_smem():
    allocator = SmemAllocator(None)
    offset = allocator._align(allocator.ptr, 16)
    allocator.ptr = offset + 64 * 4

    @flyc.kernel
    def reversed_by_lds(x: fx.Tensor, y: fx.Tensor, _: fx.Tensor):
        tid = fx.thread_idx.x
        s = SmemPtr(allocator.get_base(), offset, T.f32, shape=(64,))
        s.store(x[tid], [tid])
        fx.barrier()
        v = fx.Vector.load(fx.Vector.make_type(4, fx.Float32), s.get(), [fx.Index(tid // 16 * 4)])
        y[tid] = fx.Float32(s.load([63 - tid])) + v[1]

    @flyc.jit
    def run(x: fx.Tensor, y: fx.Tensor, z: fx.Tensor):
        with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
            allocator.finalize()
        reversed_by_lds(x, y, z).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(x, y, np.zeros(1, np.float32))
    assert np.array_equal(y, x[::-1] + x[LANES // 16 * 4 + 1])


# --- copies ------------------------------------------------------------------------------------------------------------------


@flyc.kernel
def guarded(x: fx.Tensor, y: fx.Tensor, _: fx.Tensor):
    """Copy a ragged (M, N) matrix with predicates from a coordinate tensor."""
    tid = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    thr = fx.make_tiled_copy_tv(atom, L((8, 8), (8, 1)), L((2, 1), (1, 1))).get_slice(tid)
    coords = fx.make_view((0, 0), fx.make_identity_layout((20, 11)))
    src, dst, where = thr.partition_S(x), thr.partition_D(y), thr.partition_S(coords)
    pred = fx.make_rmem_tensor(where.shape, fx.Boolean)
    for i in fx.range_constexpr(fx.size(where).to_py_value()):
        pred[i] = fx.elem_less(where[i], (20, 11))
    registers = fx.make_fragment_like(src)
    registers.fill(-1.0)
    fx.copy(atom, src, registers, pred=pred)
    registers.store(registers.load() * 2.0)
    fx.copy(atom, registers, dst, pred=pred)


def test_predicates_guard_every_element():
    x = np.arange(220, dtype=np.float32).reshape(20, 11)
    y = np.full((24, 16), -5, np.float32)
    launched(guarded)(flyc.from_dlpack(x), flyc.from_dlpack(y[:20, :11]), np.zeros(1, np.float32))
    assert np.array_equal(y[:20, :11], 2 * x)
    assert (y[20:] == -5).all() and (y[:, 11:] == -5).all()


@flyc.kernel
def row_of_each(table: fx.Tensor, rows: fx.Tensor, out: fx.Tensor):
    tid = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    offsets = fx.make_rmem_tensor(2, fx.Int32)
    offsets[0], offsets[1] = rows[tid] * 8, rows[tid] * 8 + 4
    data = fx.make_rmem_tensor(L((4, 2), (1, 4)), fx.Float32)
    data = fx.make_view(data.iter, L(((4, 2),), ((1, 4),)))
    fx.gather(atom, fx.get_iter(table), offsets, data)
    mine = fx.make_rmem_tensor(2, fx.Int32)
    mine[0], mine[1] = tid * 8 + 4, tid * 8
    fx.scatter(atom, data, fx.get_iter(out), mine)


def test_gather_and_scatter():
    rng = np.random.default_rng(1)
    table, rows = rng.random((32, 8), np.float32), rng.integers(0, 32, 64).astype(np.int32)
    out = np.zeros((64, 8), np.float32)
    launched(row_of_each)(table, rows, out)
    assert np.array_equal(out, np.concatenate([table[rows][:, 4:], table[rows][:, :4]], axis=1))


@flyc.kernel
def wide_from_single(x: fx.Tensor, y: fx.Tensor, _: fx.Tensor):
    tid = fx.thread_idx.x
    singles = fx.logical_divide(fx.rocdl.make_buffer_tensor(x), L(1, 1))
    registers = fx.make_rmem_tensor(4, fx.Float16)
    fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy64b(), 16), fx.slice(singles, (None, tid * 4)), registers)
    out = fx.logical_divide(y, L(1, 1))
    fx.copy_atom_call(fx.make_copy_atom(fx.UniversalCopy64b(), 16), registers, fx.slice(out, (None, 252 - tid * 4)))


def test_a_single_element_stands_for_an_address():
    x, y = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    launched(wide_from_single)(x, y, np.zeros(1, np.float32))
    assert np.array_equal(y.reshape(64, 4), x.reshape(64, 4)[::-1])


def test_memory_of_another_width_is_moved_as_bits_with_a_warning():
    @flyc.kernel
    def pairs(x: fx.Tensor, y: fx.Tensor, _: fx.Tensor):
        tid = fx.thread_idx.x
        registers = fx.make_rmem_tensor(4, fx.Float16)
        atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
        fx.copy(atom, fx.make_view(fx.get_iter(x) + tid * 2, L(4, 1)), registers)
        fx.copy(atom, registers, fx.make_view(fx.get_iter(y) + tid * 4, L(4, 1)))

    x, y = np.arange(1, 129, dtype=np.float32), np.zeros(256, np.float16)
    with pytest.warns(UserWarning, match="holds f32: each call moves 64 bits"):
        launched(pairs)(x, y, np.zeros(1, np.float32))
    assert np.array_equal(y, x.view(np.float16))


# --- matrix operations -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [None, fx.GemmTraversalOrder.KMN_Serpentine])
@pytest.mark.parametrize("callback", [False, True])
def test_gemm_of_fragments(order, callback):
    seen = []

    @flyc.kernel
    def product(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor):
        tid = fx.thread_idx.x
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), L((2, 2, 1), (1, 2, 0)))
        thr = mma.get_slice(tid)
        copies = [
            make(fx.make_copy_atom(fx.UniversalCopy16b(), fx.Float16), mma)
            for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B)
        ]
        fragments = [thr.make_fragment_A(a), thr.make_fragment_B(b)]
        for tiled, tensor, fragment in zip(copies, (a, b), fragments):
            part = tiled.get_slice(tid)
            fx.copy(tiled, part.partition_S(tensor), part.retile(fragment))
        start, result = thr.make_fragment_C(c), thr.make_fragment_C(c)
        start.fill(1.0)
        options = {"atom_callback": lambda atom, step: seen.append(step) or atom} if callback else {}
        fx.gemm(mma, result, *fragments, start, traversal_order=order, **options)
        out = fx.make_tiled_copy_C(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), mma).get_slice(tid)
        fx.copy(out._tiled, out.retile(result), out.partition_D(c))

    rng = np.random.default_rng(2)
    a, b = rng.random((64, 48)).astype(np.float16), rng.random((32, 48)).astype(np.float16)
    c = np.zeros((64, 32), np.float32)
    launched(product, threads=256)(*(flyc.from_dlpack(t) for t in (a, b, c)))
    exact = a.astype(np.float64) @ b.astype(np.float64).T + 1
    assert np.abs(c - exact).max() <= 48 * 2**-24 * np.abs(exact).max()
    assert len(seen) == (2 * 1 * 3 if callback else 0)


# --- structs as arguments ----------------------------------------------------------------------------------------------------------


@fx.struct
class Params:
    steps: fx.Constexpr[int]
    scale: fx.Float32
    start: fx.Int32


def test_struct_argument_and_carry():
    @flyc.kernel
    def accumulate(y: fx.Tensor, p: Params):
        tid = fx.thread_idx.x
        state = p
        for _ in fx.range_constexpr(p.steps):
            for _i in range(3):
                state = state.replace(start=state.start + 1)
        y[tid] = state.scale * state.start.to(fx.Float32)

    @flyc.jit
    def run(y: fx.Tensor, scale: fx.Float32):
        accumulate(y, Params(steps=2, scale=scale, start=fx.Int32(5))).launch(grid=(1, 1, 1), block=(64, 1, 1))

    y = np.zeros(64, np.float32)
    run(y, 0.5)
    assert set(y) == {0.5 * (5 + 6)}

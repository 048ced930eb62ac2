"""Faults of kernels that users reported (kind kernel numerics, and tooling that should have shown them): the simulator names each, and stays
silent where the kernel is sound.

Each test is named after the report's id; `Fails if` names the change to our code that would bring the fault back.
"""

import itertools
import mmap

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env

from .kernels import run

SCHEDULES = ("lockstep", "ahead", "reverse", "random:7")


def marked(body, mark: str = "# <-") -> set[int]:
    """Return the lines of `body` that end with a mark."""
    import inspect

    lines, first = inspect.getsourcelines(body)
    return {first + i for i, line in enumerate(lines) if line.rstrip().endswith(mark)}


def fault(body, code: str, *args, **kwargs) -> str:
    """Run a broken kernel and return the text of its finding, which must name the lines marked `# <-`."""
    with pytest.raises(FlyError) as e:
        run(body, *args, **kwargs)
    text = str(e.value)
    assert code in text, text
    assert e.value.span.line in marked(body), text
    for line in marked(body):
        assert f"{line}" in text, text
    return text


def test_R066_truncated_tiles_leave_stale_lds():
    """Fails if LDS counts as written when it is allocated (`targets.sim.lds`)."""

    def kernel(tile: int):
        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 176]).peek()
            for k in fx.range_constexpr(tile // 64):  # rounds down: 112 elements are loaded as 64
                lds[fx.thread_idx.x + 64 * k] = x[fx.thread_idx.x + 64 * k]
            fx.barrier()
            total = fx.Float32(0.0)
            for k in range(tile // 16):
                total = total + lds[(fx.thread_idx.x % 16) + k * 16]  # <-
            out[fx.thread_idx.x] = total

        return body

    for tile in (112, 144, 176):
        assert "nothing wrote" in fault(kernel(tile), "FLY_SIM_UNINIT")
    assert (run(kernel(128)) == np.tile(np.arange(128).reshape(8, 16).sum(0), 4)).all()


def test_R067_blocks_that_overwrite_one_another():
    """Fails if writes of two workgroups to one address with different values are not compared (`sanitize.race_global`)."""

    def padded(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[fx.block_idx.x * 12 + fx.thread_idx.x] = fx.Float32(fx.block_idx.x)  # <-

    text = fault(padded, "FLY_SIM_RACE", grid=3, block=16)
    assert "block" in text

    def sound(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x < 12:
            out[fx.block_idx.x * 12 + fx.thread_idx.x] = fx.Float32(fx.block_idx.x)

    assert (run(sound, grid=3, block=16)[:36] == np.repeat([0, 1, 2], 12)).all()


def test_R068_grid_swizzles_cover_every_tile_once():
    """Fails if two workgroups on one tile, or a tile outside the tensor, go unnoticed."""

    def kernel(group_checked: bool):
        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            rows, group = n, 4
            pid, cols = fx.block_idx.x, 3
            first = pid // (group * cols) * group
            size = fx.min(rows - first, group) if group_checked else fx.Int32(group)
            row, col = first + pid % (group * cols) % size, pid % (group * cols) // size
            out[row * cols + col] = fx.Float32(pid)  # <-

        return body

    for rows in (1, 3, 4, 6, 13, 20):
        out = run(kernel(True), n=rows, out=np.full(rows * 3, -1, np.float32), grid=rows * 3, block=1)
        assert sorted(out) == list(range(rows * 3))
        if rows % 4:
            with pytest.raises(FlyError, match="FLY_SIM_(BOUNDS|RACE)"):
                run(kernel(False), n=rows, out=np.full(rows * 3, -1, np.float32), grid=rows * 3, block=1)


def sparse(nbytes: int) -> np.ndarray:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), np.uint8)


def test_R069_the_end_of_three_gigabytes():
    """Fails if addresses are formed in 32 bits; the byte after the end must be a fault, not another tensor."""
    data = sparse(3 << 30).view(np.float32)
    data[-1] = 2.5
    tall = data.reshape(3 << 10, 1 << 18)

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x == 0:
            out[0] = x[n, (1 << 18) - 1]  # <-

    assert run(body, tall, (3 << 10) - 1)[0] == 2.5
    assert "past the end" in fault(body, "FLY_SIM_BOUNDS", tall, 3 << 10)


def lds_copy(waits: bool):
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 512]).peek()
        buf = fx.rocdl.make_buffer_tensor(x, max_size=False)
        wave = fx.thread_idx.x // 64
        atom = fx.make_copy_atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32)
        for k in fx.range_constexpr(4):
            src = fx.make_view(buf.iter + (k * 128 + fx.thread_idx.x), fx.make_layout(1, 1))
            fx.copy_atom_call(atom, src, fx.make_view(lds.ptr + (k * 128 + wave * 64), fx.make_layout(1, 1)))  # <-
        fx.rocdl.s_waitcnt(vmcnt=0 if waits else 2)
        fx.barrier()
        out[fx.thread_idx.x] = lds[384 + (fx.thread_idx.x + 64) % 128]  # <-

    return body


def test_R075_partial_waits_before_a_barrier():
    """Fails if an LDS DMA counts as complete before its wait (`targets.sim.pending`)."""
    x = np.arange(512, dtype=np.float32)
    text = fault(lds_copy(False), "FLY_SIM_MISSING_WAIT", x, out=np.zeros(128, np.float32), block=128)
    assert "vmcnt" in text
    assert (run(lds_copy(True), x, out=np.zeros(128, np.float32), block=128) == np.roll(x[384:], -64)).all()


def test_R076_buffer_offsets_beyond_four_gigabytes():
    """Fails if lowering cuts a 64-bit buffer offset to 32 bits without marking it for the simulator."""
    data = sparse(5 << 30).reshape(5, 1 << 30)
    data[4, 7] = 9

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        buf = fx.rocdl.make_buffer_tensor(x)
        if fx.thread_idx.x == 0:
            out[0] = buf[n, 7].to(fx.Float32)  # <-

    assert run(body, data[:, :], 3)[0] == 0
    assert "2^32 bytes" in fault(body, "FLY_SIM_BOUNDS", data, 4)


def test_R077_lds_beyond_its_allocation():
    """Fails if LDS accesses are checked against the chip's capacity instead of the allocation."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
        lds[fx.thread_idx.x + n] = 1.0  # <-
        fx.barrier()
        out[fx.thread_idx.x] = lds[fx.thread_idx.x]

    assert (run(body, n=0) == 1).all()
    fault(body, "FLY_SIM_BOUNDS", n=1)


def test_R078_grids_above_the_limit():
    """Fails if a grid extent is truncated to the packet's 32 bits, or refused without the limit."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.block_idx.x == 0:
            out[fx.thread_idx.x] = 1.0

    with pytest.raises((FlyError, ValueError)) as e:
        run(body, grid=1 << 32)
    assert "grid.x=4294967296" in str(e.value) and str((2**32 - 1) // 64) in str(e.value)


def test_R087_fp4_rounds_to_nearest_even():
    """Fails if a conversion to fp4 rounds ties away from zero or truncates (`fly_lower_small_floats`)."""
    codes = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    grid = np.unique(codes)
    ties = (grid[:-1] + grid[1:]) / 2
    near = np.concatenate([np.nextafter(ties, -9), np.nextafter(ties, 9)])
    x = np.concatenate([codes, ties, near, [-0.0, 5.9, 6.1, -7.0]]).astype(np.float32)
    x = np.pad(x, (0, 64 - len(x)))

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[fx.thread_idx.x] = x[fx.thread_idx.x].to(fx.Float4E2M1FN).to(fx.Float32)

    for arch in ("gfx942", "gfx950"):
        out = run(body, x, arch=arch)
        expected = np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
        np.testing.assert_array_equal(out, expected)


def test_R090_bounds_are_the_tensors_not_the_descriptors():
    """Fails if an access that a too generous descriptor lets through is not checked against the tensor."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        buf = fx.rocdl.make_buffer_tensor(x)  # the largest descriptor
        out[fx.thread_idx.x] = buf[fx.thread_idx.x + n]  # <-

    x = np.arange(64, dtype=np.float32)
    assert (run(body, x) == x).all()
    fault(body, "FLY_SIM_BOUNDS", x, 8)


@pytest.mark.parametrize("arch, wave", [("gfx942", 64), ("gfx1100", 32)])
def test_R093_reductions_over_waves(arch, wave):
    """Fails if a slot of LDS that no wave wrote reads as a number."""

    def kernel(slots: int):
        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            scratch = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 32]).peek()
            tid, total = fx.thread_idx.x, fx.Float32(0.0)
            for k in range(tid, n, 512):
                total = total + x[k]
            offset = wave // 2
            while offset:
                total = total + fx.gpu.shuffle_xor(total, offset, wave)
                offset //= 2
            if tid % wave == 0:
                scratch[tid // wave] = total
            fx.barrier()
            total = fx.Float32(0.0)
            for w in fx.range_constexpr(slots):
                total = total + scratch[w]  # <-
            out[tid] = total

        return body

    for k in (512, 4096, 8192):
        x = np.random.default_rng(k).integers(-8, 8, k).astype(np.float32)
        out = run(kernel(512 // wave), x, k, out=np.zeros(512, np.float32), block=512, arch=arch)
        assert (out == x.sum()).all()
        fault(kernel(512 // wave + 1), "FLY_SIM_UNINIT", x, k, out=np.zeros(512, np.float32), block=512, arch=arch)


def test_R116_barriers_that_some_waves_skip():
    """Fails if a barrier under a condition that differs between waves lets the others pass."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x < n:
            fx.barrier()  # <-
        out[fx.thread_idx.x] = 1.0

    fault(body, "FLY_SIM_BARRIER", n=64, out=np.zeros(128, np.float32), block=128)
    assert (run(body, n=128, out=np.zeros(128, np.float32), block=128) == 1).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_R119_one_result_under_every_order_of_waves(schedule):
    """Fails if the simulator's result of a sound kernel depends on the order in which it runs waves and workgroups."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek()
        tid = fx.thread_idx.x
        value = x[tid]
        for step in range(4):
            lds[tid] = value
            fx.barrier()
            value = value + lds[(tid * 5 + step) % 256]
            fx.barrier()
        out[fx.block_idx.x * 256 + tid] = value + fx.Float32(fx.block_idx.x)

    x = np.random.default_rng(0).integers(0, 9, 256).astype(np.float32)
    with env.override(FLYDSL_SIM_SCHEDULE=schedule):
        out = run(body, x, out=np.zeros(768, np.float32), grid=3, block=256)
    value = x.copy()
    for step in range(4):
        value = value + value[(np.arange(256) * 5 + step) % 256]
    assert (out.reshape(3, 256) == value + np.arange(3)[:, None]).all()


def test_R120_matrix_results_stay_within_the_documented_error():
    """Fails if the simulator's MFMA rounds products, or sums in less than f32."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((1, 1, 1), (0, 0, 0)))
        thr = mma.get_slice(fx.thread_idx.x)
        gA = fx.make_view(x.iter, fx.make_layout((16, 64), (64, 1)))
        gC = fx.make_view(out.iter, fx.make_layout((16, 16), (16, 1)))
        load = fx.make_tiled_copy_A(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), mma).get_slice(fx.thread_idx.x)
        store = fx.make_tiled_copy_C(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), mma).get_slice(fx.thread_idx.x)
        a, b, c = thr.make_fragment_A(gA), thr.make_fragment_B(gA), thr.make_fragment_C(gC)
        c.fill(0)
        fx.copy(load, load.partition_S(gA), load.retile(a)) if fx.const_expr(False) else fx.copy(
            fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), load.partition_S(gA), load.retile(a)
        )
        b.store(a.load())
        fx.gemm(mma, c, a, b, c)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), store.retile(c), store.partition_D(gC))

    a = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float16)
    out = run(body, a.reshape(-1), out=np.zeros(256, np.float32)).reshape(16, 16)
    wide = a.astype(np.float64)
    assert (np.abs(out - wide @ wide.T) <= 64 * 2.0**-24 * (np.abs(wide) @ np.abs(wide).T)).all()


def test_R121_ids_and_sizes_in_three_dimensions():
    """Fails if the simulator exchanges dimensions of block or thread ids."""
    grid, block = (3, 4, 2), (2, 3, 5)

    @flyc.kernel
    def ids(out: fx.Tensor):
        b, t = fx.block_idx, fx.thread_idx
        linear = ((b.z * 4 + b.y) * 3 + b.x) * 30 + (t.z * 3 + t.y) * 2 + t.x
        for k, v in enumerate([b.x, b.y, b.z, t.x, t.y, t.z, *fx.grid_dim, *fx.block_dim]):
            out[linear, k] = v

    @flyc.jit
    def launch(out: fx.Tensor):
        ids(out).launch(grid=grid, block=block)

    out = np.full((24 * 30, 12), -1, np.int32)
    launch(out)
    rows = [(bx, by, bz, tx, ty, tz, *grid, *block)
            for bz, by, bx, tz, ty, tx in itertools.product(range(2), range(4), range(3), range(5), range(3), range(2))]  # fmt: skip
    assert (out == rows).all()


def pingpong(phases: int):
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 2 * 128]).peek()
        tid, total = fx.thread_idx.x, fx.Float32(0.0)
        for stage in range(n):
            side = stage % 2 * 128 * (phases - 1)  # with one buffer, trailing waves still read what leading waves refill
            lds[side + tid] = x[tid] + fx.Float32(stage)  # <-
            fx.barrier()
            total = total + lds[side + (tid + 64) % 128]  # <-
        out[tid] = total

    return body


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_R124_buffers_refilled_while_trailing_waves_read(schedule):
    """Fails if the race check only compares accesses between the same two barriers in program order."""
    x = np.arange(128, dtype=np.float32)
    with env.override(FLYDSL_SIM_SCHEDULE=schedule):
        text = fault(pingpong(1), "FLY_SIM_RACE", x, 4, out=np.zeros(128, np.float32), block=128)
        assert "barrier" in text
        out = run(pingpong(2), x, 4, out=np.zeros(128, np.float32), block=128)
    assert (out == 4 * np.roll(x, -64) + 6).all()


def test_R126_lengths_of_another_tensor():
    """Fails if reads past a view's storage are checked against the process's memory only."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        if i < n:
            out[i] = x[i]  # <-

    base = np.arange(100, dtype=np.float32)
    view = base[:60:2].copy()
    assert (run(body, view, 30)[:30] == view).all()
    fault(body, "FLY_SIM_BOUNDS", view, 40)


@pytest.mark.parametrize("synchronised", (False, True))
def test_R139_two_tensors_in_one_piece_of_lds(synchronised):
    """Fails if the race check knows arrays instead of bytes, so that storage reused for another tensor needs no barrier."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128]).peek()
        first, second = lds.view(fx.make_layout(128, 1)), fx.make_view(fx.recast_iter(fx.Int32, lds.ptr), fx.make_layout(128, 1))
        tid = fx.thread_idx.x
        first[tid] = x[tid]
        fx.barrier()
        value = first[(tid + 64) % 128]  # <-
        if fx.const_expr(synchronised):
            fx.barrier()
        second[tid] = fx.Int32(tid)  # <-
        fx.barrier()
        out[tid] = value + fx.Float32(second[(tid + 64) % 128])

    x = np.arange(128, dtype=np.float32)
    if not synchronised:
        fault(body, "FLY_SIM_RACE", x, out=np.zeros(128, np.float32), block=128)
    else:
        assert (run(body, x, out=np.zeros(128, np.float32), block=128) == 2 * np.roll(x, -64)).all()


@pytest.mark.parametrize("removed", (0, 1, 2, None))
def test_R142_every_barrier_of_a_kernel_is_needed(removed):
    """Fails if the race check misses one of the three pairs of accesses that barriers keep apart."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128]).peek()
        tid = fx.thread_idx.x
        lds[tid] = x[tid]
        if fx.const_expr(removed != 0):
            fx.barrier()
        a = lds[127 - tid]
        if fx.const_expr(removed != 1):
            fx.barrier()
        lds[tid] = a * 2.0
        if fx.const_expr(removed != 2):
            fx.barrier()
        out[tid] = lds[127 - tid]

    x = np.arange(128, dtype=np.float32)
    if removed is None:
        assert (run(body, x, out=np.zeros(128, np.float32), block=128) == 2 * x).all()
    else:
        with pytest.raises(FlyError, match="FLY_SIM_RACE"):
            run(body, x, out=np.zeros(128, np.float32), block=128)


def test_R146_tiles_past_the_end():
    """Fails if bounds are not checked by default."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        tile = fx.zipped_divide(fx.make_view(x.iter, fx.make_layout((4, 64), (64, 1))), (1, 64))[None, (n, 0)]
        out[fx.thread_idx.x] = tile[0, fx.thread_idx.x]  # <-

    x = np.arange(256, dtype=np.float32)
    assert (run(body, x, 3) == x[192:]).all()
    fault(body, "FLY_SIM_BOUNDS", x, 4)


@pytest.mark.parametrize("blocks", range(1, 18))
def test_R147_copies_with_any_number_of_blocks(blocks):
    """Fails if slabs of workgroups lose one at their seams."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.block_idx.x * 64 + fx.thread_idx.x
        out[i] = x[i]

    x = np.random.default_rng(blocks).integers(0, 2**32, blocks * 64, np.uint32)
    out = run(body, x, out=np.zeros_like(x), grid=blocks)
    assert (out == x).all()

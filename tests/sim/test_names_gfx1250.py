"""What only gfx1250 has, name by name in kernels: transposing loads, multicast within a cluster, LDS barriers of copies."""

import re

import numpy as np
import pytest
from named import Case, check, table

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr.rocdl import cdna5, cluster, tdm_ops
from flydsl.expr.typing import T
from flydsl.utils import env

R, L = fx.rocdl, fx.make_layout
N = 128
WORDS = np.random.default_rng(21).integers(-(1 << 31), 1 << 31, 4 * N).astype(np.int32)

# --- transposing loads -----------------------------------------------------------------------------------------------------------

# Second source: Triton's description of the instructions ("four independent groups of 8 lanes"; destination lane D2 of the
# 8-bit form draws from lanes 0..3 and 8..11), and measurements on the chip: with 16-bit elements numbered through, lane 0
# receives 0, 8, 16, ..., 56, lane 1 1, 9, ..., and lane 8 64, 72, ...


def sources(bits):
    """(lane, element) that element e of lane l of a wave comes from, as the descriptions word it."""
    where = np.zeros((32, 8, 2), int)
    for lane in range(32):
        for e in range(8):
            if bits == 16:
                group = list(range(lane // 8 * 8, lane // 8 * 8 + 8))
            else:
                half, second = lane // 16 * 16, 4 * (lane % 16 // 8)
                group = [half + second + k for k in (0, 1, 2, 3, 8, 9, 10, 11)]
            where[lane, e] = group[e], lane % 8
    return where


def exchanged(bits):
    def want(n, x):
        items = np.ascontiguousarray(x).view(f"u{bits // 8}")[: N * 8].reshape(-1, 32, 8)
        where = sources(bits)
        return np.ascontiguousarray(items[:, where[..., 0], where[..., 1]]).reshape(-1).view(np.int32)

    return want


def through_lds(load, words):
    def body(i, x, out):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N * words, 16]).peek()
        for k in range(words):
            lds[i * words + k] = x[i * words + k]
        fx.barrier()
        put(out, i, words, load(lds, i * words))

    return body


def put(out, i, words, got):
    got = fx.Vector(got).bitcast(fx.Int32)
    for k in range(words):
        out[i * words + k] = got[k]


HALVES, PAIR = (lambda: T.vec(8, T.f16)), (lambda: T.vec(2, T.i32))
TRANSPOSES = [
    Case("ds_load_tr16_b128", through_lds(lambda lds, at: R.ds_load_tr16_b128(HALVES(), (lds.ptr + at).llvm_ptr), 4), (WORDS,),
         exchanged(16), r"ds_load_tr16_b128", ("gfx1250",)),
    Case("ds_load_tr16_b128 of bf16", through_lds(lambda lds, at: R.ds_load_tr16_b128(T.vec(8, T.bf16), (lds.ptr + at).llvm_ptr), 4),
         (WORDS,), exchanged(16), r"ds_load_tr16_b128", ("gfx1250",), ("gfx1250",)),
    Case("ds_load_tr8_b64", through_lds(lambda lds, at: R.ds_load_tr8_b64(PAIR(), (lds.ptr + at).llvm_ptr), 2), (WORDS,),
         exchanged(8), r"ds_load_tr8_b64", ("gfx1250",)),
    Case("lds_transpose_load, 2 bytes", through_lds(lambda lds, at: R.lds_transpose_load(HALVES(), lds.ptr, at * 2, 2), 4), (WORDS,),
         exchanged(16), r"ds_load_tr16_b128", ("gfx1250",)),
    Case("lds_transpose_load, 1 byte", through_lds(lambda lds, at: R.lds_transpose_load(PAIR(), lds.ptr, at * 4, 1), 2), (WORDS,),
         exchanged(8), r"ds_load_tr8_b64", ("gfx1250",)),
]  # fmt: skip


@table(TRANSPOSES)
def test_transposing_lds_loads(case, arch):
    check(case, arch)


FROM_GLOBAL = [
    Case(name, lambda i, x, out, fn=fn, result=result, words=words: put(out, i, words, fn(result(), (fx.get_iter(x) + i * words).llvm_ptr)),
         (WORDS,), exchanged(bits), isa, ("gfx1250",), ("gfx1250",))
    for name, fn, result, bits, words, isa in (
        ("global_load_tr_b128", R.global_load_tr_b128, HALVES, 16, 4, "global_load_tr(16)?_b128"),
        ("global_load_tr_b64", R.global_load_tr_b64, PAIR, 8, 2, "global_load_tr(8)?_b64"),
    )
]  # fmt: skip


@pytest.mark.parametrize("case", FROM_GLOBAL, ids=str)
def test_transposing_global_loads(case):
    check(case, "gfx1250")


def test_a_transposed_tile_feeds_a_matrix_instruction():
    """16x16 halves that lie by rows in LDS, read by 8x8 blocks, become the columns that a lane of WMMA holds."""
    tile = np.arange(256, dtype=np.float16)

    def body(i, x, out):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 256, 16]).peek()
        for k in fx.range_constexpr(8):
            lds[i * 8 + k] = x[i * 8 + k]
        fx.barrier()
        row, column = i // 16 * 8 + i % 8, i // 8 % 2 * 8
        got = fx.Vector(R.lds_transpose_load(HALVES(), lds.ptr, row * 16 + column, 2))
        for k in fx.range_constexpr(8):
            out[i * 8 + k] = got[k]

    lane = np.arange(32)
    rows = (lane // 16 * 8)[:, None] + np.arange(8)
    want = tile.reshape(16, 16)[rows, (lane % 16)[:, None]].reshape(-1)
    check(Case("tile", body, (tile,), lambda n, x: want, "ds_load_tr16_b128", ("gfx1250",), threads=32), "gfx1250")


@pytest.mark.parametrize("name, words", [("ds_load_tr4_b64", 2), ("ds_load_tr6_b96", 3)])
def test_orders_that_no_source_states_are_refused(name, words):
    load = through_lds(lambda lds, at: getattr(R, name)(T.vec(words, T.i32), (lds.ptr + at).llvm_ptr), words)
    with pytest.raises(FlyError, match="no source states") as caught:
        check(Case(name, load, (WORDS,), lambda n, x: x[: N * words], "", ("gfx1250",)), "gfx1250")
    assert "test_names_gfx1250.py" in str(caught.value)


# --- multicast -------------------------------------------------------------------------------------------------------------------

GROUPS = 8


def clustered(body, x, shape, threads=32, arch="gfx1250", lds_elems=512):
    """Run `body(thread, x, lds)` in GROUPS workgroups by clusters of `shape`; return each one's LDS, which begins as -1, and the ISA."""
    per_thread = lds_elems // threads

    @flyc.kernel
    def kernel(x: fx.Tensor, out: fx.Tensor):
        tid = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, lds_elems, 128]).peek()
        for k in fx.range_constexpr(per_thread):
            lds[k * threads + tid] = -1
        fx.barrier()
        body(tid, x, lds)
        fx.barrier()
        group = fx.block_idx.x + fx.block_idx.y * 4
        for k in fx.range_constexpr(per_thread):
            out[group * lds_elems + k * threads + tid] = lds[k * threads + tid]

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor):
        kernel(x, out).launch(grid=(4, GROUPS // 4, 1), block=(threads, 1, 1), cluster=shape)

    out = np.zeros(GROUPS * lds_elems, np.int32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(x, out)
        isa = launch.artifact_for(launch.wrap_arguments((x, out), {})).codegen(("isa",)).isa
    return out.reshape(GROUPS, lds_elems), isa


SOURCE = np.random.default_rng(22).integers(0, 1 << 30, 4096).astype(np.int32)
XS, YS = np.arange(GROUPS) % 4, np.arange(GROUPS) // 4
BYTES = {1: "b8", 4: "b32", 8: "b64", 16: "b128"}


def row_mask(width):
    """All workgroups of this one's row of the cluster (x fastest)."""
    return fx.Int32((1 << width) - 1) << (cluster.cluster_workgroup_id_y() * width)


@pytest.mark.parametrize("size", BYTES)
def test_cluster_loads(size):
    """The workgroups of a row of a 4x2 cluster fetch the row's data once; each receives it at its own LDS place."""
    words = max(1, size // 4)

    def body(tid, x, lds):
        y = fx.block_idx.y
        src = (fx.recast_iter(fx.Uint8, fx.get_iter(x) + y * 512) + tid * size).llvm_ptr
        place = fx.block_idx.x * 64
        dst = (fx.recast_iter(fx.Uint8, lds.ptr + place) + (31 - tid) * size).llvm_ptr
        R.cluster_load_async_to_lds(src, dst, size, mask=row_mask(4))
        R.s_wait_asynccnt(0)

    out, isa = clustered(body, SOURCE, (4, 2, 1))
    assert re.search(rf"cluster_load_async_to_lds_{BYTES[size]}\b", isa) and "m0" in isa
    for g in range(GROUPS):
        want = np.full(512, -1, np.int32)
        data = SOURCE[YS[g] * 512 :].view(np.uint8)[: 32 * size].reshape(32, size)[::-1].reshape(-1)
        want.view(np.uint8)[XS[g] * 256 : XS[g] * 256 + len(data)] = data
        np.testing.assert_array_equal(out[g], want, err_msg=f"workgroup {g}, {words} words")


def test_a_cluster_load_without_a_mask_is_a_plain_one():
    def body(tid, x, lds):
        R.cluster_load_async_to_lds((fx.get_iter(x) + fx.block_idx.x * 32 + tid).llvm_ptr, (lds.ptr + tid).llvm_ptr, 4, offset=8)
        R.s_wait_asynccnt()

    out, isa = clustered(body, SOURCE, (2, 2, 1))
    np.testing.assert_array_equal(out[:, 2:34], SOURCE[XS[:, None] * 32 + np.arange(32) + 2])  # the offset counts on both sides
    assert "global_load_async_to_lds_b32" in isa and "cluster_load" not in isa


def test_a_cluster_load_lands_when_waited_for():
    def body(tid, x, lds):
        R.cluster_load_async_to_lds((fx.get_iter(x) + tid).llvm_ptr, (lds.ptr + tid).llvm_ptr, 4, mask=fx.Int32(3))

    with pytest.raises(FlyError, match="async|pending|wait"):
        clustered(body, SOURCE, (2, 1, 1))


def tile_of(op_mask, **named):
    """A tile of (8, 16) words of each row's data by descriptor."""

    def body(tid, x, lds):
        desc = tdm_ops.make_tensor_descriptor_2d(x, lds.ptr, (fx.block_idx.y * 8, 16), (64, 64), (64, 1), (8, 16), elem_bytes=4,
                                                 workgroup_mask=op_mask(), **named)  # fmt: skip
        tdm_ops.tensor_load_2d(desc)
        tdm_ops.tensor_wait()

    return body


def test_workgroup_mask_of_descriptors():
    out, isa = clustered(tile_of(lambda: row_mask(4)), SOURCE, (4, 2, 1))
    tiles = SOURCE.reshape(64, 64)
    for g in range(GROUPS):
        np.testing.assert_array_equal(out[g][:128], tiles[YS[g] * 8 : YS[g] * 8 + 8, 16:32].reshape(-1))
    assert "tensor_load_to_lds" in isa and ".cluster_dims" in isa


def tdm_atom(tid, x, lds):
    """make_tdm_atom with the mask as state."""
    atom = R.make_tdm_atom(x, (None, None), num_warps=1, strides=(64, None)).set_value("workgroup_mask", row_mask(4))
    src = fx.make_view(fx.get_iter(x) + fx.block_idx.y * 8 * 64, L((8, 16), (64, 1)))
    fx.copy(atom, src, lds.view(L((8, 16), (16, 1))))
    R.s_wait_tensorcnt(0)


def tiled_atom(tid, x, lds):
    """make_tiled_tdm_atom with the mask as a keyword of the copy."""
    view = fx.make_view(fx.get_iter(x), L((64, 64), (64, 1)))
    atom, coord = cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), view, L((8, 16), (16, 1)), (8, 16), 1)
    s, g = cdna5.tdm_partition(atom, R.wave_id(), L(1, 1), lds.view(L(((8, 16), 1), ((16, 1), 0))), fx.zipped_divide(coord, (8, 16)))
    fx.copy(atom, g[None, (fx.block_idx.y, 0)], s[None, 0], workgroup_mask=row_mask(4), early_timeout=True)
    R.s_wait_tensorcnt(0)


@pytest.mark.parametrize("body", [tdm_atom, tiled_atom], ids=lambda f: f.__name__)
def test_workgroup_mask_of_atoms(body):
    out, isa = clustered(body, SOURCE.reshape(64, 64), (4, 2, 1))
    tiles = SOURCE.reshape(64, 64)
    for g in range(GROUPS):
        np.testing.assert_array_equal(out[g][:128], tiles[YS[g] * 8 : YS[g] * 8 + 8, :16].reshape(-1))
    assert "tensor_load_to_lds" in isa


MASKS = {
    "a workgroup too many": (lambda: fx.Int32(0b111), "names workgroup 2 of a cluster that has 2"),
    "not this one": (lambda: fx.Int32(2) >> cluster.cluster_workgroup_id_x(), "leaves out the workgroup itself"),
    "masks that differ": (lambda: fx.Int32(3) - 2 * cluster.cluster_workgroup_id_x() + cluster.cluster_workgroup_id_x(), "whose own mask is 0x2"),
}


@pytest.mark.parametrize("case", MASKS)
def test_masks_that_the_chip_cannot_serve(case):
    mask, text = MASKS[case]
    with pytest.raises(FlyError, match=text) as caught:
        clustered(tile_of(mask), SOURCE, (2, 1, 1))
    assert "test_names_gfx1250.py" in str(caught.value)

    def body(tid, x, lds):
        R.cluster_load_async_to_lds((fx.get_iter(x) + tid).llvm_ptr, (lds.ptr + tid).llvm_ptr, 4, mask=mask())

    with pytest.raises(FlyError, match=text):
        clustered(body, SOURCE, (2, 1, 1))


def test_requests_of_one_mask_read_one_source():
    def body(tid, x, lds):
        R.cluster_load_async_to_lds((fx.get_iter(x) + fx.block_idx.x + tid).llvm_ptr, (lds.ptr + tid).llvm_ptr, 4, mask=fx.Int32(3))

    with pytest.raises(FlyError, match="names workgroup 1, which reads elsewhere"):
        clustered(body, SOURCE, (2, 1, 1))


# --- LDS barriers ----------------------------------------------------------------------------------------------------------------

PHASE = 1 << 29


def start_of(arrivals):
    """The word of an LDS barrier that expects a number of arrivals per phase (Triton, libhipcxx)."""
    return (arrivals - 1) << 32 | (arrivals - 1)


def model(arrivals, counts):
    """Words of the barrier before each arrival and after the last: pending counts down, below 0 it starts over in the next phase."""
    pending, phase, words = arrivals - 1, 0, []
    for count in (*counts, 0):
        words.append((arrivals - 1) << 32 | phase << 29 | pending)
        pending -= count
        if pending < 0:
            pending, phase = arrivals - 1, (phase + 1) % 8
    return np.array(words, np.int64)


@pytest.mark.parametrize("arrivals", [1, 5, 32])
def test_barrier_arrive(arrivals):
    """All lanes arrive at one barrier, in lane order: each sees the word before its own arrival."""

    @flyc.kernel
    def kernel(out: fx.Tensor):
        tid = fx.thread_idx.x
        bar = fx.SharedAllocator().allocate(fx.Array[fx.Int64, 1, 8]).peek()
        if tid == 0:
            bar[0] = fx.Int64(start_of(arrivals))
        fx.barrier()
        out[tid] = R.ds_atomic_barrier_arrive_rtn_b64(fx.Int64, bar.ptr.llvm_ptr, fx.Int64(1))
        fx.barrier()
        if tid == 0:
            out[32] = bar[0]

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.zeros(33, np.int64)
    with env.override(ARCH="gfx1250", FLYDSL_GPU_ARCH="gfx1250"):
        launch(out)
        isa = launch.artifact_for(launch.wrap_arguments((out,), {})).codegen(("isa",)).isa
    np.testing.assert_array_equal(out, model(arrivals, [1] * 32))
    assert "ds_atomic_barrier_arrive_rtn_b64" in isa


def polled(issue, waves=2, polls=None):
    """`issue(x, lds, barrier)` in wave 0; both waves poll the barrier's phase, then each stores half of the tile of 128 words."""

    @flyc.kernel
    def kernel(x: fx.Tensor, out: fx.Tensor):
        tid = fx.thread_idx.x
        allocator = fx.SharedAllocator()
        lds = allocator.allocate(fx.Array[fx.Int32, 128, 128]).peek()
        bar = allocator.allocate(fx.Array[fx.Int64, 1, 8]).peek()
        for k in fx.range_constexpr(128 // (32 * waves)):
            lds[k * 32 * waves + tid] = -1
        if tid == 0:
            bar[0] = fx.Int64(start_of(1))
        fx.barrier()
        if R.wave_id() == 0:
            issue(x, lds, bar)
        if fx.const_expr(polls is None):
            word = fx.generic_load(bar.ptr, memory_order="acquire")
            while word & PHASE == 0:
                R.s_sleep(1)
                word = fx.generic_load(bar.ptr, memory_order="acquire")
        for k in fx.range_constexpr(128 // (32 * waves)):
            out[k * 32 * waves + tid] = lds[k * 32 * waves + tid]

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(32 * waves, 1, 1))

    x = SOURCE.reshape(64, 64)
    out = np.zeros(128, np.int32)
    with env.override(ARCH="gfx1250", FLYDSL_GPU_ARCH="gfx1250"):
        launch(x, out)
        isa = launch.artifact_for(launch.wrap_arguments((x, out), {})).codegen(("isa",)).isa
    return out, isa


def tiled_with_barrier(x, lds, bar, address=lambda bar: bar.ptr, **named):
    view = fx.make_view(fx.get_iter(x), L((64, 64), (64, 1)))
    atom, coord = cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), view, L((8, 16), (16, 1)), (8, 16), 1, **(named or {"atomic_barrier": True}))
    s, g = cdna5.tdm_partition(atom, 0, L(1, 1), lds.view(L(((8, 16), 1), ((16, 1), 0))), fx.zipped_divide(coord, (8, 16)))
    fx.copy(atom.set_value("atomic_barrier_addr", address(bar)), g[None, (3, 2)], s[None, 0])


def async_with_barrier(x, lds, bar):
    tid = fx.thread_idx.x
    for k in fx.range_constexpr(4):
        R.cluster_load_async_to_lds((fx.get_iter(x) + k * 32 + tid).llvm_ptr, (lds.ptr + k * 32 + tid).llvm_ptr, 4)
    if tid == 0:
        R.ds_atomic_async_barrier_arrive_b64(bar.ptr.llvm_ptr)


ADDRESSES = {"a pointer": lambda bar: bar.ptr, "a byte address": lambda bar: fx.ptrtoint(bar.ptr)}


@pytest.mark.parametrize("address", ADDRESSES)
def test_atomic_barrier_of_a_tensor_copy(address):
    """The copy arrives at the barrier that the atom's state names; who has seen its phase change reads the tile."""
    out, isa = polled(lambda x, lds, bar: tiled_with_barrier(x, lds, bar, ADDRESSES[address]))
    np.testing.assert_array_equal(out, SOURCE.reshape(64, 64)[24:32, 32:48].reshape(-1))
    assert "tensor_load_to_lds" in isa and "s_wait_tensorcnt" not in isa


def test_async_barrier_arrive():
    """The arrival follows the asynchronous copies before it."""
    out, isa = polled(async_with_barrier)
    np.testing.assert_array_equal(out, SOURCE[:128])
    assert "ds_atomic_async_barrier_arrive_b64" in isa and "s_wait_asynccnt" not in isa


BARRIERS = {
    "a copy that arrives nowhere": (lambda bar: bar.ptr, {"atomic_barrier": False}, "no state field `atomic_barrier_addr`"),
    "a pointer to registers": (lambda bar: fx.make_rmem_tensor(1, fx.Int64).iter, {}, "atomic_barrier_addr"),
    "a float of 64 bits": (lambda bar: fx.Float64(8.0), {}, "atomic_barrier_addr"),
}


@pytest.mark.parametrize("case", BARRIERS)
def test_wrong_barriers(case):
    address, named, text = BARRIERS[case]
    with pytest.raises(FlyError, match=text) as caught:
        polled(lambda x, lds, bar: tiled_with_barrier(x, lds, bar, address, **named), polls=0)
    assert "test_names_gfx1250.py" in str(caught.value)


@pytest.mark.parametrize("issue", [tiled_with_barrier, async_with_barrier], ids=lambda f: f.__name__)
def test_a_barrier_that_nobody_looks_at_orders_nothing(issue):
    with pytest.raises(FlyError, match="in flight|pending|waited|wait"):
        polled(issue, waves=1, polls=0)


# --- other chips -----------------------------------------------------------------------------------------------------------------


def lds_pointer():
    return fx.SharedAllocator().allocate(fx.Array[fx.Int64, 64, 16]).peek().ptr


ELSEWHERE = {
    "cluster_load_async_to_lds": lambda i, x: R.cluster_load_async_to_lds(fx.get_iter(x).llvm_ptr, lds_pointer().llvm_ptr, 4, mask=fx.Int32(1)),
    "ds_atomic_async_barrier_arrive_b64": lambda i, x: R.ds_atomic_async_barrier_arrive_b64(lds_pointer().llvm_ptr),
    "ds_atomic_barrier_arrive_rtn_b64": lambda i, x: R.ds_atomic_barrier_arrive_rtn_b64(fx.Int64, lds_pointer().llvm_ptr, fx.Int64(1)),
    "cluster_barrier": lambda i, x: cluster.cluster_barrier(),
    "ds_load_tr4_b64": lambda i, x: R.ds_load_tr4_b64(PAIR(), lds_pointer().llvm_ptr),
    "a copy of 3 bytes": lambda i, x: R.cluster_load_async_to_lds(fx.get_iter(x).llvm_ptr, lds_pointer().llvm_ptr, 3),
    "elements of 4 bytes": lambda i, x: R.lds_transpose_load(HALVES(), lds_pointer(), 0, 4),
}
WIDTHS = {"a copy of 3 bytes": "1, 4, 8 or 16", "elements of 4 bytes": "1 or 2"}


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("arch", ["gfx950", "gfx1201"])
def test_refused(name, arch):
    case = Case(name, lambda i, x, out: ELSEWHERE[name](i, x), (WORDS,), lambda n, x: x, "", ("gfx1250",))
    if name not in WIDTHS:
        check(case, arch)
        return
    with pytest.raises(FlyError, match=WIDTHS[name]) as caught:
        check(case, "gfx1250")
    assert "test_names_gfx1250.py" in str(caught.value)


CASES = [*TRANSPOSES, *FROM_GLOBAL]

"""Every copy atom on every chip: what it moves in the simulator, and the instruction that it becomes."""

import re

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
LANES = 64


def on(arch):
    return env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch)


def isa_of(jit, *args) -> str:
    return jit.artifact_for(jit.wrap_arguments(args, {})).codegen(("isa",)).isa


def mnemonics(text: str) -> list[str]:
    return re.findall(r"^\s+((?:buffer|global|ds|flat|tensor)_\w+)", text, re.M)


def lane_view(tensor, count):
    """Return the `count` elements of this lane."""
    return fx.make_view(fx.add_offset(tensor.iter, fx.thread_idx.x * count), fx.make_layout(count, 1))


# --- plain and buffer copies -------------------------------------------------------------------------------------------


@flyc.kernel
def through_registers(
    src: fx.Tensor, dst: fx.Tensor, kind: fx.Constexpr[str], bits: fx.Constexpr[int], cache: fx.Constexpr[int]
):
    count = bits // src.dtype.width
    if fx.const_expr(kind == "buffer"):
        op = fx.rocdl.BufferCopy(bits, cache)
        src, dst = (fx.rocdl.make_buffer_tensor(t, max_size=False) for t in (src, dst))
    else:
        op = fx.UniversalCopy(bits)
    atom = fx.make_copy_atom(op, dst.dtype)
    frag = fx.make_rmem_tensor(count, dst.dtype)
    fx.copy(atom, lane_view(src, count), frag)
    fx.copy(atom, frag, lane_view(dst, count))


@flyc.jit
def copy_launch(
    src: fx.Tensor, dst: fx.Tensor, kind: fx.Constexpr[str], bits: fx.Constexpr[int], cache: fx.Constexpr[int]
):
    through_registers(src, dst, kind, bits, cache).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


TAIL = {8: ("ubyte", "byte", "u8", "b8"), 16: ("ushort", "short", "u16", "b16"), 32: ("dword",) * 2 + ("b32",) * 2,
        64: ("dwordx2",) * 2 + ("b64",) * 2, 96: ("dwordx3",) * 2 + ("b96",) * 2, 128: ("dwordx4",) * 2 + ("b128",) * 2}  # fmt: skip


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    "kind, bits", [("universal", b) for b in (8, 16, 32, 64, 128)] + [("buffer", b) for b in (8, 16, 32, 64, 96, 128)]
)
def test_copy_through_registers(kind, bits, arch):
    dtype = {8: np.uint8, 16: np.float16}.get(bits, np.uint32 if bits == 96 else np.int16)
    count = LANES * bits // 8 // np.dtype(dtype).itemsize
    src = np.random.default_rng(1).integers(0, 256, LANES * bits // 8, np.uint8).view(dtype)
    dst = np.zeros(count, dtype)
    with on(arch):
        copy_launch(src, dst, kind, bits, 0)
        found = mnemonics(isa_of(copy_launch, src, dst, kind, bits, 0))
    np.testing.assert_array_equal(src.view(np.uint8), dst.view(np.uint8))
    load, store = TAIL[bits][:2] if arch.startswith("gfx9") else TAIL[bits][2:]
    prefix = "buffer" if kind == "buffer" else "global"
    expected = [f"{prefix}_load_{load}", f"{prefix}_store_{store}"]
    found[0] = found[0].replace("_d16_u8", "_u8").replace("_d16_b16", "_u16")  # into one half of a register: gfx11
    assert found == expected


@pytest.mark.parametrize(
    "arch, bit", [("gfx942", " nt"), ("gfx950", " nt"), ("gfx1100", " slc"), ("gfx1201", " th:TH")]
)
def test_cache_modifier_reaches_the_instruction(arch, bit):
    src = np.zeros(LANES * 4, np.float32)
    with on(arch):
        text = isa_of(copy_launch, src, src.copy(), "buffer", 128, 2)
    assert all(bit in line for line in re.findall(r"^\s+buffer_(?:load|store).*", text, re.M))


@flyc.kernel
def bounded_kernel(src: fx.Tensor, dst: fx.Tensor, nbytes: fx.Int32, soffset: fx.Int32):
    buf = fx.rocdl.make_buffer_tensor(src, num_records_bytes=nbytes)
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    frag = fx.make_rmem_tensor(1, fx.Float32)
    frag.fill(9)
    fx.copy(atom, lane_view(buf, 1), frag, soffset=soffset)
    out = fx.rocdl.make_buffer_tensor(dst, num_records_bytes=nbytes)
    fx.copy(atom, frag, lane_view(out, 1))


@flyc.jit
def bounded(src: fx.Tensor, dst: fx.Tensor, nbytes: fx.Int32, soffset: fx.Int32):
    bounded_kernel(src, dst, nbytes, soffset).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def test_out_of_range_loads_give_0_and_stores_are_dropped():
    src, dst = np.arange(100, dtype=np.float32) + 1, np.full(LANES, -1, np.float32)
    with on("gfx942"):
        bounded(src, dst, 40 * 4, 30)
    expected = np.full(LANES, -1, np.float32)
    expected[:40] = np.where(np.arange(40) + 30 < 40, np.arange(40) + 31, 0)
    np.testing.assert_array_equal(dst, expected)


# --- LDS DMA ---------------------------------------------------------------------------------------------------------


@flyc.kernel
def dma_kernel(
    src: fx.Tensor, dst: fx.Tensor, kind: fx.Constexpr[str], bits: fx.Constexpr[int], waits: fx.Constexpr[bool]
):
    count = bits // 32
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Float32, LANES * count, 16]).peek()
    op = {
        "buffer": lambda: fx.rocdl.BufferCopyLDS(bits),
        "buffer async": lambda: fx.rocdl.cdna4.BufferLoadAsyncLDS(bits),
        "global async": lambda: fx.rocdl.cdna4.GlobalLoadAsyncLDS(bits),
    }[kind]()
    atom = fx.make_copy_atom(op, fx.Float32)
    source = src if fx.const_expr(kind == "global async") else fx.rocdl.make_buffer_tensor(src)
    whole = smem.view(fx.make_layout((count, LANES), (1, count)))
    fx.copy(atom, lane_view(source, count), whole[None, fx.thread_idx.x])
    if fx.const_expr(kind != "buffer"):
        fx.rocdl.asyncmark()
    if fx.const_expr(waits and kind == "buffer"):
        fx.rocdl.s_waitcnt(vmcnt=0)
    elif fx.const_expr(waits):
        fx.rocdl.wait_asyncmark(0)
    fx.barrier()
    move = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    frag = fx.make_rmem_tensor(count, fx.Float32)
    fx.copy(move, whole[None, LANES - 1 - fx.thread_idx.x], frag)
    fx.copy(move, frag, lane_view(dst, count))


@flyc.jit
def dma(src: fx.Tensor, dst: fx.Tensor, kind: fx.Constexpr[str], bits: fx.Constexpr[int], waits: fx.Constexpr[bool]):
    dma_kernel(src, dst, kind, bits, waits).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


DMA = [("gfx942", "buffer", 32), ("gfx950", "buffer", 32), ("gfx950", "buffer", 128)]
DMA += [("gfx950", kind, bits) for kind in ("buffer async", "global async") for bits in (32, 96, 128)]


@pytest.mark.parametrize("arch, kind, bits", DMA)
def test_dma_to_lds(arch, kind, bits):
    count = bits // 32
    src = np.random.default_rng(2).standard_normal(LANES * count).astype(np.float32)
    dst = np.zeros_like(src)
    with on(arch):
        dma(src, dst, kind, bits, True)
        text = isa_of(dma, src, dst, kind, bits, True)
    np.testing.assert_array_equal(dst.reshape(LANES, count), src.reshape(LANES, count)[::-1])
    suffix = {32: "dword", 96: "dwordx3", 128: "dwordx4"}[bits]
    expected = rf"buffer_load_{suffix} .*lds" if "buffer" in kind else rf"global_load_lds_{suffix}"
    assert len(re.findall(expected, text)) == 1


@pytest.mark.parametrize("arch, kind, bits", [DMA[0], DMA[2], DMA[5], DMA[8]])
def test_a_missing_wait_is_reported(arch, kind, bits):
    src = np.ones(LANES * bits // 32, np.float32)
    with on(arch), pytest.raises(Exception, match="FLY_SIM"):
        dma(src, np.zeros_like(src), kind, bits, False)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_wide_dma_is_refused_with_the_chips_that_have_it(arch):
    src = np.ones(LANES * 4, np.float32)
    with on(arch), pytest.raises(Exception, match="gfx950"):
        dma(src, np.zeros_like(src), "buffer", 128, True)


# --- transposing LDS reads -----------------------------------------------------------------------------------------------


@flyc.kernel
def transpose_kernel(
    src: fx.Tensor, dst: fx.Tensor, unit: fx.Constexpr[int], bits: fx.Constexpr[int], name: fx.Constexpr[str]
):
    dtype = getattr(fx, name)
    per_lane = bits // unit
    smem = fx.SharedAllocator().allocate(fx.Array[fx.Uint8, LANES * bits // 8, 16]).peek()
    lane = fx.thread_idx.x
    nbytes = bits // 8
    row = fx.make_view(fx.add_offset(smem.ptr, lane * nbytes), fx.make_layout(nbytes, 1))
    row.store(lane_view(src, nbytes).load())
    fx.barrier()
    atom = fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans(unit, bits), dtype)
    frag = fx.make_rmem_tensor(per_lane, dtype)
    mine = fx.make_view(fx.recast_iter(dtype, fx.add_offset(smem.ptr, lane * nbytes)), fx.make_layout(per_lane, 1))
    fx.copy(atom, mine, frag)
    lane_view(dst, nbytes).store(frag.load().bitcast(fx.Uint8))


@flyc.jit
def transpose(
    src: fx.Tensor, dst: fx.Tensor, unit: fx.Constexpr[int], bits: fx.Constexpr[int], name: fx.Constexpr[str]
):
    transpose_kernel(src, dst, unit, bits, name).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def to_codes(data: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes of packed rows of bytes."""
    spread = np.unpackbits(data, axis=-1, bitorder="little").reshape(*data.shape[:-1], -1, bits)
    return (spread.astype(int) << np.arange(bits)).sum(axis=-1)


@pytest.mark.parametrize(
    "unit, bits, name, isa",
    [(16, 64, "Float16", "ds_read_b64_tr_b16"), (8, 64, "Float8E4M3FN", "ds_read_b64_tr_b8"),
     (4, 64, "Float4E2M1FN", "ds_read_b64_tr_b4"), (6, 96, "Float6E2M3FN", "ds_read_b96_tr_b6")],
)  # fmt: skip
def test_transposing_read(unit, bits, name, isa):
    """Groups of 16 lanes: lane t gives the address of row t and receives elements 16 * j + t of the rows read one after another."""
    src = np.random.default_rng(3).integers(0, 256, LANES * bits // 8, np.uint8)
    dst = np.zeros_like(src)
    with on("gfx950"):
        transpose(src, dst, unit, bits, name)
        assert mnemonics(isa_of(transpose, src, dst, unit, bits, name)).count(isa) == 1
    rows, got = (to_codes(x.reshape(LANES, bits // 8), unit).reshape(4, -1) for x in (src, dst))
    n = bits // unit
    for group in range(4):
        np.testing.assert_array_equal(got[group].reshape(16, n), rows[group].reshape(n, 16).T)


# --- atomics -------------------------------------------------------------------------------------------------------------


@flyc.kernel
def atomic_kernel(
    x: fx.Tensor, out: fx.Tensor, op: fx.Constexpr[str], where: fx.Constexpr[str], bins: fx.Constexpr[int]
):
    tid = fx.thread_idx.x
    frag = fx.make_rmem_tensor(1, x.dtype)
    frag[0] = x[tid]
    atom = fx.make_copy_atom(getattr(fx, f"UniversalAtomic{op}")(x.dtype), x.dtype)
    one = fx.make_layout(1, 1)
    if fx.const_expr(where == "global"):
        fx.copy(atom, frag, fx.make_view(fx.add_offset(out.iter, tid % bins), one))
    else:
        smem = fx.SharedAllocator().allocate(fx.Array[x.dtype, bins, 16]).peek()
        if tid < bins:
            smem[tid] = out[tid]
        fx.barrier()
        fx.copy(atom, frag, fx.make_view(fx.add_offset(smem.ptr, tid % bins), one))
        fx.barrier()
        if tid < bins:
            out[tid] = smem[tid]


@flyc.jit
def atomic(x: fx.Tensor, out: fx.Tensor, op: fx.Constexpr[str], where: fx.Constexpr[str], bins: fx.Constexpr[int]):
    atomic_kernel(x, out, op, where, bins).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def combined(op: str, before: np.ndarray, x: np.ndarray) -> np.ndarray:
    out = before.copy()
    for i, value in enumerate(x):
        old = out[i % len(out)]
        if op == "Inc":
            out[i % len(out)] = 0 if old >= value else old + 1
        elif op == "Dec":
            out[i % len(out)] = value if old == 0 or old > value else old - 1
        else:
            fn = {"Add": np.add, "Max": np.maximum, "Min": np.minimum, "And": np.bitwise_and, "Or": np.bitwise_or}[op]
            out[i % len(out)] = fn(old, value)
    return out


@pytest.mark.parametrize("where", ["global", "shared"])
@pytest.mark.parametrize(
    "op, dtype",
    [("Add", np.int32), ("Add", np.float32), ("Max", np.int32), ("Min", np.uint32), ("Max", np.uint32), ("And", np.int32), ("Or", np.int32),
     ("Inc", np.uint32), ("Dec", np.uint32), ("Add", np.uint64)],
)  # fmt: skip
def test_universal_atomic(op, dtype, where):
    rng = np.random.default_rng(4)
    x = rng.integers(0, 8, LANES).astype(dtype) if op != "Max" else rng.integers(0, 1 << 30, LANES).astype(dtype)
    out = rng.integers(1, 8, 4).astype(dtype)
    before = out.copy()
    with on("gfx942"):
        if op in ("Inc", "Dec"):  # the result depends on the order: one bin per lane
            out = np.resize(before, LANES)
            before = out.copy()
        atomic(x, out, op, where, len(out))
    np.testing.assert_array_equal(out, combined(op, before, x))


@flyc.kernel
def buffer_atomic_kernel(x: fx.Tensor, out: fx.Tensor, op: fx.Constexpr[str], bins: fx.Constexpr[int]):
    tid = fx.thread_idx.x
    count = 2 if fx.const_expr(op == "PkAdd") else 1
    dtype = x.dtype
    frag = fx.make_rmem_tensor(count, dtype)
    frag.store(lane_view(x, count).load())
    atom = fx.make_copy_atom(getattr(fx.rocdl, f"BufferAtomic{op}")(dtype), dtype)
    buf = fx.rocdl.make_buffer_tensor(out, max_size=False)
    target = fx.make_view(fx.add_offset(buf.iter, (tid % bins) * count), fx.make_layout(count, 1))
    fx.copy(atom, frag, target, soffset=count)


@flyc.jit
def buffer_atomic(x: fx.Tensor, out: fx.Tensor, op: fx.Constexpr[str], bins: fx.Constexpr[int]):
    buffer_atomic_kernel(x, out, op, bins).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def bf16():
    import ml_dtypes

    return ml_dtypes.bfloat16


@pytest.mark.parametrize(
    "arch, op, dtype, isa",
    [("gfx942", "Add", "float32", "buffer_atomic_add_f32"), ("gfx950", "Add", "float32", "buffer_atomic_add_f32"),
     ("gfx942", "PkAdd", "float16", "buffer_atomic_pk_add_f16"), ("gfx950", "PkAdd", "bfloat16", "buffer_atomic_pk_add_bf16"),
     ("gfx942", "Max", "int32", "buffer_atomic_smax"), ("gfx942", "Max", "float64", "buffer_atomic_max_f64"),
     ("gfx942", "Min", "uint32", "buffer_atomic_umin"), ("gfx1100", "Add", "float32", "buffer_atomic_add_f32"),
     ("gfx1100", "Max", "float32", "buffer_atomic_max_f32"), ("gfx1100", "Max", "int32", "buffer_atomic_max_i32"),
     ("gfx1201", "PkAdd", "bfloat16", "buffer_atomic_pk_add_bf16"), ("gfx1201", "Min", "uint32", "buffer_atomic_min_u32"),
     ("gfx1250", "PkAdd", "float16", "buffer_atomic_pk_add_f16"), ("gfx1250", "Max", "float64", "buffer_atomic_max_num_f64")],
)  # fmt: skip
def test_buffer_atomic(arch, op, dtype, isa):
    """Small integers, which every type adds exactly; the last bin lies outside of the buffer."""
    dtype = bf16() if dtype == "bfloat16" else np.dtype(dtype)
    count, bins = (2 if op == "PkAdd" else 1), 4
    rng = np.random.default_rng(6)
    x = rng.integers(0, 8, LANES * count).astype(dtype)
    out = np.full(bins * count, 5).astype(dtype)
    guard = out.copy()
    with on(arch):
        buffer_atomic(x, out, op, bins)
        assert mnemonics(isa_of(buffer_atomic, x, guard, op, bins)).count(isa) == 1
    fn = {"Add": np.add, "PkAdd": np.add, "Max": np.maximum, "Min": np.minimum}[op]
    expected = guard.astype(np.float64).reshape(bins, count)
    for lane in range(LANES):
        if lane % bins + 1 < bins:
            expected[lane % bins + 1] = fn(expected[lane % bins + 1], x.astype(np.float64).reshape(LANES, count)[lane])
    np.testing.assert_array_equal(out.astype(np.float64).reshape(bins, count), expected)


# --- gather and scatter ----------------------------------------------------------------------------------------------------


@flyc.kernel
def permute_rows_kernel(
    src: fx.Tensor, offsets: fx.Tensor, dst: fx.Tensor, op: fx.Constexpr[str], vec: fx.Constexpr[int]
):
    """Each lane moves 4 pieces of `vec` elements whose offsets a table says."""
    lane = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy(32 * vec), fx.Float32)
    table = fx.make_rmem_tensor(4, fx.Int32)
    pred = fx.make_rmem_tensor(4, fx.Boolean)
    for i in fx.range_constexpr(4):
        table[i] = offsets[lane * 4 + i]
        pred[i] = offsets[lane * 4 + i] >= 0
    frag = fx.make_rmem_tensor(fx.make_layout(((vec, 4),), ((1, vec),)), fx.Float32)
    frag.fill(-1)
    plain = fx.make_view(
        fx.add_offset((dst if op == "gather" else src).iter, lane * 4 * vec), fx.make_layout(((vec, 4),), ((1, vec),))
    )
    if fx.const_expr(op == "gather"):
        fx.gather(atom, src.iter, table, frag, pred=pred)
        fx.copy(atom, frag, plain)
    else:
        fx.copy(atom, plain, frag)
        fx.scatter(atom, frag, dst.iter, table, pred=pred)


@flyc.jit
def permute_rows(src: fx.Tensor, offsets: fx.Tensor, dst: fx.Tensor, op: fx.Constexpr[str], vec: fx.Constexpr[int]):
    permute_rows_kernel(src, offsets, dst, op, vec).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


@pytest.mark.parametrize("op", ["gather", "scatter"])
@pytest.mark.parametrize("vec", [1, 4])
def test_gather_and_scatter(op, vec):
    rng = np.random.default_rng(7)
    n = LANES * 4
    places = rng.permutation(n).astype(np.int32) * vec
    places[rng.integers(0, n, 20)] = -1
    src, dst = rng.standard_normal(n * vec).astype(np.float32), np.full(n * vec, -1, np.float32)
    with on("gfx942"):
        permute_rows(src, places, dst, op, vec)
    rows, out = src.reshape(n, vec), np.full((n, vec), -1, np.float32)
    for i, place in enumerate(places):
        if place >= 0:
            if op == "gather":
                out[i] = rows[place // vec]
            else:
                out[place // vec] = rows[i]
    np.testing.assert_array_equal(dst.reshape(n, vec), out)

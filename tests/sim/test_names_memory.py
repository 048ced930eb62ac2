"""Pointers, single accesses, atomics, buffers and LDS of `fx`, name by name, against NumPy."""

import numpy as np
import pytest
from named import CDNA, CHIPS, Case, check, launched, table

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr import buffer_ops, gpu
from flydsl.expr.typing import T

R, L = fx.rocdl, fx.make_layout
N = 128
RNG = np.random.default_rng(13)
FLOATS = np.float32(RNG.standard_normal(4 * N))
FLOATS[:6] = (np.inf, -np.inf, -0.0, 1e-42, np.nan, 3e38)
WORDS = RNG.integers(-(1 << 31), 1 << 31, 4 * N).astype(np.int32)
IDS = np.arange(N)


# --- views, pointers ------------------------------------------------------------------------------------------------------------


def views(i, x, out):
    """A (32, 16) view of 512 floats: every accessor and every way to one element."""
    p = fx.get_iter(x)
    v = fx.make_view(p, L((32, 16), (16, 1)))
    assert v.iter.dtype is fx.Float32 and v.dtype is fx.Float32 and v.address_space == fx.AddressSpace.Global
    assert v.leading_dim == 1 and v.alignment == p.alignment
    assert str(v.layout) == str(fx.get_layout(v)) and str(v.shape) == "IntTuple<(32,16)>" and str(v.stride) == "IntTuple<(16,1)>"
    row, column = i % 32, i // 32
    out[i * 8] = v[row, column]
    out[i * 8 + 1] = fx.memref_load(v, (row, column + 4))
    out[i * 8 + 2] = v[row, None][column + 8]
    out[i * 8 + 3] = fx.slice(v, (None, column))[row]
    out[i * 8 + 4] = (p + (row * 16 + column)).load()
    out[i * 8 + 5] = fx.add_offset(p, row * 16 + column)[4]
    out[i * 8 + 6] = fx.ptr_load(fx.add_offset(v.iter, fx.make_int_tuple(i)))
    out[i * 8 + 7] = fx.ptr_load(p + i * 4, fx.Float32x4)[1]


def viewed(n, x):
    v, row, column = x.reshape(32, 16), IDS % 32, IDS // 32
    return np.stack([v[row, column], v[row, column + 4], v[row, column + 8], v[row, column], v[row, column], v[row, column + 4],
                     x[IDS], x[4 * IDS + 1]], axis=1).reshape(-1)  # fmt: skip


def stores(i, x, out):
    p = fx.get_iter(out) + i * 8
    v = fx.make_view(p, L(8, 1))
    v[0] = x[i]
    fx.memref_store(x[i + 1], v, 1)
    (p + 2).store(x[i + 2])
    p[3] = 2  # a Python int becomes the element type
    fx.ptr_store(x[i + 3], p + 4)
    pair = fx.make_view(p + 5, L(2, 1))
    fx.memref_store_vec(fx.Vector.from_elements([x[i + 4], x[i + 5]]), pair)
    fx.make_view(p + 7, L(1, 1)).store(fx.Vector.filled(1, x[i + 6], fx.Float32))


def stored(n, x):
    rows = np.stack([x[i : i + 8] for i in range(N)])
    return np.stack([rows[:, 0], rows[:, 1], rows[:, 2], np.full(N, 2, np.float32), rows[:, 3], rows[:, 4], rows[:, 5], rows[:, 6]],
                    axis=1).reshape(-1)  # fmt: skip


def casts(i, x, out):
    p = fx.get_iter(x) + i
    address = fx.ptrtoint(p)
    assert isinstance(address, fx.Int64)
    kind = fx.PointerType.get(fx.Int32.ir_type, fx.AddressSpace.Global, 4)
    out[i * 6] = fx.recast_iter(fx.Int32, p)[0]
    out[i * 6 + 1] = fx.inttoptr(kind, address)[0]
    out[i * 6 + 2] = fx.recast_iter(fx.Uint16, p)[1].to(fx.Uint16).to(fx.Int32)  # loads have no sign of their own
    out[i * 6 + 3] = fx.make_ptr(kind, [p.llvm_ptr])[0]
    out[i * 6 + 4] = fx.make_ptr(kind, [address + 4])[0]
    out[i * 6 + 5] = (fx.ptrtoint(p + 3) - address).to(fx.Int32)


def cast(n, x):
    bits = x.view(np.int32)
    high = x.view(np.uint16).reshape(-1, 2)[:N, 1].astype(np.int32)
    return np.stack([bits[:N], bits[:N], high, bits[:N], bits[1 : N + 1], np.full(N, 12, np.int32)], axis=1).reshape(-1)


def raw_pointers(i, x, out):
    from flydsl._mlir.dialects import llvm

    p = fx.get_iter(x) + i
    out[i * 2] = fx.Float32(llvm.load(T.f32, fx.to_llvm_ptr(p)))
    fragment = fx.memref_alloca(fx.MemRefType.get(T.f32, L((2, 2), (1, 2)).type, fx.AddressSpace.Register))
    fragment.fill(0.5)
    fragment[1, 1] = p[1]
    total = fx.memref_load_vec(fragment)
    out[i * 2 + 1] = total[0] + total[3]


VIEWS = [
    Case("make_view and its elements", views, (FLOATS,), viewed, tried=CDNA),
    Case("stores through views and pointers", stores, (FLOATS,), stored, tried=("gfx942", "gfx1201")),
    Case("recast_iter, ptrtoint, inttoptr, make_ptr", casts, (FLOATS,), cast, tried=("gfx942", "gfx1201")),
    Case("to_llvm_ptr, memref_alloca, MemRefType", raw_pointers, (FLOATS,),
         lambda n, x: np.stack([x[:N], x[1 : N + 1] + np.float32(0.5)], axis=1).reshape(-1), tried=("gfx942",)),
]  # fmt: skip


@table(VIEWS)
def test_views_and_pointers(case, arch):
    check(case, arch)


# --- generic loads and stores, fences --------------------------------------------------------------------------------------------

O, S = fx.AtomicOrdering, fx.rocdl.SyncScope


def generic(i, x, out):
    p, q = fx.get_iter(x) + i * 4, fx.get_iter(out) + i * 10
    fx.generic_store(q, fx.generic_load(p))
    fx.generic_store(q + 1, fx.generic_load(p, dtype=fx.Float32, memory_order=O.Monotonic, syncscope=S.Agent), memory_order=O.Unordered)
    fx.generic_store(q + 2, fx.generic_load(p, count=4, nontemporal=True), nontemporal=True)
    fx.generic_store(q + 6, fx.generic_load(p + 2, volatile=True), volatile=True, memory_order=O.Release, syncscope=S.Workgroup)
    fx.generic_store(q + 7, fx.generic_load(p, dtype=fx.Int32).bitcast(fx.Float32), memory_order="seq_cst")
    fx.memory_fence()
    fx.memory_fence(syncscope=S.WorkgroupOneAs, ordering=O.Acquire)
    fx.generic_store(q + 8, fx.generic_load(p + 1, memory_order=O.Acquire, syncscope=S.Wavefront))
    fx.generic_store(q + 9, 3)


def generic_want(n, x):
    rows = x.reshape(N, 4)
    return np.concatenate([rows[:, :1], rows[:, :1], rows, rows[:, 2:3], rows[:, :1], rows[:, 1:2], np.full((N, 1), 3, np.float32)],
                          axis=1).reshape(-1)  # fmt: skip


FENCES = r"global_load_dwordx4[^\n]* nt|global_load_b128[^\n]* (slc|th:)"
GENERIC = [Case("generic_load, generic_store, memory_fence", generic, (FLOATS,), generic_want, FENCES, tried=("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"))]


@table(GENERIC)
def test_generic_accesses(case, arch):
    check(case, arch)


@pytest.mark.parametrize("scope", [n for n in dir(S) if not n.startswith("_")])
def test_every_scope_compiles(scope):
    """An addition with each scope, acquire and release; the result does not depend on them."""

    def body(i, x, out):
        value = getattr(S, scope)
        fx.atomic_add(fx.get_iter(out), fx.Int32(1), syncscope=value, ordering=O.AcqRel)
        fx.memory_fence(syncscope=value, ordering=O.Release)

    case = Case(scope, body, (WORDS,), lambda n, x: np.int32([0]), tried=("gfx942",))
    out, _, isa = launched(case, "gfx942")
    assert out[0] == np.frombuffer(b"\xa5" * 4, np.int32)[0] + N and "global_atomic_add" in isa()


# --- atomics ---------------------------------------------------------------------------------------------------------------------

BITS = (1 << (IDS % 31)).astype(np.int32)


def old_values(op, start, dtype, **options):
    """A body that applies `op` to one word of its own, so that the old value is known, and to one that all lanes share."""

    def body(i, x, out):
        p = fx.get_iter(out)
        own, shared = p + N + i, p + 2 * N
        fx.generic_store(own, dtype(start))
        if op in ("fmin", "fmax"):
            p[i] = getattr(fx, f"atomic_{op}")(own, x[i], **options)
        else:
            p[i] = getattr(fx, f"atomic_{op}")(own, dtype(x[i]), syncscope=S.Agent, ordering=O.Monotonic)
        getattr(fx, f"atomic_{op}")(shared, dtype(x[i]))

    return body


def atomic_want(op, start):
    fold = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
            "xor": np.bitwise_xor, "fmax": np.fmax, "fmin": np.fmin, "xchg": lambda a, b: b}[op]  # fmt: skip

    def want(n, x):
        first = np.full(N, start, x.dtype)
        shared = np.frombuffer(b"\xa5" * x.itemsize, x.dtype)
        for value in x:
            shared = fold(shared, value[None] if np.ndim(value) else np.array([value], x.dtype)).astype(x.dtype)
        return np.concatenate([first, fold(first, x).astype(x.dtype), shared])

    return want


INTEGERS = RNG.integers(-1000, 1000, N).astype(np.int32)
UNSIGNED = RNG.integers(0, 1 << 32, N).astype(np.uint32)
LONGS = RNG.integers(-(1 << 62), 1 << 62, N)
SMALL = RNG.integers(-8, 8, N).astype(np.float32)
DOUBLES = SMALL.astype(np.float64)
# Where LLVM cannot rule out memory behind PCIe, which has add and exchange only, it loops over compare and swap.
CAS = "global_atomic_cmpswap"
NATIVE = {"gfx942": "global_atomic_smax", "gfx1201": "global_atomic_max_i32"}
ATOMICS = [
    Case(f"atomic_{op} of {x.dtype}", old_values(op, start, cls), (x,), atomic_want(op, start), isa, chips, tried=tried)
    for op, start, cls, x, isa, chips, tried in (
        ("add", 5, fx.Int32, INTEGERS, r"global_atomic_add(_u32)?\b", CHIPS, CHIPS),
        ("sub", 5, fx.Int32, INTEGERS, {"gfx9": r"global_atomic_(sub|add)"}, CHIPS, CDNA),
        ("max", 5, fx.Int32, INTEGERS, NATIVE | {"gfx1100": CAS}, CHIPS, CHIPS),
        ("min", 5, fx.Uint32, UNSIGNED, {"gfx942": "global_atomic_umin", "gfx1201": "global_atomic_min_u32"}, CHIPS, CHIPS),
        ("max", 5, fx.Int64, LONGS, {"gfx9": r"global_atomic_(smax_x2|max_i64)"}, CHIPS, CDNA),
        ("and", -1, fx.Int32, INTEGERS, {"gfx9": "global_atomic_and"}, CHIPS, CDNA),
        ("or", 0, fx.Int32, BITS, {"gfx9": "global_atomic_or"}, CHIPS, CDNA),
        ("xor", 0, fx.Int32, BITS, {"gfx942": "global_atomic_xor", "gfx1100": CAS}, CHIPS, CDNA),
        ("add", 0.5, fx.Float32, SMALL, {"gfx942": "global_atomic_add_f32", "gfx1100": CAS, "gfx1201": "global_atomic_add_f32"}, CHIPS, CHIPS),
        ("add", 0.5, fx.Float64, DOUBLES, {"gfx9": "global_atomic_add_f64"}, CHIPS, CDNA),
        ("max", 0.5, fx.Float64, DOUBLES, {"gfx9": "global_atomic_max_f64"}, CHIPS, CDNA),
        ("fmax", 0.5, fx.Float32, SMALL, "", CHIPS, ("gfx942", "gfx1201")),
        ("fmin", 0.5, fx.Float32, SMALL, "", CHIPS, ("gfx950", "gfx1100")),
    )
]  # fmt: skip


@table(ATOMICS)
def test_atomics(case, arch):
    check(case, arch)


def exchanges(i, x, out):
    """xchg and cas on words of one's own and in LDS; the shared word is taken by exactly one lane."""
    p = fx.get_iter(out) + i * 6
    fx.ptr_store(fx.Int32(10), p)
    p[1] = fx.atomic_xchg(p, x[i])
    old, done = fx.atomic_cas(p, x[i], fx.Int32(7), success_ordering=O.AcqRel, failure_ordering=O.Acquire, weak=False)
    p[2], p[3] = old, fx.Int32(done)
    old, done = fx.atomic_cas(p, x[i] + 1, 99, syncscope=S.Workgroup)  # memory holds 7
    p[4], p[5] = old, fx.Int32(done)


EXCHANGES = [
    Case("atomic_xchg, atomic_cas", exchanges, (INTEGERS,), lambda n, x: np.stack(
        [np.where(x + 1 == 7, 99, 7), np.full(N, 10), x, np.ones(N), np.full(N, 7), x + 1 == 7], axis=1).astype(np.int32).reshape(-1),
        "global_atomic_(swap|cmpswap)", not_emulated="a failed compare and swap gives no old value"),
]  # fmt: skip


@table(EXCHANGES)
def test_exchanges(case, arch):
    check(case, arch)


def signed_extremes(i, x, out):
    """fmin and fmax by integer atomics where the sign is promised."""
    p = fx.get_iter(out) + i * 4
    p[0], p[1], p[2], p[3] = 1.0, 1.0, -1.0, -1.0
    fx.atomic_fmax(p, x[i], is_positive=True, syncscope=S.Agent)
    fx.atomic_fmin(p + 1, x[i], is_positive=True, syncscope=S.Agent)
    fx.atomic_fmax(p + 2, -x[i], is_positive=False, syncscope=S.Agent)
    fx.atomic_fmin(p + 3, -x[i], is_positive=False, syncscope=S.Agent)


POSITIVE = np.abs(SMALL) / 2 + np.float32(0.25)
EXTREMES = [
    Case("atomic_fmax, atomic_fmin of a known sign", signed_extremes, (POSITIVE,), lambda n, x: np.stack(
        [np.maximum(x, 1), np.minimum(x, 1), np.maximum(-x, -1), np.minimum(-x, -1)], axis=1).astype(np.float32).reshape(-1),
        {"gfx942": r"atomic_smax[\s\S]*atomic_smin[\s\S]*atomic_umin[\s\S]*atomic_umax",
         "gfx1201": r"atomic_max_i32[\s\S]*atomic_min_i32[\s\S]*atomic_min_u32[\s\S]*atomic_max_u32"}),
]  # fmt: skip


@table(EXTREMES)
def test_float_extremes(case, arch):
    check(case, arch)


@flyc.jit
def lds_atomics(i, x, out):
    """A histogram in LDS: integers by add, floats by add and max."""
    counts = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 8]).peek()
    if i < 8:
        counts[i] = fx.Int32(0)
    fx.barrier()
    fx.atomic_add(counts.ptr + (x[i] & 7), 1, syncscope=S.Workgroup)
    fx.atomic_max(counts.ptr + 7, fx.Int32(1000) + i)
    fx.barrier()
    if i < 8:
        out[i] = counts[i]


def histogram(n, x):
    return np.append(np.bincount(x & 7, minlength=8)[:7], 1000 + N - 1).astype(np.int32)


LDS_ATOMICS = [
    Case("atomics in LDS", lds_atomics, (INTEGERS & ~4,), histogram, r"ds_add_u32[\s\S]*ds_max_(rtn_)?i32"),
]


@table(LDS_ATOMICS)
def test_atomics_in_lds(case, arch):
    check(case, arch)


# --- buffers ---------------------------------------------------------------------------------------------------------------------

PLACES = np.concatenate([RNG.integers(0, 4 * N, N - 6), [-1, 4 * N, 4 * N - 1, 1 << 29, -(1 << 29), 0]]).astype(np.int32)


def inside(at, size):
    """Whether a 4-byte access at element `at` is inside of `size` bytes, as unsigned 32-bit byte offsets."""
    offset = (at.astype(np.int64) * 4) % (1 << 32)
    return offset + 4 <= size, offset // 4


def bounded_loads(i, x, at, out):
    where = at[i]
    full = R.make_buffer_tensor(x, max_size=False)
    half = R.make_buffer_tensor(x, num_records_bytes=fx.Int32(4 * N))
    third = R.make_buffer_ptr(fx.get_iter(x), num_records_bytes=fx.Int64(400))
    atom = fx.make_copy_atom(R.BufferCopy32b(), fx.Float32)
    for k, pointer in enumerate((full.iter, half.iter, third)):
        fragment = fx.make_rmem_tensor(1, fx.Float32)
        fx.copy(atom, fx.make_view(fx.add_offset(pointer, where), L(1, 1)), fragment)
        out[i * 5 + k] = fragment[0]
    rsrc = R.get_buffer_rsrc(third)
    out[i * 5 + 3] = R.raw_ptr_buffer_load(fx.Float32, rsrc, where * 4, 0, 0)
    out[i * 5 + 4] = fx.Float32(R.raw_ptr_buffer_load(T.f32, rsrc, offset=i * 4, soffset=fx.block_idx.x + 8))


def bounded(n, x, at):
    columns = []
    for size in (16 * N, 4 * N, 400, 400):
        good, place = inside(at, size)
        columns.append(np.where(good, x[np.where(good, place, 0)], np.float32(0)))
    shifted = IDS + 2
    columns.append(np.where(shifted < 100, x[shifted], 0))
    return np.stack(columns, axis=1).astype(np.float32).reshape(-1)


def bounded_stores(i, x, at, out):
    p = fx.get_iter(out)
    p[i], p[i + N] = fx.Float32(-1.0), fx.Float32(-1.0)
    fx.barrier()
    rsrc = R.get_buffer_rsrc(R.make_buffer_ptr(p, 4 * N))
    R.raw_ptr_buffer_store(x[i], rsrc, (at[i]) * 4, 0, 1)
    rest = R.get_buffer_rsrc(R.make_buffer_tensor(out, num_records_bytes=4 * N + 40))
    R.raw_ptr_buffer_store(vdata=x[i].ir_value(), rsrc=rest, offset=fx.Int32(4) * i, soffset=4 * N)


def bounded_stored(n, x, at):
    out = np.full(2 * N, -1, np.float32)
    good, place = inside(at, 4 * N)
    out[place[good]] = x[:N][good]
    out[N : N + 10] = x[:10]
    return out


PERMUTED = np.concatenate([RNG.permutation(N)[: N - 4], [-1, N, 1 << 29, -(1 << 29)]]).astype(np.int32)


def scalar_loads(i, x, out):
    p = R.make_buffer_ptr(fx.get_iter(x), 64)
    block = fx.block_idx.x
    out[i * 7] = R.s_buffer_load(p, 3)
    out[i * 7 + 1] = R.s_buffer_load(p, block + 15, cache_modifier=0)
    out[i * 7 + 2] = R.s_buffer_load(fx.add_offset(p, 2), block)
    four = R.s_buffer_load(p, block + 4, count=4)
    for k in range(4):
        out[i * 7 + 3 + k] = four[k]


def scalars(n, x):
    return np.tile(np.concatenate([x[[3, 15, 2]], x[4:8]]), N)


def raw_layer(i, x, out):
    """The layer of flydsl.expr.buffer_ops: offsets in elements of dtype, masks."""
    rsrc = buffer_ops.create_buffer_resource(x, num_records_bytes=4 * N)
    moved = buffer_ops.create_buffer_resource(x, max_size=False, base_byte_offset=16)
    by_address = buffer_ops.create_buffer_resource_from_addr(fx.ptrtoint(fx.get_iter(x)), num_records_bytes=4 * N)
    target = buffer_ops.create_buffer_resource(out, num_records_bytes=4 * 8 * N)
    four = fx.Vector(buffer_ops.buffer_load(rsrc, i % 16 * 4))
    one = fx.Float32(buffer_ops.buffer_load(rsrc, i, vec_width=1, dtype=T.f32, mask=i % 2 == 0))
    two = fx.Vector(buffer_ops.buffer_load(moved, i, 2, fx.Float32, cache_modifier=2))
    half = fx.Float16(buffer_ops.buffer_load(by_address, i * 2 + 1, vec_width=1, dtype=T.f16))
    shifted = fx.Float32(buffer_ops.buffer_load(rsrc, i, 1, soffset_bytes=8))
    buffer_ops.buffer_store(four, target, i * 8)
    buffer_ops.buffer_store(one, target, i * 32 + 16, offset_is_bytes=True)
    buffer_ops.buffer_store(two[1], target, i * 8 + 5, mask=i < 100)
    buffer_ops.buffer_store(half.to(fx.Float32), target, i * 8 + 6)
    buffer_ops.buffer_store(shifted, target, i * 8, soffset_bytes=28)


def raw_layer_want(n, x):
    unset = np.frombuffer(b"\xa5" * 4, np.float32)[0]
    four = x[: 4 * 16].reshape(16, 4)[IDS % 16]
    one = np.where(IDS % 2 == 0, x[:N], 0)
    two = np.where(IDS < 100, x[IDS + 5], unset)
    half = x.view(np.float16)[IDS * 2 + 1].astype(np.float32)
    shifted = np.where(IDS + 2 < N, x[IDS + 2], 0)
    return np.concatenate([four, np.stack([one, two, half, shifted], axis=1)], axis=1).astype(np.float32).reshape(-1)


TAME = np.clip(np.nan_to_num(FLOATS), -100, 100)
BUFFERS = [
    Case("make_buffer_tensor, make_buffer_ptr, get_buffer_rsrc, raw_ptr_buffer_load", bounded_loads, (FLOATS, PLACES), bounded,
         r"buffer_load_(dword|b32)"),
    Case("raw_ptr_buffer_store", bounded_stores, (FLOATS, PERMUTED), bounded_stored,
         {"gfx942": "buffer_store_dword.* sc0", "gfx950": "buffer_store_dword.* sc0", "gfx1100": "buffer_store_b32.* glc"}),
    Case("s_buffer_load", scalar_loads, (WORDS,), scalars, r"s_buffer_load_(dwordx4|b128)", not_emulated="no such instruction"),
    Case("flydsl.expr.buffer_ops", raw_layer, (TAME,), raw_layer_want, r"buffer_load_(dwordx4|b128)"),
]  # fmt: skip


@table(BUFFERS)
def test_buffers(case, arch):
    check(case, arch)


def buffer_adds(vector):
    def body(i, x, out):
        p = fx.get_iter(out)
        fx.make_view(p + i * 2, L(2, 1)).store(fx.Vector.filled(2, 1.0, out.dtype))
        fx.barrier()
        rsrc = R.get_buffer_rsrc(R.make_buffer_ptr(p, N * out.dtype.width // 8))  # the upper half is outside
        if vector:
            pair = fx.make_view(fx.get_iter(x) + i * 2, L(2, 1)).load()
            R.raw_ptr_buffer_atomic_fadd(pair.ir_value(), rsrc, i * 4, 0, 0)
        else:
            R.raw_ptr_buffer_atomic_fadd(x[i], rsrc, i * 4, 0)
            R.raw_ptr_buffer_atomic_fadd(T.f32, x[i].ir_value(), rsrc, fx.Int32(4) * N, fx.Int32(0), aux=0)

    return body


def added(n, x):
    out = np.ones(2 * N, x.dtype)
    out[:N] = (out[:N].astype(np.float64) + x[:N].astype(np.float64)).astype(x.dtype)
    return out


def buffer_largest(i, x, out):
    """raw_ptr_buffer_atomic_fmax, smax and umin: the old values, and what is left in memory."""
    p = fx.get_iter(out)
    fx.recast_iter(fx.Float32, p)[i], p[i + N], p[i + 2 * N] = fx.Float32(0.5), fx.Int32(0), fx.Int32(-1)
    fx.barrier()
    rsrc = R.get_buffer_rsrc(R.make_buffer_ptr(p, 3 * 4 * N))
    R.raw_ptr_buffer_atomic_fmax(x[i], rsrc, i * 4, 0)
    word = x[i].to(fx.Int32)
    R.raw_ptr_buffer_atomic_smax(word, rsrc, i * 4, 4 * N)
    old = R.raw_ptr_buffer_atomic_umin(T.i32, word.ir_value(), rsrc, i * 4, 8 * N)
    p[i + 3 * N] = fx.Int32(old)


def largest(n, x):
    words = x.astype(np.int32)
    left = np.minimum(words.view(np.uint32), np.uint32(0xFFFFFFFF)).view(np.int32)
    return np.concatenate([np.maximum(x, np.float32(0.5)).view(np.int32), np.maximum(words, 0), left, np.full(N, -1, np.int32)])


def bfloat(x):
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16)


PAIRS = RNG.integers(-8, 8, 2 * N).astype(np.float16)
BUFFER_ADDS = [
    Case("raw_ptr_buffer_atomic_fmax, smax, umin", buffer_largest, (SMALL,), largest,
         r"buffer_atomic_max(_num)?_f32[\s\S]*buffer_atomic_max_i32[\s\S]*buffer_atomic_min_u32", ("gfx1100", "gfx1201", "gfx1250")),
    Case("raw_ptr_buffer_atomic_fadd of f32", buffer_adds(False), (SMALL,), added, "buffer_atomic_add_f32"),
    Case("raw_ptr_buffer_atomic_fadd of two f16", buffer_adds(True), (PAIRS,), added, "buffer_atomic_pk_add_f16",
         ("gfx942", "gfx950", "gfx1201", "gfx1250")),
    Case("raw_ptr_buffer_atomic_fadd of two bf16", buffer_adds(True), (bfloat(PAIRS),), added, "buffer_atomic_pk_add_bf16",
         ("gfx950", "gfx1201", "gfx1250")),
]  # fmt: skip


@table(BUFFER_ADDS)
def test_buffer_atomics(case, arch):
    check(case, arch)


# --- DMA to LDS --------------------------------------------------------------------------------------------------------------------


def dma(form, size):
    """Each wave brings 64 * size bytes into its part of LDS; a lane then reads another lane's part."""

    def body(i, x, out):
        words = size // 4
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N * words, 16]).peek()
        wave = R.readfirstlane(fx.Int32, i // 64)
        rsrc = R.get_buffer_rsrc(R.make_buffer_ptr(fx.get_iter(x), N * size - 8))  # the last lane's data are outside
        base = (lds.ptr + wave * 64 * words).llvm_ptr
        if form == "raw":
            R.raw_ptr_buffer_load_lds(rsrc, base, size, i * size, 0, 0, 0)
        elif form == "offset":
            R.raw_ptr_buffer_load_lds(rsrc, base, fx.Int32(size), i * size - 8, fx.Int32(4), fx.Int32(4), aux=0)
        else:
            R.buffer_load_to_lds(rsrc, base, i * size, size_bytes=size, soffset=0, offset=0)
        R.s_waitcnt(vmcnt=0)
        fx.barrier()
        for k in range(words):
            out[i * words + k] = lds[(i ^ 5) * words + k]

    return body


def landed(size, shift=0):
    def want(n, x):
        words = size // 4
        rows = x[: N * words].copy()
        rows[N * words - 2 :] = 0
        return rows.reshape(N, words)[IDS ^ 5].reshape(-1)

    return want


DMA = [
    Case(f"{name} of {size} bytes", dma(form, size), (WORDS,), landed(size), f"buffer_load_dword{'x4' if size == 16 else ''} .*lds", chips)
    for form, name in (("raw", "raw_ptr_buffer_load_lds"), ("to", "buffer_load_to_lds"))
    for size, chips in ((4, CDNA), (16, ("gfx950",)))
]  # fmt: skip


@table(DMA)
def test_dma(case, arch):
    check(case, arch)


def marked(i, x, out):
    """Two asynchronous groups; after wait_asyncmark(1) the first one is there, after wait_asyncmark() both are."""
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 2 * N * 4, 16]).peek()
    wave = R.readfirstlane(fx.Int32, i // 64)
    src = R.make_buffer_tensor(x)
    atom = fx.make_copy_atom(R.cdna4.BufferLoadAsyncLDS(128), fx.Int32)
    for k in range(2):
        here = fx.make_view(lds.ptr + (k * N + wave * 64) * 4, L(4, 1))
        fx.copy(atom, fx.make_view(fx.add_offset(src.iter, (i if k == 0 else N - 1 - i) * 4), L(4, 1)), here)
        R.asyncmark()
    R.wait_asyncmark(1)
    fx.barrier()
    out[i * 2] = lds[(i ^ 3) * 4]
    R.wait_asyncmark()
    fx.barrier()
    out[i * 2 + 1] = lds[(N + (i ^ 3)) * 4 + 3]


ASYNC = [
    Case("asyncmark, wait_asyncmark, BufferLoadAsyncLDS", marked, (WORDS,), lambda n, x: np.stack(
        [x.reshape(N, 4)[IDS ^ 3, 0], x.reshape(N, 4)[N - 1 - (IDS ^ 3), 3]], axis=1).reshape(-1), r"buffer_load_dwordx4 .*lds", ("gfx950",)),
]  # fmt: skip


@table(ASYNC)
def test_async_groups(case, arch):
    check(case, arch)


def global_async(size):
    def body(i, x, out):
        words = max(size // 4, 1)
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N * words, 16]).peek()
        here = (lds.ptr + i * words).llvm_ptr
        there = (fx.get_iter(x) + i * words).llvm_ptr
        getattr(R, f"global_load_async_to_lds_b{8 * size}")(there, here, 0)
        R.s_wait_asynccnt(0)
        fx.barrier()
        for k in range(words):
            out[i * words + k] = lds[(i ^ 5) * words + k]

    return body


def cluster_async(i, x, out):
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N * 4, 16]).peek()
    R.cluster_load_async_to_lds((fx.get_iter(x) + i * 4).llvm_ptr, (lds.ptr + i * 4).llvm_ptr, 16)
    R.s_wait_asynccnt()
    fx.barrier()
    for k in range(4):
        out[i * 4 + k] = lds[(i ^ 5) * 4 + k]


def swapped_rows(words):
    return lambda n, x: x[: N * words].reshape(N, words)[IDS ^ 5].reshape(-1)


GFX1250 = [
    *(Case(f"global_load_async_to_lds_b{8 * size}", global_async(size), (WORDS,), swapped_rows(size // 4), f"global_load_async_to_lds_b{8 * size}",
           ("gfx1250",)) for size in (4, 8, 16)),
    Case("cluster_load_async_to_lds without a mask", cluster_async, (WORDS,), swapped_rows(4), "global_load_async_to_lds_b128", ("gfx1250",)),
]  # fmt: skip


@table(GFX1250)
def test_async_copies_of_gfx1250(case, arch):
    check(case, arch)


# --- transposing LDS reads -----------------------------------------------------------------------------------------------------------


def transposed(name, result, words):
    def body(i, x, out):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N * words, 16]).peek()
        for k in range(words):
            lds[i * words + k] = x[i * words + k]
        fx.barrier()
        got = fx.Vector(getattr(R, name)(result(), (lds.ptr + i * words).llvm_ptr)).bitcast(fx.Int32)
        for k in range(words):
            out[i * words + k] = got[k]

    return body


def codes(x, bits, words):
    """Return (lanes, codes per lane) of a lane's words, lowest first."""
    rows = np.unpackbits(np.ascontiguousarray(x).view(np.uint8).reshape(-1, 4 * words), axis=1, bitorder="little")
    return (rows.reshape(len(rows), -1, bits) * (1 << np.arange(bits))).sum(axis=2)


def words_of(values, bits):
    spread = (values[..., None] >> np.arange(bits)) & 1
    return np.packbits(spread.reshape(len(values), -1).astype(np.uint8), axis=1, bitorder="little").view(np.int32).reshape(-1)


def rows_of_sixteen(bits, words):
    """gfx950: the data of 16 lanes in order; lane t receives the elements t, t + 16, t + 32, ..."""

    def want(n, x):
        table = codes(x[: N * words], bits, words)
        groups = table.reshape(-1, 16, table.shape[1])
        out = groups.reshape(len(groups), table.shape[1], 16).transpose(0, 2, 1)
        return words_of(out.reshape(N, -1), bits)

    return want


TRANSPOSED = [
    Case(name, transposed(name, result, words), (WORDS,), rows_of_sixteen(bits, words), isa, ("gfx950",))
    for name, result, bits, words, isa in (
        ("ds_read_tr16_b64", lambda: T.vec(4, T.f16), 16, 2, "ds_read_b64_tr_b16"),
        ("ds_read_tr8_b64", lambda: T.vec(2, T.i32), 8, 2, "ds_read_b64_tr_b8"),
        ("ds_read_tr4_b64", lambda: T.vec(2, T.i32), 4, 2, "ds_read_b64_tr_b4"),
        ("ds_read_tr6_b96", lambda: T.vec(3, T.i32), 6, 3, "ds_read_b96_tr_b6"),
    )
]  # fmt: skip


@table(TRANSPOSED)
def test_transposed_reads(case, arch):
    check(case, arch)


# --- LDS ---------------------------------------------------------------------------------------------------------------------------


def dynamic(i, x, out):
    """get_dyn_shared in both forms, and a swizzled pointer to the same bytes."""
    lds = gpu.get_dyn_shared(fx.Float32)
    raw = fx.get_dyn_shared()
    assert raw.dtype in (fx.Int8, fx.Uint8) and raw.alignment == 1024
    lds[i] = x[i]
    fx.barrier()
    out[i * 2] = fx.recast_iter(fx.Float32, raw)[i ^ 1]
    fx.barrier()
    swizzled = fx.apply_swizzle(lds, fx.static(fx.SwizzleType.get(2, 4, 3)))
    swizzled[i] = x[i]
    fx.barrier()
    out[i * 2 + 1] = lds[i]


def swizzle_bytes(offset, bits, base, shift):
    mask = (1 << bits) - 1
    return offset ^ ((offset >> (base + shift) & mask) << base)


def dynamic_want(n, x):
    placed = np.zeros(N, np.float32)
    placed[swizzle_bytes(IDS * 4, 2, 4, 3) // 4] = x[:N]
    return np.stack([x[:N][IDS ^ 1], placed], axis=1).reshape(-1)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_dynamic_lds(arch):
    from flydsl.utils import env

    @flyc.kernel
    def kernel(x: fx.Tensor, out: fx.Tensor):
        dynamic(fx.thread_idx.x, x, out)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(N, 1, 1), smem=4 * N)

    out = np.zeros(2 * N, np.float32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(FLOATS, out)
    np.testing.assert_array_equal(out, dynamic_want(0, FLOATS))


def shapes_of_storage(static):
    def body(i, x, out):
        Pair = fx.Struct["a" : fx.Int32, "b" : fx.Array[fx.Float32, 4]]
        Either = fx.Union["word" : fx.Int32, "bytes" : fx.Array[fx.Uint8, 4]]

        @fx.struct
        class All:
            pairs: fx.Align[fx.Array[fx.Float32, N], 64]
            one: Pair
            either: Either
            nothing: fx.Empty

        allocator = fx.SharedAllocator(32, static=static)
        storage = allocator.allocate(All, alignment=128)
        used = allocator.allocated_bytes
        data = allocator.allocate(100)
        assert allocator.allocated_bytes >= used + 100 and used >= 4 * N + 20 + 4
        if not static:
            assert allocator.base_ptr.alignment == 1024
        pairs = storage.pairs.peek()
        assert pairs.ptr.alignment >= 64 and pairs.size == N and pairs.dtype is fx.Float32
        pairs[i] = x[i]
        storage.one.a.poke(5)
        storage.one.b.peek()[2] = fx.Float32(2.5)
        storage.either.word.poke(0x01020304)
        data.peek()[99] = fx.Uint8(17)
        fx.barrier()
        out[i * 5] = pairs.view(L(N, 1))[N - 1 - i]
        out[i * 5 + 1] = storage.one.a.peek().to(fx.Float32)
        out[i * 5 + 2] = storage.one.b.peek()[2]
        out[i * 5 + 3] = storage.either.bytes.peek()[3].to(fx.Float32)
        out[i * 5 + 4] = data.peek()[99].to(fx.Float32)

    return body


STORAGE = [
    Case(f"SharedAllocator, Struct, Union, Align, Empty, static={static}", shapes_of_storage(static), (FLOATS,), lambda n, x: np.stack(
        [x[:N][::-1], *(np.full(N, v, np.float32) for v in (5, 2.5, 1, 17))], axis=1).reshape(-1), tried=("gfx942", "gfx1201"))
    for static in (True, False)
]  # fmt: skip


@table(STORAGE)
def test_storage(case, arch):
    check(case, arch)


# --- wrong uses --------------------------------------------------------------------------------------------------------------------

WRONG = {
    "a width of the other chip": (lambda i, x: R.buffer_load_to_lds(rsrc(x), shared(), i, size_bytes=16), "1, 2, 4 bytes on gfx942, got 16"),
    "a run-time width": (lambda i, x: R.buffer_load_to_lds(rsrc(x), shared(), i, size_bytes=i), "compile-time integer"),
    "a buffer of registers": (lambda i, x: R.make_buffer_tensor(fx.make_rmem_tensor(4, fx.Float32)), "global"),
    "a resource of a plain pointer": (lambda i, x: R.get_buffer_rsrc(fx.get_iter(x)), "buffer pointer"),
    "three dwords": (lambda i, x: R.s_buffer_load(R.make_buffer_ptr(fx.get_iter(x)), 0, count=3), "1 or 4"),
    "a negative size": (lambda i, x: R.make_buffer_ptr(fx.get_iter(x), -4), "num_records_bytes"),
    "an unknown ordering": (lambda i, x: fx.atomic_add(fx.get_iter(x), 1.0, ordering="strong"), "strong"),
    "bits of a float": (lambda i, x: fx.atomic_or(fx.get_iter(x), 1.0), "atomic_or"),
    "an address of registers": (lambda i, x: fx.ptrtoint(fx.make_rmem_tensor(4, fx.Float32).iter), "register"),
    "a pointer of a short integer": (lambda i, x: fx.inttoptr(fx.PointerType.get(T.f32, fx.AddressSpace.Global, 4), i), "Int64"),
    "a vector alias": (lambda i, x: fx.recast_iter(fx.Float32x4, fx.get_iter(x)), "recast_iter"),
    "two allocators": (lambda i, x: [fx.SharedAllocator(), fx.SharedAllocator()], "SharedAllocator"),
    "an alignment of three": (lambda i, x: fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4], alignment=3), "power of two"),
    "a transposed read elsewhere": (lambda i, x: R.ds_read_tr16_b64(T.vec(4, T.f16), shared()), "gfx950"),
    "an async copy elsewhere": (lambda i, x: R.global_load_async_to_lds_b32(fx.get_iter(x).llvm_ptr, shared(), 0), "gfx1250"),
    "an async mark elsewhere": (lambda i, x: R.asyncmark(), "gfx950"),
}


def rsrc(x):
    return R.get_buffer_rsrc(R.make_buffer_ptr(fx.get_iter(x)))


def shared():
    return fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek().ptr.llvm_ptr


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    use, text = WRONG[case]
    with pytest.raises(FlyError, match=text) as caught:
        launched(Case(case, lambda i, x, out: use(i, x), (FLOATS,), lambda n, x: x), "gfx942")
    assert "test_names_memory.py" in str(caught.value)


CASES = [*VIEWS, *GENERIC, *ATOMICS, *EXCHANGES, *EXTREMES, *LDS_ATOMICS, *BUFFERS, *BUFFER_ADDS, *DMA, *ASYNC, *TRANSPOSED, *STORAGE]

"""Faults of types and widths that users of kernel DSLs reported (kind types).

Each test is named after the report's id; `Fails if` names the change to our code that would bring the fault back.
"""

import mmap

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env

from .kernels import isa, run, trace

INTEGERS = [fx.Int8, fx.Int16, fx.Int32, fx.Int64, fx.Uint8, fx.Uint16, fx.Uint32, fx.Uint64]
FLOATS = [fx.Float16, fx.BFloat16, fx.Float32]


def sparse(nbytes: int) -> np.ndarray:
    """Return zeroed bytes that take memory only where they are touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), np.uint8)


def promoted(a, b):
    """The common type of two operands by the rules of the language reference, written out once more."""
    a, b = (fx.Int32 if t is fx.Boolean else t for t in (a, b))
    if a is b:
        return a
    if a.is_integer and b.is_integer:
        if a.signed == b.signed:
            return a if a.width > b.width else b
        u, s = (a, b) if not a.signed else (b, a)
        return u if u.width >= s.width else s
    if a.is_float and b.is_float:
        return fx.Float32
    f, i = (a, b) if a.is_float else (b, a)
    return f if f.width >= i.width else {32: fx.Float32, 64: fx.Float64}[max(i.width, 32)]


def test_R018_vectors_promote_as_scalars_do():
    """Fails if `expr.vector.elementwise` chooses result types otherwise than `numeric.rules`."""
    wrong = []

    def body():
        def value(t):
            return t(fx.thread_idx.x) if t is not fx.Boolean else fx.thread_idx.x > 3

        for a in [fx.Boolean, *INTEGERS, *FLOATS]:
            for b in [fx.Boolean, *INTEGERS, *FLOATS]:
                x, y = value(a), value(b)
                v, w = (fx.Vector.from_elements([s, s]) for s in (x, y))
                got = (type(x + y), (v + y).dtype, (x + w).dtype, (v + w).dtype)
                if set(got) != {promoted(a, b)}:
                    wrong.append((a, b, got))

    trace(body)
    assert not wrong, wrong[:5]


def test_R019_mixed_widths_in_one_shape_do_not_truncate():
    """Fails if an integer tuple takes the width of its first dynamic leaf, or `crd2idx` multiplies in 32 bits."""
    kernel_out = np.zeros(4, np.int64)

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        wide = fx.Int64(n) * 70_000
        layout = fx.make_layout((n, wide), (wide, 1))  # i32 and i64 extents, i64 and static strides
        if fx.thread_idx.x == 0:
            out[0] = fx.Int64(fx.get_scalar(fx.crd2idx((n - 1, wide - 1), layout)))
            out[1] = fx.Int64(fx.get_scalar(fx.size(layout)))
            out[2] = fx.Int64(fx.get_scalar(fx.crd2idx((n - 1, 5), layout)))

    run(body, n=70_000, out=kernel_out)
    n, wide = 70_000, 70_000 * 70_000
    assert list(kernel_out[:3]) == [(n - 1) * wide + wide - 1, n * wide, (n - 1) * wide + 5]


SMALL = [fx.Float8E4M3FN, fx.Float8E5M2, fx.Float6E2M3FN, fx.Float6E3M2FN, fx.Float4E2M1FN, fx.Float8E8M0FNU]


@pytest.mark.parametrize("dtype", SMALL, ids=lambda t: t.__name__)
def test_R020_small_floats_lower_everywhere(dtype):
    """Fails if a pass leaves an fp8, fp6 or fp4 type to the LLVM dialect (`fly_lower_small_floats`)."""
    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        def double(v):
            return v.bitcast(fx.Uint8).bitcast(dtype)

        words = fx.make_view(x.iter, fx.make_layout(dtype.width, 1)).load()  # 32 elements
        v = words.bitcast(dtype)
        frag = fx.make_rmem_tensor(v.numel, dtype)
        frag.store(v)
        total = fx.Float32(0.0)
        for i in range(n):  # carried through a loop
            frag.store(double(frag.load()))
            v = frag.load()
            total = total + v[0].to(fx.Float32)
        w = v.to(fx.Float32)
        out[fx.thread_idx.x] = total + w[1]

    text = isa(body, arch="gfx950")
    assert "s_endpgm" in text


def test_R021_compares_of_coordinates_are_booleans():
    """Fails if a compare of leaves returns an integer wider than i1."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        coords = fx.make_view((0, 0), fx.make_identity_layout((8, 8)))
        row, col = coords[fx.thread_idx.x // 8, fx.thread_idx.x % 8].unpack()
        inside = row < col
        assert type(inside) is fx.Boolean and type(fx.elem_less((row, col), (4, 6))) is fx.Boolean
        value = inside.select(1.0, 0.0)
        if fx.elem_less((row, col), (4, 6)):
            value = value + 2.0
        for i in range(2):
            inside = inside & (row < i + 3)
        if inside:
            value = value + 4.0
        out[fx.thread_idx.x] = value

    out = run(body).reshape(8, 8)
    r, c = np.indices((8, 8))
    assert (out == 1.0 * (r < c) + 2.0 * ((r < 4) & (c < 6)) + 4.0 * ((r < c) & (r < 3))).all()


def test_R022_alignment_is_only_what_is_provable():
    """Fails if a pointer's default alignment exceeds its element, or if a view's offset keeps the alignment of its base."""
    seen = {}

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        seen.update(base=x.iter.alignment, odd=(x.iter + 1).alignment, moved=(x.iter + n).alignment)
        v = fx.make_view(x.iter + n, fx.make_layout(4, 1)).load()
        if fx.thread_idx.x == 0:
            for k in fx.range_constexpr(4):
                out[k] = v[k]

    assert list(run(body, n=1)[:4]) == [1, 2, 3, 4]  # an odd start is read rightly
    assert seen == {"base": 4, "odd": 4, "moved": 4}

    def promises(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        at = fx.recast_iter(fx.PointerType.get(fx.Float32.ir_type, fx.AddressSpace.Global, 16), x.iter)
        fx.copy_atom_call(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.make_view(at, fx.make_layout(4, 1)), fx.make_rmem_tensor(4, fx.Float32))
        out[0] = at.load(fx.Float32x4)[0]

    offset = np.zeros(80, np.uint8)
    start = (-offset.ctypes.data) % 16 + 4  # 4 bytes past a multiple of 16
    with pytest.warns(RuntimeWarning, match="alignment of 16"):
        run(promises, offset[start : start + 32].view(np.float32))


def test_R023_more_than_two_billion_elements():
    """Fails if a launch packs an extent or an address offset into 32 bits."""
    n = 2_200_000_000
    data = sparse(n)
    data[-1], data[2**31 + 5] = 7, 9

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x == 0:
            out[0] = x[n, 99_999].to(fx.Float32)
            out[1] = x[fx.Int64(2**31 + 5) // 100_000, fx.Int64(2**31 + 5) % 100_000].to(fx.Float32)

    assert list(run(body, data.reshape(22_000, 100_000), 21_999)[:2]) == [7, 9]

    def one_mode(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        out[0] = x[n].to(fx.Float32)

    with pytest.raises(FlyError, match="2200000000") as e:  # one extent above the limit is refused by name
        run(one_mode, data)
    assert "2^31 - 1" in str(e.value)


def test_R024_bytes_become_floats_one_at_a_time():
    """Fails if a scalar `bitcast` of a byte to fp8, or its conversion to f32, needs a vector of 4."""

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x * 8
        packed = [x[i + k] for k in fx.range_constexpr(8)]
        for k in fx.range_constexpr(8):
            out[i + k] = packed[k].bitcast(fx.Float8E4M3FN).to(fx.Float32)

    codes = np.arange(256, dtype=np.uint8)
    for arch in ("gfx942", "gfx950", "gfx1100"):
        out = run(body, codes, out=np.zeros(256, np.float32), block=32, arch=arch)
        np.testing.assert_array_equal(out, codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32))


def test_R082_layout_helpers_return_wrappers():
    """Fails if a helper starts to return the raw value, or a raw one starts to be wrapped: kernels rely on the class."""
    got = {}

    def body():
        n = fx.thread_idx.x
        layout = fx.make_layout((4, (2, 8)), (16, (8, 1)))
        dynamic = fx.make_layout((n, 8), (8, 1))
        tensor = fx.make_rmem_tensor((4, 2), fx.Float32)
        got.update({
            "size": fx.size(layout), "cosize": fx.cosize(layout), "get_shape": fx.get_shape(layout), "get_stride": fx.get_stride(layout),
            "crd2idx": fx.crd2idx((1, 2), layout), "idx2crd": fx.idx2crd(5, layout), "rank": fx.rank(layout), "depth": fx.depth(layout),
            "get_scalar": fx.get_scalar(fx.size(layout)), "get_scalar dynamic": fx.get_scalar(fx.size(dynamic)),
            "get_leaves": fx.get_leaves(fx.make_shape(n, 2)), "coalesce": fx.coalesce(layout), "composition": fx.composition(layout, fx.make_layout(4, 1)),
            "complement": fx.complement(fx.make_layout(4, 2), 16), "zipped_divide": fx.zipped_divide(layout, (2, 4)), "slice": fx.slice(layout, (1, None)),
            "get_iter": fx.get_iter(tensor), "get_layout": fx.get_layout(tensor), "tensor slice": tensor[None, 1], "element": tensor[1, 1],
            "load": tensor.load(), "elem_less": fx.elem_less((n, 2), (4, 4)), "make_tile": fx.make_tile(4, 8), "make_layout_tv": fx.make_layout_tv(layout, fx.make_layout(1, 1))[1],
            "to_py_value": fx.size(layout).to_py_value(), "int_tuple_mul": fx.int_tuple_mul(n, 4),
        })  # fmt: skip

    trace(body)
    expected = {
        fx.IntTuple: ("size", "cosize", "get_shape", "get_stride", "crd2idx", "idx2crd", "int_tuple_mul"),
        int: ("rank", "depth", "get_scalar", "to_py_value"),
        fx.Int32: ("get_scalar dynamic",),
        tuple: ("get_leaves",),
        fx.Layout: ("coalesce", "composition", "complement", "zipped_divide", "slice", "get_layout", "make_layout_tv"),
        fx.Pointer: ("get_iter",),
        fx.Tensor: ("tensor slice",),
        fx.Float32: ("element",),
        fx.Boolean: ("elem_less",),
        fx.Tile: ("make_tile",),
    }
    for cls, names in expected.items():
        for name in names:
            assert type(got[name]) is cls, (name, type(got[name]), cls)
    assert isinstance(got["load"], fx.Vector) and set(got) == {n for names in expected.values() for n in names} | {"load"}


def test_R084_offsets_beyond_two_billion_elements():
    """Fails if a tensor's offset is computed in the width of its 32-bit index."""
    pool = sparse(5_000_000_000).reshape(50, 100_000_000)
    pool[44, 3] = 5
    pool[49, 99_999_999] = 6

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x == 0:
            out[0] = x[n, 3].to(fx.Float32)
            out[1] = x[n + 5, 99_999_999].to(fx.Float32)

    assert list(run(body, pool, 44)[:2]) == [5, 6]


USED = "flydsl.compiler flydsl.expr flydsl.expr.arith flydsl.expr.gpu flydsl.expr.math flydsl.expr.vector flydsl.expr.rocdl flydsl.runtime.device flydsl.utils".split()


def test_R091_names_that_downstream_code_imports(shared):
    """Fails if a name of the public surface that published kernels use disappears."""
    import importlib

    missing = []
    for line in (shared / "spec" / "api_surface.tsv").read_text().splitlines()[1:]:
        path, kind, _, _, upstream, aiter, _, _, tier, home, _ = line.split("\t")
        module = path.rpartition(".")[0]
        if tier != "core" or home != "-" or module not in USED or kind == "missing" or int(upstream) + int(aiter) < 2:
            continue
        if not hasattr(importlib.import_module(module), path.rpartition(".")[2]):
            try:
                importlib.import_module(path)
            except ImportError:
                missing.append(path)
    assert missing == []


def test_R105_strides_above_32_bits():
    """Fails if dynamic strides are 32 bits wide unless `use_32bit_stride` asks for it."""
    data = sparse(2 * 65536 * 65536).reshape(2, 65536, 65536)
    data[1, 65535, 65535] = 3

    def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x == 0:
            out[0] = x[1, n, n].to(fx.Float32)

    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(4, np.float32)
    with env.override(ARCH="gfx942"):
        launch(flyc.from_dlpack(data).mark_layout_dynamic(), out, 65535)
        assert out[0] == 3
        with pytest.raises((FlyError, OverflowError, ValueError)) as e:
            launch(flyc.from_dlpack(data, use_32bit_stride=True).mark_layout_dynamic(), out, 65535)
    assert "stride" in str(e.value)


PAIRS = [(fx.Float32, ml_dtypes.float8_e4m3fn, fx.Float8E4M3FN), (fx.Float32, ml_dtypes.float8_e5m2, fx.Float8E5M2),
         (fx.Float32, np.float16, fx.Float16), (fx.Float32, ml_dtypes.bfloat16, fx.BFloat16)]  # fmt: skip


@pytest.mark.parametrize("source, target, dsl", PAIRS, ids=lambda x: getattr(x, "__name__", ""))
def test_R106_casts_of_any_count(source, target, dsl):
    """Fails if a conversion is only lowered for groups of 4 (`fly_lower_small_floats`, `targets.rocm`)."""
    for count in (1, 2, 3, 4, 8):

        def body(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
            i = fx.thread_idx.x * count
            if fx.const_expr(count == 1):
                out[i] = x[i].to(dsl).to(fx.Float32)
            else:
                v = fx.Vector.from_elements([x[i + k] for k in fx.range_constexpr(count)]).to(dsl)
                w = v.to(fx.Float32)
                for k in fx.range_constexpr(count):
                    out[i + k] = w[k]

        x = np.random.default_rng(count).standard_normal(16 * count).astype(np.float32) * 30
        out = run(body, x, out=np.zeros_like(x), block=16, arch="gfx950")
        np.testing.assert_array_equal(out, x.astype(target).astype(np.float32))
    assert "s_endpgm" in isa(body, arch="gfx950")

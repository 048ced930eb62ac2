"""Raw matrix instructions `fx.rocdl.mfma_*` and `wmma_*` in their list, plain and keyword forms, one tile each, against NumPy; and the
function forms of tiled matrix operations."""

from dataclasses import replace

import atom_tiles as tiles
import numpy as np
import pytest
from test_atoms_mma import check, is_default, random_items, random_scales, shapes

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.utils import env

FORMS = ("list", "plain", "keywords")


def raw_cases():
    """Each instruction of each chip once, the forms in turn; by default one of each family, chip and accumulator."""
    found = [c for c in tiles.cases() if c.row.blocks == 1 and not c.row.operands.endswith("opsel")]
    seen = set()
    for i, c in enumerate(found):
        key = (c.arch, c.row.family, c.row.acc)
        marks = [] if is_default(c) and key not in seen else [pytest.mark.nightly]
        seen.add(key)
        yield pytest.param(replace(c, raw=FORMS[i % 3]), id=f"{FORMS[i % 3]}-{c}", marks=marks)


@pytest.mark.parametrize("case", list(raw_cases()))
def test_raw_form(case):
    rng = np.random.default_rng(31)
    a, b, c = (random_items(case, rng, kind, s) for kind, s in zip((case.row.a, case.row.b, case.row.acc), shapes(case)))
    scales = factors = None
    if case.has_scales:
        scales, factors = random_scales(case, rng)
    check(case, a, b, c, scales, factors)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name", ["gfx942-mfma_f32_16x16x16_f16", "gfx950-mfma_scale_f32_16x16x128_f8f6f4-fp8-fp8", "gfx1201-wmma_f32_16x16x16_f16-f16", "gfx1250-wmma_scale_f32_16x16x128_f8f6f4-fp4-fp4-i32"]
)
def test_every_form(name, form):
    case = next(replace(c, raw=form) for c in tiles.cases() if str(c).startswith(name))
    test_raw_form(case)


L = fx.make_layout
OPERANDS = fx.MmaOperand


@flyc.kernel
def functions(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, d: fx.Tensor):
    """d = a b^T + c by the function forms, stages and partitions."""
    tid = fx.thread_idx.x
    mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), L((2, 2, 1), (1, 2, 0)))
    assert str(mma.tile_size_mnk) in ("(32,32,16)", "IntTuple<(32,32,16)>") and str(mma.thr_layout_vmnk).endswith("(64,2,2,1):(1,64,128,0)>")
    assert str(mma.tv_layout_A_tiled).endswith("((16,4,2,2),(4,(1,1))):((1,128,16,0),(32,(0,0)))>")
    assert "(4,2,3)" in str(fx.tiled_mma_partition_shape(OPERANDS.A, mma, (64, 48)))
    thr = mma.thr_slice(tid)
    part_a, part_b = thr.partition_A(a), fx.tiled_mma_partition(OPERANDS.B, mma, b, fx.make_int_tuple(tid))
    part_c, part_d = thr.partition_C(c), fx.tiled_mma_partition(OPERANDS.C, mma, d, fx.make_int_tuple(tid))
    frag_a = fx.mma_make_fragment(OPERANDS.A, mma, part_a, stages=2)
    frag_b, frag_c = thr.make_fragment_B(b), fx.mma_make_fragment(OPERANDS.C, mma, part_c)
    for k in fx.range_constexpr(3):
        for v in fx.range_constexpr(4):
            for m in fx.range_constexpr(2):
                frag_a[v, m, k, 1] = part_a[v, m, k]
            frag_b[v, 0, k] = part_b[v, 0, k]
    elements = fx.size(part_c).to_py_value()
    for i in fx.range_constexpr(elements):
        frag_c[i] = part_c[i]
    fx.gemm(mma, frag_c, frag_a[None, None, None, 1], frag_b, frag_c, traversal_layout=L((2, 1, 3), (1, 2, 2)))
    for i in fx.range_constexpr(elements):
        part_d[i] = frag_c[i]


@flyc.jit
def function_launch(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, d: fx.Tensor):
    functions(a, b, c, d).launch(grid=(1, 1, 1), block=(256, 1, 1))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_function_forms_of_tiled_matrix_operations(arch):
    rng = np.random.default_rng(32)
    a, b = rng.integers(-4, 5, (64, 48)).astype(np.float16), rng.integers(-4, 5, (32, 48)).astype(np.float16)
    c, d = rng.integers(-9, 9, (64, 32)).astype(np.float32), np.zeros((64, 32), np.float32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        function_launch(*(flyc.from_dlpack(t) for t in (a, b, c, d)))
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T + c)


@flyc.kernel
def fma_kernel(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor):
    tid = fx.thread_idx.x
    atom = fx.make_mma_atom(fx.UniversalFMA(a.dtype))
    one = [fx.make_rmem_tensor(1, a.dtype) for _ in range(3)]
    for fragment, tensor in zip(one, (a, b, c)):
        fragment[0] = tensor[tid]
    fx.mma_atom_call(atom, one[2], one[0], one[1], one[2])
    c[tid] = one[2][0]


@flyc.jit
def fma_launch(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor):
    fma_kernel(a, b, c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("arch", tiles.CHIPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_universal_fma(arch, dtype):
    rng = np.random.default_rng(33)
    a, b, c = (rng.integers(-100, 100, 64).astype(dtype) for _ in range(3))
    want = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        fma_launch(a, b, c)
    np.testing.assert_array_equal(c, want.astype(dtype))


WRONG = {
    "an instruction of another family": ("gfx942", "wmma_f32_16x16x16_f16", 3, "gfx1100"),
    "an instruction of the next chip": ("gfx942", "mfma_f32_16x16x32_f16", 6, "gfx950"),
    "two operands": ("gfx942", "mfma_f32_16x16x16f16", 2, "misses"),
    "seven operands": ("gfx942", "mfma_f32_16x16x16f16", 7, "takes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    arch, name, count, text = WRONG[case]

    @flyc.kernel
    def kernel(x: fx.Tensor):
        value = fx.Vector.filled(4, x[0], fx.Float32).ir_value()
        getattr(fx.rocdl, name)(fx.T.vec(4, fx.T.f32), [value] * min(count, 3) + [0] * (count - 3))

    @flyc.jit
    def launch(x: fx.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch), pytest.raises(FlyError, match=text) as caught:
        launch(np.zeros(4, np.float32))
    assert "test_names_matrix.py" in str(caught.value)

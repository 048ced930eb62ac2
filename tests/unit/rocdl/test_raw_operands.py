"""Arguments of raw instructions with a type that the instruction does not take: the error names the line, the argument, both types and what
to write."""

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.raw_operands import raw_error
from flydsl.diag import RawOperand, RocdlOperand, UserError
from flydsl.expr.rocdl import table
from flydsl.expr.typing import T
from flydsl.targets.rocm.intrinsics import find
from flydsl.utils import env

R = fx.rocdl


def failure(use, arch="gfx950"):
    """Return the error of a kernel that calls `use(thread number, tensor)`."""

    @flyc.kernel
    def kernel(x: fx.Tensor):
        use(fx.thread_idx.x, x)

    @flyc.jit
    def launch(x: fx.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch, COMPILE_ONLY="1"), pytest.raises(UserError) as caught:
        launch(np.zeros(64, np.float32))
    return caught.value


def ones(count, kind):
    return fx.Vector.filled(count, 1.0, kind)


def p1(x):
    return fx.get_iter(x).llvm_ptr


F = fx.Float32
# name: (call, argument, expected, given, what to write)
OPERANDS = {
    "cvt_f32_fp8": (lambda i, x: R.cvt_f32_fp8(T.f32, F(1), 0), "src_a", "i32", "f32", "x.bitcast(fx.Int32)"),
    "mbcnt_lo": (lambda i, x: R.mbcnt_lo(T.i32, fx.Int64(1), 0), "in0", "i32", "i64", "x.to(fx.Int32)"),
    "ds_swizzle": (lambda i, x: R.ds_swizzle(T.i32, F(1), fx.Int32(3)), "src", "i32", "f32", "x.to(fx.Int32)"),
    "permlane32_swap": (lambda i, x: R.permlane32_swap(T.i32, i, F(1), False, False), "src", "i32", "f32", "x.bitcast(fx.Int32)"),
    "cvt_pkrtz": (lambda i, x: R.cvt_pkrtz(T.vec(2, T.f16), F(1), i), "src_b", "f32", "i32", "x.to(fx.Float32)"),
    "cvt_pk_fp8_f32": (lambda i, x: R.cvt_pk_fp8_f32(T.i32, F(1), fx.Float16(1), i, False), "src_b", "f32", "f16", "x.to(fx.Float32)"),
    "cvt_sr_fp8_f32": (lambda i, x: R.cvt_sr_fp8_f32(T.i32, F(1), F(1), i, 0), "src_b", "i32", "f32", "x.bitcast(fx.Int32)"),
    "sdot4": (lambda i, x: R.sdot4(T.i32, i, F(1), i), "b", "i32", "f32", "x.bitcast(fx.Int32)"),
    "mfma_f32_16x16x16f16": (lambda i, x: R.mfma_f32_16x16x16f16(T.vec(4, T.f32), [ones(4, F), ones(4, fx.Float16), ones(4, F), 0, 0, 0]),
                             "a", "vector<4xf16>", "vector<4xf32>", "v.to(fx.Float16)"),
    "mfma_i32_16x16x32_i8": (lambda i, x: R.mfma_i32_16x16x32_i8(T.vec(4, T.i32), [fx.Int64(1), i, ones(4, fx.Int32), 0, 0, 0]),
                             "b", "i64", "i32", "x.to(fx.Int64)"),
    "raw_ptr_buffer_load": (lambda i, x: R.raw_ptr_buffer_load(T.f32, p1(x), i, 0), "rsrc", "!llvm.ptr<8>", "!llvm.ptr<1>", "get_buffer_rsrc"),
    "global_load_lds": (lambda i, x: R.global_load_lds(p1(x), p1(x), 4, 0), "lds_ptr", "!llvm.ptr<3>", "!llvm.ptr<1>", "SharedAllocator"),
    "ds_read_tr16_b64": (lambda i, x: R.ds_read_tr16_b64(T.vec(4, T.f16), p1(x)), "ptr", "!llvm.ptr<3>", "!llvm.ptr<1>", "llvm_ptr"),
    "make_buffer_rsrc": (lambda i, x: R.make_buffer_rsrc(fx.get_iter(x).llvm_ptr.type, p1(x), i, i, i), "stride", "i16", "i32", "x.to(fx.Int16)"),
    "cvt_scalef32_pk_f32_fp4": (lambda i, x: R.cvt_scalef32_pk_f32_fp4(T.vec(2, T.f32), i, i, 0), "scale", "f32", "i32", "x.to(fx.Float32)"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_that_mlir_refuses(name):
    use, param, expected, given, write = OPERANDS[name]
    error = failure(use)
    text = str(error)
    assert isinstance(error, RocdlOperand)
    assert f"argument `{param}` of `rocdl.{name}` must be {expected}, got {given}" in text and write in text, text
    assert "test_raw_operands.py" in text and f"R.{name}(" in error.span.text and "report" not in text, text


RESULTS = {
    "cvt_pk_f32_fp8": (lambda i, x: R.cvt_pk_f32_fp8(T.vec(4, T.f32), i, False), "vector<2xf32>", "T.vec(2, T.f32)"),
    "cvt_pk_f32_bf8": (lambda i, x: R.cvt_pk_f32_bf8(T.vec(2, T.f16), i, True), "vector<2xf32>", "T.vec(2, T.f32)"),
    "cvt_f32_fp8": (lambda i, x: R.cvt_f32_fp8(T.f16, i, 0), "f32", "T.f32"),
    "cvt_pk_fp8_f32": (lambda i, x: R.cvt_pk_fp8_f32(T.i16, F(1), F(1), i, False), "i32", "T.i32"),
    "cvt_sr_bf8_f32": (lambda i, x: R.cvt_sr_bf8_f32(T.i8, F(1), i, i, 0), "i32", "T.i32"),
    "cvt_pkrtz": (lambda i, x: R.cvt_pkrtz(T.vec(4, T.f16), F(1), F(1)), "vector<2xf16>", "T.vec(2, T.f16)"),
    "ds_read_tr16_b64": (lambda i, x: R.ds_read_tr16_b64(T.vec(8, T.f16), p1(x)), "vector<4xf16>", "T.vec(4, "),
    "ds_read_tr8_b64": (lambda i, x: R.ds_read_tr8_b64(T.i64, p1(x)), "vector<2xi32>", "T.vec(2, T.i32)"),
    "workitem_id_x": (lambda i, x: R.workitem_id_x(T.i64), "i32", "T.i32"),
    "cvt_scalef32_pk_f32_fp4": (lambda i, x: R.cvt_scalef32_pk_f32_fp4(T.vec(4, T.f32), i, F(1), 0), "vector<2xf32>", "T.vec(2, T.f32)"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_types(name):
    use, expected, write = RESULTS[name]
    error = failure(use)
    text = str(error)
    assert isinstance(error, RocdlOperand) and f"argument `res` of `rocdl.{name}` must be" in text, text
    assert expected in text and write in text and f"R.{name}(" in error.span.text, text


OTHERS = {
    "update_dpp": (lambda i, x: R.update_dpp(T.i32, F(1), i, 0, 15, 15, False), "takes res, src, old of one type", "(f32, i32) -> i32"),
    "readfirstlane": (lambda i, x: R.readfirstlane(T.f32, i), "takes res, src of one type", "(i32) -> f32"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_types_that_must_agree(name):
    use, problem, given = OTHERS[name]
    error = failure(use)
    assert isinstance(error, RawOperand) and f"`rocdl.{name}` {problem}" in str(error) and given in str(error), str(error)
    assert f"R.{name}(" in error.span.text


def test_raw_ops_of_other_dialects():
    error = raw_error("'arith.addi' op operand #1 must be 32-bit signless integer, but got 'f32'", "", None)
    assert "operand 1 of `arith.addi` must be i32, got f32" in str(error) and "report" not in str(error)
    assert raw_error("'scf.for' op operand #1 must be index, but got 'f32'", "", None) is None


def test_results_are_those_of_llvm():
    """Second source: the signatures of LLVM's intrinsics."""

    def named(kind):
        head, digits = kind[0], kind[1:].split("i")[0].split("f")[0].split("b")[0]
        return kind if head != "v" else f"vector<{digits}x{kind[1 + len(digits):]}>"

    checked = 0
    for name in table.names():
        rows = find("llvm.amdgcn." + table.lookup(name).op.removeprefix("rocdl."))
        if table.results(name) and rows:
            assert set(table.results(name)) == {named(r.result) for r in rows}, name
            checked += 1
    assert checked >= 34

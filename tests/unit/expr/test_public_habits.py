"""Habits of public kernels on raw values: quotients of indices, scalar classes around vectors, raw pointers of tensors,
branches as callables."""

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import fly, llvm
from flydsl.compiler.ast_rewriter import ReplaceIfWithDispatch
from flydsl.compiler.protocol import extract_to_ir_values
from flydsl.expr.typing import T


def run(kernel, dtype=np.int32) -> np.ndarray:
    out = np.zeros(64, dtype)

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    launch(out)
    return out


LANES = np.arange(64)


def test_raw_indices_divide_to_an_index():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        i = fx.Index(fx.thread_idx.x).ir_value()
        assert isinstance((i / 8).type, ir.IndexType) and isinstance((i / i).type, ir.IndexType)
        assert not isinstance((i / 2.0).type, ir.IndexType)
        out[fx.thread_idx.x] = fx.Int32(i / 8 * 100 + (i % 8) / 2)

    assert np.array_equal(run(kernel), LANES // 8 * 100 + LANES % 8 // 2)


def test_a_scalar_class_around_a_raw_vector():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        two = fx.Vector.filled(4, fx.Float32(2.0), fx.Float32).ir_value()
        product = fx.Float32(two) * fx.Vector.filled(4, fx.Float32(fx.thread_idx.x), fx.Float32).ir_value()
        out[fx.thread_idx.x] = product.to(fx.Int32)[3]

    assert np.array_equal(run(kernel), 2 * LANES)


def test_the_pointer_in_the_values_of_a_tensor():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        pointer_type = ir.Type.parse("!llvm.ptr<1>")
        base = fly.extract_aligned_pointer_as_index(pointer_type, extract_to_ir_values(out)[0])
        address = llvm.PtrToIntOp(T.i64, base).result
        same = fly.extract_aligned_pointer_as_index(T.i64, out)
        out[fx.thread_idx.x] = (fx.Int64(address) == fx.Int64(same)).select(fx.Int32(1), fx.Int32(0))

    assert np.array_equal(run(kernel), np.ones(64))


def test_branches_with_any_number_of_parameters():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        i = fx.thread_idx.x

        def change(names, *values):
            assert names == ("a", "b")
            return [values[0] + 10, values[1] * 2]

        a, b = ReplaceIfWithDispatch.scf_if_dispatch(
            i < 8, lambda *_: None, change, state_names=("a", "b"), state_values=(fx.Int32(i), fx.Int32(i))
        )
        out[i] = a * 1000 + b

    expected = np.where(LANES < 8, LANES * 1001, (LANES + 10) * 1000 + 2 * LANES)
    assert np.array_equal(run(kernel), expected)


def test_a_class_that_only_names_an_mlir_type():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        class Half:
            ir_type = fx.Float16.ir_type

        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 64, 16]).peek()
        lds[fx.thread_idx.x] = fx.Float16(fx.thread_idx.x)
        fx.gpu.barrier()
        bytes_ = fx.recast_iter(fx.Uint8, lds.ptr)
        value = fx.ptr_load(bytes_ + fx.thread_idx.x * 2, result_type=Half)
        out[fx.thread_idx.x] = value.to(fx.Int32)

    assert np.array_equal(run(kernel), LANES)

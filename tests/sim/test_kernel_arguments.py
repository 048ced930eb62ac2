"""Every kind of launch and kernel argument reaches the kernel: tensors (static, dynamic, transposed, offset), pointers, numbers, constants, layouts, tiled copies, structs."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def show_kernel(out: fx.Tensor, a, b, c, text: fx.Constexpr[str]):
    assert text == "constant"
    if fx.thread_idx.x == 0:
        out[0] = fx.Float64(a)
        out[1] = fx.Float64(b)
        out[2] = fx.Float64(c)


@flyc.jit
def show(out: fx.Tensor, a: fx.Int64, b: fx.Float32, c: fx.Uint8, text: fx.Constexpr[str]):
    show_kernel(out, a, b, c, text).launch(grid=1, block=64)


def test_numbers_and_constants() -> None:
    out = np.zeros(3)
    show(out, -(2**40), 0.5, 250, "constant")
    assert out.tolist() == [-(2.0**40), 0.5, 250.0]
    show(out, a=7, b=fx.Float32(1.25), c=3, text="constant")
    assert out.tolist() == [7.0, 1.25, 3.0]


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_a_float_are_infinite_as_in_c() -> None:
    out = np.zeros(3)
    show(out, 0, 1e300, 0, "constant")
    assert out.tolist() == [0.0, np.inf, 0.0] and ctypes.c_float(1e300).value == np.inf


@flyc.kernel
def pointer_kernel(p: fx.Pointer, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    if i < n:
        out[i] = p[i] + (p + 1)[i]


@flyc.jit
def from_pointer(p: fx.Pointer, out: fx.Tensor, n: fx.Int32):
    pointer_kernel(p, out, n).launch(grid=(1,), block=(64, 1, 1))


def test_pointers() -> None:
    x, out = np.arange(33, dtype=np.float32), np.zeros(32, np.float32)
    for address in (x.ctypes.data, ctypes.c_void_p(x.ctypes.data)):
        from_pointer(flyc.from_c_void_p(fx.Float32, address), out, 32)
        np.testing.assert_array_equal(out, x[:-1] + x[1:])


@flyc.kernel
def sum_kernel(x: fx.Tensor, out: fx.Tensor):
    row = fx.thread_idx.x
    total = fx.Float32(0)
    for j in range(fx.get_scalar(x.shape[1])):
        total = total + x[row, j]
    out[row] = total


@flyc.jit
def sum_rows(x: fx.Tensor, out: fx.Tensor):
    sum_kernel(x, out).launch(grid=(1,), block=(8, 1, 1))


@pytest.mark.parametrize("wrap", [lambda a: a, flyc.from_dlpack, lambda a: flyc.from_dlpack(a).mark_layout_dynamic(divisibility=1)])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray])
def test_tensor_layouts(wrap, make) -> None:
    x, out = make(np.random.default_rng(0).integers(0, 50, (8, 12)).astype(np.float32)), np.zeros(8, np.float32)
    sum_rows(wrap(x), out)
    np.testing.assert_array_equal(out, x.sum(axis=1))


def test_view_with_offset_and_gap() -> None:
    base = np.random.default_rng(1).integers(0, 50, (20, 30)).astype(np.float32)
    view, out = base[3:11, 5:17], np.zeros(8, np.float32)
    sum_rows(view, out)
    np.testing.assert_array_equal(out, view.sum(axis=1))


@flyc.kernel
def tiled_kernel(src: fx.Tensor, dst: fx.Tensor, tiled: fx.TiledCopy, layout: fx.Layout):
    thr = tiled.get_slice(fx.thread_idx.x)
    view = fx.make_view(fx.get_iter(src), layout)
    frag = fx.make_fragment_like(thr.partition_S(view))
    fx.copy(tiled, thr.partition_S(view), frag)
    fx.copy(tiled, frag, thr.partition_D(dst))


@flyc.jit
def copy_tiled(src: fx.Tensor, dst: fx.Tensor):
    atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
    tiled = fx.make_tiled_copy_tv(atom, fx.make_layout((8, 8), (8, 1)), fx.make_layout((1, 2), (1, 1)))
    tiled_kernel(src, dst, tiled, fx.make_layout((8, 16), (16, 1))).launch(grid=(1,), block=(64, 1, 1))


def test_tiled_copies_and_layouts_as_kernel_arguments() -> None:
    x, y = np.arange(128, dtype=np.float32).reshape(8, 16), np.zeros((8, 16), np.float32)
    copy_tiled(flyc.from_dlpack(x), flyc.from_dlpack(y))
    np.testing.assert_array_equal(x, y)


@fx.struct
class Params:
    scale: fx.Float32
    shift: fx.Int32


@flyc.kernel
def struct_kernel(out: fx.Tensor, p: Params, pair):
    out[fx.thread_idx.x] = p.scale * fx.Float32(p.shift) + pair[0] * pair[1]


@flyc.jit
def with_struct(out: fx.Tensor, scale: fx.Float32, shift: fx.Int32):
    struct_kernel(out, Params(scale=scale, shift=shift), (scale, fx.Float32(2.0))).launch(grid=(1,), block=(4, 1, 1))


def test_structs_and_tuples_as_kernel_arguments() -> None:
    out = np.zeros(4, np.float32)
    with_struct(out, 1.5, 4)
    assert out.tolist() == [9.0] * 4


@flyc.jit
def branches(x: fx.Tensor, out: fx.Tensor, twice: fx.Int32):
    if twice > 0:
        for _ in range(twice):
            sum_kernel(x, out).launch(grid=(1,), block=(8, 1, 1))
    else:
        fill_kernel(out).launch(grid=(1,), block=(8, 1, 1))


@flyc.kernel
def fill_kernel(out: fx.Tensor):
    out[fx.thread_idx.x] = -1.0


@pytest.mark.parametrize("twice", [0, 1, 3])
def test_host_control_flow(twice) -> None:
    x, out = np.ones((8, 5), np.float32), np.zeros(8, np.float32)
    branches(x, out, twice)
    assert out.tolist() == [5.0 if twice else -1.0] * 8


class Holder:
    """A method as a jit function."""

    factor = 3

    @flyc.jit
    def run(self, out: fx.Tensor):
        scaled_kernel(out, self.factor).launch(grid=(1,), block=(4, 1, 1))


@flyc.kernel
def scaled_kernel(out: fx.Tensor, factor: fx.Constexpr[int]):
    out[fx.thread_idx.x] = fx.Float32(factor)


def test_methods() -> None:
    out = np.zeros(4, np.float32)
    Holder().run(out)
    assert out.tolist() == [3.0] * 4


@flyc.kernel
def printing_kernel(n: fx.Int32):
    if fx.thread_idx.x < 2:
        fx.printf("lane {} of {}: {}", fx.thread_idx.x, n, fx.Float32(0.5))


@flyc.jit
def printing(n: fx.Int32):
    printing_kernel(n).launch(grid=(1,), block=(64, 1, 1))


def test_printf(capfd) -> None:
    printing(7)
    assert capfd.readouterr().out.split("\n")[:2] == ["lane 0 of 7: 0.5", "lane 1 of 7: 0.5"] or "lane 1 of 7: 0.5" in capfd.readouterr().out


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.float16, np.float64, ml_dtypes.bfloat16, np.bool_])
def test_element_types(dtype) -> None:
    x = np.array([0, 1, 1, 0, 1, 1, 0, 1], dtype)
    y = np.zeros_like(x)
    copy_all(x, y)
    assert x.tobytes() == y.tobytes()


@flyc.kernel
def copy_kernel(src: fx.Tensor, dst: fx.Tensor):
    dst[fx.thread_idx.x] = src[fx.thread_idx.x]


@flyc.jit
def copy_all(src: fx.Tensor, dst: fx.Tensor):
    copy_kernel(src, dst).launch(grid=(1,), block=(8, 1, 1))


def test_torch_bfloat16_and_fp8(torch) -> None:
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.bool):
        x = torch.tensor([0, 1, 1, 0, 1, 1, 0, 1]).to(dtype)
        y = torch.zeros_like(x)
        copy_all(x, y)
        assert torch.equal(x.view(torch.uint8), y.view(torch.uint8)) if x.element_size() == 1 else torch.equal(x, y)

"""Mistakes around calling and launching: each gives its class, code, line and text."""

import inspect
import warnings

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import diag
from flydsl.diag import FlyError


def line_of(function, text: str) -> int:
    """Return the line of this file on which `text` stands inside `function`."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    return first + next(i for i, line in enumerate(lines) if text in line)


def check(error: FlyError, code: str, line: int, *texts: str) -> None:
    """Compare an error's code and place, and that its rendered text holds `texts` and a fix."""
    rendered = str(error)
    assert error.code == code, rendered
    assert error.span is not None and error.span.file == __file__, rendered
    assert error.span.line == line, rendered
    for text in (f"error[{code}]", f"test_launch.py:{line}", "fix: ", *texts):
        assert text in rendered, rendered


@flyc.kernel
def copy_kernel(a: fx.Tensor, b: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        b[i] = a[i]


@flyc.jit
def copy(a: fx.Tensor, b: fx.Tensor, n: fx.Int32):
    copy_kernel(a, b, n).launch(grid=((n + 63) // 64,), block=(64, 1, 1))


X = np.zeros(100, np.float32)


def test_argument_count() -> None:
    def call():
        copy(X, X)

    with pytest.raises(TypeError) as e:
        call()
    check(e.value, "FLY_ARGUMENT_COUNT", line_of(call, "copy(X, X)"), "missing a required argument: 'n'", "(a: ")


def test_argument_type() -> None:
    def call():
        copy(X, "text", 3)

    with pytest.raises(TypeError) as e:
        call()
    check(e.value, "FLY_ARGUMENT_TYPE", line_of(call, '"text"'), "b: str is neither a JitArgument", "pass a number, an array")


def test_array_dtype() -> None:
    def call():
        copy(np.zeros(4, np.complex64), X, 3)

    with pytest.raises(TypeError) as e:
        call()
    check(e.value, "FLY_TENSOR_DTYPE", line_of(call, "complex64"), "complex64", "float32")


def test_non_contiguous_tensor() -> None:
    def call():
        copy(np.zeros((100, 2), np.float32)[:, 0], X, 100)

    with pytest.raises(RuntimeError) as e:
        call()
    check(e.value, "FLY_STRIDE_NOT_UNIT", line_of(call, "[:, 0]"), "(100,)", "(2,)", "flyc.from_dlpack(t)")


def test_kernel_outside_jit() -> None:
    def call():
        copy_kernel(X, X, 3)

    with pytest.raises(RuntimeError, match="@kernel can only be called inside @jit function") as e:
        call()
    check(e.value, "FLY_KERNEL_OUTSIDE_JIT", line_of(call, "copy_kernel(X"), "`copy_kernel` was called from plain Python")


def test_kernel_in_a_kernel() -> None:
    @flyc.kernel
    def outer(a: fx.Tensor, b: fx.Tensor):
        copy_kernel(a, b, 3).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @flyc.jit
    def launch(a: fx.Tensor, b: fx.Tensor):
        outer(a, b).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with pytest.raises(RuntimeError, match="@kernel can only be called inside @jit function") as e:
        launch(X, np.zeros_like(X))
    text = "`copy_kernel` was called inside the kernel `outer`"
    check(e.value, "FLY_KERNEL_IN_KERNEL", line_of(outer.func, "copy_kernel(a, b, 3)"), text, "launch both from a @flyc.jit function")


@flyc.jit
def forgets(a: fx.Tensor):
    copy_kernel(a, a, 3)


def test_missing_launch() -> None:
    with pytest.raises(RuntimeError) as e:
        forgets(X)
    check(e.value, "FLY_MISSING_LAUNCH", line_of(forgets.func, "copy_kernel(a, a, 3)"), "never launched", ".launch(grid=")


@flyc.jit
def float_grid(a: fx.Tensor):
    copy_kernel(a, a, 3).launch(grid=(1.5,), block=(64, 1, 1))


def test_float_grid() -> None:
    with pytest.raises(ValueError) as e:
        float_grid(X)
    check(e.value, "FLY_LAUNCH_GEOMETRY", line_of(float_grid.func, "1.5"), "grid=(1.5,)")


@flyc.kernel
def bool_kernel(a: fx.Tensor):
    i = fx.thread_idx.x
    a[0] = float(bool(i))


@flyc.jit
def as_bool(a: fx.Tensor):
    bool_kernel(a).launch(grid=(1,), block=(64, 1, 1))


def test_dynamic_value_as_python_bool() -> None:
    with pytest.raises(RuntimeError, match="cannot evaluate dynamic 'Int32' as Python bool") as e:
        as_bool(X)
    check(e.value, "FLY_DYNAMIC_AS_PYTHON", line_of(bool_kernel.func, "bool(i)"))


@flyc.kernel
def float_shape_kernel(a: fx.Tensor):
    fx.make_layout((4, 2.5), (1, 4))


@flyc.jit
def float_shape(a: fx.Tensor):
    float_shape_kernel(a).launch(grid=(1,), block=(64, 1, 1))


def test_float_in_a_shape() -> None:
    with pytest.raises(TypeError) as e:
        float_shape(X)
    assert e.value.span.line == line_of(float_shape_kernel.func, "2.5")
    assert "2.5" in str(e.value) and "fix: " in str(e.value)


@flyc.kernel
def mixed_copy_kernel(a: fx.Tensor):
    frag = fx.make_rmem_tensor(4, fx.Float16)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.logical_divide(a, fx.make_layout(4, 1))[None, 0], frag)


@flyc.jit
def mixed_copy(a: fx.Tensor):
    mixed_copy_kernel(a).launch(grid=(1,), block=(64, 1, 1))


def test_dtype_mismatch_in_a_copy() -> None:
    with pytest.raises((TypeError, ValueError)) as e:
        mixed_copy(X)
    text = str(e.value)
    assert e.value.span.line == line_of(mixed_copy_kernel.func, "fx.copy("), text
    assert "f16" in text and "32 bits" in text and "fix: " in text


def test_unknown_arch(monkeypatch) -> None:
    monkeypatch.setenv("ARCH", "gfx94")
    with pytest.raises(ValueError) as e:
        copy(X, X.copy(), 3)
    assert e.value.code == "FLY_UNKNOWN_ARCH"
    assert "gfx94" in str(e.value) and "gfx942" in str(e.value)


def test_missing_linker(monkeypatch) -> None:
    from flydsl.targets.rocm import tools

    artifact = copy.artifact_for(copy.wrap_arguments((X, X, 3), {}))
    monkeypatch.setenv("FLYDSL_LLD", "/nonexistent/ld.lld")
    monkeypatch.setattr(tools, "_zig", lambda: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FlyError) as e:
        artifact.codegen(("hsaco",)).hsaco
    assert "ld.lld" in str(e.value) and "pip install" in str(e.value)


@flyc.kernel
def beyond_kernel(a: fx.Tensor, b: fx.Tensor):
    i = fx.thread_idx.x
    b[i] = a[i + 1]


@flyc.jit
def beyond(a: fx.Tensor, b: fx.Tensor):
    beyond_kernel(a, b).launch(grid=(1,), block=(100, 1, 1))


def test_read_past_the_end() -> None:
    with pytest.raises(FlyError) as e:
        beyond(X, X.copy())
    text = str(e.value)
    assert e.value.span.line == line_of(beyond_kernel.func, "a[i + 1]"), text
    assert "a" in text and "100" in text and "99" in text, text
    assert "block" in text and "thread" in text, text


@flyc.kernel(known_block_size=(128, 1, 1))
def sized_kernel(a: fx.Tensor):
    a[fx.thread_idx.x] = 1.0


@flyc.jit
def wrong_size(a: fx.Tensor):
    sized_kernel(a).launch(grid=(1,), block=(64, 1, 1))


def test_block_size_conflict() -> None:
    with pytest.raises(ValueError) as e:
        wrong_size(X)
    check(e.value, "FLY_BLOCK_SIZE", line_of(wrong_size.func, "block=(64"), "(64, 1, 1)", "(128, 1, 1)")


def test_zero_dimensional_array() -> None:
    def call():
        copy(np.zeros((), np.float32), X, 3)

    with pytest.raises(ValueError) as e:
        call()
    check(e.value, "FLY_TENSOR_RANK", line_of(call, "np.zeros(("), "reshape(1)")


def test_no_source() -> None:
    namespace = {"flyc": flyc, "fx": fx}
    exec("@flyc.jit\ndef f(a: fx.Tensor):\n    pass\n", namespace)
    with pytest.raises(OSError, match="could not get source code") as e:
        namespace["f"](X)
    assert e.value.code == "FLY_NO_SOURCE"


@pytest.mark.parametrize("variable", ["FLYDSL_KTRACE_ENABLE", "FLYDSL_COMPILE_LLVM_DIR"])
def test_switches_without_effect_say_so(monkeypatch, variable) -> None:
    @flyc.kernel
    def one_kernel(a: fx.Tensor):
        a[fx.thread_idx.x] = 1.0

    @flyc.jit
    def one(a: fx.Tensor):
        one_kernel(a).launch(grid=(1,), block=(64,))

    a = np.zeros(64, np.float32)
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", "")
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr("flydsl.compiler.compile_module._warned", set())
    with pytest.warns(diag.SwitchUnused, match=f"{variable} is set and has no effect"):
        one(a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one(a.astype(np.float16))  # said once
        monkeypatch.delenv(variable)
        flyc.compile[{"ktrace": False}](one)(a)
    with pytest.warns(diag.SwitchUnused, match="compile hint `ktrace` is set and has no effect") as found:
        flyc.compile[{"ktrace": True}](one)(a)
    assert len(found) == 1 and one.compile_hints == {} and (a == 1).all()

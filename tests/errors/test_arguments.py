"""Mistakes in the arguments of kernels and jit functions and in launch sizes: each gives its class, code, line and text."""

import ctypes
import inspect
import warnings

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import diag
from flydsl.diag import FlyError
from flydsl.utils import env

X = np.zeros(4, np.float32)


def line_of(function, text: str) -> int:
    """Return the line of this file on which `text` stands inside `function`."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    return first + next(i for i, line in enumerate(lines) if text in line)


def check(error: FlyError, code: str, line: int, *texts: str) -> None:
    """Compare an error's code and place, and that its rendered text holds `texts` and a fix."""
    rendered = str(error)
    assert error.code == code and error.span is not None and error.span.file == __file__, rendered
    assert error.span.line == line, rendered
    for text in (f"error[{code}]", f"test_arguments.py:{line}", "why: ", "fix: ", *texts):
        assert text in rendered, rendered


@flyc.kernel
def scaled(out: fx.Tensor, n: fx.Int32, factor: fx.Float32 = 1.0):
    out[0] = fx.Float32(n) * factor


# --- the number of arguments of a kernel -----------------------------------------------------------------------------


@flyc.jit
def too_few(out: fx.Tensor):
    scaled(out).launch(grid=1, block=1)


@flyc.jit
def too_many(out: fx.Tensor):
    scaled(out, 1, 2.0, 3).launch(grid=1, block=1)


@flyc.jit
def unknown(out: fx.Tensor):
    scaled(out, 1, wrong=2).launch(grid=1, block=1)


@flyc.jit
def twice(out: fx.Tensor):
    scaled(out, 1, n=2).launch(grid=1, block=1)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (too_few, "missing a required argument: 'n'"),
        (too_many, "too many positional arguments"),
        (unknown, "got an unexpected keyword argument 'wrong'"),
        (twice, "multiple values for argument 'n'"),
    ],
)
def test_wrong_call_of_a_kernel(function, problem) -> None:
    with pytest.raises(TypeError) as e:
        function(X)
    check(e.value, "FLY_ARGUMENT_COUNT", line_of(function.func, "scaled("), f"`scaled` cannot be called like this: {problem}")
    assert "its signature is `scaled(out:" in str(e.value)
    assert not [t for t in inspect.getinnerframes(e.value.__traceback__) if t.filename == inspect.__file__]


# --- scalars ---------------------------------------------------------------------------------------------------------


def given_to_kernel(value) -> float:
    """Return what a kernel's `n: fx.Int32` is, as a float."""

    @flyc.jit
    def run(out: fx.Tensor):
        scaled(out, value).launch(grid=1, block=1)

    out = np.full(1, -99, np.float32)
    run(out)
    return float(out[0])


@flyc.jit
def forwarded(out: fx.Tensor, n: fx.Int32):
    scaled(out, n).launch(grid=1, block=1)


def given_to_jit(value) -> float:
    """Return what a jit function's `n: fx.Int32` is, as a float."""
    out = np.full(1, -99, np.float32)
    forwarded(out, value)
    return float(out[0])


BOTH = pytest.mark.parametrize("run", [given_to_kernel, given_to_jit])
AT = {given_to_kernel: "scaled(out, value)", given_to_jit: "forwarded(out, value)"}
NAMES = {given_to_kernel: "scaled", given_to_jit: "forwarded"}


@BOTH
@pytest.mark.parametrize("value", [1, -5, 2.0, True, -(2**31), 2**31 - 1, np.int32(4), np.int64(7), np.float32(3.0), fx.Int32(6)])
def test_numbers_of_an_integer_parameter(run, value) -> None:
    assert run(value) == np.float32(int(value))


@BOTH
@pytest.mark.parametrize("value", [3.5, 2**40, 2**31, 2**32 - 1, -(2**31) - 1, float("nan"), float("inf"), np.float32(3.5), np.int64(2**40)])
def test_numbers_that_an_integer_parameter_does_not_have(run, value) -> None:
    with pytest.raises(OverflowError) as e:
        run(value)
    shown = value.item() if isinstance(value, np.generic) else value
    texts = f"{shown} does not fit Int32, as which `n` of `{NAMES[run]}` is declared", "from -2147483648 to 2147483647"
    check(e.value, "FLY_ARGUMENT_RANGE", line_of(run, AT[run]), *texts)


@BOTH
def test_bits_are_passed_where_a_scalar_says_so(run) -> None:
    assert run(fx.Int32(0xFFFFFFFF)) == -1.0


@flyc.jit
def unsigned(out: fx.Tensor, n: fx.Uint32, flag: fx.Boolean):
    scaled(out, fx.Int32(n >> fx.Uint32(31)), fx.Float32(flag)).launch(grid=1, block=1)


def test_ranges_of_other_classes() -> None:
    out = np.zeros(1, np.float32)
    unsigned(out, 2**32 - 1, True)
    assert out[0] == 1.0
    unsigned(out, 2**31 - 1, 1)
    assert out[0] == 0.0
    for n, flag in ((-1, True), (2**32, True), (1, 2), (1, -1)):
        with pytest.raises(OverflowError, match="does not fit"):
            unsigned(out, n, flag)


@BOTH
@pytest.mark.parametrize("value", [fx.Float32(3.5), fx.Float32(3.0), fx.Float16(1.0)])
def test_a_float_for_an_integer_parameter(run, value) -> None:
    with pytest.raises(TypeError) as e:
        run(value)
    got = type(value).__name__
    texts = f"`n` of `{NAMES[run]}` is declared as fx.Int32, but gets {got}", "x.to(fx.Int32)", f"declare the parameter as fx.{got}"
    check(e.value, "FLY_ARGUMENT_CLASS", line_of(run, AT[run]), *texts)


@BOTH
@pytest.mark.parametrize("value", [fx.Int64(2**40), fx.Uint32(2**32 - 1), fx.Uint8(200)])
def test_a_scalar_of_another_class_keeps_it_with_a_warning(run, value) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run(value) == np.float32(value.value)
    found = [w for w in caught if isinstance(w.message, diag.ScalarClassKept)]
    texts = [w.message.message for w in found]
    assert any(f"`n` of `{NAMES[run]}` is annotated as fx.Int32 and gets a {type(value).__name__}" in t for t in texts), texts
    assert found[0].filename == __file__ and found[0].lineno == line_of(run, AT[run])


def test_text_for_a_scalar_of_a_kernel() -> None:
    with pytest.raises(TypeError) as e:
        given_to_kernel("s")
    check(e.value, "FLY_ARGUMENT_CLASS", line_of(given_to_kernel, "scaled("), "but gets str", "fx.Constexpr[...]")


@flyc.jit
def number_first(n: fx.Int32, out: fx.Tensor):
    scaled(out, n).launch(grid=1, block=1)


def test_an_array_for_a_scalar_and_a_number_for_a_tensor() -> None:
    def call():
        number_first(X, X)

    with pytest.raises(TypeError) as e:
        call()
    check(e.value, "FLY_ARGUMENT_CLASS", line_of(call, "number_first(X"), "`n` of `number_first` is declared as fx.Int32, but gets ndarray")

    def other():
        number_first(1, 2)

    with pytest.raises(TypeError) as e:
        other()
    check(e.value, "FLY_ARGUMENT_CLASS", line_of(other, "number_first(1"), "`out` of `number_first` is declared as fx.Tensor, but gets int")


# --- parameters of a kernel without annotation -----------------------------------------------------------------------


@flyc.kernel
def undeclared(out: fx.Tensor, n):
    out[0] = fx.Float32(1.0)


@pytest.mark.parametrize(
    ("value", "who", "fix"),
    [
        (1, "`n` of kernel `undeclared` gets the Python int 1", "pass fx.Int32(1), or declare the parameter: `n: fx.Constexpr[int]` or"),
        (2**40, "gets the Python int 1099511627776", "pass fx.Int64(1099511627776)"),
        (2.5, "gets the Python float 2.5", "`n: fx.Constexpr[float]` or `n: fx.Float32`"),
        (True, "gets the Python bool True", "pass fx.Boolean(True)"),
        ((1, 2), "`n[0]` of kernel `undeclared` gets the Python int 1", "declare the parameter: `n: fx.Constexpr[...]`"),
        ({"a": [fx.Int32(1), 2]}, "`n['a'][1]` of kernel `undeclared` gets the Python int 2", "pass fx.Int32(2)"),
    ],
)
def test_a_python_number_for_a_parameter_without_annotation(value, who, fix) -> None:
    @flyc.jit
    def run(out: fx.Tensor):
        undeclared(
            out, value
        ).launch(grid=1, block=1)  # fmt: skip

    with pytest.raises(TypeError) as e:
        run(X)
    check(e.value, "FLY_UNDECLARED_NUMBER", line_of(run.func, "undeclared("), who, fix)


# --- pointers --------------------------------------------------------------------------------------------------------


@flyc.kernel
def through_pointer_kernel(p: fx.Pointer, out: fx.Tensor):
    out[0] = p[1]


@flyc.jit
def through_pointer(p: fx.Pointer, out: fx.Tensor):
    through_pointer_kernel(p, out).launch(grid=1, block=1)


@pytest.mark.parametrize(
    "make", [lambda a: a.ctypes.data, lambda a: a, lambda a: ctypes.c_void_p(a.ctypes.data), lambda a: None, lambda a: fx.Int64(a.ctypes.data)]
)
def test_what_is_no_typed_pointer(make) -> None:
    value = make(X)

    def call():
        through_pointer(value, X)

    with pytest.raises(TypeError) as e:
        call()
    texts = f"`p` of `through_pointer` is declared as fx.Pointer, but gets {type(value).__name__}", "flyc.from_c_void_p(fx.Float32, address)"
    check(e.value, "FLY_ARGUMENT_CLASS", line_of(call, "through_pointer(value"), *texts)


def test_typed_pointers_and_compiled_functions_with_bare_ones() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(1, np.float32)
    for pointer in (x.ctypes.data, ctypes.c_void_p(x.ctypes.data)):
        out[:] = 0
        through_pointer(flyc.from_c_void_p(fx.Float32, pointer), out)
        assert out[0] == 1.0
    compiled = flyc.compile(through_pointer, flyc.from_c_void_p(fx.Float32, x.ctypes.data), out)
    for pointer in (x.ctypes.data, ctypes.c_void_p(x.ctypes.data)):
        out[:] = 0
        compiled(pointer, out)
        assert out[0] == 1.0


# --- sizes of a launch -----------------------------------------------------------------------------------------------


@flyc.kernel
def ones(out: fx.Tensor):
    out[fx.thread_idx.x] = fx.Float32(1.0)


@flyc.kernel(known_block_size=(64, 1, 1))
def ones_of_64(out: fx.Tensor):
    out[fx.thread_idx.x] = fx.Float32(1.0)


@flyc.jit
def run_time_block(out: fx.Tensor, n: fx.Int32):
    ones(out).launch(grid=1, block=(n, 1, 1))


@flyc.jit
def widened_block(out: fx.Tensor, n: fx.Int32, attrs: fx.Constexpr[str], value: fx.Constexpr):
    ones(out).launch(grid=1, block=(n,), value_attrs={attrs: value})


@flyc.jit
def declared_block(out: fx.Tensor, n: fx.Int32):
    ones_of_64(out).launch(grid=1, block=n)


def test_a_run_time_block_is_held_to_what_code_is_generated_for() -> None:
    out = np.zeros(1024, np.float32)
    run_time_block(out, 256)
    assert out.sum() == 256
    _, info = next(iter(run_time_block._last_compiled[1].code_object()[1].items()))
    assert info.max_workgroup == 256  # what a GPU refuses a launch by

    def call(n):
        run_time_block(out, n)

    for n in (257, 1024):
        with pytest.raises(ValueError) as e:
            call(n)
        texts = f"block=({n}, 1, 1), {n} threads, but its code was generated for at most 256", "'rocdl.flat_work_group_size': '1,1024'"
        check(e.value, "FLY_BLOCK_LIMIT", line_of(call, "run_time_block(out, n)"), *texts)
    assert out.sum() == 256


@pytest.mark.parametrize(
    ("attribute", "value", "most"), [("rocdl.flat_work_group_size", "1,1024", 1024), ("rocdl.max_flat_work_group_size", 512, 512)]
)
def test_an_attribute_raises_the_limit_of_a_run_time_block(attribute, value, most) -> None:
    out = np.zeros(1024, np.float32)
    widened_block(out, most, attribute, value)
    assert out.sum() == most
    assert next(iter(widened_block._last_compiled[1].code_object()[1].values())).max_workgroup == most
    with pytest.raises(ValueError, match=f"generated for at most {most}"):
        widened_block(out, most + 1, attribute, value)


def test_a_bad_range_of_block_sizes() -> None:
    with pytest.raises(ValueError, match="expected a string 'least,most'"):
        widened_block(np.zeros(64, np.float32), 64, "rocdl.flat_work_group_size", "many")


def test_a_run_time_block_against_the_declared_one() -> None:
    out = np.zeros(256, np.float32)
    declared_block(out, 64)
    assert out.sum() == 64

    def call():
        declared_block(out, 128)

    with pytest.raises(ValueError) as e:
        call()
    check(e.value, "FLY_BLOCK_SIZE", line_of(call, "128"), "block=(128, 1, 1), but declares known_block_size=(64, 1, 1)")


@flyc.kernel
def with_lds(out: fx.Tensor, count: fx.Constexpr[int]):
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, count]).peek()
    lds[fx.thread_idx.x] = fx.Float32(1.0)
    fx.barrier()
    out[fx.thread_idx.x] = lds[fx.thread_idx.x]


@flyc.jit
def static_smem(out: fx.Tensor, count: fx.Constexpr[int], smem: fx.Constexpr[int]):
    with_lds(out, count).launch(grid=1, block=64, smem=smem)


@flyc.jit
def run_time_smem(out: fx.Tensor, count: fx.Constexpr[int], smem: fx.Int32):
    with_lds(out, count).launch(grid=1, block=64, smem=smem)


@pytest.mark.parametrize(("arch", "limit"), [("gfx942", 65536), ("gfx950", 163840), ("gfx1250", 327680)])
def test_static_and_dynamic_lds_against_the_chip(arch, limit) -> None:
    def call(function):
        function(out, 64, limit - 255)

    out = np.zeros(64, np.float32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        for function, place in ((static_smem, (static_smem.func, "smem=smem")), (run_time_smem, (call, "function(out, 64"))):
            out[:] = 0
            function(out, 64, limit - 256)
            assert out.sum() == 64
            with pytest.raises(RuntimeError) as e:
                call(function)
            texts = f"{limit + 1} bytes of LDS", f"has {limit}: arrays of the kernel 256; dynamic (smem) {limit - 255}"
            check(e.value, "FLY_SHARED_CAPACITY", line_of(*place), *texts)


@flyc.jit
def sized(out: fx.Tensor, grid: fx.Constexpr[int], block: fx.Constexpr[int]):
    ones(out).launch(grid=(grid,), block=(block,))


def test_an_empty_grid_launches_nothing_and_the_text_says_so() -> None:
    out = np.zeros(64, np.float32)
    sized(out, 0, 64)
    assert not out.any()
    for grid, block, text in ((-1, 64, "grid=(-1,)"), (1, 0, "block=(0,)")):
        with pytest.raises(ValueError) as e:
            sized(out, grid, block)
        least = "each at least 0 (which launches nothing)" if grid < 0 else "each at least 1"
        check(e.value, "FLY_LAUNCH_GEOMETRY", line_of(sized.func, "ones("), text, least)


# --- outside of kernels, switches, tracebacks ------------------------------------------------------------------------


def test_printf_outside_a_kernel() -> None:
    def call():
        fx.printf("x {}", 1)

    with pytest.raises(RuntimeError) as e:
        call()
    check(e.value, "FLY_NOT_TRACING", line_of(call, "fx.printf"))


def test_an_unknown_runtime() -> None:
    def call():
        sized(X, 1, 4)

    with env.override(FLYDSL_RUNTIME_KIND="bogus"), pytest.raises(ValueError) as e:
        call()
    check(e.value, "FLY_SWITCH_VALUE", line_of(call, "sized("), "FLYDSL_RUNTIME_KIND='bogus'", "expected one of auto, sim, null, rocm")
    ours = [f.filename for f in inspect.getinnerframes(e.value.__traceback__) if f.filename != __file__]
    assert ours == [inspect.getsourcefile(flyc.JitFunction)]  # the frame that raises it again, which pytest hides


def test_a_number_that_a_switch_does_not_have() -> None:
    with env.override(FLYDSL_COMPILE_OPT_LEVEL="9"), pytest.raises(ValueError) as e:
        flyc.compile(sized, X, 1, 4)
    check(e.value, "FLY_SWITCH_VALUE", line_of(test_a_number_that_a_switch_does_not_have, "flyc.compile"), "expected at most 3")


def test_generated_frames_are_not_in_tracebacks() -> None:
    with pytest.raises(FlyError) as e:
        sized(X, 1, 64)
    assert "error[FLY_SIM_BOUNDS]" in str(e.value)
    assert not [f.filename for f in inspect.getinnerframes(e.value.__traceback__) if f.filename.startswith("<sim:")]

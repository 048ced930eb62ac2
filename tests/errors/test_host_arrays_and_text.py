"""Host arrays in kernels, names of helpers in findings, braces in printed text."""

import inspect
import linecache
import sys

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import ArgumentClass, DumpFolder, DynamicInArray, PrintfPlaceholders, SwitchValue
from flydsl.diag.errors.simulator import SimFindings
from flydsl.diag.source import Span, named

N = 4
TABLE = np.array([5, 6, 7, 8], np.int32)


def line_of(function, text: str) -> int:
    """Return the line of this file on which `text` stands inside `function`."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    return first + next(i for i, line in enumerate(lines) if text in line)


@flyc.kernel
def declared_kernel(o: fx.Tensor, table: fx.Tensor):
    o[fx.thread_idx.x] = table[fx.thread_idx.x]


@flyc.kernel
def undeclared_kernel(o: fx.Tensor, table, at: fx.Int32):
    o[fx.thread_idx.x] = table[at]


@flyc.kernel
def static_kernel(o: fx.Tensor, table):
    o[fx.thread_idx.x] = int(table[fx.Int32(2)])


@flyc.jit
def pass_declared(o: fx.Tensor):
    declared_kernel(o, TABLE).launch(grid=1, block=N)


@flyc.jit
def pass_undeclared(o: fx.Tensor, at: fx.Int32):
    undeclared_kernel(o, TABLE, at).launch(grid=1, block=N)


@flyc.jit
def pass_static(o: fx.Tensor):
    static_kernel(o, TABLE).launch(grid=1, block=N)


def test_a_host_array_passed_to_a_kernel() -> None:
    with pytest.raises(ArgumentClass) as caught:
        pass_declared(np.zeros(N, np.int32))
    text = str(caught.value)
    assert "`table` of `declared_kernel` is declared as fx.Tensor, but gets ndarray" in text
    assert "give the @jit function a parameter (`table: fx.Tensor`)" in text
    assert caught.value.span.line == line_of(pass_declared.func, "declared_kernel(o, TABLE)")


def test_a_host_array_indexed_by_a_run_time_value() -> None:
    with pytest.raises(DynamicInArray) as caught:
        pass_undeclared(np.zeros(N, np.int32), 1)
    assert "dynamic 'Int32' is used in a NumPy array of the host" in str(caught.value)
    assert caught.value.span.line == line_of(undeclared_kernel.func, "table[at]")


def test_a_host_array_indexed_by_a_static_scalar() -> None:
    out = np.zeros(N, np.int32)
    pass_static(out)
    assert (out == 7).all()


def test_arrays_of_objects_hold_run_time_values() -> None:
    @flyc.kernel
    def sum_kernel(o: fx.Tensor):
        i = fx.thread_idx.x
        pair = np.array([i, i + 1], dtype=object)
        o[i] = pair[0] + pair[1] + np.int32(3) * i

    @flyc.jit
    def launch(o: fx.Tensor):
        sum_kernel(o).launch(grid=1, block=N)

    out = np.zeros(N, np.int32)
    launch(out)
    assert out.tolist() == [2 * i + 1 + 3 * i for i in range(N)]


# --- names of helpers in findings -------------------------------------------------------------------------------------


def far_store(o, i):
    o[i + 100] = 1


def through(o, i):
    far_store(o, i)


@flyc.kernel
def helped_kernel(o: fx.Tensor):
    through(o, fx.thread_idx.x)


@flyc.jit
def helped(o: fx.Tensor):
    helped_kernel(o).launch(grid=1, block=N)


def test_findings_name_the_functions_of_a_chain_of_calls() -> None:
    with pytest.raises(SimFindings) as caught:
        helped(np.zeros(N, np.int32))
    store, call, kernel = (
        line_of(far_store, "o[i + 100]"), line_of(through, "far_store(o, i)"), line_of(helped_kernel.func, "through(o,"),
    )  # fmt: skip
    file, column = "test_host_arrays_and_text.py", ":5" if sys.version_info >= (3, 11) else ""  # Python 3.10 has no columns
    first = next(line for line in str(caught.value).splitlines() if "-->" in line)
    expected = (
        f"{file}:{store}{column}  in far_store, called from through ({file}:{call}{column}), helped_kernel ({file}:{kernel}{column})"
    )
    assert first.strip() == f"--> {expected}"


def test_the_innermost_function_names_a_place() -> None:
    text = "def outer():\n    x = 1\n    def inner():\n        return 2\n    return x\n\ny = 3\n"
    linecache.cache["<named>"] = (len(text), None, text.splitlines(True), "<named>")
    assert [named(Span("<named>", n, 1)).function for n in (1, 2, 4, 5, 7)] == ["outer", "outer", "inner", "outer", ""]
    assert named(Span("<named>", 4, 1, 0, "known")).function == "known"
    assert named(Span("<nowhere>", 4, 1)).function == ""


# --- printf -----------------------------------------------------------------------------------------------------------


@flyc.kernel
def print_kernel(text: fx.Constexpr[str], values: fx.Constexpr[int]):
    i = fx.thread_idx.x
    if fx.const_expr(values == 0):
        fx.printf(text)
    elif fx.const_expr(values == 1):
        fx.printf(text, i)
    else:
        fx.printf(text, i, i + 10)


@flyc.jit
def show(text: fx.Constexpr[str], values: fx.Constexpr[int]):
    print_kernel(text, values).launch(grid=1, block=2)


@pytest.mark.parametrize(
    "text, values",
    [
        ("a {{}} b {}", 1), ("{{}}", 0), ("{{{}}}", 1), ("{}{{{}", 2), ("100% {{x}}: {}", 1), ("}}{{", 0), ("{{{{}}}} {}", 1), ("{} {}", 2),
    ],
)  # fmt: skip
def test_doubled_braces_are_one_as_in_python(text: str, values: int, capfd) -> None:
    show(text, values)
    arguments = [(i, i + 10)[:values] for i in range(2)]
    assert capfd.readouterr().out == "".join(text.format(*a) + "\n" for a in arguments)


def test_lone_braces_stay(capfd) -> None:
    show("{x={}} {", 1)
    assert capfd.readouterr().out == "{x=0} {\n{x=1} {\n"


@pytest.mark.parametrize("text, values, placeholders", [("{{}}", 1, 0), ("{} {{}}", 0, 1), ("{}", 2, 1)])
def test_placeholders_are_counted_without_doubled_braces(text: str, values: int, placeholders: int) -> None:
    with pytest.raises(PrintfPlaceholders) as caught:
        show(text, values)
    assert f"printf: {placeholders} placeholders in {text!r} for {values} values" in str(caught.value)


# --- switches ---------------------------------------------------------------------------------------------------------


@flyc.kernel
def plain_kernel(o: fx.Tensor):
    o[fx.thread_idx.x] = 1


@flyc.jit
def plain(o: fx.Tensor):
    plain_kernel(o).launch(grid=1, block=N)


@pytest.mark.parametrize(
    "variable, value, expected",
    [
        ("FLYDSL_SIM_SCHEDULE", "zigzag", "lockstep"), ("FLYDSL_SIM_SCHEDULE", "random:x", "a whole number"),
        ("FLYDSL_SIM_SCHEDULE", "ahead:3", "lockstep"), ("FLYDSL_SIM_CHECK", "bonds", "bounds"), ("FLYDSL_SIM_CHECK", "default,-rase", "race"),
        ("FLYDSL_SIM_ON_FINDING", "shout", "collect"),
    ],
)  # fmt: skip
def test_switches_of_the_simulator_are_named(variable: str, value: str, expected: str, monkeypatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SwitchValue) as caught:
        plain(np.zeros(N, np.int32))
    message = str(caught.value).splitlines()[0]
    assert f"{variable}={value!r} is not valid: expected" in message and expected in message


@pytest.mark.parametrize("value", ["lockstep", "random", "random:3", "auto"])
def test_schedules(value: str, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_SIM_SCHEDULE", value)
    out = np.zeros(N, np.int32)
    plain(out)
    assert (out == 1).all()


def test_a_dump_folder_that_cannot_be_made(tmp_path, monkeypatch) -> None:
    @flyc.jit
    def new(o: fx.Tensor):
        plain_kernel(o).launch(grid=1, block=N)

    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(file / "dump"))
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", "")
    with pytest.raises(DumpFolder) as caught:
        new(np.zeros(N, np.int32))
    assert isinstance(caught.value, OSError)
    text = str(caught.value)
    assert f"cannot be written to {file / 'dump'}" in text and "Not a directory" in text
    assert f"FLYDSL_DUMP_DIR is {file / 'dump'}" in text

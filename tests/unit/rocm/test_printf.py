"""printf: the records that the generated code writes (run on the host) decode to the text."""

import numpy as np
import pytest
from host_run import kernel_on_host
from lowered_text import module_text

from flydsl.targets.rocm import compile_lowered, printf

BODY = """%zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      %x = arith.sitofp %i : i32 to f32
      %w = arith.extsi %i : i32 to i64
      %odd = arith.trunci %i : i32 to i1
      gpu.printf "row %d of %lld: %.2f odd=%d\\n", %i, %w, %x, %odd : i32, i64, f32, i1
      scf.if %odd { gpu.printf "100%%\\n" }
    }"""


@pytest.fixture(scope="module")
def artifact():
    return compile_lowered(module_text(BODY, arguments="%n: i32"), "gfx942", emit=("hsaco",))


def run(artifact, count: int, capacity: int) -> tuple[list[str], int]:
    buffer = np.frombuffer(printf.new_buffer(capacity), np.uint8).copy()
    kernel_on_host(artifact.llvm_ir)(count, buffer)
    return printf.decode(buffer.tobytes(), artifact.kernels["k"].printf_formats)


def test_texts_in_order(artifact):
    texts, dropped = run(artifact, 3, 4096)
    assert texts == [
        "row 0 of 0: 0.00 odd=0\n", "row 1 of 1: 1.00 odd=1\n", "100%\n", "row 2 of 2: 2.00 odd=0\n",
    ]
    assert dropped == 0


def test_buffer_overflow_drops_and_counts(artifact):
    texts, dropped = run(artifact, 50, 100)
    assert texts == ["row 0 of 0: 0.00 odd=0\n", "row 1 of 1: 1.00 odd=1\n", "100%\n"]
    assert dropped == 50 * 40 + 25 * 8 - 100


def test_hidden_argument_is_last_and_named(artifact):
    info = artifact.kernels["k"]
    assert info.has_printf
    assert [(a.name, a.offset, a.size) for a in info.explicit_args] == [("", 0, 4), ("fly.printf_buffer", 8, 8)]


def test_conversions():
    form = printf.PrintfFormat("%5d|%-4d|%u|%x|%c|%p|%e|%s", ("i32", "i8", "i32", "i16", "i32", "ptr", "f32", "f64"))
    slots = np.array([42, -3, -1, -1, 65, 0x1234], np.int64).tobytes() + np.array([1.5, 0.25]).tobytes()
    record = np.array([form.record_bytes, 0], np.uint32).tobytes() + slots
    buffer = np.array([len(record), 4096], np.uint64).tobytes() + record
    assert printf.decode(buffer, (form,))[0] == ["   42|-3  |4294967295|ffff|A|0x1234|1.500000e+00|0.25"]


def test_damaged_buffer_is_refused():
    buffer = np.array([16, 64], np.uint64).tobytes() + np.array([16, 9, 0, 0], np.uint32).tobytes()
    with pytest.raises(ValueError, match="no record of format 9"):
        printf.decode(buffer, ())

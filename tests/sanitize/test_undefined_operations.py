"""Operations without a defined result are reported at their line, not guessed: division, elements of vectors, shuffles."""

from pathlib import Path

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.diag import ShuffleWidth
from flydsl.diag.errors.simulator import SimFindings
from flydsl.utils import env

N = 8
LEAST = -(2**31)
SOURCE = Path(__file__).read_text().splitlines()


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE, 1) if line.strip() == text)


@flyc.kernel
def divide_kernel(x: fx.Tensor, y: fx.Tensor, o: fx.Tensor, kind: fx.Constexpr[str]):
    i = fx.thread_idx.x
    a, b = x[i], y[i]
    if fx.const_expr(kind == "//"):
        o[i] = a // b
    elif fx.const_expr(kind == "%"):
        o[i] = a % b
    else:
        o[i] = fx.Int32(getattr(fx.arith, kind)(a.ir_value(), b.ir_value()))


@flyc.jit
def divide(x: fx.Tensor, y: fx.Tensor, o: fx.Tensor, kind: fx.Constexpr[str]):
    divide_kernel(x, y, o, kind).launch(grid=1, block=N)


LINES = {"//": "o[i] = a // b", "%": "o[i] = a % b"}
KINDS = ("//", "%", "divsi", "remsi", "floordivsi", "ceildivsi")


def operands(first: int, divisor: int) -> tuple[np.ndarray, np.ndarray]:
    """Sound ones in all lanes but number 5."""
    x, y = np.full(N, 7, np.int32), np.full(N, 2, np.int32)
    x[5], y[5] = first, divisor
    return x, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first, divisor, what", [(LEAST, -1, f"the quotient of {LEAST} by -1 does not fit"), (3, 0, "division by zero")])
def test_division(kind: str, first: int, divisor: int, what: str) -> None:
    with pytest.raises(SimFindings) as caught:
        divide(*operands(first, divisor), np.zeros(N, np.int32), kind)
    finding = caught.value.findings[0]
    line = line_of(LINES.get(kind, "o[i] = fx.Int32(getattr(fx.arith, kind)(a.ir_value(), b.ir_value()))"))
    assert (finding.kind, finding.message, finding.thread, finding.count) == ("undefined", what, (5, 0, 0), 1)
    assert finding.span.line == line


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first, divisor", [(LEAST, 1), (LEAST + 1, -1), (LEAST, LEAST)])
def test_divisions_that_are_defined(kind: str, first: int, divisor: int) -> None:
    out = np.zeros(N, np.int32)
    divide(*operands(first, divisor), out, kind)
    floor, toward_zero = first // divisor, int(first / divisor)
    want = {
        "//": floor, "floordivsi": floor, "ceildivsi": -(-first // divisor), "divsi": toward_zero,
        "%": first - floor * divisor, "remsi": first - toward_zero * divisor,
    }  # fmt: skip
    assert out[5] == want[kind]


def test_an_overflow_beside_a_division_by_zero() -> None:
    x, y = operands(LEAST, -1)
    y[2] = 0
    with flydsl.sim.check(on_finding="collect") as findings:
        divide(x, y, np.zeros(N, np.int32), "divsi")
    assert (findings[0].message, findings[0].thread, findings[0].count) == ("division by zero", (2, 0, 0), 2)


@flyc.kernel
def element_kernel(at: fx.Tensor, o: fx.Tensor, limit: fx.Int32):
    i = fx.thread_idx.x
    v = fx.Vector.from_elements([i, i + 10, i + 20, i + 30])
    if i < limit:
        o[i] = v[at[i]]


@flyc.jit
def element(at: fx.Tensor, o: fx.Tensor, limit: fx.Int32):
    element_kernel(at, o, limit).launch(grid=1, block=N)


@pytest.mark.parametrize("bad", [4, -1, 1 << 20])
def test_element_of_a_vector(bad: int) -> None:
    at = np.arange(N, dtype=np.int32) % 4
    at[6] = bad
    with pytest.raises(SimFindings) as caught:
        element(at, np.zeros(N, np.int32), N)
    finding = caught.value.findings[0]
    assert (finding.kind, finding.message, finding.thread, finding.count) == (
        "bounds", f"read of element {bad} of a vector that has 4", (6, 0, 0), 1,
    )  # fmt: skip
    assert finding.span.line == line_of("o[i] = v[at[i]]")


def test_elements_that_exist_and_lanes_that_are_off() -> None:
    at, out = np.arange(N, dtype=np.int32) % 4, np.zeros(N, np.int32)
    at[6:] = 9
    element(at, out, 6)
    assert out.tolist() == [i + 10 * (i % 4) for i in range(6)] + [0, 0]


@flyc.kernel
def shuffle_kernel(o: fx.Tensor, width: fx.Constexpr[int], given: fx.Int32):
    i = fx.thread_idx.x
    n = width if fx.const_expr(width >= 0) else given
    o[i] = fx.gpu.shuffle_xor(i, 1, n)


@flyc.jit
def shuffle(o: fx.Tensor, width: fx.Constexpr[int], given: fx.Int32):
    shuffle_kernel(o, width, given).launch(grid=1, block=N)


@pytest.mark.parametrize("chip, wave, bad", [("gfx942", 64, (0, 48, 128)), ("gfx1100", 32, (3, 48, 64, 128))])
def test_shuffle_widths(chip: str, wave: int, bad: tuple[int, ...]) -> None:
    out = np.zeros(N, np.int32)
    with env.override(ARCH=chip, FLYDSL_GPU_ARCH=chip):
        for width in bad:
            with pytest.raises(ShuffleWidth) as caught:
                shuffle(out, width, 0)
            assert f"lanes cannot be grouped by {width}" in str(caught.value)
            assert f"a wave of {chip} has {wave} lanes" in str(caught.value)
            assert caught.value.span.line == line_of("o[i] = fx.gpu.shuffle_xor(i, 1, n)")
        for width in (2, 8, wave):
            shuffle(out, width, 0)
            assert out.tolist() == [i ^ 1 for i in range(N)]
        shuffle(out, 1, 0)
        assert out.tolist() == list(range(N))


def test_run_time_shuffle_widths() -> None:
    out = np.zeros(N, np.int32)
    shuffle(out, -1, 4)
    assert out.tolist() == [i ^ 1 for i in range(N)]
    for width in (48, 128):
        with pytest.raises(SimFindings, match="a shuffle in groups that are no power of two up to 64 lanes"):
            shuffle(out, -1, width)

"""Static offsets beyond 32 bits: they reach their element, in the simulator and as code of each target; beyond an address they are refused."""

import re
from pathlib import Path

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.diag import StaticOffset
from flydsl.diag.errors.simulator import SimFindings
from flydsl.utils import env

FAR = 2**31 + 5
SOURCE = Path(__file__).read_text().splitlines()


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE, 1) if line.strip() == text)


@flyc.kernel
def far_kernel(o: fx.Tensor, at: fx.Constexpr[int]):
    fx.get_iter(o)[at] = fx.Int8(7)


@flyc.jit
def far(o: fx.Tensor, at: fx.Constexpr[int]):
    far_kernel(o, at).launch(grid=1, block=1)


@flyc.kernel
def forms_kernel(o: fx.Tensor, n: fx.Int64):
    fx.get_iter(o)[fx.Int64(2) ** 31 + 6] = fx.Int8(1)
    (fx.get_iter(o) + 2**31)[7] = fx.Int8(2)
    fx.make_view(fx.get_iter(o), fx.make_layout((2, 16), (2**31, 1)))[1, 8] = fx.Int8(3)
    fx.add_offset(fx.get_iter(o), n)[-(2**31)] = fx.Int8(4)
    fx.add_offset(fx.get_iter(o), n)[-(2**31) - 1] = fx.Int8(5)


@flyc.jit
def forms(o: fx.Tensor, n: fx.Int64):
    forms_kernel(o, n).launch(grid=1, block=1)


@flyc.kernel
def buffer_kernel(o: fx.Tensor, at: fx.Constexpr[int]):
    fx.rocdl.make_buffer_tensor(o)[at] = 1


@flyc.jit
def buffered(o: fx.Tensor, at: fx.Constexpr[int]):
    buffer_kernel(o, at).launch(grid=1, block=1)


@pytest.fixture(scope="module")
def large() -> np.ndarray:
    """Two gigabytes of addresses, of which only the touched pages exist."""
    return np.zeros((2, 2**30 + 32), np.int8)


def test_they_reach_their_element(large) -> None:
    with flydsl.sim.check(checks="bounds"):
        far(large, FAR)
        forms(large, 2**31 + 3)
    flat = large.reshape(-1)
    assert flat[FAR : FAR + 4].tolist() == [7, 1, 2, 3]
    assert flat[2:4].tolist() == [5, 4]


@pytest.mark.parametrize("chip", ["gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_code_of_the_targets(chip: str, large) -> None:
    with env.override(ARCH=chip, FLYDSL_GPU_ARCH=chip):
        isa = far.artifact_for(far.wrap_arguments((large, FAR), {})).codegen(("isa",)).isa
    low, high = FAR & 0xFFFFFFFF, FAR >> 32
    assert high == 0 and re.search(rf"{low:#x}|{low - 2**32}|{low - 5:#x}.*|offset:5", isa), isa


@flyc.kernel
def index_kernel(o: fx.Tensor, at: fx.Constexpr[int]):
    o[at] = fx.Int8(7)


@flyc.jit
def index(o: fx.Tensor, at: fx.Constexpr[int]):
    index_kernel(o, at).launch(grid=1, block=1)


def test_past_the_tensor_they_are_the_finding_of_any_other_index() -> None:
    for at in (2**31, 2**40, -(2**31), -(2**40)):
        with pytest.raises(SimFindings, match="write outside tensor `o`") as caught:
            index(np.zeros(8, np.int8), at)
        assert caught.value.findings[0].span.line == line_of("o[at] = fx.Int8(7)")
        assert caught.value.findings[0].offset == at


@pytest.mark.parametrize("at", [2**63, 2**70, -(2**63) - 1])
def test_beyond_an_address(at: int) -> None:
    with pytest.raises(StaticOffset) as caught:
        index(np.zeros(8, np.int8), at)
    assert f"an offset of {at} elements of i8 is {at} bytes, which do not fit 64 bits" in str(caught.value)
    assert caught.value.span.line == line_of("o[at] = fx.Int8(7)")


def test_beyond_a_buffer() -> None:
    o = np.zeros(8, np.int32)
    for at in (2**30, 2**31, 2**33 + 1):
        with pytest.raises(StaticOffset) as caught:
            buffered(o, at)
        assert f"an offset of {at} elements of i32 is {4 * at} bytes, which do not fit 32 bits" in str(caught.value)
        assert caught.value.span.line == line_of("fx.rocdl.make_buffer_tensor(o)[at] = 1")
    buffered(o, 2**30 - 1)
    assert not o.any()
    buffered(o, 7)
    assert o.tolist() == [0] * 7 + [1]

"""Traces of one wave, breakpoints, dumped launches that are run again."""

import pathlib

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.targets.sim.trace import Trace
from flydsl.tools import replay
from flydsl.utils import env


@flyc.kernel
def scaled_kernel(A: fx.Tensor, B: fx.Tensor, ahead: fx.Constexpr[int]):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    x = A[i + ahead]
    total = fx.Float32(0.0)
    for k in range(fx.Int32(3)):
        total = total + x
    B[i] = total


@flyc.jit
def scaled(A: fx.Tensor, B: fx.Tensor, ahead: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    scaled_kernel(A, B, ahead).launch(grid=(2, 1, 1), block=(128, 1, 1), stream=stream)


@flyc.kernel
def stopped_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    x = A[i]
    twice = x + x
    flydsl.sim.breakpoint()
    B[i] = twice


@flyc.jit
def stopped(A: fx.Tensor, B: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    stopped_kernel(A, B).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)


def line_of(text: str) -> int:
    source = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if line.strip() == text)


def test_trace_prints_the_values_of_one_wave_as_they_change(capsys) -> None:
    a, b = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    line = line_of("x = A[i + ahead]")
    with env.override(FLYDSL_SIM_TRACE="block=1,wave=1", FLYDSL_SIM_TRACE_LINES=f"{line}-{line + 4}"):
        scaled(a, b, 0)
    lines = capsys.readouterr().out.splitlines()
    assert f"test_time_travel.py:{line}: x = [192, 193, 194, 195, 196, 197, ..., 255]" in lines
    sums = [x for x in lines if f":{line + 3}:" in x]
    assert [x.partition("[")[2].partition(",")[0] for x in sums] == ["192", "384", "576"]
    assert all(x.startswith("test_time_travel.py") for x in lines)
    np.testing.assert_array_equal(b, 3 * a)


def test_trace_texts_are_refused_with_their_form() -> None:
    assert Trace.parse("block=2/1,wave=3", "7") == Trace((2, 1, 0), 3, (7, 7))
    with pytest.raises(ValueError, match="expected block=X"):
        Trace.parse("blok=0")


def test_breakpoint_shows_the_variables_of_all_lanes() -> None:
    stops = []
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with flydsl.sim.on_breakpoint(stops.append):
        stopped(a, b)
    (stop,) = stops
    assert stop.line == line_of("flydsl.sim.breakpoint()") and {"i", "x", "twice"} <= set(stop.values)
    np.testing.assert_array_equal(stop.values["twice"][0], 2 * a)
    assert "twice = [0, 2, 4, 6, 8, 10, ..., 126]" in str(stop)
    np.testing.assert_array_equal(b, 2 * a)


def test_a_launch_with_faults_is_dumped_and_run_again(tmp_path, capsys) -> None:
    a, b = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    with env.override(FLYDSL_SIM_DUMP=str(tmp_path)), pytest.raises(flydsl.sim.SimFindings):
        scaled(a, b, 1)
    with env.override(FLYDSL_SIM_DUMP=str(tmp_path)):
        scaled(a, b, 0)
    (home,) = tmp_path.iterdir()
    a[:] = 0
    line = line_of("x = A[i + ahead]")
    assert replay.main([str(home), "--trace", "block=0,wave=0", "--line", str(line)]) == 1
    out = capsys.readouterr().out
    assert "read outside tensor `A`: index (256,)" in out and f"test_time_travel.py:{line}" in out
    assert f":{line}: x = [1, 2, 3, 4, 5, 6, ..., 64]" in out, out
    assert replay.main([str(tmp_path), "--checks", "none", "--schedule", "reverse"]) == 0

"""Findings reach the user: `flydsl.sim.check`, the environment, the closing line, the pytest plugin."""

import pathlib
import sys
import warnings

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.utils import env

pytest_plugins = ["pytester"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


@flyc.kernel
def shift_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Constexpr[int], ahead: fx.Constexpr[int]):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    if i < n:
        B[i] = A[i + ahead]


@flyc.jit
def shift(A: fx.Tensor, B: fx.Tensor, n: fx.Constexpr[int], ahead: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    shift_kernel(A, B, n, ahead).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)


def line_of(text: str) -> int:
    source = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if line.strip() == text)


@pytest.fixture
def arrays():
    return np.zeros(64, np.float32), np.zeros(64, np.float32)


def test_collect_lets_the_launch_end_and_merges_launches(arrays) -> None:
    with flydsl.sim.check() as found:
        shift(*arrays, 64, 1)
        shift(*arrays, 64, 1)
    (finding,) = found.errors
    assert (finding.kind, finding.span.line, finding.tensor, finding.count) == ("bounds", line_of("B[i] = A[i + ahead]"), "A", 2)
    assert len(found.runs) == 2 and "2 launches of 1 kernel" in found.summary() and "found: 2 errors" in found.summary()


def test_a_scope_of_chosen_checks_and_schedule(arrays) -> None:
    with flydsl.sim.check(checks="default,-bounds", schedule="reverse") as found:
        shift(*arrays, 64, 1)
    assert not found and found.runs[0].schedule == "reverse" and "bounds" not in found.runs[0].checks
    with pytest.raises(ValueError, match="unknown simulator checks: bonds"), flydsl.sim.check(checks="bonds"):
        pass


def test_raise_is_collected_too(arrays) -> None:
    with flydsl.sim.check("raise") as found, pytest.raises(flydsl.sim.SimFindings):
        shift(*arrays, 64, 1)
    assert [f.kind for f in found] == ["bounds"]


def test_environment_picks_checks_and_what_a_finding_does(arrays) -> None:
    with env.override(FLYDSL_SIM_ON_FINDING="collect"):
        shift(*arrays, 64, 1)
    with env.override(FLYDSL_SIM_ON_FINDING="warn"), pytest.warns(RuntimeWarning, match="read outside tensor `A`"):
        shift(*arrays, 64, 1)
    with env.override(FLYDSL_SIM_CHECK="none"), warnings.catch_warnings():
        warnings.simplefilter("error")
        shift(*arrays, 64, 1)
    with pytest.raises(flydsl.sim.SimFindings):
        shift(*arrays, 64, 1)


def test_holes_are_warned_about_once_at_the_end(arrays) -> None:
    with flydsl.sim.check(checks="default,holes") as found:
        shift(*arrays, 48, 0)
    (hole,) = found.of("warning")
    assert (hole.kind, hole.tensor, hole.index) == ("never-written", "B", (48,)) and "........" in hole.message


KERNELS = """
import numpy as np, pytest
import flydsl.compiler as flyc, flydsl.expr as fx, flydsl.sim

@flyc.kernel
def copy_kernel(A: fx.Tensor, B: fx.Tensor, ahead: fx.Constexpr[int]):
    i = fx.thread_idx.x
    B[i] = A[i + ahead]

@flyc.jit
def copy(A: fx.Tensor, B: fx.Tensor, ahead: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    copy_kernel(A, B, ahead).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)

def arrays():
    return np.zeros(64, np.float32), np.zeros(64, np.float32)

def test_sound():
    copy(*arrays(), 0)

def test_broken():
    copy(*arrays(), 1)

@pytest.mark.flydsl_check(checks="default,-bounds")
def test_without_bounds():
    copy(*arrays(), 1)

def test_own_scope():
    with flydsl.sim.check() as found:
        copy(*arrays(), 1)
    assert len(found) == 1

def test_partly_written():
    a, b = np.zeros(64, np.float32), np.zeros(80, np.float32)
    copy(a, b, 0)
"""


def run_plugin(pytester, *options: str):
    pytester.makepyfile(KERNELS)
    pytester.makeconftest("")
    return pytester.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "flydsl.tools.pytest_plugin", *options)


def test_plugin_fails_the_test_with_the_report(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # installed, the plugin is an entry point too
    result = run_plugin(pytester, "--flydsl-check")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*test_broken*", "error[[]FLY_SIM_BOUNDS[]]: read outside tensor `A`*", "*B[[]i[]] = A[[]i + ahead[]]*"])
    result.stdout.fnmatch_lines(["*::test_partly_written: warning*16 of 80 elements of `B` were never written*", "simulator: * launches of 1 kernel*"])


def test_plugin_is_silent_without_its_option(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # installed, the plugin is an entry point too
    result = run_plugin(pytester, "-k", "sound or own_scope")
    result.assert_outcomes(passed=2)
    assert "simulator:" not in result.stdout.str()

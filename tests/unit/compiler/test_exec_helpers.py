"""Helpers made by `exec`: their code counts for what is cached, and findings name the file of the one that runs."""

import linecache
import sys

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag.errors.simulator import SimFindings

COLUMN = ":5" if sys.version_info >= (3, 11) else ""  # Python 3.10 has no columns
STORE = "def helper(o, i):\n    o[i] = {}\n"
OUTSIDE = "def helper(o, i):\n    o[i + 100] = 1\n"


def helper_of(text: str, file: str, namespace: dict):
    """Return the function of a source text that linecache knows as `file`."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), namespace)
    return namespace["helper"]


def launcher_of(helper):
    @flyc.kernel
    def k(o: fx.Tensor):
        helper(o, fx.thread_idx.x)

    @flyc.jit
    def run(o: fx.Tensor):
        k(o).launch(grid=1, block=2)

    return run


@pytest.fixture(params=["disk", "memory", "off"], autouse=True)
def cache(request, monkeypatch, tmp_path):
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path) if request.param == "disk" else "")
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0" if request.param == "off" else "1")


@pytest.mark.parametrize("namespace", [{}, {"__name__": __name__}], ids=["bare", "named"])
def test_helpers_of_one_name_with_different_code(namespace: dict) -> None:
    """A namespace without a name gives functions without a module."""
    for n in (1, 2, 1):
        out = np.zeros(2, np.int32)
        launcher_of(helper_of(STORE.format(n), "<store>", dict(namespace)))(out)
        assert out.tolist() == [n, n]


def places_of(run) -> str:
    with pytest.raises(SimFindings) as caught:
        run(np.zeros(2, np.int32))
    return next(line for line in str(caught.value).splitlines() if "-->" in line)


@pytest.mark.parametrize("namespace", [{}, {"__name__": __name__}], ids=["bare", "named"])
def test_equal_helpers_of_different_files(namespace: dict) -> None:
    files = [f"/nowhere/{name}.py" for name in ("one", "two", "one")]
    for file in files:
        place = places_of(launcher_of(helper_of(OUTSIDE, file, dict(namespace))))
        assert f"{file.rpartition('/')[2]}:2{COLUMN}  in helper, called from k" in place


table = {}


@flyc.kernel
def table_kernel(o: fx.Tensor):
    table["helper"](o, fx.thread_idx.x)


@flyc.jit
def through_table(o: fx.Tensor):
    table_kernel(o).launch(grid=1, block=2)


def test_an_equal_helper_that_takes_the_place_of_another() -> None:
    for name, skipped in (("one", 0), ("two", 0), ("two", 3), ("one", 0)):
        table["helper"] = helper_of("\n" * skipped + OUTSIDE, f"/nowhere/{name}.py", {"__name__": __name__})
        assert f"{name}.py:{2 + skipped}{COLUMN}  in helper" in places_of(through_table)

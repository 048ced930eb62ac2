"""Random kernels compute, in every lane of the simulator, what Python computes: 300 programs, 5,000 under the nightly marker.

The lanes of one wave get different arguments, so branches and loops diverge. Half of the programs are inlined jit functions (`range` is
always a run-time loop), half are plain helpers (rewritten when they are first called).
"""

import linecache
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import PLAIN, RESULTS, Writer

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.utils import env

LANES = 64
_ARGUMENTS = np.random.default_rng(7).integers(0, 256, (LANES, 3)).astype(np.int32)
_ARGUMENTS[:4] = [[0, 0, 0], [1, 2, 3], [255, 255, 1], [8, 0, 64]]

KERNEL = """
@flyc.kernel
def kernel(args: fx.Tensor, out: fx.Tensor):
    lane = fx.thread_idx.x
    results = traced_program(args[lane], args[LANES + lane], args[2 * LANES + lane])
    for i in fx.range_constexpr(RESULTS):
        out[LANES * i + lane] = results[i]


@flyc.jit
def launch(args: fx.Tensor, out: fx.Tensor):
    kernel(args, out).launch(grid=(1, 1, 1), block=(LANES, 1, 1))
"""


def load(source: str, name: str, fx=fx) -> dict:
    """Run a source text as a module whose functions have readable source."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {"__name__": name, "flyc": flyc, "fx": fx, "LANES": LANES, "RESULTS": RESULTS}
    exec(compile(source, file, "exec"), scope)
    return scope


def check(source: str, name: str, inline: bool) -> None:
    """Run a program in the simulator and in Python, and compare all lanes."""
    scope = load(source + KERNEL, name)
    program = scope["program"]
    scope["traced_program"] = flyc.jit(program) if inline else program
    out = np.full(LANES * RESULTS, -1, np.int32)
    with env.override(FLYDSL_RUNTIME_ENABLE_CACHE="0"):
        scope["launch"](_ARGUMENTS.T.reshape(-1).copy(), out)
    plain = load(source, f"{name} (plain)", PLAIN)["program"]
    expected = [[int(x) for x in plain(*(int(a) for a in row))] for row in _ARGUMENTS]
    found = out.reshape(RESULTS, LANES).T
    wrong = np.flatnonzero((found != expected).any(1))
    assert not len(wrong), f"lane {wrong[0]}: {found[wrong[0]]} != {expected[wrong[0]]}\n{source}"


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_programs_found_by_hypothesis(data):
    writer = Writer(lambda k: data.draw(st.integers(0, k - 1)))
    check(writer.program(), "drawn", inline=data.draw(st.booleans()))


@pytest.mark.parametrize("block", range(10))
def test_programs_by_seed(block):
    for seed in range(20 * block, 20 * block + 20):
        check(Writer(random.Random(seed).randrange).program(), f"seed {seed}", inline=seed % 2 == 0)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(50))
def test_programs_by_seed_nightly(block):
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        check(Writer(random.Random(seed).randrange).program(), f"seed {seed}", inline=seed % 2 == 0)

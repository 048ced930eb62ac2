"""Example 07 without one of its barriers or waits: the simulator's checks report each; with all of them, every schedule agrees."""

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flydsl.runtime.sim import SimLoaded
from flydsl.targets.sim import Program
from flydsl.utils import env

PATH = Path(__file__).parents[2] / "examples" / "07_preshuffle_gemm.py"
SYNC = re.compile(r"^\s*(gpu\.barrier|rocdl\.s\.barrier|rocdl\.s\.waitcnt)\b")
M, N, K, TILE = 32, 64, 256, (32, 64, 64)  # four tiles of k: prologue, one trip of the loop, the last two steps
HOW = {"staged": False, "dma": True}


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("preshuffle_gemm_example", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Gemm:
    """One specialisation of the example: its lowered text can be changed and run."""

    def __init__(self, example, dma: bool):
        self.example = example
        a, b, scale_a, scale_b = example.inputs(np.random.default_rng(1), np.float16, M, N, K)
        self.expected = a.astype(np.float64) @ b.astype(np.float64).T
        self.c = np.zeros((M, N), np.float16)
        args = (a, example.preshuffle(b), self.c, scale_a, scale_b, M, N, K, TILE, 16, dma)
        self.arguments = example.preshuffle_gemm.wrap_arguments(args, {})
        self.artifact = example.preshuffle_gemm.artifact_for(self.arguments)
        self.text = self.artifact.ir

    def run(self, text: str) -> None:
        self.c[:] = np.nan
        arch = self.artifact.arch
        self.artifact._loaded["sim"] = SimLoaded(SimpleNamespace(sim_program=lambda: Program(text, arch), arch=arch))
        self.example.preshuffle_gemm.launch(self.artifact, self.arguments)

    def error(self) -> float:
        return float(np.abs(self.c.astype(np.float64) - self.expected).max())

    def syncs(self) -> list[int]:
        return [i for i, line in enumerate(self.text.splitlines()) if SYNC.match(line)]


@pytest.fixture(scope="module", params=HOW)
def gemm(request, example):
    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942"):
        yield Gemm(example, HOW[request.param])


@pytest.mark.parametrize("schedule", ["lockstep", "ahead", "reverse", "random:1", "random:2"])
def test_every_schedule_agrees(gemm, schedule):
    with env.override(FLYDSL_SIM_SCHEDULE=schedule):
        gemm.run(gemm.text)
    assert gemm.error() < 0.05


def test_each_barrier_and_each_wait_is_needed_and_missed(gemm):
    lines = gemm.text.splitlines()
    assert len(gemm.syncs()) >= 4
    for i in gemm.syncs():
        with pytest.raises(Exception, match="FLY_SIM_"):
            gemm.run("\n".join(lines[:i] + lines[i + 1 :]))
    gemm.run(gemm.text)
    assert gemm.error() < 0.05

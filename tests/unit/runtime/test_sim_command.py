"""`flydsl sim` as users call it: scripts, modules, pytest, schedules, what goes wrong."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed (pip install 'flydsl[torch]')")

from flydsl.tools.sim_command import expand, first_difference

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def total_kernel(x: fx.Tensor, out: fx.Tensor):
    tid = fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 2]).peek()
    fx.gpu.barrier()
    if tid % 64 == 0:
        shared[tid // 64] = x[tid]
    {barrier}
    if tid == 0:
        out[0] = shared[0] + shared[1]

@flyc.jit
def total(x: fx.Tensor, out: fx.Tensor):
    total_kernel(x, out).launch(grid=(1,), block=(128,))

x, out = torch.arange(128, dtype=torch.float32, device="cuda"), torch.empty(1, device="cuda")
total(x, out)
torch.cuda.synchronize()
print(sys.argv[1:], torch.cuda.get_device_properties(0).gcnArchName, out.item())
"""


def sim(*arguments: object, cwd: pathlib.Path, **env: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLYDSL_RUNTIME_CACHE_DIR": "", **env}
    command = [sys.executable, "-m", "flydsl.tools.cli", "sim", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=200)


def program(folder: pathlib.Path, barrier: str = "fx.gpu.barrier()") -> pathlib.Path:
    path = folder / "program.py"
    path.write_text(PROGRAM.replace("{barrier}", barrier))
    return path


def test_script_with_arguments(tmp_path):
    done = sim("--arch", "gfx1201", program(tmp_path), "--flag", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['--flag', '1'] gfx1201 64.0"


def test_module_is_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import torch\n\ndef test_gpu():\n    assert torch.zeros(2, device='cuda').is_cuda\n\ndef test_wrong():\n    assert False\n"
    )
    done = sim("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr


def test_schedules_agree(tmp_path):
    done = sim("--schedules", "lockstep,random:1", program(tmp_path), cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.count("same results") == 2, done.stderr
    assert "random:1" in done.stderr


def test_random_inputs_are_the_same_under_every_schedule(tmp_path):
    path = program(tmp_path)
    draws = "torch.randn(128, device='cuda') + float(np.random.rand()) + random.random()"
    text = path.read_text().replace('torch.arange(128, dtype=torch.float32, device="cuda")', draws)
    path.write_text("import random\nimport numpy as np\n" + text)
    done = sim("--schedules", "lockstep,reverse", path, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.count("same results") == 2, done.stderr


def test_schedules_that_differ(tmp_path):
    path = program(tmp_path, barrier="")
    done = sim("--check", "bounds", "--schedules", "lockstep,ahead", path, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "DIFFERENT: launch 0 `total_kernel_0` leaves other values in out" in done.stderr
    assert "FLYDSL_SIM_SCHEDULE=ahead" in done.stderr


def test_findings_end_the_program(tmp_path):
    done = sim(program(tmp_path, barrier=""), cwd=tmp_path)
    assert done.returncode != 0 and "FLY_SIM_RACE" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"), [((), "no program"), (("missing.py",), "missing.py"), (("-m",), "no program")]
)
def test_nothing_to_run(tmp_path, arguments, text):
    done = sim(*arguments, cwd=tmp_path)
    assert done.returncode == 1 and "FLY_SIM_PROGRAM" in done.stderr and text in done.stderr


def test_expand():
    assert expand("lockstep, ahead,random:3") == ["lockstep", "ahead", "random:1", "random:2", "random:3"]


def test_first_difference():
    launch = {"kernel": "k", "memory": [["x", "1"], ["y", "2"]]}
    other = {"kernel": "k", "memory": [["x", "1"], ["y", "3"]]}
    assert first_difference([launch], [launch]) == ""
    assert "launch 1 `k`" in first_difference([launch, launch], [launch, other]) and "y" in first_difference(
        [launch], [other]
    )
    assert "2 launches, not 1" in first_difference([launch], [launch, launch])

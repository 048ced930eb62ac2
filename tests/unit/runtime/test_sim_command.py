"""`flydsl sim` as users call it: scripts, modules, pytest, schedules, what goes wrong."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed (pip install torch)")

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


# --- processes that the program starts ---

CHILD = """
import json, os, sys
import torch
import kernels


def work(rank, queue):
    torch.cuda.set_device(rank)
    x, out = torch.arange(128, dtype=torch.float32, device="cuda"), torch.empty(1, device="cuda")
    kernels.total(x, out)
    queue.put((rank, torch.cuda.device_count(), str(out.device), out.item()))


def send(queue, tensor):
    tensor *= 2
    queue.put(tensor)
    queue.get()


if __name__ == "__main__":
    if sys.argv[1] == "leaf":
        class Queue:
            put = staticmethod(lambda found: print(json.dumps(found)))
        work(1, Queue)
    elif sys.argv[1] == "subprocess":
        import subprocess
        subprocess.run([sys.executable, __file__, "leaf"], check=True)
    elif sys.argv[1] == "tensors":
        context = torch.multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        x = torch.ones(4, device="cuda:1")
        process = context.Process(target=send, args=(queue, x))
        process.start()
        y = queue.get()
        y += 1
        print(y.device, x.device, y.tolist(), x.tolist())
        queue.put(None)
        process.join()
    else:
        context = torch.multiprocessing.get_context(sys.argv[1])
        queue = context.SimpleQueue()
        processes = [context.Process(target=work, args=(rank, queue)) for rank in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        for found in sorted(queue.get() for _ in processes):
            print(json.dumps(found))
"""


@pytest.fixture
def family(tmp_path):
    text = PROGRAM.replace("{barrier}", "fx.gpu.barrier()")
    (tmp_path / "kernels.py").write_text(text.split("x, out =")[0])
    (tmp_path / "family.py").write_text(CHILD)
    return tmp_path / "family.py"


@pytest.mark.parametrize("how", ["subprocess", "spawn", "fork"])
def test_processes_of_the_program_see_the_gpus(family, how):
    done = sim("--devices", "2", "--arch", "gfx1201", family, how, cwd=family.parent)
    assert done.returncode == 0, done.stderr
    ranks = [1] if how == "subprocess" else [0, 1]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[r, 2, f"cuda:{r}", 64.0] for r in ranks]


def test_gpu_tensors_are_shared_between_processes(family):
    done = sim("--devices", "2", family, "tensors", cwd=family.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "cuda:1 cuda:1 [3.0, 3.0, 3.0, 3.0] [3.0, 3.0, 3.0, 3.0]"


def test_findings_in_a_process_of_the_program_end_it(family):
    (family.parent / "kernels.py").write_text(
        (family.parent / "kernels.py").read_text().replace("    fx.gpu.barrier()\n    if tid == 0", "    if tid == 0")
    )
    done = sim("--devices", "2", family, "subprocess", cwd=family.parent)
    assert done.returncode != 0 and "FLY_SIM_RACE" in done.stderr


def test_processes_of_the_program_keep_their_own_environment(tmp_path):
    """The user's sitecustomize runs, torch is not imported for nothing, and nothing is left on PYTHONPATH."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 7\n")
    (tmp_path / "main.py").write_text(
        "import os, subprocess, sys\n"
        "show = 'import sys; print(mine, \"torch\" in sys.modules, sys.modules[\"sitecustomize\"] is not None)'\n"
        "print(subprocess.run([sys.executable, '-c', show], capture_output=True, text=True).stdout.strip())\n"
        "nested = [sys.executable, '-m', 'flydsl.tools.cli', 'sim', sys.argv[1]]\n"
        "print(subprocess.run(nested, capture_output=True, text=True).stdout.strip())\n"
    )
    path = os.pathsep.join([str(tmp_path / "site"), str(ROOT)])
    done = sim("main.py", program(tmp_path), cwd=tmp_path, PYTHONPATH=path)
    assert done.stdout.splitlines() == ["7 False True", "[] gfx942:sramecc+:xnack- 64.0"], done.stderr

"""`torch.distributed` with nccl under `flydsl sim`: one process, torchrun, spawn; what programs ask about the backend."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed (pip install torch)")

import torch

from flydsl.runtime.torch_cuda import simulated_cuda
from flydsl.runtime.torch_cuda.distributed import host_backend

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed")
ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
import os
import sys
import torch
import torch.distributed as dist
import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def double_kernel(x: fx.Tensor):
    x[fx.thread_idx.x] = x[fx.thread_idx.x] * 2.0


@flyc.jit
def double(x: fx.Tensor):
    double_kernel(x).launch(grid=(1,), block=(64,))


def work(rank, world, backend):
    torch.cuda.set_device(rank)
    dist.init_process_group(backend, rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    x = torch.full((64,), rank + 1.0, device="cuda")
    double(x)
    dist.all_reduce(x)
    mean = torch.full((4,), float(rank), device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    root = torch.full((4,), float(rank), device="cuda")
    dist.broadcast(root, world - 1)
    parts = torch.empty(2 * world, device="cuda")
    dist.all_gather_into_tensor(parts, torch.full((2,), float(rank), device="cuda"))
    group = dist.new_group(list(range(world)), backend="nccl")
    dist.new_group([world - 1], backend="gloo")  # others are no members: what they know of the world stays
    dist.barrier(group=group, device_ids=[rank])
    double(x)
    found = [x[0].item(), mean[0].item(), root[0].item(), parts.tolist(), str(x.device), str(parts.device)]
    answers = [dist.is_nccl_available(), dist.is_backend_available("nccl"), dist.get_backend(), dist.get_backend(group)]
    os.write(1, f"{rank} {found} {answers}\\n".encode())  # one call: lines of two processes do not mix
    dist.destroy_process_group()


if __name__ == "__main__":
    backend = sys.argv[2]
    if sys.argv[1] == "spawn":
        torch.multiprocessing.spawn(work, args=(2, backend), nprocs=2)
    else:
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), backend)
"""


def free_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def sim(folder: pathlib.Path, *arguments: object, **env: str) -> subprocess.CompletedProcess:
    (folder / "program.py").write_text(PROGRAM)
    here = {"PYTHONPATH": str(ROOT), "FLYDSL_RUNTIME_CACHE_DIR": "", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    command = [sys.executable, "-m", "flydsl.tools.cli", "sim", "--devices", "2", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **here, **env}, timeout=300)


def expected(world: int, backend: str) -> list[str]:
    """What each rank prints; the sums are written out here."""
    total = 2 * sum(rank + 1 for rank in range(world))
    gathered = [float(rank) for rank in range(world) for _ in range(2)]
    answers = [True, True, backend, "nccl"]
    return [
        f"{rank} {[2.0 * total, (world - 1) / 2, world - 1.0, gathered, f'cuda:{rank}', f'cuda:{rank}']} {answers}" for rank in range(world)
    ]


NOTICE = "torch.distributed: nccl is gloo here"


def test_one_process(tmp_path):
    done = sim(tmp_path, "program.py", "alone", "nccl", RANK="0", WORLD_SIZE="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected(1, "nccl") and done.stderr.count(NOTICE) == 1


def test_torchrun(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", free_port()]
    done = sim(tmp_path, *launcher, "program.py", "torchrun", "cuda:nccl,cpu:gloo")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == expected(2, "gloo") and done.stderr.count(NOTICE) == 1


def test_spawn(tmp_path):
    done = sim(tmp_path, "program.py", "spawn", "nccl")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == expected(2, "nccl") and done.stderr.count(NOTICE) == 1


def test_groups_that_are_made_again(capfd, monkeypatch):
    import torch.distributed as dist

    before = dist.init_process_group, dist.get_backend, dist.is_nccl_available, dist.is_nccl_available()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with simulated_cuda():
        for backend in ("nccl", "gloo", "nccl"):
            monkeypatch.setenv("MASTER_PORT", free_port())
            dist.init_process_group(backend, rank=0, world_size=1)
            try:
                assert dist.get_backend() == backend and dist.get_backend(dist.group.WORLD) == backend
            finally:
                dist.destroy_process_group()
        assert dist.is_nccl_available()
    assert capfd.readouterr().err.count(NOTICE) == 1
    assert (dist.init_process_group, dist.get_backend, dist.is_nccl_available, dist.is_nccl_available()) == before


def test_groups_have_the_backend_of_the_world_unless_one_is_named(monkeypatch):
    import torch.distributed as dist

    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", free_port())
    with simulated_cuda():
        dist.init_process_group("nccl", rank=0, world_size=1)
        try:
            groups = dist.new_group([0]), dist.new_subgroups(1)[0], dist.new_group([0], backend="gloo"), dist.new_subgroups(1, backend="gloo")[0]
            assert [dist.get_backend(g) for g in groups] == ["nccl", "nccl", "gloo", "gloo"]
            assert dist.get_backend() == "nccl"
        finally:
            dist.destroy_process_group()


@pytest.mark.parametrize(
    ("asked", "given"),
    [("nccl", "gloo"), ("NCCL", "gloo"), ("cuda:nccl,cpu:gloo", "gloo"), ("cpu:gloo,cuda:nccl", "gloo"), ("cuda:nccl", "gloo"), ("gloo", "gloo"),
     ("cuda:nccl,cpu:mpi", "mpi"), ("cuda:gloo", "gloo"), ("mpi", "mpi"), (None, None)],
)  # fmt: skip
def test_backend_names(asked, given):
    assert host_backend(asked) == given

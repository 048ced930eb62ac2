"""`flydsl sim script.py ...` and `flydsl sim -m module ...`: run a torch program written for `device="cuda"`
without a GPU.

With `--schedules` the program runs once per order of waves, each in a process of its own, and the memory that
kernels leave behind is
compared launch by launch: a kernel that is right gives the same under every order.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from flydsl.diag import SimulatedProgramMissing
from flydsl.tools import sim_child
from flydsl.utils import env

_MISSING_TORCH = "torch is not installed: pip install torch\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arch", help="the GPU to simulate, such as gfx942 (default: FLYDSL_GPU_ARCH, or gfx942)")
    parser.add_argument("--devices", type=int, default=1, help="how many GPUs there are (default: 1)")
    parser.add_argument("--check", help="checks of the simulator, such as bounds,race; none: off (FLYDSL_SIM_CHECK)")
    parser.add_argument(
        "--on-finding", choices=("raise", "warn", "collect"), help="what a fault does (default: raise)"
    )
    parser.add_argument("--trace", help="print the values of one wave's source lines: block=0,wave=1")
    parser.add_argument("--line", help="source lines of the trace, such as 40-60")
    parser.add_argument(
        "--dump", help="folder for launches with faults; `python -m flydsl.tools.replay` repeats them"
    )
    parser.add_argument("--schedules", help="compare orders of waves: lockstep,ahead,reverse,random:20 (20 seeds)")
    parser.add_argument("--schedule", help=argparse.SUPPRESS)
    parser.add_argument("--record", help=argparse.SUPPRESS)
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE ...", help="a module, such as pytest"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="a script and its arguments")


def run(args: argparse.Namespace) -> int:
    program = args.program if args.module is None else ["-m", *args.module]
    if not program or program == ["-m"]:
        raise SimulatedProgramMissing(problem="no program is given")
    if program[0] != "-m" and not pathlib.Path(program[0]).is_file():
        raise SimulatedProgramMissing(problem=f"there is no file {program[0]}")
    if args.schedules:
        return compare(args, program, expand(args.schedules))
    values: dict[str, str | None] = {}
    if args.arch:
        values |= {"ARCH": args.arch, "FLYDSL_GPU_ARCH": args.arch}
    given = {"check": args.check, "schedule": args.schedule, "on_finding": args.on_finding, "trace": args.trace}
    given |= {"trace_lines": args.line, "dump": args.dump}
    values |= {f"FLYDSL_SIM_{name.upper()}": value for name, value in given.items() if value}
    with env.override(**values):
        return checked(program, args.devices, args.record)


def checked(program: Sequence[str], devices: int, record: str | None) -> int:
    """Run a program; print what was checked; the status is 1 when faults were only collected."""
    from flydsl import sim

    fields = {"on_finding": env.sim.on_finding} if env.sim.on_finding else {"on_finding": "raise"}
    with sim.check(**fields) as found:
        status = execute(program, devices, record)
    if fields["on_finding"] == "collect":
        sys.stderr.write("".join(f"{f}\n\n" for f in found))
    sys.stderr.write(f"{sim.closing_line()}\n")
    return status or (1 if found.errors and fields["on_finding"] == "collect" else 0)


def execute(program: Sequence[str], devices: int, record: str | None) -> int:
    """Run a program as `python` would, on simulated GPUs, which the Python processes that it starts see, too; return
    its exit status.
    """
    sim_child.forget()
    try:
        from flydsl.runtime.torch_cuda import simulated_cuda
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        sys.stderr.write(_MISSING_TORCH)
        return 1
    from flydsl.runtime import sim

    is_module = program[0] == "-m"
    name, *arguments = program[1:] if is_module else program
    sys.argv = [name, *arguments]
    recorder = Recorder()
    if record:
        _seed()
    try:
        with simulated_cuda(devices), sim.observer(recorder), sim_child.children_see(devices):
            if is_module:
                sys.path.insert(0, os.getcwd())
                runpy.run_module(name, run_name="__main__", alter_sys=True)
            else:
                sys.path.insert(0, str(pathlib.Path(name).resolve().parent))
                runpy.run_path(name, run_name="__main__")
    except SystemExit as e:
        return _status(e)
    finally:
        if record:
            pathlib.Path(record).write_text(json.dumps(recorder.launches))
    return 0


def stay_simulated(devices: int) -> None:
    """Simulate GPUs until this process ends: one that a program under `flydsl sim` has started.

    Faults end it, or are written to standard error where the parent collects them.
    """
    from flydsl import sim
    from flydsl.runtime.torch_cuda import simulated_cuda

    on_finding = {"": "raise", "collect": "warn"}.get(env.sim.on_finding, env.sim.on_finding)
    scopes = contextlib.ExitStack()
    scopes.enter_context(sim.check(on_finding=on_finding))
    scopes.enter_context(simulated_cuda(devices))
    atexit.register(scopes.close)


def _seed() -> None:
    """Let programs that draw random numbers without a seed of their own draw the same ones under every schedule."""
    import random

    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def _status(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")
    return 1


class Recorder:
    """Digests of the memory that each launch could write, after the launch; what the n-th launch of all left in
    its k-th allocation.
    """

    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []

    def __call__(self, kernel: str, allocations: Sequence[Any], seconds: float) -> None:
        import ctypes

        digests = [(a.name, hashlib.sha256(ctypes.string_at(a.address, a.nbytes)).hexdigest()) for a in allocations]
        self.launches.append({"kernel": kernel, "memory": digests})


# --- schedules ---


def expand(text: str) -> list[str]:
    """Return the schedules that a list such as `lockstep,random:3` names: `random:3` is three seeds."""
    found = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, count = part.partition(":")
        if name == "random":
            found += [f"random:{seed}" for seed in range(1, int(count or 1) + 1)]
        else:
            found.append(part)
    return found


def compare(args: argparse.Namespace, program: Sequence[str], schedules: Sequence[str]) -> int:
    """Run the program under each schedule; return 1 if one fails or leaves other results than the first."""
    bad, reference = 0, None
    for schedule in schedules:
        status, launches = _child(args, program, schedule)
        if reference is None:
            reference = launches
        where = first_difference(reference, launches)
        problem = f"exit status {status}" if status else where
        _say(f"{schedule:12} {len(launches)} launches, {problem or 'same results'}")
        if problem:
            bad += 1
            _say(f"to see it again: FLYDSL_SIM_SCHEDULE={schedule} flydsl sim {' '.join(program)}")
    return 1 if bad else 0


def _say(text: str) -> None:
    sys.stderr.write(f"flydsl sim: {text}\n")


def first_difference(reference: list[dict], launches: list[dict]) -> str:
    """Return the first launch and memory that differ, in words; an empty text where none does."""
    for number, (left, right) in enumerate(zip(reference, launches)):
        if left["kernel"] != right["kernel"]:
            return f"launch {number} is `{right['kernel']}`, not `{left['kernel']}`"
        wrong = [b[0] for a, b in zip(left["memory"], right["memory"]) if a[1] != b[1]]
        if wrong:
            return f"DIFFERENT: launch {number} `{right['kernel']}` leaves other values in {', '.join(wrong)}"
    if len(reference) != len(launches):
        return f"DIFFERENT: {len(launches)} launches, not {len(reference)}"
    return ""


def _child(args: argparse.Namespace, program: Sequence[str], schedule: str) -> tuple[int, list[dict]]:
    with tempfile.TemporaryDirectory(prefix="flydsl_sim_") as folder:
        record = pathlib.Path(folder) / "launches.json"
        options = ["--schedule", schedule, "--record", str(record), "--devices", str(args.devices)]
        for name in ("arch", "check"):
            if getattr(args, name):
                options += [f"--{name}", getattr(args, name)]
        done = subprocess.run([sys.executable, "-m", "flydsl.tools.cli", "sim", *options, *program])
        return done.returncode, json.loads(record.read_text()) if record.exists() else []

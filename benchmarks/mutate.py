"""Mutation score of the simulator's checks: break correct kernels in small ways and count which breaks are reported.

    python benchmarks/mutate.py examples/03_softmax.py examples/07_preshuffle_gemm.py [--limit 60] [--all]

Each example runs once; its launches are recorded with their lowered IR and memory. A mutant removes one barrier or
wait, lets one comparison include its bound, or drops one store to LDS outside loops; it runs under several wave
schedules with all checks. It counts as reported when a check names a fault, as missed when it only changes the result
under some schedule, as equivalent when neither happens. Prints a table per kernel and the score reported / (reported
+ missed). Dropped stores to LDS that leave an older value behind are missed: no check knows which of two values was
meant.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import pathlib
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from flydsl.targets.sim import Allocation, Program, SimOptions  # noqa: E402

SCHEDULES = ("lockstep", "ahead", "reverse", "random:1")
REMOVED = {
    "barrier": re.compile(r"^\s*(gpu\.barrier|rocdl\.s\.barrier|rocdl\.barrier)\b"),
    "wait": re.compile(r"^\s*rocdl\.(s\.waitcnt|s\.wait\.|wait\.asyncmark)"),
    "LDS store": re.compile(r"^\s*llvm\.store .*!llvm\.ptr<3>"),
}
INCLUSIVE = re.compile(r"(arith\.cmpi )(slt|ult|sgt|ugt)\b")


@dataclass
class Launch:
    """A recorded launch: memory is kept as bytes and put back before every run."""

    text: str
    arch: str
    kernel: str
    geometry: dict[str, Any]
    allocations: tuple[Allocation, ...]
    before: list[bytes]
    keep: list[Any] = field(default_factory=list)

    def run(self, program: Program, **options: Any) -> tuple[list, list[bytes]]:
        """Return (findings, memory afterwards)."""
        for a, data in zip(self.allocations, self.before):
            ctypes.memmove(a.address, data, a.nbytes)
        options = SimOptions(on_finding="collect", trip_limit=100_000, **options)
        report = program.launch(self.kernel, allocations=self.allocations, options=options, **self.geometry)
        return report.findings, snapshot(self.allocations)


def snapshot(allocations: tuple[Allocation, ...]) -> list[bytes]:
    """Return the bytes of each allocation."""
    return [ctypes.string_at(a.address, a.nbytes) for a in allocations]


def record(path: str) -> list[Launch]:
    """Run a script and return one launch per distinct kernel; the arrays are copied, so that they outlive the
    script."""
    launches: dict[str, Launch] = {}
    real = Program.launch

    def launch(self: Program, kernel: str, grid: Any, block: Any, args: Any, allocations: Any = (), **rest: Any) -> Any:
        key = kernel + self.text
        if key not in launches:
            launches[key] = own_memory(self, kernel, grid, block, args, tuple(allocations), rest)
        return real(self, kernel, grid, block, args, allocations, **rest)

    with mock.patch.object(Program, "launch", launch), contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(path, run_name="__main__")
    return list(launches.values())


def own_memory(
    program: Program, kernel: str, grid: Any, block: Any, args: Any, allocations: tuple[Allocation, ...], rest: dict
) -> Launch:
    """Return the launch on copies of its arrays, with pointers moved along."""
    keep, moved, shifts = [], [], []
    for a in allocations:
        raw = np.zeros(a.nbytes + 64, np.uint8)
        start = raw.ctypes.data + (a.address - raw.ctypes.data) % 64
        ctypes.memmove(start, a.address, a.nbytes)
        keep.append(raw)
        moved.append(Allocation(**{**a.__dict__, "address": start}))
        shifts.append((a.address, a.address + a.nbytes, start - a.address))
    params = program.translated(kernel).params
    values = [
        next((v + d for lo, hi, d in shifts if lo <= v < hi), v) if p[1][0] == "p" else v for v, p in zip(args, params)
    ]
    rest.pop("options", None)
    geometry = {"grid": grid, "block": block, "args": values, **rest}
    return Launch(program.text, program.arch, kernel, geometry, tuple(moved), snapshot(tuple(moved)), keep)


def loop_lines(lines: list[str]) -> list[bool]:
    """Return per line whether it is inside a loop."""
    stack: list[bool] = []
    inside = []
    for line in lines:
        body = line.strip()
        if body.startswith("}") and stack:
            stack.pop()
        inside.append(any(stack))
        if re.search(r"\{( loc\(.*\))?$", body):
            stack.append("scf.for" in body or "scf.while" in body)
    return inside


def mutants(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield (kind, line number, mutated text)."""
    lines = text.split("\n")
    in_loop = loop_lines(lines)
    for i, line in enumerate(lines):
        for kind, pattern in REMOVED.items():
            if pattern.match(line) and not (kind == "LDS store" and in_loop[i]):
                yield kind, i + 1, "\n".join(lines[:i] + [""] + lines[i + 1 :])
        if INCLUSIVE.search(line):
            changed = INCLUSIVE.sub(lambda m: m.group(1) + m.group(2)[:-1] + "e", line)
            yield "bound", i + 1, "\n".join(lines[:i] + [changed] + lines[i + 1 :])


def verdict(launch: Launch, text: str, good: list[bytes]) -> str:
    """Return reported, missed or equivalent."""
    program = Program(text, launch.arch)
    changed = False
    for schedule in SCHEDULES:
        findings, after = launch.run(program, schedule=schedule)
        if any(f.severity == "error" for f in findings):
            return "reported"
        changed |= after != good
    return "missed" if changed else "equivalent"


def score(launch: Launch, limit: int, show_all: bool) -> Counter:
    """Return counts of (kind, verdict) over the mutants of one launch."""
    findings, good = launch.run(Program(launch.text, launch.arch))
    counts: Counter = Counter()
    if findings:
        print(f"{launch.kernel}: the kernel itself is reported: {findings[0].message}")
        return counts
    found = list(mutants(launch.text))
    step = max(1, len(found) // limit)
    for kind, line, text in found[::step]:
        result = verdict(launch, text, good)
        counts[kind, result] += 1
        if result == "missed" or show_all:
            print(f"  {launch.kernel}: {result}: {kind} at line {line} of the lowered IR")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="+")
    parser.add_argument("--limit", type=int, default=60, help="mutants per kernel at most")
    parser.add_argument("--all", action="store_true", help="print every mutant")
    args = parser.parse_args()
    total: Counter = Counter()
    for script in args.scripts:
        for launch in record(script):
            counts = score(launch, args.limit, args.all)
            total += counts
            row = ", ".join(f"{kind} {result} {n}" for (kind, result), n in sorted(counts.items()))
            print(f"{pathlib.Path(script).name} {launch.kernel}: {row}")
    for kind in sorted({k for k, _ in total}):
        print(f"{kind}: " + ", ".join(f"{r} {n}" for (k, r), n in sorted(total.items()) if k == kind))
    reported = sum(n for (_, r), n in total.items() if r == "reported")
    missed = sum(n for (_, r), n in total.items() if r == "missed")
    print(f"reported {reported}, missed {missed}, equivalent {sum(total.values()) - reported - missed}")
    if reported + missed:
        print(f"score {100 * reported / (reported + missed):.0f}%")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Mutation score of the simulator's checks: break correct kernels in small ways and count which breaks are reported.

    python benchmarks/mutate.py examples/03_softmax.py examples/07_preshuffle_gemm.py [--limit 12] [--all]
    python benchmarks/mutate.py --repo PATH [--cases REGEX]      public kernels: PATH is a checkout of ROCm/FlyDSL

Each script runs once; its launches are recorded with their lowered IR and memory. A mutant changes one thing:

    barrier removed, barrier late     a barrier is dropped, or moved behind the next access to LDS
    wait removed, wait short          a wait for copies is dropped, or leaves one more outstanding
    bound +1, bound -1                a comparison includes its bound, or excludes the last element before it
    trips +1, trips -1                a loop runs one more trip, or one less
    LDS store dropped                 an initialisation or a tile of LDS is not written
    stage swapped                     one access to a double buffer goes to the other stage
    offset truncated                  the index of one access is cut to 8 bits

It runs under several wave schedules with the default checks, `holes`, `needless`, `stale` and `unread`. It is *reported*
when a finding names a fault that the unbroken kernel does not have, *missed* when it only changes the result under some
schedule, and *equivalent* when neither happens. The score is reported / (reported + missed). Findings of the unbroken
kernels are printed.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from flydsl.diag.errors.simulator import SimBadModule  # noqa: E402
from flydsl.targets.sim import Allocation, Program, SimOptions  # noqa: E402
from flydsl.utils import env  # noqa: E402

SCHEDULES = ("lockstep", "ahead", "reverse", "random:1")
CHECKS = frozenset((*SimOptions().checks, "holes", "needless", "stale", "unread"))
BARRIER = re.compile(r"^\s*(gpu\.barrier|rocdl\.s\.barrier|rocdl\.barrier)\b")
WAIT = re.compile(r"^\s*rocdl\.(s\.waitcnt|s\.wait\.\w+|wait\.asyncmark)\b")
LDS_STORE = re.compile(r"^\s*llvm\.store .*!llvm\.ptr<3>")
LDS_ACCESS = re.compile(r"llvm\.(store|load) .*!llvm\.ptr<3>|ds\.read|buffer\.load\..*lds")
COMPARE = re.compile(r"arith\.cmpi (slt|ult|sgt|ugt), (%\w+), (%\w+) : (i32|i64|index)\b")
LOOP = re.compile(r"scf\.for %\w+ = (%\w+) to (%\w+) step (%\w+) (iter_args\(.*?\) -> \(.*?\) )?(?:: (i32|i64) )?\{")
STATIC = re.compile(r"(%\w+ = llvm\.getelementptr %\w+)\[(\d+)\] : \(!llvm\.ptr<3>\) -> !llvm\.ptr<3>, (\w+)")
DYNAMIC = re.compile(r"(%\w+ = llvm\.getelementptr (?:inbounds )?%\w+)\[(%\w+)\] : \(!llvm\.ptr<[13]>, (i32|i64)\)")
OFFSET = re.compile(r"(rocdl\.raw\.ptr\.buffer\.(?:load|store)\b[^:]*?%\w+, )(%\w+)(, %\w+, \d+ : )")
ALLOCATION = re.compile(r"llvm\.mlir\.global .*addr_space = 3.*!llvm\.array<(\d+) x i8>")
ELEMENT_BYTES = {"i8": 1, "f8": 1, "f16": 2, "bf16": 2, "i16": 2, "i32": 4, "f32": 4, "i64": 8}


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


def record(run: Callable[[], object]) -> list[Launch]:
    """Call `run` and return one launch per distinct kernel; the arrays are copied, so that they outlive it."""
    launches: dict[str, Launch] = {}
    real = Program.launch

    def launch(self: Program, kernel: str, grid: Any, block: Any, args: Any, allocations: Any = (), **rest: Any) -> Any:
        key = kernel + self.text
        if key not in launches:
            launches[key] = own_memory(self, kernel, grid, block, args, tuple(allocations), rest)
        return real(self, kernel, grid, block, args, allocations, **rest)

    with mock.patch.object(Program, "launch", launch), contextlib.redirect_stdout(io.StringIO()):
        run()
    return list(launches.values())


def recorded(args: argparse.Namespace) -> Iterator[tuple[str, list[Launch]]]:
    """Yield (name, launches) of the scripts and of the public kernels."""
    for script in args.scripts:
        yield pathlib.Path(script).name, record(lambda script=script: runpy.run_path(script, run_name="__main__"))
    if args.repo is not None:
        import public_kernels

        public_kernels.fake_cuda()
        sys.path[:0] = [str(args.repo), str(args.repo / "examples")]
        for name in (n for n in public_kernels.CASES if re.search(args.cases, n)):
            with env.override(ARCH="gfx942", FLYDSL_RUNTIME_KIND="sim", FLYDSL_SIM_ON_FINDING="collect"):
                yield name, record(lambda name=name: public_kernels.CASES[name](args.repo))


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
    geometry = {"grid": grid, "block": block, "args": values, **{k: v for k, v in rest.items() if k != "options"}}
    return Launch(program.text, program.arch, kernel, geometry, tuple(moved), snapshot(tuple(moved)), keep)


def mutants(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield (kind, line number, mutated text)."""
    lines = text.split("\n")
    half = stage_bytes(text)
    for i, line in enumerate(lines):
        for kind, changed in removals(lines, i):
            yield kind, i + 1, "\n".join(lines[:i] + changed)
        for kind, changed in (*bounds(line), *places(line, half)):
            yield kind, i + 1, "\n".join(lines[:i] + changed + lines[i + 1 :])


def removals(lines: list[str], i: int) -> Iterator[tuple[str, list[str]]]:
    """Yield mutants that drop, move or weaken line `i`; a mutant gives all lines from `i` on."""
    line, rest = lines[i], lines[i + 1 :]
    if BARRIER.match(line):
        yield "barrier removed", rest
        end = next((j for j, x in enumerate(rest) if LDS_ACCESS.search(x) or "{" in x or x.strip()[:1] == "}"), 0)
        if end < len(rest) and LDS_ACCESS.search(rest[end]):
            yield "barrier late", [*rest[: end + 1], line, *rest[end + 1 :]]
    elif WAIT.match(line):
        yield "wait removed", rest
        number = re.search(r"(waitcnt|asyncmark|cnt) (\d+)", line)
        if number and not (number[1] == "waitcnt" and int(number[2]) & 15 == 15):
            yield "wait short", [line[: number.start(2)] + str(int(number[2]) + 1) + line[number.end(2) :], *rest]
    elif LDS_STORE.match(line):
        yield "LDS store dropped", rest


def bounds(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield replacements of a comparison or of a loop's bound."""
    found = COMPARE.search(line)
    if found:
        predicate, left, right, type_ = found.groups()
        yield "bound +1", [line.replace(f"cmpi {predicate},", f"cmpi {predicate[:-1]}e,", 1)]
        small, operand = (left, 2) if predicate[1] == "l" else (right, 3)
        setup = [f"%mu1 = arith.constant 1 : {type_}", f"%mu2 = arith.addi {small}, %mu1 : {type_}"]
        yield "bound -1", [*setup, line[: found.start(operand)] + "%mu2" + line[found.end(operand) :]]
    found = LOOP.search(line)
    if found:
        type_ = found[5] or "index"
        for kind, op in (("trips +1", "addi"), ("trips -1", "subi")):
            setup = [f"%mu2 = arith.{op} {found[2]}, {found[3]} : {type_}"]
            yield kind, [*setup, line[: found.start(2)] + "%mu2" + line[found.end(2) :]]


def stage_bytes(text: str) -> int:
    """Return half of the largest LDS array, where the second stage of a double buffer begins; 0 without a loop."""
    if "scf.for" not in text:
        return 0
    return max((int(n) for n in ALLOCATION.findall(text)), default=0) // 2


def places(line: str, half: int) -> Iterator[tuple[str, list[str]]]:
    """Yield replacements that send one access somewhere else."""
    found = STATIC.search(line)
    if found and half:
        stage = half // ELEMENT_BYTES.get(found[3], 1)
        index = int(found[2])
        if index >= stage:
            yield "stage swapped", [line[: found.start(2)] + str(index - stage) + line[found.end(2) :]]
    found = DYNAMIC.search(line) or OFFSET.search(line)
    if found:
        type_ = found[3] if found.re is DYNAMIC else "i32"
        setup = [f"%mu1 = arith.constant 255 : {type_}", f"%mu2 = arith.andi {found[2]}, %mu1 : {type_}"]
        yield "offset truncated", [*setup, line[: found.start(2)] + "%mu2" + line[found.end(2) :]]


def key_of(finding: Any) -> tuple:
    """Return what makes a finding of the broken kernel the same as one of the unbroken kernel."""
    return finding.kind, finding.span, finding.callers, finding.tensor


def verdict(launch: Launch, text: str, known: set, good: list[bytes]) -> str:
    """Return reported, missed or equivalent."""
    program = Program(text, launch.arch)
    changed = False
    for schedule in SCHEDULES:
        findings, after = launch.run(program, schedule=schedule, checks=CHECKS)
        if any(key_of(f) not in known for f in findings if f.severity != "note"):
            return "reported"
        changed |= after != good
    return "missed" if changed else "equivalent"


def score(launch: Launch, limit: int, show_all: bool) -> Counter:
    """Return counts of (kind, verdict) over the mutants of one launch, at most `limit` of each kind."""
    findings, good = launch.run(Program(launch.text, launch.arch), checks=CHECKS)
    counts: Counter = Counter()
    faults = [f for f in findings if f.severity == "error"]
    if faults:
        print(f"{launch.kernel}: the kernel itself is reported, so it has no mutants:\n{faults[0]}")
        return counts
    for f in findings:
        print(f"{launch.kernel}: unbroken: {f.severity} {f.kind}: {f.message.splitlines()[0]}")
    known = {key_of(f) for f in findings}
    by_kind: dict[str, list] = {}
    for kind, line, text in mutants(launch.text):
        by_kind.setdefault(kind, []).append((line, text))
    for kind, found in by_kind.items():
        for line, text in found[:: -(-len(found) // limit)]:
            try:
                result = verdict(launch, text, known, good)
            except SimBadModule:
                continue  # a constant that the changed line needs is not visible there
            counts[kind, result] += 1
            if result == "missed" or show_all:
                print(f"  {launch.kernel}: {result}: {kind}: {text.splitlines()[line - 1].strip()[:150]}")
    return counts


def by_result(counts: Counter) -> dict[str, int]:
    """Return how many mutants had each verdict."""
    results = ("reported", "missed", "equivalent")
    return {r: sum(n for (_, x), n in counts.items() if x == r) for r in results}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*")
    parser.add_argument("--repo", type=pathlib.Path, help="checkout of ROCm/FlyDSL with public kernels")
    parser.add_argument("--cases", default="softmax|norm|preshuffle", help="regular expression of public cases")
    parser.add_argument("--limit", type=int, default=12, help="mutants of each kind per kernel at most")
    parser.add_argument("--launches", type=int, default=2, help="kernels per script at most")
    parser.add_argument("--all", action="store_true", help="print every mutant")
    args = parser.parse_args()
    total: Counter = Counter()
    for name, launches in recorded(args):
        for launch in launches[: args.launches]:
            counts = score(launch, args.limit, args.all)
            total += counts
            row = ", ".join(f"{result} {n}" for result, n in by_result(counts).items())
            print(f"{name} {launch.kernel}: {row}", flush=True)
    for kind in sorted({k for k, _ in total}):
        print(f"{kind:20} " + ", ".join(f"{r} {n}" for (k, r), n in sorted(total.items()) if k == kind))
    results = by_result(total)
    reported, missed = results["reported"], results["missed"]
    print(", ".join(f"{result} {n}" for result, n in results.items()))
    if reported + missed:
        print(f"score {100 * reported / (reported + missed):.1f}%")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

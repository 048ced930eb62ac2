"""Median microseconds of the layout operations, cold and memoised, beside the published wheel and pycute.

    python benchmarks/layout.py [--wheel PYTHON] [--pycute PYTHON] [--count 1000] [--passes 5] [--json FILE]

Cold: `count` distinct realistic layouts, each once, after clearing every memo. Memoised: the same calls again.
The wheel (flydsl 0.5.0 in the environment of PYTHON) builds the same operations on the same operands with their
result types inferred: `fx` is its public function, `op` the bare op constructor underneath. pycute (in PyPI's
nvidia-cutlass) has no memo and lacks some of the operations. Operands exist beforehand and only the call is timed.
Every number is the median of one pass over the mix, of which the quietest of `passes` counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import flydsl.layout as fl


def realistic(i: int) -> str:
    """Return the i-th of endlessly many distinct layouts as kernels have them."""
    rows, cols = 16 * (1 + i // 4), (64, 128, 96, 256)[i % 4]
    kind = i % 5
    if kind == 0:
        return f"({rows},{cols}):({cols},1)"
    if kind == 1:
        return f"({rows},{cols}):(1,{rows})"
    if kind == 2:
        return f"((16,{rows}),(8,{cols})):((1,{16 * 8}),(16,{rows * 128}))"
    if kind == 3:
        return f"({rows},{cols},3):({cols},1,{rows * cols})"
    return f"({rows},(8,{cols})):({cols * 8},(1,8))"


def compact(i: int) -> str:
    """Return the i-th distinct small compact layout, as thread layouts are."""
    a, b = (4, 8, 16, 32)[i % 4], 2 + i // 4
    return f"({a},{b}):({b},1)" if i % 2 else f"({a},{b}):(1,{a})"


def mix(count: int) -> dict[str, list[list[str]]]:
    """Return the operands of each line as printed text."""
    big = [realistic(i) for i in range(count)]
    small = [compact(i) for i in range(count)]
    return {
        "size": [[l] for l in big],
        "cosize": [[l] for l in big],
        "crd2idx": [["(3,5)" if l.count(",1,") == 0 and l.count(",3)") == 0 else "(3,5,1)", l] for l in big],
        "idx2crd": [["77", l] for l in big],
        "slice": [["(*,1,*)" if ",3):" in l else "(*,1)", l][::-1] for l in big],
        "make_ordered_layout": [[l.split(":")[0], "(1,0,2)" if ",3):" in l else "(1,0)"] for l in big],
        "coalesce": [[l] for l in big],
        "composition": [[l, "(4,2):(2,1)"] for l in big],
        "complement": [[l, str(1 << 20)] for l in small],
        "right_inverse": [[l] for l in small],
        "left_inverse": [[l] for l in small],
        "logical_divide": [[l, "[8|16]"] for l in big],
        "zipped_divide": [[l, "[8|16]"] for l in big],
        "tiled_divide": [[l, "[8|16]"] for l in big],
        "flat_divide": [[l, "[8|16]"] for l in big],
        "logical_product": [[l, "(2,4):(4,1)"] for l in small],
        "blocked_product": [[l, "(2,4):(4,1)"] for l in small],
        "raked_product": [[l, "(2,4):(4,1)"] for l in small],
        "recast_layout": [[l, "16", "8"] for l in big],
        "tile_to_shape": [["(8,8):(8,1)", f"({8 * (1 + i)},64)", "(0,1)"] for i in range(count)],
    }


def measure_ours(lines: dict[str, list[list[str]]], passes: int) -> dict[str, tuple[float, float]]:
    """Return (cold, memoised) medians in microseconds of each line."""
    out = {}
    for op, cases in lines.items():
        found = [_cold_and_memoised(getattr(fl, "slice_" if op == "slice" else op), cases) for _ in range(passes)]
        out[op] = tuple(map(min, zip(*found)))
    return out


def _cold_and_memoised(fn, cases: list[list[str]]) -> list[float]:
    calls = [tuple(fl.parse(a) for a in case) for case in cases]
    fl.clear_memos()
    return [statistics.median(_times(fn, calls)) / 1e3 for _ in range(2)]


def _times(fn, calls: list[tuple]) -> list[int]:
    clock, times = time.perf_counter_ns, []
    for call in calls:
        start = clock()
        fn(*call)
        times.append(clock() - start)
    return times


WHEEL = r"""
import json, statistics, sys, time
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import fly

SPECIAL = {"crd2idx": "Crd2IdxOp", "idx2crd": "Idx2CrdOp"}

def typed(text):
    kind = "tile" if text[0] == "[" else "layout" if ":" in text else "int_tuple"
    return ir.Type.parse(f"!fly.{kind}<{text}>")

def build(op, cases, bare):
    name = SPECIAL.get(op) or "".join(w.capitalize() for w in op.split("_")) + "Op"
    make, times = getattr(fly, name) if bare else getattr(fx, op), []
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        for case in cases:
            numbers = []
            if op == "recast_layout":
                case, numbers = case[:1], [int(n) for n in case[1:]]
            cast = "builtin.unrealized_conversion_cast"
            values = [ir.Operation.create(cast, results=[typed(a)]).results[0] for a in case]
            kwargs = {}
            if op == "complement" and bare:
                kwargs = {"codomain_size": values.pop()}
            values = numbers[::-1] + values if bare else values + numbers
            start = time.perf_counter_ns()
            make(*values, **kwargs)
            times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3

with ir.Context(), ir.Location.unknown():
    lines = json.load(open(sys.argv[1]))
    build("size", lines["size"], False)
    passes = range(int(sys.argv[2]))
    times = {op: [min(build(op, cases, bare) for _ in passes) for bare in (False, True)] for op, cases in lines.items()}
    print(json.dumps(times))
"""


PYCUTE = r"""
import json, statistics, sys, time
import pycute

def operand(text):
    if ":" in text:
        return pycute.Layout(*(eval(side) for side in text.split(":")))
    return eval(text.replace("*", "None").replace("[", "(").replace("|", ",").replace("]", ")"))

CALLS = {
    "crd2idx": lambda coord, layout: layout(*coord),
    "idx2crd": lambda index, layout: pycute.idx2crd(index, layout.shape, layout.stride),
    "slice": lambda layout, coord: pycute.slice_and_offset(coord, layout),
}

def measure(op, cases):
    call, times = CALLS.get(op) or getattr(pycute, op, None), []
    if call is None:
        return None
    for case in cases:
        values = [operand(a) for a in case]
        start = time.perf_counter_ns()
        call(*values)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3

lines = json.load(open(sys.argv[1]))
passes = range(int(sys.argv[2]))
found = {op: [measure(op, cases) for _ in passes] for op, cases in lines.items()}
print(json.dumps({op: min(times) for op, times in found.items() if None not in times}))
"""


def measure_elsewhere(script: str, python: str, lines: dict[str, list[list[str]]], passes: int) -> dict:
    """Return what a script of this file prints in another environment: medians in microseconds of each line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.json"
        path.write_text(json.dumps(lines))
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        run = subprocess.run(
            [python, "-c", script, str(path), str(passes)],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
    if run.returncode:
        raise SystemExit(f"{python} did not run the mix:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def table(ours: dict, wheel: dict, pycute: dict) -> str:
    """Return the rows as text; the factor is the wheel's public function over our cold call."""
    head = f"{'operation':20}{'cold us':>9}{'memo us':>9}{'wheel fx us':>13}{'wheel op us':>13}"
    rows = [head + f"{'fx/cold':>9}{'pycute us':>11}"]
    for op, (cold, memo) in ours.items():
        public, bare = wheel.get(op, (float("nan"), float("nan")))
        other = f"{pycute[op]:11.2f}" if op in pycute else f"{'-':>11}"
        rows.append(f"{op:20}{cold:9.2f}{memo:9.2f}{public:13.2f}{bare:13.2f}{public / cold:9.1f}{other}")
    cold, memo = (statistics.median(v[i] for v in ours.values()) for i in (0, 1))
    rows.append(f"{'median of the mix':20}{cold:9.2f}{memo:9.2f}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", help="python of an environment with the published wheel")
    parser.add_argument("--pycute", help="python of an environment with pycute, which PyPI's nvidia-cutlass has")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--json", type=Path, help="save the numbers as a row")
    options = parser.parse_args()
    lines = mix(options.count)
    ours = measure_ours(lines, options.passes)
    wheel = measure_elsewhere(WHEEL, options.wheel, lines, options.passes) if options.wheel else {}
    pycute = measure_elsewhere(PYCUTE, options.pycute, lines, options.passes) if options.pycute else {}
    print(f"{platform.python_implementation()} {platform.python_version()}, {options.count} distinct layouts")
    print(table(ours, wheel, pycute))
    if not options.pycute:
        print("pycute was not measured: --pycute PYTHON, of an environment with nvidia-cutlass from PyPI")
    if options.json:
        row = {
            "ours": {op: list(v) for op, v in ours.items()},
            "wheel": wheel,
            "pycute": pycute,
            "count": options.count,
        }
        options.json.write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()

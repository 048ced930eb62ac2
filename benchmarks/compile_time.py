"""Import and cold compile times in fresh processes, interleaved with the published wheel where one is given.

    python benchmarks/compile_time.py [--runs 5] [--wheel PYTHON]

Each process imports the package, then compiles one kernel from its source to a code object, with all caches off. The same source file is
compiled by both sides (`benchmarks/kernels/*.py`). PYTHON is the interpreter of an environment with the `flydsl` wheel and torch; the
environment (ROCM_PATH) is passed on. Prints medians in milliseconds, and the median ratio ours / wheel of the pairs of
neighbouring processes: the speed of a shared machine changes within a run, but little from one process to the next.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = sorted(p.stem for p in (ROOT / "benchmarks" / "kernels").glob("[a-z]*.py"))
CHILD = """
import json, sys, time
t0 = time.perf_counter()
import flydsl.compiler as flyc, flydsl.expr as fx
t1 = time.perf_counter()
sys.path.insert(0, {folder!r})
import {kernel} as subject
arguments = subject.arguments()
t2 = time.perf_counter()
subject.launch(*arguments)
t3 = time.perf_counter()
print(json.dumps(dict(import_ms=1e3 * (t1 - t0), compile_ms=1e3 * (t3 - t2))))
"""


def measure(python: str, kernel: str, arch: str, ours: bool) -> dict[str, float]:
    """Return import and compile milliseconds of one fresh process."""
    env = {**os.environ, "COMPILE_ONLY": "1", "ARCH": arch, "FLYDSL_GPU_ARCH": arch, "FLYDSL_RUNTIME_ENABLE_CACHE": "0"}
    env["PYTHONPATH"] = str(ROOT) if ours else ""
    code = CHILD.format(folder=str(ROOT / "benchmarks" / "kernels"), kernel=kernel)
    out = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, cwd="/")
    if out.returncode:
        raise SystemExit(f"{python}: {kernel} failed\n{out.stderr[-2000:]}")
    return json.loads(out.stdout.strip().splitlines()[-1])


def _median(runs: list[dict[str, float]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--wheel", default=os.environ.get("PEER_PY"), help="python with the flydsl wheel")
    args = parser.parse_args()
    print(f"medians of {args.runs} fresh processes, {args.arch}, milliseconds")
    print(f"{'kernel':16} {'import':>8} {'compile':>8}" + ("   wheel: import  compile  ratio" if args.wheel else ""))
    ours: dict[str, list] = {kernel: [] for kernel in KERNELS}
    theirs: dict[str, list] = {kernel: [] for kernel in KERNELS}
    for _ in range(args.runs):
        for kernel in KERNELS:
            ours[kernel].append(measure(sys.executable, kernel, args.arch, True))
            if args.wheel:
                theirs[kernel].append(measure(args.wheel, kernel, args.arch, False))
    ratios = []
    for kernel in KERNELS:
        text = f"{kernel:16} {_median(ours[kernel], 'import_ms'):8.0f} {_median(ours[kernel], 'compile_ms'):8.0f}"
        if args.wheel:
            pairs = zip(ours[kernel], theirs[kernel], strict=True)
            ratios.append(statistics.median(a["compile_ms"] / b["compile_ms"] for a, b in pairs))
            wheel = _median(theirs[kernel], "import_ms"), _median(theirs[kernel], "compile_ms")
            text += f"   {wheel[0]:13.0f} {wheel[1]:8.0f} {ratios[-1]:6.2f}"
        print(text)
    if ratios:
        print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()

"""Developer command: run the examples through the HIP runtime path on an instruction-level emulator, without an AMD GPU.

    TINYGRAD_REPO=... CC=clang-19 LLVM_PATH=... python benchmarks/emulate_examples.py --emulator FOLDER [--archs gfx942,gfx1201] [EXAMPLE ...]

FOLDER holds `emu_hip.py`, a stand-in for libamdhip64 that executes the code objects that the runtime loads. Each example runs in its own process
with FLYDSL_RUNTIME_KIND=rocm and must print PASS lines only; one that says that it runs for another chip, for want of an instruction, is
listed as `other`: it says nothing about this one. Not part of CI.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHILD = """
import runpy, sys
sys.path.insert(0, {emulator!r})
import emu_hip
emu_hip.install({arch!r})
import flydsl.compiler, flydsl.expr
runpy.run_path({example!r}, run_name="__main__")
print("launches", len(emu_hip.launches), "wave-instructions", sum(r.get("instructions", 0) for r in emu_hip.launches))
"""


def run(example: pathlib.Path, arch: str, emulator: str, timeout_s: int) -> tuple[str, str]:
    """Return (verdict, detail) of one example on one chip."""
    env = {**os.environ, "FLYDSL_GPU_ARCH": arch, "FLYDSL_RUNTIME_KIND": "rocm", "PYTHONPATH": str(ROOT)}
    env.setdefault("EMU_HIP_LIMIT", "200000000")
    code = CHILD.format(emulator=emulator, arch=arch, example=str(example))
    try:
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return "TIMEOUT", f"over {timeout_s} s"
    lines = out.stdout.strip().splitlines()
    if lines and "running for" in lines[0]:
        return "other", lines[0]
    if out.returncode or not lines or not all(x.startswith("PASS") for x in lines[:-1]):
        return "FAIL", (out.stderr or out.stdout)[-1500:]
    return "PASS", f"{len(lines) - 1} cases, {lines[-1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", required=True)
    parser.add_argument("--archs", default="gfx942,gfx950,gfx1100,gfx1201")
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("examples", nargs="*", help="numbers such as 01; default all")
    args = parser.parse_args()
    examples = sorted((ROOT / "examples").glob("[0-9]*.py"))
    failed = 0
    for example in examples:
        if args.examples and not any(example.name.startswith(e) for e in args.examples):
            continue
        for arch in args.archs.split(","):
            start = time.time()
            verdict, detail = run(example, arch, args.emulator, args.timeout)
            failed += verdict not in ("PASS", "other")
            print(f"{example.stem:24} {arch:8} {verdict:8} {time.time() - start:6.1f} s  {detail}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

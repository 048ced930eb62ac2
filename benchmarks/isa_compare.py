"""Compare the ISA of one source kernel with the published wheel's, chip by chip.

    python benchmarks/isa_compare.py [--wheel PYTHON] [--archs gfx942,gfx1100] [--opt-level 2] [--repo PATH] [kernels ...]

A kernel is a file of `benchmarks/kernels` (or any path) with `arguments()` and `launch(...)`; both sides compile that
file in a process of their own at the same optimisation level. PYTHON is the interpreter of an environment with the
`flydsl` wheel and torch (default: PEER_PY); without it our side is printed alone. The bar: no spills, the same widths
of loads and stores, at most 10 % (or 4) more instructions. With --repo, a checkout
of ROCm/FlyDSL, the main loop of example 07 is compared with that of the public preshuffled GEMM too (`isa_gemm.py`).
Ends with status 1 if a kernel misses its bar.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import isa_gemm  # noqa: E402

from flydsl.targets.rocm.isa_stats import KernelStats, isa_stats  # noqa: E402

ARCHS = ("gfx942", "gfx950", "gfx1250", "gfx1201", "gfx1100")
MEMORY = ("global_loads", "global_stores", "buffer_loads", "buffer_stores", "lds_reads", "lds_writes", "atomics")
CHILD = """
import sys
sys.path.insert(0, {folder!r})
import {kernel} as subject
subject.launch(*subject.arguments())
"""


@dataclass(frozen=True)
class Side:
    """One of the two compilers."""

    name: str
    python: str
    is_ours: bool


def compile_isa(side: Side, kernel: pathlib.Path, arch: str, opt_level: int) -> list[KernelStats]:
    """Return the facts of every kernel that `side` makes of the file, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="isa-compare-") as folder:
        env = {
            **os.environ, "ARCH": arch, "FLYDSL_GPU_ARCH": arch, "COMPILE_ONLY": "1", "FLYDSL_DUMP_IR": "1",
            "FLYDSL_DUMP_DIR": folder, "FLYDSL_RUNTIME_ENABLE_CACHE": "0", "FLYDSL_COMPILE_OPT_LEVEL": str(opt_level),
            "PYTHONPATH": str(ROOT) if side.is_ours else "",
        }  # fmt: skip
        code = CHILD.format(folder=str(kernel.parent), kernel=kernel.stem)
        command = [side.python, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=folder, timeout=600)
        files = sorted(pathlib.Path(folder).rglob("*isa*.s"))
        if done.returncode or not files:
            raise SystemExit(f"{side.name}: {kernel.stem} for {arch} failed\n{done.stderr[-2000:]}")
        return [stats for file in files for stats in isa_stats(file.read_text(), arch).values()]


def widths(stats: KernelStats) -> str:
    """Return e.g. `global_loads 8x128 global_stores 4x128`."""
    parts = []
    for group in MEMORY:
        for bits, count in sorted(stats.widths.get(group, {}).items(), reverse=True):
            parts.append(f"{group} {count}x{bits}")
    return " ".join(parts)


def row(side: str, stats: KernelStats) -> str:
    return (
        f"  {side:6} {stats.instructions:6} {stats.vgprs:5} {stats.agprs:5} {stats.sgprs:5} {stats.spills:6} "
        f"{stats.occupancy:4} {stats.mfma + stats.wmma:5}   {widths(stats)}"
    )


def verdict(ours: KernelStats, theirs: KernelStats) -> list[str]:
    """Return what misses the bar."""
    missed = []
    if ours.spills:
        missed.append(f"{ours.spills} spills")
    if widths(ours) != widths(theirs):
        missed.append("other widths of loads and stores")
    if ours.instructions > max(1.1 * theirs.instructions, theirs.instructions + 4):
        missed.append(f"{ours.instructions - theirs.instructions} more instructions")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="files, or names below benchmarks/kernels (default: vector_add and softmax)")
    parser.add_argument("--wheel", default=os.environ.get("PEER_PY"), help="python with the flydsl wheel")
    parser.add_argument("--archs", default=",".join(ARCHS))
    parser.add_argument("--opt-level", type=int, default=2)
    parser.add_argument("--repo", help="checkout of ROCm/FlyDSL: compare example 07 too")
    args = parser.parse_args()
    folder = ROOT / "benchmarks" / "kernels"
    names = args.kernels or ["vector_add", "softmax"]  # those that run on every chip
    failed = 0
    for name in names:
        file = pathlib.Path(name) if name.endswith(".py") else folder / f"{name}.py"
        for arch in args.archs.split(","):
            failed += compare(file.resolve(), arch, args.wheel, args.opt_level)
    if args.repo:
        failed += isa_gemm.compare(["gfx942", "gfx950"], args.wheel, args.repo)
    print(f"{failed} misses" if failed else "all within the bar")
    return 1 if failed else 0


def compare(file: pathlib.Path, arch: str, wheel: str | None, opt_level: int) -> int:
    """Print both sides of one kernel on one chip; return how many kernels miss the bar."""
    ours = compile_isa(Side("ours", sys.executable, True), file, arch, opt_level)
    theirs = compile_isa(Side("wheel", wheel, False), file, arch, opt_level) if wheel else []
    print(f"{file.stem} {arch} (optimisation level {opt_level})")
    print("         instr  VGPR  AGPR  SGPR spills  occ   MMA   memory accesses, count x bits")
    failed = 0
    for i, mine in enumerate(ours):
        print(row("ours", mine))
        if i < len(theirs):
            print(row("wheel", theirs[i]))
            if missed := verdict(mine, theirs[i]):
                failed += 1
                print(f"  misses: {'; '.join(missed)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""Developer command: every matrix atom's one-tile kernel, its code object executed at instruction level, beside the
simulator.

    TINYGRAD_REPO=... CC=clang-19 LLVM_PATH=... python benchmarks/emulate_tiles.py --emulator FOLDER [--archs
    gfx942,gfx1201] [--only REGEX]

FOLDER holds `emu_hip.py`, a stand-in for libamdhip64. Both sides get the same random registers
(tests/sim/atom_tiles.py). Prints one line per instruction: equal bit by bit, close (within the bound of
tests/sim/test_atoms_mma.py), or APART with the largest difference. Not part of CI.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHS = ("gfx942", "gfx950", "gfx1100", "gfx1201")


def child(emulator: str, arch: str, only: str) -> None:
    """Run the cases of one chip."""
    sys.path[:0] = [emulator, str(ROOT), str(ROOT / "tests" / "sim")]
    import emu_hip

    emu_hip.install(arch)
    import atom_tiles as tiles
    from test_atoms_mma import random_items, random_scales, shapes

    from flydsl.utils import env

    for case in (c for c in tiles.cases() if c.arch == arch and re.search(only, str(c))):
        rng = np.random.default_rng(21)
        r = case.row
        a, b, c = (random_items(case, rng, kind, s) for kind, s in zip((r.a, r.b, r.acc), shapes(case)))
        scales = random_scales(case, rng)[0] if case.has_scales else None
        results, error = [], ""
        for kind in ("sim", "rocm"):
            with env.override(FLYDSL_RUNTIME_KIND=kind):
                try:
                    results.append(tiles.run(case, a, b, c, scales))
                except Exception as e:  # what the emulator lacks is one line of the table
                    error = f"{kind}: {type(e).__name__}: {str(e).splitlines()[0][:120]}"
        print(f"{case!s:60} {error or verdict(case, *results)}", flush=True)


def verdict(case, simulated: np.ndarray, emulated: np.ndarray) -> str:
    """Return equal, close or APART."""
    if simulated.tobytes() == emulated.tobytes():
        return "equal"
    x, y = simulated.astype(np.float64), emulated.astype(np.float64)
    unit = {"f64": 2.0**-52, "f32": 2.0**-24, "f16": 2.0**-10, "bf16": 2.0**-7}.get(case.row.acc, 0)
    size = np.abs(x).max()
    worst = np.abs(x - y).max()
    return (
        f"close {worst / size:.1e}"
        if worst <= (case.row.k + 2) * unit * size * 4
        else f"APART {worst / size:.1e} of the largest"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", required=True)
    parser.add_argument("--archs", default=",".join(ARCHS))
    parser.add_argument("--only", default="")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.emulator, args.child, args.only)
        return 0
    bad = 0
    for arch in args.archs.split(","):
        command = [sys.executable, __file__, "--emulator", args.emulator, "--child", arch, "--only", args.only]
        done = subprocess.run(
            command, env={**os.environ, "FLYDSL_GPU_ARCH": arch, "ARCH": arch}, capture_output=True, text=True
        )
        lines = [x for x in done.stdout.splitlines() if x.strip()]
        print("\n".join(lines))
        if done.returncode:
            print(done.stderr[-1500:])
        apart = [x for x in lines if "APART" in x or ": " in x]
        bad += len(apart) + bool(done.returncode)
        print(
            f"== {arch}: {sum('equal' in x for x in lines)} equal, {sum('close' in x for x in lines)} close, {len(apart)} not"
        )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

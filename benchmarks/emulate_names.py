"""Developer command: the kernels of tests/sim/test_names_*.py, their code objects executed at instruction level, beside the
simulator and NumPy.

    TINYGRAD_REPO=... CC=clang-19 LLVM_PATH=... python benchmarks/emulate_names.py --emulator FOLDER [--archs gfx942,gfx1201]
    [--only REGEX] [--all]

FOLDER holds `emu_hip.py`, a stand-in for libamdhip64. Prints the cases where the emulated result is not what NumPy expects
(`--all`: every case), then the counts per chip. Not part of CI.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHS = ("gfx942", "gfx950", "gfx1100", "gfx1201")


def child(emulator: str, arch: str, only: str, shown: bool) -> None:
    """Run the cases of one chip."""
    sys.path[:0] = [emulator, str(ROOT), str(ROOT / "tests" / "sim")]
    import emu_hip

    emu_hip.install(arch)
    import importlib

    from named import launched, same

    from flydsl.utils import env

    modules = sorted(p.stem for p in (ROOT / "tests" / "sim").glob("test_names_*.py"))
    cases = [c for m in modules for c in getattr(importlib.import_module(m), "CASES", ()) if arch in c.chips and not c.not_emulated]
    counts: dict[str, int] = {}
    for case in (c for c in cases if re.search(only, c.name)):
        with env.override(FLYDSL_RUNTIME_KIND="rocm"):
            try:
                out, want, _ = launched(case, arch)
                same(out, want, case.ulps)
                verdict = "equal"
            except AssertionError as e:
                verdict = f"APART {e}"
            except Exception as e:  # what the emulator lacks is one line of the table
                verdict = f"not run: {type(e).__name__}: {str(e).splitlines()[0][:160]}"
        word = verdict.split()[0].strip(":")
        counts[word] = counts.get(word, 0) + 1
        if shown or word != "equal":
            print(f"{arch} {case.name:60} {verdict}", flush=True)
    print(arch, ", ".join(f"{n} {word}" for word, n in sorted(counts.items())), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", required=True)
    parser.add_argument("--archs", default=",".join(ARCHS))
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.emulator, args.child, args.only, args.all)
        return 0
    bad = 0
    for arch in args.archs.split(","):
        command = [sys.executable, __file__, "--emulator", args.emulator, "--child", arch, "--only", args.only]
        bad += subprocess.run(command + ["--all"] * args.all).returncode != 0
    return bad


if __name__ == "__main__":
    sys.exit(main())

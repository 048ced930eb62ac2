#!/usr/bin/env python3
"""Set up and work on FlyDSL: `python3 dev.py demo | test | bench | lint | docs`. Needs only Python's standard library.

demo    make .venv, install the package with what it needs, run the examples
test    the same for the test suite on all cores (`--nightly` adds the heavy sweeps; further arguments go to pytest, `-n 0`: one process)
bench   run the benchmarks and print their tables
lint    ruff over the tree
docs    write the generated pages of docs/ anew
"""

import os
import pathlib
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(os.environ.get("FLYDSL_VENV") or ROOT / ".venv")
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
EXTRAS = {"demo": "hsaco,examples", "test": "dev", "bench": "dev", "lint": "dev", "docs": "dev"}


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in EXTRAS:
        sys.stderr.write(__doc__)
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    command, rest = argv[0], argv[1:]
    if sys.version_info < (3, 10):
        sys.stderr.write(f"FlyDSL needs Python 3.10 or newer; this is {sys.version.split()[0]}\n")
        return 2
    install(EXTRAS[command])
    return {"demo": demo, "test": test, "bench": bench, "lint": lint, "docs": docs}[command](rest)


def install(extras: str) -> None:
    """Make the virtual environment and install the package into it, unless that was done for this pyproject.toml."""
    stamp = VENV / f".flydsl-{extras.replace(',', '-')}"
    wanted = (ROOT / "pyproject.toml").read_text()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not PYTHON.exists():
        print(f"making {VENV} ...", flush=True)
        venv.create(VENV, with_pip=True)
    print(f"installing flydsl[{extras}] ...", flush=True)
    subprocess.check_call([str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", f"{ROOT}[{extras}]"])
    stamp.write_text(wanted)


def run(*arguments: str, **env: str) -> int:
    return subprocess.call([str(PYTHON), *arguments], cwd=ROOT, env={**os.environ, **env})


def demo(rest: list[str]) -> int:
    """Run every example; the exit status counts the failures."""
    failed = []
    start = time.time()
    for example in sorted((ROOT / "examples").glob("[0-9]*.py")):
        print(f"== examples/{example.name}", flush=True)
        if run(str(example), *rest):
            failed.append(example.name)
    print(f"== {'FAILED: ' + ', '.join(failed) if failed else 'all examples PASS'} ({time.time() - start:.0f} s)")
    return len(failed)


def test(rest: list[str]) -> int:
    if "--nightly" in rest:
        rest = [a for a in rest if a != "--nightly"] + ["-m", "not emulator"]
    workers = [] if any(a.startswith(("-n", "--numprocesses")) for a in rest) else ["-n", "auto", "--dist", "loadfile"]
    return run("-m", "pytest", "-q", *workers, *rest)


def bench(rest: list[str]) -> int:
    scripts = [ROOT / "benchmarks" / f"{r}.py" for r in rest] or sorted((ROOT / "benchmarks").glob("[a-z]*.py"))
    return max((run(str(script)) for script in scripts), default=0)


def lint(rest: list[str]) -> int:
    return run("-m", "ruff", "check", *(rest or ["."]))


def docs(rest: list[str]) -> int:
    return run("-m", "flydsl.tools.docs", *rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Set up and work on FlyDSL: `python3 dev.py demo | test | bench | lint | docs`. Needs only Python's standard library.

demo    make .venv, install the package with what it needs, run the examples
test    the same for the test suite on all cores (`--nightly` adds the heavy sweeps; further arguments go to pytest, `-n 0`: one process)
bench   run the benchmarks and print their tables; `bench NAME [ARGUMENT ...]`: this one, with arguments of its own
lint    ruff over the tree, or the files that are named
docs    write the generated pages of docs/ anew; `docs --check` writes nothing and fails if one is stale
"""

# Old Pythons run this file as far as the check in main(): annotations that they cannot evaluate are quoted.
import os
import pathlib
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(os.environ.get("FLYDSL_VENV") or ROOT / ".venv")
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
EXTRAS = {"demo": "hsaco,examples", "test": "dev", "bench": "dev", "lint": "dev", "docs": "dev"}
HELP = ("-h", "--help")
EMULATOR = "executes code objects in an instruction-level emulator: FOLDER holds its emu_hip.py"
NEEDS = {  # benchmarks that need something which a fresh machine does not have: what, and the arguments that give it
    "emulate_examples": (EMULATOR, "--emulator FOLDER"),
    "emulate_names": (EMULATOR, "--emulator FOLDER"),
    "emulate_tiles": (EMULATOR, "--emulator FOLDER"),
    "mutate": ("breaks the kernels of programs that are named", "examples/03_softmax.py"),
    "public_kernels": ("runs the kernels of the public repository: PATH is a clone of it", "--repo PATH"),
    "public_tests": ("runs the tests of the public repository: PATH is a clone of it", "--repo PATH"),
}


def main(argv: "list[str]") -> int:
    if sys.version_info < (3, 10):
        sys.stderr.write(f"FlyDSL needs Python 3.10 or newer; this is {sys.version.split()[0]}\n")
        return 2
    if not argv or argv[0] not in EXTRAS:
        sys.stderr.write(__doc__)
        return 0 if argv and argv[0] in HELP else 2
    command, rest = argv[0], argv[1:]
    if any(a in HELP for a in (rest[:1] if command == "bench" else rest)):
        sys.stdout.write(usage(command))
        return 0
    problem = check(command, rest)
    if problem:
        sys.stderr.write(problem)
        return 2
    install(EXTRAS[command])
    return {"demo": demo, "test": test, "bench": bench, "lint": lint, "docs": docs}[command](rest)


def usage(command: str) -> str:
    """Return what `dev.py COMMAND --help` says."""
    text = next(line.split(None, 1)[1] for line in __doc__.splitlines() if line.startswith(command))
    return f"python3 dev.py {command}: {text}\n" + (f"{benchmark_list()}\n" if command == "bench" else "")


def check(command: str, rest: "list[str]") -> str:
    """Return what is wrong with the arguments of a command; empty if nothing is."""
    if command == "demo" and rest:
        return f"dev.py demo takes no arguments, got {' '.join(rest)}; one example: {shown(PYTHON)} examples/01_vector_add.py\n"
    if command == "bench" and rest:
        names, arguments = split_names(rest)
        if not names or len(names) > 1 and arguments:
            return f"there is no benchmark {arguments[0]}\n{benchmark_list()}\n"
    return ""


def shown(path: pathlib.Path) -> str:
    """Return a path as the user writes it: relative to the checkout where it is inside."""
    return str(path.relative_to(ROOT) if ROOT in path.parents else path)


def install(extras: str) -> None:
    """Make the virtual environment and install the package into it, unless that was done for this pyproject.toml."""
    stamp = VENV / f".flydsl-{extras.replace(',', '-')}"
    wanted = (ROOT / "pyproject.toml").read_text()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not PYTHON.exists():
        print(f"making {shown(VENV)} ...", flush=True)
        venv.create(VENV, with_pip=True)
    print(f"installing flydsl[{extras}] ...", flush=True)
    subprocess.check_call([str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", f"{ROOT}[{extras}]"])
    stamp.write_text(wanted)


def run(*arguments: str, **env: str) -> int:
    return subprocess.call([str(PYTHON), *arguments], cwd=ROOT, env={**os.environ, **env})


def demo(rest: "list[str]") -> int:
    """Run every example; the exit status counts the failures."""
    failed = []
    start = time.time()
    for example in sorted((ROOT / "examples").glob("[0-9]*.py")):
        print(f"== examples/{example.name}", flush=True)
        if run(str(example)):
            failed.append(example.name)
    print(f"== {'FAILED: ' + ', '.join(failed) if failed else 'all examples PASS'} ({time.time() - start:.0f} s)")
    activate = f"{shown(SCRIPTS)}\\activate" if os.name == "nt" else f". {shown(SCRIPTS)}/activate"
    print(f"== `{activate}` puts `flydsl` and this `python` on your PATH")
    return len(failed)


def test(rest: "list[str]") -> int:
    if "--nightly" in rest:
        rest = [a for a in rest if a != "--nightly"] + ["-m", "not emulator"]
    workers = [] if any(a.startswith(("-n", "--numprocesses")) for a in rest) else ["-n", "auto", "--dist", "loadfile"]
    return run("-m", "pytest", "-q", *workers, *rest)


def benchmarks() -> "list[str]":
    """Return the names of the benchmarks."""
    return sorted(script.stem for script in (ROOT / "benchmarks").glob("[a-z]*.py"))


def benchmark_list() -> str:
    """Return the benchmarks in lines, with what some of them need."""
    lines = []
    for name in benchmarks():
        need, arguments = NEEDS.get(name, ("", ""))
        lines.append(f"  {name:18}" + (f"{need} ({arguments})" if need else ""))
    return "benchmarks:\n" + "\n".join(line.rstrip() for line in lines)


def split_names(rest: "list[str]") -> "tuple[list[str], list[str]]":
    """Return the names of benchmarks at the start, and what follows them."""
    count = next((i for i, name in enumerate(rest) if name not in benchmarks()), len(rest))
    return rest[:count], rest[count:]


def bench(rest: "list[str]") -> int:
    """Run the named benchmarks, or one of them with the arguments behind its name; without a name all that this machine can run."""
    names, arguments = split_names(rest)
    skipped = {} if names else unavailable()
    failed = []
    for name in names or benchmarks():
        if name in skipped:
            continue
        print(f"== {name}", flush=True)
        if run(str(ROOT / "benchmarks" / f"{name}.py"), *arguments):
            failed.append(name)
    for name, reason in skipped.items():
        print(f"== skipped {name}: {reason}")
    if failed:
        print(f"== FAILED, or missed a target: {', '.join(failed)}")
    return 1 if failed else 0


def unavailable() -> "dict[str, str]":
    """Return why some benchmarks are not run here: what they need, and the command that runs them."""
    reasons = {name: f"{need}: python3 dev.py bench {name} {arguments}" for name, (need, arguments) in NEEDS.items()}
    if run("-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"):
        command = f"{shown(PYTHON)} -m pip install torch && python3 dev.py bench launch_overhead"
        reasons["launch_overhead"] = f"calls with torch tensors, and torch is not installed: {command}"
    return reasons


def lint(rest: "list[str]") -> int:
    return run("-m", "ruff", "check", *(rest or ["."]))


def docs(rest: "list[str]") -> int:
    return run("-m", "flydsl.tools.docs", *rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`flydsl doctor`: versions, devices, tools; for everything that is missing, the command that installs it.

What it imports or runs may be broken, which is what it is asked for: each part is tried alone, and its error becomes a line.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import platform
import subprocess
import sys
from dataclasses import dataclass, field

import flydsl
from flydsl import arch as chips
from flydsl.diag import FlyError, HipUnusable, LinkerPath, MissingHip, MissingTool
from flydsl.utils import env


@dataclass(frozen=True)
class Package:
    """A package from the index: what pyproject.toml states of its version, and the module whose import shows that it works."""

    name: str
    version: str
    module: str = ""
    use: str = ""

    def fix(self, again: bool = False) -> str:
        """Return the command that installs it; `again` also where this version is there already."""
        wanted = f"'{self.name}{self.version}'" if self.version else self.name
        return f"pip install {'--force-reinstall ' if again else ''}{wanted}"


REQUIRED = (
    Package("numpy", ">=1.26", "numpy"),
    Package("ml_dtypes", ">=0.5", "ml_dtypes"),
    Package("llvmlite", ">=0.50", "llvmlite.binding"),
    Package("torch-mlir", "==20261001", "torch_mlir.ir"),
)
OPTIONAL = (
    Package("ziglang", ">=0.14", use="linking code objects without ROCm or LLVM"),
    Package("torch", "", use="kernels on torch tensors"),
)
RUNTIMES = {"sim": "sim (the simulator)", "rocm": "rocm (HIP)", "null": "null (launches do nothing)"}
_PROBE_S = 60


@dataclass
class Report:
    """What is missing (with the command that brings it), and what is there and wrong."""

    missing: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unusable: set[str] = field(default_factory=set)  # packages without which nothing works

    @property
    def status(self) -> int:
        return 1 if self.wrong or self.unusable else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    report = Report()
    _packages(report)
    _linker(report)
    _assembler(report)
    _devices(report)
    if report.missing:
        sys.stdout.write("\nmissing:\n" + "".join(f"  {line}\n" for line in report.missing))
    if report.wrong:
        sys.stdout.write("\nwrong:\n" + "".join(f"  {line}\n" for line in report.wrong))
    if not report.missing and not report.wrong:
        sys.stdout.write("\nnothing is missing\n")
    return report.status


def _say(name: str, text: str) -> None:
    sys.stdout.write(f"{name:14} {text}\n")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def satisfies(version: str, wanted: str) -> bool:
    """Return whether a version is what `>=N` or `==N` asks for. Only the leading numbers of its parts are compared."""
    if not wanted:
        return True

    def numbers(text: str) -> list[int]:
        parts = text.split("+")[0].split(".")
        return [int("".join(c for c in part if c.isdigit()) or 0) for part in parts]

    have, need = numbers(version), numbers(wanted[2:])
    length = max(len(have), len(need))
    have, need = have + [0] * (length - len(have)), need + [0] * (length - len(need))
    return have == need if wanted.startswith("==") else have >= need


def _packages(report: Report) -> None:
    _say("flydsl", flydsl.__version__)
    _say("python", f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}")
    for package in REQUIRED:
        version, problem = _version(package.name), _import_problem(package.module)
        if version is None and problem:
            text = "not installed"
        elif problem:
            text = f"{version}, but its import fails: {problem}"
        elif version is not None and not satisfies(version, package.version):
            text = f"{version}, but flydsl needs {package.version}"
        else:
            _say(package.name, version or "of unknown version")
            continue
        _say(package.name, text)
        report.unusable.add(package.name)
        report.missing.append(f"{package.name}: {package.fix(again=bool(version and problem))}")
    for package in OPTIONAL:
        version = _version(package.name)
        if version is None:
            _say(package.name, f"not installed (optional: {package.use})")
            if package.name == "torch":  # the linker's line says whether ziglang is needed
                report.missing.append(f"{package.name} (optional): {package.fix()}")
        elif satisfies(version, package.version):
            _say(package.name, version)
        else:
            _say(package.name, f"{version}, but flydsl needs {package.version} (optional: {package.use})")
            report.missing.append(f"{package.name} (optional): {package.fix()}")
    if "llvmlite" not in report.unusable:
        import llvmlite.binding as llvm

        _say("LLVM", ".".join(map(str, llvm.llvm_version_info)))


def _import_problem(module: str) -> str:
    """Return why a module cannot be imported; empty if it can."""
    try:
        importlib.import_module(module)
    except Exception as e:  # whatever a broken package raises is the finding
        return f"{type(e).__name__}: {e}"
    return ""


def _linker(report: Report) -> None:
    from flydsl.targets.rocm.tools import find_linker

    try:
        linker = find_linker()
    except LinkerPath as e:
        _say("linker", "not found")
        report.wrong.append(f"{e.message}: {e.advice}")
        return
    except MissingTool as e:
        _say("linker", "not found")
        report.missing.append(f"linker (ld.lld): {e.advice}")
        return
    command = " ".join(linker.command)
    problem = _version_problem((*linker.command, "--version"), "LLD")
    _say("linker", f"{command} (from {linker.origin}){f', which does not work: {problem}' if problem else ''}")
    if problem and linker.origin == "FLYDSL_LLD":
        report.wrong.append(f"FLYDSL_LLD={command} is no ld.lld ({problem}): correct it, or unset it")
    elif problem:
        report.wrong.append(f"the linker {command} does not work ({problem}): repair it, or set FLYDSL_LLD to an ld.lld")


def _version_problem(command: tuple[str, ...], word: str) -> str:
    """Return why a program does not answer as it should; empty if its output has `word`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PROBE_S)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    if done.returncode:
        return f"exit {done.returncode}"
    return "" if word in done.stdout else f"`{command[-1]}` does not say {word}"


def _assembler(report: Report) -> None:
    """Say which assembler inline assembly uses, having it assemble one instruction for the chip in use."""
    from flydsl.runtime.device import target_arch
    from flydsl.targets.rocm.tools import assemble, find_assembler

    use = "optional: kernels with inline assembly"
    try:
        assembler = find_assembler("any")
    except MissingTool as e:
        _say("assembler", f"not found ({use})")
        report.missing.append(f"assembler (optional): {e.advice}")
        return
    chip = target_arch() if target_arch() in chips.names() else "gfx942"
    place = f"{' '.join(assembler.command)} (from {assembler.origin})"
    try:
        assemble("s_endpgm\n", chip)
    except FlyError as e:
        _say("assembler", f"{place}, which cannot assemble for {chip} ({use})")
        report.missing.append(f"assembler (optional): {e.message}; pip install ziglang brings another")
    else:
        _say("assembler", place)


def _devices(report: Report) -> None:
    """Say which GPUs there are, where kernels run and what they are compiled for."""
    from flydsl.runtime.device import target_arch
    from flydsl.runtime.kinds import may_have_amd_gpu, runtime_kind
    from flydsl.targets.rocm import hip

    count, no_hip = 0, None
    try:
        hip.library()
        count = hip.device_count()
    except MissingHip as e:
        no_hip = e
    if isinstance(no_hip, HipUnusable):
        _say("HIP", no_hip.message)
    _say("AMD GPUs", str(count))
    kind = ""
    try:
        kind = runtime_kind()
        _say("runtime", RUNTIMES.get(kind, kind))
    except FlyError as e:
        report.wrong.append(e.message)
    if no_hip is not None and (kind == "rocm" or may_have_amd_gpu()):
        asked = "FLYDSL_RUNTIME_KIND=rocm, but " if kind == "rocm" else "there is an AMD GPU, but "
        report.wrong.append(f"{asked}{no_hip.message}: {no_hip.advice}")
    elif kind == "rocm" and count == 0:
        report.wrong.append("FLYDSL_RUNTIME_KIND=rocm, but HIP finds no AMD GPU: run in the simulator, FLYDSL_RUNTIME_KIND=sim")
    _target(report, target_arch())


def _target(report: Report, chip: str) -> None:
    """Say what kernels are compiled for. Backends need the packages: without them only the chip's name is judged."""
    name = env.compile.backend.strip().lower() or "rocm"
    _say("target", chip if name == "rocm" else f"{chip}, backend {name}")
    try:
        if report.unusable:
            chips.get(chip)
        else:
            from flydsl.compiler.backends import get_backend

            get_backend()
    except FlyError as e:
        report.wrong.append(f"{e.message}: {e.advice}")

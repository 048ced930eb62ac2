"""`flydsl doctor`: versions, devices, tools; for everything that is missing, the command that installs it."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys

import flydsl
from flydsl.diag import FlyError

PACKAGES = {
    "numpy": "pip install numpy",
    "ml_dtypes": "pip install ml_dtypes",
    "llvmlite": "pip install llvmlite",
    "torch-mlir": "pip install torch-mlir==20261001",
}
OPTIONAL = {
    "ziglang": ("linking code objects without ROCm or LLVM", "pip install 'flydsl[hsaco]'"),
    "torch": ("kernels on torch tensors", "pip install torch"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    missing = _packages()
    missing += _tools()
    wrong = _devices()
    if missing:
        sys.stdout.write("\nmissing:\n" + "".join(f"  {name}: {fix}\n" for name, fix in missing))
    if wrong:
        sys.stdout.write("\nwrong:\n" + "".join(f"  {problem}\n" for problem in wrong))
    if not missing and not wrong:
        sys.stdout.write("\nnothing is missing\n")
    return 1 if wrong or any(name in PACKAGES for name, _ in missing) else 0


def _say(name: str, text: str) -> None:
    sys.stdout.write(f"{name:14} {text}\n")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _packages() -> list[tuple[str, str]]:
    _say("flydsl", flydsl.__version__)
    _say("python", f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}")
    missing = []
    for package, fix in PACKAGES.items():
        version = _version(package)
        _say(package, version or "not installed")
        if version is None:
            missing.append((package, fix))
    for package, (use, fix) in OPTIONAL.items():
        version = _version(package)
        _say(package, version or f"not installed (optional: {use})")
        if version is None and package == "torch":
            missing.append((f"{package} (optional)", fix))
    return missing


def _tools() -> list[tuple[str, str]]:

    missing = []
    if _version("llvmlite"):
        import llvmlite.binding as llvm

        _say("LLVM", ".".join(map(str, llvm.llvm_version_info)))
    try:
        from flydsl.targets.rocm.tools import find_linker

        linker = find_linker()
        _say("linker", f"{' '.join(linker.command)} (from {linker.origin})")
    except (FlyError, ImportError):
        _say("linker", "not found")
        missing.append(("linker (ld.lld)", "pip install 'flydsl[hsaco]', or install lld, or set FLYDSL_LLD"))
    return missing


RUNTIMES = {"sim": "sim (the simulator)", "rocm": "rocm (HIP)", "null": "null (launches do nothing)"}


def _devices() -> list[str]:
    """Say which GPUs there are, where kernels run and what they are compiled for; return what the environment has wrong."""
    from flydsl.compiler.backends import compile_backend_name, get_backend
    from flydsl.runtime.device import target_arch
    from flydsl.runtime.kinds import hip_device_count, runtime_kind

    wrong = []
    try:
        count = hip_device_count()
    except (OSError, ImportError):
        count = 0
    _say("AMD GPUs", str(count))
    try:
        _say("runtime", RUNTIMES.get(runtime_kind(), runtime_kind()))
    except ValueError as e:
        wrong.append(str(e))
    _say("target", target_arch() if compile_backend_name() == "rocm" else f"{target_arch()}, backend {compile_backend_name()}")
    try:
        get_backend()
    except FlyError as e:
        wrong.append(f"{e.message}: {e.advice}")
    return wrong

"""Finding and running the linker and the assembler for AMD code objects.

Search order: `FLYDSL_LLD` (linker only), `$ROCM_PATH/llvm/bin`, `PATH`, the ziglang wheel, whose one binary
holds both. The binary is run directly: `python -m ziglang` would start another interpreter.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import threading
import weakref
from pathlib import Path
from typing import NamedTuple

from flydsl.diag.errors.target import AssemblyRejected, LinkerPath, LinkFailed, MissingAssembler, MissingLinker

_LLD_NAMES = ("ld.lld", "ld.lld-22", "ld.lld-21", "ld.lld-20", "ld.lld-19", "lld")
_CLANG_NAMES = ("clang-22", "clang-21", "clang-20", "clang-19", "clang")
_TIMEOUT_S = 120


class Tool(NamedTuple):
    """A command and where it was found."""

    command: tuple[str, ...]
    origin: str


def _zig() -> str | None:
    """Return the path of the zig binary without importing the ziglang package."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    for name in ("zig", "zig.exe"):
        if (folder / name).exists():
            return str(folder / name)
    return None


def find_linker() -> Tool:
    """Return the linker.

    Raises   MissingLinker: lists every place that was searched; LinkerPath: FLYDSL_LLD is no program
    """
    return _find_linker(os.environ.get("FLYDSL_LLD", ""), os.environ.get("ROCM_PATH", ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find_linker(override: str, rocm: str, path: str) -> Tool:
    if override:
        if not (os.path.isfile(override) and os.access(override, os.X_OK)):
            raise LinkerPath(path=override)
        return Tool((override,), "FLYDSL_LLD")
    if rocm and os.access(found := os.path.join(rocm, "llvm", "bin", "ld.lld"), os.X_OK):
        return Tool((found,), "ROCM_PATH")
    for name in _LLD_NAMES[:-1]:
        if found := shutil.which(name, path=path):
            return Tool((found,), "PATH")
    if zig := _zig():
        return Tool((zig, "ld.lld"), "ziglang")
    raise MissingLinker(
        searched_text=f"FLYDSL_LLD (unset), ROCM_PATH ({rocm or 'unset'}), {', '.join(_LLD_NAMES[:-1])} on PATH, "
        "the ziglang package"
    )


def find_assembler(kernel: str = "") -> Tool:
    """Return a clang that assembles AMDGPU code.

    Raises   MissingAssembler: lists every place that was searched
    """
    rocm, path = os.environ.get("ROCM_PATH", ""), os.environ.get("PATH", "")
    tool = _find_assembler(rocm, path)
    if tool is None:
        searched = f"ROCM_PATH ({rocm or 'unset'}), the ziglang package, {', '.join(_CLANG_NAMES[:-1])} on PATH"
        raise MissingAssembler(kernel=kernel, searched_text=searched)
    return tool


@functools.lru_cache(maxsize=8)
def _find_assembler(rocm: str, path: str) -> Tool | None:
    """A plain `clang` is taken last: the host's is often too old for these chips."""
    if rocm and os.access(found := os.path.join(rocm, "llvm", "bin", "clang"), os.X_OK):
        return Tool((found,), "ROCM_PATH")
    if zig := _zig():
        return Tool((zig, "clang"), "ziglang")
    for name in _CLANG_NAMES:
        if found := shutil.which(name, path=path):
            return Tool((found,), "PATH")
    return None


class Job:
    """A tool that makes an ELF file of its standard input on standard output, started before its input is there.

    Starting a linker takes longer than linking one object: it starts while LLVM generates the code.
    Raises   LinkFailed: the tool does not start, or refuses its input
    """

    def __init__(self, command: tuple[str, ...], arch: str) -> None:
        self._command = command
        self._arch = arch
        pipe = subprocess.PIPE
        try:
            with _starting:  # bufsize: a stream without a buffer has no lock that a forked child would find taken
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
                _jobs.add(self)
        except OSError as error:
            raise self._failed("did not start", str(error)) from error

    def finish(self, content: bytes) -> bytes:
        """Return what the tool makes of `content`, an ELF file."""
        try:
            output, complaint = self._process.communicate(content, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.abandon()
            output, complaint = b"", f"no answer in {_TIMEOUT_S} s".encode()
        except BaseException:  # Ctrl-C: the tool would go on alone
            self.abandon()
            raise
        if self._process.returncode or not output.startswith(b"\x7fELF"):
            problem = complaint.decode(errors="replace").strip()
            raise self._failed(f"exit {self._process.returncode}", problem or _what_is_wrong_with(output))
        return output

    def abandon(self) -> None:
        """End the tool: its input will not come. What a wrapper script started may keep its own ends of the pipes open."""
        with self._process:  # closes ours, and waits for the tool
            self._process.kill()

    def disown(self) -> None:
        """Close the input, without ending the tool."""
        self._process.stdin.close()

    def _failed(self, status: str, problem: str) -> LinkFailed:
        tool = os.path.basename(self._command[0])
        return LinkFailed(tool=tool, status=status, arch=self._arch, problem=problem, command=" ".join(self._command))


_jobs: weakref.WeakSet[Job] = weakref.WeakSet()
_starting = threading.RLock()


def _leave_to_parent() -> None:
    """Close a forked child's ends of the pipes: a tool reads until the last writer closes its standard input."""
    _starting.release()
    for job in _jobs:
        job.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_leave_to_parent)


def _what_is_wrong_with(output: bytes) -> str:
    return f"no object file on standard output, but {output[:60]!r}" if output else "no output"


def start_linking(arch: str) -> Job:
    """Return the linker, waiting for one object file, of which it makes a code object (a shared library for the GPU).

    Raises   MissingLinker
    """
    options = ("-shared", "--no-undefined", "--build-id=none", "--threads=1")  # one small object: threads cost a millisecond
    return Job((*find_linker().command, *options, "/dev/stdin", "-o", "-"), arch)


def assemble(isa: str, arch: str, kernel: str = "") -> bytes:
    """Return the object file of ISA text.

    Raises   AssemblyRejected: an instruction of an inline assembly that the chip does not have
    """
    tool = find_assembler(kernel)
    arguments = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", "-x", "assembler", "-", "-o", "-")
    try:
        return Job((*tool.command, *arguments), arch).finish(isa.encode())
    except LinkFailed as failed:
        complaints = re.findall(r"^<stdin>:\d+:\d+: error: (.*)\n(.*)", failed.problem, re.MULTILINE)
        if not complaints:
            raise
        text = "; ".join(f"{why}: `{line.strip()}`" for why, line in complaints[:3])
        raise AssemblyRejected(kernel=kernel, arch=arch, problem=text) from failed

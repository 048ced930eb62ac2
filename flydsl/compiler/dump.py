"""Numbered stage files: `{dir}/{kernel}/00_origin.mlir ... NN_llvm_ir.ll, NN_final_isa.s`.

The first specialisation of a kernel in a process has this folder, the next ones `{kernel}-2`, `{kernel}-3`: a kernel's name has no dash.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from flydsl.diag import DumpFolder
from flydsl.ir import ir, print_op
from flydsl.passes.registry import stage_name
from flydsl.utils import env

_STAGE = re.compile(r"\d\d_")
_numbers: dict[str, dict[Hashable, int]] = {}  # folder of a kernel -> its specialisations so far
_numbering = threading.Lock()


def _folder(name: str, specialisation: Hashable) -> str:
    """Return the folder of one specialisation, without the files of earlier compiles."""
    first = os.path.join(os.path.expanduser(env.debug.dump_dir), name)
    with _numbering:
        if first not in _numbers:
            _numbers[first] = {}
            _forget_earlier_processes(first)
        number = _numbers[first].setdefault(specialisation, len(_numbers[first]) + 1)
    folder = first if number == 1 else f"{first}-{number}"
    os.makedirs(folder, exist_ok=True)
    _remove_stages(folder)
    return folder


def _forget_earlier_processes(first: str) -> None:
    """Remove what an earlier process wrote for further specialisations: there may be fewer now."""
    parent, name = os.path.split(first)
    for entry in os.listdir(parent) if os.path.isdir(parent) else ():
        folder = os.path.join(parent, entry)
        if re.fullmatch(rf"{re.escape(name)}-\d+", entry) and os.path.isdir(folder):
            _remove_stages(folder)
            if not os.listdir(folder):
                os.rmdir(folder)


def _remove_stages(folder: str) -> None:
    for entry in os.listdir(folder):
        if _STAGE.match(entry):
            os.remove(os.path.join(folder, entry))


@contextmanager
def _writable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise DumpFolder(path=path, problem=e.strerror or str(e), folder=env.debug.dump_dir) from e


class Dumper:
    """Writes the stages of one compile, in order. `specialisation`: what tells it from others of the same kernel."""

    def __init__(self, name: str, specialisation: Hashable):
        """Make the folder. Raises DumpFolder: it cannot be made or cleared."""
        with _writable(os.path.join(os.path.expanduser(env.debug.dump_dir), name)):
            self.folder = _folder(name, specialisation)
        self.count = 0

    def stage(self, pass_name: str, module: ir.Module) -> None:
        """Write the module after a pass."""
        self.write(stage_name(pass_name), print_op(module, locations=True))

    def text(self, stage: str, text: str) -> None:
        """Write a text that a target gives under a stage name."""
        self.write(stage_name(stage), text, {"final_isa": "s", "llvm_ir": "ll"}.get(stage, "mlir"))

    def write(self, stage: str, text: str, ending: str = "mlir") -> None:
        """Write one numbered file and say so on standard output."""
        path = os.path.join(self.folder, f"{self.count:02}_{stage}.{ending}")
        self.count += 1
        with _writable(path), open(path, "w") as f:
            f.write(text)
        sys.stdout.write(f"[flydsl.compile] dump {self.count - 1:02}_{stage} -> {path}\n")

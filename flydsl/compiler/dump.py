"""Numbered stage files: `{dir}/{kernel}/00_origin.mlir ... NN_llvm_ir.ll, NN_final_isa.s`."""

from __future__ import annotations

import os
import sys

from flydsl.ir import ir, print_op
from flydsl.passes.registry import stage_name
from flydsl.utils import env


class Dumper:
    """Writes the stages of one compile, in order."""

    def __init__(self, name: str):
        self.folder = os.path.join(os.path.expanduser(env.debug.dump_dir), name)
        os.makedirs(self.folder, exist_ok=True)
        for old in os.listdir(self.folder):
            if old[:2].isdigit() and old[2:3] == "_":
                os.remove(os.path.join(self.folder, old))
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
        with open(path, "w") as f:
            f.write(text)
        sys.stdout.write(f"[flydsl.compile] dump {self.count - 1:02}_{stage} -> {path}\n")

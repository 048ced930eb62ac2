"""A launch in a folder: IR, arguments, geometry, options and the memory before it; enough to run it again anywhere.

    launch.json   kernel, architecture, grid, block, arguments, allocations, checks, schedule, findings as text
    lowered.mlir  the kernels
    NAME.bin      the bytes of each allocation before the launch
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.targets.sim.options import Allocation, SimOptions
from flydsl.targets.sim.program import Program
from flydsl.targets.sim.report import RunReport


@dataclass
class RecordedLaunch:
    """One launch; `arguments` are numbers, `addresses` of pointers as they were when `allocations` had theirs."""

    text: str
    arch: str
    kernel: str
    geometry: dict[str, Any]
    arguments: list[Any]
    allocations: list[Allocation]
    before: list[bytes]
    checks: list[str] = field(default_factory=list)
    schedule: str = "auto"

    def save(self, folder: Path, findings: Sequence[Any] = ()) -> Path:
        """Write the launch to a new folder inside `folder` and return it."""
        number = len(list(folder.glob("[0-9]*"))) if folder.exists() else 0
        home = folder / f"{number:02}_{self.kernel}"
        home.mkdir(parents=True)
        (home / "lowered.mlir").write_text(self.text)
        for i, data in enumerate(self.before):
            (home / f"{i}.bin").write_bytes(data)
        facts = {
            "arch": self.arch, "kernel": self.kernel, "geometry": self.geometry, "arguments": list(map(plain, self.arguments)),
            "allocations": [asdict(a) for a in self.allocations], "checks": sorted(self.checks), "schedule": self.schedule,
            "findings": [str(f) for f in findings],
        }  # fmt: skip
        (home / "launch.json").write_text(json.dumps(facts, indent=1))
        return home

    @classmethod
    def load(cls, home: Path) -> RecordedLaunch:
        """Return the launch of a folder."""
        facts = json.loads((home / "launch.json").read_text())
        allocations = [Allocation(**{**a, "shape": tuple(a["shape"]), "strides": tuple(a["strides"])}) for a in facts["allocations"]]
        before = [(home / f"{i}.bin").read_bytes() for i in range(len(allocations))]
        return cls(
            (home / "lowered.mlir").read_text(), facts["arch"], facts["kernel"], facts["geometry"], facts["arguments"],
            allocations, before, facts["checks"], facts["schedule"],
        )  # fmt: skip

    def run(self, options: SimOptions) -> tuple[RunReport, list[np.ndarray]]:
        """Run it on fresh memory with its contents of then; return the report and the bytes afterwards."""
        program = Program(self.text, self.arch)
        arrays, moved = [], []
        for a, data in zip(self.allocations, self.before):
            raw = np.zeros(a.nbytes + 64, np.uint8)
            start = (a.address - raw.ctypes.data) % 64  # alignment is part of what happens
            raw[start : start + a.nbytes] = np.frombuffer(data, np.uint8)
            arrays.append(raw[start : start + a.nbytes])
            moved.append(Allocation(**{**a.__dict__, "address": raw.ctypes.data + start}))
        params = program.translated(self.kernel).params
        values = [self.moved(v, moved) if p[1][0] == "p" else v for v, p in zip(self.arguments, params)]
        report = program.launch(self.kernel, args=values, allocations=moved, options=options, **self.geometry)
        return report, arrays

    def moved(self, address: int, moved: Sequence[Allocation]) -> int:
        """Return where the memory of an address lies now."""
        for old, new in zip(self.allocations, moved):
            if old.address <= address < old.address + max(1, old.nbytes):
                return address - old.address + new.address
        return address


def plain(value: Any) -> Any:
    """Return an argument as JSON takes it."""
    return value.item() if isinstance(value, np.generic) else value


def snapshot(allocations: Sequence[Allocation]) -> list[bytes]:
    """Return the bytes of each allocation."""
    return [ctypes.string_at(a.address, a.nbytes) for a in allocations]

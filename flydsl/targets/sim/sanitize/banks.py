"""LDS bank conflicts: how many lanes meet in one bank during one access phase, per source line. A report, not an error.

Source   the banks of a chip are `arch.*.LDS`; an access of 4, 8 or 16 bytes per lane is served in phases of 32 (64
banks: 64), 16, 8 lanes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl import arch as chips
from flydsl.diag import snippet

SAMPLES = 16  # executions of one access that are measured; later ones mostly repeat the pattern


@dataclass
class BankRow:
    """Conflicts of one access in the source: `degree` 1 is free of conflicts."""

    site: int
    kind: str
    nbytes: int
    degree: int = 1
    executions: int = 0
    phases: int = 0
    cycles: int = 0
    span: Any = None

    def __str__(self) -> str:
        where = "\n".join(snippet(self.span)) + "\n" if self.span is not None else ""
        return (
            f"note[FLY_SIM_BANKS]: the {self.nbytes}-byte {self.kind}s of this line take {self.degree} passes at worst, "
            f"{self.average:.1f} in the mean\n{where}  why: their lanes meet in one bank of LDS"
        )

    @property
    def average(self) -> float:
        """Mean passes per phase."""
        return self.cycles / max(1, self.phases)


class BankReport:
    """Measures the first executions of every LDS access."""

    def __init__(self, arch: str):
        facts = chips.get(arch).lds
        self.banks = facts.banks
        self.bank_bytes = facts.bank_bytes
        self.rows: dict[int, BankRow] = {}

    def note(self, machine: Any, site: int, kind: str, addr: Any, nbytes: int, m: Any) -> None:
        """Measure one access."""
        row = self.rows.get(site)
        if row is None:
            row = self.rows[site] = BankRow(site, kind, nbytes, span=machine.reporter.span(site))
        row.executions += 1
        if row.executions > SAMPLES:
            return
        lanes = max(1, self.banks * self.bank_bytes // max(nbytes, self.bank_bytes))
        lanes = min(lanes, machine.wave_size)
        active = np.broadcast_to(True if m is None else m, (machine.G, machine.B))[0].reshape(-1, lanes)
        start = np.broadcast_to(addr, (machine.G, machine.B))[0].reshape(-1, lanes)
        for phase, live in zip(start, active):
            if live.any():
                passes = self.passes(phase[live], nbytes)
                row.phases += 1
                row.cycles += passes
                row.degree = max(row.degree, passes)

    def passes(self, addr: np.ndarray, nbytes: int) -> int:
        """Return how often the busiest bank must be read: distinct words in it."""
        words = (addr // self.bank_bytes)[:, None] + np.arange(max(1, nbytes // self.bank_bytes))
        distinct = np.unique(words)
        return int(np.bincount(distinct % self.banks).max())

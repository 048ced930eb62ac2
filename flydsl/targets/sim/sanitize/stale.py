"""Tiles of LDS that were refilled in part (opt-in warning): between two barriers one source line reads cells that were
written since they were last read, and beside them cells whose content was already read before an earlier barrier.

Kernels that keep part of a tile on purpose (sliding windows) do the same, so this is a warning and off by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.sanitize.race_lds import Access, expanded


class StaleTiles:
    """Per cell of a slab's LDS: the interval of its last write and of its last read."""

    def __init__(self, cell_bytes: int, lds_bytes: int):
        self.shift = cell_bytes.bit_length() - 1
        cells = (lds_bytes >> self.shift) + 16
        self.written = np.zeros(cells, np.int32)
        self.read = np.zeros(cells, np.int32)
        self.writer = np.full(cells, -1, np.int32)
        self.number = 1

    def cells_of(self, access: Access) -> np.ndarray:
        """Return the cells of each lane; the last one repeats where an access is narrower than others."""
        first, last = access.off >> self.shift, access.off + access.nbytes - 1 >> self.shift
        count = int((last - first).max()) + 1
        return np.minimum(first[:, None] + np.arange(count), last[:, None])

    def interval(self, machine: Any, entries: list) -> None:
        """Judge the reads between two barriers, then note its reads and writes."""
        accesses = [a for a in map(expanded, entries) if len(a.off)]
        cells = [self.cells_of(a) for a in accesses]
        self.number += 1
        for a, at in zip(accesses, cells):
            if a.kind != "read":
                self.written[at] = self.number
                self.writer[at] = a.site
        lines: dict[Any, list] = {}
        for a, at in zip(accesses, cells):
            if a.kind == "read":
                lines.setdefault(machine.reporter.line(a.site), []).append((a, at))
        for group in lines.values():
            self.judge(machine, group)
        for a, at in zip(accesses, cells):
            if a.kind == "read":
                self.read[at] = self.number

    def judge(self, machine: Any, group: list[tuple[Access, np.ndarray]]) -> None:
        """Report a line whose reads mix refilled and used cells."""
        stale, fresh = None, None
        for access, at in group:
            wrote, read = self.written[at], self.read[at]
            older = wrote < self.number  # what is written in this interval belongs to one wave
            used = older & (read > wrote) & (wrote > 0)
            new = older & (read <= wrote) & (wrote > 0)
            if stale is None and used.any():
                lane, part = (int(x[0]) for x in np.nonzero(used))
                stale = access, lane, int(at[lane, part]), int(used.any(axis=1).sum())
            if fresh is None and new.any():
                fresh = int(at[new][0])
        if stale is not None and fresh is not None:
            self.report(machine, stale, fresh)

    def report(self, machine: Any, stale: tuple[Access, int, int, int], fresh: int) -> None:
        access, lane, cell, count = stale
        reporter = machine.reporter
        thread = int(access.thread[lane])
        span = machine.slab.lds.arrays.get(access.base)
        byte = (cell << self.shift) % machine.slab.lds.pitch - (span[0] if span else 0)
        name = f"array `{access.base}` of LDS" if span else "LDS"
        reporter.add(
            Finding(
                "stale",
                f"byte {byte} of {name} still holds what was read before an earlier barrier, while other bytes that"
                " this line reads were refilled",
                span=reporter.span(access.site),
                callers=reporter.callers(access.site),
                block=machine.block_of(int(access.group[lane])),
                thread=machine.launch_thread(thread),
                wave=thread // machine.wave_size,
                lane=thread % machine.wave_size,
                tensor=access.base,
                offset=byte,
                other=reporter.span(int(self.writer[fresh])),
                severity="warning",
                why="a tile that is filled in part keeps values of the previous trip in the rest",
                fix="let the stores cover the whole tile, or ignore this if the rest is kept on purpose",
                count=count,
            )
        )

"""Barriers and waits that order nothing (opt-in warnings): no conflict lies across them, or nothing was outstanding.

A barrier is needed when an access of the interval right before it and one of the interval right after it touch one
cell of LDS from different waves, and one of them writes; conflicts over longer distances are ordered by the other
barriers as well. A barrier that loses its last conflict is often the trace of a store that is missing. A place in the
source is judged over all its executions in a launch, also where calls inline it; once it was needed, it costs nothing
more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.sanitize.race_lds import Access, expanded

NOBODY, SEVERAL = -1, -2


class Needless:
    """Which barriers and waits of a launch were needed so far."""

    def __init__(self, cell_bytes: int, wave_size: int, judges_barriers: bool):
        self.shift = cell_bytes.bit_length() - 1
        self.wave_shift = wave_size.bit_length() - 1
        self.judges_barriers = judges_barriers
        self.barriers: dict[Any, bool] = {}  # place -> needed
        self.waits: dict[Any, bool] = {}
        self.where: dict[Any, dict] = {}
        self.before: tuple[tuple[int, ...], list] | None = None

    # --- barriers ----------------------------------------------------------------------------------------------------

    def start_slab(self) -> None:
        """New workgroups have no history."""
        self.before = None

    def interval(self, machine: Any, sites: tuple[int, ...], entries: list) -> None:
        """The interval with these accesses ended at the barriers `sites` (none at the end of the kernel)."""
        if not self.judges_barriers:
            return
        if self.before is not None:
            crossed, earlier = self.before
            open_sites = {self.place(machine, s): s for s in crossed}
            open_sites = {place: s for place, s in open_sites.items() if not self.barriers.get(place)}
            if open_sites:
                needed = self.has_conflict(machine, earlier, entries)
                for place, site in open_sites.items():
                    self.barriers[place] = needed
                    self.where.setdefault(place, machine.reporter.at(machine, site, np.ones((1, 1), bool)))
        self.before = (sites, entries) if sites else None

    def place(self, machine: Any, site: int) -> Any:
        """Return what tells barriers and waits of the source apart."""
        return machine.reporter.span(site) or site

    def skip(self, machine: Any, site: int) -> None:
        """A barrier that only some workgroups reach is not judged."""
        self.barriers[self.place(machine, site)] = True
        self.before = None

    def has_conflict(self, machine: Any, earlier: list, later: list) -> bool:
        """Return whether two waves touch one cell, on different sides, and one of them writes."""
        first, second = ([expanded(e) for e in side] for side in (earlier, later))
        cells = (len(machine.slab.lds.raw) >> self.shift) + 16
        writers = self.owners(first, cells, {"write", "atomic"})
        if any(self.meets(a, writers) for a in second):
            return True
        changes = [a for a in second if a.kind != "read"]
        if not changes:
            return False
        readers = self.owners(first, cells, {"read"})
        return any(self.meets(a, readers) for a in changes)

    def cells_of(self, access: Access) -> np.ndarray:
        """Return the cells of each lane."""
        last = access.off + access.nbytes - 1 >> self.shift
        count = int((last - (access.off >> self.shift)).max()) + 1 if len(access.off) else 1
        return np.minimum((access.off >> self.shift)[:, None] + np.arange(count), last[:, None])

    def owners(self, accesses: list[Access], cells: int, kinds: set[str]) -> np.ndarray:
        """Return per cell the wave that touched it, or NOBODY, or SEVERAL."""
        owner = np.full(cells, NOBODY, np.int32)
        for a in accesses:
            if a.kind not in kinds or not len(a.off):
                continue
            at, wave = self.cells_of(a), (a.thread >> self.wave_shift)[:, None].astype(np.int32)
            old = owner[at]
            owner[at] = np.where((old == NOBODY) | (old == wave), wave, SEVERAL)
            met = owner[at] != wave
            owner[at[met]] = SEVERAL
        return owner

    def meets(self, access: Access, owner: np.ndarray) -> bool:
        """Return whether the access touches a cell of another wave."""
        if not len(access.off):
            return False
        theirs = owner[self.cells_of(access)]
        return bool(((theirs != NOBODY) & (theirs != (access.thread >> self.wave_shift)[:, None])).any())

    # --- waits -------------------------------------------------------------------------------------------------------

    def wait(self, machine: Any, site: int, found_something: bool) -> None:
        """Note an executed wait."""
        place = self.place(machine, site)
        self.waits[place] = self.waits.get(place, False) or found_something
        self.where.setdefault(place, machine.reporter.at(machine, site, np.ones((1, 1), bool)))

    # --- reports -----------------------------------------------------------------------------------------------------

    def finish(self, reporter: Any) -> None:
        """Report what was never needed."""
        for site in (s for s, needed in self.barriers.items() if not needed):
            reporter.add(
                Finding(
                    "needless-barrier",
                    "this barrier orders nothing: no two waves meet in LDS across it",
                    **self.where[site],
                    severity="warning",
                    why="all accesses around it are ordered already, or a store that it should publish is missing",
                    fix="check that the stores before it are there; if they are, remove the barrier",
                )
            )
        for site in (s for s, needed in self.waits.items() if not needed):
            reporter.add(
                Finding(
                    "needless-wait",
                    "this wait never waited: no operation of its counter was outstanding beyond its count",
                    **self.where[site],
                    severity="warning",
                    why="an earlier wait already covers all copies, or the copy that it should wait for is missing",
                    fix="check the count and the order of issue and wait; if they are right, remove the wait",
                )
            )

"""Bytes that a store writes to LDS and that no thread ever reads, and elements of tensors that are never read, or that
one source line leaves out although it reads the others (opt-in warnings).

A cell of LDS counts as read when it is read once, in any workgroup and trip, after this store wrote it: a tile that is
fetched ahead and not used in the end is no finding, a partial sum that the last step forgets is one. A line is judged
where it is used for the most part: a load that leaves the rest to another line, a store that only other waves read, are
common. It is also judged where it reads some elements more often than the usual ones, by as many reads as others lack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.sanitize.holes import element_cells, picture
from flydsl.targets.sim.sanitize.race_lds import Access, expanded
from flydsl.targets.sim.sanitize.shadow import WRITTEN, Shadow

MOST_STORES = 4096  # stores to LDS of one kernel that are told apart
MOST_OF_TENSOR = 7 / 8  # share that a line of loads must read of a tensor to be taken to mean all of it
MOST_OF_STORE = 1 / 2  # share of a store's bytes that must be read, and more, for the rest to be missed


class UnreadLds:
    """Per store: the bytes of a workgroup's LDS that it wrote and those that were read afterwards."""

    def __init__(self) -> None:
        self.sites: list[int] = []
        self.numbers: dict[int, int] = {}
        self.written = self.read = np.zeros((0, 0), bool)
        self.bases: dict[int, str | None] = {}
        self.last: np.ndarray | None = None
        self.pitch = 0

    def start_slab(self, lds: Any) -> None:
        """New workgroups: nothing in LDS is theirs."""
        self.last = np.zeros(len(lds.raw), np.int16)
        if self.pitch != lds.pitch:
            self.pitch = lds.pitch
            self.written, self.read = (np.zeros((0, self.pitch), bool) for _ in range(2))

    def interval(self, entries: list) -> None:
        """Follow the accesses between two barriers in their order."""
        for access in map(expanded, entries):
            if not len(access.off):
                continue
            at = access.off[:, None] + np.arange(access.nbytes)
            if access.kind != "write":
                writer = self.last[at]
                known = writer > 0
                self.read[writer[known] - 1, at[known] % self.pitch] = True
            if access.kind != "read":
                number = self.number(access)
                self.last[at] = number + 1
                self.written[number, at % self.pitch] = True

    def number(self, access: Access) -> int:
        """Return the number of a store."""
        found = self.numbers.get(access.site)
        if found is None:
            found = self.numbers[access.site] = min(len(self.sites), MOST_STORES - 1)
            if found == len(self.sites):
                self.sites.append(access.site)
                self.bases[found] = access.base
                row = np.zeros((1, self.pitch), bool)
                self.written, self.read = np.vstack([self.written, row]), np.vstack([self.read, row])
        return found

    def finish(self, launch: Any) -> None:
        """Report the stores of which a part was never read."""
        for number, site in enumerate(self.sites):
            dead = self.written[number] & ~self.read[number]
            if not dead.any() or self.read[number].sum() <= MOST_OF_STORE * self.written[number].sum():
                continue
            base = self.bases[number]
            span = launch.lds_arrays.get(base)
            first = int(dead.argmax()) - (span[0] if span else 0)
            count = f"{int(dead.sum())} of {int(self.written[number].sum())}"
            name = f"array `{base}` of LDS" if span else "LDS"
            launch.reporter.add(
                Finding(
                    "never-read",
                    f"{count} bytes that this line writes to {name} are never read, the first at byte {first}",
                    span=launch.reporter.span(site),
                    callers=launch.reporter.callers(site),
                    tensor=base,
                    offset=first,
                    severity="warning",
                    why="what nobody reads need not be stored, or a later step leaves it out",
                    fix="check the bounds of the loop and the predicates that read it",
                )
            )


class ReadMap:
    """Which bytes of each tensor were read, in all and per source line, and how often per line."""

    def __init__(self) -> None:
        self.shadows: dict[tuple[int, Any], tuple[Any, Shadow, int]] = {}
        self.counts: dict[tuple[int, Any], np.ndarray] = {}

    def note(self, reporter: Any, region: Any, off: Any, nbytes: int, m: Any, site: int) -> None:
        """Mark bytes as read."""
        self.count((region.number, reporter.line(site)), region, off, nbytes, m)
        for line in (None, reporter.line(site)):
            found = self.shadows.get((region.number, line))
            if found is None:
                itemsize = region.allocation.itemsize
                cell = itemsize if itemsize in (1, 2, 4, 8) and region.start % itemsize == 0 else 1
                found = self.shadows[region.number, line] = region, Shadow(len(region.raw), cell), site
            found[1].set_state(off, nbytes, m, WRITTEN)

    def count(self, key: tuple[int, Any], region: Any, off: Any, nbytes: int, m: Any) -> None:
        """Count the reads of each byte that an element of a lane begins at."""
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = np.zeros(len(region.raw) + 16, np.int32)
        starts = off if m is None else np.broadcast_to(off, np.broadcast_shapes(off.shape, m.shape))
        starts = np.ravel(starts if m is None else starts[np.broadcast_to(m, starts.shape)])
        size = region.allocation.itemsize
        np.add.at(counts, starts[:, None] + np.arange(0, max(nbytes, size), size), 1)

    def is_uneven(self, key: tuple[int, Any], elements: np.ndarray) -> bool:
        """Return whether a line reads some elements more often than others and as many not at all: one of its loads goes
        to the place of another one."""
        reads = self.counts[key][elements]
        touched = reads[reads > 0]
        usual = int(np.median(touched)) if len(touched) else 0
        excess = int(np.maximum(touched - usual, 0).sum())
        return 0 < excess == usual * int((reads == 0).sum())

    def report(self, launch: Any, text: Any) -> None:
        """Report each tensor that the launch, or one of its lines, read in part; a tensor that the kernel has loads of
        may be read nowhere at all."""
        whole = set()
        for i in text.reads:
            region = launch.bases[i] if i is not None else None
            if region is not None and not region.is_mapping and (region.number, None) not in self.shadows:
                self.shadows[region.number, None] = region, None, None
        for (number, line), (region, shadow, site) in self.shadows.items():
            a = region.allocation
            if shadow is None:
                self.add(launch, site, a, np.ones(a.shape or (a.nbytes // a.itemsize,), bool), "")
                continue
            cells = element_cells(a, region, shadow)
            missing = shadow.state.raw[cells] != WRITTEN
            is_most = missing.mean() <= 1 - MOST_OF_TENSOR
            if line is not None and (number in whole or not is_most and not self.is_uneven((number, line), cells << shadow.shift)):
                continue
            if not missing.any():
                continue
            if line is None:
                whole.add(number)
            self.add(launch, site, a, missing, "" if line is None else " by this line, which reads the others")

    def add(self, launch: Any, site: int | None, a: Any, missing: np.ndarray, who: str) -> None:
        """Add the finding of a tensor."""
        at = tuple(map(int, np.unravel_index(int(missing.reshape(-1).argmax()), missing.shape)))
        count = f"{int(missing.sum())} of {missing.size}"
        reporter = launch.reporter
        rest = "the launch read the other elements of this tensor"
        reporter.add(
            Finding(
                "never-read",
                f"{count} elements of `{a.name}` were never read{who}, the first at {at}\n" + picture(missing),
                span=reporter.span(site) if site is not None else None,
                callers=reporter.callers(site) if site is not None else (),
                tensor=a.name,
                index=at,
                severity="warning",
                why=rest if site is not None else "the kernel has loads of this tensor",
                fix="check the grid, the loop's end and the predicates of the last tiles",
            )
        )

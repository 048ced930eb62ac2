"""Races in LDS inside a workgroup: two waves touch a cell, one of them writes, and no barrier lies between.

Accesses are collected from barrier to barrier and judged at the barrier, so the verdict does not depend on the order
in which the simulator ran the waves. An interval without writes costs nothing. What a wave accesses between the signal
and the wait of a split barrier is ordered by neither side of it, so it is judged with both intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.memory import active_lanes, is_ascending
from flydsl.targets.sim.sanitize.shadow import THREAD_BITS, WRITTEN, Shadow, lanes_of, values_of


@dataclass
class Access:
    """One executed access: flat offsets, threads, workgroups of its lanes. `values`: stored bits, None for reads and
    atomics."""

    kind: str
    site: int
    nbytes: int
    off: Any
    thread: Any
    group: Any
    values: Any = None
    base: str | None = None

    def of_groups(self, groups: Any) -> Access:
        """Return the part of the access that belongs to the workgroups of a mask."""
        keep = groups[self.group]
        values = None if self.values is None else self.values[keep]
        return Access(
            self.kind, self.site, self.nbytes, self.off[keep], self.thread[keep], self.group[keep], values, self.base
        )


class LdsRaces:
    """The accesses of a slab since the last barrier."""

    def __init__(self, cell_bytes: int, wave_size: int):
        self.cell_bytes = cell_bytes
        self.wave_shift = wave_size.bit_length() - 1
        self.open: list[tuple | Access] = []
        self.between: list[tuple | Access] = []  # those of `open` that waves made after their signal
        self.carried: list[tuple | Access] = []  # those of the last interval
        self.signalled: set[int] = set()  # machines between signal and wait
        self.has_writes = False
        self.is_judging = True
        self.serial = 1
        self.by_serial: dict[int, Access] = {}

    def note(
        self,
        kind: str,
        machine: Any,
        site: int,
        off: Any,
        nbytes: int,
        m: Any,
        base: str | None,
        value: Any = None,
        n: Any = None,
    ) -> None:
        """Record an access; it is expanded to lanes only if the interval has a write."""
        self.add(machine, (kind, machine, site, off, nbytes, m, base, value, n))

    def add(self, machine: Any, entry: tuple | Access) -> None:
        """Record an access of a machine."""
        self.open.append(entry)
        self.has_writes |= kind_of(entry) != "read"
        if self.signalled and id(machine) in self.signalled:
            self.between.append(entry)

    def signal(self, machine: Any) -> None:
        """The waves of a machine have signalled a split barrier."""
        self.signalled.add(id(machine))

    def close(self, machine: Any, memory: Any, groups: Any = None) -> list:
        """Judge the interval that ends here and return its accesses; `groups`: the workgroups at the barrier, None for
        all."""
        (entries, self.open), (ended, self.between) = self.split(self.open, groups), self.split(self.between, groups)
        (judged, kept) = self.split(self.carried, groups)
        self.carried = [*kept, *ended]
        if groups is None:
            self.signalled.clear()
        for pending_machine in self.machines(entries, machine):
            entries += pending_machine.pending.outstanding()
        judged += entries
        if memory.barriers:
            judged = [e for e in judged if not polls_barrier(memory, e)]
        self.has_writes = any(kind_of(e) != "read" for e in (*self.open, *self.carried))
        if self.is_judging and any(kind_of(e) != "read" for e in judged) and not self.is_apart(memory, judged):
            writes = [expanded(e) for e in judged if kind_of(e) != "read"]
            self.judge(machine, memory, writes, [e for e in judged if kind_of(e) == "read"])
        return entries

    def split(self, entries: list, groups: Any) -> tuple[list, list]:
        """Return the accesses of the workgroups of a mask (None: all), and the rest."""
        if groups is None or not entries:
            return entries, []
        wide = list(map(expanded, entries))
        return [a.of_groups(groups) for a in wide], [part for a in wide if len((part := a.of_groups(~groups)).off)]

    def is_apart(self, memory: Any, entries: list) -> bool:
        """Return whether the interval's writes are all to different cells and its reads to others: the usual case,
        found with one flag per cell instead of marks."""
        if memory.touched is None:
            memory.touched = Shadow(len(memory.raw), self.cell_bytes)
        touched, expected = memory.touched, 0
        touched.clear_state()
        for e in entries:
            if kind_of(e) == "read":
                continue
            off, nbytes, m, lanes = extent(e)
            if lanes is None:
                return False
            touched.set_state(off, nbytes, m, WRITTEN)
            expected += lanes * nbytes
        if np.count_nonzero(touched.state.raw) << touched.shift != expected:
            return False
        for e in entries:
            if kind_of(e) == "read":
                off, nbytes, m, _ = extent(e)
                met = touched.any_written(off, nbytes)
                if np.any(met if m is None else met & m):
                    return False
        return True

    def machines(self, entries: list[tuple], machine: Any) -> list[Any]:
        found = {id(e[1]): e[1] for e in entries if isinstance(e, tuple)}
        found[id(machine)] = machine
        return [m for m in found.values() if m.pending.is_counting]

    def judge(self, machine: Any, memory: Any, writes: list[Access], reads: list[tuple]) -> None:
        """Mark the writes one after the other, then look at the reads."""
        if memory.shadow is None:
            memory.shadow = Shadow(len(memory.raw), self.cell_bytes)
        shadow = memory.shadow
        if self.serial > (1 << 20):
            shadow.marks.raw[:] = 255
            self.serial, self.by_serial = 1, {}
        start = self.serial << THREAD_BITS
        self.by_serial.clear()
        for access in writes:
            self.write(machine, shadow, access, start)
        for entry in reads:
            self.compare(machine, shadow, expanded(entry), start)

    def write(self, machine: Any, shadow: Shadow, access: Access, start: int) -> None:
        """Compare with earlier writes of the interval, mark, and find lanes of this access that met in one cell."""
        if len(access.off) == 0:
            return
        self.compare(machine, shadow, access, start)
        self.by_serial[self.serial] = access
        own = (self.serial << THREAD_BITS | access.thread).astype(np.int32)
        self.serial += 1
        shadow.set_marks(access.off, access.nbytes, own)
        if access.kind == "write" and not is_ascending(access.off, access.nbytes):
            back = shadow.get_marks(access.off, access.nbytes)
            met = back != own[:, None]
            if met.any():
                self.same_instruction(machine, access, back, met)

    def compare(self, machine: Any, shadow: Shadow, access: Access, start: int) -> None:
        """Report an access to cells that another wave wrote in this interval; two atomics are ordered."""
        if len(access.off) == 0:
            return
        old = shadow.get_marks(access.off, access.nbytes)
        recent = old >= start
        if not recent.any():
            return
        other = self.foreign(old, recent, access)
        if access.kind == "atomic":
            other &= ~self.is_atomic(old)
        if other.any():
            self.report(machine, access, old, other)

    def foreign(self, old: Any, recent: Any, access: Access) -> Any:
        """Return which cells were written by another wave."""
        wave = (old & (1 << THREAD_BITS) - 1) >> self.wave_shift
        return recent & (wave != (access.thread >> self.wave_shift)[:, None])

    def is_atomic(self, old: Any) -> Any:
        serials = old >> THREAD_BITS
        atomic = [s for s, a in self.by_serial.items() if a.kind == "atomic"]
        return np.isin(serials, atomic)

    # --- reports -----------------------------------------------------------------------------------------------------

    def same_instruction(self, machine: Any, access: Access, back: Any, met: Any) -> None:
        """Lanes of one store that wrote one cell: harmless only if all wrote the same bits."""
        reporter = machine.reporter
        if access.values is None:
            return
        differs = self.values_differ(access, met)
        first = differs if differs is not None else int(np.nonzero(met)[0][0])
        near = np.abs(access.off - access.off[first]) < access.nbytes
        rival = np.flatnonzero(near & (np.arange(len(near)) != first))
        same = differs is None
        values = "the same value" if same else "different values"
        reporter.add(
            Finding(
                "same-value-write" if same else "race",
                f"several threads write one LDS cell at the same time, with {values}",
                **self.at(machine, access, first),
                tensor=access.base,
                other=reporter.span(access.site),
                other_thread=machine.launch_thread(int(access.thread[rival[0]])) if len(rival) else None,
                other_block=machine.block_of(int(access.group[rival[0]])) if len(rival) else None,
                missing="no order between lanes of one store",
                severity="note" if same else "error",
                why="which lane's value stays is not defined",
                fix="let one thread write, or give each its own element",
                count=int(met.any(axis=1).sum()),
            )
        )

    def values_differ(self, access: Access, met: Any) -> int | None:
        """Return a lane whose value differs from that of the lane whose value stayed, or None."""
        key = access.off.astype(np.int64)
        order = np.lexsort((np.arange(len(key)), key))
        sorted_key, sorted_values = key[order], access.values[order]
        equal_key = sorted_key[1:] == sorted_key[:-1]
        unequal = (sorted_values[1:] != sorted_values[:-1]).any(axis=1)
        bad = np.flatnonzero(equal_key & unequal)
        if len(bad):
            return int(order[bad[0] + 1])
        partial = met.any(axis=1) & ~np.isin(key, sorted_key[1:][equal_key])
        return int(np.flatnonzero(partial)[0]) if partial.any() else None

    def report(self, machine: Any, access: Access, old: Any, other: Any) -> None:
        """Two waves, one cell, no barrier."""
        reporter = machine.reporter
        lane, cell = (int(x[0]) for x in np.nonzero(other))
        mark = int(old[lane, cell])
        writer = self.by_serial[mark >> THREAD_BITS]
        thread = mark & (1 << THREAD_BITS) - 1
        lines = [reporter.span(s) for s in (writer.site, access.site)]
        where = " and ".join(f"line {s.line}" for s in lines if s is not None)
        verb = "reads" if access.kind == "read" else "writes"
        base = access.base or writer.base
        span = machine.slab.lds.arrays.get(base)
        offset = int(access.off[lane]) % machine.slab.lds.pitch - (span[0] if span else 0)
        name = f"array `{base}` of LDS" if span else "LDS"
        reporter.add(
            Finding(
                "race",
                f"a wave {verb} byte {offset} of {name} while another wave writes it",
                **self.at(machine, access, lane),
                tensor=base,
                offset=offset,
                other=lines[0],
                other_thread=machine.launch_thread(thread),
                other_block=machine.block_of(int(access.group[lane])),
                missing=f"no barrier between {where}" if where else "no barrier between the two accesses",
                why="waves of a workgroup run in any order between barriers",
                fix="put a barrier between the two accesses, or use separate LDS for them",
                count=int(other.any(axis=1).sum()),
            )
        )

    def at(self, machine: Any, access: Access, lane: int) -> dict:
        """Return the place fields of a lane of an access."""
        reporter = machine.reporter
        thread = int(access.thread[lane])
        return {
            "span": reporter.span(access.site),
            "callers": reporter.callers(access.site),
            "block": machine.block_of(int(access.group[lane])),
            "thread": machine.launch_thread(thread),
            "wave": thread // machine.wave_size,
            "lane": thread % machine.wave_size,
        }


def polls_barrier(memory: Any, entry: tuple | Access) -> bool:
    """Return whether an access looks at, or arrives at, words that order the waves themselves."""
    access = None if kind_of(entry) == "write" else expanded(entry)
    return access is not None and access.nbytes <= 8 and bool(np.isin(access.off % memory.pitch & ~7, list(memory.barriers)).all())


def extent(entry: tuple | Access) -> tuple[Any, int, Any, int | None]:
    """Return (offsets, bytes, mask, active lanes) of an access; lanes are None where several share an offset."""
    if isinstance(entry, Access):
        return entry.off, entry.nbytes, None, len(entry.off)
    _, machine, _, off, nbytes, m, _, _, _ = entry
    if m is None:
        m = machine.mask0
    if off.ndim == 0 or off.shape[1] == 1 or off.shape[0] != machine.G:
        return off, nbytes, m, None
    shape = (machine.G, machine.B)
    return off, nbytes, m, machine.G * machine.B if m is None else len(active_lanes(m, shape))


def kind_of(entry: tuple | Access) -> str:
    """Return read, write or atomic."""
    return entry.kind if isinstance(entry, Access) else entry[0]


def expanded(entry: tuple | Access) -> Access:
    """Return an access with its lanes written out."""
    if isinstance(entry, Access):
        return entry
    kind, machine, site, off, nbytes, m, base, value, n = entry
    offsets, threads, groups = lanes_of(machine, off, m)
    values = values_of(machine, value, n, off, m) if value is not None else None
    return Access(kind, site, nbytes, offsets, threads, groups, values, base)

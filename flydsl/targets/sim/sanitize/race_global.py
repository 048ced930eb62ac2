"""Races in global memory: two workgroups of a launch, or two waves between barriers, touch one cell and one of them
writes.

A mark per cell says who wrote it last (`(workgroup + 1) << 11 | thread`, 0 for nobody), a second one who read it;
reads are marked only in tensors that the kernel both reads and writes. Workgroups run in no order, so any two of them
conflict; in kernels with fences or ordered atomics, reads of another workgroup's data may be ordered by those and are
not judged. A tensor copy acts as the first lane of its wave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.mask import expand
from flydsl.targets.sim.memory import Buffer, Region, gather, is_ascending, low_bits, scatter

THREAD_BITS = 11
THREAD_MASK = (1 << THREAD_BITS) - 1
SEVERAL_WAVES = THREAD_MASK  # thread field of a cell that several waves of one workgroup read
SEVERAL_GROUPS = 0x7FFFFFFF
GROUP_LIMIT = 1 << 20
LATER_LIMIT = 1 << 20  # lanes of stores that are kept to be numbered later


class RegionShadow:
    """Marks of one allocation."""

    def __init__(self, region: Region, cell_bytes: int):
        self.shift = cell_bytes.bit_length() - 1
        cells = (len(region.raw) >> self.shift) + 16
        self.cells = -(-cells // 16) * 16
        self.writers = Buffer(np.zeros(self.cells, np.int32).view(np.uint8))
        self._readers: Buffer | None = None
        self.sites: dict[int, int] = {}
        self.site_numbers: Buffer | None = None
        self.later_lanes = 0
        self.later: list[tuple] = []  # stores whose site numbers are not in the marks yet
        self.writes: list[Touch] = []  # of the open interval
        self.reads: list[Touch] = []

    @property
    def has_readers(self) -> bool:
        """Whether some read was marked."""
        return self._readers is not None

    @property
    def readers(self) -> Buffer:
        if self._readers is None:
            self._readers = Buffer(np.zeros(self.cells, np.int32).view(np.uint8))
        return self._readers

    def span(self, off: Any, nbytes: int) -> tuple[Any, int]:
        """Return (first cell, cells)."""
        if self.shift:
            fine = low_bits(off) | nbytes
            if fine & (1 << self.shift) - 1:
                self.refine((fine & -fine).bit_length() - 1)
        return off >> self.shift, max(1, nbytes >> self.shift)

    def refine(self, shift: int) -> None:
        """Split the cells; each part inherits the marks of the whole."""
        factor = 1 << self.shift - shift
        self.writers = Buffer(np.repeat(self.writers.raw.view(np.int32), factor).view(np.uint8))
        if self._readers is not None:
            self._readers = Buffer(np.repeat(self._readers.raw.view(np.int32), factor).view(np.uint8))
        if self.site_numbers is not None:
            self.site_numbers = Buffer(np.repeat(self.site_numbers.raw, factor))
        for touch in (*self.writes, *self.reads):
            touch.cell, touch.k, touch.run = touch.cell * factor, touch.k * factor, None
        self.cells *= factor
        self.shift = shift

    def note_site(self, site: int, cell: Any, k: int, m: Any) -> None:
        """Remember which store wrote the cells; free while there is only one store, and within a slab."""
        if site not in self.sites:
            self.sites[site] = len(self.sites)
            if len(self.sites) == 2:
                self.site_numbers = Buffer(np.zeros(self.cells, np.uint8))
        if self.site_numbers is not None:
            self.later.append((min(self.sites[site], 255), self.shift, cell, k, m))
            self.later_lanes += cell.size
            if self.later_lanes > LATER_LIMIT:
                self.number_sites()

    def number_sites(self) -> None:
        """Write the numbers of the stores since the last call, in order."""
        later, self.later, self.later_lanes = self.later, [], 0
        for number, shift, cell, k, m in later:
            finer = shift - self.shift
            cell, k = cell << finer, k << finer
            scatter(self.site_numbers, cell, np.full(k, number, np.uint8), k, low_bits(cell), m)

    def site_of(self, cell: int) -> int:
        """Return the store that wrote a cell last."""
        self.number_sites()
        number = 0 if self.site_numbers is None else int(self.site_numbers.raw[cell])
        return list(self.sites)[min(number, len(self.sites) - 1)]


@dataclass
class Touch:
    """One executed access: its first cell and number of cells per lane, the lanes' own marks, the mask, the stored
    value."""

    machine: Any
    site: int
    region: Region
    shadow: RegionShadow
    cell: Any
    k: int
    own: np.ndarray
    m: Any
    kind: str
    value: Any = None
    n: int | None = None
    run: slice | None = None  # all cells in order, without a gap
    lanes: Any = None  # the machine's lanes that do it, where its elements are no lanes (tensor copies)
    is_between: bool = False  # after the signal of a split barrier: its wait does not order it

    def find_run(self) -> None:
        """Note that the (ascending) cells of all lanes follow each other."""
        first, last = int(self.cell[0, 0]), int(self.cell[-1, -1])
        if last - first == (self.own.size - 1) * self.k:
            self.run = slice(first, last + self.k)

    @property
    def at(self) -> Any:
        """Byte offset of the first mark."""
        return self.cell << 2

    def marks(self, buffer: Buffer) -> np.ndarray:
        """Return the marks of the touched cells, (G, B, cells)."""
        if self.run is not None:
            return buffer.view(4)[self.run].reshape(*self.own.shape, self.k)
        if self.k == 1:
            return buffer.view(4).take(self.cell)[..., None]
        return gather(buffer, self.at, np.int32, self.k, low_bits(self.at))

    def set_marks(self, buffer: Buffer, marks: np.ndarray) -> None:
        """Write marks for the active lanes."""
        if self.run is not None:
            buffer.view(4)[self.run] = marks.reshape(-1)
        elif self.k == 1 and self.m is None:
            buffer.view(4)[self.cell] = marks[..., 0]
        else:
            self.scatter_marks(buffer, marks)

    def scatter_marks(self, buffer: Buffer, marks: np.ndarray) -> None:
        scatter(buffer, self.at, np.ascontiguousarray(marks), self.k, low_bits(self.at), self.m)

    @property
    def own_marks(self) -> np.ndarray:
        """The lanes' marks, once per cell."""
        return np.repeat(self.own[..., None], self.k, axis=-1) if self.k > 1 else self.own[..., None]

    def writes_what_is_there(self, bad: np.ndarray) -> bool:
        """Return whether the lanes of `bad` store the bits that memory already holds."""
        whole = self.value if self.n is not None else self.value[..., None]
        data = np.broadcast_to(whole, (*self.own.shape, whole.shape[-1]))[bad.any(axis=-1)]
        new = np.ascontiguousarray(data).view(np.uint8).reshape(len(data), -1)
        start = (np.broadcast_to(self.cell, self.own.shape)[bad.any(axis=-1)] << self.shadow.shift)[:, None]
        return bool((self.region.raw[start + np.arange(new.shape[1])] == new).all())


class GlobalRaces:
    """The race check of one launch."""

    def __init__(self, cell_bytes: int, wave_size: int, judges_reads: bool, tracked: set[int] | None):
        self.cell_bytes = cell_bytes
        self.wave_shift = wave_size.bit_length() - 1
        self.judges_reads = judges_reads
        self.tracked = tracked
        self.open: dict[int, RegionShadow] = {}
        self._own: dict[tuple, Any] = {}
        self.signalled: set[int] = set()  # machines between signal and wait

    def shadow(self, region: Region) -> RegionShadow:
        if region.shadow is None:
            region.shadow = RegionShadow(region, self.cell_bytes)
        return region.shadow

    def own(self, machine: Any) -> np.ndarray:
        """Return each lane's mark, (G, B)."""
        key = (machine.slab.first, machine.G, machine.first_thread, machine.B)
        found = self._own.get(key)
        if found is None:
            if len(self._own) > 64:
                self._own.clear()
            groups = (np.arange(machine.slab.first, machine.slab.first + machine.G) % GROUP_LIMIT + 1) << THREAD_BITS
            threads = machine.first_thread + np.arange(machine.B)
            found = self._own[key] = groups.astype(np.int32)[:, None] + threads.astype(np.int32)[None, :]
        return found

    def touch(self, machine: Any, site: int, region: Region, off: Any, nbytes: int, m: Any, kind: str) -> Touch:
        """Return the access as cells of the region's shadow."""
        shadow, own = self.shadow(region), self.own(machine)
        cell, k = shadow.span(off if off.shape == own.shape else np.broadcast_to(off, own.shape), nbytes)
        return Touch(machine, site, region, shadow, cell, k, own, m, kind)

    # --- accesses ----------------------------------------------------------------------------------------------------

    def store(
        self, machine: Any, site: int, region: Region, off: Any, nbytes: int, m: Any, value: Any, n: int | None
    ) -> None:
        """Check a store against earlier accesses, then mark its cells."""
        self.write(self.touch(machine, site, region, off, nbytes, m, "write"), value, n)

    def write(self, touch: Touch, value: Any, n: int | None) -> None:
        """Check and mark a store."""
        touch.value, touch.n = value, n
        shadow, m = touch.shadow, touch.m
        ascending = is_ascending(touch.cell, touch.k)
        if ascending and m is None:
            touch.find_run()
        if shadow.sites:
            self.judge(touch, touch.marks(shadow.writers), "writes")
        if shadow.has_readers:
            self.judge(touch, touch.marks(shadow.readers), "reads")
        own = touch.own_marks
        touch.set_marks(shadow.writers, own)
        shadow.note_site(touch.site, touch.cell, touch.k, m)
        if not ascending:
            met = touch.marks(shadow.writers) != own
            met = met if m is None else met & expand(m, touch.own.shape)[..., None]
            if met.any():
                self.same_instruction(touch, met)
        touch.value = None
        self.keep(touch, shadow.writes)

    def keep(self, touch: Touch, accesses: list[Touch]) -> None:
        """Keep an access for the waves of its workgroup, which it is unordered with up to the next barrier."""
        if touch.machine.num_waves > 1:
            touch.is_between = id(touch.machine) in self.signalled
            accesses.append(touch)
            self.open[id(touch.shadow)] = touch.shadow

    def load(self, machine: Any, site: int, region: Region, off: Any, nbytes: int, m: Any) -> None:
        """Check a load against earlier writes, and mark it where the tensor is written too."""
        if self.tracked is not None and region.number not in self.tracked:
            return
        self.read(self.touch(machine, site, region, off, nbytes, m, "read"))

    def read(self, touch: Touch) -> None:
        """Check and mark a load."""
        if touch.shadow.sites:
            self.judge(touch, touch.marks(touch.shadow.writers), "writes")
        self.mark_readers(touch)
        self.keep(touch, touch.shadow.reads)

    def tile(self, machine: Any, site: int, region: Region, off: Any, tile: Any, value: Any = None) -> None:
        """A tensor copy reads elements, or (with a value) writes them."""
        if value is None and self.tracked is not None and region.number not in self.tracked:
            return
        first = tile.wave * machine.wave_size
        own = np.full((1, len(off)), self.own(machine)[tile.group, first], np.int32)
        shadow = self.shadow(region)
        cell, k = shadow.span(off[None, :], tile.size)
        lanes = np.zeros((machine.G, machine.B), bool)
        lanes[tile.group, first] = True
        touch = Touch(machine, site, region, shadow, cell, k, own, None, "write" if value is not None else "read", lanes=lanes)
        if value is None:
            self.read(touch)
        else:
            self.write(touch, value[None, :], None)

    def mark_readers(self, touch: Touch) -> None:
        """Mark cells as read; several waves and several workgroups have marks of their own."""
        own, readers = touch.own_marks, touch.shadow.readers
        for _ in range(2):  # the second time for lanes of this load that met in a cell
            before = touch.marks(readers)
            marks = own
            if before.any():
                group = own >> THREAD_BITS
                marks = np.where(before >> THREAD_BITS == group, group << THREAD_BITS | SEVERAL_WAVES, SEVERAL_GROUPS)
                same_wave = own >> self.wave_shift == before >> self.wave_shift
                marks = np.where((before == 0) | same_wave, own, marks).astype(np.int32)
            if np.array_equal(marks, before):
                return
            touch.set_marks(readers, marks)

    def atomic(self, machine: Any, site: int, region: Region, off: Any, nbytes: int, lanes: Any, shape: tuple) -> None:
        """Atomics conflict with plain writes of other workgroups only; their lanes arrive as flat numbers."""
        if region.shadow is None or not self.judges_reads:
            return
        shadow = region.shadow
        cell, k = shadow.span(off, nbytes)
        old = gather(shadow.writers, cell << 2, np.int32, k, low_bits(cell << 2))
        own = np.broadcast_to(self.own(machine), shape).reshape(-1)[lanes]
        other = (old > 0) & (old >> THREAD_BITS != (own >> THREAD_BITS)[:, None])
        if other.any():
            lane, part = (int(x[0]) for x in np.nonzero(other))
            flags = np.zeros(shape, bool)
            flags.flat[lanes[lane]] = True
            touch = Touch(machine, site, region, shadow, cell, k, own, None, "atomic")
            self.report(touch, int(cell[lane]) + part, int(old[lane, part]), flags, "writes", False)

    # --- verdicts ----------------------------------------------------------------------------------------------------

    def judge(self, touch: Touch, old: np.ndarray, earlier: str) -> None:
        """Compare marks of earlier writes or reads with the accessing lanes."""
        if not old.any():
            return
        own = touch.own[..., None]
        seen = old > 0
        foreign = seen & (old >> THREAD_BITS != own >> THREAD_BITS)
        if touch.m is not None:
            active = expand(touch.m, touch.own.shape)[..., None]
            seen, foreign = seen & active, foreign & active
        if foreign.any() and (self.judges_reads or (touch.kind == "write" and earlier == "writes")):
            self.report_first(touch, old, foreign, earlier, False)
            return
        inside = seen & ~foreign & (old >> self.wave_shift != own >> self.wave_shift)
        if inside.any():
            self.judge_interval(touch, old, inside, earlier)

    def judge_interval(self, touch: Touch, old: np.ndarray, inside: np.ndarray, earlier: str) -> None:
        """Waves of one workgroup: it counts only if the other access lies after the last barrier."""
        key, mine = self.keys(touch, inside)
        for other in touch.shadow.writes if earlier == "writes" else touch.shadow.reads:
            active = np.broadcast_to(expand(other.m, other.own.shape)[..., None], (*other.own.shape, other.k))
            theirs, waves = self.keys(other, active)
            order = np.argsort(theirs, kind="stable")
            position = np.minimum(np.searchsorted(theirs[order], key), len(theirs) - 1)
            hit = (theirs[order][position] == key) & (waves[order][position] != mine)
            if hit.any():
                confirmed = np.zeros(inside.shape, bool)
                confirmed[tuple(x[hit] for x in np.nonzero(inside))] = True
                self.report_first(touch, old, confirmed, earlier, True)
                return

    def keys(self, touch: Touch, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (cell and workgroup in one number, wave) of the chosen cells."""
        cells = touch.cell[..., None] + np.arange(touch.k)
        cells = np.broadcast_to(cells, chosen.shape)[chosen].astype(np.int64)
        own = np.broadcast_to(touch.own[..., None], chosen.shape)[chosen]
        return cells << 21 | own >> THREAD_BITS, own >> self.wave_shift

    def signal(self, machine: Any) -> None:
        """The waves of a machine have signalled a split barrier."""
        self.signalled.add(id(machine))

    def close(self) -> None:
        """A barrier: the workgroups' own accesses so far are ordered, except those between signal and wait."""
        for shadow in self.open.values():
            shadow.writes, shadow.reads = ([t for t in side if t.is_between] for side in (shadow.writes, shadow.reads))
            for touch in (*shadow.writes, *shadow.reads):
                touch.is_between = False
        self.open = {k: s for k, s in self.open.items() if s.writes or s.reads}
        self.signalled.clear()

    # --- reports -----------------------------------------------------------------------------------------------------

    def report_first(self, touch: Touch, old: np.ndarray, bad: np.ndarray, earlier: str, inside: bool) -> None:
        """Report the first of the conflicting cells."""
        g, b, part = (int(x[0]) for x in np.nonzero(bad))
        cell = int(np.broadcast_to(touch.cell, bad.shape[:-1])[g, b]) + part
        same = touch.kind == "write" and earlier == "writes" and touch.writes_what_is_there(bad)
        self.report(touch, cell, int(old[g, b, part]), bad.any(axis=-1), earlier, inside, same)

    def report(
        self, touch: Touch, cell: int, mark: int, lanes: Any, earlier: str, inside: bool, same: bool = False
    ) -> None:
        """`mark` is the other side's; `same`: both store the same bits, so only the order is chance."""
        machine, shadow, a = touch.machine, touch.shadow, touch.region.allocation
        reporter = machine.reporter
        offset = (cell << shadow.shift) + touch.region.origin - touch.region.start
        index = a.coordinate(offset)
        other_site = shadow.site_of(cell) if earlier == "writes" and shadow.sites else touch.site
        if earlier == "reads" and shadow.reads:
            other_site = shadow.reads[-1].site
        verb = {"read": "reads", "write": "writes", "atomic": "updates atomically"}[touch.kind]
        who = "wave of the workgroup" if inside else "workgroup"
        where = index if index is not None else f"byte {offset}"
        equal = ", with the same value" if same else ""
        known = mark != SEVERAL_GROUPS
        group, thread = (mark >> THREAD_BITS) - 1, mark & THREAD_MASK
        fix = (
            "put a barrier between them" if inside else "give each workgroup its own elements, use atomics, or split it"
        )
        reporter.add(
            Finding(
                "same-value-write" if same else "race",
                f"one {who} {verb} `{a.name}` at {where} and another one {earlier} it{equal}",
                **(reporter.at(machine, touch.site, lanes if touch.lanes is None else touch.lanes)),
                tensor=a.name,
                index=index,
                offset=offset,
                other=reporter.span(other_site),
                other_block=machine.launch_block(group) if known else None,
                other_thread=machine.launch_thread(thread) if known and thread != SEVERAL_WAVES else None,
                missing="no barrier between the two accesses" if inside else "nothing orders workgroups of one launch",
                severity="note" if same else "error",
                why="they run in any order, so the result depends on chance",
                fix=fix,
            )
        )

    def same_instruction(self, touch: Touch, met: np.ndarray) -> None:
        """Lanes of one store that wrote one cell."""
        own = touch.own
        whole = touch.value if touch.n is not None else touch.value[..., None]
        data = np.ascontiguousarray(np.broadcast_to(whole, (*own.shape, whole.shape[-1]))).view(np.uint8)
        chosen = np.flatnonzero(expand(touch.m, own.shape).reshape(-1))
        flat = np.broadcast_to(touch.cell, own.shape).reshape(-1)
        order = chosen[np.argsort(flat[chosen], kind="stable")]
        adjacent = flat[order][1:] == flat[order][:-1]
        bits = data.reshape(own.size, -1)[order]
        unequal = adjacent & (bits[1:] != bits[:-1]).any(axis=1)
        same = bool(adjacent.any() and not unequal.any())
        first = int(order[1:][unequal][0]) if unequal.any() else int(np.flatnonzero(met.any(axis=-1).reshape(-1))[0])
        rivals = order[(flat[order] == flat[first]) & (order != first)]
        self.report_meeting(touch, first, int(rivals[0]) if len(rivals) else None, same, int(met.any(axis=-1).sum()))

    def report_meeting(self, touch: Touch, first: int, rival: int | None, same: bool, count: int) -> None:
        """Two lanes (flat numbers) of one store met in a cell."""
        machine, a = touch.machine, touch.region.allocation
        reporter = machine.reporter
        flags = np.zeros(touch.own.shape, bool)
        flags.flat[first] = True
        if touch.lanes is not None:
            flags, rival = touch.lanes, None
        cell = int(np.broadcast_to(touch.cell, touch.own.shape).flat[first])
        offset = (cell << touch.shadow.shift) + touch.region.origin - touch.region.start
        g, b = divmod(rival, machine.B) if rival is not None else (None, None)
        apart = g is not None and g != first // machine.B
        who = "threads of several workgroups" if apart else "several threads"
        reporter.add(
            Finding(
                "same-value-write" if same else "race",
                f"{who} write one element of `{a.name}` at the same time{', with the same value' if same else ''}",
                **(reporter.at(machine, touch.site, flags) | {"count": count}),
                tensor=a.name,
                index=a.coordinate(offset),
                offset=offset,
                other=reporter.span(touch.site),
                other_block=machine.block_of(g) if g is not None else None,
                other_thread=machine.thread_of(b) if b is not None else None,
                missing="nothing orders workgroups of one launch" if apart else "no order between lanes of one store",
                severity="note" if same else "error",
                why="which value stays is not defined",
                fix="let one thread write, or give each its own element",
            )
        )

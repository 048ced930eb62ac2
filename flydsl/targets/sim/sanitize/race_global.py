"""Races in global memory: two workgroups of a launch, or two waves between barriers, touch one cell and one of them
writes.

A mark per cell says who wrote it last (`(workgroup + 1) << 11 | thread`, 0 for nobody), a second one who read it;
reads are marked only in tensors that the kernel both
reads and writes. Workgroups run in no order, so any two of them conflict; in kernels with fences or ordered atomics,
reads of another workgroup's
data may be ordered by those and are not judged.
"""

from __future__ import annotations

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
        self.writes: list[tuple] = []  # of the open interval: (machine, site, cells, lanes)
        self.reads: list[tuple] = []

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
        self.writes, self.reads = (
            [(a, s, c * factor, k * factor, m) for a, s, c, k, m in x] for x in (self.writes, self.reads)
        )
        self.cells *= factor
        self.shift = shift

    def note_site(self, site: int, cell: Any, k: int, m: Any) -> None:
        """Remember which store wrote the cells; free while there is only one store."""
        if site not in self.sites:
            self.sites[site] = len(self.sites)
            if len(self.sites) == 2:
                self.site_numbers = Buffer(np.zeros(self.cells, np.uint8))
        if self.site_numbers is not None:
            number = np.full(k, min(self.sites[site], 255), np.uint8)
            scatter(self.site_numbers, cell, number, k, low_bits(cell), m)

    def site_of(self, cell: int) -> int:
        """Return the store that wrote a cell last."""
        number = 0 if self.site_numbers is None else int(self.site_numbers.raw[cell])
        return list(self.sites)[min(number, len(self.sites) - 1)]


class GlobalRaces:
    """The race check of one launch."""

    def __init__(self, cell_bytes: int, wave_size: int, judges_reads: bool, tracked: set[int] | None):
        self.cell_bytes = cell_bytes
        self.wave_shift = wave_size.bit_length() - 1
        self.judges_reads = judges_reads
        self.tracked = tracked
        self.open: dict[int, RegionShadow] = {}
        self._own: dict[tuple, Any] = {}

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

    # --- accesses ----------------------------------------------------------------------------------------------------

    def store(
        self, machine: Any, site: int, region: Region, off: Any, nbytes: int, m: Any, value: Any, n: int | None
    ) -> None:
        """Check a store against earlier accesses, then mark its cells."""
        shadow = self.shadow(region)
        own = self.own(machine)
        off = np.broadcast_to(off, own.shape)
        cell, k = shadow.span(off, nbytes)
        at = cell << 2
        bits = low_bits(at)
        old = gather(shadow.writers, at, np.int32, k, bits) if shadow.sites else None
        if shadow.sites and old.max() > 0:
            self.judge(machine, site, region, shadow, cell, old, own, m, "write", "writes")
        if shadow._readers is not None:
            readers = gather(shadow.readers, at, np.int32, k, bits)
            if readers.max() > 0:
                self.judge(machine, site, region, shadow, cell, readers, own, m, "write", "reads")
        wide = np.repeat(own[..., None], k, axis=-1) if k > 1 else own[..., None]
        scatter(shadow.writers, at, wide, k, bits, m)
        shadow.note_site(site, cell, k, m)
        met = np.False_ if is_ascending(cell, k) else gather(shadow.writers, at, np.int32, k, bits) != wide
        if met.any():
            met = met if m is None else met & expand(m, own.shape)[..., None]
            if met.any():
                self.same_instruction(machine, site, region, cell, met, m, value, n)
        shadow.writes.append((machine, site, cell, k, m))
        self.open[id(shadow)] = shadow

    def load(self, machine: Any, site: int, region: Region, off: Any, nbytes: int, m: Any) -> None:
        """Check a load against earlier writes, and mark it where the tensor is written too."""
        if self.tracked is not None and region.number not in self.tracked:
            return
        shadow = self.shadow(region)
        own = self.own(machine)
        off = np.broadcast_to(off, own.shape)
        cell, k = shadow.span(off, nbytes)
        at = cell << 2
        bits = low_bits(at)
        old = gather(shadow.writers, at, np.int32, k, bits)
        if old.max() > 0:
            self.judge(machine, site, region, shadow, cell, old, own, m, "read", "writes")
        self.mark_readers(shadow, at, k, bits, own, m)
        shadow.reads.append((machine, site, cell, k, m))
        self.open[id(shadow)] = shadow

    def mark_readers(self, shadow: RegionShadow, at: Any, k: int, bits: int, own: Any, m: Any) -> None:
        """Mark cells as read; several waves and several workgroups have marks of their own."""
        wide = np.repeat(own[..., None], k, axis=-1) if k > 1 else own[..., None]
        for _ in range(2):  # the second time for lanes of this load that met in a cell
            before = gather(shadow.readers, at, np.int32, k, bits)
            wave, other = wide >> self.wave_shift, before >> self.wave_shift
            if (before == 0).all():
                marks = wide
            else:
                group = wide >> THREAD_BITS
                marks = np.where(before >> THREAD_BITS == group, group << THREAD_BITS | SEVERAL_WAVES, SEVERAL_GROUPS)
                marks = np.where((before == 0) | (wave == other), wide, marks).astype(np.int32)
            if np.array_equal(marks, before):
                return
            scatter(shadow.readers, at, np.ascontiguousarray(marks), k, bits, m)

    def atomic(self, machine: Any, site: int, region: Region, off: Any, nbytes: int, lanes: Any, shape: tuple) -> None:
        """Atomics conflict with plain writes of other workgroups only."""
        if region.shadow is None or not self.judges_reads:
            return
        shadow = region.shadow
        cell, k = shadow.span(off, nbytes)
        at = cell << 2
        old = gather(shadow.writers, at, np.int32, k, low_bits(at))
        own = np.broadcast_to(self.own(machine), shape).reshape(-1)[lanes]
        other = (old > 0) & (old >> THREAD_BITS != (own >> THREAD_BITS)[:, None])
        if other.any():
            lane, part = (int(x[0]) for x in np.nonzero(other))
            flags = np.zeros(shape, bool)
            flags.flat[lanes[lane]] = True
            self.report(
                machine,
                site,
                region,
                shadow,
                int(cell[lane]) + part,
                int(old[lane, part]),
                flags,
                "atomic",
                "writes",
                False,
            )

    # --- verdicts ----------------------------------------------------------------------------------------------------

    def judge(
        self,
        machine: Any,
        site: int,
        region: Region,
        shadow: RegionShadow,
        cell: Any,
        old: Any,
        own: Any,
        m: Any,
        kind: str,
        earlier: str,
    ) -> None:
        """Compare marks with the accessing lanes."""
        seen = old > 0
        foreign = seen & (old >> THREAD_BITS != (own >> THREAD_BITS)[..., None])
        if m is not None:
            active = expand(m, own.shape)[..., None]
            seen, foreign = seen & active, foreign & active
        if foreign.any() and (self.judges_reads or (kind == "write" and earlier == "writes")):
            self.report_first(machine, site, region, shadow, cell, old, foreign, kind, earlier, False)
            return
        if not (shadow.writes if earlier == "writes" else shadow.reads):
            return
        inside = seen & ~foreign & (old >> self.wave_shift != (own >> self.wave_shift)[..., None])
        if inside.any():
            self.judge_interval(machine, site, region, shadow, cell, old, inside, own, kind, earlier)

    def judge_interval(
        self,
        machine: Any,
        site: int,
        region: Region,
        shadow: RegionShadow,
        cell: Any,
        old: Any,
        inside: Any,
        own: Any,
        kind: str,
        earlier: str,
    ) -> None:
        """Waves of one workgroup: it counts only if the other access lies after the last barrier."""
        k = inside.shape[-1]
        touched = cell[..., None] + np.arange(k)
        group = np.broadcast_to(own[..., None] >> self.wave_shift, inside.shape)
        key = self.keys(touched[inside], group[inside] >> (THREAD_BITS - self.wave_shift))
        mine = group[inside]
        for other_machine, _, other_cell, other_k, other_m in shadow.writes if earlier == "writes" else shadow.reads:
            other_own = self.own(other_machine)
            cells = np.broadcast_to(other_cell[..., None] + np.arange(other_k), (*other_own.shape, other_k))
            waves = np.broadcast_to(other_own[..., None] >> self.wave_shift, cells.shape)
            active = expand(other_m, other_own.shape)
            theirs = self.keys(cells[active].reshape(-1), waves[active].reshape(-1) >> (THREAD_BITS - self.wave_shift))
            their_waves = waves[active].reshape(-1)
            order = np.argsort(theirs, kind="stable")
            position = np.minimum(np.searchsorted(theirs[order], key), len(theirs) - 1)
            hit = (theirs[order][position] == key) & (their_waves[order][position] != mine)
            if hit.any():
                confirmed = np.zeros(inside.shape, bool)
                confirmed[tuple(x[hit] for x in np.nonzero(inside))] = True
                self.report_first(machine, site, region, shadow, cell, old, confirmed, kind, earlier, True)
                return

    @staticmethod
    def keys(cells: Any, groups: Any) -> np.ndarray:
        return cells.astype(np.int64) << 20 | groups.astype(np.int64)

    def close(self) -> None:
        """A barrier: the workgroups' own accesses so far are ordered."""
        for shadow in self.open.values():
            shadow.writes, shadow.reads = [], []
        self.open.clear()

    # --- reports -----------------------------------------------------------------------------------------------------

    def report_first(
        self,
        machine: Any,
        site: int,
        region: Region,
        shadow: RegionShadow,
        cell: Any,
        old: Any,
        bad: Any,
        kind: str,
        earlier: str,
        inside: bool,
    ) -> None:
        g, b, part = (int(x[0]) for x in np.nonzero(bad))
        at = int(np.broadcast_to(cell, bad.shape[:-1])[g, b]) + part
        self.report(machine, site, region, shadow, at, int(old[g, b, part]), bad.any(axis=-1), kind, earlier, inside)

    def report(
        self,
        machine: Any,
        site: int,
        region: Region,
        shadow: RegionShadow,
        cell: int,
        mark: int,
        lanes: Any,
        kind: str,
        earlier: str,
        inside: bool,
    ) -> None:
        reporter = machine.reporter
        a = region.allocation
        offset = (cell << shadow.shift) + region.origin - region.start
        index = a.coordinate(offset)
        other_site = (
            shadow.site_of(cell)
            if earlier == "writes" and shadow.sites
            else (shadow.reads[-1][1] if shadow.reads else site)
        )
        verb = {"read": "reads", "write": "writes", "atomic": "updates atomically"}[kind]
        who = "wave of the workgroup" if inside else "workgroup"
        where = index if index is not None else f"byte {offset}"
        known = mark != SEVERAL_GROUPS
        group, thread = (mark >> THREAD_BITS) - 1, mark & THREAD_MASK
        reporter.add(
            Finding(
                "race",
                f"one {who} {verb} `{a.name}` at {where} and another one {earlier} it",
                **reporter.at(machine, site, lanes),
                tensor=a.name,
                index=index,
                offset=offset,
                other=reporter.span(other_site),
                other_block=machine.launch_block(group) if known else None,
                other_thread=machine.launch_thread(thread) if known and thread != SEVERAL_WAVES else None,
                missing="no barrier between the two accesses" if inside else "nothing orders workgroups of one launch",
                why="they run in any order, so the result depends on chance",
                fix="put a barrier between them"
                if inside
                else "give each workgroup its own elements, use atomics, or split the launch",
            )
        )

    def same_instruction(
        self, machine: Any, site: int, region: Region, cell: Any, met: Any, m: Any, value: Any, n: int | None
    ) -> None:
        """Lanes of one store that wrote one cell."""
        own = self.own(machine)
        whole = value if n is not None else value[..., None]
        data = (
            np.ascontiguousarray(np.broadcast_to(whole, (*own.shape, whole.shape[-1])))
            .view(np.uint8)
            .reshape(own.size, -1)
        )
        chosen = np.flatnonzero(expand(m, own.shape).reshape(-1))
        cells = np.broadcast_to(cell, own.shape).reshape(-1)[chosen]
        order = np.argsort(cells, kind="stable")
        adjacent = cells[order][1:] == cells[order][:-1]
        unequal = adjacent & (data[chosen][order][1:] != data[chosen][order][:-1]).any(axis=1)
        partial = not adjacent.any()
        first = (
            int(chosen[order[1:][unequal][0]])
            if unequal.any()
            else int(np.flatnonzero(met.any(axis=-1).reshape(-1))[0])
        )
        same = not unequal.any() and not partial
        rivals = chosen[(cells == np.broadcast_to(cell, own.shape).reshape(-1)[first]) & (chosen != first)]
        reporter = machine.reporter
        flags = np.zeros(own.shape, bool)
        flags.flat[first] = True
        g, b = divmod(int(rivals[0]), machine.B) if len(rivals) else (0, 0)
        a = region.allocation
        offset = (
            (int(np.broadcast_to(cell, own.shape).flat[first]) << self.shadow(region).shift)
            + region.origin
            - region.start
        )
        groups = {int(r) // machine.B for r in rivals} | {first // machine.B}
        who = "threads of several workgroups" if len(groups) > 1 else "several threads"
        reporter.add(
            Finding(
                "same-value-write" if same else "race",
                f"{who} write one element of `{a.name}` at the same time{', with the same value' if same else ''}",
                **(reporter.at(machine, site, flags) | {"count": int(met.any(axis=-1).sum())}),
                tensor=a.name,
                index=a.coordinate(offset),
                offset=offset,
                other=reporter.span(site),
                other_block=machine.block_of(g) if len(rivals) else None,
                other_thread=machine.thread_of(b) if len(rivals) else None,
                missing="no order between lanes of one store"
                if len(groups) == 1
                else "nothing orders workgroups of one launch",
                severity="note" if same else "error",
                why="which value stays is not defined",
                fix="let one thread write, or give each its own element",
            )
        )

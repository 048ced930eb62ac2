"""The watcher of a launch: passes each memory access to the checks that are on."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.sanitize.banks import BankReport
from flydsl.targets.sim.sanitize.footprint import Footprints
from flydsl.targets.sim.sanitize.holes import report_holes
from flydsl.targets.sim.sanitize.needless import Needless
from flydsl.targets.sim.sanitize.race_global import GlobalRaces
from flydsl.targets.sim.sanitize.race_lds import Access, LdsRaces
from flydsl.targets.sim.sanitize.stale import StaleTiles
from flydsl.targets.sim.sanitize.uninit import UninitCheck
from flydsl.targets.sim.sanitize.unread import ReadMap, UnreadLds
from flydsl.targets.sim.streams import order


def make_watch(launch: Any, text: Any) -> Watch | None:
    """Return the watcher of a launch, or None when no check needs one."""
    options = launch.options
    checks = ("uninit", "race", "waits", "banks", "holes", "needless", "stale", "unread")
    if not any(options.has(c) for c in checks) and not (options.has("streams") and order.is_concurrent):
        return None
    return Watch(launch, text)


class Watch:
    """Hooks of the memories; a check that is off is None."""

    def __init__(self, launch: Any, text: Any):
        options = launch.options
        self.launch = launch
        self.text = text
        self.state = UninitCheck(text.cell_bytes, options.has("uninit"), options.has("waits")) if (
            options.has("uninit") or options.has("waits")
        ) else None  # fmt: skip
        self.has_race = options.has("race")
        self.races: GlobalRaces | None = None
        if self.has_race or options.has("holes"):
            self.races = GlobalRaces(
                text.cell_bytes["g"], launch.wave_size, not text.has_sync and self.has_race, self.tracked()
            )
        self.has_several_waves = -(-np.prod(launch.config.block) // launch.wave_size) > 1
        self.banks = BankReport(launch.arch) if options.has("banks") else None
        self.lds_races: LdsRaces | None = None
        self.footprints = Footprints() if options.has("streams") and order.is_concurrent else None
        self.read_map = ReadMap() if options.has("unread") else None
        self.unread_lds = UnreadLds() if options.has("unread") else None
        self.stale: StaleTiles | None = None
        self.needless: Needless | None = None
        if options.has("needless"):
            judges = self.has_several_waves and not self.shares_global()
            self.needless = Needless(text.cell_bytes["l"], launch.wave_size, judges)

    def shares_global(self) -> bool:
        """Return whether waves may hand over data through global memory, which barriers then order as well."""
        reads, writes = set(self.text.reads), set(self.text.writes)
        if self.text.has_sync or (writes and None in reads) or (reads and None in writes):
            return True
        bases = self.launch.bases
        read, written = ({bases[i].number for i in s if bases[i] is not None} for s in (reads, writes))
        return bool(read & written)

    def tracked(self) -> set[int] | None:
        """Return the allocations whose reads matter: those that are written too (None: all)."""
        if None in self.text.writes:
            return None
        bases = self.launch.bases
        return {bases[i].number for i in self.text.writes if bases[i] is not None}

    # --- intervals ---------------------------------------------------------------------------------------------------

    def start_slab(self, slab: Any) -> None:
        """New workgroups: their LDS has no history."""
        if self.launch.options.has("stale"):
            self.stale = StaleTiles(self.text.cell_bytes["l"], len(slab.lds.raw))
        if self.unread_lds is not None:
            self.unread_lds.start_slab(slab.lds)
        collects = self.has_race or any(c is not None for c in (self.needless, self.stale, self.unread_lds))
        self.lds_races = LdsRaces(self.text.cell_bytes["l"], self.launch.wave_size) if collects else None
        if self.lds_races is not None:
            self.lds_races.is_judging = self.has_race
        if self.needless is not None:
            self.needless.start_slab()
        if self.races is not None:
            self.races.close()

    def barrier(self, machine: Any, site: int, m: Any, is_fenced: bool) -> None:
        """Waves in lockstep are all here; waves that run apart meet in `phase`."""
        if machine.B == self.launch_threads(machine):
            groups = None
            if m is not None and m is not machine.mask0:
                full = np.broadcast_to(m, (machine.G, machine.B))
                groups = full.any(axis=1)
                groups = None if groups.all() else groups
                if groups is not None and self.needless is not None:
                    self.needless.skip(machine, site)
            self.end_interval(machine, groups, (site,))

    def signal(self, machine: Any) -> None:
        """The waves of a machine signal a split barrier, whose wait is yet to come."""
        if self.lds_races is not None:
            self.lds_races.signal(machine)
        if self.races is not None:
            self.races.signal(machine)

    def launch_threads(self, machine: Any) -> int:
        total = int(np.prod(machine.launch.config.block))
        return -(-total // machine.wave_size) * machine.wave_size

    def phase(self, machines: list[Any], sites: tuple[int, ...] = ()) -> None:
        """All waves have arrived at their barrier."""
        self.end_interval(machines[0], None, sites)

    def end_interval(self, machine: Any, groups: Any, sites: tuple[int, ...] = ()) -> None:
        if self.state is not None and machine.slab.lds.shadow is not None:
            machine.slab.lds.shadow.complete()
        if self.lds_races is not None:
            entries = self.lds_races.close(machine, machine.slab.lds, groups)
            if self.needless is not None and groups is None:
                self.needless.interval(machine, sites, entries)
            if self.stale is not None and groups is None:
                self.stale.interval(machine, entries)
            if self.unread_lds is not None:
                self.unread_lds.interval(entries)
        if self.races is not None and groups is None:
            self.races.close()

    def finish(self, launch: Any) -> None:
        """The launch is over."""
        if launch.options.has("holes"):
            report_holes(launch, self.text)
        if self.read_map is not None:
            self.read_map.report(launch, self.text)
            self.unread_lds.finish(launch)
        if self.needless is not None:
            self.needless.finish(launch.reporter)

    def waited(self, machine: Any, site: int, found_something: bool) -> None:
        """A wait for asynchronous copies was executed."""
        if self.needless is not None:
            self.needless.wait(machine, site, found_something)

    # --- global ------------------------------------------------------------------------------------------------------

    def global_load(self, machine: Any, site: int, region: Any, off: Any, nbytes: int, m: Any) -> None:
        if self.races is not None and not region.is_mapping:
            self.races.load(machine, site, region, off, nbytes, m)
        self.global_read(region, off, nbytes, m, site)

    def global_read(self, region: Any, off: Any, nbytes: int, m: Any, site: int) -> None:
        """Bytes of a tensor are read; tiles of the tensor DMA arrive only here."""
        if self.read_map is not None and not region.is_mapping:
            self.read_map.note(self.launch.reporter, region, off, nbytes, m, site)
        if self.footprints is not None:
            self.footprints.note("read", region, off, nbytes, m, site)

    def global_store(
        self, machine: Any, site: int, region: Any, off: Any, nbytes: int, m: Any, value: Any, n: int | None
    ) -> None:
        if self.races is not None and not region.is_mapping:
            self.races.store(machine, site, region, off, nbytes, m, value, n)
        if self.footprints is not None:
            self.footprints.note("write", region, off, nbytes, m, site)

    def global_atomic(
        self, machine: Any, site: int, region: Any, off: Any, nbytes: int, lanes: Any, shape: tuple
    ) -> None:
        if self.races is not None and not region.is_mapping:
            self.races.atomic(machine, site, region, off, nbytes, lanes, shape)
        if self.footprints is not None:
            self.footprints.note("write", region, off, nbytes, None, site)

    # --- LDS ---------------------------------------------------------------------------------------------------------

    def lds_load(
        self, machine: Any, site: int, memory: Any, addr: Any, off: Any, nbytes: int, m: Any, base: str | None
    ) -> None:
        if self.state is not None:
            self.state.load(machine, site, memory, "l", addr, off, nbytes, m, base)
        if self.lds_races is not None and (self.has_several_waves or self.unread_lds is not None):
            self.lds_races.note("read", machine, site, off, nbytes, m, base)
        if self.banks is not None:
            self.banks.note(machine, site, "read", addr, nbytes, m)

    def lds_store(
        self,
        machine: Any,
        site: int,
        memory: Any,
        addr: Any,
        off: Any,
        nbytes: int,
        m: Any,
        value: Any,
        n: int | None,
        base: str | None,
    ) -> None:
        if self.state is not None:
            self.state.store(memory, "l", off, nbytes, m)
        if self.lds_races is not None:
            self.lds_races.note("write", machine, site, off, nbytes, m, base, value, n)
        if self.banks is not None:
            self.banks.note(machine, site, "write", addr, nbytes, m)

    def lds_atomic(
        self, machine: Any, site: int, memory: Any, off: Any, nbytes: int, lanes: Any, shape: tuple, base: str | None
    ) -> None:
        """Atomics arrive as flat lanes."""
        if self.state is not None:
            self.state.store(memory, "l", off, nbytes, None)
        if self.lds_races is not None:
            threads = machine.first_thread + lanes % shape[1]
            access = Access("atomic", site, nbytes, off, threads, lanes // shape[1], None, base)
            self.lds_races.add(machine, access)

    def lds_pending(self, machine: Any, site: int, memory: Any, off: Any, nbytes: int, m: Any) -> None:
        if self.state is not None:
            self.state.pending(memory, off, nbytes, m)

    def lds_landed(self, machine: Any, site: int, memory: Any, off: Any, value: Any, n: int | None, m: Any) -> None:
        nbytes = value.dtype.itemsize * (n or 1)
        if self.state is not None:
            self.state.store(memory, "l", off, nbytes, m)
        if self.lds_races is not None:
            self.lds_races.note("write", machine, site, off, nbytes, m, None, value, n)

    def landed_in_order(self, memory: Any, off: Any, nbytes: int, m: Any) -> None:
        """A copy has landed before the LDS barrier that its reader looked at: defined, and no race with that reader."""
        if self.state is not None:
            self.state.store(memory, "l", off, nbytes, m)

    # --- tensor copies -----------------------------------------------------------------------------------------------

    def tile_access(self, kind: str, machine: Any, site: int, off: Any, tile: Any) -> Access:
        """Return a wave's tile as an access of its first lane."""
        thread = np.full(len(off), machine.first_thread + tile.wave * machine.wave_size)
        return Access(kind, site, tile.size, off, thread, np.full(len(off), tile.group))

    def tile_landed(self, machine: Any, site: int, memory: Any, off: Any, tile: Any) -> None:
        if self.state is not None:
            self.state.store(memory, "l", off, tile.size, None)
        if self.lds_races is not None:
            self.lds_races.add(machine, self.tile_access("write", machine, site, off, tile))

    def global_tile(self, machine: Any, site: int, region: Any, off: Any, tile: Any, value: Any = None) -> None:
        """A tensor copy reads or (with a value) writes elements of a tensor."""
        if value is None:
            self.global_read(region, off, tile.size, None, site)
        elif self.footprints is not None:
            self.footprints.note("write", region, off, tile.size, None, site)
        if self.races is not None and not region.is_mapping:
            self.races.tile(machine, site, region, off, tile, value)

    def tile_read(self, machine: Any, site: int, memory: Any, off: Any, tile: Any) -> None:
        if self.state is not None:
            self.state.load_tile(machine, site, memory, off, tile)
        if self.lds_races is not None:
            self.lds_races.add(machine, self.tile_access("read", machine, site, off, tile))

    # --- private -----------------------------------------------------------------------------------------------------

    def private_load(
        self, machine: Any, site: int, memory: Any, addr: Any, off: Any, nbytes: int, m: Any, base: str | None
    ) -> None:
        if self.state is not None:
            self.state.load(machine, site, memory, "p", addr, off, nbytes, m, base)

    def private_store(
        self, machine: Any, site: int, memory: Any, addr: Any, off: Any, nbytes: int, m: Any, base: str | None
    ) -> None:
        if self.state is not None:
            self.state.store(memory, "p", off, nbytes, m)

    def fence(self, machine: Any, site: int, scope: str) -> None:
        """Fences are known before the run (`has_sync`)."""

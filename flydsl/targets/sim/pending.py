"""Asynchronous copies to LDS: they read when issued and land when their counter is waited for; until then their
target is poison.

Counters retire in order, as the hardware's do. Loads that the compiler waits for by itself are counted too, because
`vmcnt(n)` leaves the n youngest
outstanding, whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl import arch as chips
from flydsl.targets.sim.mask import expand
from flydsl.targets.sim.memory import POISON, low_bits, scatter
from flydsl.targets.sim.small_floats import pack_codes, unpack_codes
from flydsl.targets.sim.wave import h_readfirstlane

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine


@dataclass
class Entry:
    """One outstanding operation: the LDS bytes that it will write, if any, and the waves that issued it (None: all)."""

    counter: str
    site: int
    off: Any = None
    addr: Any = None
    value: Any = None
    n: int | None = None
    live: Any = None
    waves: Any = None
    group: int = -1
    tiles: list | None = None  # of a tensor copy: (tile, offsets, values) per wave; `off` and `value` are flat then
    cells: Any = None  # LDS barriers that are arrived at when this is done: byte address per lane

    def barriers(self) -> set[int]:
        """Return the byte addresses of the LDS barriers that this arrives at."""
        if self.tiles is not None:
            return {tile.cell for tile, _, _ in self.tiles if tile.cell is not None}
        return set(np.unique(self.cells if self.live is None else self.cells[self.live]).tolist())


LANDING = ("vmcnt", "asynccnt", "tensorcnt")  # counters of copies to LDS


@cache
def decode_waitcnt(arch: str, bitfield: int) -> tuple[tuple[str, int], ...]:
    """Return the (counter, count) pairs that an `s_waitcnt` waits for."""
    fields = chips.get(arch).waitcnt
    waits = []
    for counter in ("vmcnt", "lgkmcnt"):
        value, shift = 0, 0
        for bit, width in getattr(fields, counter):
            value |= (bitfield >> bit & (1 << width) - 1) << shift
            shift += width
        if value < fields.largest(counter):
            waits.append((counter, value))
    return tuple(waits)


class PendingCopies:
    """The outstanding operations of one machine, oldest first."""

    def __init__(self, machine: Machine, is_counting: bool):
        self.machine = machine
        self.is_counting = is_counting
        self.queue: list[Entry] = []
        self.open_group: list[Entry] = []
        self.groups = 0
        self.is_seen = False  # whether what lands now is ordered by an LDS barrier that a wave looks at

    # --- issue -------------------------------------------------------------------------------------------------------

    def note(self, counter: str, site: int, m: Any, nbytes: int) -> None:
        """Count a plain load or store: one instruction per 16 bytes."""
        waves = self.waves_of(m)
        for _ in range(max(1, -(-nbytes // 16))):
            self.queue.append(Entry(counter, site, waves=waves))
        if len(self.queue) > 512:  # counters hold at most 63: older plain entries cannot be told from finished ones
            self.queue = [e for e in self.queue[:-64] if e.off is not None] + self.queue[-64:]

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """The read half of a copy is no instruction of its own."""
        self.is_counting = False
        yield
        self.is_counting = True

    def waves_of(self, m: Any) -> Any:
        """Return the waves with an active lane as (G, waves), or None for all."""
        if m is None or m is self.machine.mask0:
            return None
        full = expand(m, (self.machine.G, self.machine.B))
        waves = full.reshape(self.machine.G, -1, self.machine.wave_size).any(axis=2)
        return None if waves.all() else waves

    def buffer_to_lds(
        self,
        site: int,
        rsrc: Any,
        base: Any,
        lds: Any,
        lds_base: Any,
        size: int,
        voffset: Any,
        soffset: Any,
        offset: int,
        m: Any,
        is_async: bool,
    ) -> None:
        """Start a DMA of `size` bytes per lane; `offset` counts on both sides, out-of-range reads deliver 0."""
        dtype, n = item_of(size)
        with self.not_counting():
            value = self.machine.buffer_access.load(site, rsrc, base, voffset, soffset + np.int32(offset), dtype, n, m)
        self.start(site, value, n, lds, lds_base, size, offset, m, "vmcnt", is_async)

    def global_to_lds(
        self,
        site: int,
        addr: Any,
        base: Any,
        lds: Any,
        lds_base: Any,
        size: int,
        offset: int,
        m: Any,
        counter: str,
        is_async: bool,
        per_lane: bool,
    ) -> None:
        """Start a copy of `size` bytes per lane; `per_lane`: each lane has its own LDS address."""
        dtype, n = item_of(size)
        with self.not_counting():
            value = self.machine.load_g(site, addr + np.int64(offset), base, dtype, n, min(4, size), m)
        if per_lane:
            self.enqueue(site, value, n, lds + np.int64(offset), lds_base, size, m, counter, is_async)
        else:
            self.start(site, value, n, lds, lds_base, size, offset, m, counter, is_async)

    def start(
        self,
        site: int,
        value: Any,
        n: Any,
        lds: Any,
        lds_base: Any,
        size: int,
        offset: int,
        m: Any,
        counter: str,
        is_async: bool,
    ) -> None:
        """Lane l writes at the wave's LDS address + offset + l * size."""
        first = h_readfirstlane(self.machine, lds, m)
        addr = first + np.int64(offset) + self.machine.lane_in_wave * size
        self.enqueue(site, value, n, addr, lds_base, size, m, counter, is_async)

    def enqueue(
        self, site: int, value: Any, n: Any, addr: Any, lds_base: Any, size: int, m: Any, counter: str, is_async: bool
    ) -> None:
        access = self.machine.lds_access
        addr, live, bits = access.check(site, addr, lds_base, size, min(4, size), m, True)
        off = addr + access.row_offset
        entry = Entry(counter, site, off, addr, value, n, live, self.waves_of(m))
        poison = np.broadcast_to(POISON[:size], (*off.shape, size)).copy()
        scatter(access.memory, off, poison, size, 0 if bits & 3 == 0 and size % 4 == 0 else bits, live)
        if self.machine.watch is not None:
            self.machine.watch.lds_pending(self.machine, site, access.memory, off, size, live)
        self.queue.append(entry)
        if is_async:
            self.open_group.append(entry)

    def lds_to_global(
        self, site: int, addr: Any, base: Any, lds: Any, lds_base: Any, size: int, offset: int, m: Any
    ) -> None:
        """Copy from LDS to global memory; the data leave LDS when issued."""
        dtype, n = item_of(size)
        value = self.machine.load_l(site, lds + np.int64(offset), lds_base, dtype, n, min(4, size), m)
        with self.not_counting():
            self.machine.store_g(site, addr + np.int64(offset), base, value, n, min(4, size), m)
        self.queue.append(Entry("asynccnt", site, waves=self.waves_of(m)))

    # --- wait --------------------------------------------------------------------------------------------------------

    def waitcnt(self, site: int, bitfield: int, m: Any) -> None:
        """Wait as `s_waitcnt` with this encoding does."""
        for counter, count in decode_waitcnt(self.machine.arch, bitfield):
            self.wait(site, counter, count, m)

    def wait(self, site: int, counter: str, count: int, m: Any) -> None:
        """Land all but the `count` youngest operations of a counter."""
        mine = [e for e in self.queue if e.counter == counter]
        if self.is_counting and counter in LANDING and self.machine.watch is not None:
            self.machine.watch.waited(self.machine, site, len(mine) > count)
        if not self.queue:
            return
        waves = self.waves_of(m)
        if waves is None and all(e.waves is None for e in mine):
            done = mine[: max(0, len(mine) - count)]
            for entry in done:
                self.land(entry, entry.live)
            gone = set(map(id, done))
            self.queue = [e for e in self.queue if id(e) not in gone]
            return
        self.wait_apart(mine, count, waves)

    def wait_apart(self, mine: list[Entry], count: int, waves: Any) -> None:
        """Waves count for themselves when they issued or wait apart."""
        machine = self.machine
        shape = (machine.G, machine.B // machine.wave_size)
        waiting = np.ones(shape, bool) if waves is None else waves
        younger = np.zeros(shape, int)
        for entry in reversed(mine):
            issued = np.ones(shape, bool) if entry.waves is None else entry.waves
            due = issued & waiting & (younger >= count)
            younger += issued
            if due.any():
                lanes = np.repeat(due, machine.wave_size, axis=1)
                if entry.off is not None or entry.cells is not None or entry.tiles is not None:
                    self.land(entry, lanes if entry.live is None else lanes & entry.live)
                entry.waves = issued & ~due
        self.queue = [e for e in self.queue if e.waves is None or e.waves.any()]

    def land(self, entry: Entry, live: Any) -> None:
        """Write the data of a copy to LDS, and arrive at its barriers."""
        if entry.tiles is not None:
            self.land_tiles(entry, live)
            return
        if entry.cells is not None:
            self.arrive(entry.site, entry.cells, live)
        if entry.off is None:
            return
        memory = self.machine.lds_access.memory
        scatter(memory, entry.off, entry.value, entry.n, low_bits(entry.addr), live)
        if self.machine.watch is not None and self.is_seen:
            self.machine.watch.landed_in_order(memory, entry.off, entry.value.dtype.itemsize * (entry.n or 1), live)
        elif self.machine.watch is not None:
            self.machine.watch.lds_landed(self.machine, entry.site, memory, entry.off, entry.value, entry.n, live)

    def land_tiles(self, entry: Entry, live: Any) -> None:
        """Write the tiles of a tensor copy whose waves are due."""
        machine, memory = self.machine, self.machine.lds_access.memory
        left = []
        for tile, off, value in entry.tiles:
            if live is not None and not live[tile.group, tile.wave * machine.wave_size]:
                left.append((tile, off, value))
                continue
            if off is not None:
                scatter(memory, off, value, None, low_bits(off) | tile.size, None)
                if machine.watch is not None and self.is_seen:
                    machine.watch.landed_in_order(memory, off, tile.size, None)
                elif machine.watch is not None:
                    machine.watch.tile_landed(machine, entry.site, memory, off, tile)
            if tile.cell is not None:
                self.arrive(entry.site, np.int64(tile.cell), machine.tensor_dma.lane_flags(tile))
        entry.tiles = left

    # --- LDS barriers ------------------------------------------------------------------------------------------------

    def async_arrive(self, site: int, cell: Any, m: Any) -> None:
        """Arrive at an LDS barrier once the asynchronous copies issued so far have landed."""
        full = np.broadcast_to(cell, (self.machine.G, self.machine.B))
        live = None if m is None or m is self.machine.mask0 else expand(m, full.shape)
        self.arm(Entry("asynccnt", site, live=live, waves=self.waves_of(m), cells=full))

    def arm(self, entry: Entry) -> None:
        """Queue an operation that arrives at LDS barriers; it is done at the latest when one of them is looked at."""
        self.queue.append(entry)
        self.machine.slab.armed.append((self.machine, entry))

    def arrive(self, site: int, cell: Any, m: Any) -> None:
        """Count one arrival per lane of `m` at the barriers at byte `cell` of LDS."""
        self.machine.lds_access.memory.barriers.update(np.unique(cell).tolist())
        self.machine.atomic(site, "barrier_arrive", "l", cell, None, np.int64(1), None, m, False)

    def finish(self, entry: Entry) -> None:
        """Land an operation and those before it of its counter, for a wave that looks at the barrier it arrives at."""
        older = [e for e in self.queue if e.counter == entry.counter]
        done = older[: next(i for i, e in enumerate(older) if e is entry) + 1]
        gone = set(map(id, done))
        self.queue = [e for e in self.queue if id(e) not in gone]
        self.is_seen = True
        for e in done:
            lanes = None if e.waves is None else np.repeat(e.waves, self.machine.wave_size, axis=1)
            self.land(e, e.live if lanes is None else lanes if e.live is None else lanes & e.live)
        self.is_seen = False

    def mark(self, site: int) -> None:
        """Close a group of asynchronous copies."""
        self.groups += 1
        for entry in self.open_group:
            entry.group = self.groups
        self.open_group = []

    def wait_mark(self, site: int, count: int, m: Any) -> None:
        """Land all groups but the `count` youngest."""
        limit = self.groups - count
        done = [e for e in self.queue if 0 < e.group <= limit]
        for entry in done:
            self.land(entry, entry.live)
        if self.machine.watch is not None:
            self.machine.watch.waited(self.machine, site, bool(done))
        gone = set(map(id, done))
        self.queue = [e for e in self.queue if id(e) not in gone]

    def issuer_of(self, byte: int) -> int | None:
        """Return the site of the outstanding copy that will write a byte of LDS."""
        for entry in reversed(self.queue):
            if entry.off is not None:
                size = entry.value.dtype.itemsize * (entry.n or 1)
                here = (entry.off <= byte) & (byte < entry.off + size)
                if np.any(here if entry.live is None else here & entry.live):
                    return entry.site
        return None

    def outstanding(self) -> list[Any]:
        """Return the copies in flight as writes: they may land at any time."""
        flying = []
        for e in self.queue:
            if e.tiles is not None and self.machine.watch is not None:
                tiles = [(t, o) for t, o, _ in e.tiles if o is not None]
                flying += [self.machine.watch.tile_access("write", self.machine, e.site, o, t) for t, o in tiles]
            elif e.off is not None:
                size = e.value.dtype.itemsize * (e.n or 1)
                flying.append(("write", self.machine, e.site, e.off, size, e.live, None, e.value, e.n))
        return flying

    def read_transposed(
        self, site: int, addr: Any, lds_base: Any, bits: int, size: int, dtype: Any, m: Any
    ) -> np.ndarray:
        """LDS read of `size` bytes per lane whose elements of `bits` bits change lanes, see `exchanged`."""
        machine = self.machine
        rows = machine.load_l(site, addr, lds_base, np.uint8, size, 4 if size == 12 else size, m)
        return exchanged(machine, rows, bits, size, dtype)

    def read_global_transposed(
        self, site: int, addr: Any, base: Any, bits: int, size: int, dtype: Any, m: Any
    ) -> np.ndarray:
        """Load from global memory whose elements change lanes as those of the LDS read of the chip do."""
        machine = self.machine
        rows = machine.load_g(site, addr, base, np.uint8, size, 4, m)
        return exchanged(machine, rows, bits, size, dtype)


def exchanged(machine: Machine, rows: Any, bits: int, size: int, dtype: Any) -> np.ndarray:
    """Return what the lanes receive of a transposing load that read `rows`, `size` bytes per lane.

    gfx950: in each group of 16 lanes, lane t gets elements t, t + 16, ... of the lanes' data in order. gfx1250 (wave32):
    element e of lane l comes from element l % 8 of lane 8 * (l // 8) + e for 16-bit elements, and of lane
    16 * (l // 16) + 8 * (e // 4) + 4 * (l // 8 % 2) + e % 4 for 8-bit ones (measured on the chip, and Triton's lowering).
    """
    rows = np.ascontiguousarray(np.broadcast_to(rows, (machine.G, machine.B, size)))
    if bits in (8, 16):
        items = rows.view(f"u{bits // 8}")
    else:
        items = unpack_codes(rows, bits, size * 8 // bits)
    n = items.shape[-1]
    if not chips.get(machine.arch).has("ds_load_tr"):
        moved = items.reshape(machine.G, -1, n, 16).swapaxes(-1, -2)  # flat index 16 * j + t
    elif bits == 16:
        moved = items.reshape(machine.G, -1, 8, 8).swapaxes(-1, -2)
    else:
        moved = items.reshape(machine.G, -1, 2, 2, 4, 8).transpose(0, 1, 3, 5, 2, 4)
    moved = np.ascontiguousarray(moved).reshape(machine.G, machine.B, n)
    whole = moved if bits in (8, 16) else pack_codes(moved, bits)
    return np.ascontiguousarray(whole).view(dtype)


def item_of(size: int) -> tuple[Any, int | None]:
    """Return (type, count) of a copy of `size` bytes."""
    if size in (1, 2, 4):
        return {1: np.uint8, 2: np.uint16, 4: np.int32}[size], None
    return np.int32, size // 4

"""LDS (one row of bytes per workgroup) and private memory (one row per lane)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.targets.sim.memory import Buffer, bounds_of, fill_poison, gather, low_bits, park_inactive, scatter

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine


class RowMemory(Buffer):
    """`rows` rows of `nbytes` bytes each, padded to 16; `arrays` names the arrays inside a row: (first byte, end).

    `pool`: a list that keeps the bytes of the last memory for the next one, which saves the page faults of a fresh
    array.
    """

    def __init__(
        self, rows: int, nbytes: int, arrays: dict[str, tuple[int, int]], pool: list[np.ndarray] | None = None
    ):
        self.rows = rows
        self.nbytes = nbytes
        self.pitch = max(16, -(-nbytes // 16) * 16)
        self.arrays = arrays
        size = rows * self.pitch
        kept = pool.pop() if pool else None
        raw = kept if kept is not None and len(kept) >= size else np.empty(size, np.uint8)
        if pool is not None:
            pool.append(raw)
        fill_poison(raw[:size])
        super().__init__(raw[:size])
        self.shadow: Any = None
        self.touched: Any = None
        self.barriers: set[int] = set()  # bytes in a row at which copies have arrived: 64-bit words that order what they count


class RowAccess:
    """Loads and stores of one machine to LDS or private memory. `row_offset` is the first byte of each lane's row."""

    def __init__(self, machine: Machine, memory: RowMemory, row_offset: Any, what: str):
        self.machine = machine
        self.memory = memory
        self.row_offset = row_offset
        self.what = what
        self.watch = machine.watch
        self.armed = machine.slab.armed if what == "LDS" else []

    def look_at(self, addr: Any, nbytes: int) -> None:
        """Complete the copies that arrive at barriers among these bytes: who polls a barrier waits for them."""
        for machine, entry in list(self.armed):
            is_open = any(e is entry for e in machine.pending.queue)
            if is_open and not any(np.any((addr < c + 8) & (c < addr + nbytes)) for c in entry.barriers()):
                continue
            self.armed[:] = [a for a in self.armed if a[1] is not entry]
            if is_open:
                machine.pending.finish(entry)

    def check(
        self, site: int, addr: Any, base: str | None, nbytes: int, align: int, m: Any, write: bool
    ) -> tuple[Any, Any, int]:
        """Return (addresses, mask, low bits) with faulty lanes reported and masked out."""
        if m is not None:
            addr = park_inactive(addr, m)
        low, high = bounds_of(addr)
        first, end = self.memory.arrays.get(base, (0, self.memory.nbytes))
        if low < first or high + nbytes > end:
            bad = (addr < first) | (addr + nbytes > end)
            if m is not None:
                bad = bad & m
            self.machine.row_bounds(site, self.what, base, (first, end), addr, nbytes, bad, write)
            m = ~bad if m is None else m & ~bad
            addr = np.where(bad, addr.dtype.type(first), addr)
            if end - first < nbytes:
                m = np.zeros_like(bad)
                addr = addr * 0
        bits = low_bits(addr)
        if bits & (align - 1):
            self.machine.row_misaligned(site, self.what, addr, align, m)
        return addr, m, bits

    def load(self, site: int, addr: Any, base: str | None, dtype: Any, n: int | None, align: int, m: Any) -> Any:
        """Return the values at byte offsets of each lane's row."""
        nbytes = np.dtype(dtype).itemsize * (n or 1)
        if self.armed:
            self.look_at(addr, nbytes)
        addr, m, bits = self.check(site, addr, base, nbytes, align, m, False)
        off = addr + self.row_offset
        if self.watch is not None and self.what == "LDS":
            self.watch.lds_load(self.machine, site, self.memory, addr, off, nbytes, m, base)
        elif self.watch is not None:
            self.watch.private_load(self.machine, site, self.memory, addr, off, nbytes, m, base)
        return gather(self.memory, off, dtype, n, bits)

    def store(self, site: int, addr: Any, base: str | None, value: Any, n: int | None, align: int, m: Any) -> None:
        """Write values at byte offsets of each lane's row."""
        nbytes = value.dtype.itemsize * (n or 1)
        addr, m, bits = self.check(site, addr, base, nbytes, align, m, True)
        off = addr + self.row_offset
        if self.watch is not None and self.what == "LDS":
            self.watch.lds_store(self.machine, site, self.memory, addr, off, nbytes, m, value, n, base)
        elif self.watch is not None:
            self.watch.private_store(self.machine, site, self.memory, addr, off, nbytes, m, base)
        scatter(self.memory, off, value, n, bits, m)

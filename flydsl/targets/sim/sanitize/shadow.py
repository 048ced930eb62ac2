"""Shadow memory: one byte of state and one mark per cell of the memory that it shadows.

A cell is the narrowest access of the kernel, so that neighbours are never mistaken for each other; an access that is
narrower or misaligned at run
time (the last elements of a bounded buffer) splits all cells. Marks say who wrote a cell last: `serial << 10 |
thread`, where the serial counts accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.mask import expand
from flydsl.targets.sim.memory import Buffer, active_lanes, gather, low_bits, pick, scatter

UNWRITTEN, WRITTEN, PENDING = 0, 1, 2
THREAD_BITS = 10
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64}


class Shadow:
    """State and marks of `nbytes` bytes of memory."""

    def __init__(self, nbytes: int, cell_bytes: int):
        self.shift = cell_bytes.bit_length() - 1
        self.cell_bytes = cell_bytes
        self.cells = -(-nbytes // cell_bytes) + 16 * (16 // cell_bytes)
        self._state: Buffer | None = None
        self._marks: Buffer | None = None
        self.is_complete = False

    @property
    def state(self) -> Buffer:
        """UNWRITTEN, WRITTEN or PENDING, one byte per cell."""
        if self._state is None:
            self._state = Buffer(np.zeros(-(-self.cells // 16) * 16, np.uint8))
        return self._state

    @property
    def marks(self) -> Buffer:
        """Marks, int32 per cell, -1 where never written."""
        if self._marks is None:
            self._marks = Buffer(np.full(-(-self.cells // 4) * 4, -1, np.int32).view(np.uint8))
        return self._marks

    def span(self, off: Any, nbytes: int) -> tuple[Any, int]:
        """Return (first cell, cells) of accesses at byte offsets."""
        if self.shift:
            fine = low_bits(off) | nbytes
            if fine & self.cell_bytes - 1:
                self.refine(fine & -fine)
        return off >> self.shift, max(1, nbytes >> self.shift)

    def refine(self, cell_bytes: int) -> None:
        """Split the cells; each part inherits the state and mark of the whole."""
        factor = self.cell_bytes // cell_bytes
        if self._state is not None:
            self._state = Buffer(np.repeat(self._state.raw, factor))
        if self._marks is not None:
            self._marks = Buffer(np.repeat(self._marks.raw.view(np.int32), factor).view(np.uint8))
        self.cells *= factor
        self.cell_bytes, self.shift = cell_bytes, cell_bytes.bit_length() - 1

    def complete(self) -> None:
        """Note whether every cell is written, so that reads need no look."""
        if self._state is not None and not self.is_complete:
            states = self._state.raw[: self.cells - 16 * (16 // self.cell_bytes)]
            self.is_complete = bool((states == WRITTEN).all())

    def set_state(self, off: Any, nbytes: int, m: Any, state: int) -> None:
        """Set the state of the accessed cells."""
        cell, k = self.span(off, nbytes)
        value, n = self._word(k, state)
        scatter(self.state, cell, value, n, low_bits(cell), m)

    def _word(self, k: int, state: int) -> tuple[Any, int | None]:
        if k in _WORDS:
            dtype = _WORDS[k]
            return dtype(int.from_bytes(bytes([state]) * k, "little")), None
        return np.full(k, state, np.uint8), k

    def not_written(self, off: Any, nbytes: int) -> Any:
        """Return per lane whether some accessed cell is not WRITTEN."""
        cell, k = self.span(off, nbytes)
        bits = low_bits(cell)
        if k in _WORDS:
            return gather(self.state, cell, _WORDS[k], None, bits) != self._word(k, WRITTEN)[0]
        if k == 16:
            good = np.int64(0x0101010101010101)
            return (gather(self.state, cell, np.int64, 2, bits) != good).any(axis=-1)
        return (gather(self.state, cell, np.uint8, k, bits) != WRITTEN).any(axis=-1)

    def clear_state(self) -> None:
        """Make every cell UNWRITTEN."""
        self.state.raw.fill(UNWRITTEN)

    def any_written(self, off: Any, nbytes: int) -> Any:
        """Return per lane whether some accessed cell is WRITTEN, in a shadow of UNWRITTEN and WRITTEN cells."""
        cell, k = self.span(off, nbytes)
        bits = low_bits(cell)
        if k in _WORDS:
            return gather(self.state, cell, _WORDS[k], None, bits) != 0
        return (gather(self.state, cell, np.uint8, k, bits) != 0).any(axis=-1)

    def states(self, off: Any, nbytes: int) -> np.ndarray:
        """Return the states of the accessed cells, (lanes, cells)."""
        cell, k = self.span(off, nbytes)
        return gather(self.state, cell, np.uint8, k, low_bits(cell))

    def get_marks(self, off: Any, nbytes: int) -> np.ndarray:
        """Return the marks of the accessed cells, (lanes, cells)."""
        cell, k = self.span(off, nbytes)
        at = cell << 2
        return gather(self.marks, at, np.int32, k, low_bits(at))

    def set_marks(self, off: Any, nbytes: int, marks: Any) -> None:
        """Set the marks of the accessed cells; `marks` has one value per lane."""
        cell, k = self.span(off, nbytes)
        at = cell << 2
        wide = np.repeat(marks[..., None], k, axis=-1) if k > 1 else marks[..., None]
        scatter(self.marks, at, wide, k, low_bits(at), None)


class AccessMap:
    """Which bytes of each tensor were touched: region number -> (region, marks, first site)."""

    def __init__(self) -> None:
        self.shadows: dict[int, tuple[Any, Shadow, int]] = {}

    def note(self, region: Any, off: Any, nbytes: int, m: Any, site: int) -> None:
        """Mark bytes."""
        found = self.shadows.get(region.number)
        if found is None:
            itemsize = region.allocation.itemsize
            cell = itemsize if itemsize in (1, 2, 4, 8) and region.start % itemsize == 0 else 1
            found = self.shadows[region.number] = region, Shadow(len(region.raw), cell), site
        found[1].set_state(off, nbytes, m, WRITTEN)


def lanes_of(machine: Any, off: Any, m: Any) -> tuple[Any, Any, Any]:
    """Return flat (offsets, threads, workgroups in the slab) of the active lanes.

    Where a workgroup's lanes share an offset, one lane per wave stands for all.
    """
    g, b, ws = machine.G, machine.B, machine.wave_size
    if m is None and machine.mask0 is not None:
        m = machine.mask0
    shared = off.ndim == 0 or off.shape[1] == 1
    if shared:
        first = machine.first_thread + np.arange(0, b, ws)
        active = None
        if m is not None:
            waves = expand(m, (g, b)).reshape(g, -1, ws)
            active = waves.any(axis=2)
            first = (machine.first_thread + np.arange(0, b, ws))[None, :] + waves.argmax(axis=2)
        shape = (g, b // ws)
    else:
        first = machine.first_thread + np.arange(b)
        active = m
        shape = (g, b)
    if active is None:
        wide = np.broadcast_to(off, shape).reshape(-1)
        return (
            wide,
            np.broadcast_to(first, shape).reshape(-1),
            np.broadcast_to(np.arange(g)[:, None], shape).reshape(-1),
        )
    lanes = np.flatnonzero(active) if shared else active_lanes(m, shape)
    wide = off if off.ndim else np.broadcast_to(off, (1, 1))
    threads = first.reshape(-1).take(lanes) if first.ndim == 2 else first.take(lanes % shape[1])
    return pick(wide, 2, shape, lanes), threads, lanes // shape[1]


def values_of(machine: Any, value: Any, n: int | None, off: Any, m: Any) -> np.ndarray:
    """Return the bits of the values stored by the lanes of `lanes_of`, (lanes, bytes)."""
    g, b, ws = machine.G, machine.B, machine.wave_size
    if m is None and machine.mask0 is not None:
        m = machine.mask0
    whole = value if n is not None else value[..., None]
    if m is not None and off.ndim == 2 and off.shape[1] > 1 and whole.ndim == 3:
        lanes = active_lanes(m, (g, b))
        return np.ascontiguousarray(pick(whole, 2, (g, b), lanes)).view(np.uint8).reshape(len(lanes), -1)
    wide = np.broadcast_to(whole, (g, b, whole.shape[-1]))
    data = np.ascontiguousarray(wide).view(np.uint8).reshape(g, b, -1)
    if off.ndim == 0 or off.shape[1] == 1:
        if m is None:
            return data[:, ::ws].reshape(-1, data.shape[-1])
        waves = expand(m, (g, b)).reshape(g, -1, ws)
        index = waves.argmax(axis=2) + np.arange(0, b, ws)[None, :]
        return np.take_along_axis(data, index[..., None], axis=1)[waves.any(axis=2)]
    return data.reshape(-1, data.shape[-1]) if m is None else data[expand(m, (g, b))]

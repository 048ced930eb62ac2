"""Buffer resources: the hardware's out-of-range rule first, then the check of what survives against the allocations.

Kernels often give a record count of 2^32-1, so the two must not be merged: a real fault would be hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.targets.sim.memory import GlobalAccess

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine

Rsrc = tuple[Any, Any, Any, Any]


def h_rsrc(base: Any, stride: Any, records: Any, flags: Any) -> Rsrc:
    """Return a buffer resource; its parts may differ between workgroups."""
    return (base, stride, records, flags)


class BufferAccess:
    """Buffer loads, stores and atomics of one machine."""

    def __init__(self, machine: Machine, memory: GlobalAccess):
        self.machine = machine
        self.memory = memory

    def offsets(self, rsrc: Rsrc, voffset: Any, soffset: Any) -> tuple[Any, Any]:
        """Return (byte offset, record count), both unsigned in 64 bits."""
        off = voffset.view(np.uint32).astype(np.int64)
        if soffset.ndim or soffset != 0:
            off = off + soffset.view(np.uint32).astype(np.int64)
        records = rsrc[2]
        if records.dtype.itemsize < 8:
            records = records.view(np.uint32).astype(np.int64)
        return off, records

    def in_range(self, off: Any, records: Any, nbytes: int) -> Any:
        """Return None when all bytes are in range, else the mask of lanes whose access is."""
        if np.max(off) + nbytes <= np.min(records):
            return None
        inside = off + nbytes <= records
        return None if inside.all() else inside

    def load(
        self, site: int, rsrc: Rsrc, base: int | None, voffset: Any, soffset: Any, dtype: Any, n: int | None, m: Any
    ) -> Any:
        """Return the loaded values, 0 for what is out of range."""
        size = np.dtype(dtype).itemsize
        off, records = self.offsets(rsrc, voffset, soffset)
        align = min(4, size * (n or 1))
        inside = self.in_range(off, records, size * (n or 1))
        if inside is None:
            return self.memory.load(site, rsrc[0] + off, base, dtype, n, align, m)
        if n is not None and self.is_partial(off, records, size * n):
            return self.load_parts(site, rsrc, base, off, records, dtype, n, m)
        live = inside if m is None else inside & m
        return self.load_live(site, rsrc[0] + off, base, dtype, n, align, live)

    def load_live(
        self, site: int, addr: Any, base: int | None, dtype: Any, n: int | None, align: int, live: Any
    ) -> Any:
        """Load for the lanes of `live`; the others get 0."""
        shape = np.broadcast_shapes(addr.shape, live.shape)
        if not live.any():
            return np.zeros(shape if n is None else (*shape, n), dtype)[()]
        if live.ndim == 0:
            return self.memory.load(site, addr, base, dtype, n, align, None)
        got = self.memory.load(site, addr, base, dtype, n, align, live)
        return np.where(live if n is None else live[..., None], got, got.dtype.type(0))

    def is_partial(self, off: Any, records: Any, nbytes: int) -> bool:
        """Return whether some lane is partly in range."""
        return bool(np.any((off < records) & (off + nbytes > records)))

    def load_parts(
        self, site: int, rsrc: Rsrc, base: int | None, off: Any, records: Any, dtype: Any, n: int, m: Any
    ) -> Any:
        """Load element by element: each is in range or not on its own."""
        size = np.dtype(dtype).itemsize
        parts = []
        for i in range(n):
            at = off + i * size
            inside = at + size <= records
            live = inside if m is None else inside & m
            parts.append(self.load_live(site, rsrc[0] + at, base, dtype, None, min(4, size), np.asarray(live)))
        return np.stack(np.broadcast_arrays(*parts), axis=-1)

    def store(
        self, site: int, rsrc: Rsrc, base: int | None, voffset: Any, soffset: Any, value: Any, n: int | None, m: Any
    ) -> None:
        """Write what is in range, drop the rest."""
        size = value.dtype.itemsize
        off, records = self.offsets(rsrc, voffset, soffset)
        align = min(4, size * (n or 1))
        inside = self.in_range(off, records, size * (n or 1))
        if inside is None:
            self.memory.store(site, rsrc[0] + off, base, value, n, align, m)
        elif n is not None and self.is_partial(off, records, size * n):
            for i in range(n):
                at = off + i * size
                self.store_live(site, rsrc[0] + at, base, value[..., i], None, min(4, size), at + size <= records, m)
        else:
            self.store_live(site, rsrc[0] + off, base, value, n, align, inside, m)

    def store_live(
        self, site: int, addr: Any, base: int | None, value: Any, n: int | None, align: int, inside: Any, m: Any
    ) -> None:
        """Store for the lanes that are in range and active."""
        live = np.asarray(inside if m is None else inside & m)
        if not live.any():
            return
        self.memory.store(site, addr, base, value, n, align, None if live.all() and live.ndim == 0 else live)

    def compare_exchange(
        self, site: int, rsrc: Rsrc, base: int | None, voffset: Any, soffset: Any, expected: Any, new: Any, m: Any
    ) -> Any:
        """Return the old values; lanes out of range do nothing and get 0."""
        off, records = self.offsets(rsrc, voffset, soffset)
        inside = self.in_range(off, records, new.dtype.itemsize)
        live = m if inside is None else (inside if m is None else inside & m)
        if live is not None and not np.any(live):
            return np.zeros_like(new)
        return self.machine.cmpxchg(site, "g", rsrc[0] + off, base, expected, new, live)[0]

    def atomic(
        self,
        site: int,
        kind: str,
        rsrc: Rsrc,
        base: int | None,
        voffset: Any,
        soffset: Any,
        value: Any,
        n: int | None,
        m: Any,
    ) -> Any:
        """Combine for the lanes that are in range; return the old values, 0 for the others."""
        off, records = self.offsets(rsrc, voffset, soffset)
        inside = self.in_range(off, records, value.dtype.itemsize * (n or 1))
        live = m if inside is None else (inside if m is None else inside & m)
        if live is not None and not np.any(live):
            return np.zeros_like(value)
        return self.machine.atomic(site, kind, "g", rsrc[0] + off, base, value, n, live, True)

"""Global memory: typed access to real addresses, checked against the allocations of the launch.

`gather` and `scatter` move bytes of one buffer; LDS and private memory use them too. The allocation is resolved once
per access from the smallest and
largest address; lanes are searched one by one only if that fails.
"""

from __future__ import annotations

import bisect
import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.targets.sim.known_memory import known
from flydsl.targets.sim.options import Allocation

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine

ITEM_TYPES = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64, 16: np.complex128}
SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
POISON = np.array([0xC1, 0x7F] * 8, np.uint8)  # NaN as f32, f16 and bf16; 2143387585 as i32


class Buffer:
    """Bytes seen through views of each item size. The first byte lies on a 16-byte boundary."""

    def __init__(self, raw: np.ndarray):
        self.raw = raw
        self._views = {1: raw}

    def view(self, item: int) -> np.ndarray:
        """Return the buffer as items of 1, 2, 4, 8 or 16 bytes."""
        found = self._views.get(item)
        if found is None:
            usable = len(self.raw) // item * item
            found = self._views[item] = self.raw[:usable].view(ITEM_TYPES[item])
        return found


class Region(Buffer):
    """One allocation. The view may begin up to 15 bytes before it and end after it, in the same memory granule.

    `holes`: what of a mapping belongs to known arrays; `is_freed`: the array is gone, and accesses
    are errors.
    """

    def __init__(self, allocation: Allocation, number: int, is_mapping: bool = False):
        self.allocation = allocation
        self.is_mapping = is_mapping
        self.number = number
        self.start = allocation.address
        self.end = allocation.address + allocation.nbytes
        self.origin = self.start & ~15
        span = (self.end + 15 & ~15) - self.origin
        raw = (ctypes.c_uint8 * span).from_address(self.origin) if allocation.nbytes else (ctypes.c_uint8 * 0)()
        super().__init__(np.ctypeslib.as_array(raw))
        self.shadow: Any = None
        self.name = allocation.name
        self.holes: list[tuple[int, int]] = []
        self.is_freed = False

    @property
    def is_special(self) -> bool:
        """Whether some accesses inside are faults."""
        return bool(self.is_freed or self.holes)

    def is_plain(self, low: int, end: int) -> bool:
        """Return whether a range may be accessed without another look."""
        return not self.is_freed and not any(low < hole_end and start < end for start, hole_end in self.holes)


def fill_poison(raw: np.ndarray) -> None:
    """Fill bytes with the pattern that reads as NaN or as a conspicuous integer."""
    whole = len(raw) // 16 * 16
    raw[:whole].reshape(-1, 16)[:] = POISON
    raw[whole:] = POISON[: len(raw) - whole]


def low_bits(off: Any) -> int:
    """Return the OR of all offsets, whose low bits say how aligned they are."""
    return int(off) if off.ndim == 0 else int(np.bitwise_or.reduce(off, axis=None))


def item_size(nbytes: int, bits: int) -> int:
    """Return the largest item that divides `nbytes` and all offsets whose OR is `bits`, at most 16."""
    both = nbytes | bits | 16
    return both & -both


def gather(buffer: Buffer, off: Any, dtype: Any, n: int | None, bits: int) -> Any:
    """Return the values at byte offsets `off`; vectors get a last axis of `n`."""
    nbytes = np.dtype(dtype).itemsize * (n or 1)
    item = item_size(nbytes, bits)
    index = off >> SHIFT[item]
    view = buffer.view(item)
    if nbytes == item:
        got = view[index] if index.ndim == 0 else view.take(index)
        if n is None:
            return got.view(dtype) if dtype is not np.bool_ else (got & 1).astype(bool)
        return np.asarray(got)[..., None].view(dtype)
    k = nbytes // item
    got = view.take(index[..., None] + np.arange(k))
    return got.view(dtype) if n is not None else got.view(dtype)[..., 0]


def scatter(buffer: Buffer, off: Any, value: Any, n: int | None, bits: int, m: Any) -> None:
    """Write values at byte offsets; lanes outside the mask write nothing. Offsets and values broadcast against each
    other."""
    nbytes = value.dtype.itemsize * (n or 1)
    item = item_size(nbytes, bits)
    shape = lane_shape(off, value.shape if n is None else value.shape[:-1], m)
    index = off >> SHIFT[item]
    if item < nbytes:
        index = index[..., None] + np.arange(nbytes // item)
    view = buffer.view(item)
    items = as_items(value, n, item, nbytes)
    if m is None:
        if off.shape != shape:  # lanes that write one address: the last one stays
            index = np.broadcast_to(index, shape + index.shape[off.ndim :])
        view[index] = items
        return
    lanes = active_lanes(m, shape)
    k = index.shape[off.ndim :]
    view[pick(index, off.ndim, shape, lanes)] = pick(items, items.ndim - len(k), shape, lanes)


def lane_shape(off: Any, of_value: tuple[int, ...], m: Any) -> tuple[int, ...]:
    """Return the shape that offsets, values and mask broadcast to; `np.broadcast_shapes` takes 15 us."""
    if off.shape == of_value and (m is None or m.shape == of_value):
        return of_value
    return np.broadcast_shapes(off.shape, of_value, () if m is None else m.shape)


_last_mask: tuple[Any, Any, Any] = (None, None, None)


def active_lanes(m: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the flat numbers of a mask's lanes; the last answer is kept, because one access asks several times.

    Masks are never changed in place, so identity is enough.
    """
    global _last_mask
    mask, of_shape, lanes = _last_mask
    if mask is m and of_shape == shape:
        return lanes
    lanes = np.flatnonzero(np.broadcast_to(m, shape))
    _last_mask = (m, shape, lanes)
    return lanes


def pick(x: Any, ndim: int, shape: tuple[int, ...], lanes: np.ndarray) -> Any:
    """Return the entries of the flat lane numbers `lanes` of an array whose first `ndim` axes broadcast to `shape`."""
    if ndim < 2 or len(shape) < 2:
        return np.broadcast_to(x, shape + x.shape[ndim:]).reshape(-1, *x.shape[ndim:])[lanes] if ndim else x
    rows, columns = x.shape[:2]
    if (rows, columns) == shape:
        return x.reshape(-1, *x.shape[2:]).take(lanes, axis=0)
    if rows == 1:
        return x[0].take(lanes % shape[1] if columns > 1 else lanes * 0, axis=0)
    return x[:, 0].take(lanes // shape[1], axis=0)


def is_ascending(off: Any, step: int) -> bool:
    """Return whether offsets grow by at least `step` from lane to lane, so that no two accesses overlap."""
    flat = off.reshape(-1)
    return bool((flat[1:] - flat[:-1] >= step).all())


def as_items(value: Any, n: int | None, item: int, nbytes: int) -> Any:
    """Return a value's bits as items: shape (lanes), or (lanes, k) where an item is smaller than the value."""
    if value.dtype == bool:
        value = value.view(np.uint8)
    whole = value if n is not None else value[..., None]
    if not (isinstance(whole, np.ndarray) and whole.flags.c_contiguous):
        whole = np.ascontiguousarray(whole)
    items = whole.view(ITEM_TYPES[item])
    return items[..., 0] if item == nbytes else items


def bounds_of(addr: Any) -> tuple[int, int]:
    """Return the smallest and largest address as Python integers."""
    if addr.ndim == 0:
        value = int(addr)
        return value, value
    return int(addr.min()), int(addr.max())


def park_inactive(addr: Any, m: Any) -> Any:
    """Return addresses where inactive lanes repeat that of an active one, so that one range test and one gather serve
    all."""
    shape = np.broadcast_shapes(addr.shape, m.shape)
    active = np.broadcast_to(m, shape)
    wide = np.broadcast_to(addr, shape)
    first = active.reshape(-1).argmax()
    return np.where(active, wide, wide.flat[first])


class GlobalMemory:
    """The allocations of a launch, sorted by address. They may overlap: arguments can be views of one array."""

    def __init__(self, allocations: tuple[Allocation, ...]):
        ordered = sorted((a for a in allocations if a.nbytes > 0), key=lambda a: a.address)
        self.regions = [Region(a, i) for i, a in enumerate(ordered)]
        self.starts = [r.start for r in self.regions]
        self.mappings: list[Region] = []
        self.is_disjoint = all(a.end <= b.start for a, b in zip(self.regions, self.regions[1:]))

    def find(self, address: int, name: str = "") -> Region | None:
        """Return the allocation that holds `address`: of several the one called `name`, else the largest that may be
        written."""
        if self.is_disjoint and not self.mappings:
            i = bisect.bisect_right(self.starts, address) - 1
            return self.regions[i] if i >= 0 and address < self.regions[i].end else None
        found = [r for r in self.regions if r.start <= address < r.end]
        named = [r for r in found if r.allocation.name == name]
        if not found:
            found = [r for r in self.mappings if r.start <= address < r.end]
        return max(named or found, key=lambda r: (r.allocation.writable, r.end - r.start), default=None)

    def base_regions(self, args: list[Any], names: list[str]) -> list[Region | None]:
        """Return, per kernel argument, the allocation that a pointer argument points into.

        A pointer to memory that this launch was not given (a bare address) gets the array of an earlier launch that it
        lies in; else the whole mapping of the process around it, without the known arrays in it.
        """
        regions = []
        for address, name in zip(args, names):
            region = None
            if address is not None:
                region = self.find(int(address), name) or self.earlier(int(address)) or self.mapping(int(address), name)
            regions.append(region)
        return regions

    def earlier(self, address: int) -> Region | None:
        """Return the array of an earlier launch around `address`, also one that is gone; None where something else may have
        got its memory, which the process then still has mapped."""
        array = known.at(address)
        if array is None:
            return None
        is_freed = not array.is_alive()
        if is_freed and not array.is_free() and is_mapped(array.start, array.end):
            return None
        region = Region(Allocation(array.name, array.start, array.end - array.start, dtype="bytes"), self.next_number)
        region.is_freed = is_freed
        self.mappings.append(region)
        return region

    @property
    def next_number(self) -> int:
        """The number of the next region."""
        return len(self.regions) + len(self.mappings)

    def mapping(self, address: int, name: str) -> Region | None:
        """Return the process's mapping around `address`, or None where there is none or the system does not tell."""
        for start, end, writable in process_mappings():
            if start <= address < end:
                a = Allocation(f"{name} (a bare address)", start, end - start, dtype="bytes", writable=writable)
                region = Region(a, self.next_number, is_mapping=True)
                arrays = [(k.start, k.end) for k in known.overlapping(start, end) if k.is_alive()]
                region.holes = [*arrays, *((r.start, r.end) for r in self.regions if start <= r.start < end)]
                self.mappings.append(region)
                return region
        return None


def is_mapped(start: int, end: int) -> bool:
    """Return whether this process can read a range (unknown: no)."""
    return any(low <= start and end <= high for low, high, _ in process_mappings())


def process_mappings() -> list[tuple[int, int, bool]]:
    """Return (start, end, writable) of the readable memory of this process; empty where /proc does not exist."""
    try:
        with open("/proc/self/maps") as f:
            lines = f.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        span, mode = line.split()[:2]
        if mode[0] == "r" and not line.endswith(("[vsyscall]", "[vvar]")):
            start, _, end = span.partition("-")
            found.append((int(start, 16), int(end, 16), mode[1] == "w"))
    return found


class GlobalAccess:
    """Loads and stores of one machine."""

    def __init__(self, machine: Machine, memory: GlobalMemory, bases: list[Region | None]):
        self.machine = machine
        self.memory = memory
        self.bases = bases
        self.watch = machine.watch
        self.pending = machine.pending
        self.counts_stores = machine.arch.startswith("gfx9")

    def region_for(self, addr: Any, base: int | None, nbytes: int) -> Region | None:
        """Return the allocation that holds all accesses, or None."""
        low, high = bounds_of(addr)
        region = self.bases[base] if base is not None else None
        if region is None:
            region = self.memory.find(low)
        if region is None or low < region.start or high + nbytes > region.end:
            return None
        return region if not region.is_special or region.is_plain(low, high + nbytes) else None

    def load(self, site: int, addr: Any, base: int | None, dtype: Any, n: int | None, align: int, m: Any) -> Any:
        """Return the values at global addresses."""
        nbytes = np.dtype(dtype).itemsize * (n or 1)
        if m is not None:
            addr = park_inactive(addr, m)
        region = self.region_for(addr, base, nbytes)
        if region is None:
            return self.load_apart(site, addr, base, dtype, n, align, m)
        off = addr - region.origin
        bits = low_bits(off)
        if bits & (align - 1):
            self.machine.misaligned(site, region, off, align, m, nbytes)
        if self.pending.is_counting:
            self.pending.note("vmcnt", site, m, nbytes)
        if self.watch is not None:
            self.watch.global_load(self.machine, site, region, off, nbytes, m)
        return gather(region, off, dtype, n, bits)

    def store(self, site: int, addr: Any, base: int | None, value: Any, n: int | None, align: int, m: Any) -> None:
        """Write values at global addresses."""
        nbytes = value.dtype.itemsize * (n or 1)
        parked = addr if m is None else park_inactive(addr, m)
        region = self.region_for(parked, base, nbytes)
        if region is None:
            self.store_apart(site, parked, base, value, n, align, m)
            return
        off = parked - region.origin
        bits = low_bits(off)
        if bits & (align - 1):
            self.machine.misaligned(site, region, off, align, m, nbytes)
        if not region.allocation.writable:
            self.machine.read_only(site, region, off, m)
            return
        if self.pending.is_counting and self.counts_stores:
            self.pending.note("vmcnt", site, m, nbytes)
        if self.watch is not None:
            self.watch.global_store(self.machine, site, region, off, nbytes, m, value, n)
        scatter(region, off, value, n, bits, m)

    # --- accesses that do not lie in one allocation ------------------------------------------------------------------

    def split(
        self, site: int, addr: Any, base: int | None, nbytes: int, m: Any, write: bool
    ) -> list[tuple[Region, np.ndarray]]:
        """Return (allocation, lanes) pairs of the valid lanes; report the others. Writes go to memory that may be written,
        where several allocations hold the lane."""
        lanes = np.ones(addr.shape, bool) if m is None else np.broadcast_to(m, addr.shape)
        parts = []
        allowed = [self.bases[base]] if base is not None and self.bases[base] is not None else self.memory.regions
        left = np.array(lanes)
        for region in sorted(allowed, key=lambda r: not r.allocation.writable) if write else allowed:
            inside = left & (addr >= region.start) & (addr + nbytes <= region.end)
            for start, end in region.holes:
                inside &= (addr + nbytes <= start) | (addr >= end)
            if not inside.any():
                continue
            left &= ~inside
            if region.is_freed:
                self.machine.reporter.freed(self.machine, site, region, addr, nbytes, inside, write)
            elif write and not region.allocation.writable:
                self.machine.read_only(site, region, addr - region.origin, inside)
            else:
                parts.append((region, inside))
        if left.any():
            near = self.bases[base] if base is not None else None
            self.machine.out_of_bounds(site, near, addr, nbytes, left, write)
        return parts

    def load_apart(self, site: int, addr: Any, base: int | None, dtype: Any, n: int | None, align: int, m: Any) -> Any:
        nbytes = np.dtype(dtype).itemsize * (n or 1)
        shape = addr.shape if n is None else (*addr.shape, n)
        out = np.zeros(shape, dtype)
        for region, inside in self.split(site, addr, base, nbytes, m, False):
            off = addr[inside] - region.origin
            out[inside] = gather(region, off, dtype, n, low_bits(off))
        return out[()]

    def store_apart(
        self, site: int, addr: Any, base: int | None, value: Any, n: int | None, align: int, m: Any
    ) -> None:
        nbytes = value.dtype.itemsize * (n or 1)
        for region, inside in self.split(site, addr, base, nbytes, m, True):
            off = np.where(inside, addr, region.start) - region.origin
            scatter(region, off, value, n, low_bits(off), inside)

"""Atomic read-modify-write: lanes that meet at one address take their turns in lane order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.targets.sim.mask import expand
from flydsl.targets.sim.memory import gather, low_bits, scatter
from flydsl.targets.sim.numeric import unsigned

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine


def _unsigned_pick(fn: Callable) -> Callable:
    return lambda old, v: fn(unsigned(old), unsigned(v)).view(old.dtype)


def _inc_wrap(old: Any, v: Any) -> Any:
    return np.where(unsigned(old) >= unsigned(v), old.dtype.type(0), old + old.dtype.type(1))


def _dec_wrap(old: Any, v: Any) -> Any:
    return np.where((old == 0) | (unsigned(old) > unsigned(v)), v, old - old.dtype.type(1))


PENDING_BITS = 29  # of an LDS barrier's low word; the phase is above them


def _barrier_arrive(old: Any, v: Any) -> Any:
    """Subtract from an LDS barrier: pending count in bits 28..0, phase in 31..29, count to start over with in 47..32.

    A count that falls below 0 starts over in the next phase, whose lowest bit is what waiters compare. Sources: CDNA5 ISA
    11.2.2 and 15.15; Triton's and libhipcxx' barriers, which expect N arrivals by N - 1 in both counts.
    """
    word = unsigned(old)
    count = (word & np.uint64((1 << PENDING_BITS) - 1)).astype(np.int64) - v
    phase = word >> np.uint64(PENDING_BITS) & np.uint64(7)
    start = word >> np.uint64(32) & np.uint64(0xFFFF)
    is_over = count < 0
    phase = np.where(is_over, phase + np.uint64(1) & np.uint64(7), phase)
    count = np.where(is_over, start, count.astype(np.uint64))
    return (start << np.uint64(32) | phase << np.uint64(PENDING_BITS) | count).view(np.int64)


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "xchg": lambda old, v: v,
    "add": lambda old, v: old + v,
    "sub": lambda old, v: old - v,
    "and": lambda old, v: old & v,
    "nand": lambda old, v: ~(old & v),
    "or": lambda old, v: old | v,
    "xor": lambda old, v: old ^ v,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _unsigned_pick(np.maximum),
    "umin": _unsigned_pick(np.minimum),
    "fadd": lambda old, v: old + v,
    "fsub": lambda old, v: old - v,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmaximum": np.maximum,
    "fminimum": np.minimum,
    "uinc_wrap": _inc_wrap,
    "udec_wrap": _dec_wrap,
    "barrier_arrive": _barrier_arrive,
    "usub_cond": lambda old, v: np.where(unsigned(old) >= unsigned(v), old - v, old),
    "usub_sat": lambda old, v: np.where(unsigned(old) >= unsigned(v), old - v, old.dtype.type(0)),
}
ORDER_FREE = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum,
    "min": np.minimum,
}


class AtomicAccess:
    """Atomics of one machine on global memory, LDS and generic pointers."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def read_modify_write(
        self, site: int, kind: str, space: str, addr: Any, base: Any, value: Any, n: int | None, m: Any, wants_old: bool
    ) -> Any:
        """Combine `value` into memory; return the old values (meaningful in active lanes)."""
        shape = self.shape(addr, value if n is None else value[..., 0], m)
        lanes = np.flatnonzero(expand(m, shape))
        flat_addr = np.broadcast_to(addr, shape).reshape(-1)[lanes]
        vshape = shape if n is None else (*shape, n)
        flat_value = np.ascontiguousarray(np.broadcast_to(value, vshape)).reshape(-1, *(() if n is None else (n,)))[
            lanes
        ]
        old = np.zeros_like(flat_value)
        for buffer, off, chosen in self.targets(
            site, space, addr, base, flat_addr, lanes, shape, value.dtype.itemsize * (n or 1)
        ):
            old[chosen] = self.combine(kind, buffer, off, flat_value[chosen], n, wants_old)
        if not wants_old:
            return None
        out = np.zeros(vshape, value.dtype).reshape(-1, *old.shape[1:])
        out[lanes] = old
        return out.reshape(vshape)

    def shape(self, addr: Any, value: Any, m: Any) -> tuple[int, int]:
        """Every lane acts for itself, so uniform operands still mean (G, B) operations."""
        return self.machine.G, self.machine.B

    def targets(
        self, site: int, space: str, addr: Any, base: Any, flat: Any, lanes: Any, shape: tuple, nbytes: int
    ) -> list:
        """Return (buffer, byte offsets, selection of lanes) per memory, with faulty lanes reported and left out."""
        if len(flat) == 0:
            return []
        machine = self.machine
        if space == "f":
            live = np.zeros(shape[0] * shape[1], bool)
            live[lanes] = True
            out = []
            for letter, local, mask in machine.flat_access.parts(np.broadcast_to(addr, shape), live.reshape(shape)):
                here = np.flatnonzero(
                    expand(mask, shape).reshape(-1)[lanes] if mask is not None else np.ones(len(lanes), bool)
                )
                part = np.broadcast_to(local, shape).reshape(-1)[lanes[here]]
                where = base if letter != "g" or isinstance(base, int) else None
                found = self.targets(site, letter, local, where, part, lanes[here], shape, nbytes)
                out += [(b, o, here[c]) for b, o, c in found]
            return out
        return (
            self.global_targets(site, base, flat, lanes, shape, nbytes)
            if space == "g"
            else self.row_targets(site, space, base, flat, lanes, shape, nbytes)
        )

    def global_targets(self, site: int, base: Any, flat: Any, lanes: Any, shape: tuple, nbytes: int) -> list:
        access = self.machine.global_access
        region = access.region_for(flat, base, nbytes)
        everything = np.arange(len(flat))
        if low_bits(flat) & (nbytes - 1):
            near = region or access.memory.find(int(flat[0]))
            name = f"`{near.allocation.name}`" if near is not None else "global memory"
            self.misaligned(site, name, flat, near.start if near is not None else 0, lanes, shape, nbytes)
        if region is not None:
            if not region.allocation.writable:
                self.read_only(site, region, flat, lanes, shape)
                return []
            if self.machine.watch is not None:
                self.machine.watch.global_atomic(self.machine, site, region, flat - region.origin, nbytes, lanes, shape)
            return [(region, flat - region.origin, everything)]
        bad = np.ones(len(flat), bool)
        out = []
        for region in sorted(access.memory.regions, key=lambda r: not r.allocation.writable):
            inside = bad & (flat >= region.start) & (flat + nbytes <= region.end)
            if not inside.any():
                continue
            bad &= ~inside
            if region.allocation.writable:
                out.append((region, flat[inside] - region.origin, everything[inside]))
            else:
                self.read_only(site, region, flat[inside], lanes[inside], shape)
        if bad.any():
            whole = np.zeros(shape, np.int64)
            whole.flat[lanes] = flat
            faulty = np.zeros(shape, bool)
            faulty.flat[lanes[bad]] = True
            self.machine.out_of_bounds(
                site, access.bases[base] if base is not None else None, whole, nbytes, faulty, True
            )
        return out

    def read_only(self, site: int, region: Any, flat: Any, lanes: Any, shape: tuple) -> None:
        """Report lanes whose memory may not be written."""
        off, flags = np.zeros(shape, np.int64), np.zeros(shape, bool)
        off.flat[lanes], flags.flat[lanes] = flat - region.origin, True
        self.machine.read_only(site, region, off, flags)

    def misaligned(
        self, site: int, what: str, flat: Any, start: int, lanes: Any, shape: tuple, nbytes: int
    ) -> None:
        """Report lanes whose address is no multiple of the atomic's size; `start` is where `what` begins."""
        bad = flat & (nbytes - 1) != 0
        flags = np.zeros(shape, bool)
        flags.flat[lanes[bad]] = True
        machine = self.machine
        machine.reporter.atomic_misaligned(machine, site, what, flags, int(flat[bad][0]) - start, nbytes)

    def row_targets(self, site: int, space: str, base: Any, flat: Any, lanes: Any, shape: tuple, nbytes: int) -> list:
        access = self.machine.lds_access if space == "l" else self.machine.private_access
        if access.armed:
            access.look_at(flat, nbytes)
        first, end = access.memory.arrays.get(base, (0, access.memory.nbytes))
        good = (flat >= first) & (flat + nbytes <= end)
        if low_bits(flat) & (nbytes - 1):
            self.misaligned(site, access.what, flat, 0, lanes, shape, nbytes)
        if not good.all():
            whole = np.zeros(shape, np.int64)
            whole.flat[lanes] = flat
            faulty = np.zeros(shape, bool)
            faulty.flat[lanes[~good]] = True
            self.machine.row_bounds(site, access.what, base, (first, end), whole, nbytes, faulty, True)
        off = flat + np.broadcast_to(access.row_offset, shape).reshape(-1)[lanes]
        if self.machine.watch is not None and space == "l":
            self.machine.watch.lds_atomic(
                self.machine, site, access.memory, off[good], nbytes, lanes[good], shape, base
            )
        return [(access.memory, off[good], np.flatnonzero(good))]

    def combine(self, kind: str, buffer: Any, off: Any, value: Any, n: int | None, wants_old: bool) -> Any:
        """Apply the operation in lane order; return the old values."""
        bits = low_bits(off)
        order = np.argsort(off, kind="stable")
        rank = np.empty(len(off), np.int64)
        ordered = off[order]
        starts = np.r_[True, ordered[1:] != ordered[:-1]]
        position = np.arange(len(off))
        rank[order] = position - np.maximum.accumulate(np.where(starts, position, 0))
        rounds = int(rank.max()) + 1
        if rounds > 8 and not wants_old and kind in ORDER_FREE and n is None:
            self.combine_unordered(kind, buffer, off[order], value[order], starts, bits)
            return np.zeros_like(value)
        old = np.empty_like(value)
        by_rank = np.argsort(rank, kind="stable")
        edges = np.searchsorted(rank[by_rank], np.arange(rounds + 1))
        for r in range(rounds):
            turn = by_rank[edges[r] : edges[r + 1]]
            before = gather(buffer, off[turn], value.dtype.type, n, bits)
            old[turn] = before
            scatter(buffer, off[turn], np.asarray(COMBINE[kind](before, value[turn]), value.dtype), n, bits, None)
        return old

    def combine_unordered(self, kind: str, buffer: Any, off: Any, value: Any, starts: Any, bits: int) -> None:
        """Integer operations whose order cannot be seen: reduce each run of equal addresses, then apply it once."""
        fn = ORDER_FREE["add" if kind == "sub" else kind]
        firsts = np.flatnonzero(starts)
        total = fn.reduceat(value, firsts)
        before = gather(buffer, off[firsts], value.dtype.type, None, bits)
        scatter(buffer, off[firsts], np.asarray(COMBINE[kind](before, total), value.dtype), None, bits, None)

    def compare_exchange(
        self, site: int, space: str, addr: Any, base: Any, expected: Any, new: Any, m: Any
    ) -> tuple[Any, Any]:
        """Return (old value, success) per lane, lanes taking turns."""
        shape = self.shape(addr, new, m)
        lanes = np.flatnonzero(expand(m, shape))
        flat = [np.broadcast_to(x, shape).reshape(-1)[lanes] for x in (addr, expected, new)]
        old = np.zeros(len(lanes), new.dtype)
        for buffer, off, chosen in self.targets(site, space, addr, base, flat[0], lanes, shape, new.dtype.itemsize):
            bits = low_bits(off)
            for i, at in zip(chosen, off):
                here = np.array([at])
                before = gather(buffer, here, new.dtype.type, None, bits)
                old[i] = before[0]
                if before[0] == flat[1][i]:
                    scatter(buffer, here, flat[2][i : i + 1], None, bits, None)
        out = np.zeros(shape, new.dtype)
        out.flat[lanes] = old
        return out, out == np.broadcast_to(expected, shape)

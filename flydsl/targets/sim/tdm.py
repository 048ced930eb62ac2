"""Tensor DMA of gfx1250: one wave moves a tile between a global tensor and LDS, as its descriptor says.

The descriptor's words are those of `flydsl.atoms.tdm.pack_descriptor`. Elements outside the extents read as 0 and are
not stored. Loads land when tensorcnt is waited for, or when the LDS barrier is looked at that the copy arrives at
(CDNA5 ISA 10.11.3: the arrival follows the copy; its address counts 8 bytes). Every workgroup of a multicast mask loads
its tile itself, see `multicast`; stores ignore the mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.targets.sim import multicast
from flydsl.targets.sim.memory import POISON, Region, gather, low_bits, scatter
from flydsl.targets.sim.pending import Entry

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine

_EARLY_TIMEOUT = 1 << 21  # in the first word of group 1
_DATA_TYPES = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64}


@dataclass
class Tile:
    """One wave's copy: LDS byte and global address of each element, which elements are inside the extents, and the LDS byte
    of the barrier that it arrives at.
    """

    group: int
    wave: int
    lds: np.ndarray
    address: np.ndarray
    inside: np.ndarray
    size: int
    cell: int | None = None


def bits(words: np.ndarray, low: int, count: int) -> int:
    """Return a field of a descriptor group, bit 0 being the lowest of its first word."""
    value = int.from_bytes(np.ascontiguousarray(words).astype("<u4").tobytes(), "little")
    return value >> low & (1 << count) - 1


def decode_tile(groups: list[np.ndarray]) -> tuple | None:
    """Return (element bytes, tile, extents, strides, global address, LDS address, padding, row numbers), innermost
    first.

    None for a descriptor that is switched off (`valid` is 0). Padding is (interval, amount) in bytes.
    """
    g0, g1, g2, g3 = groups[:4]
    if not bits(g0, 0, 2):
        return None
    size = 1 << bits(g1, 16, 2)
    address = bits(g0, 64, 57)
    padding = None
    if bits(g1, 20, 1):
        padding = 4 << bits(g1, 22, 3) + 1, 4 * (bits(g1, 25, 7) + 1)
    tile = [bits(g1, 112, 16), bits(g1, 128, 16), bits(g1, 144, 16)]
    extents = [bits(g1, 48, 32), bits(g1, 80, 32)]
    strides = [bits(g1, 160, 48), bits(g1, 208, 48)]
    if bits(g0, 31, 1):
        width = 32 if bits(g0, 30, 1) else 16
        words = np.concatenate([g2, g3])
        rows = [bits(words, width * i, width) for i in range(max(1, tile[1]))]
        return size, tile[:2], extents, strides[:1], address, bits(g0, 32, 32), padding, rows
    tile += [bits(g2, 112, 16), bits(g3, 80, 16)]
    extents += [bits(g2, 0, 32), bits(g2, 32, 32), bits(g3, 48, 32)]
    strides += [bits(g2, 64, 48), bits(g3, 0, 48)]
    rank = max([1] + [i + 1 for i, t in enumerate(tile) if t])
    return size, [max(1, t) for t in tile[:rank]], extents, strides, address, bits(g0, 32, 32), padding, None


def tile_elements(decoded: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (LDS offset from the tile's start, global address, inside) of each element, in tile order."""
    size, tile, extents, strides, address, _, padding, rows = decoded
    shape = tuple(reversed(tile))
    coords = np.indices(shape).reshape(len(tile), -1)[::-1]
    outer = np.asarray(rows, np.int64)[coords[1]] if rows is not None else None
    offset = coords[0].astype(np.int64)
    inside = coords[0] < extents[0]
    for i in range(1, len(tile)):
        at = outer if outer is not None and i == 1 else coords[i]
        offset = offset + at * strides[i - 1]
        inside = inside & (at < extents[i])
    linear = np.arange(coords.shape[1], dtype=np.int64) * size
    if padding is not None:
        linear = linear + linear // padding[0] * padding[1]
    return linear, address + offset * size, inside


class TensorDma:
    """Tensor copies of one machine."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def tiles(self, site: int, groups: tuple, m: Any) -> list[Tile]:
        """Return the copies of all waves that execute the instruction."""
        machine = self.machine
        ws = machine.wave_size
        words = [np.broadcast_to(g, (machine.G, machine.B, g.shape[-1])).view(np.uint32)[:, ::ws] for g in groups]
        waves = machine.pending.waves_of(m)
        out = []
        for g in range(machine.G):
            for w in range(machine.B // ws):
                if waves is not None and not waves[g, w]:
                    continue
                mine = [x[g, w] for x in words]
                decoded = decode_tile(mine)
                if decoded is not None:
                    linear, address, inside = tile_elements(decoded)
                    cell = 8 * bits(mine[1], 32, 16) if bits(mine[1], 18, 1) else None
                    out.append(Tile(g, w, linear + decoded[5], address, inside, decoded[0], cell))
        return out

    def check_multicast(self, site: int, groups: tuple, tiles: list[Tile]) -> None:
        """Check the masks of the waves' loads against each other."""
        machine = self.machine
        first = np.broadcast_to(groups[1], (machine.G, machine.B, 8)).view(np.uint32)[:, :: machine.wave_size, 0]
        if not (first & multicast.MASK_BITS).any():
            return
        for wave in sorted({t.wave for t in tiles}):
            requests = {}
            for t in (t for t in tiles if t.wave == wave):
                word = int(first[t.group, wave])
                requests[t.group] = (word & multicast.MASK_BITS, bool(word & _EARLY_TIMEOUT), (t.address, t.inside))
            multicast.check_requests(machine, site, wave, requests)

    def load(self, site: int, groups: tuple, m: Any) -> None:
        """Start copies from global memory to LDS."""
        machine = self.machine
        memory = machine.lds_access.memory
        tiles = [t for t in self.tiles(site, groups, m) if self.fits_lds(site, t, True)]
        self.check_multicast(site, groups, tiles)
        entry = Entry("tensorcnt", site, waves=machine.pending.waves_of(m))
        entry.tiles = []
        for tile in tiles:
            value = self.read_global(site, tile)
            off = tile.lds + tile.group * memory.pitch
            dtype = _DATA_TYPES[tile.size]
            poison = np.broadcast_to(POISON[: tile.size], (len(off), tile.size)).copy().view(dtype)[:, 0]
            scatter(memory, off, poison, None, low_bits(off) | tile.size, None)
            if machine.watch is not None:
                machine.watch.lds_pending(machine, site, memory, off, tile.size, None)
            entry.tiles.append((tile, off, value))
        if entry.tiles:
            entry.off = np.concatenate([off for _, off, _ in entry.tiles])
            entry.value = np.concatenate([value for _, _, value in entry.tiles])
        self.issue(entry)

    def issue(self, entry: Entry) -> None:
        """Queue a copy; one that arrives at a barrier is done when the barrier is looked at."""
        pending = self.machine.pending
        if any(t.cell is not None for t, _, _ in entry.tiles):
            pending.arm(entry)
        else:
            pending.queue.append(entry)

    def store(self, site: int, groups: tuple, m: Any) -> None:
        """Copy from LDS to global memory; the data leave LDS when issued."""
        machine = self.machine
        memory = machine.lds_access.memory
        entry = Entry("tensorcnt", site, waves=machine.pending.waves_of(m))
        entry.tiles = []
        for tile in self.tiles(site, groups, m):
            entry.tiles.append((tile, None, None))
            if not self.fits_lds(site, tile, False):
                continue
            off = tile.lds + tile.group * memory.pitch
            if machine.watch is not None:
                machine.watch.tile_read(machine, site, memory, off, tile)
            value = gather(memory, off, _DATA_TYPES[tile.size], None, low_bits(off) | tile.size)
            self.write_global(site, tile, value)
        self.issue(entry)

    # --- memory ------------------------------------------------------------------------------------------------------

    def lane_flags(self, tile: Tile) -> np.ndarray:
        """Return a mask of the wave's first lane, for reports."""
        flags = np.zeros((self.machine.G, self.machine.B), bool)
        flags[tile.group, tile.wave * self.machine.wave_size] = True
        return flags

    def fits_lds(self, site: int, tile: Tile, write: bool) -> bool:
        """Report a tile that runs past the workgroup's LDS."""
        limit = self.machine.slab.lds.nbytes
        low, high = int(tile.lds.min()), int(tile.lds.max()) + tile.size
        if 0 <= low and high <= limit:
            return True
        worst = np.full((self.machine.G, self.machine.B), low if low < 0 else high - tile.size, np.int64)
        self.machine.row_bounds(site, "LDS", None, (0, limit), worst, tile.size, self.lane_flags(tile), write)
        return False

    def region_of(self, site: int, tile: Tile, write: bool) -> Region | None:
        """Return the allocation that the tile's inner elements lie in; report a tile that leaves it."""
        live = tile.address[tile.inside]
        region = self.machine.launch.memory.find(int(live[0]))
        if region is not None and live.min() >= region.start and live.max() + tile.size <= region.end:
            return region
        outside = live if region is None else live[(live < region.start) | (live + tile.size > region.end)]
        addr = np.full((self.machine.G, self.machine.B), int(outside[0]), np.int64)
        self.machine.out_of_bounds(site, region, addr, tile.size, self.lane_flags(tile), write)
        return None

    def read_global(self, site: int, tile: Tile) -> np.ndarray:
        """Return the tile's elements, 0 outside the extents."""
        dtype = _DATA_TYPES[tile.size]
        out = np.zeros(len(tile.address), dtype)
        region = self.region_of(site, tile, False) if tile.inside.any() else None
        if region is not None:
            off = tile.address[tile.inside] - region.origin
            if self.machine.watch is not None:
                self.machine.watch.global_tile(self.machine, site, region, off, tile)
            out[tile.inside] = gather(region, off, dtype, None, low_bits(off) | tile.size)
        return out

    def write_global(self, site: int, tile: Tile, value: np.ndarray) -> None:
        """Store the elements inside the extents."""
        region = self.region_of(site, tile, True) if tile.inside.any() else None
        if region is None:
            return
        off = tile.address[tile.inside] - region.origin
        if not region.allocation.writable:
            self.machine.read_only(site, region, np.broadcast_to(off[0], (self.machine.G, self.machine.B)), self.lane_flags(tile))
            return
        if self.machine.watch is not None:
            self.machine.watch.global_tile(self.machine, site, region, off, tile, value[tile.inside])
        scatter(region, off, value[tile.inside], None, low_bits(off) | tile.size, None)

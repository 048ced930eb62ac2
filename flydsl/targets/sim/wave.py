"""Exchange between the lanes of a wave: shuffles, DPP, permutes, ballots, lane reads.

Values with one entry per workgroup (or one for all) are the same in every lane, so exchanging them changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.mask import expand
from flydsl.targets.sim.numeric import popcount


def is_uniform(x: Any) -> bool:
    """Return whether all lanes of a wave hold the same value by the array's shape."""
    return x.ndim == 0 or x.shape[1] == 1


def gather_lanes(machine: Any, x: Any, src: Any) -> Any:
    """Return, per lane, the value that lane `src` of its wave holds (`src` is taken modulo the wave size)."""
    if is_uniform(x):
        return x
    src = np.asarray(src) & (machine.wave_size - 1)
    index = machine.wave_base + src
    if index.shape[0] == 1:
        return x.take(index[0], axis=1)
    return np.take_along_axis(np.broadcast_to(x, (index.shape[0], x.shape[1])), index, axis=1)


def source_active(machine: Any, m: Any, src: Any) -> Any:
    """Return per lane whether its source lane is active, or None when all are."""
    if m is None or m is True or m.ndim == 0:
        return None
    return gather_lanes(machine, m, src)


def keep_own(machine: Any, m: Any, src: Any, got: Any, own: Any) -> Any:
    """Return `got`, and `own` (what the instruction gives then) where the source lane is inactive."""
    active = source_active(machine, m, src)
    return got if active is None else np.where(active, got, own)


def h_shuffle_xor(machine: Any, x: Any, k: int, m: Any) -> Any:
    """Return the value of lane `lane ^ k`, `k` static and inside the wave; 0 where that lane is inactive."""
    if is_uniform(x):
        return x if m is None else keep_own(machine, m, machine.lane_in_wave ^ k, x, x.dtype.type(0))
    if k * x.itemsize in (4, 8) and k in (1, 2):
        words = np.ascontiguousarray(x).view(np.int32 if k * x.itemsize == 4 else np.int64)
        swapped = np.empty_like(words)
        swapped[:, ::2], swapped[:, 1::2] = words[:, 1::2], words[:, ::2]
        got = swapped.view(x.dtype)
    elif k >= 8 and k & (k - 1) == 0:
        g, b = x.shape
        got = x.reshape(g, b // (2 * k), 2, k)[:, :, ::-1].reshape(g, b)
    else:
        got = x.take(machine.xor_index(k), axis=1)
    return got if m is None else keep_own(machine, m, machine.lane_in_wave ^ k, got, x.dtype.type(0))


def h_shuffle_vector_xor(machine: Any, x: Any, k: int, m: Any) -> Any:
    parts = [h_shuffle_xor(machine, x[..., i], k, m) for i in range(x.shape[-1])] if x.ndim > 1 else None
    return x if parts is None else np.stack(np.broadcast_arrays(*parts), axis=-1)


def h_shuffle_any(machine: Any, site: int, mode: str, x: Any, offset: Any, width: Any, m: Any) -> tuple[Any, Any]:
    """Return (value, valid) of a shuffle; a source outside of the group gives the lane's own value.

    So does an inactive one for up and down; for xor and idx it gives 0, as the lane exchanges of the chips do.
    """
    lane = machine.lane_in_wave
    width = width.astype(np.int64)
    bad = (width <= 0) | (width > machine.wave_size) | (width & (width - 1) != 0)
    if np.any(bad):
        machine.undefined(site, f"a shuffle in groups that are no power of two up to {machine.wave_size} lanes", bad, m)
    first = lane & -width
    offset = offset.astype(np.int64)
    if mode == "xor":
        src = lane ^ offset
    elif mode == "up":
        src = lane - offset
    elif mode == "down":
        src = lane + offset
    else:
        src = first + (offset & (width - 1))
    valid = (src >= first) & (src < first + width)
    src = np.where(valid, src, lane)
    inactive = x if mode in ("up", "down") else x.dtype.type(0)
    return keep_own(machine, m, src, gather_lanes(machine, x, src), inactive), valid


def h_shuffle_vector_any(machine: Any, site: int, mode: str, x: Any, offset: Any, width: Any, m: Any) -> tuple[Any, Any]:
    if x.ndim == 1:
        return x, np.bool_(True)
    pairs = [h_shuffle_any(machine, site, mode, x[..., i], offset, width, m) for i in range(x.shape[-1])]
    return np.stack(np.broadcast_arrays(*[p[0] for p in pairs]), axis=-1), pairs[0][1]


def h_rotate(machine: Any, x: Any, offset: int, width: int, m: Any) -> tuple[Any, Any]:
    """Return the value of the lane `offset` further on, around each group of `width` lanes."""
    lane = machine.lane_in_wave
    src = (lane & -width) + ((lane + offset) & (width - 1))
    return keep_own(machine, m, src, gather_lanes(machine, x, src), x), np.bool_(True)


def h_bpermute(machine: Any, index: Any, x: Any, m: Any) -> Any:
    """Return the value of lane `index / 4`; inactive sources give 0."""
    src = (index.view(np.uint32) >> np.uint32(2)).astype(np.int64)
    return keep_own(machine, m, src, gather_lanes(machine, x, src), x.dtype.type(0))


def h_readfirstlane(machine: Any, x: Any, m: Any) -> Any:
    """Return the value of the first active lane, in every lane."""
    if is_uniform(x):
        return x
    ws = machine.wave_size
    if m is None or m.ndim == 0 or m.shape[1] == 1:
        return np.repeat(x[:, ::ws], ws, axis=1)
    g = max(x.shape[0], m.shape[0])
    active = expand(m, (g, x.shape[1])).reshape(g, -1, ws)
    first = active.argmax(axis=2)
    picked = np.take_along_axis(np.broadcast_to(x, (g, x.shape[1])).reshape(g, -1, ws), first[..., None], axis=2)
    return np.repeat(picked[..., 0], ws, axis=1)


def h_readlane(machine: Any, x: Any, lane: Any, m: Any) -> Any:
    """Return the value of lane `lane`, active or not, in every lane; the lane number is that of the first active
    lane."""
    return gather_lanes(machine, x, h_readfirstlane(machine, lane, m).astype(np.int64))


def h_ballot(machine: Any, pred: Any, m: Any, dtype: Any) -> Any:
    """Return the bit mask of active lanes where `pred` holds."""
    ws, b = machine.wave_size, machine.B
    bits = pred if m is None else (pred & m)
    if bits.ndim == 0:
        bits = bits[None, None]
    full = np.broadcast_to(bits, (bits.shape[0], b)).reshape(bits.shape[0], -1, ws)
    words = np.packbits(full, axis=2, bitorder="little").view(np.uint64 if ws == 64 else np.uint32)
    signed = words.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)[..., 0]
    return np.repeat(signed, ws, axis=1)


def h_mbcnt(machine: Any, mask: Any, base: Any, high: bool) -> Any:
    """Count the bits of `mask` below the lane (the low or the high 32 lanes), plus `base`."""
    lane = machine.lane_in_wave - (32 if high else 0)
    below = np.where(lane <= 0, 0, (np.int64(1) << np.clip(lane, 0, 32)) - 1)
    count = popcount((mask.view(np.uint32).astype(np.int64) & below).astype(np.uint64))
    return base + count.astype(np.int32)


def dpp_source(machine: Any, ctrl: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (source lane, in range) of each lane of a wave for a DPP control code.

    Source   CDNA3 ISA, data parallel primitives; row_share and row_xmask from the RDNA3 ISA
    """
    lane = machine.lane_in_wave
    row, pos, ws = lane & ~15, lane & 15, machine.wave_size
    if ctrl <= 0xFF:
        sel = np.array([ctrl >> 2 * i & 3 for i in range(4)])
        src, ok = (lane & ~3) + sel[lane & 3], lane >= 0
    elif 0x101 <= ctrl <= 0x10F:
        src, ok = lane + (ctrl & 15), pos + (ctrl & 15) < 16
    elif 0x111 <= ctrl <= 0x11F:
        src, ok = lane - (ctrl & 15), pos >= (ctrl & 15)
    elif 0x121 <= ctrl <= 0x12F:
        src, ok = row + ((pos - (ctrl & 15)) & 15), lane >= 0
    elif ctrl in (0x130, 0x138):
        src = lane + (1 if ctrl == 0x130 else -1)
        ok = (src >= 0) & (src < ws)
    elif ctrl in (0x134, 0x13C):
        src, ok = (lane + (1 if ctrl == 0x134 else -1)) & (ws - 1), lane >= 0
    elif ctrl == 0x140:
        src, ok = row + 15 - pos, lane >= 0
    elif ctrl == 0x141:
        src, ok = (lane & ~7) + 7 - (lane & 7), lane >= 0
    elif ctrl == 0x142:
        src, ok = row - 1, row >= 16
    elif ctrl == 0x143:
        src, ok = np.full_like(lane, 31), lane >= 32
    elif 0x150 <= ctrl <= 0x15F:
        src, ok = row + (ctrl & 15), lane >= 0
    elif 0x160 <= ctrl <= 0x16F:
        src, ok = row + (pos ^ (ctrl & 15)), lane >= 0
    else:
        raise ValueError(f"unknown DPP control code {ctrl:#x}")
    return np.where(ok, src, lane), np.broadcast_to(ok, lane.shape)


def h_dpp(machine: Any, old: Any, x: Any, ctrl: int, row_mask: int, bank_mask: int, bound_ctrl: bool, m: Any) -> Any:
    """Return the DPP move of `x`: lanes that the masks disable keep `old`; sources out of range give `old`, or 0 with
    bound_ctrl."""
    src, ok = dpp_source(machine, ctrl)
    lane = machine.lane_in_wave
    got = gather_lanes(machine, x, src)
    active = source_active(machine, m, src)
    readable = ok if active is None else ok & active
    if not readable.all():
        got = np.where(readable, got, x.dtype.type(0) if bound_ctrl else old)
    if row_mask != 15 or bank_mask != 15:
        enabled = (row_mask >> (lane >> 4 & 3) & 1) & (bank_mask >> (lane >> 2 & 3) & 1)
        got = np.where(enabled != 0, got, old)
    return got


def h_swizzle(machine: Any, x: Any, offset: int, m: Any) -> Any:
    """ds_swizzle: quad permute (bit 15) or and/or/xor masks within 32 lanes; inactive sources give 0."""
    lane = machine.lane_in_wave
    if offset & 0x8000:
        sel = np.array([offset >> 2 * i & 3 for i in range(4)])
        src = (lane & ~3) + sel[lane & 3]
    else:
        and_, or_, xor = offset & 31, offset >> 5 & 31, offset >> 10 & 31
        src = (lane & ~31) + ((((lane & 31) & and_) | or_) ^ xor)
    return keep_own(machine, m, src, gather_lanes(machine, x, src), x.dtype.type(0))


def h_permlane_swap(machine: Any, a: Any, b: Any, half: int) -> tuple[Any, Any]:
    """Exchange the odd groups of `half` lanes of `a` with the even groups of `b`."""
    lane = machine.lane_in_wave
    odd = (lane & half) != 0
    return np.where(odd, gather_lanes(machine, b, lane - half), a), np.where(
        odd, b, gather_lanes(machine, a, lane + half)
    )


def h_permlane16(machine: Any, old: Any, x: Any, low: Any, high: Any, cross: bool, m: Any) -> Any:
    """Gather inside rows of 16 lanes (from the other row when `cross`) by 4-bit selectors in two scalars."""
    lane = machine.lane_in_wave
    pos = lane & 15
    word = np.where(pos < 8, low.view(np.uint32).astype(np.int64), high.view(np.uint32).astype(np.int64))
    sel = word >> (4 * (pos & 7)) & 15
    src = ((lane & ~15) ^ (16 if cross else 0)) + sel
    return keep_own(machine, m, src, gather_lanes(machine, x, src), old)

"""Masks of active lanes, and the choice between values under them.

A mask is None (every lane), False (no lane) or a boolean array that broadcasts against (workgroups, threads).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Mask = Any  # None | False | ndarray of bool


def h_split(m: Mask, cond: Any) -> tuple[Mask, Mask]:
    """Return the masks of the lanes of `m` where `cond` holds, and where it does not."""
    if cond.ndim == 0:
        return (m, False) if cond else (False, m)
    if m is None:
        taken = cond
        if taken.all():
            return None, False
        if not taken.any():
            return False, None
        return taken, ~cond
    taken = m & cond
    if not taken.any():
        return False, m
    left = m & ~cond
    if not left.any():
        return m, False
    return taken, left


def h_select(cond: Any, a: Any, b: Any) -> Any:
    """Return `a` where `cond` holds, else `b`, for scalars per lane."""
    if type(a) is tuple:
        return tuple(h_select(cond, x, y) for x, y in zip(a, b))
    if cond.ndim == 0:
        return a if cond else b
    return np.where(cond, a, b)


def h_selectv(cond: Any, a: Any, b: Any) -> Any:
    """Return an elementwise choice where `cond` is itself a vector."""
    return np.where(cond, a, b)


def h_merge_part(cond: Any, a: Any, b: Any) -> Any:
    """Return `a` where the lane's `cond` holds, else `b`, for vectors (the last axis is the element)."""
    if cond.ndim == 0:
        return a if cond else b
    return np.where(cond[..., None], a, b)


def h_merge(cond: Any, a: Any, b: Any) -> Any:
    """Join the results of two branches; None is a branch that no lane took."""
    if a is None:
        return b
    if b is None or a is b:
        return a
    return h_select(cond, a, b)


def h_mergev(cond: Any, a: Any, b: Any) -> Any:
    """`h_merge` for vectors."""
    if a is None:
        return b
    if b is None or a is b:
        return a
    return h_merge_part(cond, h_lanes(a), h_lanes(b))


def h_carry(inner: Mask, outer: Mask, new: Any, old: Any) -> Any:
    """Return `new` for the lanes of `inner`, `old` for the rest."""
    if inner is outer or old is None or inner is None:
        return new
    if type(new) is tuple:
        return tuple(h_carry(inner, outer, x, y) for x, y in zip(new, old))
    return np.where(inner, new, old)


def h_carryv(inner: Mask, outer: Mask, new: Any, old: Any) -> Any:
    """`h_carry` for vectors."""
    if inner is outer or old is None or inner is None:
        return new
    return np.where(inner[..., None], h_lanes(new), h_lanes(old))


def h_lanes(value: Any) -> Any:
    """Return an array in lane form; matrix accumulators unpack themselves."""
    return value if isinstance(value, np.ndarray) else value.lanes()


def h_range(
    machine: Any, site: int, lo: Any, hi: Any, step: Any, m: Mask, unsigned: bool
) -> Iterator[tuple[Any, Mask]]:
    """Yield (induction value, mask) per trip: once for all lanes when the bounds are uniform, else while a lane is
    left."""
    if lo.ndim == 0 and hi.ndim == 0 and step.ndim == 0:
        if step <= 0:
            machine.fault_step(site, step)
            return
        cls = type(lo)
        first, last = (int(lo), int(hi)) if not unsigned else (int(_unsigned(lo)), int(_unsigned(hi)))
        for i in range(first, last, int(step)):
            yield cls(i), m
        return
    if np.any(step <= 0):
        machine.fault_step(site, np.min(step))
        return
    if unsigned:
        lo, hi = _unsigned(lo), _unsigned(hi)
    i = lo
    inner, _ = h_split(m, i < hi)
    while inner is not False:
        machine.count_trip(site)
        yield i, inner
        i = i + step
        inner, _ = h_split(inner, i < hi)


def _unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def expand(m: Mask, shape: tuple[int, ...]) -> np.ndarray:
    """Return the mask as a boolean array of `shape`."""
    if m is None:
        return np.ones(shape, bool)
    return np.broadcast_to(m, shape)

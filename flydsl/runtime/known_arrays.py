"""Tells the simulator which arrays launches are given and when they are gone, so that a bare address into one of them is
checked against it.

Small NumPy arrays are kept for a while: one that nobody else refers to is gone for the program, and its memory belongs to
nobody else yet. Of others a weak reference tells whether they are gone, not whether their memory was given out again.
Nothing may be written when an array ends: NumPy 2.5 frees the memory before it calls the weak references back.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from flydsl.runtime.host_arrays import HostArray
from flydsl.targets.sim.known_memory import KnownArray, known

KEPT_ARRAYS, KEPT_BYTES = 32, 1 << 17  # larger arrays often go back to the system, which shows that they are gone

Tests = tuple[Callable[[], bool], Callable[[], bool]]  # is alive, is free


class Kept:
    """Keeps an array."""

    __slots__ = ("array", "__weakref__")

    def __init__(self, array: Any) -> None:
        self.array = array

    def references(self) -> int:
        """The number of references to the array, as CPython counts them in this method."""
        return sys.getrefcount(self.array)


kept: deque[Kept] = deque(maxlen=KEPT_ARRAYS)  # of the arrays of up to KEPT_BYTES the ones that launches were given last
ONLY_KEPT = Kept(object()).references()


def remember(name: str, array: HostArray) -> None:
    """Remember the memory behind an array; a view stands for the array that owns it."""
    found = owner_of(array)
    if found is None:
        return
    start, end, make_tests = found
    seen = known.arrays.get((start, end))
    if seen is None or not seen.is_alive():
        known.see(KnownArray(name, start, end, *make_tests()))


def owner_of(array: HostArray) -> tuple[int, int, Callable[[], Tests]] | None:
    """Return (first byte, end, what makes the tests) of the memory that a view belongs to; None where nobody tells."""
    owner = array.owner
    if isinstance(owner, np.ndarray):
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if not owner.nbytes or owner.base is not None:
            return None
        start = array.address if owner is array.owner else owner.ctypes.data
        return start, start + owner.nbytes, lambda: _numpy_tests(owner)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.Tensor):
        storage = owner.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        return (start, start + size, lambda: _torch_tests(storage)) if size else None
    return None


def _numpy_tests(owner: np.ndarray) -> Tests:
    """Return the tests of an array that owns its memory."""
    array = weakref.ref(owner)
    if type(owner) is not np.ndarray or not owner.flags.owndata or owner.nbytes > KEPT_BYTES:
        return lambda: array() is not None, lambda: False
    kept.append(Kept(owner))
    keeper = weakref.ref(kept[-1])

    def is_alive() -> bool:
        found = keeper()
        return array() is not None if found is None else found.references() > ONLY_KEPT

    return is_alive, lambda: keeper() is not None


def _torch_tests(storage: Any) -> Tests:
    """Return the tests of a storage; who gets its memory next is not seen."""
    from torch.multiprocessing.reductions import StorageWeakRef

    reference = StorageWeakRef(storage)
    return lambda: not reference.expired(), lambda: False

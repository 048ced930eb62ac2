"""Tells the simulator which arrays launches are given and when they are gone, so that a bare address into one of them is
checked against it.

The last act of a NumPy array that a launch was given is to fill its memory with a pattern: where the pattern is, nothing
was written since.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from flydsl.runtime.host_arrays import HostArray
from flydsl.targets.sim.known_memory import KnownArray, known

SKIPPED_BYTES, PATTERN_BYTES = 64, 1 << 18  # the allocator keeps its lists in the first bytes of free memory
COMPARED_BYTES = 64
PATTERN = b"\xc1\x7f" * (PATTERN_BYTES // 2)  # NaN as f32, f16 and bf16

Tests = tuple[Callable[[], bool], Callable[[int], bool]]  # is alive, is unwritten


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
        return start, start + owner.nbytes, lambda: _numpy_tests(owner, start)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.Tensor):
        storage = owner.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        return (start, start + size, lambda: _torch_tests(storage)) if size else None
    return None


def _numpy_tests(owner: np.ndarray, start: int) -> Tests:
    """Return the tests of an array that owns its memory; the pattern is written while it ends, before it is freed."""
    first, length = start + SKIPPED_BYTES, min(owner.nbytes, PATTERN_BYTES) - SKIPPED_BYTES
    has_pattern = length > 0 and owner.flags.owndata and owner.flags.writeable
    move, data = ctypes.memmove, PATTERN  # both are gone from the module when the interpreter ends
    reference = weakref.ref(owner, (lambda _: move(first, data, length)) if has_pattern else None)

    def is_unwritten(address: int) -> bool:
        at = max(first, address & ~1)
        size = min(COMPARED_BYTES, first + length - at)
        return has_pattern and size > 0 and ctypes.string_at(at, size) == PATTERN[:size]

    return lambda: reference() is not None, is_unwritten


def _torch_tests(storage: Any) -> Tests:
    """Return the tests of a storage; who gets its memory next is not seen."""
    from torch.multiprocessing.reductions import StorageWeakRef

    reference = StorageWeakRef(storage)
    return lambda: not reference.expired(), lambda address: False

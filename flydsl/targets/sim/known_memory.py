"""Arrays that launches of this process were given: where they lie and whether they still exist.

A bare address says nothing about its memory. If it lies in an array that an earlier launch was given, accesses are
checked against that array; if that array is gone and nobody has got its memory since, they touch freed memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from flydsl.utils.record import record

MOST = 1024  # arrays that are remembered; the oldest go first


@record
class KnownArray:
    """Memory `start`..`end`. `is_alive()`: whether the array still exists; `moment`: when it was first seen.

    `is_free()`: of one that is gone, whether surely nobody has got its memory since.
    """

    name: str
    start: int
    end: int
    is_alive: Callable[[], bool]
    is_free: Callable[[], bool]
    moment: int = 0


class KnownMemory:
    """The arrays, oldest first. Threads may launch at the same time."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[int, int], KnownArray] = {}
        self.provided: dict[tuple[int, int], str] = {}
        self.moment = 0  # counts the arrays
        self.lock = threading.RLock()

    def see(self, array: KnownArray) -> None:
        """Remember an array, unless it is known."""
        with self.lock:
            found = self.arrays.get((array.start, array.end))
            if found is None or not found.is_alive():
                self.reuse(array.start, array.end)
                self.add(array)

    def see_all(self, arrays: Iterable[tuple[str, int, int]]) -> None:
        """Take the (name, start, end) of all live memory of a device: what is missing since last time was freed."""
        with self.lock:
            before, self.provided = self.provided, {(start, end): name for name, start, end in arrays}
            for key in before.keys() - self.provided.keys():
                self.add(KnownArray(before[key], *key, is_alive=lambda: False, is_free=lambda: True))
            for key in self.provided.keys() - before.keys():
                self.reuse(*key)

    def add(self, array: KnownArray) -> None:
        """Put an array in the place of one with the same memory."""
        key = array.start, array.end
        self.arrays.pop(key, None)
        self.moment += 1
        self.arrays[key] = replace(array, moment=self.moment)
        if len(self.arrays) > MOST:
            del self.arrays[next(iter(self.arrays))]

    def reuse(self, start: int, end: int) -> None:
        """Forget the arrays that are gone and whose memory was given out again."""
        for other in self.overlapping(start, end):
            if not other.is_alive():
                del self.arrays[other.start, other.end]

    def overlapping(self, start: int, end: int) -> list[KnownArray]:
        """Return the arrays that touch a range, newest first."""
        with self.lock:
            return [a for a in reversed(self.arrays.values()) if a.start < end and start < a.end]

    def at(self, address: int) -> KnownArray | None:
        """Return the array at an address: one that exists before one that is gone."""
        found = self.overlapping(address, address + 1)
        return next((a for a in found if a.is_alive()), found[0] if found else None)

    def is_same(self, address: int, moment: int) -> bool:
        """Return whether an address still belongs to the array that it belonged to then, as far as it is known."""
        found = self.at(address)
        return found is None or found.is_alive() and found.moment <= moment


known = KnownMemory()

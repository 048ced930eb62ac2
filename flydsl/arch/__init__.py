"""Facts per chip as frozen records: `arch.get("gfx942").lds.bytes`.

Standard library only; no other package of flydsl is imported here. Which chip has which instruction
is decided here (`Chip.has`), how the instruction behaves is in `atoms`.
"""

from __future__ import annotations

import difflib

from flydsl.arch import cdna3, cdna4, cdna5, rdna3, rdna4
from flydsl.arch.facts import (
    FEATURES,
    BufferFacts,
    Chip,
    CodeObjectFacts,
    LdsFacts,
    RegisterFacts,
    WaitcntFields,
)

__all__ = [
    "CHIPS", "FEATURES", "BufferFacts", "Chip", "CodeObjectFacts", "LdsFacts", "RegisterFacts",
    "UnknownArch", "WaitcntFields", "get", "names",
]

CHIPS: dict[str, Chip] = {
    chip.name: chip
    for family in (cdna3, cdna4, cdna5, rdna3, rdna4)
    for chip in family.CHIPS
}


class UnknownArch(ValueError):
    """The name of a chip that is not in the table."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.known = names()
        self.close = tuple(difflib.get_close_matches(arch, self.known, n=3, cutoff=0.6))
        super().__init__(arch)

    def __str__(self) -> str:
        close = f" Did you mean {' or '.join(self.close)}?" if self.close else ""
        return f"unknown arch {self.arch!r}.{close} Known: {', '.join(self.known)}"


def names() -> tuple[str, ...]:
    """Return the names of all chips, CDNA first."""
    return tuple(CHIPS)


def get(arch: str) -> Chip:
    """Return the chip called `arch`; target features behind a colon (`gfx942:xnack-`) are dropped.

    Raises   UnknownArch: lists the known names and the close ones
    """
    chip = CHIPS.get(arch.split(":")[0].strip().lower())
    if chip is None:
        raise UnknownArch(arch)
    return chip


for _chip in CHIPS.values():
    assert _chip.features <= FEATURES.keys(), (_chip.name, _chip.features - FEATURES.keys())
del _chip

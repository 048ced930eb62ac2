"""Facts per chip as frozen records: `arch.get("gfx942").lds.bytes`.

Standard library only; of flydsl only the error catalogue is imported. Which chip has which instruction
is decided here (`Chip.has`), how the instruction behaves is in `atoms`.
"""

from __future__ import annotations

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
from flydsl.diag.errors.target import UnknownArch

__all__ = [
    "CHIPS",
    "FEATURES",
    "BufferFacts",
    "Chip",
    "CodeObjectFacts",
    "LdsFacts",
    "RegisterFacts",
    "UnknownArch",
    "WaitcntFields",
    "get",
    "names",
]

CHIPS: dict[str, Chip] = {chip.name: chip for family in (cdna3, cdna4, cdna5, rdna3, rdna4) for chip in family.CHIPS}


def names() -> tuple[str, ...]:
    """Return the names of all chips, CDNA first."""
    return tuple(CHIPS)


def get(arch: str) -> Chip:
    """Return the chip called `arch`; target features behind a colon (`gfx942:xnack-`) are dropped.

    Raises   UnknownArch: lists the known names and the close ones
    """
    chip = CHIPS.get(arch.split(":")[0].strip().lower())
    if chip is None:
        raise UnknownArch(arch=arch, known=names())
    return chip


for _chip in CHIPS.values():
    assert _chip.features <= FEATURES.keys(), (_chip.name, _chip.features - FEATURES.keys())
del _chip

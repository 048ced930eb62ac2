"""The first product of each chip, for simulated devices and static estimates. Source: AMD's product pages."""

from __future__ import annotations

from flydsl.utils.record import record


@record
class Board:
    """`compute_units` as HIP counts them (work group processors on RDNA)."""

    compute_units: int
    memory_gib: int
    l2_mib: int


_BOARDS = {
    "gfx942": Board(304, 192, 4),
    "gfx950": Board(256, 288, 4),
    "gfx1100": Board(48, 24, 6),
    "gfx1201": Board(32, 16, 8),
}
_CDNA_AFTER = Board(256, 288, 4)  # gfx1250: nothing is published, gfx950's numbers stand in
_OTHER = Board(32, 16, 4)


def board(arch: str) -> Board:
    """Return the board of a chip."""
    return _BOARDS.get(arch, _CDNA_AFTER if arch.startswith("gfx125") else _OTHER)

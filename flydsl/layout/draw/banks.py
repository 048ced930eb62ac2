"""Bank conflicts of an LDS layout: which bank serves each element, and how many lanes meet in one.

A phase is the set of lanes whose access fits into one row of banks. The chip's numbers come as
a small
record (`BankFacts`), which any object with `banks` and `bank_bytes` can fill (`facts_of`).
"""

from __future__ import annotations

from typing import Any

from flydsl.layout.coords import crd2idx
from flydsl.layout.draw.grids import extents, place
from flydsl.layout.draw.picture import Cell, Picture
from flydsl.layout.errors import OperandType
from flydsl.layout.int_tuple import as_modes, product
from flydsl.layout.layout import Layout
from flydsl.utils.record import record


@record
class BankFacts:
    """Banks of the LDS of a chip; gfx942 has 32 of 4 bytes, gfx950 has 64."""

    banks: int = 32
    bank_bytes: int = 4
    name: str = ""

    @property
    def row_bytes(self) -> int:
        return self.banks * self.bank_bytes


GFX942 = BankFacts(32, 4, "gfx942")
GFX950 = BankFacts(64, 4, "gfx950")


def facts_of(lds: Any, name: str = "") -> BankFacts:
    """Return the facts in a record with `banks` and `bank_bytes`, such as a chip's LDS record."""
    return BankFacts(lds.banks, lds.bank_bytes, name)


@record
class Access:
    """How a wave touches a tile: `tv` maps (lane, value) to the column-major index of the element.

    Each lane moves all its values in one instruction. `lanes_per_phase` 0 means as many
    neighbouring lanes as
    one row of banks can serve.
    """

    tv: Layout
    lanes_per_phase: int = 0

    def phases(self, elem_bits: int, facts: BankFacts) -> list[range]:
        """Return the lanes of each phase."""
        lanes, values = (product(m) for m in as_modes(self.tv.shape)[:2])
        lane_bytes = max(values * elem_bits // 8, 1)
        step = self.lanes_per_phase or max(facts.row_bytes // lane_bytes, 1)
        return [range(first, min(first + step, lanes)) for first in range(0, lanes, step)]


def _words(layout: Any, access: Access, lane: int, elem_bits: int, facts: BankFacts) -> set[int]:
    """Return the numbers of the bank words which one lane touches."""
    bytes_of = facts.bank_bytes * 8
    out = set()
    for v in range(product(as_modes(access.tv.shape)[1])):
        first = crd2idx.uncached(crd2idx.uncached((lane, v), access.tv), layout) * elem_bits
        out.update(range(first // bytes_of, (first + elem_bits - 1) // bytes_of + 1))
    return out


def conflict_degrees(layout: Any, access: Access, elem_bits: int, facts: BankFacts) -> tuple[int, ...]:
    """Return for each phase how many different words of one bank are asked for at most.

    Shapes   layout: coordinate in the tile -> element index in the LDS
    Units    elem_bits in bits; result 1 = free of conflicts
    Law      moving every index by a full row of banks changes nothing; equal words are broadcast
    """
    degrees = []
    for lanes in access.phases(elem_bits, facts):
        words = set().union(*(_words(layout, access, lane, elem_bits, facts) for lane in lanes))
        count: dict[int, int] = {}
        for word in words:
            count[word % facts.banks] = count.get(word % facts.banks, 0) + 1
        degrees.append(max(count.values()))
    return tuple(degrees)


def _loads(layout: Any, access: Access, elem_bits: int, facts: BankFacts) -> dict[int, int]:
    """Return for each word the number of words of its bank in the phase that touches it."""
    out: dict[int, int] = {}
    for lanes in access.phases(elem_bits, facts):
        words = set().union(*(_words(layout, access, lane, elem_bits, facts) for lane in lanes))
        for word in words:
            out[word] = sum(w % facts.banks == word % facts.banks for w in words)
    return out


def bank_grid(
    layout: Any,
    elem_bits: int,
    facts: BankFacts = GFX942,
    access: Access | None = None,
    title: str = "",
) -> Picture:
    """Return the bank view of an LDS layout: the bank of each element, darker where lanes meet
    in it.

    Without an access the colours only tell banks apart. The title says the conflict degree of
    each phase.
    """
    if elem_bits < 1:
        raise OperandType(f"{elem_bits} bits are no element width", "bank_grid", (layout, elem_bits))
    rows, cols = extents(layout)
    load = _loads(layout, access, elem_bits, facts) if access else {}
    word_bits = facts.bank_bytes * 8

    def cell(r: int, c: int) -> Cell:
        word = place(layout, r, c, rows) * elem_bits // word_bits
        if access is None:
            return Cell(str(word % facts.banks), tint=word % facts.banks // 4)
        met = load.get(word, 0)
        step = 0 if met <= 1 else min(met.bit_length(), 6)
        return Cell(str(word % facts.banks), tint=step, ramp=True, mark=word in load)

    table = tuple(tuple(cell(r, c) for c in range(cols)) for r in range(rows))
    chip = f"{facts.name + ': ' if facts.name else ''}{facts.banks} banks x {facts.bank_bytes} B"
    head = f"{title or layout}, {elem_bits}-bit elements, {chip}"
    caption = "cell: bank"
    if access:
        degrees = conflict_degrees(layout, access, elem_bits, facts)
        shown = " ".join(map(str, degrees[:16])) + (" ..." if len(degrees) > 16 else "")
        head += f"; conflict degree {max(degrees)} (per phase: {shown})"
        caption += "; framed: touched by the access; darker: more words of one bank in a phase"
    return Picture(head, table, tuple(map(str, range(rows))), tuple(map(str, range(cols))), caption)

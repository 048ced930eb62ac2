"""SSA values during translation: where a value lives in the generated Python text.

A scalar is one Python name. A vector is a list of pieces (parts of arrays, repeated scalars), so that inserting and
extracting
slices is free; it becomes one array only when an op needs that.
"""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.targets.sim.translate.types import IrType


@dataclass(eq=False)
class Scalar:
    """One name; `const` is its Python value when static.

    `base` names what a pointer was derived from (a kernel argument `a3`, an LDS array `@name`) or is None if unknown.
    """

    text: str
    type: IrType
    const: int | float | None = None
    base: str | None = None


@dataclass(eq=False)
class Piece:
    """`length` elements: from `off` of the array `text` (of `total` elements), or the scalar `text` repeated (total
    0)."""

    text: str
    off: int
    length: int
    total: int
    const: int | float | None = None

    @property
    def is_splat(self) -> bool:
        return self.total == 0

    def part(self, off: int, length: int) -> Piece:
        """Return `length` elements from `off` of this piece."""
        if self.is_splat:
            return Piece(self.text, 0, length, 0, self.const)
        return Piece(self.text, self.off + off, length, self.total)


@dataclass(eq=False)
class Vector:
    """A 1-D vector as pieces."""

    type: IrType
    pieces: list[Piece]

    @property
    def n(self) -> int:
        return self.type.n

    @property
    def splat(self) -> Piece | None:
        """The repeated scalar if the whole vector is one."""
        return self.pieces[0] if len(self.pieces) == 1 and self.pieces[0].is_splat else None

    def cuts(self) -> tuple[int, ...]:
        """Return the start offsets of the pieces after the first."""
        out, at = [], 0
        for p in self.pieces[:-1]:
            at += p.length
            out.append(at)
        return tuple(out)

    def slice(self, off: int, length: int) -> list[Piece]:
        """Return the pieces of elements `off .. off+length-1`, adjacent parts of one array joined."""
        out: list[Piece] = []
        at = 0
        for p in self.pieces:
            lo, hi = max(off, at), min(off + length, at + p.length)
            if lo < hi:
                out.append(p.part(lo - at, hi - lo))
            at += p.length
        return join(out)


def join(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with neighbours that continue one array (or repeat one scalar) merged."""
    out: list[Piece] = []
    for p in pieces:
        last = out[-1] if out else None
        if last and last.text == p.text and last.total == p.total:
            if p.is_splat or last.off + last.length == p.off:
                out[-1] = Piece(p.text, last.off, last.length + p.length, p.total, p.const)
                continue
        out.append(p)
    return out


@dataclass(eq=False)
class Struct:
    """An LLVM struct: its fields."""

    type: IrType
    fields: list


Value = Scalar | Vector | Struct

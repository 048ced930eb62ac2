"""Swizzles: XORs on index bits (`Swizzle`) and on coordinates (`CoordSwizzle`).

A swizzle inside a composed layout acts on element indices; on a pointer it acts on byte addresses.
Neighbours: `layout` composes them, `recast` shifts them. Does not know memory spaces.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from . import leaf
from .errors import OperandType
from .int_tuple import IntTuple, at_path
from .leaf import Sym


class _Value:
    """Immutable, slotted value whose slots are its constructor arguments."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable, cannot set {name}")

    def _key(self) -> tuple:
        return tuple(getattr(self, s) for s in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self is other or type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __reduce__(self) -> tuple:
        return type(self), self._key()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._key()))})"


class Swizzle(_Value):
    """`S<bits,base,shift>`: x ^ ((x & (mask << (base + shift))) >> shift) with mask = 2^bits - 1.

    A shift below zero or bits 0 leaves every index unchanged, as in the reference.
    Law   applying it twice gives the index back when shift >= bits (for any shift: the bits
    read are not those written)
    """

    __slots__ = ("bits", "base", "shift")

    def __init__(self, bits: int, base: int, shift: int):
        if bits < 0 or base < 0:
            raise OperandType("bits and base of a swizzle are not negative", "Swizzle", (bits, base, shift))
        for name, value in zip(self.__slots__, (bits, base, shift)):
            object.__setattr__(self, name, value)

    @property
    def mask(self) -> int:
        """The number of bits, under the name which FlyDSL gives it."""
        return self.bits

    @property
    def is_trivial(self) -> bool:
        """Whether every index maps to itself."""
        return self.bits == 0 or self.shift < 0

    def __call__(self, index: Any) -> Any:
        return apply_swizzle(index, self)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


class CoordSwizzle(_Value):
    """`CS<bits,base_row,[row],base_col,[col]>`: the leaf at `col` becomes col ^ (((row >>
    base_row) & mask) << base_col).
    """

    __slots__ = ("bits", "base_row", "mode_row", "base_col", "mode_col")

    def __init__(self, bits: int, base_row: int, mode_row: Any, base_col: int, mode_col: Any):
        fields = (bits, base_row, tuple(mode_row), base_col, tuple(mode_col))
        for name, value in zip(self.__slots__, fields):
            object.__setattr__(self, name, value)

    def __call__(self, coord: IntTuple) -> IntTuple:
        row, col = at_path(coord, self.mode_row), at_path(coord, self.mode_col)
        picked = leaf.bits("and", leaf.bits("shr", row, self.base_row), (1 << self.bits) - 1)
        moved = leaf.bits("shl", picked, self.base_col)
        div = gcd(col.div if type(col) is Sym else col or 0, 1 << self.base_col)
        return _replace(coord, self.mode_col, leaf.bits("xor", col, moved, div))

    def __str__(self) -> str:
        row, col = (",".join(map(str, m)) for m in (self.mode_row, self.mode_col))
        return f"CS<{self.bits},{self.base_row},[{row}],{self.base_col},[{col}]>"


def _replace(x: IntTuple, path: tuple, value: Any) -> IntTuple:
    if not path:
        return value
    return x[: path[0]] + (_replace(x[path[0]], path[1:], value),) + x[path[0] + 1 :]


def apply_swizzle(index: Any, swizzle: Swizzle) -> Any:
    """Return the swizzled element index; a trivial swizzle returns it unchanged.

    Bits below the base stay, so a dynamic index keeps the part of its div that they hold.
    """
    if swizzle.bits == 0 or swizzle.is_trivial and type(index) is int:
        return index
    mask = ((1 << swizzle.bits) - 1) << max(swizzle.base + swizzle.shift, 0)
    if type(index) is int:
        return index ^ ((index & mask) >> swizzle.shift)
    if type(index) is not Sym:
        raise OperandType(f"a swizzle acts on an integer index, not {index}", "apply_swizzle", (index, swizzle))
    div = gcd(index.div, 1 << swizzle.base)
    if swizzle.is_trivial:
        return Sym(index.width, div, index.value)
    picked = leaf.bits("and", index, mask)
    return leaf.bits("xor", index, leaf.bits("shr", picked, swizzle.shift), div)


def apply_swizzle_bytes(address: Any, swizzle: Swizzle) -> Any:
    """Return the swizzled byte address: the same XOR, applied last, after every offset has been
    added.
    """
    return apply_swizzle(address, swizzle)


def element_to_byte_swizzle(swizzle: Swizzle, elem_bits: int) -> Swizzle:
    """Return the byte swizzle which moves whole elements of `elem_bits` as `swizzle` moves
    their indices.
    """
    size = elem_bits // 8
    if elem_bits % 8 or size & (size - 1):
        raise OperandType(
            f"elements of {elem_bits} bits are no power of two of bytes",
            "element_to_byte_swizzle",
            (swizzle, elem_bits),
        )
    return Swizzle(swizzle.bits, swizzle.base + size.bit_length() - 1, swizzle.shift)


def swizzle_period(swizzle: Swizzle) -> int:
    """Return the smallest power of two such that adding its multiples commutes with the swizzle."""
    if swizzle.is_trivial:
        return 1
    return 1 << (swizzle.base + swizzle.shift + swizzle.bits)

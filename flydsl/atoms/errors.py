"""Refusals of atoms: one class per fault, with fields, a stable code, the reason and the way
out.

Neighbours: raised by every module of `flydsl.atoms`; `flydsl.diag` renders them with the user's
source line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flydsl.diag.base import UserError


class AtomError(UserError, ValueError):
    """Base of all refusals; fields that are sequences print as lists."""

    code = "FLY_ATOM_INVALID"
    what = "{reason}"
    why = "the hardware has no such instruction, or the notation does not describe one"
    fix = "use one of the listed forms"

    @property
    def message(self) -> str:
        return self.what.format(**{name: _shown(value) for name, value in self.fields.items()})


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(str(v) for v in value) or "none"
    return str(value)


class UnknownElement(AtomError):
    code = "FLY_ATOM_ELEMENT"
    what = "unknown element type `{elem}`"
    why = "only element types with a known bit width can be moved or multiplied"
    fix = "use f64, f32, f16, bf16, a named 8-, 6- or 4-bit float, or iN, siN, uiN"


class AtomSyntax(AtomError):
    code = "FLY_ATOM_SYNTAX"
    what = "`{source}` is not the printed form of {expected}"
    fix = "print the atom and copy its form"


class UnsupportedShape(AtomError):
    code = "FLY_ATOM_SHAPE"
    what = "{atom} does not exist on {arch}; {arch} has for these element types: {supported}"
    why = "a matrix instruction is fixed in shape and element types; the chip decides which exist"
    fix = "choose a listed shape, or compile for another chip"


class UnsupportedTypes(AtomError):
    code = "FLY_ATOM_TYPES"
    what = "{atom}: element types ({a}, {b}) -> {acc} are not accepted; accepted: {supported}"
    why = "no matrix instruction of this family takes these operand or accumulator types"
    fix = "convert the operands, or choose an accepted combination"


class UnsupportedChip(AtomError):
    code = "FLY_ATOM_CHIP"
    what = "{atom} needs {feature}, which {arch} lacks; chips that have it: {supported}"
    why = "which chip has which instruction is a fact of the hardware"
    fix = "compile for a listed chip, or choose another atom"


class UnsupportedWidth(AtomError):
    code = "FLY_COPY_WIDTH"
    what = "{atom}: no instruction moves {bits} bits per thread; possible: {supported}"
    why = "each copy instruction has a few fixed widths"
    fix = "use a listed width"


class WidthMismatch(AtomError):
    code = "FLY_COPY_ELEMENT_WIDTH"
    what = "{atom}: {bits} bits are not a whole number of {elem_bits}-bit elements"
    why = "an atom moves whole elements"
    fix = "use an element type whose width divides the atom's width"


class UnsupportedSpaces(AtomError):
    code = "FLY_COPY_SPACES"
    what = "{atom} cannot copy from {src} to {dst}; possible: {supported}"
    why = "an instruction connects fixed kinds of memory"
    fix = "use an atom for these memories, or go through registers"


class UnsupportedAtomic(AtomError):
    code = "FLY_COPY_ATOMIC"
    what = "{atom}: atomic {op} of {elem} does not exist here; possible for {op}: {supported}"
    why = "the memory units implement atomics for some operations and types only"
    fix = "use a listed element type, or compare-and-swap in a loop"


class AtomTooWide(AtomError):
    code = "FLY_COPY_TOO_WIDE"
    what = "{atom} moves {values} values, but a thread has {own} of them in the tile of {tiled}"
    why = "the instruction would run on into the values of other threads and past the tile"
    fix = "give each thread more adjacent values, or use a narrower copy atom"


class UnknownStateField(AtomError):
    code = "FLY_ATOM_STATE"
    what = "{atom} has no state field `{field}`; it has: {supported}"
    why = "an atom carries only the operands that its instruction takes beside the data"
    fix = "use a listed field"


class OutOfRange(AtomError):
    code = "FLY_ATOM_RANGE"
    what = "{subject} must be {expected}, got {value}"
    why = "the value does not fit the field of the instruction or descriptor"
    fix = "give a value in range"


def one_of(subject: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a `value` that is not among `allowed`."""
    if value not in tuple(allowed):
        raise OutOfRange(subject=subject, expected=f"one of {_shown(tuple(allowed))}", value=value)

"""Queries on the intrinsic table: what exists in LLVM 22.1, on which chips, with which signature."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from flydsl import arch as chips
from flydsl.arch import Chip
from flydsl.diag import Span
from flydsl.diag.errors.target import IntrinsicNotOnChip
from flydsl.targets.rocm.intrinsic_table import DATA_TYPES, TABLE

PREFIX = "llvm.amdgcn."


class Intrinsic(NamedTuple):
    """One line of the table; `requires` is the heading of its group."""

    name: str
    result: str
    operands: tuple[str, ...]
    requires: str

    def is_on(self, chip: Chip) -> bool:
        """Return whether `chip` selects it."""
        return any(all(_has(chip, f.strip()) for f in part.split("&")) for part in self.requires.split("|"))


def _has(chip: Chip, requirement: str) -> bool:
    match requirement:
        case "*":
            return True
        case "wave32" | "wave64":
            return int(requirement[4:]) in chip.wave_sizes
        case "s_waitcnt":
            return chip.waitcnt is not None
        case "none":
            return False
    return chip.has(requirement)


@functools.cache
def table() -> dict[str, tuple[Intrinsic, ...]]:
    """Return the intrinsics by name without `llvm.amdgcn.`; chips with different signatures have a line each."""
    found: dict[str, tuple[Intrinsic, ...]] = {}
    requires = "*"
    for line in TABLE.strip().splitlines():
        if line.startswith("["):
            requires = line.strip("[]")
        elif line:
            head, _, operands = line.partition(" (")
            name, result = head.split()
            row = Intrinsic(name, result, tuple(o for o in operands.rstrip(")").split(", ") if o), requires)
            found[name] = (*found.get(name, ()), row)
    return found


def find(name: str) -> tuple[Intrinsic, ...]:
    """Return the lines for a full name; the suffix that names overloaded types may be there or not."""
    short = name.removeprefix(PREFIX)
    while short:
        if short in table():
            return table()[short]
        short = short.rpartition(".")[0]
    return ()


def chips_of(rows: tuple[Intrinsic, ...]) -> tuple[str, ...]:
    """Return the names of the chips that have any of `rows`."""
    return tuple(c.name for c in chips.CHIPS.values() if any(row.is_on(c) for row in rows))


@functools.cache
def is_proven(declared: str, chip: Chip) -> bool:
    """Return whether LLVM may see a `declare` line of an intrinsic in this process.

    That is: a line of the table for the chip has exactly these types. Anything else, such as a signature of a
    newer LLVM, may end the process while the text is read.
    """
    name, result, operands = parse_declaration(declared)
    return any(row.is_on(chip) and _matches(row, result, operands) for row in find(name))


def _matches(row: Intrinsic, result: str, operands: tuple[str, ...]) -> bool:
    if len(operands) != len(row.operands):
        return False
    return all(_type_matches(r, t) for r, t in zip((row.result, *row.operands), (result, *operands)))


def _type_matches(wanted: str, kind: str) -> bool:
    return kind in DATA_TYPES if wanted.startswith("~") else wanted.lstrip("#") == kind


_DECLARATION = re.compile(r"^declare (?P<result>.*?)@(?P<name>llvm\.amdgcn\.[\w.]+)\((?P<operands>.*)\)")
_TYPE = re.compile(r"<(\d+) x (\w+)>|ptr(?: addrspace\((\d+)\))?|\{[^}]*\}|\b(?:void|i\d+|half|bfloat|float|double)\b")
_ATTRIBUTE = re.compile(r"\b(?:range|captures|dereferenceable|initializes)\([^()]*(?:\([^()]*\))?[^()]*\)")
_SCALARS = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


def declarations(llvm_ir: str) -> list[str]:
    """Return the `declare` lines of AMDGPU intrinsics in LLVM IR text."""
    return [line for line in llvm_ir.splitlines() if line.startswith("declare ") and "@llvm.amdgcn." in line]


@functools.cache
def parse_declaration(line: str) -> tuple[str, str, tuple[str, ...]]:
    """Return (name, result, operands) of a `declare` line, types as in the table."""
    found = _DECLARATION.match(line)
    operands = _ATTRIBUTE.sub("", found["operands"])
    kinds = tuple(_short(m) for m in _TYPE.finditer(operands))
    result = next(_short(m) for m in _TYPE.finditer(_ATTRIBUTE.sub("", found["result"])))
    return found["name"], result, kinds


def _short(found: re.Match) -> str:
    text = found[0]
    if found[1]:
        return f"v{found[1]}{_SCALARS.get(found[2], found[2])}"
    if text.startswith("ptr"):
        return f"p{found[3] or 0}"
    if text.startswith("{"):
        return text.replace(" ", "")
    return _SCALARS.get(text, text)


def check_chip(name: str, chip: Chip, at: Span | None) -> None:
    """Refuse an intrinsic that other chips have and `chip` has not.

    Raises   IntrinsicNotOnChip
    """
    rows = find(name)
    if rows and not any(row.is_on(chip) for row in rows):
        known = ", ".join(chips_of(rows)) or "older chips only"
        raise IntrinsicNotOnChip(name=name.removeprefix(PREFIX), arch=chip.name, chips_text=known, at=at)

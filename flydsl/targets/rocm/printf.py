"""Device printf: `gpu.printf` becomes a record in a buffer that the host reads after the kernel.

A kernel that prints gets one more explicit argument, the last one, named `fly.printf_buffer`: a pointer to
global memory that the host can read. Layout of the buffer, little endian:

    offset 0   u64  cursor: bytes of records that lanes asked for; starts at 0, exceeds the capacity after drops
    offset 8   u64  capacity: bytes from offset 16 on that may be written; set by the host
    offset 16  records, one after the other, in the order in which lanes reserved their place

    record     u32  bytes of the record, a multiple of 8
               u32  number of the format: an index into `KernelInfo.printf_formats`
               one 8-byte slot for each scalar, vectors element by element: integers sign-extended (i1 as 0 or
               1), floats as f64,
               pointers as their address

Reading stops at `min(cursor, capacity)` or at a record that would end behind the capacity (that lane wrote nothing).
`decode` does it, without MLIR, for the runtime and the tests.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

HEADER_BYTES = 16
MAX_RECORD_BYTES = 4096
ARGUMENT = "fly.printf_buffer"


class PrintfFormat(NamedTuple):
    """A C format and the type of each slot (`i32`, `f32`, `ptr`, ...)."""

    text: str
    types: tuple[str, ...]

    @property
    def record_bytes(self) -> int:
        """Bytes of one record."""
        return 8 + 8 * len(self.types)


def new_buffer(capacity_bytes: int) -> bytearray:
    """Return an empty buffer for `capacity_bytes` of records."""
    return bytearray(struct.pack("<QQ", 0, capacity_bytes) + bytes(capacity_bytes))


def decode(buffer: bytes, formats: tuple[PrintfFormat, ...]) -> tuple[list[str], int]:
    """Return the printed texts in order, and how many bytes of records did not fit.

    Raises   ValueError: the buffer does not hold records of `formats`
    """
    cursor, capacity = struct.unpack_from("<QQ", buffer)
    end = HEADER_BYTES + min(cursor, capacity, len(buffer) - HEADER_BYTES)
    texts, at = [], HEADER_BYTES
    while at + 8 <= end:
        size, number = struct.unpack_from("<II", buffer, at)
        if size == 0:  # reserved by a lane whose record did not fit
            break
        if number >= len(formats) or size != formats[number].record_bytes:
            raise ValueError(f"printf buffer: no record of format {number} with {size} bytes at offset {at}")
        texts.append(_render(formats[number], buffer[at + 8 : at + size]))
        at += size
    return texts, max(0, cursor - capacity)


_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d+)?(?:hh|h|ll|l|j|z|t)?(?P<kind>[a-zA-Z%])"
)


def _render(form: PrintfFormat, slots: bytes) -> str:
    values = iter([_value(kind, slots[8 * i : 8 * i + 8]) for i, kind in enumerate(form.types)])

    def convert(found: re.Match) -> str:
        if found["kind"] == "%":
            return "%"
        value, bits = next(values, ("?", 0))
        spec = f"%{found['flags']}{found['width']}{found['precision'] or ''}"
        match found["kind"]:
            case "d" | "i":
                return (spec + "d") % value
            case "u" | "x" | "X" | "o":
                letter = "d" if found["kind"] == "u" else found["kind"]
                return (spec + letter) % (int(value) & ((1 << bits) - 1))
            case "p":
                return f"{int(value) & ((1 << 64) - 1):#x}"
            case "c":
                return (spec + "c") % chr(int(value) & 0xFF)
            case "s":
                return (spec + "s") % value
        return (spec + found["kind"]) % value

    return _CONVERSION.sub(convert, form.text)


def _value(kind: str, slot: bytes) -> tuple[float | int, int]:
    """Return the value of a slot and its width in bits."""
    if kind.startswith(("f", "bf")):
        return struct.unpack("<d", slot)[0], 64
    return struct.unpack("<q", slot)[0], 64 if kind == "ptr" else int(kind.lstrip("i"))

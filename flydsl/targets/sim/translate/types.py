"""IR types as the simulator sees them: an element name and a vector length, read from the printed form."""

from __future__ import annotations

import re
from functools import cache

from flydsl.utils.record import record

ELEM_BYTES = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
    "p0": 8, "p1": 8, "p2": 4, "p3": 4, "p4": 8, "p5": 4, "p7": 20, "p8": 16,
}  # fmt: skip
INTS = ("i1", "i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")


@record
class IrType:
    """A scalar (`n` None), a 1-D vector of `n` elements, or a struct.

    `elem` is `i1 i8 .. i64 f16 bf16 f32 f64`, a pointer `p<space>`, or `struct`; `index` is `i64`.
    """

    elem: str
    n: int | None = None
    fields: tuple[IrType, ...] = ()

    @property
    def is_vector(self) -> bool:
        return self.n is not None

    @property
    def is_pointer(self) -> bool:
        return self.elem[0] == "p"

    @property
    def is_float(self) -> bool:
        return self.elem in FLOATS

    @property
    def is_int(self) -> bool:
        return self.elem in INTS

    @property
    def bits(self) -> int:
        """Width of one element."""
        return 1 if self.elem == "i1" else ELEM_BYTES[self.elem] * 8

    @property
    def nbytes(self) -> int:
        """Bytes in memory of the whole value."""
        return ELEM_BYTES[self.elem] * (self.n or 1)

    def scalar(self) -> IrType:
        """Return the element type."""
        return IrType(self.elem)


class UnsupportedType(ValueError):
    """A type that the simulator has no representation for."""


_VECTOR = re.compile(r"vector<((?:\d+x)*)(.+)>$")
_LLVM_PTR = re.compile(r"!llvm\.ptr(?:<(\d+)>)?$")


@cache
def parse_type(text: str) -> IrType:
    """Return the `IrType` of a printed MLIR type; multi-dimensional vectors count as flat ones.

    Raises   UnsupportedType
    """
    if text == "index":
        return IrType("i64")
    if text in ELEM_BYTES:
        return IrType(text)
    if match := _LLVM_PTR.match(text):
        return IrType(f"p{match.group(1) or 0}")
    if match := _VECTOR.match(text):
        n = 1
        for dim in match.group(1).split("x")[:-1]:
            n *= int(dim)
        return IrType(parse_type(match.group(2)).elem, n)
    if text.startswith(("!llvm.struct<", "!llvm.array<")):
        return parse_aggregate(text)
    raise UnsupportedType(text)


def parse_aggregate(text: str) -> IrType:
    """Return a struct type; `!llvm.array<n x T>` is a struct of n equal fields."""
    inner = text[text.index("<") + 1 : -1].strip()
    if text.startswith("!llvm.array<"):
        count, elem = inner.split(" x ", 1)
        return IrType("struct", None, (parse_type(_full(elem)),) * int(count))
    inner = re.sub(r'^"[^"]*",\s*', "", inner)
    inner = inner.removeprefix("packed").strip()
    if not (inner.startswith("(") and inner.endswith(")")):
        raise UnsupportedType(text)
    return IrType("struct", None, tuple(parse_type(_full(t)) for t in split_top(inner[1:-1])))


def _full(text: str) -> str:
    """Inside LLVM types the printer drops the `!llvm.` prefix."""
    text = text.strip()
    if re.match(r"(ptr|struct|array)\b", text):
        return "!llvm." + text
    return text


def split_top(text: str) -> list[str]:
    """Split at commas that are outside brackets."""
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        if ch in "<([":
            depth += 1
        elif ch in ">)]":
            depth -= 1
        elif ch == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


@cache
def layout_of(text: str) -> tuple[int, int]:
    """Return (size, alignment) in bytes of a type used for address arithmetic."""
    if text.startswith("!llvm.array<"):
        count, elem = text[12:-1].split(" x ", 1)
        size, align = layout_of(_full(elem))
        return int(count) * size, align
    if text.startswith("!llvm.struct<"):
        return struct_layout(text)[1:]
    t = parse_type(text)
    if t.is_vector:
        size = t.nbytes
        return 1 << (size - 1).bit_length(), 1 << (size - 1).bit_length()
    return ELEM_BYTES[t.elem], ELEM_BYTES[t.elem]


@cache
def struct_layout(text: str) -> tuple[tuple[tuple[int, str], ...], int, int]:
    """Return ((offset, field type text)..., size, alignment) of an LLVM struct."""
    inner = re.sub(r'^"[^"]*",\s*', "", text[13:-1].strip())
    packed = inner.startswith("packed")
    inner = inner.removeprefix("packed").strip()
    fields, offset, align = [], 0, 1
    for field in split_top(inner[1:-1]):
        size, a = layout_of(_full(field))
        a = 1 if packed else a
        offset = -(-offset // a) * a
        fields.append((offset, _full(field)))
        offset += size
        align = max(align, a)
    return tuple(fields), -(-offset // align) * align, align


def element_of(text: str) -> str:
    """Return the element type text of an array or vector type used in address arithmetic."""
    if text.startswith("!llvm.array<"):
        return _full(text[12:-1].split(" x ", 1)[1])
    return _VECTOR.match(text).group(2)

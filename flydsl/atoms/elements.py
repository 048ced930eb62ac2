"""Element types as plain strings in MLIR's spelling, with the one table of their widths.

Neighbours: every atom names its operands with these strings; `expr.numeric` has the user's
classes. Knows no values: decoding small floats is the simulator's business.
"""

from __future__ import annotations

import re
from functools import cache

from .errors import UnknownElement

FLOAT_BITS: dict[str, int] = {
    "f64": 64,
    "f32": 32,
    "tf32": 32,
    "f16": 16,
    "bf16": 16,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
    "f8E4M3FNUZ": 8,
    "f8E5M2FNUZ": 8,
    "f8E4M3B11FNUZ": 8,
    "f8E4M3": 8,
    "f8E8M0FNU": 8,
    "f6E2M3FN": 6,
    "f6E3M2FN": 6,
    "f4E2M1FN": 4,
}

# What the instruction decodes: 8-bit floats are FNUZ on gfx942 and OCP on later chips, whatever
# the type says.
MATRIX_KIND: dict[str, str] = {
    "f64": "f64",
    "f32": "f32",
    "tf32": "xf32",
    "f16": "f16",
    "bf16": "bf16",
    "f8E4M3FN": "fp8",
    "f8E4M3FNUZ": "fp8",
    "f8E5M2": "bf8",
    "f8E5M2FNUZ": "bf8",
    "f6E2M3FN": "fp6",
    "f6E3M2FN": "bf6",
    "f4E2M1FN": "fp4",
    "i8": "i8",
    "si8": "i8",
    "ui8": "i8",
    "i4": "i4",
    "si4": "i4",
    "ui4": "i4",
    "i32": "i32",
}

# Format codes of the f8f6f4 instructions (cbsz and blgp of MFMA, matrix_a_fmt and matrix_b_fmt
# of WMMA).
FORMAT_CODE: dict[str, int] = {
    "f8E4M3FN": 0,
    "f8E5M2": 1,
    "f6E2M3FN": 2,
    "f6E3M2FN": 3,
    "f4E2M1FN": 4,
}

_INT = re.compile(r"(si|ui|i)([1-9]\d*)")
_VECTOR = re.compile(r"vector<(\d+)x([^<>]+)>")
_LLVM = {"f64": "double", "f32": "float", "tf32": "float", "f16": "half", "bf16": "bfloat"}


@cache
def bit_width(elem: str) -> int:
    """Return the bits of one value of `elem`; a vector type counts all its elements.

    Raises   UnknownElement
    """
    if elem in FLOAT_BITS:
        return FLOAT_BITS[elem]
    if match := _INT.fullmatch(elem):
        return int(match[2])
    if match := _VECTOR.fullmatch(elem):
        return int(match[1]) * bit_width(match[2])
    raise UnknownElement(elem=elem)


def split_vector(elem: str) -> tuple[int, str]:
    """Return (count, element) of a type; a scalar counts 1."""
    match = _VECTOR.fullmatch(elem)
    return (int(match[1]), match[2]) if match else (1, elem)


def is_float(elem: str) -> bool:
    """Return whether `elem` is a floating-point type."""
    return elem in FLOAT_BITS


def is_int(elem: str) -> bool:
    """Return whether `elem` is an integer type of any signedness."""
    return _INT.fullmatch(elem) is not None


def is_unsigned(elem: str) -> bool:
    """Return whether `elem` is explicitly unsigned (`ui8`); signless integers count as signed."""
    return elem.startswith("ui")


def storage(elem: str) -> str:
    """Return the element below the fly dialects: small floats and signed kinds are plain
    integers.
    """
    count, scalar = split_vector(elem)
    if count > 1:
        return f"vector<{count}x{storage(scalar)}>"
    bits = bit_width(scalar)
    return (
        scalar
        if bits >= 16 and is_float(scalar) and scalar != "tf32"
        else "f32"
        if scalar == "tf32"
        else f"i{bits}"
    )


def llvm_type(elem: str) -> str:
    """Return the LLVM spelling of a scalar, vector or pointer-free type: `vector<4xf16>` is `<4
    x half>`.
    """
    count, scalar = split_vector(elem)
    text = _LLVM.get(scalar) or storage(scalar)
    return f"<{count} x {text}>" if _VECTOR.fullmatch(elem) else text


def mangled(elem: str) -> str:
    """Return the suffix by which LLVM names an overload: `vector<4xf16>` is `v4f16`."""
    count, scalar = split_vector(elem)
    text = storage(scalar)
    return f"v{count}{text}" if _VECTOR.fullmatch(elem) else text


def vector(count: int, elem: str) -> str:
    """Return the type of `count` elements; one element stays a scalar."""
    return elem if count == 1 else f"vector<{count}x{elem}>"

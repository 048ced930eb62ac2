"""LLVM IR text between two LLVM versions: what MLIR's newer LLVM prints, made readable for LLVM 22.1.

Before  text of `translate_module_to_llvmir`
After   the same program; float literals are exact hexadecimal, attributes and intrinsic names are those of LLVM 22.1
"""

from __future__ import annotations

import re
import struct

from flydsl.diag.errors.target import LlvmRejected

# functions called under this prefix are intrinsics that MLIR must not judge by its own LLVM
INTRINSIC_PREFIX = "__fly."

_LITERAL = r"[-+]?(?:\d+\.\d+(?:e[-+]?\d+)?|s?nan\(0x[0-9A-Fa-f]+\)|q?nan\b|inf\b|f0x[0-9A-Fa-f]+)"
_CANDIDATE = re.compile(rf"(?<![\w.$%@\"]){_LITERAL}")
_TOKEN = re.compile(
    rf"\"[^\"]*\"|[%@][\w.$-]+|\b(?P<type>float|double|half|bfloat)\b|(?<![\w.$])(?P<literal>{_LITERAL})"
)


def to_llvm22(text: str) -> str:
    """Return `text` in the spelling that LLVM 22.1 parses, with the same meaning.

    Raises   LlvmRejected: a NaN with a payload, whose bits the older form cannot name with certainty
    """
    text = text.replace("@" + INTRINSIC_PREFIX, "@")
    text = text.replace('"uniform-work-group-size" }', '"uniform-work-group-size"="true" }')
    text = text.replace('"uniform-work-group-size" ', '"uniform-work-group-size"="true" ')
    out, pos = [], 0
    while True:
        found = _CANDIDATE.search(text, pos)
        if found is None:
            out.append(text[pos:])
            return "".join(out)
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        out.append(text[pos:start])
        out.append(_rewrite_line(text[start:end]))
        pos = end


def _rewrite_line(line: str) -> str:
    """A literal has the last scalar float type named before it on its line."""
    last_type = ""

    def rewrite(token: re.Match) -> str:
        nonlocal last_type
        if token["type"]:
            last_type = token["type"]
        elif token["literal"] and last_type:
            return exact_literal(last_type, token["literal"])
        return token[0]

    return _TOKEN.sub(rewrite, line)


def exact_literal(kind: str, literal: str) -> str:
    """Return the hexadecimal form of `literal` of scalar type `kind` (float, double, half, bfloat)."""
    bits = _bits(kind, literal)
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "bfloat":
        return f"0xR{bits:04X}"
    if kind == "float":  # LLVM writes a float as the double of the same value
        value = struct.unpack("<f", struct.pack("<I", bits))[0]
        double = struct.unpack("<Q", struct.pack("<d", value))[0]
        if value != value:
            double = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
        return f"0x{double:016X}"
    return f"0x{bits:016X}"


_FORMATS = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}


def _bits(kind: str, literal: str) -> int:
    exponent_bits, fraction_bits = _FORMATS[kind]
    sign = 1 if literal.startswith("-") else 0
    body = literal.lstrip("+-")
    sign_bit = sign << (exponent_bits + fraction_bits)
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    if body.startswith("f0x"):
        return int(body[3:], 16)
    if body == "inf":
        return sign_bit | infinity
    if body in ("nan", "qnan"):
        return sign_bit | infinity | 1 << (fraction_bits - 1)
    if "nan" in body:
        raise LlvmRejected(problem=f"a NaN with a payload ({literal})")
    return sign_bit | _nearest(*_ratio(body), exponent_bits, fraction_bits)


def _ratio(decimal: str) -> tuple[int, int]:
    """Return the numerator and denominator of a decimal number (`fractions` takes 2 ms to import)."""
    mantissa, _, power = decimal.partition("e")
    whole, _, part = mantissa.partition(".")
    scale = int(power or 0) - len(part)
    return int(whole + part) * 10 ** max(scale, 0), 10 ** max(-scale, 0)


def _nearest(numerator: int, denominator: int, exponent_bits: int, fraction_bits: int) -> int:
    """Return the bits of the nearest number, ties to even; decimal text is rounded once, never twice."""
    if not numerator:
        return 0
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator << max(-exponent, 0) < denominator << max(exponent, 0):
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    shift = fraction_bits - exponent
    denominator <<= max(-shift, 0)
    units, rest = divmod(numerator << max(shift, 0), denominator)
    units += 2 * rest > denominator or (2 * rest == denominator and units & 1)
    return units + ((exponent + bias - 1) << fraction_bits)

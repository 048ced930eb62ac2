"""Float literals between two LLVM versions: exact for every bit pattern tried, refused where they cannot be named."""

import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flydsl.diag.errors.target import LlvmRejected
from flydsl.targets.rocm.llvm_text import exact_literal, to_llvm22


def bits_of(literal: str, kind: str) -> int:
    """Decode LLVM's hexadecimal forms independently of the encoder."""
    if kind in ("half", "bfloat"):
        return int(literal[3:], 16)
    raw = int(literal[2:], 16)
    if kind == "double":
        return raw
    value = struct.unpack("<d", struct.pack("<Q", raw))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0]


@given(st.floats(width=32, allow_nan=False))
def test_float_round_trip(value):
    text = f"{value!r}" if abs(value) == float("inf") else np.format_float_scientific(np.float32(value), unique=True, min_digits=6)
    wanted = struct.unpack("<I", struct.pack("<f", value))[0]
    assert bits_of(exact_literal("float", text), "float") == wanted
    assert bits_of(exact_literal("float", f"f0x{wanted:08X}"), "float") == wanted


@given(st.floats(allow_nan=False))
def test_double_round_trip(value):
    text = f"{value!r}" if abs(value) == float("inf") else np.format_float_scientific(value, unique=True, min_digits=6)
    assert bits_of(exact_literal("double", text), "double") == struct.unpack("<Q", struct.pack("<d", value))[0]


@pytest.mark.parametrize("kind, dtype", [("half", np.float16), ("bfloat", ml_dtypes.bfloat16)])
def test_every_16_bit_value(kind, dtype):
    for bits in range(0, 2**16, 7):
        value = float(np.array([bits], np.uint16).view(dtype)[0])
        if value == value:
            assert bits_of(exact_literal(kind, str(value) if abs(value) == float("inf") else f"{value:.30e}"), kind) == bits


def test_decimal_is_rounded_once():
    # between two floats; a detour through double would round it twice, the wrong way
    below, above = Fraction(1), Fraction(1) + Fraction(1, 2**23)
    middle = (below + above) / 2 + Fraction(1, 2**60)
    text = f"{middle.numerator * 10**60 // middle.denominator / 10**0}"
    digits = str(middle.numerator * 10**60 // middle.denominator)
    assert bits_of(exact_literal("float", f"{digits[0]}.{digits[1:]}"), "float") == 0x3F800001, text


def test_only_literals_change():
    line = '  %1 = call float @f(float 1.000000e-01, i32 3), !dbg !12 ; "float 1.000000e-01" %v1.5'
    assert to_llvm22(line) == line.replace("f(float 1.000000e-01", "f(float 0x3FB99999A0000000")
    assert to_llvm22("%2 = fadd <4 x float> %1, splat (float -inf)") == "%2 = fadd <4 x float> %1, splat (float 0xFFF0000000000000)"
    assert to_llvm22("store half +qnan, ptr %p") == "store half 0xH7E00, ptr %p"
    assert to_llvm22('attributes #0 = { "uniform-work-group-size" }') == 'attributes #0 = { "uniform-work-group-size"="true" }'


def test_nan_with_payload_is_refused():
    with pytest.raises(LlvmRejected, match="payload"):
        to_llvm22("store float +nan(0x123), ptr %p")

"""Decoding and encoding of 8-, 6- and 4-bit floats and of E8M0 scales, by table and by ml_dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

_TYPES = {
    "fp8": ml_dtypes.float8_e4m3fn,
    "bf8": ml_dtypes.float8_e5m2,
    "fp8_fnuz": ml_dtypes.float8_e4m3fnuz,
    "bf8_fnuz": ml_dtypes.float8_e5m2fnuz,
    "fp6": ml_dtypes.float6_e2m3fn,
    "bf6": ml_dtypes.float6_e3m2fn,
    "fp4": ml_dtypes.float4_e2m1fn,
}
BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4, "i8": 8, "i4": 4}
FNUZ_CHIPS = ("gfx940", "gfx941", "gfx942")


def chip_format(kind: str, arch: str) -> str:
    """Return the format that a chip decodes for `fp8` and `bf8`: FNUZ on gfx942, OCP on later chips."""
    return f"{kind}_fnuz" if arch in FNUZ_CHIPS and kind in ("fp8", "bf8") else kind


@cache
def decode_table(fmt: str, dtype: str = "f4") -> np.ndarray:
    """Return the value of every code of a format."""
    bits = BITS[fmt.partition("_")[0]]
    codes = np.arange(1 << bits, dtype=np.uint8).view(_TYPES[fmt])
    return codes.astype(np.float32).astype(dtype)


@cache
def _positive_values(fmt: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (codes, values) of the finite non-negative codes in ascending order."""
    table = decode_table(fmt, "f8")
    half = table[: len(table) // 2]
    codes = np.flatnonzero(np.isfinite(half))
    return codes, half[codes]


def round_codes(magnitude: np.ndarray, fmt: str) -> np.ndarray:
    """Return the codes of non-negative finite f64 magnitudes, to nearest even, saturating at the largest finite
    value."""
    codes, values = _positive_values(fmt)
    upper = np.clip(np.searchsorted(values, magnitude, side="left"), 0, len(values) - 1)
    lower = np.maximum(upper - 1, 0)
    down, up = magnitude - values[lower], values[upper] - magnitude
    take_low = (down < up) | ((down == up) & (codes[lower] % 2 == 0))
    return codes[np.where(take_low, lower, upper)]


def encode(x: Any, fmt: str) -> Any:
    """Return the codes (uint8) of f64 values as the conversion instructions give them: to nearest even, saturating.

    NaN gives the format's NaN (the largest finite value for formats without one); infinities saturate where the
    format has none.
    """
    kind, _, fnuz = fmt.partition("_")
    bits = BITS[kind]
    sign_bit = 1 << bits - 1
    x = np.asarray(x, np.float64)
    finite = np.where(np.isfinite(x), np.abs(x), 0.0)
    code = round_codes(finite, fmt)
    largest = int(_positive_values(fmt)[0][-1])
    code = np.where(np.isinf(x), 0x7C if fmt == "bf8" else largest, code)
    negative = np.signbit(x) & ((code != 0) if fnuz else np.True_)
    code = np.where(negative, code | sign_bit, code)
    nan_code = {"fp8": 0x7F, "bf8": 0x7F, "fp8_fnuz": 0x80, "bf8_fnuz": 0x80}.get(fmt, largest)
    return np.where(np.isnan(x), nan_code, code).astype(np.uint8)[()]


def unpack_codes(words: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Return `count` codes of `bits` bits per lane from bytes, lowest bits first."""
    if bits == 8:
        return words[..., :count]
    if bits == 4:
        out = np.empty((*words.shape[:-1], words.shape[-1] * 2), np.uint8)
        out[..., 0::2] = words & 15
        out[..., 1::2] = words >> 4
        return out[..., :count]
    b = words[..., : count * 6 // 8].reshape(*words.shape[:-1], count // 4, 3).astype(np.uint32)
    word = b[..., 0] | b[..., 1] << 8 | b[..., 2] << 16
    parts = np.stack([word >> 6 * i & 63 for i in range(4)], axis=-1)
    return parts.reshape(*words.shape[:-1], count).astype(np.uint8)


def pack_codes(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return bytes from codes per lane; the inverse of `unpack_codes`."""
    if bits == 8:
        return codes
    if bits == 4:
        return codes[..., 0::2] | codes[..., 1::2] << 4
    c = codes.reshape(*codes.shape[:-1], -1, 4).astype(np.uint32)
    word = c[..., 0] | c[..., 1] << 6 | c[..., 2] << 12 | c[..., 3] << 18
    out = np.stack([word & 255, word >> 8 & 255, word >> 16 & 255], axis=-1).astype(np.uint8)
    return out.reshape(*codes.shape[:-1], -1)


def decode_e8m0(code: Any) -> Any:
    """Return 2^(code - 127) in f64, NaN for 255."""
    return np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127))

"""Packed conversions between f32/f16/bf16 and small floats, as the `v_cvt_*` instructions do them.

Rounding is to nearest even without saturation for fp8 and bf8 (overflow gives NaN or infinity: the mode bit FP16_OVFL
is 0), saturating for fp6, bf6
and fp4, which have neither. Stochastic forms add the random bits below the kept mantissa and truncate. Scales are
powers of two: only the
exponent of the f32 scale counts; encoding divides by it, decoding multiplies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.floats import h_from_f64, h_round_to
from flydsl.targets.sim.numeric import BF16
from flydsl.targets.sim.small_floats import _TYPES, BITS, chip_format, decode_table, encode, pack_codes, unpack_codes

MANTISSA = {"fp8": 3, "bf8": 2, "fp6": 3, "bf6": 2, "fp4": 1}
MIN_EXPONENT = {"fp8": -6, "bf8": -14, "fp6": 0, "bf6": -2, "fp4": 0, "fp8_fnuz": -7, "bf8_fnuz": -15}


def to_codes(x: Any, fmt: str) -> np.ndarray:
    """Return codes of floats, to nearest even."""
    if fmt.startswith(("fp8", "bf8")):
        narrow = np.asarray(x, np.float32) if x.dtype != np.float64 else x
        return np.asarray(narrow).astype(_TYPES[fmt]).view(np.uint8)
    return encode(x, fmt)


def stochastic_codes(x: Any, seed: Any, fmt: str) -> np.ndarray:
    """Return codes rounded by adding random bits under the last kept bit and truncating."""
    kind = fmt.partition("_")[0]
    wide = np.asarray(x, np.float64)
    exponent = np.maximum(
        np.frexp(np.where(np.isfinite(wide) & (wide != 0), wide, 1.0))[1] - 1, MIN_EXPONENT.get(fmt, MIN_EXPONENT[kind])
    )
    ulp = np.ldexp(1.0, exponent - MANTISSA[kind])
    noise = np.asarray(seed).view(np.uint32).astype(np.float64) / 2.0**32
    kept = np.floor(np.abs(wide) / ulp + noise) * ulp
    return to_codes(np.where(np.isfinite(wide), np.copysign(kept, wide), wide), fmt)


def scale_value(scale: Any) -> np.ndarray:
    """Return 2^e of an f32 scale's exponent field, as f64."""
    bits = np.asarray(scale).view(np.int32)
    return np.ldexp(1.0, (bits >> 23 & 255) - 127)


def to_float(codes: np.ndarray, fmt: str, dtype: Any, scale: Any = None) -> np.ndarray:
    """Return the values of codes, times a scale."""
    if scale is None:
        return h_from_f64(decode_table(fmt, "f8").take(codes), dtype)
    factor = scale_value(scale)
    factor = factor[..., None] if np.ndim(codes) > np.ndim(factor) else factor
    return h_from_f64(decode_table(fmt, "f8").take(codes) * factor, dtype)


def bytes_of(x: Any) -> np.ndarray:
    """Return a register operand as bytes per lane."""
    whole = np.asarray(x)
    whole = whole if whole.ndim in (1, 3) else whole[..., None]
    return np.ascontiguousarray(whole).view(np.uint8)


def insert_bits(old: Any, value: np.ndarray, at: int, bits: int) -> Any:
    """Return `old` (i32) with `bits` bits at bit `at` replaced."""
    mask = np.uint32(((1 << bits) - 1) << at)
    shifted = value.astype(np.uint32) << np.uint32(at)
    return ((old.view(np.uint32) & ~mask) | shifted).view(np.int32)


def h_cvt_byte(machine: Any, x: Any, byte: int, kind: str) -> Any:
    """f32 of byte `byte` of an i32."""
    code = (x.view(np.uint32) >> np.uint32(8 * byte)) & np.uint32(255)
    return decode_table(chip_format(kind, machine.arch), "f4").take(code)[()]


def h_cvt_unpack(machine: Any, x: Any, kind: str, first: int, count: int, dtype: Any, scale: Any = None) -> np.ndarray:
    """`count` values from code number `first` of a register operand."""
    codes = unpack_codes(bytes_of(x), BITS[kind], first + count)[..., first:]
    return to_float(codes, chip_format(kind, machine.arch), dtype, scale)


def columns_of(parts: tuple, scale: Any) -> list[Any]:
    """Return the values of a conversion's operands one by one, divided by the scale; vectors give all their elements."""
    columns = []
    for part in parts:
        columns += [part[..., i] for i in range(part.shape[-1])] if np.ndim(part) in (1, 3) else [part]
    if scale is not None:
        factor = scale_value(scale)
        return [np.asarray(c, np.float64) / factor for c in columns]
    return [np.asarray(c) if np.asarray(c).dtype == np.float64 else np.asarray(c).astype(np.float32) for c in columns]


def h_cvt_pack(machine: Any, parts: tuple, kind: str, scale: Any = None, seed: Any = None) -> np.ndarray:
    """Bytes of the codes of several values per lane, lowest first; vectors contribute all their elements."""
    columns = columns_of(parts, scale)
    fmt = chip_format(kind, machine.arch)
    if seed is not None:
        codes = [stochastic_codes(c, seed, fmt) for c in columns]
    else:
        codes = [to_codes(c, fmt) for c in columns]
    return pack_codes(np.stack(np.broadcast_arrays(*codes), axis=-1), BITS[kind])


def overflowing(machine: Any, parts: tuple, kind: str, scale: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (which overflow, values, what they become) of a packed conversion, elements in the last axis.

    A value overflows when it is finite and beyond the largest finite code by more than rounding.
    """
    fmt = chip_format(kind, machine.arch)
    table = decode_table(fmt, "f8")
    largest = float(np.abs(table[np.isfinite(table)]).max())
    half_step = 2.0 ** (np.frexp(largest)[1] - 2 - MANTISSA[kind])
    values = np.stack(np.broadcast_arrays(*columns_of(parts, scale)), axis=-1).astype(np.float64)
    results = table.take(to_codes(values, fmt))
    beyond = ~np.isfinite(results) | (np.abs(values) > largest + half_step)
    return np.isfinite(values) & beyond, values, results


def h_cvt_into(machine: Any, old: Any, parts: tuple, kind: str, at: int, scale: Any = None, seed: Any = None) -> Any:
    """An i32 with the packed codes put at bit `at`."""
    packed = h_cvt_pack(machine, parts, kind, scale, seed)
    value = packed[..., 0].astype(np.uint32)
    for i in range(1, packed.shape[-1]):
        value = value | packed[..., i].astype(np.uint32) << np.uint32(8 * i)
    return insert_bits(old, value, at, 8 * packed.shape[-1])


def h_cvt_words(machine: Any, parts: tuple, kind: str, scale: Any, seed: Any, dtype: Any) -> np.ndarray:
    """The packed codes as a vector of `dtype` words."""
    return np.ascontiguousarray(h_cvt_pack(machine, parts, kind, scale, seed)).view(dtype)


def h_cvt_half(machine: Any, old: Any, parts: tuple, kind: str, high: bool, scale: Any) -> np.ndarray:
    """A vector of two i16 with the packed 16 bits in one half."""
    packed = np.ascontiguousarray(h_cvt_pack(machine, parts, kind, scale)).view(np.int16)[..., 0]
    other = old[..., 0 if high else 1]
    low, top = (other, packed) if high else (packed, other)
    return np.stack(np.broadcast_arrays(low, top), axis=-1)


def h_cvt_f16_into(machine: Any, old: Any, src: Any, scale: Any, kind: str, byte: int, high: bool) -> np.ndarray:
    """A vector of two f16 with one decoded byte in one half."""
    code = (src.view(np.uint32) >> np.uint32(8 * byte)) & np.uint32(255)
    value = to_float(code, chip_format(kind, machine.arch), np.float16, scale)
    other = old[..., 0 if high else 1]
    return np.stack(np.broadcast_arrays(*((other, value) if high else (value, other))), axis=-1)


def h_cvt_pkrtz(a: Any, b: Any) -> np.ndarray:
    """Two f32 to f16, rounded toward zero."""
    halves = [np.asarray(h_round_to(x, np.float16, "toward_zero")) for x in (a, b)]
    return np.stack(np.broadcast_arrays(*halves), axis=-1)


def h_cvt_pk_bf16(a: Any, b: Any) -> Any:
    """Two f32 to bf16 in an i32, `a` low."""
    pair = np.stack(np.broadcast_arrays(a, b), axis=-1).astype(BF16)
    return pair.view(np.int32)[..., 0]


def h_cvt_sr_bf16(old: Any, x: Any, seed: Any, high: bool) -> np.ndarray:
    """One f32 to bf16 with 16 random bits added below the mantissa, in one half of a vector of two."""
    bits = np.asarray(x).view(np.uint32)
    rounded = (bits.astype(np.uint64) + (np.asarray(seed).view(np.uint32) >> np.uint32(16))).astype(np.uint32)
    kept = np.where(np.isfinite(x), rounded, bits) >> np.uint32(16)
    value = kept.astype(np.uint16).view(BF16)
    other = old[..., 0 if high else 1]
    return np.stack(np.broadcast_arrays(*((other, value) if high else (value, other))), axis=-1)


def h_cvt_off_i4(x: Any) -> Any:
    """The signed low nibble divided by 16."""
    nibble = x & np.int32(15)
    return ((nibble ^ np.int32(8)) - np.int32(8)).astype(np.float32) / np.float32(16)


def h_perm(high: Any, low: Any, selector: Any) -> Any:
    """Four bytes picked by the bytes of `selector`: 0-3 from `low`, 4-7 from `high`, 8-11 sign fills, 12 zero, above
    0xFF."""
    both = high.view(np.uint32).astype(np.uint64) << np.uint64(32) | low.view(np.uint32).astype(np.uint64)
    sel = selector.view(np.uint32)
    result = np.zeros((), np.uint32)
    for i in range(4):
        s = (sel >> np.uint32(8 * i)) & np.uint32(255)
        byte = (both >> (np.minimum(s, 7).astype(np.uint64) * np.uint64(8))).astype(np.uint32) & np.uint32(255)
        sign_at = ((s.astype(np.uint64) - np.uint64(8)) & np.uint64(3)) * np.uint64(16) + np.uint64(15)
        sign = np.where(both >> sign_at & np.uint64(1), np.uint32(255), np.uint32(0))
        value = np.where(s < 8, byte, np.where(s < 12, sign, np.where(s == 12, np.uint32(0), np.uint32(255))))
        result = result | value.astype(np.uint32) << np.uint32(8 * i)
    return np.asarray(result, np.uint32).view(np.int32)[()]


def h_dot(a: Any, b: Any, c: Any, bits: int, signs: tuple[bool, bool], clamp: bool) -> Any:
    """Integer dot product of packed elements plus C, in i32."""
    total = np.asarray(c).astype(np.int64) if signs[0] or signs[1] else np.asarray(c).view(np.uint32).astype(np.int64)
    columns = []
    for x, is_signed in zip((a, b), signs):
        if bits == 16:
            columns.append(
                np.asarray(x).astype(np.int64) if is_signed else np.asarray(x).view(np.uint16).astype(np.int64)
            )
            continue
        codes = unpack_codes(bytes_of(x), bits, 32 // bits).astype(np.int64)
        half = 1 << bits - 1
        columns.append((codes ^ half) - half if is_signed else codes)
    total = total + (columns[0] * columns[1]).sum(axis=-1)
    if clamp:
        low, high = (-(1 << 31), (1 << 31) - 1) if signs[0] or signs[1] else (0, (1 << 32) - 1)
        total = np.clip(total, low, high)
    return total.astype(np.uint64).astype(np.uint32).view(np.int32)[()]


def h_fdot2(a: np.ndarray, b: np.ndarray, c: Any) -> Any:
    """Dot product of two pairs plus C, rounded once to C's type."""
    wide = (a.astype(np.float64) * b.astype(np.float64)).sum(axis=-1) + np.asarray(c, np.float64)
    return h_from_f64(wide, c.dtype)

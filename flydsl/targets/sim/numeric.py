"""Integer and float helpers of generated code, where one NumPy expression does not have the op's meaning."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16).type
TYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16":
    np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": BF16, "f32": np.float32, "f64":
    np.float64,
}  # fmt: skip
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def h_bits_f32(bits: int) -> np.float32:
    return np.uint32(bits).view(np.float32)


def h_bits_f64(bits: int) -> np.float64:
    return np.uint64(bits).view(np.float64)


def unsigned(x: Any) -> Any:
    """Return the same bits as an unsigned type."""
    return x.view(UNSIGNED[x.dtype.itemsize])


h_maximum = np.maximum
h_minimum = np.minimum
h_fmax = np.fmax
h_fmin = np.fmin
h_abs = np.abs


def h_maxui(a: Any, b: Any) -> Any:
    return np.maximum(unsigned(a), unsigned(b)).view(a.dtype) if a.dtype != bool else a | b


def h_minui(a: Any, b: Any) -> Any:
    return np.minimum(unsigned(a), unsigned(b)).view(a.dtype) if a.dtype != bool else a & b


def h_maximumf(a: Any, b: Any) -> Any:
    """Maximum that propagates NaN and orders -0 below +0."""
    r = np.maximum(a, b)
    zero = (r == 0) & (a == b)
    return np.where(zero, a + b, r)[()] if np.any(zero) else r


def h_minimumf(a: Any, b: Any) -> Any:
    """Minimum that propagates NaN and orders -0 below +0."""
    r = np.minimum(a, b)
    zero = (r == 0) & (a == b)
    return np.where(zero, -((-a) + (-b)), r)[()] if np.any(zero) else r


def h_fmod(a: Any, b: Any) -> Any:
    """C remainder: the sign of the dividend."""
    if a.dtype.itemsize == 2:
        return np.fmod(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return np.fmod(a, b)


def h_no(a: Any, b: Any) -> Any:
    """Return False per lane."""
    return (a != a) & (a == a) & (b == b)


# --- division and shifts ---------------------------------------------------------------------------------------------


def h_divsi_const(a: Any, b: Any) -> Any:
    """Division that truncates, by a positive constant."""
    q = a // b
    if np.any(a < 0):
        q = q + ((a < 0) & (q * b != a)).astype(a.dtype)
    return q


def h_remsi_const(a: Any, b: Any) -> Any:
    return a - h_divsi_const(a, b) * b


def h_divui_const(a: Any, b: Any) -> Any:
    return (unsigned(a) // unsigned(b)).view(a.dtype)


def h_remui_const(a: Any, b: Any) -> Any:
    return (unsigned(a) % unsigned(b)).view(a.dtype)


def h_floordivsi_const(a: Any, b: Any) -> Any:
    return a // b


def h_ceildivsi_const(a: Any, b: Any) -> Any:
    q = a // b
    return q + (q * b != a).astype(a.dtype)


def h_ceildivui_const(a: Any, b: Any) -> Any:
    ua, ub = unsigned(a), unsigned(b)
    return (ua // ub + (ua % ub != 0)).astype(ua.dtype).view(a.dtype)


SIGNED_DIVISIONS = ("divsi", "remsi", "floordivsi", "ceildivsi")


def divide_exact(kind: str, a: Any, b: Any) -> Any:
    """Divide by non-zero divisors."""
    if kind in ("divui", "remui", "ceildivui"):
        return {"divui": h_divui_const, "remui": h_remui_const, "ceildivui": h_ceildivui_const}[kind](a, b)
    if kind == "floordivsi":
        return a // b
    if kind == "ceildivsi":
        return h_ceildivsi_const(a, b)
    r = np.fmod(a, b)
    return r if kind == "remsi" else (a - r) // b


def h_divide(machine: Any, site: int, kind: str, a: Any, b: Any, m: Any) -> Any:
    """Integer division by a run-time divisor; zero (and the one overflowing quotient) become findings and give 0."""
    bad = b == 0
    is_zero = bool(np.any(bad))
    if is_zero:
        machine.undefined(site, "division by zero", bad, m)
        b = np.where(bad, b.dtype.type(1), b) if b.ndim else b.dtype.type(1)
    if kind in SIGNED_DIVISIONS:
        least = np.iinfo(a.dtype).min
        overflow = (b == -1) & (a == least)
        if np.any(overflow):
            machine.undefined(site, f"the quotient of {least} by -1 does not fit", overflow, m)
    result = divide_exact(kind, a, b)
    return np.where(bad, a.dtype.type(0), result)[()] if is_zero else result


def h_buffer_offset(machine: Any, site: int, a: Any, m: Any) -> Any:
    """A 64-bit offset cut to the 32 bits that buffer instructions take; what does not fit becomes a finding."""
    bad = (a < -(1 << 31)) | (a >= 1 << 32)
    if np.any(bad if m is None else bad & m):
        machine.reporter.buffer_offset(machine, site, a, bad, m)
    return a.astype(np.int32)


def h_shift(machine: Any, site: int, kind: str, a: Any, b: Any, m: Any) -> Any:
    """Shift by a run-time amount; amounts past the width are findings and use the low bits, as the hardware does."""
    bits = a.dtype.itemsize * 8
    ub = unsigned(b)
    bad = ub >= bits
    if np.any(bad):
        machine.undefined(site, f"a shift of {bits} bits by {bits} or more", bad, m)
        b = b & b.dtype.type(bits - 1)
    if kind == "shl":
        return a << b
    if kind == "ashr":
        return a >> b
    return (unsigned(a) >> unsigned(b)).view(a.dtype)


def h_mulhi_u(a: Any, b: Any) -> Any:
    """Upper half of the unsigned product."""
    size = a.dtype.itemsize
    ua, ub = unsigned(a), unsigned(b)
    if size < 8:
        return (
            ((ua.astype(np.uint64) * ub.astype(np.uint64)) >> np.uint64(size * 8)).astype(UNSIGNED[size]).view(a.dtype)
        )
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = ua & mask, ua >> half, ub & mask, ub >> half
    mid = (al * bl >> half) + (ah * bl & mask) + (al * bh & mask)
    return (ah * bh + (ah * bl >> half) + (al * bh >> half) + (mid >> half)).view(a.dtype)


def h_mulhi_s(a: Any, b: Any) -> Any:
    """Upper half of the signed product."""
    zero = a.dtype.type(0)
    return h_mulhi_u(a, b) - np.where(a < 0, b, zero)[()] - np.where(b < 0, a, zero)[()]


def _clamped(a: Any, b: Any, wrapped: Any, over: Any, limit: Any) -> Any:
    return np.where(over, limit, wrapped)[()]


def h_sadd_sat(a: Any, b: Any) -> Any:
    r = a + b
    info = np.iinfo(a.dtype)
    over = ((a ^ r) & (b ^ r)) < 0
    return _clamped(a, b, r, over, np.where(a < 0, a.dtype.type(info.min), a.dtype.type(info.max)))


def h_ssub_sat(a: Any, b: Any) -> Any:
    r = a - b
    info = np.iinfo(a.dtype)
    over = ((a ^ b) & (a ^ r)) < 0
    return _clamped(a, b, r, over, np.where(a < 0, a.dtype.type(info.min), a.dtype.type(info.max)))


def h_uadd_sat(a: Any, b: Any) -> Any:
    r = a + b
    return _clamped(a, b, r, unsigned(r) < unsigned(a), a.dtype.type(-1))


def h_usub_sat(a: Any, b: Any) -> Any:
    r = a - b
    return _clamped(a, b, r, unsigned(a) < unsigned(b), a.dtype.type(0))


def h_with_overflow(kind: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Return (wrapped result, whether it wrapped) of sadd, ssub, smul, uadd, usub or umul."""
    name = kind[1:]
    r = a + b if name == "add" else a - b if name == "sub" else a * b
    if name == "mul":
        high = h_mulhi_s(a, b) if kind[0] == "s" else h_mulhi_u(a, b)
        return r, high != (r >> r.dtype.type(r.dtype.itemsize * 8 - 1) if kind[0] == "s" else 0)
    if kind[0] == "u":
        return r, unsigned(r) < unsigned(a) if name == "add" else unsigned(a) < unsigned(b)
    return r, ((a ^ r) & (b ^ r) if name == "add" else (a ^ b) & (a ^ r)) < 0


def h_fshl(a: Any, b: Any, c: Any) -> Any:
    """Left funnel shift of the pair (a, b)."""
    bits = a.dtype.itemsize * 8
    s = c & a.dtype.type(bits - 1)
    low = (unsigned(b) >> unsigned(a.dtype.type(bits - 1) - s) >> unsigned(a.dtype.type(1))).view(a.dtype)
    return (a << s) | low


def h_fshr(a: Any, b: Any, c: Any) -> Any:
    """Right funnel shift of the pair (a, b)."""
    bits = a.dtype.itemsize * 8
    s = c & a.dtype.type(bits - 1)
    high = a << (a.dtype.type(bits - 1) - s) << a.dtype.type(1)
    return high | (unsigned(b) >> unsigned(s)).view(a.dtype)


def popcount(x: Any) -> Any:
    """Return the number of set bits of unsigned integers (NumPy 1 has no function for it)."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(x)
    whole = np.ascontiguousarray(x)[..., None].view(np.uint8)
    return _BYTE_BITS.take(whole).sum(axis=-1).astype(np.uint8)[()]


_BYTE_BITS = np.array([bin(i).count("1") for i in range(256)], np.uint8)


def h_ctpop(a: Any) -> Any:
    return popcount(unsigned(a)).astype(a.dtype)


def h_ctlz(a: Any) -> Any:
    bits = a.dtype.itemsize * 8
    x = unsigned(a)
    for s in (1, 2, 4, 8, 16, 32):
        if s < bits:
            x = x | (x >> x.dtype.type(s))
    return (bits - popcount(x).astype(np.int64)).astype(a.dtype)


def h_cttz(a: Any) -> Any:
    x = unsigned(a)
    return popcount(~x & (x - x.dtype.type(1))).astype(a.dtype)


def h_bswap(a: Any) -> Any:
    return a.byteswap()


def h_bitreverse(a: Any) -> Any:
    x = unsigned(a).byteswap()
    for s, pattern in ((4, 0x0F), (2, 0x33), (1, 0x55)):
        mask = x.dtype.type(int.from_bytes(bytes([pattern]) * x.dtype.itemsize, "little"))
        shift = x.dtype.type(s)
        x = ((x & mask) << shift) | ((x >> shift) & mask)
    return x.view(a.dtype)


def h_ipowi(a: Any, b: Any) -> Any:
    """Integer power that wraps; negative exponents give 0, 1 or -1."""
    result = np.ones(np.broadcast(a, b).shape, a.dtype)[()]
    base, e = a, np.maximum(b, b.dtype.type(0))
    while np.any(e > 0):
        result = np.where(e & 1, result * base, result)[()]
        base = base * base
        e = e >> 1
    odd = np.where(b & 1, a, a * a)
    negative = np.where((a == 1) | (a == -1), odd, a.dtype.type(0))
    return np.where(b < 0, negative, result)[()]


# --- vectors ---------------------------------------------------------------------------------------------------------


def h_splat(x: Any, n: int) -> np.ndarray:
    """Return a vector that repeats a scalar per lane, without copying."""
    return np.broadcast_to(x[..., None], (*x.shape, n))


def h_col(x: Any) -> Any:
    return x[..., None]


def h_concat(dtype: Any, n: int, parts: tuple) -> np.ndarray:
    """Return one vector from (array, length) parts."""
    shape = np.broadcast_shapes(*[p.shape[:-1] for p, _ in parts])
    out = np.empty((*shape, n), dtype)
    at = 0
    for p, length in parts:
        out[..., at : at + length] = p
        at += length
    return out


def h_recast(x: Any, dtype: Any) -> np.ndarray:
    """Return the bits of the last axis as another element type."""
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    return x.view(dtype)


def h_pick(machine: Any, site: int, v: np.ndarray, i: Any, m: Any) -> Any:
    """Return the element of each lane's vector at a run-time index; one past the vector is a finding and wraps."""
    n = v.shape[-1]
    check_element(machine, site, n, i, m, False)
    if i.ndim == 0:
        return v[..., int(i) % n]
    shape = np.broadcast_shapes(v.shape[:-1], i.shape)
    index = np.broadcast_to(i, shape)[..., None].astype(np.int64) % n
    return np.take_along_axis(np.broadcast_to(v, (*shape, n)), index, axis=-1)[..., 0]


def h_place(machine: Any, site: int, v: np.ndarray, i: Any, x: Any, m: Any) -> np.ndarray:
    """Return each lane's vector with the element at a run-time index replaced; one past the vector is a finding."""
    n = v.shape[-1]
    check_element(machine, site, n, i, m, True)
    here = np.arange(n) == i[..., None]
    return np.where(here, x[..., None], v)


def check_element(machine: Any, site: int, n: int, i: Any, m: Any, write: bool) -> None:
    """Report lanes whose run-time index lies outside a vector of `n` elements."""
    bad = unsigned(i) >= n
    if np.any(bad if m is None else bad & m):
        machine.reporter.vector_element(machine, site, n, i, bad if m is None else bad & m, write)


def h_shuffle_elems(v: np.ndarray, mask: list[int]) -> np.ndarray:
    return v.take(mask, axis=-1)


def h_step(n: int, dtype: Any) -> np.ndarray:
    return np.arange(n, dtype=dtype)

"""Float functions of generated code: math functions, fused multiply-add, conversions that round as the hardware
does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flydsl.targets.sim.numeric import BF16

F32, F64 = np.float32, np.float64
CHUNK = (
    16384  # f64 temporaries of this size stay in the cache: 5 times faster than whole arrays of 1 MB (exp2, measured)
)


def _in_f64(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `fn` computed in f64 and rounded once to the argument's type."""

    def wrapped(x: Any) -> Any:
        if x.size <= CHUNK or x.dtype == F64:
            return h_from_f64(fn(x.astype(F64)), x.dtype)
        out = np.empty(x.shape, x.dtype)
        source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
        for i in range(0, source.size, CHUNK):
            target[i : i + CHUNK] = h_from_f64(fn(source[i : i + CHUNK].astype(F64)), x.dtype)
        return out

    return wrapped


def h_from_f64(x: Any, dtype: Any) -> Any:
    """Round f64 once to `dtype`."""
    return h_f64_to_bf16(x) if dtype == BF16 else x.astype(dtype)


h_math_exp = _in_f64(np.exp)
h_math_exp2 = _in_f64(np.exp2)
h_math_exp10 = _in_f64(lambda x: np.power(10.0, x))
h_math_expm1 = _in_f64(np.expm1)
h_math_log = _in_f64(np.log)
h_math_log2 = _in_f64(np.log2)
h_math_log10 = _in_f64(np.log10)
h_math_log1p = _in_f64(np.log1p)
h_math_sqrt = np.sqrt
h_math_rsqrt = _in_f64(lambda x: 1.0 / np.sqrt(x))
h_math_cbrt = _in_f64(np.cbrt)
h_math_sin = _in_f64(np.sin)
h_math_cos = _in_f64(np.cos)
h_math_tan = _in_f64(np.tan)
h_math_asin = _in_f64(np.arcsin)
h_math_acos = _in_f64(np.arccos)
h_math_atan = _in_f64(np.arctan)
h_math_sinh = _in_f64(np.sinh)
h_math_cosh = _in_f64(np.cosh)
h_math_tanh = _in_f64(np.tanh)
h_math_asinh = _in_f64(np.arcsinh)
h_math_acosh = _in_f64(np.arccosh)
h_math_atanh = _in_f64(np.arctanh)
h_math_ceil = np.ceil
h_math_floor = np.floor
h_math_trunc = np.trunc
h_math_roundeven = np.rint
h_isnan = np.isnan
h_isinf = np.isinf
h_isfinite = np.isfinite


def h_math_round(x: Any) -> Any:
    """Round half away from zero."""
    r = np.trunc(x)
    half = x.dtype.type(0.5)
    return np.copysign(np.where(np.abs(x - r) >= half, r + np.sign(x).astype(x.dtype), r), x).astype(x.dtype)


def h_isnormal(x: Any) -> Any:
    tiny = {2: 2.0**-14, 4: 2.0**-126, 8: 2.0**-1022}[x.dtype.itemsize] if x.dtype != BF16 else 2.0**-126
    return np.isfinite(x) & (np.abs(x).astype(F64) >= tiny)


# 48 Gauss-Legendre nodes give erfc(x) = exp(-x^2) * integral over a finite range to full double precision.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def erf64(x: Any) -> Any:
    """erf in f64: Maclaurin series below 1.5 (terms alternate mildly there), 1 - erfc above."""
    a = np.abs(x)
    small = np.minimum(a, 1.5)
    square = small * small
    term = small * (2 / np.sqrt(np.pi)) * np.exp(-square)
    total = term
    for n in range(1, 40):  # erf(x) = 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, all terms positive
        term = term * (2 * square / (2 * n + 1))
        total = total + term
    r = np.where(a < 1.5, total, 1 - erfc_tail(np.maximum(a, 1.5)))
    return np.copysign(np.where(np.isnan(x), np.nan, r), x)


def erfc_tail(a: Any) -> Any:
    """erfc for a >= 1.5: 2/sqrt(pi) exp(-a^2) times the integral of exp(-t^2 - 2at) over t >= 0."""
    a = np.minimum(a, 30.0)
    length = 40.0 / (2 * a)
    total = 0.0
    for node, weight in zip(_NODES, _WEIGHTS):
        t = length * (0.5 * (node + 1))
        total = total + weight * np.exp(-t * t - 2 * a * t)
    high = a.astype(F32).astype(F64)  # exp(-a^2) with a^2 split, so that its rounding is not amplified
    return 2 / np.sqrt(np.pi) * np.exp(-high * high) * np.exp(-(a - high) * (a + high)) * total * (0.5 * length)


def erfc64(x: Any) -> Any:
    """erfc in f64."""
    tail = erfc_tail(np.maximum(np.abs(x), 1.5))
    r = np.where(x >= 1.5, tail, np.where(x <= -1.5, 2 - tail, 1 - erf64(np.clip(x, -1.5, 1.5))))
    return np.where(np.isnan(x), np.nan, r)


h_math_erf = _in_f64(lambda x: erf64(x)[()])
h_math_erfc = _in_f64(lambda x: erfc64(x)[()])


def h_math_pow(a: Any, b: Any) -> Any:
    return h_from_f64(np.power(a.astype(F64), b.astype(F64)), a.dtype)


def h_math_powi(a: Any, b: Any) -> Any:
    return h_from_f64(np.power(a.astype(F64), b.astype(F64)), a.dtype)


def h_math_atan2(a: Any, b: Any) -> Any:
    return h_from_f64(np.arctan2(a.astype(F64), b.astype(F64)), a.dtype)


def h_math_copysign(a: Any, b: Any) -> Any:
    return np.copysign(a, b)


def h_ldexp(a: Any, b: Any) -> Any:
    return np.ldexp(a, b) if a.dtype != BF16 else np.ldexp(a.astype(F32), b).astype(BF16)


# --- fused multiply-add ----------------------------------------------------------------------------------------------


def h_fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once."""
    dtype = np.result_type(a, b, c) if a.dtype != BF16 else a.dtype
    if dtype == F64:
        return fma64(a, b, c)
    product = a.astype(F64) * b.astype(F64)  # exact: at most 48 bits
    return h_from_f64(add_odd(product, c.astype(F64)), dtype)


def add_odd(a: Any, b: Any) -> Any:
    """a + b in f64 rounded to odd, so that rounding again to a type of half the width is exact."""
    s = a + b
    t = s - a
    err = (a - (s - t)) + (b - t)
    inexact = err != 0
    if not np.any(inexact):
        return s
    bits = np.asarray(s).view(np.int64)
    even = (bits & 1) == 0
    towards = np.where((err > 0) == (s > 0), 1, -1)  # move away from or to zero in magnitude
    fixed = np.where(inexact & even & np.isfinite(s) & np.isfinite(err), bits + towards, bits)
    return fixed.view(F64)[()]


def fma64(a: Any, b: Any, c: Any) -> Any:
    """f64 fma: exact product by splitting, then one rounding; through long double where the split would overflow."""
    split = 134217729.0
    p = a * b
    ah = a * split
    ah = ah - (ah - a)
    bh = b * split
    bh = bh - (bh - b)
    al, bl = a - ah, b - bh
    e = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    s = p + c
    t = s - p
    err = (p - (s - t)) + (c - t)
    r = s + add_odd(err, e)  # the sum of the two error terms decides the last bit
    return np.where(np.isfinite(r), r, s)[()] if np.ndim(r) else (r if np.isfinite(r) else s)


# --- conversions -----------------------------------------------------------------------------------------------------

_F16_TABLE = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def h_f16_to_f32(x: Any) -> Any:
    """f16 to f32 by table: three times faster than the conversion (measured on AVX-512)."""
    if x.ndim == 0:
        return x.astype(F32)
    return _F16_TABLE.take(x.view(np.uint16))


def h_bf16_to_f32(x: Any) -> Any:
    return x.astype(F32)


def h_f32_to_bf16(x: Any) -> Any:
    return x.astype(BF16)


def h_f64_to_bf16(x: Any) -> Any:
    """Round f64 to bf16 once (the conversion through f32 would round twice)."""
    narrow = x.astype(F32)
    back = narrow.astype(F64)
    bits = np.asarray(narrow).view(np.int32)
    inexact = (back != x) & np.isfinite(back) & np.isfinite(x)
    if not np.any(inexact):
        return narrow.astype(BF16)
    larger = np.abs(back) > np.abs(x)
    odd = np.where(inexact & ((bits & 1) == 0), np.where(larger, bits - 1, bits + 1), bits).astype(np.int32)
    return odd.view(F32)[()].astype(BF16)


def h_round_to(x: Any, dtype: Any, mode: str) -> Any:
    """Narrow with a rounding mode other than to-nearest-even."""
    wide = x.astype(F64)
    near = h_from_f64(wide, dtype)
    back = near.astype(F64)
    if mode == "to_nearest_away":
        other = step_ulp(near, np.where(back < wide, 1, -1))
        tie = np.abs(other.astype(F64) - wide) == np.abs(back - wide)
        return np.where(tie & (np.abs(other.astype(F64)) > np.abs(back)), other, near)[()]
    if mode == "toward_zero":
        wrong = np.abs(back) > np.abs(wide)
        direction = np.where(back > 0, -1, 1)
    else:
        wrong = back < wide if mode == "upward" else back > wide
        direction = np.where(wrong, 1 if mode == "upward" else -1, 1)
    return np.where(wrong & ~np.isnan(wide), step_ulp(near, direction), near)[()]


def step_ulp(x: Any, direction: Any) -> Any:
    """Return the neighbour of `x` above (direction 1) or below (-1)."""
    signed = {2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    bits = np.asarray(x).view(signed)
    negative = bits < 0
    zero = (bits & np.iinfo(signed).max) == 0
    moved = bits + np.where(negative, -direction, direction).astype(signed)
    smallest = np.where(direction > 0, signed(1), signed(np.iinfo(signed).min + 1))
    return np.where(zero, smallest, moved).astype(signed).view(x.dtype)


def h_fptosi(x: Any, dtype: Any) -> Any:
    """Truncate toward zero. Out of range as the instructions that LLVM chooses: 32 bits saturate, NaN gives 0; fewer are
    the low bits of 32, of f16 those of 16, which saturate; 64 are put together of two halves."""
    if dtype == np.int64:
        return _float_to_long(x, np.int64)
    return _float_to_int(x, dtype, np.int16 if x.dtype == np.float16 and dtype != np.int32 else np.int32)


def h_fptoui(x: Any, dtype: Any) -> Any:
    """`h_fptosi` for unsigned results; 8 bits are the low ones of a signed conversion."""
    if dtype == np.int64:
        return _float_to_long(x, np.uint64)
    return h_fptosi(x, dtype) if dtype == np.int8 else _float_to_int(x, dtype, np.uint32)


def _float_to_long(x: Any, wide: Any) -> Any:
    """Convert to 64 bits; what does not fit as LLVM's expansion has it: f16 through 32 bits, else the two halves of the
    magnitude (f64: of the value), each saturating."""
    is_signed = wide is np.int64
    if x.dtype == np.float16:
        narrow = np.int32 if is_signed else np.uint32
        return _float_to_int(x, np.int32, narrow).view(narrow).astype(np.int64)
    whole = np.trunc(x.astype(F64))
    if np.all((whole >= float(np.iinfo(wide).min)) & (whole < 2.0 ** (63 if is_signed else 64))):
        return whole.astype(wide).view(np.int64)
    is_magnitude = is_signed and x.dtype != F64
    is_negative = np.signbit(whole) if is_magnitude else np.False_
    whole = np.where(is_negative, -whole, whole)
    with np.errstate(invalid="ignore"):
        upper = np.floor(whole * 2.0**-32)
        lower = (whole - upper * 2.0**32).astype(F64 if x.dtype == F64 else np.float32)
    high = _float_to_int(upper, np.int32, np.int32 if is_signed and not is_magnitude else np.uint32)
    result = high.astype(np.int64) << 32 | _float_to_int(lower, np.int32, np.uint32).view(np.uint32).astype(np.int64)
    return np.where(is_negative, -result, result)[()]


def _float_to_int(x: Any, dtype: Any, wide: Any) -> Any:
    x = x.astype(F64)
    info = np.iinfo(wide)
    good = (x > float(info.min) - 1) & (x < float(info.max) + (1 if info.bits < 64 else 0))
    if np.all(good):
        r = x.astype(wide)
    else:
        r = np.where(good, x, 0).astype(wide)
        r = np.where(x >= float(info.max), wide(info.max), np.where(x < float(info.min), wide(info.min), r))
        r = np.where(np.isnan(x), wide(0), r)[()]
    return r.astype(f"u{np.dtype(dtype).itemsize}").view(dtype) if dtype != np.bool_ else (r & wide(1)).astype(bool)


# --- hardware approximations -----------------------------------------------------------------------------------------


def flush(x: Any) -> Any:
    """Return `x` with f32 denormals replaced by zeros of their sign."""
    if x.dtype != F32:
        return x
    tiny = np.abs(x) < F32(2.0**-126)
    return np.where(tiny, np.copysign(F32(0), x), x)[()] if np.any(tiny & (x != 0)) else x


def h_hw_exp2(x: Any) -> Any:
    return flush(h_math_exp2(flush(x)))


def h_hw_log(x: Any) -> Any:
    """The hardware's `log` is base 2."""
    return h_math_log2(flush(x))


def h_hw_rcp(x: Any) -> Any:
    """v_rcp_f32 takes and gives no denormals (those of f16 and f64 do)."""
    return flush((x.dtype.type(1) / flush(x)).astype(x.dtype))


def h_hw_rsq(x: Any) -> Any:
    return h_math_rsqrt(flush(x))


def h_hw_sqrt(x: Any) -> Any:
    """v_sqrt_f32 does not handle denormals: LLVM uses it as it is only where they may count as zeros, and scales smaller
    inputs by 2^32 otherwise (AMDGPUCodeGenPrepare visitSqrt and emitSqrtIEEE2ULP, lowerFSQRTF32 below 2^-96), as ROCm's
    device library does below 2^-126 (sqrtF). A denormal is read as zero, as by v_rcp_f32 and v_rsq_f32.
    """
    return np.sqrt(flush(x))


h_hw_tanh = h_math_tanh


def h_hw_sin(x: Any) -> Any:
    """The hardware's sine takes revolutions."""
    return h_from_f64(np.sin(2 * np.pi * np.fmod(x.astype(F64), 1.0)), x.dtype)


def h_hw_cos(x: Any) -> Any:
    return h_from_f64(np.cos(2 * np.pi * np.fmod(x.astype(F64), 1.0)), x.dtype)


def h_fmed3(a: Any, b: Any, c: Any) -> Any:
    """Median of three; with a NaN, the minimum of the others."""
    r = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, np.fmin(np.fmin(a, b), c), r)[()] if np.any(nan) else r


def h_fpclass(x: Any, bits: int) -> Any:
    """Test against the class bits of LLVM's is.fpclass."""
    negative = np.signbit(x)
    nan, inf, zero, normal = np.isnan(x), np.isinf(x), x == 0, h_isnormal(x)
    tests = [
        nan & False,
        nan,
        negative & inf,
        negative & normal,
        negative & ~normal & ~zero & ~nan & ~inf,
        negative & zero,
    ]
    tests += [~negative & zero, ~negative & ~normal & ~zero & ~nan & ~inf, ~negative & normal, ~negative & inf]
    result = nan & False
    for i, test in enumerate(tests):
        if bits >> i & 1:
            result = result | test
    return result

"""f64 exp and log, and the f32 functions that are simplest to get right through them.

CDNA runs f64 at half rate or better, RDNA slowly: only functions that kernels use rarely go this way. Every f32
result is the rounding of a value with at least 30 good bits, so it is within 1 ulp.
"""

from __future__ import annotations

import math

from flydsl.ir.expression import Expr

_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the high part times an exponent is exact
_EXP = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
# (log((1+s)/(1-s)) - 2s) / s^3 in s^2, relative error 2^-59.5
_LOG = (
    0.14798481409657954,
    0.1531381560783042,
    0.18183572769539702,
    0.22222198425658765,
    0.28571428743672145,
    0.39999999999409624,
    0.6666666666666735,
)
# (atan a - a) / a^3 in a^2 up to tan(pi/8), 2^-40
_ATAN = (
    -0.03789745668688729,
    0.06989745759607126,
    -0.08996527100426342,
    0.11103971394836963,
    -0.14285421935115222,
    0.19999994286499712,
    -0.3333333329541673,
)
# erf x / x in x^2 on [0, 1], 2^-29.6, and erfc t * e^(t^2) * (1 + 2t) in (t - 2) / (t + 2) on [0.4, 10.2], 2^-35
_ERF_SMALL = (
    7.853820172512528e-05,
    -0.0008010183186757247,
    0.005188326767700767,
    -0.026853811607990705,
    0.1128358514416089,
    -0.37612625824022083,
    1.128379165727291,
)
_ERFC = (
    -1.7550497745497332e-05,
    0.00010386428631655741,
    0.00021615186175297888,
    -0.00042907735389433114,
    -0.0014600287809683659,
    0.0012647055673170229,
    0.008723215703540826,
    -0.008033160567110826,
    -0.054220048752212126,
    0.16405123262724855,
    -0.16603039606367312,
    -0.09276382583220762,
    1.2769783815441036,
)


def exp(x: Expr) -> Expr:
    """Return e^x of f64."""
    clamped = x.compare("ogt", 1000.0).select(1000.0, x)
    clamped = clamped.compare("olt", -1000.0).select(-1000.0, clamped)
    clamped = clamped.compare("uno", clamped).select(0.0, clamped)  # NaN has no integer part
    turns = (clamped * (1.0 / math.log(2.0))).call("roundeven")
    rest = turns.fma(-_LN2_LOW, turns.fma(-_LN2_HIGH, clamped))
    scaled = _ldexp(rest.poly(*_EXP), turns.cast("fptosi", "i32"))
    return x.compare("uno", x).select(x, scaled)


def exp2(x: Expr) -> Expr:
    """Return 2^x of f64."""
    clamped = x.compare("ogt", 1100.0).select(1100.0, x)
    clamped = clamped.compare("olt", -1100.0).select(-1100.0, clamped)
    clamped = clamped.compare("uno", clamped).select(0.0, clamped)
    turns = clamped.call("roundeven")
    scaled = _ldexp(((clamped - turns) * math.log(2.0)).poly(*_EXP), turns.cast("fptosi", "i32"))
    return x.compare("uno", x).select(x, scaled)


def _ldexp(x: Expr, exponent: Expr) -> Expr:
    return Expr(x.b, x.b.intrinsic("ldexp", x.kind, [x.value, exponent.value]))


def log(x: Expr) -> Expr:
    """Return the natural logarithm of f64."""
    exponent, correction, big = _log_parts(x)
    return _log_special(x, exponent.fma(_LN2_HIGH, exponent.fma(_LN2_LOW, correction) + big))


def log2(x: Expr) -> Expr:
    """Return the binary logarithm of f64."""
    return _log_base(x, 1.0, 0.0, 1.0 / math.log(2.0), 2.0355273740931033e-17)


def log10(x: Expr) -> Expr:
    """Return the decimal logarithm of f64."""
    return _log_base(x, 0.3010299955494702, 1.1451100898021838e-10, 1.0 / math.log(10.0), 1.098319650216765e-17)


def _log_base(x: Expr, two_high: float, two_low: float, inverse: float, inverse_low: float) -> Expr:
    """Return log x in a base: e * log(2) in two parts, plus log(1 + f) times 1 / ln(base) in two parts."""
    exponent, correction, f = _log_parts(x)
    high = _rounded(inverse)
    tail = correction.fma(inverse, f * (inverse - high + inverse_low))
    small = f.fma(high, tail)
    return _log_special(x, exponent.fma(two_high, exponent.fma(two_low, small)))


def _rounded(value: float) -> float:
    """Return `value` with its low 27 bits cleared."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(mantissa * 2.0**26), exponent - 26)


def _log_parts(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Return (e, c, f): x = 2^e * (1 + f), log(1 + f) = f + c, and 1 + f in [sqrt(1/2), sqrt(2))."""
    small = x.compare("olt", 2.0**-1022)
    bits = small.select(x * 2.0**54, x).bits()
    offset = bits - 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    exponent = (offset >> 52).cast("sitofp", "f64")
    exponent = small.select(exponent - 54.0, exponent)
    mantissa = (bits - (offset & (0xFFF << 52))).as_float()
    f = mantissa - 1.0
    s = f / (f + 2.0)
    square = s * s
    half_square = f * f * 0.5
    correction = s.fma(half_square + square * square.poly(*_LOG), -half_square)
    return exponent, correction, f


def _log_special(x: Expr, result: Expr) -> Expr:
    result = x.compare("oeq", math.inf).select(math.inf, result)
    result = x.compare("oeq", 0.0).select(-math.inf, result)
    return x.compare("oge", 0.0).select(result, math.nan)


def atan(x: Expr) -> Expr:
    """Return atan x with 40 good bits."""
    magnitude = x.abs()
    far, middle = magnitude.compare("ogt", 2.414213562373095), magnitude.compare("ogt", 0.4142135623730951)
    top = far.select(-1.0, middle.select(magnitude - 1.0, magnitude))
    bottom = far.select(magnitude, middle.select(magnitude + 1.0, 1.0))
    base = far.select(magnitude.const(math.pi / 2), middle.select(magnitude.const(math.pi / 4), 0.0))
    a = top / bottom
    square = a * a
    return (base + (square * a).fma(square.poly(*_ATAN), a)).copysign(x)


def atan2(y: Expr, x: Expr) -> Expr:
    """Return the angle of (x, y) with 40 good bits, signed zeros and infinities as in C."""
    up, right = y.abs(), x.abs()
    steep = up.compare("ogt", right)
    smaller, larger = steep.select(right, up), steep.select(up, right)
    ratio = smaller / larger
    ratio = smaller.compare("oeq", larger).select(1.0, ratio)  # inf / inf
    ratio = larger.compare("oeq", 0.0).select(0.0, ratio)
    angle = atan(ratio)
    angle = steep.select(math.pi / 2 - angle, angle)
    angle = x.bits().compare("slt", 0).select(math.pi - angle, angle)
    return (x.compare("uno", y)).select(x + y, angle.copysign(y))


def power(x: Expr, y: Expr) -> Expr:
    """Return x^y with 30 good bits for x and y that were f32, special cases as in C."""
    magnitude = x.abs()
    result = exp(y * log(magnitude))
    whole = y.call("trunc").compare("oeq", y)
    half = y * 0.5
    odd = whole & half.call("trunc").compare("une", half)
    negative = x.bits().compare("slt", 0)
    result = (negative & odd).select(-result, result)
    domain = x.compare("olt", 0.0) & whole.compare("eq", 0) & magnitude.compare("one", math.inf)
    result = domain.select(math.nan, result)
    unit = x.compare("oeq", 1.0) | y.compare("oeq", 0.0)
    unit = unit | (magnitude.compare("oeq", 1.0) & y.abs().compare("oeq", math.inf))
    return unit.select(1.0, result)


def expm1(x: Expr) -> Expr:
    """Return e^x - 1."""
    return x.abs().compare("olt", 2.0**-20).select(x + x * x * 0.5, exp(x) - 1.0)


def log1p(x: Expr) -> Expr:
    """Return log(1 + x)."""
    return x.abs().compare("olt", 2.0**-20).select(x - x * x * 0.5, log(x + 1.0))


def sinh(x: Expr) -> Expr:
    """Return sinh x."""
    square = x * x
    near = x + x * square * square.poly(1.0 / 120.0, 1.0 / 6.0)
    far = (exp(x) - exp(-x)) * 0.5
    return x.abs().compare("olt", 2.0**-6).select(near, far)


def cosh(x: Expr) -> Expr:
    """Return cosh x."""
    return (exp(x) + exp(-x)) * 0.5


def asinh(x: Expr) -> Expr:
    """Return asinh x."""
    square, magnitude = x * x, x.abs()
    near = x + x * square * square.poly(3.0 / 40.0, -1.0 / 6.0)
    far = log(magnitude + (square + 1.0).call("sqrt")).copysign(x)
    return magnitude.compare("olt", 2.0**-6).select(near, far)


def acosh(x: Expr) -> Expr:
    """Return acosh x; NaN below 1."""
    result = log(x + ((x - 1.0) * (x + 1.0)).call("sqrt"))
    return x.compare("oge", 1.0).select(result, math.nan)


def atanh(x: Expr) -> Expr:
    """Return atanh x."""
    square = x * x
    near = x + x * square * square.poly(1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0)
    far = log((x + 1.0) / (1.0 - x)) * 0.5
    return x.abs().compare("olt", 2.0**-6).select(near, far)


def cbrt(x: Expr) -> Expr:
    """Return the cube root."""
    return exp(log(x.abs()) * (1.0 / 3.0)).copysign(x)


def erfc(x: Expr) -> Expr:
    """Return 1 - erf x with 29 good bits, for x that was f32."""
    t = x.abs()
    near = 1.0 - x * (x * x).poly(*_ERF_SMALL)
    t = t.compare("ogt", 10.2).select(10.2, t)  # less than half the smallest f32 from there on
    ratio = ((t - 2.0) / (t + 2.0)).poly(*_ERFC) / (t + t + 1.0)
    far = exp(-(t * t)) * ratio
    far = x.compare("olt", 0.0).select(2.0 - far, far)
    return x.abs().compare("olt", 0.5).select(near, x.compare("uno", x).select(x, far))


def asin(x: Expr) -> Expr:
    """Return asin x; NaN outside [-1, 1]."""
    return atan2(x, ((1.0 - x) * (x + 1.0)).call("sqrt"))


def acos(x: Expr) -> Expr:
    """Return acos x; NaN outside [-1, 1]."""
    return atan2(((1.0 - x) * (x + 1.0)).call("sqrt"), x)

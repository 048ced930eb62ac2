"""sin, cos and tan of f32 for every argument, within 2 ulp.

Up to 2^17 the argument is reduced by pi/2 in three parts with fused multiply-add, whose first step is exact.
Above, the mantissa is multiplied with the bits of 2/pi that matter (integer arithmetic); that code stands in a
branch which is entered only if a lane needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flydsl.ir import ir
from flydsl.ir.expression import Builder, Expr, element

_FAST_LIMIT = 131072.0
_HALF_PI_PARTS = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
_HALF_PI_PARTS_F64 = (1.5707963267948966, 6.123233995736766e-17)
# 2/pi / 256 in words of 32 bits, most significant first
_TWO_OVER_PI = (0x00A2F983, 0x6E4E4415, 0x29FC2757, 0xD1F534DD, 0xC0DB6295, 0x993C4390, 0x41FE5163)

# on [0, pi/4], in r^2: (sin r - r) / r^3, 2^-37; (cos r - 1 + r^2/2) / r^4, 2^-33; (tan r - r) / r^3, 2^-25.5
_SIN = (2.7173666578158203e-06, -0.00019839232660069937, 0.00833332905612458, -0.16666666638641983)
_COS = (2.442568202938988e-05, -0.001388725149057159, 0.041666644367918074)
_TAN = (
    0.009590882554247417,
    0.0027754996331226015,
    0.024642946849246953,
    0.05335225501802453,
    0.13339503972236133,
    0.33333130028645197,
)


def sin(x: Expr) -> Expr:
    """Return sin x; NaN for infinities."""
    return _finite(x, _by_quadrant(x, lambda q, r: _quadrant_sine(q, r)))


def cos(x: Expr) -> Expr:
    """Return cos x; NaN for infinities."""
    return _finite(x, _by_quadrant(x, lambda q, r: _quadrant_sine(q + 1, r)))


def tan(x: Expr) -> Expr:
    """Return tan x; NaN for infinities. Its slope multiplies errors of the argument, so that is reduced in f64."""
    return _finite(x, _by_quadrant(x, _quadrant_tangent, is_wide=True).cast("truncf", "f32"))


def _finite(x: Expr, result: Expr) -> Expr:
    return x.abs().compare("olt", math.inf).select(result, math.nan)


def _quadrant_sine(quadrant: Expr, r: Expr) -> Expr:
    """Return the sine of `quadrant` quarter turns plus r."""
    square = r * r
    sine = (square * r).fma(square.poly(*_SIN), r)
    cosine = (square * square).fma(square.poly(*_COS), square.fma(-0.5, 1.0))
    magnitude = (quadrant & 1).compare("eq", 0).select(sine, cosine)
    sign = (quadrant & 2) << 30
    return (magnitude.bits() ^ sign).as_float()


def _quadrant_tangent(quadrant: Expr, r: Expr) -> Expr:
    square = r * r
    tangent = (square * r).fma(square.poly(*_TAN), r)
    return (quadrant & 1).compare("eq", 0).select(tangent, -1.0 / tangent)


def _by_quadrant(x: Expr, function: Callable[[Expr, Expr], Expr], is_wide: bool = False) -> Expr:
    """Apply `function(quadrant, rest)` to the reduced argument; `rest` is f64 if `is_wide`."""
    large = x.abs().compare("oge", _FAST_LIMIT)
    fast = _reduce_fast(x, is_wide)

    def reduce_large(b: Builder) -> list[Expr]:
        return [large.at(b).select(new, old.at(b)) for new, old in zip(_reduce_large(x.at(b), is_wide), fast)]

    return function(*_if_any(large, list(fast), reduce_large))


def _reduce_fast(x: Expr, is_wide: bool) -> tuple[Expr, Expr]:
    turns = (x * (2.0 / math.pi)).call("roundeven")
    rest, count = (x.cast("extf", "f64"), turns.cast("extf", "f64")) if is_wide else (x, turns)
    for part in _HALF_PI_PARTS_F64 if is_wide else _HALF_PI_PARTS:
        rest = count.fma(-part, rest)
    # out-of-range conversions are undefined; the other branch replaces those lanes
    within = turns.abs().compare("olt", 2.0**24).select(turns, 0.0)
    return within.cast("fptosi", "i32"), rest


def _reduce_large(x: Expr, is_wide: bool) -> tuple[Expr, Expr]:
    """Return (quadrant, rest) for |x| >= 2^17 by an exact product with the 96 bits of 2/pi that matter.

    |x| = m * 2^(e-23) with a 24-bit integer m. The first e - 17 bits of 2/pi / 256 only add multiples of 4
    quarter turns and are dropped; with W the next 96 bits, the quarter turns are m * W * 2^-94 mod 4, so the
    top 64 of the 96 bits of m * W are two quadrant bits and 62 bits of fraction. f32 arguments come no closer
    to a multiple than about 2^-30.
    """
    bits = x.bits()
    drop = (bits.shr_unsigned(23) & 0xFF) - (127 + 17)
    mantissa = ((bits & 0x7FFFFF) | 0x800000).cast("extui", "i64")
    word, shift = drop.shr_unsigned(5), drop & 31
    high, middle, low = (_window_word(word, shift, i) for i in range(3))
    turns = (mantissa * high << 32) + mantissa * middle + (mantissa * low).shr_unsigned(32)
    fraction = turns << 2  # as a signed number: within half a quarter turn
    quadrant = (turns.shr_unsigned(62) + fraction.shr_unsigned(63)).cast("trunci", "i32")
    rest = fraction.cast("sitofp", "f64") * (math.pi / 2 * 2.0**-64)
    rest = rest if is_wide else rest.cast("truncf", "f32")
    negative = bits.compare("slt", 0)
    return negative.select(-quadrant, quadrant), negative.select(-rest, rest)


def _window_word(word: Expr, shift: Expr, i: int) -> Expr:
    """Return, as i64, word `word + i` of the table after a shift left by `shift` bits across words."""
    first, second = (_table(word, k).cast("extui", "i64") for k in (i, i + 1))
    return (first << 32 | second).shr_unsigned(32 - shift.cast("extui", "i64")) & 0xFFFFFFFF


def _table(word: Expr, i: int) -> Expr:
    """Return the table's word `word + i`, word in 0..3, by selects."""
    result = word.const(_TWO_OVER_PI[i])
    for choice in range(1, 4):
        result = word.compare("eq", choice).select(_TWO_OVER_PI[choice + i], result)
    return result


def _if_any(condition: Expr, values: list[Expr], build: Callable[[Builder], list[Expr]]) -> list[Expr]:
    """Return `build`'s values in a branch that is taken if any element of `condition` holds, else `values`."""
    b = condition.b
    flag = condition.value
    if isinstance(condition.kind, ir.VectorType):
        with b.context:
            kind = ir.Attribute.parse("#vector.kind<or>")
        flag = b.emit("vector.reduction", element(condition.kind), [flag], {"kind": kind})
    op = ir.Operation.create("scf.if", [v.kind for v in values], [flag], {}, None, 2, b.location, b.insert)
    for region, make in zip(op.regions, (build, lambda _: values)):
        block = ir.Block.create_at_start(region, [])
        inner = b.inside(ir.InsertionPoint(block))
        results = make(inner)
        inner.emit("scf.yield", None, [v.value for v in results])
    return [Expr(b, result) for result in op.results]

"""f32 functions from hardware-near LLVM intrinsics and short polynomials, each within 2 ulp.

LLVM lowers exp, exp2, log, log2, log10 and sqrt of f32 to the chip's instructions with the fix-ups that
accuracy needs (denormals, the last bits of the product with log2 e), so those are used as they are. Polynomials
are minimax fits for the relative error; tests/unit/rocm/test_math.py evaluates every function on the host
against mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flydsl.ir.expression import Expr

_SMALLEST_NORMAL = 2.0**-126

# (tanh x - x) / x^3 in x^2 on [0, 0.625], relative error 2^-27.8
_TANH = (-0.005705086278522735, 0.02063923604717714, -0.05373978469583756, 0.13331443373752477, -0.3333328199272229)
# erf x / x - 1 in x^2 on [0, 1], 2^-29.6
_ERF_SMALL = (
    7.853820172512528e-05,
    -0.0008010183186757247,
    0.005188326767700767,
    -0.026853811607990705,
    0.1128358514416089,
    -0.37612625824022083,
    0.128379165727291,
)
# log(erfc x) on [1, 4], 2^-35
_LOG_ERFC = (
    -2.1697587403460737e-05,
    0.0004414723150681679,
    -0.004205282981456053,
    0.025210334699112033,
    -0.10842209116586811,
    -0.6332164050021958,
    -1.1295803072193982,
    0.00018846689808242262,
)


def exp(x: Expr) -> Expr:
    """Return e^x."""
    return x.call("exp")


def rsqrt(x: Expr) -> Expr:
    """Return 1 / sqrt(x): v_rsq_f32 is within 1 ulp but takes denormals for zero, so those are scaled first."""
    small = x.abs().compare("olt", _SMALLEST_NORMAL)
    scaled = small.select(x * 2.0**24, x)
    root = x.b.wrap(x.b.hardware("rsq", scaled.value))
    return small.select(root * 2.0**12, root)


def tanh(x: Expr) -> Expr:
    """Return tanh x: an odd polynomial near 0, else 1 - 2 / (e^2|x| + 1), where the quotient is small."""
    square = x * x
    near = (square * x).fma(square.poly(*_TANH), x)
    magnitude = x.abs()
    far = 1.0 - 2.0 / (exp(magnitude + magnitude) + 1.0)
    return magnitude.compare("olt", 0.625).select(near, far.copysign(x))


def erf(x: Expr) -> Expr:
    """Return erf x: an odd polynomial up to 1, else 1 - exp(p(|x|)), which is 1 from 4 on."""
    magnitude = x.abs()
    near = x.fma((x * x).poly(*_ERF_SMALL), x)
    clamped = magnitude.compare("ogt", 4.0).select(4.0, magnitude)
    far = 1.0 - exp(clamped.poly(*_LOG_ERFC))
    return magnitude.compare("olt", 1.0).select(near, far.copysign(x))


def _hardware(name: str) -> Callable[[Expr], Expr]:
    return lambda x: x.b.wrap(x.b.hardware(name, x.value))


_TURN = 1.0 / (2.0 * math.pi)
# for the flag `afn`: the chip's instruction alone, about 1 ulp, denormals taken for zero
APPROXIMATE: dict[str, Callable[[Expr], Expr]] = {
    "exp2": _hardware("exp2"),
    "exp": lambda x: _hardware("exp2")(x * (1.0 / math.log(2.0))),
    "log2": _hardware("log"),
    "log": lambda x: _hardware("log")(x) * math.log(2.0),
    "log10": lambda x: _hardware("log")(x) * math.log10(2.0),
    "sqrt": _hardware("sqrt"),
    "rsqrt": _hardware("rsq"),
    "sin": lambda x: _hardware("sin")(x * _TURN),
    "cos": lambda x: _hardware("cos")(x * _TURN),
}

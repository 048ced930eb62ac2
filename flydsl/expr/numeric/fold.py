"""Folding: operations on Python payloads, with the wrap-around of the class they are done in.

Floats are not rounded to the class's width: a static Float32(0.1) holds Python's 0.1 until it is materialised.
`%` has the sign of the divisor here and of the dividend at run time, as the reference does it (docs/types.md).
"""

import operator
from collections.abc import Callable

from flydsl.diag import (
    FloatHasNoInteger,
    FloatIsInfinite,
    IntegerBeyondFloat,
    NegativeShift,
    StaticDivisionByZero,
    StaticOverflow,
)
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Boolean, Index

Payload = int | float


def fit(c: type[Numeric], value: Payload | bool) -> Payload:
    """Return `value` as the payload of class `c`: a C conversion.

    Raises   FloatHasNoInteger, FloatIsInfinite: a float without integer value
             IntegerBeyondFloat: an integer above the largest float
    """
    if c.is_float:
        try:
            return float(value)
        except OverflowError:
            raise IntegerBeyondFloat(bits=int(value).bit_length(), dtype=c.__name__) from None
    if c is Boolean:
        return 1 if value else 0
    if value.__class__ is float:
        value = _truncate(value)
    return int(value) if c is Index else wrap_int(c, value)


def wrap_int(c: type[Numeric], value: int) -> int:
    """Return `value` modulo 2**width in the range of the integer class `c`."""
    value &= (1 << c.width) - 1
    return value - (1 << c.width) if c.signed and value >> (c.width - 1) else int(value)


def _truncate(value: float) -> int:
    if value != value:
        raise FloatHasNoInteger()
    if value in (float("inf"), float("-inf")):
        raise FloatIsInfinite()
    return int(value)


_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_PLAIN = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_DIVIDE = {"/": operator.truediv, "//": operator.floordiv, "%": operator.mod}
_NAMES = {"/": "division", "//": "integer division", "%": "modulo"}


def folder_of(symbol: str, c: type[Numeric]) -> Callable[[Payload, Payload], Payload]:
    """Return the function which folds `a <symbol> b`, both payloads of `c`; the result still has to be fitted."""
    if symbol in _COMPARE:
        return _COMPARE[symbol]
    if symbol in _DIVIDE:
        return _division(symbol, c)
    if symbol == "**":
        return _power(c)
    if symbol in ("<<", ">>"):
        return _shift(symbol, c)
    return _PLAIN[symbol]


def _division(symbol: str, c: type[Numeric]):
    divide = _DIVIDE[symbol]

    def fold(a, b):
        if not b:
            name = "float " + _NAMES[symbol] if c.is_float else _NAMES[symbol]
            raise StaticDivisionByZero(op=name, op_sign=symbol, left=a, right=b)
        return divide(a, b)

    return fold


def _power(c: type[Numeric]):
    if c.is_float:
        return _float_power

    def fold(a, b):
        if b >= 0:
            return a**b if c is Index else pow(a, b, 1 << c.width)
        if not a:
            raise StaticDivisionByZero(op="0 to a negative power: division", op_sign="**", left=a, right=b)
        return int(a**b)

    return fold


def _float_power(a: float, b: float) -> float:
    if not a and b < 0:
        raise StaticDivisionByZero(op="0 to a negative power: float division", op_sign="**", left=a, right=b)
    try:
        result = a**b
    except OverflowError:
        raise StaticOverflow(op="**", left=a, right=b, dtype="Float64") from None
    return float("nan") if isinstance(result, complex) else result


def _shift(symbol: str, c: type[Numeric]):
    def fold(a, b):
        if b < 0:
            raise NegativeShift(count=b, positive=-b)
        if symbol == ">>":
            return a >> b
        return 0 if b >= max(c.width, 2) and c is not Index else a << min(b, 4096)

    return fold

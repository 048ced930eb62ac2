"""Which class an operation on two classes is done in. Data and rules only: emits nothing."""

from functools import cache

from flydsl.diag import NoCommonFloat
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Boolean, Float32, Float64, Int32, Int64

ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%"))
BITWISE = frozenset(("&", "|", "^", "<<", ">>"))
COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def class_of_python(value: int | float | bool) -> type[Numeric]:
    """Return the class in which a Python number joins an operation."""
    if isinstance(value, bool):
        return Boolean
    if isinstance(value, int):
        return Int32 if -(2**31) <= value < 2**31 else Int64
    return Float32


@cache
def common_class(a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    """Return the common class of two classes; NoCommonFloat when two different narrow floats meet."""
    if a is b:
        return a
    if a.is_float and b.is_float:
        return _common_float(a, b)
    if a.is_float or b.is_float:
        return _float_with_integer(a, b) if a.is_float else _float_with_integer(b, a)
    return _common_integer(a, b)


def _common_integer(a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    if a.signed == b.signed:
        return a if a.width >= b.width else b
    signed, unsigned = (a, b) if a.signed else (b, a)
    return unsigned if unsigned.width >= signed.width else signed


def _float_with_integer(f: type[Numeric], i: type[Numeric]) -> type[Numeric]:
    if f.width >= i.width:
        return f
    return Float32 if i.width <= 32 else Float64


def _common_float(a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    if a.width == b.width or max(a.width, b.width) < 16:
        if a.width == 16:
            return Float32
        raise NoCommonFloat(left=a.__name__, right=b.__name__)
    return a if a.width > b.width else b


def operation_class(symbol: str, a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    """Return the class in which `a <symbol> b` is computed."""
    if symbol in ARITHMETIC:
        a = Int32 if a is Boolean else a
        b = Int32 if b is Boolean else b
    return common_class(a, b)


def quotient_class(c: type[Numeric]) -> type[Numeric]:
    """Return the class of `/` computed on the common class `c`."""
    if c.is_float:
        return c
    return Float32 if c.width <= 32 else Float64

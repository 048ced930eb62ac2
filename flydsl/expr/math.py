"""Math functions on scalars, Vectors and raw values, element by element.

`f(x, *, fastmath=None)`; the result has the class and form of the first operand. What each becomes on a chip is
the business of the passes: hardware instructions where they are accurate enough, expansions elsewhere.
"""

from collections.abc import Callable
from typing import Any

from flydsl.diag import OperandKind
from flydsl.expr.lift import Operands, as_dsl, emit_named, emit_scalars, float_flags, gather, in_form
from flydsl.expr.numeric import Boolean, Numeric
from flydsl.expr.numeric.build import result_types
from flydsl.ir import current
from flydsl.ir.trace import create_op


def _require(function: str, o: Operands, kind: str) -> None:
    if getattr(o.dtype, f"is_{kind}"):
        return
    article = "a float" if kind == "float" else "an integer"
    convert = "x.to(fx.Float32)" if kind == "float" else "x.to(fx.Int32)"
    raise OperandKind(
        problem=f"{function} needs {article} operand, got {o.dtype.__name__}",
        reason=f"{function} is defined on {kind}s only",
        advice=f"convert it first: {convert}",
    )


def _float_op(name: str, op: str, items: tuple, fastmath: Any) -> Any:
    """Build an op on floats, whose result is like its operands; called by a function which the user calls."""
    attrs = float_flags(fastmath)
    y = emit_scalars(op, items, True, attrs, depth=3)
    if y is None:
        o = gather(items)
        _require(name, o, "float")
        y = emit_named(op, o, o.dtype, attrs, depth=3)
    return y


def _float_function(name: str, summary: str, result: type[Numeric] | None = None) -> Callable[..., Any]:
    op = "math." + name

    def function(x: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
        if result is None:
            return _float_op(name, op, (x,), fastmath)
        o = gather((x,))
        _require(name, o, "float")
        return emit_named(op, o, result, float_flags(fastmath))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def _integer_function(name: str, summary: str) -> Callable[..., Any]:
    op = "math." + name

    def function(x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        if (y := emit_scalars(op, (x,), False, None)) is not None:
            return y
        o = gather((x,))
        _require(name, o, "integer")
        return emit_named(op, o, o.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def _binary_float(name: str, summary: str) -> Callable[..., Any]:
    op = "math." + name

    def function(a: Any, b: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
        return _float_op(name, op, (a, b), fastmath)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


absf = _float_function("absf", "Return |x|.")
ceil = _float_function("ceil", "Return x rounded up to an integral value.")
floor = _float_function("floor", "Return x rounded down to an integral value.")
trunc = _float_function("trunc", "Return x rounded toward zero to an integral value.")
round = _float_function("round", "Return x rounded to the nearest integral value, halves away from zero.")
roundeven = _float_function("roundeven", "Return x rounded to the nearest integral value, halves to even.")
exp = _float_function("exp", "Return e to the power of x.")
exp2 = _float_function("exp2", "Return 2 to the power of x.")
expm1 = _float_function("expm1", "Return exp(x) - 1, accurate near zero.")
log = _float_function("log", "Return the natural logarithm.")
log2 = _float_function("log2", "Return the logarithm to base 2.")
log10 = _float_function("log10", "Return the logarithm to base 10.")
log1p = _float_function("log1p", "Return log(1 + x), accurate near zero.")
sqrt = _float_function("sqrt", "Return the square root, correctly rounded.")
rsqrt = _float_function("rsqrt", "Return 1 / sqrt(x).")
cbrt = _float_function("cbrt", "Return the cube root.")
sin = _float_function("sin", "Return the sine of x in radians.")
cos = _float_function("cos", "Return the cosine of x in radians.")
tan = _float_function("tan", "Return the tangent of x in radians.")
asin = _float_function("asin", "Return the arc sine in radians.")
acos = _float_function("acos", "Return the arc cosine in radians.")
atan = _float_function("atan", "Return the arc tangent in radians.")
sinh = _float_function("sinh", "Return the hyperbolic sine.")
cosh = _float_function("cosh", "Return the hyperbolic cosine.")
tanh = _float_function("tanh", "Return the hyperbolic tangent.")
asinh = _float_function("asinh", "Return the inverse hyperbolic sine.")
acosh = _float_function("acosh", "Return the inverse hyperbolic cosine.")
atanh = _float_function("atanh", "Return the inverse hyperbolic tangent.")
erf = _float_function("erf", "Return the error function.")
erfc = _float_function("erfc", "Return 1 - erf(x), accurate for large x.")

isnan = _float_function("isnan", "Return whether x is NaN.", Boolean)
isinf = _float_function("isinf", "Return whether x is an infinity.", Boolean)
isfinite = _float_function("isfinite", "Return whether x is neither an infinity nor NaN.", Boolean)
isnormal = _float_function("isnormal", "Return whether x is finite, nonzero and not subnormal.", Boolean)

absi = _integer_function("absi", "Return |x| of a signed integer.")
ctlz = _integer_function("ctlz", "Return the number of leading zero bits.")
cttz = _integer_function("cttz", "Return the number of trailing zero bits.")
ctpop = _integer_function("ctpop", "Return the number of one bits.")

powf = _binary_float("powf", "Return `a` to the power of `b`.")
atan2 = _binary_float("atan2", "Return the angle of the point (x=b, y=a) in radians.")
copysign = _binary_float("copysign", "Return the magnitude of `a` with the sign of `b`.")


def sincos(x: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """Return (sin(x), cos(x))."""
    o = gather((x,))
    _require("sincos", o, "float")
    trace = current()
    types = result_types(trace, o.dtype.element.mlir, o.n) * 2
    op = create_op("math.sincos", types, o.values, float_flags(fastmath), None, 0, trace.loc(1), trace.ip)
    return in_form(o, o.dtype, op.results[0]), in_form(o, o.dtype, op.results[1])


def fpowi(base: Any, exponent: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return a float to the power of an integer."""
    o, e = gather((base,)), as_dsl(exponent)
    _require("fpowi", o, "float")
    power = gather((exponent,), e.dtype)
    _require("fpowi's exponent", power, "integer")
    if o.n != power.n:
        o = gather((base, exponent), o.dtype)
        power = gather((exponent, base), e.dtype)
    both = Operands((o.values[0], power.values[0]), o.dtype, o.shape, o.n, o.form)
    return emit_named("math.fpowi", both, o.dtype, float_flags(fastmath))


def ipowi(base: Any, exponent: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Return an integer to the power of an integer; a negative power of anything but 1 and -1 is 0."""
    o = gather((base, exponent))
    _require("ipowi", o, "integer")
    return emit_named("math.ipowi", o, o.dtype)


def fma(a: Any, b: Any, c: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return a * b + c, rounded once."""
    return _float_op("fma", "math.fma", (a, b, c), fastmath)


def clampf(x: Any, lo: Any, hi: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return x limited to [lo, hi]."""
    return _float_op("clampf", "math.clampf", (x, lo, hi), fastmath)

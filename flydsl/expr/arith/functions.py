"""Functions on scalars, Vectors and raw values: max, min and their relatives, ceildiv, shrui, cmpi, cmpf."""

import builtins
import math
from collections.abc import Iterable
from functools import cache
from typing import Any

from flydsl.diag import NarrowFloatOperand, NoOperands, OperandKind, StaticDivisionByZero, StaticOverflow
from flydsl.expr.arith.predicates import CmpFPredicate, CmpIPredicate
from flydsl.expr.fastmath import ambient, attrs_of_bits, flag_bits
from flydsl.expr.lift import Operands, as_dsl, emit_named, emit_scalars, float_flags, gather
from flydsl.expr.numeric import Boolean, Index, Int32, Numeric, common_class, static
from flydsl.expr.numeric.build import cmp_attrs
from flydsl.expr.numeric.fold import fit
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.ir import current


def max(*operands: Any, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the largest operand; lists are flattened, classes promoted. Floats: NaN wins, -0 is below +0."""
    return _extreme("max", operands, fastmath)


def min(*operands: Any, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the smallest operand; lists are flattened, classes promoted. Floats: NaN wins, -0 is below +0."""
    return _extreme("min", operands, fastmath)


def _extreme(function: str, operands: Iterable[Any], fastmath: Any) -> Any:
    xs = [x if isinstance(x, Numeric) else as_dsl(x) for x in _flattened(operands)]
    if not xs:
        raise NoOperands(function=function)
    dtype, op = _extreme_plan(function, tuple([x.dtype for x in xs]))
    if all(isinstance(x, Numeric) and x._scope is None for x in xs):
        return static(dtype, _fold_extreme(function, dtype, [fit(dtype, x._payload) for x in xs]))
    attrs = float_flags(fastmath) if dtype.is_float else None
    result = xs[0]
    if len(xs) == 1:
        return result.to(dtype)
    for x in xs[1:]:
        pair = (result, x)
        y = emit_scalars(op, pair, dtype.is_float, attrs, depth=3) if x.__class__ is dtype else None
        result = emit_named(op, gather(pair, dtype), dtype, attrs, depth=3) if y is None else y
    return result


@cache
def _extreme_plan(function: str, dtypes: tuple[type[Numeric], ...]) -> tuple[type[Numeric], str]:
    """Return the class in which operands of these classes are compared, and the op."""
    dtype = Int32 if dtypes[0] is Boolean else dtypes[0]
    for d in dtypes:
        _refuse_extreme(function, d)
        dtype = common_class(dtype, Int32 if d is Boolean else d)
    suffix = "imumf" if dtype.is_float else "si" if dtype.signed else "ui"
    return dtype, f"arith.{function}{suffix}"


def _flattened(operands: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    for x in operands:
        out.extend(_flattened(x)) if isinstance(x, (list, tuple)) else out.append(x)
    return out


def _refuse_extreme(function: str, dtype: type[Numeric]) -> None:
    if dtype is Index:
        raise OperandKind(
            problem=f"{function} does not support Index; cast to an explicit-width integer type",
            reason="an Index is unsigned at run time and signed as a constant, so its order is not one thing",
            advice="write fx.Int32(x) or fx.Int64(x)",
        )
    if dtype.is_float and dtype.width <= 8:
        raise NarrowFloatOperand(function=function, dtype=dtype.__name__)


def _fold_extreme(function: str, dtype: type[Numeric], values: list) -> Any:
    pick = builtins.max if function == "max" else builtins.min
    if not dtype.is_float:
        return pick(values)
    nans = [v for v in values if v != v]
    return nans[0] if nans else pick(values, key=lambda v: (v, math.copysign(1.0, v)))


def _float_extreme(name: str, a: Any, b: Any, fastmath: Any) -> Any:
    o = gather((a, b))
    if not o.dtype.is_float:
        raise OperandKind(
            problem=f"{name} needs float operands, got {o.dtype.__name__}",
            reason=f"{name} is the float form",
            advice="use fx.max or fx.min, which take all classes",
        )
    return emit_named("arith." + name, o, o.dtype, float_flags(fastmath), depth=3)


def maximumf(a: Any, b: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the larger float; NaN if one is NaN."""
    return _float_extreme("maximumf", a, b, fastmath)


def minimumf(a: Any, b: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the smaller float; NaN if one is NaN."""
    return _float_extreme("minimumf", a, b, fastmath)


def maxnumf(a: Any, b: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the larger float; if one is NaN, the other."""
    return _float_extreme("maxnumf", a, b, fastmath)


def minnumf(a: Any, b: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the smaller float; if one is NaN, the other."""
    return _float_extreme("minnumf", a, b, fastmath)


def ceildiv(lhs: Any, rhs: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the quotient rounded up, of signed or unsigned integers."""
    a, b = as_dsl(lhs), as_dsl(rhs)
    for x in (a, b):
        _refuse_ceildiv(x.dtype)
    dtype = common_class(a.dtype, b.dtype)
    if isinstance(a, Numeric) and isinstance(b, Numeric) and a.is_static() and b.is_static():
        return static(dtype, _fold_ceildiv(dtype, fit(dtype, a._payload), fit(dtype, b._payload)))
    return emit_named("arith.ceildivsi" if dtype.signed else "arith.ceildivui", gather((lhs, rhs), dtype), dtype)


def _refuse_ceildiv(dtype: type[Numeric]) -> None:
    if dtype.is_float:
        problem, advice = f"ceildiv requires integer operands, got {dtype.__name__}", "use fx.ceil(a / b) for floats"
    elif dtype in (Boolean, Index):
        problem, advice = f"ceildiv does not support {dtype.__name__} operands", "convert with fx.Int32(x) first"
    else:
        return
    raise OperandKind(problem=problem, reason="ceildiv counts whole pieces", advice=advice)


def _fold_ceildiv(dtype: type[Numeric], a: int, b: int) -> int:
    if not b:
        raise StaticDivisionByZero(op="fx.ceildiv division", op_sign="/", left=a, right=b)
    quotient = -(-a // b)
    if fit(dtype, quotient) != quotient:
        raise StaticOverflow(op="fx.ceildiv", left=a, right=b, dtype=dtype.__name__)
    return quotient


def shrui(value: Any, amount: Any, *, is_exact: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return an integer shifted right, zeros coming in; the class of `value` stays."""
    x = as_dsl(value)
    if not x.dtype.is_integer:
        raise OperandKind(
            problem=f"shrui needs an integer operand, got {x.dtype.__name__}",
            reason="shifts move bits",
            advice="reinterpret the bits with .bitcast(fx.Uint32)",
        )
    n = as_dsl(amount)
    if all(isinstance(v, Numeric) and v.is_static() for v in (x, n)) and x.dtype is not Index:
        return static(x.dtype, fit(x.dtype, (x._payload & ((1 << x.dtype.width) - 1)) >> n._payload))
    return emit_named("arith.shrui", gather((value, amount), x.dtype), x.dtype)


def cmpi(predicate: Any, lhs: Any, rhs: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return the integer comparison as a raw i1; the predicate decides about signs."""
    o = _raw_form(gather((lhs, rhs)))
    return emit_named("arith.cmpi", o, Boolean, cmp_attrs(current(), predicate_code(CmpIPredicate, predicate)))


def cmpf(predicate: Any, lhs: Any, rhs: Any, *, fastmath: Any = None, results: Any = None, loc: Any = None, ip: Any = None) -> ArithValue:
    """Return the float comparison as a raw i1."""
    trace = current()
    attrs = cmp_attrs(trace, predicate_code(CmpFPredicate, predicate))
    bits = ambient.flags if fastmath is None else flag_bits(fastmath)
    if bits:
        attrs = {**attrs, **attrs_of_bits(trace, bits)}
    return emit_named("arith.cmpf", _raw_form(gather((lhs, rhs))), Boolean, attrs)


def _raw_form(o: Operands) -> Operands:
    return Operands(o.values, o.dtype, o.shape, o.n, o.values[0])


def predicate_code(enum_class: type, predicate: Any) -> int:
    """Return the number of a predicate given as member, number or name.

    Raises   OperandKind: no such predicate
    """
    if isinstance(predicate, str):
        for member in enum_class:
            if member.name.lower() == predicate.lower():
                return int(member)
    elif isinstance(predicate, int) or hasattr(predicate, "__index__") or hasattr(predicate, "value"):
        code = getattr(predicate, "value", predicate)
        if isinstance(code, int) and code in [int(m) for m in enum_class]:
            return int(code)
    names = ", ".join(m.name for m in enum_class)
    raise OperandKind(
        problem=f"{predicate!r} is no predicate of {enum_class.__name__}",
        reason=f"the predicates are {names}",
        advice=names,
    )

"""`-x`, `~x`, `abs(x)` of scalars."""

import sys

from flydsl.diag import UnaryUndefined
from flydsl.expr.numeric.base import Numeric, raw, static, wrap
from flydsl.expr.numeric.build import constant_of, float_op1, op1
from flydsl.expr.numeric.classes import Boolean
from flydsl.expr.numeric.fold import fit
from flydsl.ir import current


def negate(x: Numeric) -> Numeric:
    """Return -x; integers wrap."""
    c = x.__class__
    refuse_negation(c)
    if x._scope is None:
        return static(c, fit(c, -x.value))
    trace = current()
    loc = trace.locations.at(sys._getframe(2), trace.scope.root)
    return wrap(c, emit_negate(trace, 0, raw(x), c, loc))


def refuse_negation(c: type[Numeric]) -> None:
    """Raise for the class that has no negative."""
    if c is Boolean:
        reason = "a Boolean is a truth value"
        raise UnaryUndefined(op="unary minus", dtype="booleans", reason=reason, advice="write ~x, or fx.Int32(x) first")


def emit_negate(trace, n: int, v, c: type[Numeric], loc):
    """Build -v for a scalar (n = 0) or `n` elements."""
    mlir = c.element.mlir
    if c.is_float:
        return float_op1(trace, "arith.negf", mlir, n, (v,), loc)
    return op1(trace, "arith.subi", mlir, n, (constant_of(trace, mlir, n, 0), v), loc)


def invert(x: Numeric) -> Numeric:
    """Return ~x: all bits flipped; of a Boolean, its negation."""
    c = x.__class__
    refuse_inversion(c)
    if x._scope is None:
        return static(c, 1 - x.value if c is Boolean else fit(c, ~x.value))
    trace = current()
    loc = trace.locations.at(sys._getframe(2), trace.scope.root)
    return wrap(c, emit_invert(trace, 0, raw(x), c, loc))


def refuse_inversion(c: type[Numeric]) -> None:
    """Raise for the classes that have no bits to flip."""
    if c.is_float:
        reason = "bit operations work on integers and Booleans"
        advice = "reinterpret the bits with .bitcast(fx.Uint32)"
        raise UnaryUndefined(op="~", dtype=c.__name__, reason=reason, advice=advice)


def emit_invert(trace, n: int, v, c: type[Numeric], loc):
    """Build ~v for a scalar (n = 0) or `n` elements."""
    mlir = c.element.mlir
    ones = 1 if c is Boolean else -1
    return op1(trace, "arith.xori", mlir, n, (v, constant_of(trace, mlir, n, ones)), loc)


def absolute(x: Numeric) -> Numeric:
    """Return |x|; the smallest signed integer stays as it is."""
    c = x.__class__
    refuse_absolute(c)
    if x._scope is None:
        return static(c, fit(c, abs(x.value)))
    if c.signed is False:
        return x
    trace = current()
    loc = trace.locations.at(sys._getframe(2), trace.scope.root)
    return wrap(c, emit_absolute(trace, 0, raw(x), c, loc))


def refuse_absolute(c: type[Numeric]) -> None:
    """Raise for the class that has no magnitude."""
    if c is Boolean:
        reason = "a Boolean is a truth value"
        raise UnaryUndefined(op="abs", dtype="boolean type", reason=reason, advice="convert with fx.Int32(x) first")


def emit_absolute(trace, n: int, v, c: type[Numeric], loc):
    """Build |v| of a float or signed integer."""
    mlir = c.element.mlir
    if c.is_float:
        return float_op1(trace, "math.absf", mlir, n, (v,), loc)
    return op1(trace, "math.absi", mlir, n, (v,), loc)

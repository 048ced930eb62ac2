"""`-x`, `~x`, `abs(x)` of scalars."""

import sys

from flydsl.diag import UnaryUndefined
from flydsl.expr.numeric.base import Numeric, raw, static, wrap
from flydsl.expr.numeric.build import ambient_attrs, constant_of, inferred
from flydsl.expr.numeric.classes import Boolean
from flydsl.expr.numeric.fold import fit
from flydsl.ir import current
from flydsl.ir.trace import active


def negate(x: Numeric) -> Numeric:
    """Return -x; integers wrap."""
    c = x.__class__
    refuse_negation(c)
    if x._scope is None:
        return static(c, fit(c, -x._payload))
    trace = active.trace or current()
    scope = trace.scope
    loc = scope.locate(sys._getframe(2))
    return wrap(c, emit_negate(trace, 0, raw(x), c, loc), scope)


def refuse_negation(c: type[Numeric]) -> None:
    """Raise for the class that has no negative."""
    if c is Boolean:
        reason = "a Boolean is a truth value"
        raise UnaryUndefined(op="unary minus", dtype="booleans", reason=reason, advice="write ~x, or fx.Int32(x) first")


def emit_negate(trace, n: int, v, c: type[Numeric], loc):
    """Build -v for a scalar (n = 0) or `n` elements."""
    if c.is_float:
        return inferred(trace, "arith.negf", (v,), loc, ambient_attrs(trace))
    return inferred(trace, "arith.subi", (constant_of(trace, c.element.mlir, n, 0), v), loc)


def invert(x: Numeric) -> Numeric:
    """Return ~x: all bits flipped; of a Boolean, its negation."""
    c = x.__class__
    refuse_inversion(c)
    if x._scope is None:
        return static(c, 1 - x._payload if c is Boolean else fit(c, ~x._payload))
    trace = active.trace or current()
    scope = trace.scope
    loc = scope.locate(sys._getframe(2))
    return wrap(c, emit_invert(trace, 0, raw(x), c, loc), scope)


def refuse_inversion(c: type[Numeric]) -> None:
    """Raise for the classes that have no bits to flip."""
    if c.is_float:
        reason = "bit operations work on integers and Booleans"
        advice = "reinterpret the bits with .bitcast(fx.Uint32)"
        raise UnaryUndefined(op="~", dtype=c.__name__, reason=reason, advice=advice)


def emit_invert(trace, n: int, v, c: type[Numeric], loc):
    """Build ~v for a scalar (n = 0) or `n` elements."""
    ones = 1 if c is Boolean else -1
    return inferred(trace, "arith.xori", (v, constant_of(trace, c.element.mlir, n, ones)), loc)


def absolute(x: Numeric) -> Numeric:
    """Return |x|; the smallest signed integer stays as it is."""
    c = x.__class__
    refuse_absolute(c)
    if x._scope is None:
        return static(c, fit(c, abs(x._payload)))
    if c.signed is False:
        return x
    trace = active.trace or current()
    scope = trace.scope
    loc = scope.locate(sys._getframe(2))
    return wrap(c, emit_absolute(trace, 0, raw(x), c, loc), scope)


def refuse_absolute(c: type[Numeric]) -> None:
    """Raise for the class that has no magnitude."""
    if c is Boolean:
        reason = "a Boolean is a truth value"
        raise UnaryUndefined(op="abs", dtype="boolean type", reason=reason, advice="convert with fx.Int32(x) first")


def emit_absolute(trace, n: int, v, c: type[Numeric], loc):
    """Build |v| of a float or signed integer."""
    if c.is_float:
        return inferred(trace, "math.absf", (v,), loc, ambient_attrs(trace))
    return inferred(trace, "math.absi", (v,), loc)

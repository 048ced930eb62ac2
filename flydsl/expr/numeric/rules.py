"""The entries of the operator tables: what `a <symbol> b` does for two operand classes.

A plan says in which class the operation is done and of which class the result is; from it a rule is made, which
folds when both operands are static and otherwise emits. Vectors use the same plans.
"""

import sys
from functools import cache
from typing import Any

from flydsl.diag import UnsupportedOperand
from flydsl.expr.numeric.base import (
    OUTSIDE,
    Numeric,
    NumericMeta,
    check_owner,
    check_raw,
    class_of_type,
    raw,
    static_constant,
    wrap,
)
from flydsl.expr.numeric.build import BinaryOp, Emitter, emitter_of
from flydsl.expr.numeric.cast import Steps, cast_steps, emit_steps, from_python_value
from flydsl.expr.numeric.classes import Boolean, Float32, Index, Int32, Int64
from flydsl.expr.numeric.dispatch import MIRROR, Rule
from flydsl.expr.numeric.fold import fit, folder_of
from flydsl.expr.numeric.promote import ARITHMETIC, BITWISE, COMPARISONS, operation_class, quotient_class
from flydsl.ir import current, ir
from flydsl.ir.trace import active, create_op
from flydsl.utils.record import record

_new = object.__new__
_getframe = sys._getframe


@record
class Plan:
    """How one operator works on two classes.

    `left_steps`, `right_steps`: the classes through which the operands go; a constant is folded up to `common`.
    `common` holds the constants, `computed` the operation (they differ for `/` on integers), `result` what comes out.
    """

    symbol: str
    left_steps: tuple[type[Numeric], ...]
    right_steps: tuple[type[Numeric], ...]
    common: type[Numeric]
    computed: type[Numeric]
    result: type[Numeric]
    emit: Emitter
    emit_mirrored: Emitter | None


@cache
def plan(symbol: str, left: type[Numeric], right: type[Numeric]) -> Plan:
    """Return the plan; UnsupportedOperand or NoCommonFloat where there is none."""
    if symbol in BITWISE and (left.is_float or right.is_float):
        raise refuse(symbol, left.__name__, right.__name__)
    common = operation_class(symbol, left, right)
    computed = quotient_class(common) if symbol == "/" else common
    return Plan(
        symbol,
        _steps(symbol, left, common),
        _steps(symbol, right, common),
        common,
        computed,
        Boolean if symbol in COMPARISONS else computed,
        emitter_of(symbol, computed),
        emitter_of(MIRROR[symbol], computed) if symbol in MIRROR else None,
    )


def _steps(symbol: str, c: type[Numeric], common: type[Numeric]) -> tuple[type[Numeric], ...]:
    first = Int32 if symbol in ARITHMETIC and c is Boolean else c
    return (first, common)


def refuse(symbol: str, left: str, right: str) -> UnsupportedOperand:
    """Return the error for operands that have no such operator."""
    if symbol in BITWISE:
        reason = "bit operations and shifts work on integers and Booleans"
        advice = "convert with .to(fx.Int32), or reinterpret the bits with .bitcast(fx.Uint32)"
    else:
        reason = "the right class does not take part in arithmetic"
        advice = "convert it to a number or a scalar of fx"
    return UnsupportedOperand(op=symbol, left=left, right=right, reason=reason, advice=advice)


def find_rule(symbol: str, left: Any, right: Any) -> Rule | None:
    """Return the rule for the classes of two operands, one at least a scalar; None if one is no number at all."""
    lc, rc = left.__class__, right.__class__
    if _is_scalar(lc) and _is_scalar(rc):
        return _refusing(symbol, lc, rc) or scalar_rule(symbol, lc, rc)
    other = rc if isinstance(lc, NumericMeta) else lc
    if issubclass(other, (bool, int, float, ir.Value)) or _looks_like_number(right if other is rc else left):
        return _converting(symbol)
    return None


_PYTHON = (bool, int, float)


def _is_scalar(c: type) -> bool:
    return isinstance(c, NumericMeta) or c in _PYTHON


def _looks_like_number(value: Any) -> bool:
    return getattr(value, "shape", None) == () and hasattr(value, "item")


def _converting(symbol: str) -> Rule:
    """A rule for rare classes (NumPy scalars, raw values, subclasses of int): convert, then dispatch again."""
    from flydsl.expr.numeric.dispatch import binary

    again = binary(symbol)
    quotient = binary("//")

    def rule(a, b):
        if isinstance(a, ir.Value) or isinstance(b, ir.Value):
            a, b = _by_type(a), _by_type(b)
            if symbol == "/" and Index in (a.__class__, b.__class__) and a.is_integer and b.is_integer:
                return quotient(a, b)  # as for two raw values: kernels divide thread numbers so
        elif isinstance(a, Numeric):
            b = from_python_value(b)
        else:
            a = from_python_value(a)
        return again(a, b)

    return rule


def _by_type(x: Any) -> Numeric:
    """Return an operand as a scalar; a raw one by its type alone: its sign flag counts where it is the left operand."""
    if not isinstance(x, ir.Value):
        return from_python_value(x)
    check_raw(x)
    return wrap(class_of_type(x.type), x)


def _refusing(symbol: str, lc: type, rc: type) -> Rule | None:
    """A rule that raises, for bit operations with a float on either side."""
    if symbol not in BITWISE:
        return None
    if not any(c is float or getattr(c, "is_float", False) for c in (lc, rc)):
        return None

    def rule(a, b):
        raise refuse(symbol, lc.__name__, rc.__name__)

    return rule


def scalar_rule(symbol: str, lc: type, rc: type) -> Rule:
    """Return the rule for two scalar classes, one of which may be a Python number class.

    A Python int is Int32 if it fits, else Int64.
    """
    if int not in (lc, rc):
        return _rule(symbol, lc, rc, _class_of(lc), _class_of(rc))
    wide = _rule(symbol, lc, rc, Int64 if lc is int else lc, Int64 if rc is int else rc)
    return _rule(symbol, lc, rc, Int32 if lc is int else lc, Int32 if rc is int else rc, wide)


def _class_of(c: type) -> type[Numeric]:
    return Boolean if c is bool else Float32 if c is float else c


def _rule(symbol: str, lc: type, rc: type, left: type[Numeric], right: type[Numeric], wide: Rule | None = None) -> Rule:
    p = plan(symbol, left, right)
    left_py, right_py = lc in _PYTHON, rc in _PYTHON
    if _is_direct(p, left, right, left_py, right_py):
        return _direct_rule(p, left, right, left_py, right_py, wide)
    rule = _general_rule(p, left, right, left_py, right_py)
    return rule if wide is None else _by_magnitude(rule, wide, left_py)


def _by_magnitude(narrow: Rule, wide: Rule, left_py: bool) -> Rule:
    def rule(a, b):
        number = a if left_py else b
        return (narrow if -2147483648 <= number <= 2147483647 else wide)(a, b)

    return rule


def _is_direct(p: Plan, left, right, left_py: bool, right_py: bool) -> bool:
    """Whether no run-time operand needs an op before the operation itself."""
    if p.computed is not p.common or (Index in (left, right) and left is not right):
        return False
    return (left_py or not _emits(p.left_steps, left)) and (right_py or not _emits(p.right_steps, right))


@cache
def single_op(symbol: str, left: type[Numeric], right: type[Numeric]) -> tuple[BinaryOp, type[Numeric]] | None:
    """Return the op, and the class of its result, where two run-time values take just one op; else None."""
    p = plan(symbol, left, right)
    return (p.emit, p.result) if _is_direct(p, left, right, False, False) and isinstance(p.emit, BinaryOp) else None


def _emits(steps: tuple[type[Numeric], ...], source: type[Numeric]) -> bool:
    for target in steps:
        if cast_steps(source, target):
            return True
        source = target
    return False


def _direct_rule(p: Plan, left, right, left_py: bool, right_py: bool, wide: Rule | None) -> Rule:
    """The rule where no operand needs an op to reach the common class: short for the usual operands, else complete."""
    complete = _complete_rule(p, left, right, left_py, right_py, wide)
    if left_py or not isinstance(p.emit, BinaryOp):
        return complete
    if right_py:
        return _number_rule(p, p.emit, right, wide, complete)
    return _run_time_rule(p, p.emit, complete)


def _run_time_rule(p: Plan, op: BinaryOp, complete: Rule) -> Rule:
    """Two run-time values of the function being traced; everything else is left to `complete`."""
    result, name, attrs_of = p.result, op.name, None if op.is_bare else op.attrs

    def rule(a, b):
        scope, trace = a._scope, active.trace
        if scope is None or scope is not b._scope or trace is None or scope is not trace.scope:
            return complete(a, b)
        frame = _getframe(2)
        loc = scope.lines.get(frame.f_lasti) if frame.f_code is scope.root else None
        if loc is None:
            loc = scope.locate(frame)
        attrs = None if attrs_of is None else attrs_of(trace)
        r = _new(result)
        r._payload = create_op(name, None, (a._payload, b._payload), attrs, None, 0, loc, trace.ip, True).result
        r._scope = scope
        return r

    return rule


def _number_rule(p: Plan, op: BinaryOp, right, wide: Rule | None, complete: Rule) -> Rule:
    """A run-time value of the function being traced and a Python number; everything else is left to `complete`."""
    result, name, attrs_of, common = p.result, op.name, None if op.is_bare else op.attrs, p.common
    mlir, must_fit = common.element.mlir, right is not common

    def rule(a, b):
        scope, trace = a._scope, active.trace
        if scope is None or trace is None or scope is not trace.scope:
            return complete(a, b)
        if wide is not None and not -2147483648 <= b <= 2147483647:
            return wide(a, b)
        frame = _getframe(2)
        loc = scope.lines.get(frame.f_lasti) if frame.f_code is scope.root else None
        if loc is None:
            loc = scope.locate(frame)
        attrs = None if attrs_of is None else attrs_of(trace)
        y = static_constant(trace, mlir, fit(common, b) if must_fit else b)
        r = _new(result)
        r._payload = create_op(name, None, (a._payload, y), attrs, None, 0, loc, trace.ip, True).result
        r._scope = scope
        return r

    return rule


def _complete_rule(p: Plan, left, right, left_py: bool, right_py: bool, wide: Rule | None) -> Rule:
    """The rule for all kinds of operands: numbers, static scalars, run-time values of this function or of none."""
    common, result, emit = p.common, p.result, p.emit
    mirrored = p.emit_mirrored
    mlir = common.element.mlir
    fit_left, fit_right = left is not common, right is not common
    fold = _folding(p, fit_left, fit_right)

    def rule(a, b):
        if wide is not None and not -2147483648 <= (a if left_py else b) <= 2147483647:
            return wide(a, b)
        left_scope = None if left_py else a._scope
        right_scope = None if right_py else b._scope
        if left_scope is None and right_scope is None:
            return fold(a if left_py else a._payload, b if right_py else b._payload)
        trace = active.trace or current()
        scope = trace.scope or OUTSIDE
        loc = trace.locate(_getframe(2))
        if right_scope is scope:
            y = b._payload
        elif right_scope is None:
            y = b if right_py else b._payload
            y = static_constant(trace, mlir, fit(common, y) if fit_right else y)
        else:
            check_owner(b, trace)
            return rule(a, b)
        if left_scope is scope:
            value = emit(trace, a._payload, y, loc)
        elif left_scope is None:
            x = a if left_py else a._payload
            x = static_constant(trace, mlir, fit(common, x) if fit_left else x)
            value = mirrored(trace, y, x, loc) if mirrored else emit(trace, x, y, loc)
        else:
            check_owner(a, trace)
            return rule(a, b)
        r = _new(result)
        r._payload = value
        r._scope = scope
        return r

    return rule


def _folding(p: Plan, fit_left: bool = True, fit_right: bool = True) -> Rule:
    """Return the function that folds two payloads; `fit_left`: the left one may not be of the common class."""
    fold, result, common = folder_of(p.symbol, p.common), p.result, p.common

    def folding(a, b):
        if fit_left:
            a = fit(common, a)
        if fit_right:
            b = fit(common, b)
        r = _new(result)
        r._payload = fit(result, fold(a, b))
        r._scope = None
        return r

    return folding


@record
class _Operand:
    """How one operand of a plan becomes the value that is computed on.

    `run_time`: ops for a run-time value, in three stages (to the first step, to the common class, to the computed one).
    A constant is made in class `constant` and takes the stages of `static`.
    """

    is_python: bool
    constant: type[Numeric]
    run_time: tuple[Steps, Steps, Steps]
    static: tuple[Steps, Steps, Steps]


def _operand(p: Plan, steps: tuple[type[Numeric], ...], source: type[Numeric], is_python: bool) -> _Operand:
    first, common = steps
    to_common, to_computed = cast_steps(first, common), cast_steps(common, p.computed)
    if common is Index and first is not Index:  # the reference casts such constants at run time
        constant, static_stages = first, ((), to_common, to_computed)
    else:
        constant, static_stages = common, ((), (), to_computed)
    return _Operand(is_python, constant, (cast_steps(source, first), to_common, to_computed), static_stages)


def _general_rule(p: Plan, left, right, left_py: bool, right_py: bool) -> Rule:
    """The rule with conversions: both operands go stage by stage to the class of the operation."""
    fold, emit, mirrored, result = _folding(p), p.emit, p.emit_mirrored, p.result
    folds = left is right or p.common is not Index
    lo, ro = _operand(p, p.left_steps, left, left_py), _operand(p, p.right_steps, right, right_py)

    def rule(a, b):
        left_static = left_py or a._scope is None
        right_static = right_py or b._scope is None
        if folds and left_static and right_static:
            return fold(a if left_py else a._payload, b if right_py else b._payload)
        trace = active.trace or current()
        scope = trace.scope
        loc = scope.locate(_getframe(2))
        x, left_stages = _enter(trace, a, lo)
        y, right_stages = _enter(trace, b, ro)
        for for_x, for_y in zip(left_stages, right_stages, strict=True):
            if for_x:
                x = emit_steps(trace, 0, x, for_x, loc)
            if for_y:
                y = emit_steps(trace, 0, y, for_y, loc)
        value = mirrored(trace, y, x, loc) if left_static and mirrored else emit(trace, x, y, loc)
        return wrap(result, value, scope)

    return rule


def _enter(trace, x: Any, o: _Operand):
    """Return the value with which an operand starts, and the stages it has to take."""
    if o.is_python:
        return static_constant(trace, o.constant.element.mlir, fit(o.constant, x)), o.static
    if x._scope is None:
        return static_constant(trace, o.constant.element.mlir, fit(o.constant, x._payload)), o.static
    return raw(x), o.run_time

"""Conditions: which values Python decides while tracing, and the i1 value of the others."""

from typing import Any

from flydsl.diag import ConditionNotBoolean
from flydsl.expr.numeric.base import Numeric, raw, wrap
from flydsl.expr.numeric.classes import Boolean
from flydsl.expr.values import FlyValue
from flydsl.ir import current, emit1, ir

_PYTHON, _SCALAR, _RAW, _VECTOR = range(4)
_kinds: dict[type, int] = {
    bool: _PYTHON,
    int: _PYTHON,
    type(None): _PYTHON,
    str: _PYTHON,
    list: _PYTHON,
    tuple: _PYTHON,
}


def _kind(cls: type) -> int:
    kind = _kinds.get(cls)
    if kind is None:
        if issubclass(cls, Numeric):
            kind = _SCALAR
        elif issubclass(cls, ir.Value):
            kind = _RAW
        elif issubclass(cls, FlyValue):
            kind = _PYTHON  # layouts, tensors and atoms are there or not: `atom or other`
        else:
            kind = _VECTOR if getattr(cls, "ir_value", None) is not None else _PYTHON
        _kinds[cls] = kind
    return kind


def is_dynamic(value: Any) -> bool:
    """Return whether the truth of a value is known only when the kernel runs."""
    kind = _kind(value.__class__)
    if kind == _SCALAR:
        return not value.is_static()
    return kind != _PYTHON


def condition(value: Any, construct: str) -> "bool | ir.Value":
    """Return the truth of a condition as a Python bool, or as an i1 value.

    Raises   ConditionNotBoolean: a run-time value that is not a Boolean
    """
    cls = value.__class__
    if cls is bool:
        return value
    kind = _kind(cls)
    if kind == _PYTHON:
        return bool(value)
    if kind == _SCALAR and value.is_static():
        return bool(value)
    if cls is Boolean:
        return raw(value)
    if kind == _RAW and value.type == current().types.i1:
        return value
    raise ConditionNotBoolean(construct=construct, dtype=_name(value, kind), **_advice(kind))


def truth(value: Any, construct: str) -> "bool | ir.Value":
    """Return the truth of an operand of `and`, `or`, `not`: numbers count as `!= 0`."""
    kind = _kind(value.__class__)
    if kind == _SCALAR and value.__class__ is not Boolean and not value.is_static():
        return raw(value != 0)
    return condition(value, construct)


def boolean(value: "ir.Value") -> Boolean:
    """Return an i1 value as a Boolean."""
    return wrap(Boolean, value)


def negate(value: Any) -> Any:
    """Return `not value`."""
    t = truth(value, "not")
    if t is True or t is False:
        return not t
    i1 = current().types.i1
    return boolean(emit1("arith.xori", i1, (t, as_i1(True))))


def as_i1(value: "bool | ir.Value") -> "ir.Value":
    """Return a Python bool as a constant, an i1 value as it is."""
    if value is True or value is False:
        return raw(Boolean(value))
    return value


def _name(value: Any, kind: int) -> str:
    return str(value.type) if kind == _RAW else value.__class__.__name__


def _advice(kind: int) -> dict[str, str]:
    if kind == _VECTOR:
        return {
            "reason": "each lane would decide differently, and a branch is taken once",
            "advice": "reduce the mask first, or choose per element with mask.select(a, b)",
        }
    return {"reason": "a number is not a condition of a run-time branch", "advice": "write `!= 0`"}

"""`cond.select(a, b)`: one of two values, both evaluated."""

import sys
from typing import Any

from flydsl.expr.numeric.base import Numeric, raw, wrap
from flydsl.expr.numeric.build import inferred
from flydsl.expr.numeric.cast import cast, from_python_value
from flydsl.expr.numeric.classes import Boolean
from flydsl.expr.numeric.promote import common_class
from flydsl.ir import current
from flydsl.ir.trace import active


def select(condition: Numeric, true_value: Any, false_value: Any) -> Any:
    """Return `true_value` where the condition is not zero; a static condition chooses now, in the common class."""
    frame = sys._getframe(2)
    if not _scalar(true_value) or not _scalar(false_value):
        if condition._scope is None:
            return true_value if condition._payload else false_value
        from flydsl.expr.vector.select import select_vector

        return select_vector(condition, true_value, false_value)
    t, f = from_python_value(true_value), from_python_value(false_value)
    c = common_class(t.__class__, f.__class__)
    if condition._scope is None:
        chosen = t if condition._payload else f
        return chosen if chosen.__class__ is c else cast(chosen, c, frame)
    condition = condition if condition.__class__ is Boolean else cast(condition, Boolean, frame)
    t = t if t.__class__ is c else cast(t, c, frame)
    f = f if f.__class__ is c else cast(f, c, frame)
    trace = active.trace or current()
    scope = trace.scope
    operands = (raw(condition), raw(t), raw(f))
    return wrap(c, inferred(trace, "arith.select", operands, scope.locate(frame)), scope)


def _scalar(value: Any) -> bool:
    return isinstance(value, (Numeric, int, float)) or not hasattr(value, "numel")

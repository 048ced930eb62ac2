"""Raw op building shared by the legacy function sets: operands may be raw, DSL values or numbers; results are
`ArithValue`.
"""

import sys
from collections.abc import Sequence
from typing import Any

from flydsl.diag import NotConvertible
from flydsl.expr.fastmath import float_attrs
from flydsl.expr.numeric import NumericMeta, cast, class_of_type, from_python_value, raw
from flydsl.expr.numeric.base import check_raw
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.ir import current, ir
from flydsl.ir.trace import active, create_op


def as_type(t: Any) -> ir.Type:
    """Return an IR type given as such, as scalar class or as vector alias."""
    if isinstance(t, ir.Type):
        return t
    found = getattr(t, "ir_type", None)
    if found is None:
        raise NotConvertible(value=repr(t), dtype="an IR type", advice="pass T.i32, fx.Int32.ir_type or a scalar class")
    return found


def raw_operand(value: Any, type_: ir.Type | None = None) -> ir.Value:
    """Return the raw value of an operand; a number becomes a constant of `type_` (default: by its Python type)."""
    if isinstance(value, ir.Value):
        check_raw(value)
        return value
    if isinstance(value, (bool, int, float)) or isinstance(type(value), NumericMeta):
        x = from_python_value(value)
        return raw(cast(x, class_of_type(type_)) if type_ is not None and x.is_static() else x)
    if hasattr(value, "__extract_to_ir_values__"):
        values = value.__extract_to_ir_values__()
        if len(values) == 1:
            return values[0]
    result = getattr(value, "result", None)
    if isinstance(result, ir.Value):
        return result
    return raw(from_python_value(value))


def build_raw(
    name: str, result: ir.Type | None, operands: Sequence[ir.Value], attrs: dict | None = None
) -> ArithValue:
    """Build an op with one result at the user's location. `result` None: MLIR infers the type from the operands."""
    trace = active.trace or current()
    loc = trace.locate(sys._getframe(2))
    types = None if result is None else (result,)
    op = create_op(name, types, operands, attrs, None, 0, loc, trace.ip, result is None)
    return ArithValue(op.result)


def flags_of(fastmath: Any) -> dict | None:
    """Return the fast-math attributes of a raw float op."""
    return float_attrs(current(), fastmath)

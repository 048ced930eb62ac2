"""Between raw and DSL forms of values: `as_ir_value`, `as_dsl_value`."""

from typing import Any

from flydsl.expr.numeric import Numeric, from_python_value
from flydsl.expr.numeric.raw_value import ArithValue, typed
from flydsl.ir import ir


def as_ir_value(value: Any, *, keep_static: bool = False) -> Any:
    """Return the raw value of a number or DSL value; None stays None, lists and tuples keep their form.

    With `keep_static`, numbers and static scalars come back as Python numbers.
    """
    if value is None or isinstance(value, ArithValue):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(as_ir_value(v, keep_static=keep_static) for v in value)
    if isinstance(value, (bool, int, float)):
        return value if keep_static else from_python_value(value).ir_value()
    if isinstance(value, Numeric):
        return value.value if keep_static and value.is_static() else value.ir_value()
    if isinstance(value, ir.Value):
        return ArithValue(value)
    if hasattr(value, "ir_value"):
        return value.ir_value()
    return _only_value(value)


def _only_value(value: Any) -> Any:
    values = value.__extract_to_ir_values__() if hasattr(value, "__extract_to_ir_values__") else []
    return ArithValue(values[0]) if len(values) == 1 else from_python_value(value).ir_value()


def as_dsl_value(value: Any, exemplar: Any = None) -> Any:
    """Return a raw value as the scalar or Vector of its type; an exemplar gives its own class and shape."""
    if isinstance(value, (list, tuple)):
        return type(value)(as_dsl_value(v) for v in value)
    if exemplar is not None and isinstance(value, ir.Value) and hasattr(exemplar, "__construct_from_ir_values__"):
        return type(exemplar).__construct_from_ir_values__([value], exemplar)
    if isinstance(value, (bool, int, float)):
        return from_python_value(value)
    if isinstance(value, ir.Value) and not _is_scalar_or_vector(value):
        return value
    return typed(value)


def _is_scalar_or_vector(value: ir.Value) -> bool:
    return isinstance(value.type, (ir.VectorType, ir.IntegerType, ir.FloatType, ir.IndexType))

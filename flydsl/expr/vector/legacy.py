"""The older function set on raw vectors: type first, values raw or DSL, results raw (`ArithValue`)."""

from collections.abc import Sequence
from typing import Any

from flydsl.expr.numeric import Index, cast, from_python_value, raw
from flydsl.expr.numeric.raw_value import ArithValue, typed
from flydsl.expr.raw_ops import as_type, build_raw, raw_operand
from flydsl.expr.vector.core import Vector
from flydsl.expr.vector.elementwise import DYNAMIC_POSITION
from flydsl.ir import current, ir


def from_elements(result_type: Any, elements: Sequence[Any]) -> ArithValue:
    """Return a vector of `result_type` from its elements."""
    type_ = as_type(result_type)
    operands = [raw_operand(e, type_.element_type) for e in elements]
    return build_raw("vector.from_elements", type_, operands)


def broadcast(result_type: Any, value: Any) -> ArithValue:
    """Return `value` repeated to `result_type`."""
    type_ = as_type(result_type)
    return build_raw("vector.broadcast", type_, [raw_operand(value, type_.element_type)])


splat = broadcast


def bitcast(result_type: Any, value: Any) -> ArithValue:
    """Return the bits of a vector as another vector type."""
    return build_raw("vector.bitcast", as_type(result_type), [raw_operand(value)])


def extract(
    source: Any, dynamic_position: Sequence[Any] = (), static_position: Sequence[int] | None = None
) -> ArithValue:
    """Return an element (or sub-vector) of a vector; run-time positions fill the dynamic marks of `static_position`."""
    vector = raw_operand(source)
    positions, marks = _positions(dynamic_position, static_position)
    t = ir.VectorType(vector.type)
    rest = list(t.shape)[len(marks) :]
    result = current().types.vector(rest[0], t.element_type) if len(rest) == 1 else t.element_type
    attrs = {"static_position": ir.DenseI64ArrayAttr.get(marks)}
    return build_raw("vector.extract", result, [vector, *positions], attrs)


def insert(
    value: Any, dest: Any, dynamic_position: Sequence[Any] = (), static_position: Sequence[int] | None = None
) -> ArithValue:
    """Return `dest` with one element (or sub-vector) replaced."""
    vector = raw_operand(dest)
    positions, marks = _positions(dynamic_position, static_position)
    operands = [raw_operand(value, ir.VectorType(vector.type).element_type), vector, *positions]
    attrs = {"static_position": ir.DenseI64ArrayAttr.get(marks)}
    return build_raw("vector.insert", vector.type, operands, attrs)


def _positions(dynamic: Any, static: Sequence[int] | None) -> tuple[list[ir.Value], list[int]]:
    items = list(dynamic) if isinstance(dynamic, (list, tuple)) else [dynamic]
    if static is None and all(isinstance(i, int) for i in items):
        return [], items
    values = [raw(cast(from_python_value(i), Index)) for i in items]
    marks = [DYNAMIC_POSITION] * len(values) if static is None else list(static)
    return values, marks


def extract_strided_slice(
    result_type: Any, source: Any, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> ArithValue:
    """Return a rectangular part of a vector."""
    i64 = current().types.i64

    def array(values: Sequence[int]) -> ir.Attribute:
        return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, v) for v in values])

    attrs = {"offsets": array(offsets), "sizes": array(sizes), "strides": array(strides)}
    return build_raw("vector.extract_strided_slice", as_type(result_type), [raw_operand(source)], attrs)


def shuffle(a: Any, b: Any, mask: Sequence[int]) -> ArithValue:
    """Return the elements which `mask` picks from a followed by b."""
    return typed(raw_operand(a)).shuffle(typed(raw_operand(b)), mask).ir_value()


def reduction(result_type: Any, kind: Any, source: Any, *, acc: Any = None, fastmath: Any = None) -> ArithValue:
    """Return all elements combined by `kind`, a name or a combining attribute."""
    name = str(kind).partition("<")[2].rstrip(">") or str(kind)
    name = {"maxsi": "max", "maxui": "max", "maxnumf": "max", "minsi": "min", "minui": "min"}.get(name, name)
    return typed(raw_operand(source)).reduce(name, acc, fastmath=fastmath).ir_value()


def load_op(result_type: Any, memref: Any, indices: Sequence[Any]) -> ArithValue:
    """Return a vector read from a plain memref."""
    return Vector.load(as_type(result_type), memref, indices).ir_value()


def store(value: Any, memref: Any, indices: Sequence[Any], *, alignment: int | None = None) -> None:
    """Write a vector to a plain memref."""
    typed(raw_operand(value)).store(memref, indices, alignment=alignment)

"""Vectors and plain memrefs, the older way to use LDS; tensors have `load` and `store` of their own."""

from collections.abc import Sequence
from typing import Any

from flydsl.diag import VectorConstruction
from flydsl.expr.numeric import Index, cast, from_python_value, raw
from flydsl.expr.vector.core import Vector, VectorMeta, make, raw_vector
from flydsl.ir import current, ir
from flydsl.ir.trace import create_op


def load(result_type: Any, memref: Any, indices: Sequence[Any]) -> Vector:
    """`Vector.load(type, memref, indices)`."""
    trace = current()
    alias = result_type.alias if isinstance(result_type, VectorMeta) else None
    type_ = result_type.ir_type if isinstance(result_type, VectorMeta) else result_type
    if not isinstance(type_, ir.VectorType):
        raise VectorConstruction(
            problem=f"{result_type} is not a vector type", advice="pass fx.Vector.make_type(n, dtype) or an alias class"
        )
    operands = (_memref(memref), *_indices(indices))
    value = create_op("vector.load", (type_,), operands, None, None, 0, trace.loc(2), trace.ip).result
    return Vector(value) if alias is None else make(value, alias[1], alias[0])


def store(v: Vector, memref: Any, indices: Sequence[Any], alignment: int | None) -> None:
    """`v.store(memref, indices)`."""
    trace = current()
    attrs = None if alignment is None else {"alignment": ir.IntegerAttr.get(trace.types.i64, alignment)}
    operands = (raw_vector(v), _memref(memref), *_indices(indices))
    create_op("vector.store", (), operands, attrs, None, 0, trace.loc(2), trace.ip)


def _memref(memref: Any) -> ir.Value:
    value = memref if isinstance(memref, ir.Value) else memref.ir_value() if hasattr(memref, "ir_value") else None
    if value is None or not isinstance(value.type, ir.MemRefType):
        got = type(memref).__name__ if value is None else value.type
        raise VectorConstruction(
            problem=f"Vector.load and store need a plain memref, got {got}",
            advice="use the tensor's own load() and store(v)",
        )
    return value


def _indices(indices: Any) -> tuple[ir.Value, ...]:
    items = indices if isinstance(indices, (tuple, list)) else (indices,)
    return tuple(_index(i) for i in items)


def _index(i: Any) -> ir.Value:
    if isinstance(i, int):
        return raw(Index(i))
    return raw(cast(from_python_value(i), Index))

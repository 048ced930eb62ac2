"""Conversions of vectors: element class, bits, order."""

import sys
from collections.abc import Sequence
from typing import Any

from flydsl.diag import NotConvertible, RoundingModeNeedsFloats, VectorConstruction
from flydsl.expr.numeric import NumericMeta
from flydsl.expr.numeric.cast import cast_steps, emit_rounding, emit_steps, refuse_bitcast_target
from flydsl.expr.vector.core import Vector, build, make, raw_vector
from flydsl.ir import current, ir


def convert(v: Vector, dtype: Any, rounding_mode: Any) -> Vector:
    """`v.to(dtype)`."""
    if dtype is ir.Value:
        return v.ir_value()
    if not isinstance(dtype, NumericMeta):
        name = getattr(dtype, "__name__", dtype)
        raise NotConvertible(value=repr(v), dtype=name, advice="convert to a scalar class such as fx.Float32")
    if dtype is v.dtype and rounding_mode is None:
        return v
    trace = current()
    loc = trace.scope.locate(sys._getframe(2))
    if rounding_mode is not None:
        if not (v.dtype.is_float and dtype.is_float):
            raise RoundingModeNeedsFloats(source=v.dtype.__name__, target=dtype.__name__)
        value = emit_rounding(trace, v.numel, raw_vector(v), v.dtype, dtype, rounding_mode, loc)
    else:
        value = emit_steps(trace, v.numel, raw_vector(v), cast_steps(v.dtype, dtype), loc)
    return make(value, v.shape, dtype)


def bitcast(v: Vector, dtype: Any) -> Vector:
    """`v.bitcast(dtype)`: the total number of bits stays, the result is 1-D."""
    bits = v.numel * v.dtype.width
    refuse_bitcast_target(dtype)
    if bits % dtype.width:
        advice = "choose a class whose width divides the total number of bits"
        dtype_text = f"{dtype.__name__} ({dtype.width} bits)"
        raise NotConvertible(value=f"the {bits} bits of {v!r}", dtype=dtype_text, advice=advice)
    n = bits // dtype.width
    return make(build("vector.bitcast", dtype, n, (raw_vector(v),)), (n,), dtype, n)


def shuffle(v: Vector, other: Vector, mask: Sequence[int]) -> Vector:
    """`v.shuffle(other, mask)`."""
    if not isinstance(other, Vector):
        other = Vector(other)
    positions = [int(m) for m in mask]
    total = v.numel + other.numel
    if other.dtype is not v.dtype:
        problem = f"shuffle of {v.dtype.__name__} with {other.dtype.__name__}"
        raise VectorConstruction(problem=problem, advice="convert one of them with .to(dtype) first")
    if not positions or not all(0 <= m < total for m in positions):
        problem = f"shuffle mask {positions} does not pick from {total} elements"
        raise VectorConstruction(problem=problem, advice=f"use positions from 0 to {total - 1}, at least one")
    attrs = {"mask": ir.DenseI64ArrayAttr.get(positions, current().context)}
    operands = (raw_vector(v), raw_vector(other))
    return make(build("vector.shuffle", v.dtype, len(positions), operands, attrs), (len(positions),), v.dtype, len(positions))

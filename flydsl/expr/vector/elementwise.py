"""Operators of vectors: the plans of scalars on n elements, with NumPy's broadcasting."""

import sys
from typing import Any

from flydsl.diag import VectorConstruction
from flydsl.expr.numeric import Numeric, cast, from_python_value, raw
from flydsl.expr.numeric.build import constant_of, result_types
from flydsl.expr.numeric.cast import cast_steps, emit_steps
from flydsl.expr.numeric.fold import fit
from flydsl.expr.numeric.promote import COMPARISONS
from flydsl.expr.numeric.rules import plan
from flydsl.expr.numeric.unary import (
    emit_absolute,
    emit_invert,
    emit_negate,
    refuse_absolute,
    refuse_inversion,
    refuse_negation,
)
from flydsl.expr.vector.core import Vector, make, raw_vector
from flydsl.expr.vector.shape import Shape, broadcast_shapes, flat, numel_of
from flydsl.ir import current, ir
from flydsl.ir.trace import create_op

_PYTHON = (int, float, bool)


def elementwise(symbol: str, a: Any, b: Any, depth: int = 1) -> Vector:
    """Return `a <symbol> b` element by element; at least one is a Vector. `depth`: frames up to the user's code."""
    trace = current()
    loc = trace.locations.at(sys._getframe(depth), trace.scope.root)
    if isinstance(a, Vector) and isinstance(b, Vector):
        return _two_vectors(trace, symbol, a, b, loc)
    if isinstance(a, Vector):
        return _with_scalar(trace, symbol, a, from_python_value(b), loc, scalar_left=False)
    return _with_scalar(trace, symbol, b, from_python_value(a), loc, scalar_left=True)


def _two_vectors(trace, symbol: str, a: Vector, b: Vector, loc) -> Vector:
    p = plan(symbol, a.dtype, b.dtype)
    shape = a.shape
    if b.shape != shape:
        shape = broadcast_shapes(a.shape, b.shape)
        a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    n = numel_of(shape)
    x, y = raw_vector(a), raw_vector(b)
    left, right = (*p.left_steps, p.computed), (*p.right_steps, p.computed)
    cx, cy = a.dtype, b.dtype
    for tx, ty in zip(left, right, strict=True):
        if tx is not cx:
            x, cx = emit_steps(trace, n, x, cast_steps(cx, tx), loc), tx
        if ty is not cy:
            y, cy = emit_steps(trace, n, y, cast_steps(cy, ty), loc), ty
    return make(p.emit(trace, n, x, y, loc), shape, p.result)


def _with_scalar(trace, symbol: str, v: Vector, s: Numeric, loc, scalar_left: bool) -> Vector:
    classes = (s.__class__, v.dtype) if scalar_left else (v.dtype, s.__class__)
    p = plan(symbol, *classes)
    n = v.numel
    x, c = raw_vector(v), v.dtype
    for target in p.right_steps if scalar_left else p.left_steps:
        if target is not c:
            x, c = emit_steps(trace, n, x, cast_steps(c, target), loc), target
    y = _lifted(trace, s, p.left_steps if scalar_left else p.right_steps, p.common, n, loc)
    if p.computed is not p.common:
        steps = cast_steps(p.common, p.computed)
        x, y = emit_steps(trace, n, x, steps, loc), emit_steps(trace, n, y, steps, loc)
    a, b = (y, x) if scalar_left else (x, y)
    return make(p.emit(trace, n, a, b, loc), v.shape, p.result)


def _lifted(trace, s: Numeric, steps, common: type[Numeric], n: int, loc) -> ir.Value:
    """Return a scalar as n elements of the common class."""
    if s.is_static():
        return constant_of(trace, common.element.mlir, n, fit(common, s.value))
    for target in steps:
        s = cast(s, target)
    types = result_types(trace, common.element.mlir, n)
    return create_op("vector.broadcast", types, (raw(s),), None, None, 0, loc, trace.ip).result


def broadcast_to(v: Vector, shape: Shape) -> Vector:
    """Return `v` in `shape`; modes of size 1 are repeated."""
    if v.shape == shape:
        return v
    source, target = flat(v.shape), flat(shape)
    padded = (1,) * (len(target) - len(source)) + source
    if len(source) > len(target) or any(s not in (1, t) for s, t in zip(padded, target, strict=False)):
        raise VectorConstruction(
            problem=f"cannot broadcast shape {v.shape} to {shape}", advice="each mode must be equal or have size 1"
        )
    value = raw_vector(v)
    if v.numel != numel_of(shape):
        value = _repeat(value, v, padded, target)
    return make(value, shape, v.dtype)


def _repeat(value: ir.Value, v: Vector, source: tuple[int, ...], target: tuple[int, ...]) -> ir.Value:
    trace = current()
    loc = trace.loc(2)
    elem = trace.types.by_name[v.dtype.element.mlir]
    flat_type = trace.types.vector(numel_of(target), elem)

    def op(name: str, type_: ir.Type, x: ir.Value) -> ir.Value:
        return create_op(name, (type_,), (x,), None, None, 0, loc, trace.ip).result

    if v.numel == 1:
        scalar = create_op("vector.extract", (elem,), (value,), position_attr(trace, 0), None, 0, loc, trace.ip).result
        return op("vector.broadcast", flat_type, scalar)
    value = op("vector.shape_cast", _shaped(source, elem), value)
    value = op("vector.broadcast", _shaped(target, elem), value)
    return op("vector.shape_cast", flat_type, value)


def _shaped(extents: tuple[int, ...], elem: ir.Type) -> ir.Type:
    with ir.Location.unknown():
        return ir.VectorType.get(list(extents), elem)


DYNAMIC_POSITION = -(2**63)


def position_attr(trace, position: int) -> dict:
    """Return the attribute of `vector.extract`/`insert` for one static (or dynamic) position."""
    memo = trace.types.memo
    attrs = memo.get(("position", position))
    if attrs is None:
        attrs = memo["position", position] = {"static_position": ir.DenseI64ArrayAttr.get([position])}
    return attrs


def negate(v: Vector) -> Vector:
    """Return -v."""
    refuse_negation(v.dtype)
    return _unary(emit_negate, v)


def invert(v: Vector) -> Vector:
    """Return ~v."""
    refuse_inversion(v.dtype)
    return _unary(emit_invert, v)


def absolute(v: Vector) -> Vector:
    """Return |v|."""
    refuse_absolute(v.dtype)
    return v if v.dtype.signed is False else _unary(emit_absolute, v)


def _unary(emit, v: Vector) -> Vector:
    trace = current()
    loc = trace.loc(2)
    return make(emit(trace, v.numel, raw_vector(v), v.dtype, loc), v.shape, v.dtype)


_REFUSED = (str, bytes, type(None), list, tuple, dict, set)


def _operator(symbol: str, reverse: bool):
    def operator(self, other):
        if isinstance(other, _REFUSED) or not (
            isinstance(other, (Vector, Numeric, ir.Value, *_PYTHON)) or getattr(other, "shape", None) == ()
        ):
            return NotImplemented
        if isinstance(other, ir.Value) and isinstance(other.type, ir.VectorType):
            other = Vector(other)
        return elementwise(symbol, other, self, 2) if reverse else elementwise(symbol, self, other, 2)

    return operator


def _install() -> None:
    from flydsl.expr.numeric.raw_value import OPERATOR_NAMES

    for symbol, name in OPERATOR_NAMES.items():
        setattr(Vector, f"__{name}__", _operator(symbol, reverse=False))
        if symbol not in COMPARISONS:
            setattr(Vector, f"__r{name}__", _operator(symbol, reverse=True))


_install()

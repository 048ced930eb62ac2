"""Operators of vectors: the plans of scalars on n elements, with NumPy's broadcasting."""

import sys
from functools import cache
from typing import Any

from flydsl.diag import VectorConstruction
from flydsl.expr.numeric import Float32, Numeric, cast, from_python_value, raw
from flydsl.expr.numeric.base import check_raw
from flydsl.expr.numeric.build import constant_of, result_types
from flydsl.expr.numeric.cast import Steps, cast_steps, emit_steps
from flydsl.expr.numeric.fold import fit
from flydsl.expr.numeric.promote import COMPARISONS, class_of_python
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
from flydsl.ir.trace import active, create_op
from flydsl.utils.record import record


def elementwise(symbol: str, a: Any, b: Any, depth: int = 1) -> Vector:
    """Return `a <symbol> b` element by element; at least one is a Vector. `depth`: frames up to the user's code."""
    trace = active.trace or current()
    loc = trace.scope.locate(sys._getframe(depth))
    if isinstance(a, Vector):
        if isinstance(b, Vector):
            return _two_vectors(trace, symbol, a, b, loc)
        return _with_scalar(trace, symbol, a, from_python_value(b), loc, scalar_left=False)
    return _with_scalar(trace, symbol, b, from_python_value(a), loc, scalar_left=True)


@record
class _VectorPlan:
    """The scalar plan with the conversion ops of both operands, stage by stage; empty stages are left out."""

    emit: Any
    result: type[Numeric]
    common: type[Numeric]
    stages: tuple[tuple[Steps, Steps], ...]
    to_computed: Steps
    left_steps: tuple[type[Numeric], ...]
    right_steps: tuple[type[Numeric], ...]
    keeps_left: bool  # a left operand needs no op before the operation
    keeps_both: bool


@cache
def _vector_plan(symbol: str, left: type[Numeric], right: type[Numeric]) -> _VectorPlan:
    p = plan(symbol, left, right)
    to_computed = cast_steps(p.common, p.computed)
    stages = zip(_chain(left, p.left_steps), _chain(right, p.right_steps), strict=True)
    kept = tuple(stage for stage in stages if any(stage))
    keeps_left = not to_computed and not any(steps for steps, _ in kept)
    keeps_both = keeps_left and not kept
    return _VectorPlan(p.emit, p.result, p.common, kept, to_computed, p.left_steps, p.right_steps, keeps_left, keeps_both)


def _chain(source: type[Numeric], targets: tuple[type[Numeric], ...]) -> list[Steps]:
    steps = []
    for target in targets:
        steps.append(cast_steps(source, target))
        source = target
    return steps


def _without_conversion(symbol: str, v: Vector, other: Any) -> Vector | None:
    """Return `v <symbol> other` for a Vector of the same shape or a Python number, if the operation is one op; else None."""
    trace, scope = active.trace, v._scope
    if trace is None or scope is not trace.scope:
        return None
    if other.__class__ is Vector:
        if scope is not other._scope or v.shape != other.shape:
            return None
        p = _vector_plan(symbol, v.dtype, other.dtype)
        if not p.keeps_both:
            return None
        y = other._value
    else:
        p = _vector_plan(symbol, v.dtype, Float32 if other.__class__ is float else class_of_python(other))
        if not p.keeps_left:
            return None
        y = constant_of(trace, p.common.element.mlir, v.numel, fit(p.common, other))
    return make(p.emit(trace, v._value, y, scope.locate(sys._getframe(2))), v.shape, p.result, v.numel, scope)


def _two_vectors(trace, symbol: str, a: Vector, b: Vector, loc) -> Vector:
    p = _vector_plan(symbol, a.dtype, b.dtype)
    shape, n = a.shape, a.numel
    if b.shape != shape:
        shape = broadcast_shapes(a.shape, b.shape)
        a, b = broadcast_to(a, shape), broadcast_to(b, shape)
        n = a.numel
    x, y = raw_vector(a), raw_vector(b)
    for for_x, for_y in p.stages:
        x, y = emit_steps(trace, n, x, for_x, loc), emit_steps(trace, n, y, for_y, loc)
    if p.to_computed:
        x, y = emit_steps(trace, n, x, p.to_computed, loc), emit_steps(trace, n, y, p.to_computed, loc)
    return make(p.emit(trace, x, y, loc), shape, p.result, n)


def _with_scalar(trace, symbol: str, v: Vector, s: Numeric, loc, scalar_left: bool) -> Vector:
    n = v.numel
    x = raw_vector(v)
    if scalar_left:
        p = _vector_plan(symbol, s.__class__, v.dtype)
        for _, steps in p.stages:
            x = emit_steps(trace, n, x, steps, loc)
    else:
        p = _vector_plan(symbol, v.dtype, s.__class__)
        for steps, _ in p.stages:
            x = emit_steps(trace, n, x, steps, loc)
    y = _lifted(trace, s, p.left_steps if scalar_left else p.right_steps, p.common, n, loc)
    if p.to_computed:
        x, y = emit_steps(trace, n, x, p.to_computed, loc), emit_steps(trace, n, y, p.to_computed, loc)
    value = p.emit(trace, y, x, loc) if scalar_left else p.emit(trace, x, y, loc)
    return make(value, v.shape, p.result, n)


def _lifted(trace, s: Numeric, steps, common: type[Numeric], n: int, loc) -> ir.Value:
    """Return a scalar as n elements of the common class."""
    if s.is_static():
        return constant_of(trace, common.element.mlir, n, fit(common, s._payload))
    for target in steps:
        if s.__class__ is not target:
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
    trace = active.trace or current()
    loc = trace.loc(2)
    return make(emit(trace, v.numel, raw_vector(v), v.dtype, loc), v.shape, v.dtype, v.numel, trace.scope)


_ACCEPTED = (Numeric, int, float, ir.Value)


_SIMPLE = (Vector, float, int)


def _operator(symbol: str, reverse: bool):
    def operator(self, other):
        if not reverse and other.__class__ in _SIMPLE:
            result = _without_conversion(symbol, self, other)
            if result is not None:
                return result
        if not isinstance(other, Vector):
            if not isinstance(other, _ACCEPTED) and getattr(other, "shape", None) != ():
                return NotImplemented
            check_raw(other)
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

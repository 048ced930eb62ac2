"""Conversions between scalar classes, from Python numbers and from raw values.

Which ops a run-time conversion takes is data (`cast_steps`); the same steps serve vectors.
"""

import sys
from functools import cache
from typing import Any

from flydsl.diag import (
    BareIntegerToFloat,
    NotConvertible,
    OperandKind,
    RoundingModeNeedsFloats,
    RoundingModeNeedsRunTime,
)
from flydsl.expr.fastmath import RoundingMode, float_attrs
from flydsl.expr.numeric.base import (
    CLASSES,
    Numeric,
    NumericMeta,
    check_raw,
    class_of_type,
    raw,
    static,
    to_python,
    wrap,
)
from flydsl.expr.numeric.build import CMPF, CMPI, ambient_attrs, cmp_attrs, cmpf_attrs, constant_of, inferred, op1
from flydsl.expr.numeric.classes import Boolean, Float32, Index
from flydsl.expr.numeric.fold import fit
from flydsl.expr.numeric.promote import class_of_python
from flydsl.ir import current, ir
from flydsl.ir.trace import active

Steps = tuple[
    tuple[str, str], ...
]  # (op, element type of its result); for a test against zero (.., element type tested)

_FLOAT_CASTS = ("arith.extf", "arith.truncf")
_IS_NONZERO = "is nonzero"
_FLOAT_IS_NONZERO = "float is nonzero"


@cache
def cast_steps(source: type[Numeric], target: type[Numeric]) -> Steps:
    """Return the ops that convert a run-time `source` to `target`, in order."""
    if source is target:
        return ()
    if target is Boolean:
        return ((_FLOAT_IS_NONZERO if source.is_float else _IS_NONZERO, source.element.mlir),)
    if source.is_float:
        return _float_to_float(source, target) if target.is_float else _float_to_integer(source, target)
    return _integer_to_float(source, target) if target.is_float else _integer_to_integer(source, target)


def _float_to_float(source, target) -> Steps:
    name = target.element.mlir
    if source.width == target.width:  # f16 and bf16, or two formats of 8 bits: f32 holds both
        return (("arith.extf", "f32"), ("arith.truncf", name))
    return (("arith.extf" if target.width > source.width else "arith.truncf", name),)


def _float_to_integer(source, target) -> Steps:
    if target is Index:  # index_cast takes no float
        return (("arith.fptosi", "i64"), ("arith.index_cast", "index"))
    return (("arith.fptosi" if target.signed else "arith.fptoui", target.element.mlir),)


def _integer_to_float(source, target) -> Steps:
    if source is Index:  # uitofp takes no index
        return (("arith.index_cast", "i64"), ("arith.uitofp", target.element.mlir))
    unsigned = not source.signed or source is Boolean
    return (("arith.uitofp" if unsigned else "arith.sitofp", target.element.mlir),)


def _integer_to_integer(source, target) -> Steps:
    name = target.element.mlir
    if Index in (source, target):
        return (("arith.index_cast", name),)
    if source.width == target.width:
        return ()
    if target.width < source.width:
        return (("arith.trunci", name),)
    unsigned = not source.signed or source is Boolean
    return (("arith.extui" if unsigned else "arith.extsi", name),)


def emit_cast(trace, n: int, x: ir.Value, source: type[Numeric], target: type[Numeric], loc) -> ir.Value:
    """Build the conversion of a scalar (n = 0) or of `n` vector elements."""
    return emit_steps(trace, n, x, cast_steps(source, target), loc)


def emit_steps(trace, n: int, x: ir.Value, steps: Steps, loc) -> ir.Value:
    """Build the ops of `steps` one after another."""
    for name, mlir in steps:
        if name in _FLOAT_CASTS:
            x = op1(trace, name, mlir, n, (x,), loc, ambient_attrs(trace))
        elif name is _IS_NONZERO:
            zero = constant_of(trace, mlir, n, 0)
            x = inferred(trace, "arith.cmpi", (x, zero), loc, cmp_attrs(trace, CMPI["!="]))
        elif name is _FLOAT_IS_NONZERO:
            zero = constant_of(trace, mlir, n, 0.0)
            x = inferred(trace, "arith.cmpf", (x, zero), loc, cmpf_attrs(trace, CMPF["!="]))
        else:
            x = op1(trace, name, mlir, n, (x,), loc)
    return x


def from_python_value(value: Any) -> Numeric:
    """Return a Python number, NumPy scalar or raw value as a scalar of the class it stands for."""
    if isinstance(value, Numeric):
        return value
    if value.__class__ is float:
        return static(Float32, value)
    if isinstance(value, (bool, int, float)):
        cls = class_of_python(value)
        return static(cls, fit(cls, value))
    if isinstance(value, ir.Value):
        return wrap(raw_class(value), value)
    number = _python_number(value)
    if number is not None:
        return from_python_value(number)
    raise NotConvertible(value=repr(value), dtype="Numeric", advice="pass a number, a scalar of fx or a raw value")


def _python_number(value: Any) -> Any:
    """Return the number in a NumPy scalar or another object with `__index__`, or None."""
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():
        number = item()
        return number if isinstance(number, (bool, int, float)) else None
    if hasattr(value, "__index__"):
        return value.__index__()
    return None


def raw_class(value: ir.Value) -> type[Numeric]:
    """Return the scalar class of a raw value; an `ArithValue` knows its sign, other integers count as signed."""
    check_raw(value)
    cls = class_of_type(value.type)
    if getattr(value, "signed", None) is False:
        return UNSIGNED.get(cls, cls)
    return cls


def vector_of(cls: type[Numeric], value: ir.Value) -> Any:
    """Return a raw vector as a Vector whose elements are converted to `cls`."""
    from flydsl.expr.vector import Vector

    return Vector(value).to(cls)


def convert_into(x: Numeric, value: Any) -> None:
    """Fill the new scalar `x` with `value` converted to its class."""
    cls = x.__class__
    if value.__class__ in (int, float, bool):
        x._scope, x._payload = None, fit(cls, value)
        return
    y = value if isinstance(value, Numeric) else _numeric_of(cls, value)
    trace, scope = active.trace, y._scope
    if trace is not None and scope is not None and scope is trace.scope:
        source = y.__class__
        x._scope = scope
        x._payload = y._payload if source is cls else emit_cast(trace, 0, y._payload, source, cls, scope.locate(sys._getframe(2)))
        return
    y = cast(y, cls, sys._getframe(2))
    x._scope, x._payload = y._scope, y._payload


def _numeric_of(cls: type[Numeric], value: Any) -> Numeric:
    if isinstance(value, ir.Value):
        return _typed_raw(cls, value)
    if isinstance(value, (int, float)):
        return static(cls, fit(cls, value))
    number = _python_number(value)
    if number is None:
        advice = f"pass a number or a scalar of fx, not {type(value).__name__}"
        raise NotConvertible(value=value, dtype="float" if cls.is_float else "integer", advice=advice)
    return static(cls, fit(cls, number))


def _typed_raw(cls: type[Numeric], value: ir.Value) -> Numeric:
    check_raw(value)
    source = class_of_type(value.type)
    signed = getattr(value, "signed", None)
    if source.is_integer and source not in (Boolean, Index):
        if cls.is_float:
            raise BareIntegerToFloat(dtype=cls.__name__)
        if signed is False or (signed is None and not cls.signed):
            source = UNSIGNED.get(source, source)
    return wrap(source, value)


def cast(x: Numeric, target: type[Numeric], frame=None) -> Numeric:
    """Return `x` converted to `target`; `frame` is where the search for the user's location begins."""
    source = x.__class__
    if x._scope is None:
        if target is not Index or source is Index or active.trace is None:
            return static(target, fit(target, x._payload))
        if source.is_float:
            return static(target, fit(target, x._payload))
    trace = active.trace or current()
    value, scope = raw(x), trace.scope
    if source is target:
        return wrap(target, value, scope)
    loc = scope.locate(frame or sys._getframe(1))
    return wrap(target, emit_cast(trace, 0, value, source, target, loc), scope)


def convert_to(x: Numeric, target: Any, rounding_mode: RoundingMode | None) -> Any:
    """`x.to(target)`; to its own class, `x` itself."""
    if target is x.__class__:
        return x
    if rounding_mode is not None:
        return _round_to(x, target, rounding_mode)
    if isinstance(target, NumericMeta):
        return cast(x, target, sys._getframe(2))
    if target in (int, float, bool):
        return to_python(x, target)
    if target is ir.Value:
        return x.ir_value()
    name = getattr(target, "__name__", target)
    raise NotConvertible(
        value=x.__class__.__name__,
        dtype=name,
        advice="convert to a scalar class such as fx.Float32, or to int, float or bool",
    )


def _round_to(x: Numeric, target: Any, mode: RoundingMode) -> Numeric:
    source = x.__class__
    if not (source.is_float and isinstance(target, NumericMeta) and target.is_float):
        raise RoundingModeNeedsFloats(source=source.__name__, target=getattr(target, "__name__", target))
    if x._scope is None:
        raise RoundingModeNeedsRunTime(dtype=source.__name__, value=x._payload)
    trace = current()
    loc = trace.scope.locate(sys._getframe(3))
    return wrap(target, emit_rounding(trace, 0, raw(x), source, target, mode, loc))


def emit_rounding(trace, n: int, x: ir.Value, source, target, mode: RoundingMode, loc) -> ir.Value:
    """Build a float cast whose narrowing step has a rounding mode."""
    for name, mlir in cast_steps(source, target):
        attrs = float_attrs(trace)
        if name == "arith.truncf":
            attrs = {**(attrs or {}), "roundingmode": _rounding_attr(trace, mode)}
        x = op1(trace, name, mlir, n, (x,), loc, attrs)
    return x


def _rounding_attr(trace, mode: RoundingMode) -> ir.Attribute:
    memo = trace.types.memo
    attr = memo.get(("rounding", int(mode)))
    if attr is None:
        attr = memo["rounding", int(mode)] = ir.IntegerAttr.get(trace.types.i32, int(RoundingMode(mode)))
    return attr


def refuse_bitcast_target(target: Any) -> None:
    """Raise when the target of a bitcast is no scalar class."""
    if not isinstance(target, NumericMeta):
        raise OperandKind(
            problem=f"bitcast needs a scalar class, got {target!r}",
            reason="the bits become values of that class",
            advice="write x.bitcast(fx.Int32)",
        )


def bitcast(x: Numeric, target: Any) -> Numeric:
    """Return the bits of `x` as `target`, at run time."""
    source = x.__class__
    refuse_bitcast_target(target)
    if target.width != source.width or Index in (source, target):
        raise NotConvertible(
            value=f"the bits of {source.__name__} ({source.width})",
            dtype=f"{target.__name__} ({target.width} bits)",
            advice="bitcast keeps the bits: choose a class of the same width, or convert with x.to(...)",
        )
    trace = current()
    loc = trace.scope.locate(sys._getframe(2))
    return wrap(target, op1(trace, "arith.bitcast", target.element.mlir, 0, (raw(x),), loc))


def _unsigned_counterparts() -> dict[type[Numeric], type[Numeric]]:
    return {c: CLASSES["U" + c.__name__.lower()] for c in CLASSES.values() if "U" + c.__name__.lower() in CLASSES}


UNSIGNED = _unsigned_counterparts()

"""Between what users pass and what an op takes: DSL and raw values, result types, compile-time numbers, the current
chip.

Every helper of this package accepts DSL objects, raw SSA values and Python numbers, and a scalar class or an IR type
for `res`.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from flydsl import arch as chips
from flydsl.diag import IntrinsicNotOnChip, RocdlOperand, RocdlStatic
from flydsl.expr.numeric.base import Numeric, NumericMeta, check_raw, raw, wrap
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.vector import Vector
from flydsl.expr.vector.core import VectorMeta
from flydsl.ir import constant, current, get_types, ir
from flydsl.ir.context import Types
from flydsl.ir.trace import active

DEFAULT_ARCH = "gfx942"


def arch_name() -> str:
    """Return the chip that code is made for: that of the trace, else the device's."""
    trace = active.trace
    if trace is not None:
        return trace.arch
    try:
        from flydsl.runtime.device import get_rocm_arch
    except ImportError:
        return os.environ.get("ARCH") or os.environ.get("FLYDSL_GPU_ARCH") or DEFAULT_ARCH
    return get_rocm_arch()


def chip() -> chips.Chip:
    """Return the facts of the current chip."""
    return chips.get(arch_name())


def require(feature: str, name: str) -> None:
    """Refuse helper `name` on a chip without `feature`.

    Raises   IntrinsicNotOnChip: lists the chips that have it
    """
    if not chip().has(feature):
        having = [c for c in chips.names() if chips.get(c).has(feature)]
        raise IntrinsicNotOnChip(name=f"rocdl.{name}", arch=arch_name(), chips_text=", ".join(having))


def operand(x: Any, hint: ir.Type | None = None, name: str = "", param: str = "", signature: str = "") -> ir.Value:
    """Return the SSA value of `x`; a Python number becomes a constant of type `hint` (else i1, i32 or f32 by its
    class).
    """
    if isinstance(x, Numeric):
        return raw(x)
    if isinstance(x, ir.Value):
        check_raw(x)
        return x
    if isinstance(x, (int, float)):
        return constant(hint or _literal_type(x), x)
    if isinstance(x, (ir.Operation, ir.OpView)) and len(x.results) == 1:
        return x.result
    extract = getattr(x, "__extract_to_ir_values__", None)
    values = extract() if extract is not None and not isinstance(x, type) else ()
    if len(values) == 1:
        return values[0]
    advice = "pass the parts one by one" if values else "pass a scalar, Vector, raw value or Python number"
    got = f"{len(values)} values ({type(x).__name__})" if values else type(x).__name__
    raise RocdlOperand(name=name, param=param, expected="a run-time value", got=got, signature=signature, advice=advice)


def i32(x: Any) -> ir.Value:
    """Return `x` as an i32: numbers become constants, DSL integers are converted, an index is cast."""
    return scalar(x, "Int32")


def i64(x: Any) -> ir.Value:
    """Return `x` as an i64."""
    return scalar(x, "Int64")


def f32(x: Any) -> ir.Value:
    """Return `x` as an f32."""
    return scalar(x, "Float32")


def scalar(x: Any, class_name: str) -> ir.Value:
    """Return the SSA value of `x` converted to a scalar class."""
    from flydsl.expr.numeric.base import CLASSES

    cls = CLASSES[class_name]
    value = x if isinstance(x, (int, float, Numeric)) else operand(x)
    if isinstance(value, ir.Value) and value.type == cls.ir_type:
        return value
    return raw(value if value.__class__ is cls else cls(value))


def _literal_type(x: int | float) -> ir.Type:
    types = current().types
    if isinstance(x, bool):
        return types.i1
    return types.i32 if isinstance(x, int) else types.f32


def result_type(res: Any, name: str = "", signature: str = "") -> ir.Type:
    """Return the IR type that `res` names: an IR type, a scalar class, or a type object with `ir_type`."""
    if isinstance(res, ir.Type):
        return res
    if isinstance(res, NumericMeta):
        return res.ir_type
    type_ = getattr(res, "ir_type", None)
    type_ = type_() if callable(type_) else type_
    if isinstance(type_, ir.Type):
        return type_
    got = f"a value of type {type(res).__name__}" if not isinstance(res, type) else res.__name__
    raise RocdlOperand(
        name=name,
        param="res",
        expected="the result type",
        got=got,
        signature=signature,
        advice="pass the result type first: a scalar class such as fx.Int32, or fx.T.i32, fx.T.vec(4, fx.T.f32)",
    )


def dsl(res: Any, value: ir.Value) -> Any:
    """Return `value` as what `res` asks for; see `wrapper`."""
    return wrapper(res, value.type, get_types())(value)


def wrapper(res: Any, type_: ir.Type, types: Types) -> Callable[[ir.Value], Any]:
    """Return what makes an object of values of `type_`.

    Where `res` is a scalar class or Vector: an instance of it. Where it is an IR type: a raw value with operators, as
    in the reference, whose integers have no sign: `>>` shifts zeros in, which kernels rely on when they unpack
    results.
    """
    key = ("rocdl.wrapper", res if isinstance(res, type) else type_)
    make = types.memo.get(key)
    if make is None:
        make = types.memo[key] = _wrapper(res, type_)
    return make


def _wrapper(res: Any, type_: ir.Type) -> Callable[[ir.Value], Any]:
    if isinstance(res, NumericMeta):
        return partial(wrap, res)
    if isinstance(res, VectorMeta):
        return Vector
    if isinstance(type_, (ir.VectorType, ir.IntegerType, ir.FloatType, ir.IndexType)):
        return ArithValue
    return lambda value: value


def static_int(x: Any, name: str, param: str, expected: str = "integer") -> int:
    """Return `x` as a Python int.

    Raises   RocdlStatic: a run-time value, or no integer
    """
    if x.__class__ is int:
        return x
    if isinstance(x, bool):
        return int(x)
    if isinstance(x, Numeric) and x.is_integer and x.is_static():
        return int(x.value)
    if isinstance(x, (Numeric, ir.Value)) or not hasattr(x, "__index__"):
        dynamic = isinstance(x, (Numeric, ir.Value))
        got = "a run-time value" if dynamic else type(x).__name__
        raise RocdlStatic(name=name, param=param, expected=expected, got=got)
    return x.__index__()


def const_i32(x: int) -> ir.Value:
    """Return the i32 constant `x` of the function."""
    return constant(get_types().i32, x)

"""Old home of arithmetic helpers on raw values; new code imports `flydsl.expr.arith`."""

from typing import Any

from flydsl.expr.arith import (
    andi,
    constant,
    constant_vector,
    fastmath,
    index,
    index_cast,
    select,
    shli,
    sitofp,
    trunc_f,
    unwrap,
    xori,
)
from flydsl.expr.convert import as_ir_value
from flydsl.expr.fastmath import FastMathFlags, ambient, flag_bits
from flydsl.expr.meta import dsl_loc_tracing, tracing_context, tracing_option
from flydsl.expr.numeric import CLASSES, class_of_type
from flydsl.expr.numeric.cast import cast_steps, emit_steps
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.raw_ops import as_type, raw_operand
from flydsl.ir import current, ir

_to_raw = unwrap


def arith_const(value: Any, ty: Any = None) -> ArithValue:
    """Return a raw constant."""
    return constant(value, type=ty)


def element_type(ty: ir.Type) -> ir.Type:
    """Return the element type of a vector or memref type, other types as they are."""
    return getattr(ty, "element_type", ty)


def is_float_type(ty: ir.Type) -> bool:
    """Return whether the element type is a float."""
    return class_of_type(element_type(ty)).is_float


def is_narrow_float_type(ty: ir.Type) -> bool:
    """Return whether the element type is a float of 8 bits or fewer."""
    cls = class_of_type(element_type(ty))
    return cls.is_float and cls.width <= 8


def is_integer_like_type(ty: ir.Type) -> bool:
    """Return whether the element type is an integer or index."""
    return class_of_type(element_type(ty)).is_integer


def recast_type(src_type: ir.Type, res_elem_type: Any) -> ir.Type:
    """Return `src_type` with another element type."""
    elem = as_type(res_elem_type)
    if not isinstance(src_type, ir.VectorType):
        return elem
    with ir.Location.unknown():
        return ir.VectorType.get(list(src_type.shape), elem)


def int_to_int(src: Any, dst_type: Any, *, signed: bool | None = None) -> ArithValue:
    """Return an integer widened or narrowed; `signed` False widens with zeros."""
    return _convert(src, dst_type, True if signed is None else signed)


def int_to_fp(src: Any, signed: bool | None, res_elem_type: Any) -> ArithValue:
    """Return an integer as float."""
    return _convert(src, res_elem_type, signed is not False)


def fp_to_int(src: Any, signed: bool | None, res_elem_type: Any) -> ArithValue:
    """Return a float truncated to an integer."""
    return _convert(src, res_elem_type, True, signed is not False)


def fp_to_fp(src: Any, res_elem_type: Any, *, rounding_mode: Any = None) -> ArithValue:
    """Return a float converted to another float type."""
    from flydsl.expr.numeric.raw_value import typed

    return typed(raw_operand(src)).to(class_of_type(as_type(res_elem_type)), rounding_mode=rounding_mode).ir_value()


def _convert(src: Any, target_type: Any, source_signed: bool, target_signed: bool = True) -> ArithValue:
    x = raw_operand(src)
    source = _with_sign(class_of_type(element_type(x.type)), source_signed)
    target = _with_sign(class_of_type(element_type(as_type(target_type))), target_signed)
    n = x.type.shape[0] if isinstance(x.type, ir.VectorType) else 0
    trace = current()
    return ArithValue(emit_steps(trace, n, x, cast_steps(source, target), trace.loc(2)), target.signed)


def _with_sign(cls: type, signed: bool) -> type:
    return cls if signed or cls.is_float else CLASSES.get("U" + cls.__name__.lower(), cls)


def current_fastmath() -> FastMathFlags | None:
    """Return the ambient fast-math flags, None if there are none."""
    return None if ambient.flags is None else FastMathFlags(ambient.flags)


def resolve_fastmath(explicit: Any) -> FastMathFlags | None:
    """Return `explicit` flags if given, else the ambient ones."""
    bits = flag_bits(explicit)
    return current_fastmath() if bits is None else FastMathFlags(bits)


__all__ = [
    "ArithValue",
    "andi",
    "arith_const",
    "as_ir_value",
    "constant",
    "constant_vector",
    "current_fastmath",
    "dsl_loc_tracing",
    "element_type",
    "fastmath",
    "fp_to_fp",
    "fp_to_int",
    "index",
    "index_cast",
    "int_to_fp",
    "int_to_int",
    "is_float_type",
    "is_integer_like_type",
    "is_narrow_float_type",
    "recast_type",
    "resolve_fastmath",
    "select",
    "shli",
    "sitofp",
    "tracing_context",
    "tracing_option",
    "trunc_f",
    "unwrap",
    "xori",
]

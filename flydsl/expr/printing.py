"""`fx.printf`: one line per lane. Static values are put into the text while tracing, run-time values at their
placeholders.
"""

from __future__ import annotations

import re
from typing import Any

from flydsl.diag import PrintfPlaceholders, PrintfValue
from flydsl.expr.int_tuples import IntTuple
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Float32, Int32, Int64, Uint32, Uint64
from flydsl.expr.values import FlyValue, shown
from flydsl.ir import current, emit, ir


def printf(*args: Any, format_str: str = "") -> None:
    """Print a line: a format with one `{}` per value (`{{` and `}}` are braces), or values alone, separated by spaces.

    Raises   PrintfPlaceholders: placeholders and values differ in number; PrintfValue: a value made of several parts
             NotTracing: no kernel is being traced
    """
    current()  # attributes are made in its context
    values = list(args)
    if not format_str and values and isinstance(values[0], str):
        format_str = values.pop(0)
    if not format_str:
        format_str = " ".join(["{}"] * len(values))
    pieces = _pieces(format_str)
    if len(pieces) - 1 != len(values):
        raise PrintfPlaceholders(format_=format_str, placeholders=len(pieces) - 1, values=len(values))
    operands: list[ir.Value] = []
    text = _escaped(pieces[0])
    for value, piece in zip(values, pieces[1:], strict=True):
        text += _conversion(value, operands) + _escaped(piece)
    emit("gpu.printf", (), operands, {"format": ir.StringAttr.get(text + "\n")})


def _pieces(format_str: str) -> list[str]:
    """Return the texts between the placeholders `{}`; doubled braces are one, as in Python."""
    pieces = [""]
    for token in re.split(r"(\{\{|\}\}|\{\})", format_str):
        if token == "{}":
            pieces.append("")
        else:
            pieces[-1] += token[0] if token in ("{{", "}}") else token
    return pieces


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _conversion(value: Any, operands: list[ir.Value]) -> str:
    """Return what stands for `value` in the C format; the raw values that it takes are appended."""
    if isinstance(value, IntTuple) and value.is_leaf:
        value = value.to_py_value()
    if isinstance(value, Numeric) and value.is_static():
        value = value.value
    if value is None or isinstance(value, (str, bool, int, float, type)):
        return _escaped(value.__name__ if isinstance(value, type) else str(value))
    if hasattr(value, "numel"):
        return "[" + ", ".join(_scalar(value[i], operands) for i in range(value.numel)) + "]"
    if isinstance(value, FlyValue):
        if not value.is_static:
            raise PrintfValue(got=shown(value))
        return _escaped(str(value))
    if isinstance(value, (Numeric, ir.Value)):
        return _raw(value, operands)
    if hasattr(value, "__extract_to_ir_values__"):
        raise PrintfValue(got=shown(value))
    return _escaped(str(value))


def _raw(value: Any, operands: list[ir.Value]) -> str:
    if isinstance(value, ir.Value) and str(value.type).startswith("!llvm.ptr"):
        operands.append(value)
        return "%p"
    if isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
        from flydsl.expr.vector.core import Vector

        return _conversion(Vector(value), operands)
    return _scalar(from_python_value(value), operands)


def _scalar(x: Numeric, operands: list[ir.Value]) -> str:
    if x.is_float:
        operands.append(raw_scalar(x if x.width >= 32 else x.to(Float32)))
        return "%.2f"
    wide = x.width > 32
    target = (Int64 if wide else Int32) if x.signed or x.width == 1 else (Uint64 if wide else Uint32)
    operands.append(raw_scalar(x.to(target)))
    return ("%lld" if wide else "%d") if target.signed else ("%llu" if wide else "%u")

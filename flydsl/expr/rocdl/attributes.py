"""Compile-time arguments of rocdl instructions: Python numbers to MLIR attributes, cached per context."""

from typing import Any

from flydsl.diag import RocdlStatic
from flydsl.dialects.rocdl_enums import ENUMS, FLAGS, attribute_text
from flydsl.expr.rocdl.values import static_int
from flydsl.ir import current, ir
from flydsl.ir.context import Types

_WIDTHS = {"i1": 1, "i16": 16, "i32": 32}


def attribute(kind: str, value: Any, name: str, param: str) -> ir.Attribute:
    """Return the attribute of `kind` for `value`, which may be an attribute already.

    Raises   RocdlStatic: a run-time value, or one that the field cannot hold
    """
    if isinstance(value, ir.Attribute):
        return value
    if kind == "raw":
        return ir.ArrayAttr.get(list(value)) if isinstance(value, (list, tuple)) else _refuse_raw(value, name, param)
    number = static_int(value, name, param)
    memo = current().types.memo
    key = ("rocdl", kind, number)
    attr = memo.get(key)
    if attr is None:
        attr = memo[key] = _make(kind, number, name, param, current().types)
    return attr


def _make(kind: str, number: int, name: str, param: str, types: Types) -> ir.Attribute:
    if kind in _WIDTHS:
        width = _WIDTHS[kind]
        _check(-(1 << width - 1) <= number < 1 << width, number, f"{width}-bit integer", name, param)
        if kind == "i1":
            return ir.BoolAttr.get(bool(number), types.i1.context)
        low = number - (1 << width) if number >> (width - 1) > 0 else number
        return ir.IntegerAttr.get(types.by_name[kind], low)
    if kind in ENUMS:
        words = ENUMS[kind][1]
        _check(0 <= number < len(words), number, f"integer in [0, {len(words) - 1}]", name, param)
    else:
        words = FLAGS[kind][1]
        _check(0 <= number < 1 << len(words), number, f"bit mask in [0, {hex((1 << len(words)) - 1)}]", name, param)
    return ir.Attribute.parse(attribute_text(kind, number), types.i1.context)


def _check(holds: bool, number: int, expected: str, name: str, param: str) -> None:
    if not holds:
        raise RocdlStatic(name=name, param=param, expected=expected, got=number)


def _refuse_raw(value: Any, name: str, param: str) -> ir.Attribute:
    raise RocdlStatic(name=name, param=param, expected="MLIR attribute", got=type(value).__name__)

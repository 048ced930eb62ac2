"""Scalar classes of `fx`: Boolean, integers, floats, with operators, promotion, conversions and folding.

`base` the value model; `classes`, `elements` the types; `promote`, `rules`, `dispatch` the operators as tables;
`build` emits; `fold` computes on constants; `cast` converts; `raw_value` is the legacy raw value with
operators.
"""

from flydsl.expr.numeric.base import CLASSES, Float, Integer, Numeric, NumericMeta, class_of_type, raw, static, wrap
from flydsl.expr.numeric.cast import cast, from_python_value
from flydsl.expr.numeric.classes import (
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E5M2,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
)
from flydsl.expr.numeric.promote import common_class
from flydsl.expr.numeric.raw_value import ArithValue

as_numeric = from_python_value

__all__ = [
    "CLASSES",
    "ArithValue",
    "BFloat16",
    "Boolean",
    "Float",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "Float8E4M3FN",
    "Float8E4M3FNUZ",
    "Float8E5M2",
    "Float8E5M2FNUZ",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Index",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Integer",
    "Numeric",
    "NumericMeta",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
    "as_numeric",
    "cast",
    "class_of_type",
    "common_class",
    "from_python_value",
    "raw",
    "static",
    "wrap",
]

"""Values of constant vectors. The bindings hand out those of i1, i8 to i64, f32 and f64 only; the others are read from the printed form."""

import re

from flydsl.ir.bindings import ir

_TEXT = re.compile(r"dense<(.*)> : ", re.DOTALL)


def constant_elements(attr: "ir.Attribute") -> list:
    """Return the elements of a dense attribute of integers or floats, in order, as Python numbers."""
    dense = ir.DenseElementsAttr(attr)
    shaped = ir.ShapedType(dense.type)
    count = 1
    for extent in shaped.shape:
        count *= extent
    if dense.is_splat:
        return [_number(dense.get_splat_value(), shaped.element_type)] * count
    try:
        return list(attr)
    except TypeError:
        return [_parsed(text, shaped.element_type) for text in re.split(r"[\s,\[\]]+", _TEXT.match(str(attr)).group(1)) if text]


def _number(attr: object, element: "ir.Type") -> "int | float | bool":
    if isinstance(attr, (bool, int, float)):
        return attr
    return ir.FloatAttr(attr).value if isinstance(element, ir.FloatType) else ir.IntegerAttr(attr).value


def _parsed(text: str, element: "ir.Type") -> "int | float":
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr(ir.Attribute.parse(f"{text} : {element}", element.context)).value
    return int(text)

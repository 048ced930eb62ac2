"""Facts about element types, one row each: name in `fx`, MLIR spelling, width, signedness, NumPy type.

Imports no MLIR. `flydsl.atoms.elements` has the widths again by MLIR spelling for atoms; a test holds both
together.
"""

from flydsl.utils.record import record


@record
class Element:
    """One scalar type. `signed` is None for floats; signedness lives only here, MLIR integers have none."""

    name: str
    mlir: str
    width: int
    signed: bool | None
    numpy: str | None

    @property
    def is_float(self) -> bool:
        return self.signed is None

    @property
    def is_integer(self) -> bool:
        return self.signed is not None

    @property
    def log_width(self) -> int:
        """ceil(log2(width))."""
        return (self.width - 1).bit_length()


_ROWS = (
    Element("Boolean", "i1", 1, True, "bool"),
    Element("Int4", "i4", 4, True, "ml_dtypes.int4"),
    Element("Int8", "i8", 8, True, "int8"),
    Element("Int16", "i16", 16, True, "int16"),
    Element("Int32", "i32", 32, True, "int32"),
    Element("Int64", "i64", 64, True, "int64"),
    Element("Int128", "i128", 128, True, None),
    Element("Uint8", "i8", 8, False, "uint8"),
    Element("Uint16", "i16", 16, False, "uint16"),
    Element("Uint32", "i32", 32, False, "uint32"),
    Element("Uint64", "i64", 64, False, "uint64"),
    Element("Uint128", "i128", 128, False, None),
    Element("Index", "index", 64, False, "uint64"),
    Element("Float16", "f16", 16, None, "float16"),
    Element("BFloat16", "bf16", 16, None, "ml_dtypes.bfloat16"),
    Element("Float32", "f32", 32, None, "float32"),
    Element("Float64", "f64", 64, None, "float64"),
    Element("Float8E5M2", "f8E5M2", 8, None, "ml_dtypes.float8_e5m2"),
    Element("Float8E4M3FN", "f8E4M3FN", 8, None, "ml_dtypes.float8_e4m3fn"),
    Element("Float8E4M3FNUZ", "f8E4M3FNUZ", 8, None, "ml_dtypes.float8_e4m3fnuz"),
    Element("Float8E5M2FNUZ", "f8E5M2FNUZ", 8, None, "ml_dtypes.float8_e5m2fnuz"),
    Element("Float8E4M3B11FNUZ", "f8E4M3B11FNUZ", 8, None, "ml_dtypes.float8_e4m3b11fnuz"),
    Element("Float8E4M3", "f8E4M3", 8, None, "ml_dtypes.float8_e4m3"),
    Element("Float8E8M0FNU", "f8E8M0FNU", 8, None, "ml_dtypes.float8_e8m0fnu"),
    Element("Float6E2M3FN", "f6E2M3FN", 6, None, "ml_dtypes.float6_e2m3fn"),
    Element("Float6E3M2FN", "f6E3M2FN", 6, None, "ml_dtypes.float6_e3m2fn"),
    Element("Float4E2M1FN", "f4E2M1FN", 4, None, "ml_dtypes.float4_e2m1fn"),
)

ELEMENTS: dict[str, Element] = {row.name: row for row in _ROWS}


def numpy_type(element: Element) -> type | None:
    """Return the NumPy (or ml_dtypes) scalar type that holds the element, or None."""
    if element.numpy is None:
        return None
    if element.numpy.startswith("ml_dtypes."):
        import ml_dtypes

        return getattr(ml_dtypes, element.numpy.removeprefix("ml_dtypes."))
    import numpy

    return numpy.bool_ if element.numpy == "bool" else getattr(numpy, element.numpy)

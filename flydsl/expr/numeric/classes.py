"""The concrete scalar classes. Facts about each are in `elements`."""

from flydsl.expr.numeric.base import CLASSES, Float, Integer


class Boolean(Integer):
    """True or False, `i1`: result of comparisons. Joins arithmetic as Int32."""

    __slots__ = ()


class Int4(Integer):
    """4-bit signed integer; only for conversions and vectors, it cannot be stored alone."""

    __slots__ = ()


class Int8(Integer):
    """8-bit signed integer."""

    __slots__ = ()


class Int16(Integer):
    """16-bit signed integer."""

    __slots__ = ()


class Int32(Integer):
    """32-bit signed integer."""

    __slots__ = ()


class Int64(Integer):
    """64-bit signed integer."""

    __slots__ = ()


class Int128(Integer):
    """128-bit signed integer; not a launch argument."""

    __slots__ = ()


class Uint8(Integer):
    """8-bit unsigned integer."""

    __slots__ = ()


class Uint16(Integer):
    """16-bit unsigned integer."""

    __slots__ = ()


class Uint32(Integer):
    """32-bit unsigned integer."""

    __slots__ = ()


class Uint64(Integer):
    """64-bit unsigned integer."""

    __slots__ = ()


class Uint128(Integer):
    """128-bit unsigned integer; not a launch argument."""

    __slots__ = ()


class Index(Integer):
    """MLIR `index`, 64 bits at run time, for old kernels: prefer Int32 or Int64.

    Arithmetic with an Index gives an Index, unsigned at run time. A static Index is an unbounded Python int.
    """

    __slots__ = ()


class Float16(Float):
    """IEEE half precision."""

    __slots__ = ()


class BFloat16(Float):
    """bfloat16: the upper half of a Float32."""

    __slots__ = ()


class Float32(Float):
    """IEEE single precision."""

    __slots__ = ()


class Float64(Float):
    """IEEE double precision."""

    __slots__ = ()


class Float8E5M2(Float):
    """OCP bf8: 5 exponent bits, 2 mantissa bits, with infinities. A storage format."""

    __slots__ = ()


class Float8E4M3FN(Float):
    """OCP fp8: largest value 448, one NaN per sign, no infinity. A storage format; native on gfx950 and gfx12."""

    __slots__ = ()


class Float8E4M3FNUZ(Float):
    """fp8 of gfx942: bias 8, largest value 240, one NaN, no negative zero, no infinity. A storage format."""

    __slots__ = ()


class Float8E5M2FNUZ(Float):
    """bf8 of gfx942: bias 16, largest value 57344, one NaN, no negative zero, no infinity. A storage format."""

    __slots__ = ()


class Float8E4M3B11FNUZ(Float):
    """fp8 with bias 11. A storage format."""

    __slots__ = ()


class Float8E4M3(Float):
    """fp8 with IEEE rules: infinities and NaNs. A storage format."""

    __slots__ = ()


class Float8E8M0FNU(Float):
    """Power-of-two scale of a block: 2**(bits - 127), 0xFF is NaN. A storage format."""

    __slots__ = ()


class Float6E2M3FN(Float):
    """6-bit float, largest value 7.5. A packed storage format."""

    __slots__ = ()


class Float6E3M2FN(Float):
    """6-bit float, largest value 28. A packed storage format."""

    __slots__ = ()


class Float4E2M1FN(Float):
    """4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and negatives; two per byte, even index in the low half."""

    __slots__ = ()


CLASSES.update({cls.__name__: cls for cls in (*Integer.__subclasses__(), *Float.__subclasses__())})

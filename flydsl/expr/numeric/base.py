"""The scalar classes: a Python number known while tracing (static), or a run-time value.

A scalar holds `_payload`, a Python int or float or an SSA value, and the function body to which a run-time value
belongs, so that a value kept beyond its function raises our error instead of touching freed memory. Operators
are tables (`dispatch`, `rules`); conversions are in `cast`, folding in `fold`.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from flydsl.diag import DynamicAsInteger, DynamicAsPython, DynamicToPython, NotConvertible, StaleValue, UnknownIrType
from flydsl.expr.numeric.dispatch import binary, reflected
from flydsl.expr.numeric.elements import ELEMENTS, Element, numpy_type
from flydsl.ir import constant, current, get_types, ir
from flydsl.ir.trace import active

if TYPE_CHECKING:
    from flydsl.expr.fastmath import FlagsLike, RoundingMode
    from flydsl.expr.numeric.raw import ArithValue


class Outside:
    """Owner of run-time values that were wrapped while no function was being traced."""

    root = None


OUTSIDE = Outside()


class NumericMeta(type):
    """Class of the scalar classes: what depends on the thread's MLIR context or on NumPy is computed on access."""

    element: Element

    @property
    def ir_type(cls) -> ir.Type:
        """The MLIR type in this thread's context."""
        trace = active.trace
        return (get_types() if trace is None else trace.types).by_name[cls.element.mlir]

    @property
    def numpy_dtype(cls) -> type | None:
        """The NumPy or ml_dtypes scalar type, or None."""
        return numpy_type(cls.element)

    def __repr__(cls) -> str:
        return cls.__name__


class Numeric(metaclass=NumericMeta):
    """A scalar; see the concrete classes. `T(x)` converts `x`, which may be a number, a scalar or a raw value."""

    __slots__ = ("_payload", "_scope")
    __array_ufunc__ = None  # NumPy scalars on the left leave the operation to us

    element: ClassVar[Element]
    width: ClassVar[int]
    log_width: ClassVar[int]
    signed: ClassVar[bool | None]
    is_integer: ClassVar[bool] = False
    is_float: ClassVar[bool] = False
    zero: ClassVar[int | float]

    _payload: Any

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        element = ELEMENTS.get(cls.__name__)
        if element is not None:
            cls.element, cls.width, cls.log_width, cls.signed = (
                element,
                element.width,
                element.log_width,
                element.signed,
            )

    def __new__(cls, value: Any = None):
        if isinstance(value, ir.Value):
            check_raw(value)
            if isinstance(value.type, ir.VectorType):
                return _cast.vector_of(cls, value)  # a raw vector becomes a Vector of this class
        return _new(cls)

    def __init__(self, value: Any):
        _cast.convert_into(self, value)

    # --- what it holds -----------------------------------------------------------------------------------------

    @property
    def value(self) -> Any:
        """The Python number of a static value; the raw value of a run-time one, with operators.

        Raises   StaleValue, NotTracing: a run-time value whose function is not being traced
        """
        return self._payload if self._scope is None else self.ir_value()

    @property
    def dtype(self) -> type["Numeric"]:
        return self.__class__

    def is_static(self) -> bool:
        """Return whether the value is known while tracing."""
        return self._scope is None

    def ir_value(self) -> "ArithValue":
        """Return the raw value, with operators; a static value becomes a constant."""
        return _raw.raw_of_class(raw(self), self.__class__)

    @classmethod
    def from_python_value(cls, value: Any) -> "Numeric":
        """Return bool as Boolean, int as Int32 or Int64, float as Float32, a raw value by its type."""
        return _cast.from_python_value(value)

    @classmethod
    def from_ir_type(cls, type_: ir.Type) -> type["Numeric"]:
        """Return the class of an MLIR scalar type; integers without sign count as signed."""
        return class_of_type(type_)

    # --- conversions -------------------------------------------------------------------------------------------

    def to(self, dtype: Any, *, rounding_mode: "RoundingMode | None" = None) -> Any:
        """Return the value converted to a scalar class, to a Python type (static only) or to `ir.Value`."""
        return _cast.convert_to(self, dtype, rounding_mode)

    def bitcast(self, dtype: type["Numeric"]) -> "Numeric":
        """Return the same bits as another class of the same width."""
        return _cast.bitcast(self, dtype)

    def __bool__(self) -> bool:
        if self._scope is None:
            return bool(self._payload)
        raise DynamicAsPython(dtype=self.__class__.__name__, wanted="bool", advice=_BOOL_ADVICE)

    def __index__(self) -> int:
        if self._scope is None:
            return int(self._payload)
        raise DynamicAsInteger(dtype=self.__class__.__name__)

    __int__ = __index__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """NumPy asks for this where a scalar is an index or an element. A run-time value is one as an object only."""
        import numpy

        if self._scope is None:
            return numpy.array(self._payload, dtype)
        return _raw.array_of_objects(self, dtype, self.__class__.__name__)

    def __float__(self) -> float:
        if self._scope is None:
            return float(self._payload)
        raise DynamicAsPython(dtype=self.__class__.__name__, wanted="float", advice=_FLOAT_ADVICE)

    def __str__(self) -> str:
        return "?"

    def __repr__(self) -> str:
        shown = repr(self._payload) if self._scope is None else "?"
        return f"{self.__class__.__name__}({shown})"

    def __format__(self, spec: str) -> str:
        """Return a static value as Python formats it; a run-time value is `?`, whatever the format asks for."""
        return format(self._payload, spec) if self._scope is None and spec else str(self)

    def __hash__(self) -> int:
        return hash(self.__class__) ^ hash(self._payload)

    # --- operators ---------------------------------------------------------------------------------------------

    __add__, __radd__ = binary("+"), reflected("+")
    __sub__, __rsub__ = binary("-"), reflected("-")
    __mul__, __rmul__ = binary("*"), reflected("*")
    __truediv__, __rtruediv__ = binary("/"), reflected("/")
    __floordiv__, __rfloordiv__ = binary("//"), reflected("//")
    __mod__, __rmod__ = binary("%"), reflected("%")
    __pow__, __rpow__ = binary("**"), reflected("**")
    __and__, __rand__ = binary("&"), reflected("&")
    __or__, __ror__ = binary("|"), reflected("|")
    __xor__, __rxor__ = binary("^"), reflected("^")
    __lshift__, __rlshift__ = binary("<<"), reflected("<<")
    __rshift__, __rrshift__ = binary(">>"), reflected(">>")
    __lt__ = binary("<")
    __le__ = binary("<=")
    __gt__ = binary(">")
    __ge__ = binary(">=")
    __eq__ = binary("==")
    __ne__ = binary("!=")

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __neg__(self) -> "Numeric":
        return _unary.negate(self)

    def __pos__(self) -> "Numeric":
        return self

    def __invert__(self) -> "Numeric":
        return _unary.invert(self)

    def __abs__(self) -> "Numeric":
        return _unary.absolute(self)

    def select(self, true_value: Any, false_value: Any) -> Any:
        """Return `true_value` where this is true (not zero), else `false_value`; both are evaluated."""
        return _select.select(self, true_value, false_value)

    # --- named operations kept for older kernels ---------------------------------------------------------------

    def maximumf(self, other: Any, *, fastmath: "FlagsLike" = None) -> "Numeric":
        """Return the larger; NaN if one is NaN."""
        from flydsl.expr.arith import maximumf

        return maximumf(self, other, fastmath=fastmath)

    def minimumf(self, other: Any, *, fastmath: "FlagsLike" = None) -> "Numeric":
        """Return the smaller; NaN if one is NaN."""
        from flydsl.expr.arith import minimumf

        return minimumf(self, other, fastmath=fastmath)

    def exp2(self, *, fastmath: "FlagsLike" = None) -> "Numeric":
        """Return 2 to the power of the value."""
        from flydsl.expr.math import exp2

        return exp2(self, fastmath=fastmath)

    def addf(self, other: Any, *, fastmath: "FlagsLike" = None) -> "Numeric":
        """Return the sum, with its own fast-math flags."""
        from flydsl.expr.fastmath import fastmath as scope

        if fastmath is None:
            return self + other
        with scope(fastmath):
            return self + other

    def shrui(self, amount: Any) -> "Numeric":
        """Return the value shifted right, zeros coming in."""
        from flydsl.expr.arith import shrui

        return shrui(self, amount)

    def shuffle_xor(self, offset: Any, width: Any) -> "Numeric":
        """Return the value of the lane whose number differs by XOR `offset`."""
        from flydsl.expr.gpu import shuffle_xor

        return shuffle_xor(self, offset, width)

    # --- protocols: carry, storage, arguments ------------------------------------------------------------------

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [raw(self)]

    @classmethod
    def __construct_from_ir_values__(cls, values, exemplar=None) -> "Numeric":
        return wrap(cls, values[0])

    @classmethod
    def __get_ir_types__(cls) -> list[ir.Type]:
        return [cls.ir_type]

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return storage_bytes(cls)

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return storage_bytes(cls)

    @classmethod
    def __peek_from_ptr__(cls, pointer) -> "Numeric":
        from flydsl.expr.primitive import ptr_load

        storage_bytes(cls)
        return ptr_load(pointer, cls)

    @classmethod
    def __poke_into_ptr__(cls, pointer, value: Any) -> None:
        from flydsl.expr.primitive import ptr_store

        storage_bytes(cls)
        ptr_store(_cast.cast(_cast.from_python_value(value), cls), pointer)


_BOOL_ADVICE = (
    "inside a kernel write `if`, `while`, `and`, `or`, `not` directly on it (they become run-time control flow), use "
    "cond.select(a, b), or make it a compile-time value with fx.Constexpr"
)
_FLOAT_ADVICE = "write x.to(fx.Float32) to convert it at run time, or make it a compile-time value with fx.Constexpr"


class Integer(Numeric):
    """Parent of Boolean, the signed and unsigned integers, and Index."""

    __slots__ = ()
    is_integer = True
    zero = 0


class Float(Numeric):
    """Parent of the floating-point classes."""

    __slots__ = ()
    is_float = True
    zero = 0.0


def raw(x: Numeric) -> ir.Value:
    """Return the SSA value of a scalar; a static one becomes a constant of the function."""
    scope = x._scope
    trace = active.trace
    if scope is None:
        return static_constant(trace, x.element.mlir, x._payload)
    if trace is None or scope is not trace.scope:
        check_owner(x, trace)
    return x._payload


def static_constant(trace, mlir_name: str, payload: int | float) -> ir.Value:
    """Return the function's constant of this type and value."""
    if trace is None:
        trace = current()
    # The float key tells -0.0 from 0.0, which compare equal.
    key = (mlir_name, payload) if payload or payload.__class__ is int else (mlir_name, str(payload))
    constants = trace.scope.constants
    v = constants.get(key)
    if v is None:
        v = constants[key] = constant(trace.types.by_name[mlir_name], payload)
    return v


def wrap(cls: type[Numeric], value: ir.Value, scope: Any = None) -> Numeric:
    """Return a run-time scalar of class `cls` around a value of its type, unchecked. `scope`: its function, if at hand."""
    x = _new(cls)
    x._payload = value
    if scope is None:
        trace = active.trace
        scope = OUTSIDE if trace is None else trace.scope or OUTSIDE
    x._scope = scope
    return x


def static(cls: type[Numeric], payload: int | float) -> Numeric:
    """Return a static scalar around a payload that already fits the class."""
    x = _new(cls)
    x._payload = payload
    x._scope = None
    return x


_new = object.__new__


def check_owner(x: Any, trace) -> None:
    """Let a value wrapped outside any function join this one; refuse a value of another function."""
    current()
    if x._scope is not OUTSIDE:
        raise StaleValue(dtype=x.__class__.__name__)
    x._scope = trace.scope or OUTSIDE


def is_live_raw(v: ir.Value) -> bool:
    """Return whether a raw value is of the function being traced; reading the type of others ends the process.

    Only an `ArithValue` knows its function; a bare value of the bindings counts as live.
    """
    scope = getattr(v, "scope", None)
    return scope is None or (active.trace is not None and scope is active.trace.scope)


def check_raw(v: Any) -> None:
    """Refuse a raw value of another function."""
    if not is_live_raw(v):
        current()
        cls = getattr(v, "scalar_class", None)
        raise StaleValue(dtype="ArithValue" if cls is None else cls.__name__)


def class_of_type(type_: ir.Type) -> type[Numeric]:
    """Return the class of an MLIR scalar type; UnknownIrType for others."""
    types = get_types() if active.trace is None else active.trace.types
    memo = types.memo
    classes = memo.get("scalar classes")
    if classes is None:
        by_name = types.by_name
        names = {e.mlir: name for name, e in reversed(ELEMENTS.items())}
        classes = memo["scalar classes"] = {t: CLASSES[names[m]] for m, t in by_name.items() if m in names}
    cls = classes.get(type_)
    if cls is None:
        hint = "wrap vectors with fx.Vector(value)" if isinstance(type_, ir.VectorType) else "use a scalar type"
        raise UnknownIrType(type=type_, advice=hint)
    return cls


CLASSES: dict[str, type[Numeric]] = {}


def storage_bytes(cls: type[Numeric]) -> int:
    """Return the bytes that a scalar takes in memory; formats below a byte cannot be stored alone."""
    width = cls.width
    if cls.__name__ == "Boolean":
        return 1
    if width % 8:
        raise NotConvertible(
            value=cls.__name__, dtype="memory", advice="pack values narrower than a byte into fx.Uint8, or use a Vector"
        )
    return width // 8


def to_python(x: Numeric, wanted: type) -> Any:
    """Return a static scalar as Python `int`, `float` or `bool`."""
    if x._scope is not None:
        raise DynamicToPython(wanted=wanted.__name__)
    return wanted(x._payload)


# These modules need the classes above, whose methods call them.
from flydsl.expr.numeric import cast as _cast  # noqa: E402
from flydsl.expr.numeric import raw_value as _raw  # noqa: E402
from flydsl.expr.numeric import select as _select  # noqa: E402
from flydsl.expr.numeric import unary as _unary  # noqa: E402

"""`Vector`: a run-time value of n elements in registers, with a scalar class and a logical, possibly nested
shape.

Underneath it is a flat `vector<n x T>`; tuple indices are row-major (the last one is fastest). Operators follow
the same plans as scalars (`numeric.rules`), element by element. Neighbours: `elementwise` the operators,
`indexing`, `alias` the classes Float32x4 and the like.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flydsl.diag import StaleValue, UnknownElementType, VectorConstruction
from flydsl.expr.numeric import Numeric, NumericMeta, cast, class_of_type, from_python_value, raw
from flydsl.expr.numeric.base import OUTSIDE, check_raw
from flydsl.expr.numeric.build import result_types
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.vector.shape import Shape, canonical, numel_of
from flydsl.ir import current, ir
from flydsl.ir.trace import active, create_op

if TYPE_CHECKING:
    from flydsl.expr.fastmath import FlagsLike, RoundingMode


class Rebuilder:
    """`__construct_from_ir_values__` where instances know more than their class: an instance is its own exemplar."""

    def __get__(self, obj, cls):
        return lambda values, exemplar=None: cls._rebuild(values, obj if exemplar is None else exemplar)


class VectorMeta(type):
    """Class of Vector and its aliases; `ir_type` depends on the thread's MLIR context."""

    alias: "tuple[type[Numeric], Shape] | None" = None

    @property
    def ir_type(cls) -> ir.Type:
        """The MLIR type of an alias class, such as `vector<4xf32>`."""
        if cls.alias is None:
            raise AttributeError("Vector has no ir_type; an alias such as fx.Float32x4 has")
        dtype, shape = cls.alias
        return Vector.make_type(shape, dtype)

    def __repr__(cls) -> str:
        return cls.__name__


class Vector(metaclass=VectorMeta):
    """`Vector(value, shape=None, dtype=None)` wraps a raw vector or re-shapes another Vector.

    Raises   VectorConstruction: the shape or dtype does not fit the value
    """

    __slots__ = ("_scope", "_value", "dtype", "numel", "shape")
    __array_ufunc__ = None
    alias = None

    _value: ir.Value
    dtype: type[Numeric]
    shape: Shape
    numel: int

    def __init__(self, value: Any, shape: Any = None, dtype: type[Numeric] | None = None):
        check_raw(value)
        if isinstance(value, Vector):
            self._wrap(raw_vector(value), value.shape if shape is None else canonical(shape), dtype or value.dtype)
        elif isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
            n, own = _flat_type(value)
            if dtype is None and getattr(value, "signed", None) is False:
                own = unsigned(own)
            self._wrap(value, (n,) if shape is None else canonical(shape), dtype or own)
        else:
            got = getattr(value, "type", None) or type(value).__name__
            raise VectorConstruction(
                problem=f"cannot make a Vector from {got}",
                advice="use fx.Vector.from_elements(...) or fx.Vector.filled(...)",
            )
        self._check(value)

    def _wrap(self, value: ir.Value, shape: Shape, dtype: type[Numeric]) -> None:
        trace = active.trace
        self._scope = OUTSIDE if trace is None else trace.scope or OUTSIDE
        self._value, self.shape, self.dtype, self.numel = value, shape, dtype, numel_of(shape)

    def _check(self, value: Any) -> None:
        n, own = _flat_type(self._value)
        if n != self.numel:
            problem = f"shape {self.shape} has {self.numel} elements, but value has type {self._value.type}"
            raise VectorConstruction(problem=problem, advice="give a shape with as many elements")
        if self.dtype.element.mlir != own.element.mlir:
            problem = f"dtype {self.dtype.__name__} does not match vector element type {own.element.mlir}"
            raise VectorConstruction(
                problem=problem, advice="convert with .to(dtype), or reinterpret with .bitcast(dtype)"
            )

    # --- making vectors ----------------------------------------------------------------------------------------

    @staticmethod
    def make_type(shape: Any, dtype: type[Numeric]) -> ir.Type:
        """Return the flat MLIR vector type of a shape and scalar class."""
        from flydsl.ir import get_types

        trace = active.trace
        types = get_types() if trace is None else trace.types
        return types.vector(numel_of(canonical(shape)), types.by_name[dtype.element.mlir])

    @staticmethod
    def filled(shape: Any, fill_value: Any, dtype: type[Numeric]) -> "Vector":
        """Return a vector with all elements equal."""
        _check_dtype(dtype)
        shape = canonical(shape)
        n = numel_of(shape)
        return make(splat(fill_value, dtype, n), shape, dtype, n)

    @staticmethod
    def from_elements(elements: Sequence[Any], dtype: type[Numeric] | None = None) -> "Vector":
        """Return a 1-D vector; `dtype` defaults to the class of the first element, the others are converted."""
        if not hasattr(elements, "__iter__"):
            problem = f"Vector.from_elements takes a sequence, got {elements.__class__.__name__}"
            raise VectorConstruction(problem=problem, advice="put the elements into a list, or use Vector.filled")
        items = [e if isinstance(e, Numeric) else from_python_value(e) for e in elements]
        if not items:
            raise VectorConstruction(
                problem="Vector.from_elements requires at least one element", advice="give at least one element"
            )
        dtype = dtype or items[0].__class__
        _check_dtype(dtype)
        values = tuple(raw(item if item.__class__ is dtype else cast(item, dtype)) for item in items)
        return make(build("vector.from_elements", dtype, len(values), values), (len(values),), dtype, len(values))

    @staticmethod
    def filled_like(template: "Vector", fill_value: Any, dtype: type[Numeric] | None = None) -> "Vector":
        """Return a vector of the template's shape, all elements equal."""
        return Vector.filled(template.shape, fill_value, dtype or template.dtype)

    @staticmethod
    def zeros_like(template: "Vector", dtype: type[Numeric] | None = None) -> "Vector":
        """Return zeros in the template's shape."""
        return Vector.filled_like(template, 0, dtype)

    def __class_getitem__(cls, params: Any) -> type["Vector"]:
        from flydsl.expr.vector.alias import VectorAlias

        dtype, lanes = params
        return VectorAlias(dtype, lanes)

    # --- looking at them ---------------------------------------------------------------------------------------

    @property
    def value(self) -> ArithValue:
        """The raw vector value, with operators.

        Raises   StaleValue, NotTracing: the function of the value is not being traced
        """
        return self.ir_value()

    @property
    def element_type(self) -> type[Numeric]:
        return self.dtype

    @property
    def type(self) -> ir.Type:
        """The flat MLIR vector type."""
        return raw_vector(self).type

    @property
    def signed(self) -> bool:
        """Whether the elements are signed integers."""
        return bool(self.dtype.signed)

    def is_static(self) -> bool:
        return False

    def ir_value(self) -> ArithValue:
        """Return the raw vector value, with operators."""
        return ArithValue(raw_vector(self), self.dtype.signed)

    def __len__(self) -> int:
        return self.numel

    def __iter__(self) -> Iterator[Numeric]:
        return (self[i] for i in range(self.numel))

    def __repr__(self) -> str:
        return f"Vector({self.dtype.__name__}, {self.shape})"

    def __hash__(self) -> int:
        return hash(self.dtype) ^ hash(self.shape) ^ hash(self._value)

    def __bool__(self) -> bool:
        from flydsl.diag import DynamicAsPython

        advice = 'reduce it to one value first, for example mask.reduce("max"), or use mask.select(a, b)'
        raise DynamicAsPython(dtype=repr(self), wanted="bool", advice=advice)

    def __getitem__(self, index: Any) -> Any:
        return _indexing.get_item(self, index)

    # --- changing type and shape -------------------------------------------------------------------------------

    def to(self, dtype: Any, *, rounding_mode: "RoundingMode | None" = None) -> "Vector":
        """Return the elements converted to a scalar class."""
        return _convert.convert(self, dtype, rounding_mode)

    def bitcast(self, dtype: Any) -> "Vector":
        """Return the same bits as elements of another width, 1-D."""
        return _convert.bitcast(self, dtype)

    def reshape(self, shape: Any) -> "Vector":
        """Return the same elements under another shape."""
        shape = canonical(shape)
        if numel_of(shape) != self.numel:
            problem = f"expected reshaped size to match: {self.shape} -> {shape}"
            raise VectorConstruction(problem=problem, advice="give a shape with as many elements")
        return make(raw_vector(self), shape, self.dtype)

    def broadcast_to(self, target_shape: Any) -> "Vector":
        """Return the elements repeated along modes of size 1, to a shape of the same or a higher rank."""
        return _elementwise.broadcast_to(self, canonical(target_shape))

    def shuffle(self, other: "Vector", mask: Sequence[int]) -> "Vector":
        """Return the elements which `mask` picks from self followed by `other`, 1-D."""
        return _convert.shuffle(self, other, mask)

    def select(self, true_value: Any, false_value: Any) -> "Vector":
        """Return, lane by lane, `true_value` where this is not zero, else `false_value`."""
        return _select.select_vector(self, true_value, false_value)

    def with_signedness(self, signed: bool | None) -> ArithValue:
        """Return the raw value with a sign flag."""
        return ArithValue(raw_vector(self), signed)

    def reduce(
        self, op: Any, init_val: Any = None, reduction_profile: Any = None, *, fastmath: "FlagsLike" = None
    ) -> Any:
        """Return the elements combined: one scalar, or with a profile the modes marked None kept.

        `op` is "add", "mul", "max", "min" or a `ReductionOp`. Float max ignores NaN, float min propagates it.
        """
        return _reduce.reduce(self, op, init_val, reduction_profile, fastmath)

    # --- memory ------------------------------------------------------------------------------------------------

    @staticmethod
    def load(result_type: Any, memref: Any, indices: Sequence[Any]) -> "Vector":
        """Return a vector read from a plain memref at `indices`; `result_type` is a vector type or alias class."""
        return _memory.load(result_type, memref, indices)

    def store(self, memref: Any, indices: Sequence[Any], *, alignment: int | None = None) -> None:
        """Write the vector to a plain memref at `indices`."""
        _memory.store(self, memref, indices, alignment)

    # --- operators not in the tables ---------------------------------------------------------------------------

    def __neg__(self) -> "Vector":
        return _elementwise.negate(self)

    def __pos__(self) -> "Vector":
        return self

    def __invert__(self) -> "Vector":
        return _elementwise.invert(self)

    def __abs__(self) -> "Vector":
        return _elementwise.absolute(self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    # --- protocols ---------------------------------------------------------------------------------------------

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [raw_vector(self)]

    __construct_from_ir_values__ = Rebuilder()

    @classmethod
    def __poke_into_ptr__(cls, pointer: Any, value: Any) -> None:
        from flydsl.expr.primitive import ptr_store

        v = value if isinstance(value, Vector) else cls(value)
        stored_bytes(v.dtype, v.shape)
        ptr_store(v, pointer)

    @classmethod
    def _rebuild(cls, values: Sequence[ir.Value], exemplar: Any) -> "Vector":
        if isinstance(exemplar, Vector):
            return make(values[0], exemplar.shape, exemplar.dtype)
        if cls.alias is not None:
            return make(values[0], cls.alias[1], cls.alias[0])
        return Vector(values[0])


_new = object.__new__


def make(value: ir.Value, shape: Shape, dtype: type[Numeric], n: int = 0, scope: Any = None) -> Vector:
    """Return a Vector around a value of its flat type, unchecked. `n`, `scope`: its elements and function, if at hand."""
    v = _new(Vector)
    if scope is None:
        trace = active.trace
        scope = OUTSIDE if trace is None else trace.scope or OUTSIDE
    v._scope, v._value, v.shape, v.dtype, v.numel = scope, value, shape, dtype, n or numel_of(shape)
    return v


def raw_vector(v: Vector) -> ir.Value:
    """Return the SSA value; a value of another function is refused."""
    trace = active.trace
    if trace is None or v._scope is not trace.scope:
        current()
        if v._scope is not OUTSIDE:
            raise StaleValue(dtype=repr(v))
        v._scope = trace.scope or OUTSIDE
    return v._value


def splat(value: Any, dtype: type[Numeric], n: int) -> ir.Value:
    """Return `n` equal elements: one scalar, broadcast."""
    x = value if value.__class__ is dtype else from_python_value(value)
    return build("vector.broadcast", dtype, n, (raw(x if x.__class__ is dtype else cast(x, dtype)),))


def build(name: str, dtype: type[Numeric], n: int, operands: tuple, attrs: dict | None = None) -> ir.Value:
    """Build an op whose result is `n` elements of `dtype` (n = 0: one scalar), at the user's location."""
    trace = active.trace or current()
    loc = trace.locate(sys._getframe(1))
    return create_op(name, result_types(trace, dtype.element.mlir, n), operands, attrs, None, 0, loc, trace.ip).result


def _flat_type(value: ir.Value) -> tuple[int, type[Numeric]]:
    t = ir.VectorType(value.type)
    n = 1
    for extent in t.shape:
        n *= extent
    return n, class_of_type(t.element_type)


def stored_bytes(dtype: type[Numeric], shape: Shape) -> int:
    """Return the bytes that a vector takes in memory; bits that do not fill whole bytes cannot be stored."""
    bits = dtype.width * numel_of(shape)
    if bits % 8:
        problem = f"{numel_of(shape)} {dtype.__name__} fill {bits} bits, which cannot be stored"
        raise VectorConstruction(problem=problem, advice="choose a number of lanes whose bits fill whole bytes")
    return bits // 8


def unsigned(dtype: type[Numeric]) -> type[Numeric]:
    """Return the unsigned class of the same width, if there is one."""
    from flydsl.expr.numeric.cast import UNSIGNED

    return UNSIGNED.get(dtype, dtype)


def is_class(dtype: Any) -> bool:
    """Return whether `dtype` is a scalar class."""
    return isinstance(dtype, NumericMeta)


def _check_dtype(dtype: Any) -> None:
    if not is_class(dtype):
        raise UnknownElementType(subject="the dtype of a Vector", got=dtype if isinstance(dtype, type) else f"{dtype.__class__.__name__} {dtype}")


# These modules need Vector, whose methods call them.
from flydsl.expr.vector import convert as _convert  # noqa: E402
from flydsl.expr.vector import elementwise as _elementwise  # noqa: E402
from flydsl.expr.vector import indexing as _indexing  # noqa: E402
from flydsl.expr.vector import memory as _memory  # noqa: E402
from flydsl.expr.vector import named as _named  # noqa: E402, F401
from flydsl.expr.vector import reduction as _reduce  # noqa: E402
from flydsl.expr.vector import select as _select  # noqa: E402

"""`ArithValue`: a raw SSA value with operators, for kernels that work on raw values.

It is an `ir.Value`, so raw op builders take it. Operators are those of the scalar or vector class that the type
stands for. `signed` is the flag of an integer: True, False, or None where it is not known, as of every result of raw
operations; `ir_value()` of a scalar and `with_signedness` set it. The flag of the raw operand decides, of two raw ones
that of the left one: False compares and divides unsigned; True and None signed (an `index` divides unsigned all the
same); only True shifts right arithmetically.
"""

import sys
from typing import TYPE_CHECKING, Any

from flydsl.diag import DynamicInArray
from flydsl.expr.numeric.base import Numeric, check_raw, is_live_raw, raw, static, wrap
from flydsl.expr.numeric.cast import UNSIGNED, cast, raw_class
from flydsl.expr.numeric.classes import Index
from flydsl.expr.numeric.dispatch import MIRROR, binary, reflected
from flydsl.expr.numeric.fold import fit
from flydsl.expr.numeric.rules import single_op
from flydsl.ir import ir
from flydsl.ir.trace import active

if TYPE_CHECKING:
    from flydsl.expr.fastmath import FlagsLike


SIGNED = {unsigned: signed for signed, unsigned in UNSIGNED.items()}


def array_of_objects(value: Any, dtype: Any, name: str) -> Any:
    """Return an array of no dimension that holds a run-time value, where objects are wanted.

    Raises   DynamicInArray
    """
    import numpy

    if dtype is None or numpy.dtype(dtype) != object:
        raise DynamicInArray(dtype=name)
    found = numpy.empty((), object)
    found[()] = value
    return found


class ArithValue(ir.Value):
    """A raw value with operators. `ArithValue(v, signed=None)` wraps any raw value or anything with `ir_value()`."""

    __array_ufunc__ = None

    def __init__(self, v: Any, signed: bool | None = None):
        if not isinstance(v, ir.Value):
            signed = getattr(v, "signed", None) if signed is None else signed
            v = v.ir_value()
        check_raw(v)
        super().__init__(v)
        self.signed = signed
        self.scalar_class = None  # set where it is known, so that operators need not look the type up
        self.scope = None if active.trace is None else active.trace.scope

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """NumPy asks for this where a value is an index or an element."""
        return array_of_objects(self, dtype, str(self.type))

    def ir_value(self) -> "ArithValue":
        return self

    def is_static(self) -> bool:
        return False

    @property
    def dtype(self) -> Any:
        """The scalar class that the element type stands for."""
        return typed(self).dtype

    def with_signedness(self, signed: bool | None) -> "ArithValue":
        """Return the same value with another sign flag."""
        value = ArithValue(self)
        value.signed = signed
        return value

    def __hash__(self) -> int:
        return ir.Value.__hash__(self)

    def __repr__(self) -> str:
        return f"ArithValue(type={self.type if is_live_raw(self) else '?'})"

    def __str__(self) -> str:
        return "?"

    def __bool__(self) -> bool:
        return bool(typed(self))

    def __index__(self) -> int:
        return typed(self).__index__()

    __int__ = __index__

    def __float__(self) -> float:
        return float(typed(self))

    # Unary and named operations: done on the typed value, handed back raw.

    def __neg__(self) -> "ArithValue":
        return untyped(-typed(self))

    def __pos__(self) -> "ArithValue":
        return self

    def __invert__(self) -> "ArithValue":
        return untyped(~typed(self))

    def __abs__(self) -> "ArithValue":
        return untyped(abs(typed(self)))

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def to(self, dtype: Any, *, rounding_mode: Any = None) -> Any:
        """Return the value converted to a scalar class, as that class."""
        return typed(self).to(dtype, rounding_mode=rounding_mode)

    def select(self, true_value: Any, false_value: Any) -> "ArithValue":
        """Return `true_value` where this is not zero, else `false_value`."""
        return untyped(typed(self).select(typed(true_value), typed(false_value)))

    def bitcast(self, target_type: Any) -> "ArithValue":
        """Return the bits as another type of the same size."""
        return _arith().bitcast(target_type, self)

    def extf(self, target_type: Any, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return a float widened."""
        return _arith().extf(target_type, self, fastmath=fastmath)

    def truncf(self, target_type: Any, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return a float narrowed, rounded to nearest even."""
        return _arith().truncf(target_type, self, fastmath=fastmath)

    def extsi(self, target_type: Any) -> "ArithValue":
        """Return an integer widened with its sign."""
        return _arith().extsi(target_type, self)

    def extui(self, target_type: Any) -> "ArithValue":
        """Return an integer widened with zeros."""
        return _arith().extui(target_type, self)

    def trunci(self, target_type: Any) -> "ArithValue":
        """Return the low bits of an integer."""
        return _arith().trunci(target_type, self)

    def index_cast(self, target_type: Any) -> "ArithValue":
        """Return an integer as `index`, or an index as integer."""
        return _arith().index_cast(target_type, self)

    def shrui(self, amount: Any) -> "ArithValue":
        """Return the value shifted right, zeros coming in."""
        return untyped(_arith().shrui(typed(self), amount))

    def addf(self, other: Any, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return the float sum."""
        return _arith().addf(self, other, fastmath=fastmath)

    def maximumf(self, other: Any, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return the larger; NaN if one is NaN."""
        return untyped(_arith().maximumf(typed(self), typed(other), fastmath=fastmath))

    def minimumf(self, other: Any, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return the smaller; NaN if one is NaN."""
        return untyped(_arith().minimumf(typed(self), typed(other), fastmath=fastmath))

    def rsqrt(self, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return the reciprocal square root."""
        return untyped(_math().rsqrt(typed(self), fastmath=fastmath))

    def exp2(self, *, fastmath: "FlagsLike" = None) -> "ArithValue":
        """Return 2 to the power of the value."""
        return untyped(_math().exp2(typed(self), fastmath=fastmath))

    def shuffle_xor(self, offset: Any, width: Any) -> "ArithValue":
        """Return the value of the lane whose number differs by XOR `offset`."""
        return untyped(typed(self).shuffle_xor(offset, width))

    def __getitem__(self, index: Any) -> "ArithValue":
        """Return an element of a raw vector."""
        return untyped(typed(self)[index])

    # Protocol: a raw value crosses control flow as itself.

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [self]

    @classmethod
    def __construct_from_ir_values__(cls, values, exemplar=None) -> "ArithValue":
        return cls(values[0], getattr(exemplar, "signed", None))


_new = ArithValue.__new__
_init = ir.Value.__init__


def raw_of_class(v: ir.Value, cls: Any) -> ArithValue:
    """Return a raw scalar whose class is known, with its sign."""
    r = _new(ArithValue)
    _init(r, v)
    r.signed, r.scalar_class, r.scope = cls.signed, cls, active.trace.scope
    return r


def _result_of_class(v: ir.Value, cls: Any, scope: Any) -> ArithValue:
    """Return the raw result of an operation: its sign is not known."""
    r = _new(ArithValue)
    _init(r, v)
    r.signed, r.scalar_class, r.scope = None, SIGNED.get(cls, cls), scope
    return r


def typed(v: Any) -> Any:
    """Return a raw value as the scalar or Vector that its type stands for; numbers and DSL values stay."""
    check_raw(v)
    if v.__class__ is ArithValue and v.scalar_class is not None:
        x = object.__new__(v.scalar_class)
        x._payload, x._scope = v, v.scope
        return x
    if not isinstance(v, ir.Value):
        return v
    if isinstance(v.type, ir.VectorType):
        from flydsl.expr.vector import Vector

        return Vector(v)
    return wrap(raw_class(v), v)


def untyped(x: Any) -> ArithValue:
    """Return the DSL value of a result as a raw value: its sign is not known."""
    if isinstance(x, Numeric):
        return _result_of_class(raw(x), x.__class__, active.trace.scope)
    value = x.ir_value()
    value.signed = None
    return value


def _of_sign(x: Any, signed: bool) -> Any:
    """Return an integer scalar as the class of its width with that sign, its bits as they are; others as they are."""
    cls = x.__class__
    target = (SIGNED if signed else UNSIGNED).get(cls)
    if target is None:
        return x
    return static(target, fit(target, x._payload)) if x._scope is None else wrap(target, raw(x))


def _are_indices(x: ArithValue, a: Any, b: Any) -> bool:
    """Whether a raw `index` meets an integer: their quotient is an index."""
    return isinstance(x.type, ir.IndexType) and all(y.__class__ is int or (isinstance(y, Numeric) and y.is_integer) for y in (a, b))


def _operator(symbol: str, reverse: bool):
    apply = binary(symbol)
    operator_of_quotient = _operator("//", reverse) if symbol == "/" else None
    compares = symbol in MIRROR

    def operator(self, other):
        if other.__class__ is ArithValue:
            result = _in_one_op(symbol, other, self) if reverse else _in_one_op(symbol, self, other)
            if result is not None:
                return result
        if other is None or isinstance(other, (str, list, tuple, dict)):
            return NotImplemented
        a, b = (typed(other), typed(self)) if reverse else (typed(self), typed(other))
        if symbol == ">>" and self.signed is not True:
            return untyped(_arith().shrui(a, b))
        if a.__class__ is Index or b.__class__ is Index:
            if not reverse and b.__class__ is Index and a.__class__ in SIGNED.values():
                b = cast(b, a.__class__)  # an index joins the integer to its left
            elif compares and self.signed is None and all(isinstance(x, int) or getattr(x, "is_integer", False) for x in (a, b)):
                return _arith().cmpi(_SIGNED_PREDICATES[symbol], Index(a), Index(b))
        if a.__class__ is not Index:
            a, b = _of_sign(a, self.signed is not False), _of_sign(b, self.signed is not False)
        if symbol == "/" and _are_indices(self, a, b):  # kernels divide raw thread numbers so
            return operator_of_quotient(self, other)
        result = apply(a, b) if isinstance(a, Numeric) else NotImplemented
        if result is NotImplemented:
            result = _apply(symbol, a, b)
        return result if result is NotImplemented else untyped(result)

    return operator


def _in_one_op(symbol: str, a: ArithValue, b: ArithValue) -> ArithValue | None:
    """Return `a <symbol> b` for scalars of known classes of the function being traced, if it is one op; else None."""
    left, right, scope, trace = a.scalar_class, b.scalar_class, a.scope, active.trace
    if left is None or right is None or scope is None or scope is not b.scope or trace is None or scope is not trace.scope:
        return None
    if left is not right or left is Index or (symbol == ">>" and a.signed is not True):
        return None
    found = single_op(symbol, left, right)
    if found is None:
        return None
    op, result = found
    return _result_of_class(op(trace, a, b, scope.locate(sys._getframe(2))), result, scope)


def _apply(symbol: str, a: Any, b: Any) -> Any:
    if isinstance(a, (int, float)):
        return reflected(symbol)(b, a) if isinstance(b, Numeric) else _elementwise(symbol, a, b)
    return _elementwise(symbol, a, b)


def _elementwise(symbol: str, a: Any, b: Any) -> Any:
    from flydsl.expr.vector import elementwise

    return elementwise(symbol, a, b) if hasattr(a, "numel") or hasattr(b, "numel") else NotImplemented


_SIGNED_PREDICATES = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
OPERATOR_NAMES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
}


# What the bindings read from memory that is gone with the module of the value.
_FACTS = ("type", "owner", "uses", "location")
_ACTIONS = ("dump", "get_name", "maybe_downcast", "replace_all_uses_except", "replace_all_uses_with", "set_type")


def check_readable(v: ArithValue) -> None:
    """Refuse a value whose memory is gone: its function is not being traced, and its module belongs to the trace."""
    if v.scope is not None and not v.scope.outlives_trace:
        check_raw(v)


def _guarded_fact(name: str) -> property:
    read = getattr(ir.Value, name).__get__

    def fact(self: ArithValue) -> Any:
        check_readable(self)
        return read(self)

    return property(fact, doc=f"`{name}` of the value; StaleValue or NotTracing where its function is not being traced.")


def _guarded_action(name: str) -> Any:
    act = getattr(ir.Value, name)

    def action(self: ArithValue, *args: Any, **kwargs: Any) -> Any:
        check_readable(self)
        return act(self, *args, **kwargs)

    action.__name__, action.__doc__ = name, act.__doc__
    return action


def _install() -> None:
    for name in _FACTS:
        setattr(ArithValue, name, _guarded_fact(name))
    for name in _ACTIONS:
        setattr(ArithValue, name, _guarded_action(name))
    for symbol, name in OPERATOR_NAMES.items():
        setattr(ArithValue, f"__{name}__", _operator(symbol, reverse=False))
        if symbol not in MIRROR:
            setattr(ArithValue, f"__r{name}__", _operator(symbol, reverse=True))


_install()


def _arith():
    from flydsl.expr import arith

    return arith


def _math():
    from flydsl.expr import math

    return math

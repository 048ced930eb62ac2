"""Leaves of integer tuples and all arithmetic on them: static ints, dynamic `Sym`, coordinate
`Basis`.

Every operation of the algebra goes through the functions here, so the same code serves type
inference
(Sym without payload), symbolic tests (payload = Python int) and IR emission (payload = IR value).
Neighbours: `int_tuple` lifts these functions to nested tuples. Does not know tuples or layouts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import gcd
from typing import Any, Protocol

from .errors import BasisMismatch, DivisionByZero, NotDivisible, OperandType


class Payloads:
    """Whether this process has made any payload: before the first one nothing needs to look for them."""

    made = False


class Sym:
    """A dynamic leaf: `width` bits (32 or 64), known to be a multiple of `div`; `value` is an
    opaque payload.

    Two Syms are equal when width and div agree and they carry the same payload object.
    """

    __slots__ = ("width", "div", "value")
    __match_args__ = ("width", "div", "value")

    def __init__(self, width: int = 32, div: int = 1, value: Any = None):
        if width not in (32, 64):
            raise OperandType(f"a dynamic leaf has 32 or 64 bits, not {width}")
        _sym_width(self, width)
        _sym_div(self, div)
        _sym_value(self, value)
        if value is not None:
            Payloads.made = True

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Sym is immutable, cannot set {name}")

    def __reduce__(self) -> tuple:
        return Sym, (self.width, self.div, self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Sym and self.div == other.div and self.width == other.width and self.value is other.value

    def __hash__(self) -> int:
        return hash((self.width, self.div, None if self.value is None else id(self.value)))

    def __str__(self) -> str:
        parts = (["i64"] if self.width == 64 else []) + ([f"div={self.div}"] if self.div != 1 else [])
        return "?{" + " ".join(parts) + "}" if parts else "?"

    def __repr__(self) -> str:
        payload = "" if self.value is None else f", value={self.value!r}"
        return f"Sym({self.width}, {self.div}{payload})"


_sym_width, _sym_div, _sym_value = Sym.width.__set__, Sym.div.__set__, Sym.value.__set__


class Basis:
    """A coordinate leaf: `value` times the unit coordinate at path `modes`, outermost mode
    first.
    """

    __slots__ = ("value", "modes")
    __match_args__ = ("value", "modes")

    def __init__(self, value: Any, modes: Any):
        modes = (modes,) if type(modes) is int else tuple(modes)
        if not modes or any(type(m) is not int or m < 0 for m in modes):
            raise BasisMismatch(f"basis modes must be non-negative ints, got {modes}")
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "modes", modes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Basis is immutable, cannot set {name}")

    def __reduce__(self) -> tuple:
        return Basis, (self.value, self.modes)

    def __eq__(self, other: object) -> bool:
        return type(other) is Basis and self.modes == other.modes and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value, self.modes, "E"))

    def __str__(self) -> str:
        return str(self.value) + "".join(f"E{m}" for m in self.modes)

    def __repr__(self) -> str:
        return f"Basis({self.value!r}, {self.modes!r})"

    def __mul__(self, other: Any) -> Any:
        return mul(self, other)

    __rmul__ = __mul__


Leaf = int | Sym | Basis | None


class Builder(Protocol):
    """What makes payloads of results: one method, called with payloads or Python ints as
    operands.
    """

    def binary(self, op: str, lhs: Any, rhs: Any, width: int) -> Any:
        """Return the payload of `lhs op rhs`.

        op is one of add sub mul div mod ceil_div min lt eq and xor shl shr. div and mod round
        toward zero.
        width is that of the wider leaf: operands may be narrower (extend them, signed) or
        Python ints. lt and
        eq give truth values, on which `and` may be asked for too.
        """


class PythonBuilder:
    """The builder in force by default: applies Python operators to payloads (exact for Python
    ints).
    """

    def binary(self, op: str, lhs: Any, rhs: Any, width: int) -> Any:
        return _PYTHON[op](lhs, rhs)


def _trunc_div(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return int_div(a, b)
    return a // b


def _trunc_mod(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a - b * int_div(a, b)
    return a % b


_PYTHON = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _trunc_div,
    "mod": _trunc_mod,
    "ceil_div": lambda a, b: -(-a // b),
    "min": lambda a, b: min(a, b),
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}


class _InForce(threading.local):
    """The builder of each thread: kernels are compiled in several at once."""

    builder: Builder = PythonBuilder()


_in_force = _InForce()


def current_builder() -> Builder:
    """Return the builder in force."""
    return _in_force.builder


@contextmanager
def use_builder(builder: Builder) -> Iterator[None]:
    """Make payloads of results with `builder` inside the block."""
    previous, _in_force.builder = _in_force.builder, builder
    try:
        yield
    finally:
        _in_force.builder = previous


def set_builder(builder: Builder) -> Builder:
    """Install `builder` in this thread until further notice and return the previous one."""
    previous, _in_force.builder = _in_force.builder, builder
    return previous


def int_div(a: int, b: int) -> int:
    """Return a / b rounded toward zero."""
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


def emit(op: str, a: Any, b: Any, width: int, div: int) -> Sym:
    """Return the dynamic leaf `a op b` of given width and div, with a payload when both sides
    have one.
    """
    lhs = a.value if type(a) is Sym else a
    rhs = b.value if type(b) is Sym else b
    if lhs is None or rhs is None:
        return Sym(width, div)
    return Sym(width, div, _in_force.builder.binary(op, lhs, rhs, width))


def _dynamic(op: str, a: Any, b: Any) -> tuple[int, int, int]:
    """Return (width of the result, div of a, div of b), or refuse leaves that are not numbers."""
    ta, tb = type(a), type(b)
    if ta is Sym:
        if tb is Sym:
            return max(a.width, b.width), a.div, b.div
        if tb is int:
            return a.width, a.div, b
    elif tb is Sym and ta is int:
        return b.width, a, b.div
    if ta is Basis or tb is Basis:
        raise BasisMismatch(f"{op} is not defined between {a} and {b}")
    raise OperandType(f"{op} needs integer leaves, got {type(a).__name__} and {type(b).__name__}")


def is_static(x: Any) -> bool:
    """Return whether a leaf is a Python int."""
    return type(x) is int


def is_value(x: Any, value: int) -> bool:
    """Return whether a leaf is the static number `value`."""
    return type(x) is int and x == value


def add(a: Any, b: Any) -> Any:
    """Return a + b; div is the greatest common divisor; adding static 0 changes nothing."""
    if type(a) is int and type(b) is int:
        return a + b
    if b is None or type(b) is int and b == 0:
        return 0 if a is None else a
    if a is None or type(a) is int and a == 0:
        return b
    if type(a) is Basis and type(b) is Basis and a.modes == b.modes:
        return Basis(add(a.value, b.value), a.modes)
    width, da, db = _dynamic("add", a, b)
    return emit("add", a, b, width, gcd(da, db))


def sub(a: Any, b: Any) -> Any:
    """Return a - b; div is the greatest common divisor."""
    if type(a) is int and type(b) is int:
        return a - b
    if b is None or type(b) is int and b == 0:
        return 0 if a is None else a
    if a is None:
        return sub(0, b)
    width, da, db = _dynamic("sub", a, b)
    return emit("sub", a, b, width, gcd(da, db))


def mul(a: Any, b: Any) -> Any:
    """Return a * b; divs multiply; static 0 and 1 fold; an integer scales a basis leaf, which
    keeps its path even at 0.
    """
    ta, tb = type(a), type(b)
    if ta is int and tb is int:
        return a * b
    if ta is Basis:
        if tb is Basis:
            raise BasisMismatch(f"mul is not defined between {a} and {b}")
        return Basis(mul(a.value, b), a.modes)
    if tb is Basis:
        return Basis(mul(a, b.value), b.modes)
    if a is None or b is None:
        return 0
    if ta is int:
        if a == 0:
            return 0
        if a == 1:
            return b
    elif tb is int:
        if b == 0:
            return 0
        if b == 1:
            return a
    width, da, db = _dynamic("mul", a, b)
    return emit("mul", a, b, width, da * db)


def div(a: Any, b: Any) -> Any:
    """Return a / b rounded toward zero; nothing is known about the div of a dynamic result."""
    a = 0 if a is None else a
    _refuse_zero("div", a, b)
    if type(a) is int and type(b) is int:
        return int_div(a, b)
    if type(b) is int and b == 1 and type(a) is Sym:
        return Sym(a.width, 1, a.value)
    if type(a) is int and a == 0 and type(b) is Sym:
        return 0
    width, _, _ = _dynamic("div", a, b)
    return emit("div", a, b, width, 1)


def mod(a: Any, b: Any) -> Any:
    """Return a - b * (a / b), so with the sign of a; div is the greatest common divisor; mod 1
    is 0.
    """
    a = 0 if a is None else a
    _refuse_zero("mod", a, b)
    if type(a) is int and type(b) is int:
        return a - b * int_div(a, b)
    if type(b) is int and b == 1 and type(a) is Sym:
        return 0
    if type(a) is int and a == 0 and type(b) is Sym:
        return 0
    width, da, db = _dynamic("mod", a, b)
    return emit("mod", a, b, width, gcd(da, db))


def ceil_div(a: Any, b: Any) -> Any:
    """Return a / b rounded up; a basis leaf keeps its path; 0 and 1 over a (positive) dynamic
    leaf fold.
    """
    ta, tb = type(a), type(b)
    if b is None or tb is int and b == 0:
        _refuse_zero("ceil_div", a, b)
    if a is None:
        if tb is Sym:
            return None
        a, ta = 0, int
    if ta is int and tb is int:
        return -(-a // b)
    if ta is int and tb is Sym and 0 <= a <= 1:
        return a
    if ta is Basis and tb is not Basis:
        return Basis(ceil_div(a.value, b), a.modes)
    if tb is int and b == 1 and ta is Sym:
        return Sym(a.width, 1, a.value)
    width, _, _ = _dynamic("ceil_div", a, b)
    return emit("ceil_div", a, b, width, 1)


def shape_div(a: Any, b: Any) -> Any:
    """Return ceil(a / b) where one static number must divide the other."""
    if type(a) is int and type(b) is int and b and a:
        if a % b and b % a:
            raise NotDivisible(f"neither of {a} and {b} divides the other", a=a, b=b)
    return ceil_div(a, b)


def _refuse_zero(op: str, a: Any, b: Any) -> None:
    if b is None or type(b) is int and b == 0:
        raise DivisionByZero(f"{op} of {a} by zero")


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller leaf."""
    if type(a) is int and type(b) is int:
        return a if a < b else b
    width, da, db = _dynamic("min", a, b)
    return emit("min", a, b, width, gcd(da, db))


def less(a: Any, b: Any) -> Any:
    """Return a < b: a bool, or a Sym (width and div meaningless) when decided at run time."""
    if type(a) is int and type(b) is int:
        return a < b
    width, _, _ = _dynamic("less", a, b)
    return emit("lt", a, b, width, 1)


def equal(a: Any, b: Any) -> Any:
    """Return a == b: a bool, or a Sym when decided at run time."""
    if type(a) is Sym and type(b) in (int, Sym) or type(b) is Sym and type(a) is int:
        return emit("eq", a, b, _dynamic("equal", a, b)[0], 1)
    return type(a) is type(b) and a == b


def both(a: Any, b: Any) -> Any:
    """Return the conjunction of two truth values, folding bools."""
    if type(a) is bool:
        return b if a else False
    if type(b) is bool:
        return a if b else False
    return emit("and", a, b, 32, 1)


def bits(op: str, a: Any, b: Any, div: int = 1) -> Any:
    """Return a bit operation (and or xor shl shr) on two leaves; div of a dynamic result as
    given.
    """
    if type(a) is int and type(b) is int:
        return _PYTHON[op](a, b)
    width, _, _ = _dynamic(op, a, b)
    return emit(op, a, b, width, div)

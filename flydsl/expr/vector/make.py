"""`full` and its relatives: vectors with all elements equal."""

from typing import Any

from flydsl.expr.numeric import Numeric
from flydsl.expr.vector.core import Vector


def full(shape: Any, fill_value: Any, dtype: type[Numeric]) -> Vector:
    """Return a vector of `shape` with all elements equal."""
    return Vector.filled(shape, fill_value, dtype)


def full_like(a: Vector, fill_value: Any, dtype: type[Numeric] | None = None) -> Vector:
    """Return a vector of a's shape with all elements equal."""
    return Vector.filled_like(a, fill_value, dtype)


def zeros_like(a: Vector, dtype: type[Numeric] | None = None) -> Vector:
    """Return zeros in a's shape."""
    return full_like(a, 0, dtype)


def ones_like(a: Vector, dtype: type[Numeric] | None = None) -> Vector:
    """Return ones in a's shape."""
    return full_like(a, 1, dtype)


def empty_like(a: Vector, dtype: type[Numeric] | None = None) -> Vector:
    """Return a vector of a's shape to be overwritten: zeros, since registers have no uninitialised state here."""
    return full_like(a, 0, dtype)

"""Three-dimensional ids and sizes, `.x .y .z`, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Int32


class Tuple3D:
    """`factory("x")` gives the raw value of a dimension; attributes and unpacking give scalars of `dtype`."""

    __slots__ = ("_dtype", "_factory")

    def __init__(self, factory: Callable[[str], Any], dtype: type[Numeric] = Int32):
        self._factory = factory
        self._dtype = dtype

    def __getattr__(self, name: str) -> Any:
        if name not in ("x", "y", "z"):
            raise AttributeError(f"Tuple3D has x, y and z, not {name!r}")
        value = self._factory(name)
        return value if value.__class__ is self._dtype else self._dtype(value)

    def __getitem__(self, i: int) -> Any:
        return getattr(self, "xyz"[i])

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.y, self.z))

    def __len__(self) -> int:
        return 3

"""Frozen dataclasses that are made in half the time: their comparison, hash and text are shared, not generated.

Importing the package makes some fifty of them, and each method that `dataclass` generates is compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable:
        return lambda function: function


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` what `dataclass(frozen=True)` makes it. Methods that `cls` itself defines stay."""
    made = dataclass(frozen=True, eq=False, repr=False)(cls)
    names = [f.name for f in fields(made) if f.compare]
    key = attrgetter(*names) if names else _no_fields
    _add(made, "__eq__", _equal_by(key))
    _add(made, "__hash__", _hash_by(key))
    _add(made, "__repr__", _repr)
    return made


def _add(cls: type, name: str, method: Callable) -> None:
    if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
        setattr(cls, name, method)


def _no_fields(_: Any) -> tuple:
    return ()


def _equal_by(key: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash_by(key: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(key(self))

    return __hash__


def _repr(self: Any) -> str:
    parts = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({parts})"

"""Frozen dataclasses that are made in a sixth of the time: only their `__init__` is generated, everything else is shared.

Importing the package makes some fifty of them, and each method that `dataclass` generates is compiled anew (0.1 ms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable:
        return lambda function: function


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` what `dataclass(frozen=True)` makes it. Methods that `cls` itself defines stay; it inherits from records only."""
    made = dataclass(init=False, eq=False, repr=False)(cls)
    names = [f.name for f in fields(made) if f.compare]
    key = attrgetter(*names) if names else _no_fields
    _add(made, "__init__", _initializer(made))
    _add(made, "__eq__", _equal_by(key))
    _add(made, "__hash__", _hash_by(key))
    _add(made, "__repr__", _repr)
    made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
    return made


def is_frozen(cls: type) -> bool:
    """Return whether a dataclass is frozen, made by `record` or by `dataclass`."""
    return cls.__setattr__ is _refuse_assignment or cls.__dataclass_params__.frozen


def _add(cls: type, name: str, method: Callable) -> None:
    if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
        setattr(cls, name, method)


def _initializer(cls: type) -> Callable[..., None]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, body = ["self"], []
    for f in sorted((f for f in fields(cls) if f.init), key=lambda f: f.kw_only):
        if f.kw_only and "*" not in parameters:
            parameters.append("*")
        parameters.append(_parameter(f, names))
        value = f"_{f.name}() if {f.name} is _missing else {f.name}" if f.default_factory is not MISSING else f.name
        body.append(f"_set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), names)
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in fields(cls) if f.init} | {"return": None}
    return init


def _parameter(f: Field, names: dict[str, Any]) -> str:
    """Return one parameter of `__init__`; what its default refers to goes into `names`."""
    if f.default_factory is not MISSING:
        names[f"_{f.name}"] = f.default_factory
        return f"{f.name}=_missing"
    if f.default is MISSING:
        return f.name
    names[f"_{f.name}"] = f.default
    return f"{f.name}=_{f.name}"


def _refuse_assignment(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


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

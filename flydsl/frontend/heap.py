"""Python objects that traced code changes in place: what they hold before a branch, put back, and changed to
the merged content.

Tracing runs both branches of a run-time `if`, one after the other, on the same Python objects. So the content
of the lists, dicts and objects that a branch can reach is remembered before it, and put back before the other
branch is traced.
"""

import dataclasses
import sys
from collections.abc import Iterable
from functools import partial
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from flydsl.utils.record import is_frozen

_NONE, _LIST, _DICT, _OBJECT = range(4)
_kinds: dict[type, int] = {list: _LIST, dict: _DICT, SimpleNamespace: _OBJECT}
_CONTAINING = (tuple, FunctionType, partial)  # not changed themselves
_LIMIT = 256  # objects followed from the variables of one branch
_FOREIGN = frozenset(sys.stdlib_module_names) | {
    "flydsl",
    "numpy",
    "torch",
    "torch_mlir",
    "llvmlite",
    "ml_dtypes",
    "jax",
    "pytest",
}


def mutability(value: Any) -> int:
    """Return how the content of an object is read and replaced; 0 for objects that are not followed."""
    cls = value.__class__
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _mutability_of(cls)
    return kind


def _mutability_of(cls: type) -> int:
    if issubclass(cls, list):
        return _LIST
    if issubclass(cls, dict):
        return _DICT
    if issubclass(cls, (type, ModuleType, FunctionType, MethodType, tuple)) or not hasattr(cls, "__dict__"):
        return _NONE
    if dataclasses.is_dataclass(cls) and is_frozen(cls):
        return _NONE
    foreign = cls.__module__.split(".")[0] in _FOREIGN
    return _NONE if foreign or not cls.__dictoffset__ else _OBJECT


def _contained(obj: Any) -> Iterable:
    """Return what can be changed through an object that is not changed itself: elements, variables of a closure."""
    cls = obj.__class__
    if cls is tuple:
        return obj
    if cls is partial:
        return (obj.func, *obj.args, *obj.keywords.values())
    return [cell.cell_contents for cell in obj.__closure__ or () if not _is_empty(cell)]


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def content(obj: Any, kind: int) -> Any:
    """Return a shallow copy of what an object holds."""
    if kind == _LIST:
        return list(obj)
    return dict(obj) if kind == _DICT else dict(obj.__dict__)


def put(obj: Any, kind: int, new: Any) -> None:
    """Replace what an object holds."""
    if kind == _LIST:
        obj[:] = new
        return
    target = obj if kind == _DICT else obj.__dict__
    target.clear()
    target.update(new)


def same_content(a: Any, b: Any) -> bool:
    """Return whether two copies hold the very same objects under the same keys."""
    if a.__class__ is list:
        return len(a) == len(b) and all(x is y for x, y in zip(a, b))
    return a.keys() == b.keys() and all(b[k] is v for k, v in a.items())


class Cell:
    """One object: `before` and `then` are copies of its content."""

    __slots__ = ("before", "kind", "name", "obj", "then")

    def __init__(self, name: str, obj: Any, kind: int):
        self.name, self.obj, self.kind = name, obj, kind
        self.before = self.then = content(obj, kind)


class Heap:
    """The objects reachable from some variables."""

    __slots__ = ("cells",)

    def __init__(self, names: Iterable[str], variables: dict):
        self.cells: list[Cell] = []
        seen: set[int] = set()
        for name in names:
            obj = variables.get(name)
            cls = obj.__class__
            if cls in _CONTAINING or (_kinds[cls] if cls in _kinds else mutability(obj)):
                self._follow(name, obj, seen)

    def _follow(self, name: str, obj: Any, seen: set[int]) -> None:
        if obj.__class__ in _CONTAINING:
            if obj.__class__ is tuple or id(obj) not in seen:
                seen.add(id(obj))
                for x in _contained(obj):
                    self._follow(name, x, seen)
            return
        kind = mutability(obj)
        if kind == _NONE or id(obj) in seen or len(self.cells) >= _LIMIT:
            return
        seen.add(id(obj))
        cell = Cell(name, obj, kind)
        self.cells.append(cell)
        parts = cell.before if kind == _LIST else cell.before.values()
        for part in parts:
            if part.__class__ in _CONTAINING or mutability(part):
                self._follow(name, part, seen)

    def end_then(self) -> None:
        """Remember what the first branch left, and put back what was there before it."""
        for cell in self.cells:
            now = content(cell.obj, cell.kind)
            if not same_content(now, cell.before):
                cell.then = now
                put(cell.obj, cell.kind, cell.before)

    def changed(self) -> list[tuple[Cell, Any, Any]]:
        """Return (cell, content after the first branch, after the second) of the objects that a branch changed."""
        found = []
        for cell in self.cells:
            now = content(cell.obj, cell.kind)
            if cell.then is not cell.before or not same_content(now, cell.before):
                found.append((cell, cell.then, now))
        return found

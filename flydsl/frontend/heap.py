"""The Python objects that a run-time region can reach and change: what they hold before it, put back, and changed to
the merged content.

Tracing runs both branches of a run-time `if`, one after the other, on the same Python objects. So the content
of what a branch can reach is remembered before it, and put back before the other branch is traced. A loop
remembers it too, to see what its body changed.

Reached are the variables that the region names, and from there elements, attributes and slots; variables of closures,
defaults and attributes of functions; objects of bound methods and partials; and the globals that the region, or a
function or method on this way, names.
"""

from collections.abc import Callable, Iterable
from dis import get_instructions
from types import CodeType, FunctionType, ModuleType
from typing import Any

from flydsl.frontend.contents import (
    ATTRIBUTES,
    CLASS,
    GLOBAL,
    MODULE,
    NONE,
    OBJECT,
    OWN_ATTRIBUTES,
    PASSES,
    SLOTTED,
    assigned_global,
    contained,
    content,
    is_foreign,
    is_library_module,
    kind_of,
    kinds,
    put,
    same_content,
)
from flydsl.frontend.site import UNBOUND, Site

_LIMIT = 512  # objects followed from the names of one region

# --- names -----------------------------------------------------------------------------------------------------------

_facts: dict[int, tuple] = {}
_methods: dict[type, tuple] = {}


def _facts_of(fn: FunctionType) -> tuple:
    """Return (code, globals that a user's function names, globals that it assigns), found once per code object.

    Left out are names of modules, builtins, and functions and classes of libraries.
    """
    code = fn.__code__
    known = _facts.get(id(code))
    if known is None:
        names: dict[str, None] = {}
        assigned: dict[str, None] = {}
        if not is_foreign(fn):
            _names_in(code, names, assigned)
        values = fn.__globals__
        known = _facts[id(code)] = (code, tuple(n for n in names if n in values and not is_library(values[n])), tuple(assigned))
    return known


def _names_in(code: CodeType, names: dict, assigned: dict) -> None:
    for i in get_instructions(code):
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[i.argval] = None
        elif i.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            assigned[i.argval] = None
    for inner in code.co_consts:
        if inner.__class__ is CodeType:
            _names_in(inner, names, assigned)


def is_library(value: Any) -> bool:
    return is_library_module(value) if isinstance(value, ModuleType) else isinstance(value, (type, FunctionType)) and is_foreign(value)


def _methods_of(cls: type) -> tuple:
    """Return the methods of a user's class through which something else can be changed."""
    known = _methods.get(cls)
    if known is None:
        found = []
        for c in cls.__mro__:
            for member in () if is_foreign(c) else vars(c).values():
                parts = (member.fget, member.fset) if member.__class__ is property else (getattr(member, "__func__", member),)
                found += [m for m in parts if m.__class__ is FunctionType and _reaches_out(m)]
        known = _methods[cls] = tuple(found)
    return known


def _reaches_out(fn: FunctionType) -> bool:
    _, names, assigned = _facts_of(fn)
    return bool(names or assigned or fn.__closure__ or fn.__defaults__ or fn.__kwdefaults__)


# --- walk ------------------------------------------------------------------------------------------------------------


class Cell:
    """One object: `before` and `then` are copies of its content. `shared`: it outlives the trace, as a global does."""

    __slots__ = ("before", "kind", "name", "obj", "shared", "then")

    def __init__(self, name: str, obj: Any, kind: int, shared: bool = False):
        self.name, self.obj, self.kind, self.shared = name, obj, kind, shared
        self.before = self.then = content(obj, kind)


class Heap:
    """The objects reachable from the names of a region."""

    __slots__ = ("_seen", "_shared", "cells")

    def __init__(self, site: Site, variables: dict):
        self.cells: list[Cell] = []
        self._seen: set = set()
        self._shared = False
        outer = []
        for name in site.watch:
            obj = variables.get(name, UNBOUND)
            cls = obj.__class__
            if obj is UNBOUND:
                outer.append(name)
            elif kinds[cls] if cls in kinds else kind_of(obj):
                self._follow(name, obj)
        if outer or site.assigned_globals:
            self._globals(site.globals, outer, site.assigned_globals)

    def _globals(self, values: dict, names: Iterable[str], assigned: Iterable[str]) -> None:
        around, self._shared = self._shared, True
        for name in names:
            obj = values.get(name)
            cls = obj.__class__
            if kinds[cls] if cls in kinds else kind_of(obj):
                self._follow(name, obj)
        for name in assigned:
            self._add(name, assigned_global(values, name), GLOBAL)
        self._shared = around

    def _follow(self, name: str, obj: Any) -> None:
        kind = kind_of(obj)
        if kind == PASSES:
            if obj.__class__ is tuple or id(obj) not in self._seen:
                self._seen.add(id(obj))
                for x in contained(obj):
                    if kind_of(x):
                        self._follow(name, x)
                if obj.__class__ is FunctionType:
                    self._function(name, obj)
        elif kind == MODULE:
            if not is_library_module(obj):
                self._add(name, obj, kind)
        elif kind == CLASS:
            self._class(name, obj)
        elif kind != NONE and id(obj) not in self._seen:
            self._add(name, obj, kind)
            if kind == OBJECT or kind == SLOTTED:
                for method in _methods_of(obj.__class__):
                    self._follow(name, method)

    def _add(self, name: str, obj: Any, kind: int) -> None:
        if id(obj) in self._seen or len(self.cells) >= _LIMIT:
            return
        self._seen.add(id(obj))
        cell = Cell(name, obj, kind, self._shared)
        self.cells.append(cell)
        for part in cell.before if cell.before.__class__ is list else cell.before.values():
            if kind_of(part):
                self._follow(name, part)

    def _function(self, name: str, fn: FunctionType) -> None:
        if fn.__dict__ and any(n not in OWN_ATTRIBUTES for n in fn.__dict__):
            self._seen.discard(id(fn))
            self._add(name, fn, ATTRIBUTES)
        _, names, assigned = _facts_of(fn)
        if names or assigned:
            self._globals(fn.__globals__, names, assigned)

    def _class(self, name: str, cls: type) -> None:
        if id(cls) in self._seen or is_foreign(cls):
            return
        self._add(name, cls, CLASS)
        for method in _methods_of(cls):
            self._follow(name, method)

    def end_then(self, kept: Callable[[Cell, Any], set]) -> None:
        """Remember what the first branch left, and put back what was there before it, but for the keys that `kept` returns."""
        for cell in self.cells:
            now = content(cell.obj, cell.kind)
            if not same_content(now, cell.before):
                cell.then = now
                before = cell.before
                for key in kept(cell, now) if cell.shared else ():
                    before = before.copy() if before is cell.before else before
                    before[key] = now[key]
                put(cell.obj, cell.kind, before)

    def changed(self) -> list[tuple[Cell, Any, Any]]:
        """Return (cell, content after the first branch, after the second) of the objects that a branch changed."""
        found = []
        for cell in self.cells:
            now = content(cell.obj, cell.kind)
            if cell.then is not cell.before or not same_content(now, cell.before):
                found.append((cell, cell.then, now))
        return found

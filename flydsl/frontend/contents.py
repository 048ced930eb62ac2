"""What the Python objects hold that traced code can change in place: read as a list or dict, and put back.

Kinds of objects: lists, dicts, deques, arrays of objects, objects of user classes with a `__dict__` or slots, user
classes, functions with attributes, assigned globals. Sets, byte arrays and arrays of numbers are FIXED: a change is
seen, but they cannot hold run-time values. Tuples, functions, bound methods, partials and frozen dataclasses do not
change, what they contain does (PASSES). Objects of libraries are not looked into.
"""

import dataclasses
import sys
from array import array
from collections import deque
from collections.abc import Iterable
from functools import partial
from operator import is_
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from flydsl.utils.record import is_frozen


class AssignedGlobal:
    """A global that functions assign: `global x; x = ...`. Holds it under its name, as a dict does."""

    __slots__ = ("name", "values")

    def __init__(self, values: dict, name: str):
        self.values, self.name = values, name

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.values[name] = value


_assigned_globals: dict[tuple, AssignedGlobal] = {}


def assigned_global(values: dict, name: str) -> AssignedGlobal:
    """Return the one object that stands for a global of a module."""
    key = (id(values), name)
    one = _assigned_globals.get(key)
    if one is None:
        one = _assigned_globals[key] = AssignedGlobal(values, name)
    return one


NONE, LIST, DICT, OBJECT, SLOTTED, DEQUE, ARRAY, FIXED, CLASS, ATTRIBUTES, MODULE, GLOBAL, PASSES = range(13)
kinds: dict[type, int] = {
    list: LIST,
    dict: DICT,
    SimpleNamespace: OBJECT,
    deque: DEQUE,
    set: FIXED,
    bytearray: FIXED,
    array: FIXED,
    AssignedGlobal: GLOBAL,
    ModuleType: MODULE,
    tuple: PASSES,
    partial: PASSES,
    FunctionType: PASSES,
    MethodType: PASSES,
}
_FIXED_LIMIT = 1024  # bytes of an array, elements of a set
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
OWN_ATTRIBUTES = ("__fly_helper__", "__wrapped__")


def mutability(value: Any) -> int:
    """Return how the content of an object is read and replaced; 0 for objects that are not changed themselves."""
    kind = kind_of(value)
    return NONE if kind == PASSES else kind


def kind_of(value: Any) -> int:
    """Return the kind of an object, NONE for what is not looked into."""
    cls = value.__class__
    kind = kinds.get(cls)
    if kind is None:
        kind = kinds[cls] = _kind_of_class(cls)
    return kind


def _kind_of_class(cls: type) -> int:
    for parent, kind in ((list, LIST), (dict, DICT), (deque, DEQUE), (set, FIXED), (bytearray, FIXED), (tuple, PASSES)):
        if issubclass(cls, parent):
            return kind
    if issubclass(cls, type):
        return CLASS
    if cls.__name__ == "ndarray" and cls.__module__ == "numpy":
        return ARRAY
    if cls.__module__ in _KERNELS:
        return PASSES
    if issubclass(cls, ModuleType):
        return MODULE
    if issubclass(cls, (FunctionType, MethodType)) or is_foreign(cls):
        return NONE
    if dataclasses.is_dataclass(cls) and is_frozen(cls):
        return PASSES
    if slots_of(cls):
        return SLOTTED
    return OBJECT if cls.__dictoffset__ and hasattr(cls, "__dict__") else NONE


_KERNELS = ("flydsl.compiler.jit_function", "flydsl.compiler.kernel_function")


def is_foreign(thing: Any) -> bool:
    """Return whether a class or function belongs to a library or to this package."""
    return (getattr(thing, "__module__", None) or "").split(".")[0] in _FOREIGN


_library_modules: dict[str, bool] = {}


def is_library_module(module: ModuleType) -> bool:
    """Return whether a module is of a library: those of the user hold state that kernels can change."""
    name = module.__name__
    known = _library_modules.get(name)
    if known is None:
        file = getattr(module, "__file__", None) or ""
        known = _library_modules[name] = name.split(".")[0] in _FOREIGN or not file or "site-packages" in file or "dist-packages" in file
    return known


_slots: dict[type, tuple] = {}


def slots_of(cls: type) -> tuple:
    """Return (name, descriptor) of all slots of a class and its bases."""
    known = _slots.get(cls)
    if known is None:
        found = {n: d for c in reversed(cls.__mro__) if not is_foreign(c) for n, d in vars(c).items() if d.__class__ is MemberDescriptorType}
        known = _slots[cls] = tuple(found.items())
    return known


def contained(obj: Any) -> Iterable:
    """Return what can be changed through an object that is not changed itself."""
    cls = obj.__class__
    if cls is tuple:
        return obj
    if cls is FunctionType:
        cells = [cell.cell_contents for cell in obj.__closure__ or () if not _is_empty(cell)]
        return (*cells, *(obj.__defaults__ or ()), *(obj.__kwdefaults__ or {}).values())
    if cls is MethodType:
        return (obj.__self__, obj.__func__)
    if cls is partial:
        return (obj.func, *obj.args, *obj.keywords.values())
    if issubclass(cls, tuple):
        return obj
    if cls.__module__ in _KERNELS:
        return (getattr(obj, "__wrapped__", None),)
    return [getattr(obj, f.name) for f in dataclasses.fields(cls) if hasattr(obj, f.name)]


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


# --- content ---------------------------------------------------------------------------------------------------------


def content(obj: Any, kind: int) -> Any:
    """Return a shallow copy of what an object holds: a list, or a dict by key or name."""
    if kind == LIST or kind == DEQUE:
        return list(obj)
    if kind == DICT:
        return dict(obj)
    if kind == OBJECT:
        return dict(obj.__dict__)
    return _CONTENT[kind](obj)


def put(obj: Any, kind: int, new: Any) -> None:
    """Replace what an object holds."""
    if kind == LIST:
        obj[:] = new
    elif kind == DICT or kind == OBJECT:
        target = obj if kind == DICT else obj.__dict__
        target.clear()
        target.update(new)
    else:
        _PUT[kind](obj, new)


def _slotted_content(obj: Any) -> dict:
    held = {}
    for name, slot in slots_of(obj.__class__):
        try:
            held[name] = slot.__get__(obj)
        except AttributeError:
            continue
    held.update(getattr(obj, "__dict__", ()))
    return held


def _put_slotted(obj: Any, new: dict) -> None:
    slots = dict(slots_of(obj.__class__))
    for name in _slotted_content(obj).keys() - new.keys() & slots.keys():
        slots[name].__delete__(obj)
    for name in slots.keys() & new.keys():
        slots[name].__set__(obj, new[name])
    if hasattr(obj, "__dict__"):
        put(obj, OBJECT, {k: v for k, v in new.items() if k not in slots})


def _put_deque(obj: deque, new: Iterable) -> None:
    obj.clear()
    obj.extend(new)


def _array_content(obj: Any) -> list:
    if obj.dtype == object:
        return list(obj.flat)
    return list(obj.tobytes()) if obj.nbytes <= _FIXED_LIMIT else []


def _put_array(obj: Any, new: list) -> None:
    if obj.dtype == object:
        for i, value in enumerate(new):
            obj.flat[i] = value
    elif new:
        obj[...] = obj.__class__(obj.shape, obj.dtype, bytes(new))


def _fixed_content(obj: Any) -> Any:
    if isinstance(obj, set):
        return {id(x): x for x in obj} if len(obj) <= _FIXED_LIMIT else {}
    return list(bytes(obj)) if len(obj) <= _FIXED_LIMIT else []


def _put_fixed(obj: Any, new: Any) -> None:
    if isinstance(obj, set):
        if len(obj) <= _FIXED_LIMIT:
            obj.clear()
            obj.update(new.values())
    elif new:
        obj[:] = bytearray(new) if isinstance(obj, bytearray) else array(obj.typecode, bytes(new))


def _class_content(cls: type) -> dict:
    return {n: v for n, v in vars(cls).items() if v.__class__ not in _NOT_DATA and not n.startswith("__")}


def _put_attributes(obj: Any, kind: int, new: dict) -> None:
    now = content(obj, kind)
    for name in now.keys() - new.keys():
        delattr(obj, name)
    for name, value in new.items():
        if name not in now or now[name] is not value:
            setattr(obj, name, value)


def _put_module(module: ModuleType, new: dict) -> None:
    now = _module_content(module)
    for name in now.keys() - new.keys():
        delattr(module, name)
    vars(module).update(new)


def _put_global(obj: AssignedGlobal, new: dict) -> None:
    obj.values.pop(obj.name, None)
    obj.values.update(new)


def _module_content(module: ModuleType) -> dict:
    if is_library_module(module):
        return {}
    found = {}
    for name, value in vars(module).items():
        cls = value.__class__
        is_state = _state_classes.get(cls)
        if is_state is None:
            is_state = _state_classes[cls] = kind_of(value) not in (NONE, PASSES, MODULE, CLASS) or hasattr(cls, "__extract_to_ir_values__")
        if (is_state or isinstance(value, type) and value.__module__ == module.__name__) and not name.startswith("__"):
            found[name] = value
    return found


_state_classes: dict[type, bool] = {int: True, float: True, bool: True}
_NOT_DATA = (FunctionType, classmethod, staticmethod, property, MemberDescriptorType, type)
_CONTENT = {
    SLOTTED: _slotted_content,
    ARRAY: _array_content,
    FIXED: _fixed_content,
    CLASS: _class_content,
    MODULE: _module_content,
    ATTRIBUTES: lambda f: {n: v for n, v in f.__dict__.items() if n not in OWN_ATTRIBUTES},
    GLOBAL: lambda g: {g.name: g.values[g.name]} if g.name in g.values else {},
}
_PUT = {
    SLOTTED: _put_slotted,
    DEQUE: _put_deque,
    ARRAY: _put_array,
    FIXED: _put_fixed,
    CLASS: lambda cls, new: _put_attributes(cls, CLASS, new),
    ATTRIBUTES: lambda f, new: _put_attributes(f, ATTRIBUTES, new),
    MODULE: lambda module, new: _put_module(module, new),
    GLOBAL: _put_global,
}


def slot(kind: int, key: Any) -> tuple[str, Any]:
    """Return how the place with this key in the content of an object is read and assigned: (item, attr or flat, key)."""
    return ("item" if kind in (LIST, DICT, DEQUE, GLOBAL) else "flat" if kind == ARRAY else "attr", key)


def entries(held: Any) -> list[tuple]:
    """Return the (key, value) pairs of a content."""
    return list(enumerate(held)) if held.__class__ is list else list(held.items())


def same_content(a: Any, b: Any) -> bool:
    """Return whether two copies hold the very same objects under the same keys."""
    if a.__class__ is list:
        return len(a) == len(b) and all(map(is_, a, b))
    return a.keys() == b.keys() and all(map(is_, a.values(), map(b.__getitem__, a)))


def takes_values(obj: Any, kind: int) -> bool:
    """Return whether an object can hold a run-time value in place of what it holds."""
    return kind != FIXED and (kind != ARRAY or obj.dtype == object)

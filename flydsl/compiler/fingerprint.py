"""What a traced function's result can depend on beside its arguments: its code, closure, globals and attributes, and
those of its helpers.

`captured_state(function)` walks all of it once and returns a `Captured`: a digest that is the same in every process
(for the cache key), the entries it is made of (for `flydsl cache explain`), and `holds()`, a generated function that
tells in nanoseconds per read whether anything has changed since. The walk follows what the bytecode reads; code of
Python, NumPy, torch and this package is taken by its name.
"""

from __future__ import annotations

import array
import ctypes
import enum
import functools
import hashlib
import importlib
import operator
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

from flydsl.compiler.code_reads import code_reads
from flydsl.utils import env

TRUSTED = frozenset(sys.stdlib_module_names) | {
    "flydsl", "numpy", "torch", "ml_dtypes", "torch_mlir", "llvmlite", "pytest", "_pytest", "hypothesis",
}  # fmt: skip
_PLAIN = frozenset({int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented)})
_CLASS_NOISE = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__", "_abc_impl", "__firstlineno__"}
)
_ANNOTATIONS = frozenset({"__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"})
_MAKERS = frozenset(
    {
        "__init__",
        "__new__",
        "__post_init__",
        "__init_subclass__",
        "__class_getitem__",
        "__repr__",
        "__str__",
        "__reduce__",
    }
)
_READS_GLOBALS = frozenset({"globals", "eval", "exec", "vars", "locals"})
_READS_ALL = frozenset({"getattr", "vars", "__dict__", "__class__", "fields", "asdict", "astuple", "replace"})
_GONE = "(KeyError, AttributeError, ValueError)"  # what a read raises once its object is gone
_MOST_ENTRIES = 50_000
_MOST_READ = 1 << 16  # elements of a tensor whose values are described
_BUILTINS = (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
_RAW = (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)
_CONTAINERS = (tuple, list, dict, set, frozenset, deque, MappingProxyType)
_MISSING = object()
NOT_BOUND = object()


class Captured:
    """The state that one function captures."""

    def __init__(
        self,
        entries: tuple[tuple[str, str], ...],
        holds: Callable[[], bool],
        opaque: tuple[str, ...],
        codes: tuple[CodeType, ...],
    ):
        self.entries = entries
        self.holds = holds
        self.codes = codes
        self.opaque = opaque  # what has no description that another process could compare: not for the disk cache
        text = "\n".join(f"{path}\0{value}" for path, value in entries)
        self.digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        self.places = hash(tuple((code.co_filename, code.co_firstlineno) for code in codes))  # of this process only


def captured_state(function: Any, bound: Any = NOT_BOUND) -> Captured:
    """Return the captured state of a function, and of the object it is bound to."""
    walk = _Walk()
    if bound is not NOT_BOUND:
        walk.value("self", bound)
    walk.value(getattr(function, "__name__", "function"), function)
    walk.finish()
    env.watch(walk.check_absent, walk.check_equal)
    return Captured(tuple(walk.entries), walk.guard(), tuple(walk.opaque), tuple(walk.codes))


def described(values: Iterable[tuple[str, Any]]) -> Captured:
    """Return values by name as entries that another process can compare."""
    walk = _Walk()
    for path, value in values:
        walk.value(path, value)
    walk.finish()
    return Captured(tuple(walk.entries), walk.guard(), tuple(walk.opaque), tuple(walk.codes))


_functions: OrderedDict[int, tuple[Any, Captured]] = OrderedDict()
_MOST_FUNCTIONS = 256


def function_digest(function: Any) -> str:
    """Return the digest of what a function captures; cheap while nothing of it changes."""
    return _known_state(function, captured_state).digest


def _known_state(value: Any, walk: Callable[[Any], Captured]) -> Captured:
    known = _functions.get(id(value))
    if known is None or not known[1].holds():
        known = _functions[id(value)] = (value, walk(value))
        while len(_functions) > _MOST_FUNCTIONS:
            _functions.popitem(last=False)
    return known[1]


class Constant:
    """A compile-time value that can change without becoming another object: in keys it stands for its present state.

    Equal where the state is, and the object, too, if its class compares by identity.
    """

    __slots__ = ("value", "digest", "opaque")

    def __init__(self, value: Any):
        self.value = value
        state = _known_state(value, _whole_state)
        self.digest, self.opaque = state.digest, state.opaque

    @staticmethod
    def is_needed(value: Any) -> bool:
        """Return whether a value's hash does not say all: an object or class of a user's, a module, what calls
        functions, or what has no hash."""
        return (
            not _trusted(type(value).__module__)
            or isinstance(value, (MethodType, ModuleType, functools.partial))
            or isinstance(value, type) and not _trusted(value.__module__)
            or hasattr(value, "__wrapped__")
            or type(value).__hash__ is None
        )

    def __captured__(self) -> list[tuple[str, Any]]:
        return [("state", self.digest)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and self.digest == other.digest
            and (self.value is other.value or type(self.value).__eq__ is not object.__eq__)
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return repr(self.value)


def _whole_state(value: Any) -> Captured:
    """Return all that a value holds: which code will read it is not known."""
    walk = _Walk(reads_all=True)
    walk.value(type(value).__qualname__, value)
    walk.finish()
    return Captured(tuple(walk.entries), walk.guard(), tuple(walk.opaque), tuple(walk.codes))


class _Walk:
    def __init__(self, reads_all: bool = False) -> None:
        self.reads_all = reads_all
        self.entries: list[tuple[str, str]] = []
        self.opaque: list[str] = []
        self.codes: list[CodeType] = []
        self.seen: dict[int, str] = {}
        self.checks: list[str] = []
        self.names: dict[str, Any] = {"same_list": _same_list}
        self.slots: set[tuple[int, Any]] = set()
        self.absent: dict[int, tuple[Mapping, set[str]]] = {}
        self.read_names: set[str] = set()
        self.instances: list[tuple[str, Any, set[str]]] = []
        self.classes: list[tuple[str, type, dict[str, Any], bool]] = []
        self.classes_of_objects: set[int] = set()

    # --- the guard ---------------------------------------------------------------------------------------------------

    def keep(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def check_item(self, mapping: Mapping, key: Any, value: Any) -> None:
        """Check that `mapping[key]` stays this object."""
        if (id(mapping), key) not in self.slots:
            self.slots.add((id(mapping), key))
            self.checks.append(f"{self.keep(mapping)}[{key!r}] is {self.keep(value)}")

    def check_equal(self, mapping: Mapping, key: Any, value: Any) -> None:
        """Check that `mapping[key]` stays equal to a text."""
        self.checks.append(f"{self.keep(mapping)}[{key!r}] == {value!r}")

    def check_attribute(self, owner: Any, attribute: str, value: Any) -> None:
        """Check that `owner.attribute` stays this object."""
        self.checks.append(f"{self.keep(owner)}.{attribute} is {self.keep(value)}")

    def check_absent(self, mapping: Mapping, key: str) -> None:
        """Check that `mapping` stays without `key`."""
        self.absent.setdefault(id(mapping), (mapping, set()))[1].add(key)

    def guard(self) -> Callable[[], bool]:
        checks = [f"{self.keep(m.keys())}.isdisjoint({self.keep(frozenset(keys))})" for m, keys in self.absent.values()]
        checks += self.checks
        body = " and\n            ".join(checks) or "True"
        text = f"def holds():\n    try:\n        return ({body})\n    except {_GONE}:\n        return False\n"
        parameters = ", ".join(self.names)
        inner = "\n".join(f"    {line}" for line in text.splitlines())
        namespace: dict[str, Any] = {}
        exec(f"def make({parameters}):\n{inner}\n    return holds\n", namespace)
        return namespace["make"](**self.names)

    # --- values ------------------------------------------------------------------------------------------------------

    def put(self, path: str, text: str) -> None:
        self.entries.append((path, text))

    def value(self, path: str, value: Any) -> None:
        """Add a value that is reached by `path`; who calls this has added the check of the slot that holds it."""
        if type(value) in _PLAIN:
            self.put(path, f"{type(value).__name__} {value!r}")
            return
        if not isinstance(value, tuple):  # whether equal constants are one object differs between processes
            first = self.seen.setdefault(id(value), path)
            if first is not path:
                self.put(path, f"see {first}")
                return
            self.keep(value)  # ids stay unique while the guard lives
        if len(self.entries) > _MOST_ENTRIES:
            self.opaque.append(f"{path}: too much state")
            return
        self._compound(path, value)

    def _compound(self, path: str, value: Any) -> None:
        if isinstance(value, enum.Enum):
            self.put(path, f"{_name(type(value))}.{value.name} {value.value!r}")
        elif isinstance(value, _CONTAINERS):
            self._container(path, value)
            if not _trusted(type(value).__module__):
                self._instance(f"{path} itself", value)
        elif isinstance(value, ModuleType):
            self._module(path, value)
        elif isinstance(value, FunctionType):
            self._function(path, value)
        elif isinstance(value, type):
            self._class(path, value)
        else:
            self._object(path, value)

    def _container(self, path: str, value: Any) -> None:
        if isinstance(value, (tuple, list, deque)):
            self._sequence(path, value)
        elif isinstance(value, dict):
            self._dict(path, value)
        elif isinstance(value, MappingProxyType):
            self._proxy(path, value)
        else:
            self.put(path, f"{_name(type(value))} {sorted(map(repr, value))}")
            if isinstance(value, set):
                self.checks.append(f"{self.keep(value)} == {self.keep(frozenset(value))}")

    def _proxy(self, path: str, value: MappingProxyType) -> None:
        self.put(path, f"mapping of {len(value)}")
        keys, items = tuple(value), tuple(value.values())
        self.checks.append(f"same_list({self.keep(value)}, {self.keep(keys)})")
        self.checks.append(f"same_list({self.keep(value.values())}, {self.keep(items)})")
        for i, (key, item) in enumerate(zip(keys, items, strict=True)):
            self.value(f"{path} key {i}", key)
            self.value(f"{path} value {i}", item)

    def _sequence(self, path: str, value: Any) -> None:
        self.put(path, f"{_name(type(value))} of {len(value)}")
        if isinstance(value, (list, deque)):
            self.checks.append(f"same_list({self.keep(value)}, {self.keep(tuple(value))})")
        for i, item in enumerate(value):
            self.value(f"{path}[{i}]", item)

    def _dict(self, path: str, value: dict) -> None:
        self.put(path, f"{_name(type(value))} of {len(value)}")
        self.checks.append(f"len({self.keep(value)}) == {len(value)}")
        for i, (key, item) in enumerate(value.items()):
            if type(key) in (str, int):
                self.check_item(value, key, item)
                self.value(f"{path}[{key!r}]", item)
            else:
                self.checks.append(f"{self.keep(value)}[{self.keep(key)}] is {self.keep(item)}")
                self.value(f"{path} key {i}", key)
                self.value(f"{path} value {i}", item)

    def _module(self, path: str, module: ModuleType) -> None:
        """A module that is used as a value, not through an attribute: everything public in it counts."""
        self.put(path, f"module {module.__name__}")
        if not _trusted(module.__name__):
            self._namespace(path, vars(module))

    def _function(self, path: str, function: FunctionType) -> None:
        if function.__module__ is not None and _trusted(function.__module__):  # None: made by exec in a bare namespace
            self.put(path, f"function {_name(function)}")
            return
        code = function.__code__
        reads = code_reads(code)
        self.put(path, f"function {function.__qualname__} {reads.digest}")
        self.read_names |= reads.names
        self.codes.append(code)
        for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
            self.check_attribute(function, attribute, getattr(function, attribute))
        for i, default in enumerate(function.__defaults__ or ()):
            self.value(f"{path} default {i}", default)
        for name, default in (function.__kwdefaults__ or {}).items():
            self.check_item(function.__kwdefaults__, name, default)
            self.value(f"{path} default {name}", default)
        self.put(f"{path} annotations", ", ".join(f"{n}: {_annotation(a)}" for n, a in _annotations(function).items()))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            self._cell(f"{path} closure {name}", cell)
        if function.__dict__:
            self._function_attributes(path, function)
        for chain in reads.globals:
            self._global(path, function.__globals__, chain)
            if chain[0] in _READS_GLOBALS and chain[0] not in function.__globals__:
                self._namespace(f"globals of {_short_module(function.__module__)}", function.__globals__)
        for chain in reads.imports:
            self._import(path, chain)

    def _function_attributes(self, path: str, function: FunctionType) -> None:
        """Attributes that a user has set count if their names occur, as those of an object; `functools.singledispatch`
        keeps its functions in one."""
        self.instances.append((path, function, set()))
        registry = function.__dict__.get("registry")
        if isinstance(registry, MappingProxyType):
            self.value(f"{path}.registry", registry)

    def _namespace(self, path: str, namespace: dict[str, Any]) -> None:
        """All public names of a module, where the code may read any of them."""
        if id(namespace) in self.seen:
            return
        self.seen[id(namespace)] = path
        for name, item in list(namespace.items()):
            if not name.startswith("__"):
                self.check_item(namespace, name, item)
                self.value(f"{path}.{name}", item)

    def _cell(self, path: str, cell: CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            self.put(path, "empty")
            return
        self.check_attribute(cell, "cell_contents", value)
        self.value(path, value)

    def _global(self, path: str, namespace: dict[str, Any], chain: tuple[str, ...]) -> None:
        name, *attributes = chain
        if name not in namespace:
            self.check_absent(namespace, name)
            return
        self.check_item(namespace, name, namespace[name])
        self._attributes(f"global {_short_module(namespace.get('__name__', ''))}.{name}", namespace[name], attributes)

    def _import(self, path: str, chain: tuple[str, ...]) -> None:
        module, *names = chain
        if _trusted(module):
            return
        if module not in sys.modules:
            try:
                importlib.import_module(module)  # the function imports it when it is traced
            except ImportError:
                self.put(f"{path} import {module}", "missing")
                return
        for name in names:
            self._attributes(f"import {module}", sys.modules[module], [name])
        if not names:
            self.value(f"import {module}", sys.modules[module])

    def _attributes(self, path: str, value: Any, attributes: list[str]) -> None:
        """Follow attributes through modules; what they end in is taken whole."""
        while attributes and isinstance(value, ModuleType) and not _trusted(value.__name__):
            name, *attributes = attributes
            namespace = vars(value)
            if name == "__dict__":
                self._namespace(path, namespace)
                return
            path = f"{path}.{name}"
            if name not in namespace:
                self.check_absent(namespace, name)
                if "__getattr__" in namespace:  # a function of the module that answers instead
                    self._attributes(path, value, ["__getattr__"])
                return
            self.check_item(namespace, name, namespace[name])
            value = namespace[name]
        if isinstance(value, ModuleType) and _trusted(value.__name__):
            self.put(".".join([path, *attributes]), f"module {value.__name__}")
        else:
            self.value(path, value)

    def _class(self, path: str, cls: type, makes: bool = True) -> None:
        """A user's class: its constants now, its methods at the end, if their names occur. `makes`: the code can make
        objects of it."""
        self.put(path, f"class {_name(cls)}")
        for base in cls.__mro__:
            if not _trusted(base.__module__):
                self._class_body(path if base is cls else f"{path} base {base.__qualname__}", base, makes)
        if not _trusted(type(cls).__module__):
            self.check_attribute(cls, "__class__", type(cls))
            self.value(f"{path} metaclass", type(cls))

    def _class_body(self, path: str, cls: type, makes: bool) -> None:
        self.checks.append(f"len({self.keep(vars(cls))}) == {len(vars(cls))}")
        methods = {}
        for name, member in vars(cls).items():
            if name in _CLASS_NOISE or name in _ANNOTATIONS:
                continue
            if isinstance(member, (FunctionType, property, classmethod, staticmethod)):
                methods[name] = member
                continue
            self.check_item(vars(cls), name, member)
            self.value(f"{path}.{name}", member)
        fields = cls.__dict__.get("__annotations__", {})
        self.put(f"{path} fields", ", ".join(f"{n}: {_annotation(a)}" for n, a in fields.items()))
        self.classes.append((path, cls, methods, makes))

    def _methods(self) -> bool:
        """Add the methods that can be called; return whether there were any."""
        found = False
        for path, cls, methods, makes in list(self.classes):
            for name in [n for n in methods if self._reads(n) or (n.startswith("__") and (makes or n not in _MAKERS))]:
                found = True
                member = methods.pop(name)
                self.check_item(vars(cls), name, member)
                self.value(f"{path}.{name}", member)
        return found

    def _reads(self, name: str) -> bool:
        return name in self.read_names or self._reads_any()

    def _reads_any(self) -> bool:
        return self.reads_all or not self.read_names.isdisjoint(_READS_ALL)

    # --- objects -----------------------------------------------------------------------------------------------------

    def _object(self, path: str, value: Any) -> None:
        state = getattr(type(value), "__captured__", None)
        if state is not None:  # ours: kernels, jit functions and what wraps them
            self.put(path, _name(type(value)))
            for name, item in state(value):
                self.value(f"{path}.{name}", item)
            for name in getattr(type(value), "__watched__", ()):
                self.check_attribute(value, name, getattr(value, name))
            if isinstance(value, Constant):
                self.opaque.extend(value.opaque)
            return
        wrapped = _wrapped(value)
        if wrapped:
            self.put(path, _name(type(value)))
            for name, item in wrapped:
                self.value(f"{path}.{name}", item)
        elif isinstance(value, _BUILTINS):
            self.put(path, f"builtin {_name(value)}")
        elif _trusted(type(value).__module__) and type(value) is not SimpleNamespace:
            self._known_object(path, value)
        else:
            self._instance(path, value)

    def _instance(self, path: str, value: Any) -> None:
        """An object of a user's class: its class now; of its attributes those whose names occur in the code, at the
        end."""
        self.put(path, f"object of {_name(type(value))}")
        for plain in (int, float, complex, str, bytes):
            if isinstance(value, plain):
                self.put(f"{path} value", plain.__repr__(value))
        if isinstance(value, _RAW):
            self._raw(f"{path} bytes", value)
        self.check_attribute(value, "__class__", type(value))
        if id(type(value)) not in self.classes_of_objects:
            self.classes_of_objects.add(id(type(value)))
            self._class(f"class of {path}", type(value), makes=False)
        self.instances.append((path, value, set()))

    def finish(self) -> None:
        """Add methods and attributes of objects whose names the code loads; code that is reached through them may load
        further ones."""
        changed = True
        while changed:
            changed = self._methods()
            for path, value, done in list(self.instances):
                for name in self._attribute_names(value):
                    if name not in done:
                        done.add(name)
                        changed = True
                        self._instance_attribute(path, value, name)
        if self._reads_any():
            for _, value, _ in self.instances:
                if type(value) is not FunctionType and hasattr(value, "__dict__"):  # no attribute may appear
                    self.checks.append(f"len({self.keep(value.__dict__)}) == {len(value.__dict__)}")

    def _attribute_names(self, value: Any) -> list[str]:
        state = getattr(value, "__dict__", {})
        names = [*state, *_slots(type(value))]
        names += [n for n in sorted(self.read_names) if n not in state and hasattr(type(value), n)]
        return [n for n in names if self._reads(n)]

    def _instance_attribute(self, path: str, value: Any, name: str) -> None:
        state = getattr(value, "__dict__", {})
        if name in state:
            self.check_item(state, name, state[name])
            self.value(f"{path}.{name}", state[name])
        elif name in _slots(type(value)):
            item = getattr(value, name, _MISSING)
            if item is not _MISSING:
                self.check_attribute(value, name, item)
                self.value(f"{path}.{name}", item)
        elif hasattr(value, "__dict__"):
            self.check_absent(state, name)

    def _known_object(self, path: str, value: Any) -> None:
        kind = _name(type(value))
        top = type(value).__module__.partition(".")[0]
        if top == "flydsl":
            self._ours(path, value, kind)
        elif top == "numpy" and hasattr(value, "tobytes") and hasattr(value, "dtype"):
            self._numpy(path, value, kind)
        elif top == "torch" and hasattr(value, "data_ptr"):
            self._torch(path, value, kind)
        elif isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.put(path, repr(value))
            names = [n for n in value.__reduce__()[1] if isinstance(n, str)]
            self.read_names |= {part for name in names for part in name.split(".")}
        else:
            self._of_known_kind(path, value, kind)

    def _of_known_kind(self, path: str, value: Any, kind: str) -> None:
        """An object of the standard library or the like: what has a hash does not change; of loggers, locks, files their
        kind is all that can matter."""
        if isinstance(value, (bytearray, array.array, *_RAW)):
            self._raw(path, value)
            return
        text = repr(value)
        state = getattr(value, "__dict__", None)
        is_fixed = type(value).__hash__ is not None
        if not is_fixed and state is not None:  # such as ChainMap, argparse.Namespace
            self.put(path, kind)
            for name, item in list(state.items()):
                self.check_item(state, name, item)
                self.value(f"{path}.{name}", item)
            return
        self.put(path, kind if " at 0x" in text else f"{kind} {text}")
        if not is_fixed and " at 0x" not in text:
            self.checks.append(f"repr({self.keep(value)}) == {text!r}")

    def _raw(self, path: str, value: Any) -> None:
        data = bytes(value)
        self.put(path, f"{_name(type(value))} {data.hex()}")
        self.checks.append(f"bytes({self.keep(value)}) == {self.keep(data)}")

    def _torch(self, path: str, value: Any, kind: str) -> None:
        """A tensor that is read while tracing: on the host its values count; every change in place has a new
        `_version`."""
        form = f"{kind} {value.dtype} {tuple(value.shape)} {tuple(value.stride())} {value.device}"
        if value.device.type == "cpu" and value.numel() <= _MOST_READ and not value.is_sparse:
            form += f" {hashlib.sha256(repr(value.detach().tolist()).encode()).hexdigest()}"
        self.put(path, form)
        if not value.is_inference():
            self.checks.append(f"{self.keep(value)}._version == {value._version}")

    def _ours(self, path: str, value: Any, kind: str) -> None:
        if hasattr(value, "plain"):
            self.put(path, f"{kind} {value.plain!r}")
        elif hasattr(type(value), "__dataclass_fields__"):
            self.put(path, kind)
            for name in type(value).__dataclass_fields__:
                self.value(f"{path}.{name}", getattr(value, name))
        else:
            text = repr(value)
            if " at 0x" not in text:
                self.put(path, f"{kind} {text}")
            else:
                self._instance_of_ours(path, value, kind)

    def _instance_of_ours(self, path: str, value: Any, kind: str) -> None:
        self.put(path, kind)
        state = {
            **getattr(value, "__dict__", {}),
            **{n: getattr(value, n) for n in _slots(type(value)) if hasattr(value, n)},
        }
        for name, item in state.items():
            self.value(f"{path}.{name}", item)

    def _numpy(self, path: str, value: Any, kind: str) -> None:
        data = value.tobytes()
        self.put(path, f"{kind} {value.dtype} {value.shape} {hashlib.sha256(data).hexdigest()}")
        if value.shape or kind.endswith("ndarray"):
            self.checks.append(f"{self.keep(value)}.tobytes() == {self.keep(data)}")


def _wrapped(value: Any) -> list[tuple[str, Any]]:
    """Return what a callable object calls."""
    if isinstance(value, MethodType):
        return [("__func__", value.__func__), ("__self__", value.__self__)]
    if isinstance(value, (functools.partial, functools.partialmethod)):
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, (staticmethod, classmethod)):
        return [("__func__", value.__func__)]
    if isinstance(value, property):
        return [("fget", value.fget), ("fset", value.fset)]
    if isinstance(value, functools.cached_property):
        return [("func", value.func)]
    if hasattr(value, "__wrapped__") and _trusted(type(value).__module__):
        return [("__wrapped__", value.__wrapped__)]
    return []


def _same_list(value: list, items: tuple) -> bool:
    return len(value) == len(items) and all(a is b for a, b in zip(value, items, strict=True))


def _slots(cls: type) -> list[str]:
    names: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return [n for n in names if n not in ("__dict__", "__weakref__")]


def _trusted(module: str | None) -> bool:
    return module is None or module.partition(".")[0] in TRUSTED


def _name(value: Any) -> str:
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__qualname__
    return f"{module if _trusted(module) else _short_module(module)}.{name}" if module else name


def _short_module(name: str) -> str:
    """Return a name that is the same whether a file is imported, from wherever, or run as a script."""
    if name == "__main__":
        name = os.path.splitext(os.path.basename(getattr(sys.modules[name], "__file__", None) or name))[0]
    return name.rpartition(".")[2]


def _annotations(value: Any) -> dict[str, Any]:
    try:
        return value.__annotations__
    except NameError:  # Python 3.14 evaluates them now, and a name is gone
        return {}


def _annotation(value: Any) -> str:
    return value if isinstance(value, str) else _name(value) if isinstance(value, type) else repr(value)

"""Places that the body of a run-time loop changes in place: slots of lists and dicts, attributes, DSL objects.

Seen: `x[i] = v`, `obj.attr = v`, `xs.append(v)`, `atom.set_value(...)` in the body itself; their values must keep
structure and type. Hidden: what a called method, helper or nested function may change; there only scalars,
vectors and register tensors are carried, and one that changes its type is lost after the loop (using it then is an error), since it may
be a temporary.
"""

from collections.abc import Iterator
from dis import get_instructions
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from flydsl.expr.numeric.base import Numeric
from flydsl.expr.vector import Vector
from flydsl.frontend import carry
from flydsl.frontend.carry import LEAF, Mismatch, Node, OtherMemory, Same
from flydsl.frontend.contents import (
    PASSES,
    assigned_global,
    contained,
    content,
    entries,
    kind_of,
    mutability,
    slot,
    takes_values,
)
from flydsl.frontend.escape import Escaped
from flydsl.frontend.fragments import is_fragment, is_temporary
from flydsl.frontend.site import UNBOUND, Site
from flydsl.ir import current, ir

_MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard".split()
)
_HIDDEN_LIMIT = 256  # slots behind the objects that a body hands on
_DEPTH = 3  # containers in containers


class Place:
    """A slot of a container, an attribute of an object, or a whole DSL object (`key` None)."""

    __slots__ = ("entered", "hidden", "key", "lost", "name", "node", "obj")

    def __init__(self, name: str, obj: Any, key: Any, hidden: bool = False):
        self.name, self.obj, self.key, self.hidden = name, obj, key, hidden
        self.node: Node = carry.plan(self.get())
        self.lost = False

    @property
    def id(self) -> tuple:
        return id(self.obj), self.key

    def get(self) -> Any:
        if self.key is None:
            return self.obj
        kind, key = self.key
        if kind == "flat":
            return self.obj.flat[key]
        if kind == "item":
            return self.obj[key]
        own = self._own_attributes()
        return own[key] if key in own else getattr(self.obj, key)

    def set(self, value: Any) -> None:
        if self.key is None:
            _copy_state(value, self.obj)
            return
        kind, key = self.key
        if kind == "item":
            self.obj[key] = value
        elif kind == "flat":
            self.obj.flat[key] = value
        elif key in (own := self._own_attributes()):
            own[key] = value
        else:
            setattr(self.obj, key, value)

    def _own_attributes(self) -> dict:
        """Return where the object keeps its attributes: `__setattr__` of its class is for what the user's code assigns."""
        own = getattr(self.obj, "__dict__", None)
        return own if own.__class__ is dict else {}

    def enter(self, values: Iterator) -> None:
        """Hold the value that the iteration starts with."""
        self.entered = self.node.rebuild(values)
        self.set(self.entered)

    def flatten_or_forget(self, out: list) -> None:
        """Append the IR values at the end of the body; where they do not fit, those of its start.

        Raises   OtherMemory: a register tensor that another iteration reads
        """
        size = len(out)
        try:
            self.node.flatten(self.get(), out)
        except OtherMemory as m:
            if not is_temporary(m.fragment, m.before):
                raise
            self.forget(out)
        except (Mismatch, LookupError, AttributeError):
            del out[size:]
            self.forget(out)

    def forget(self, out: list) -> None:
        """Append the IR values of the start of the body; what the place holds at its end does not last."""
        self.lost = True
        self.node.flatten(self.entered, out)

    def leave(self, values: Iterator, site: Site) -> None:
        """Hold the value after the loop."""
        after = self.node.rebuild(values)
        if not self.lost:
            self.set(after)
        elif self._is_there():
            self.set(Escaped(self.name, site))

    def _is_there(self) -> bool:
        try:
            self.get()
        except (LookupError, AttributeError):
            return False
        return True

    def changed(self) -> bool:
        """Return whether the place holds something else than when the body began."""
        try:
            now = self.get()
        except (LookupError, AttributeError):
            return False
        return now is not self.entered and (carry.kind_of(now) != carry.NUMBER or now != self.entered)

    @property
    def label(self) -> str:
        if self.key is None:
            return self.name
        kind, key = self.key
        if key == self.name:
            return self.name
        return f"{self.name}.{key}" if kind == "attr" else f"{self.name}[{key!r}]"


def _copy_state(new: Any, obj: Any) -> None:
    """Make `obj` hold what `new` holds, attribute by attribute."""
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(new, name):
                object.__setattr__(obj, name, getattr(new, name))
    if hasattr(obj, "__dict__"):
        obj.__dict__.update(new.__dict__)


# --- seen ------------------------------------------------------------------------------------------------------------


def changed_places(site: Site, variables: dict) -> list[Place]:
    """Return the places that the body changes itself."""
    if not site.changes and not site.assigned_globals:
        return []
    places: dict[tuple, Place] = {}
    for name, kind, key in site.changes:
        obj = site.lookup(name, variables)
        if obj is UNBOUND or name in site.names:
            continue
        for target, one in _changed_slots(obj, kind, key):
            place = Place(name, target, one)
            if one is None or place.node.__class__ is not Same or kind != "call":
                places.setdefault(place.id, place)
    for name in site.assigned_globals:
        if name in site.globals:
            obj = assigned_global(site.globals, name)
            place = Place(name, obj, ("item", name))
            places[place.id] = place
    return list(places.values())


def _changed_slots(obj: Any, kind: str, key: Any) -> list[tuple[Any, Any]]:
    """Return (object, key) of what a change touches.

    Where it is open which keys it touches, those that hold containers are left out: a container that is rebuilt to be
    carried is another object than its aliases.
    """
    if kind != "path":
        keys = _changed_keys(obj, kind, key)
        if kind == "call" or key is None:
            keys = [k for k in keys if k is None or not is_container(obj[k[1]])]
        return [(obj, k) for k in keys]
    return [found for target in _ends_of(obj, key) for found in _changed_slots(target, *key[-1])]


def _ends_of(obj: Any, path: tuple) -> list:
    """Return the objects to which the last step of a path is applied."""
    ends = [obj]
    for step in path[:-1]:
        ends = [value for end in ends for value in _values_at(end, *step)]
    return ends


def _values_at(obj: Any, kind: str, key: Any) -> list:
    """Return what an attribute or key of an object leads to; with the key None, what all do."""
    changeable = mutability(obj)
    if not changeable and not isinstance(obj, tuple):
        return []
    held = content(obj, changeable) if changeable else list(obj)
    if kind == "attr":
        return [held[key]] if isinstance(held, dict) and key in held and not isinstance(obj, dict) else []
    if held.__class__ is dict:
        return (list(held.values()) if key is None else [held[key]] if key in held else []) if isinstance(obj, dict) else []
    return held if key is None else [held[key]] if _has(held, key) else []


def is_container(value: Any) -> bool:
    """Return whether a value would be taken apart to be carried, and can be changed in place."""
    return bool(mutability(value)) and carry.kind_of(value) in (carry.LIST, carry.DICT, carry.NAMESPACE, carry.DATACLASS)


def _changed_keys(obj: Any, kind: str, key: Any) -> list:
    """Return the keys of an object that a change of this kind can touch; [None] for a whole DSL object."""
    if carry.kind_of(obj) == LEAF:
        return [None] if kind == "attr" or kind == "call" and key.startswith("set") else []
    if kind == "call":
        return [("item", k) for k in keys_of(obj)] if key in _MUTATORS and isinstance(obj, (list, dict)) else []
    if kind == "attr":
        return [("attr", key)] if mutability(obj) and hasattr(obj, key) else []
    if not isinstance(obj, (list, dict)):
        return []
    if key is None:
        return [("item", k) for k in keys_of(obj)]
    return [("item", key)] if _has(obj, key) else []


def resizable(site: Site, variables: dict) -> list[tuple[str, Any]]:
    """Return the lists and dicts whose length or keys the body could change."""
    found = {}
    for name, kind, key in site.changes:
        obj = site.lookup(name, variables)
        grows = key in _MUTATORS if kind == "call" else kind == "item"
        if isinstance(obj, (list, dict)) and grows and name not in site.names:
            found[id(obj)] = (name, obj)
    return list(found.values())


def _has(obj: Any, key: Any) -> bool:
    return key in obj if isinstance(obj, dict) else isinstance(key, int) and -len(obj) <= key < len(obj)


def keys_of(obj: Any) -> list:
    """Return the keys of a dict, the indices of a list."""
    if isinstance(obj, dict):
        return list(obj)
    return list(range(len(obj))) if isinstance(obj, list) else []


# --- hidden ----------------------------------------------------------------------------------------------------------


def hidden_places(site: Site, variables: dict) -> tuple[list[Place], list[Place]]:
    """Return the places that methods, helpers and nested functions called in the body may change.

    The first list are carried; those of the second hold Python numbers, which stay numbers.
    """
    if not site.changes and not site.handed_on:
        return [], []
    search = Search()
    search.counters = _counters_of_nested_functions(site, variables)
    for name, kind, key in site.changes:
        obj = site.lookup(name, variables)
        if obj is UNBOUND or name in site.names:
            continue
        is_call = kind == "call" or kind == "path" and key[-1][0] == "call"
        for target in _ends_of(obj, key) if is_call and kind == "path" else [obj] if is_call else []:
            if not isinstance(target, (list, dict)):
                search.follow(name, target, 0, _attributes_set_by_methods(target))
    for name in site.handed_on:
        obj = site.lookup(name, variables)
        if obj is not UNBOUND and name not in site.names:
            search.follow(name, obj, 0, None)
    return [*search.found, *search.fragments], search.numbers


def _counters_of_nested_functions(site: Site, variables: dict) -> set[tuple]:
    """Return (id of the object, key) of the places that nested functions visibly assign: a number there is carried."""
    found = set()
    for name, kind, key in site.nested_changes:
        obj = site.lookup(name, variables)
        if kind != "call" and mutability(obj):
            found.update((id(target), place) for target, place in _changed_slots(obj, kind, key))
    return found


class Search:
    """Walks from objects to the slots that hold scalars and vectors of this function."""

    def __init__(self):
        self.counters: set[tuple] = set()
        self.found: list[Place] = []
        self.fragments: list[Place] = []
        self.numbers: list[Place] = []
        self.seen: set[int] = set()
        self.blocks: list | None = None

    def follow(self, name: str, obj: Any, depth: int, attributes: tuple[str, ...] | None) -> None:
        """Collect the slots of an object; of its attributes that are scalars only `attributes`, None for all."""
        kind = kind_of(obj)
        if not kind or id(obj) in self.seen or depth > _DEPTH:
            return
        self.seen.add(id(obj))
        if kind == PASSES:
            for part in contained(obj) if obj.__class__ in (MethodType, partial) else ():
                self.follow(name, part, depth, _attributes_set_by_methods(part))
            return
        for key, value in entries(content(obj, kind)) if takes_values(obj, kind) else ():
            place = slot(kind, key)
            if mutability(value):
                self.follow(name, value, depth + 1, None if attributes is None else _attributes_set_by_methods(value))
            elif place[0] != "attr" or attributes is None or key in attributes:
                self._slot(name, obj, place, value)

    def _slot(self, name: str, obj: Any, key: tuple, value: Any) -> None:
        number = carry.kind_of(value) == carry.NUMBER
        if self.is_carried(value) or number and (id(obj), key) in self.counters:
            self.found.append(Place(name, obj, key, hidden=True))
        elif is_fragment(value):
            self.fragments.append(Place(name, obj, key, hidden=True))
        elif number and len(self.numbers) < _HIDDEN_LIMIT:
            place = Place(name, obj, key, hidden=True)
            place.entered = value
            self.numbers.append(place)

    def is_carried(self, value: Any) -> bool:
        """Return whether a value is a scalar or vector that can be used here."""
        if len(self.found) >= _HIDDEN_LIMIT:
            return False
        if isinstance(value, Numeric) and value.is_static():
            return True
        if not isinstance(value, (Numeric, Vector)) or value._scope is not current().scope:
            return False  # a value of another function must not even be looked at
        owner = value.ir_value().owner
        block = owner if isinstance(owner, ir.Block) else ir.InsertionPoint(owner.operation).block
        return any(block == b for b in self._visible())

    def _visible(self) -> list:
        """Return the blocks whose values can be used here; others hold what ended regions left."""
        if self.blocks is None:
            block = current().ip.block
            self.blocks = [block]
            op = block.owner.operation
            while op.parent is not None and op.name not in ("func.func", "gpu.func", "llvm.func"):
                self.blocks.append(ir.InsertionPoint(op).block)
                op = op.parent.operation
        return self.blocks


_set_attributes: dict[type, tuple[str, ...]] = {}


def _attributes_set_by_methods(obj: Any) -> tuple[str, ...]:
    """Return the attributes that the methods of a user's class assign, found in their bytecode."""
    cls = obj.__class__
    known = _set_attributes.get(cls)
    if known is None:
        methods = [
            m for c in cls.__mro__ for n, m in vars(c).items() if isinstance(m, FunctionType) and n != "__init__"
        ]
        stores = [i.argval for m in methods for i in get_instructions(m) if i.opname == "STORE_ATTR"]
        known = _set_attributes[cls] = tuple(dict.fromkeys(stores)) if mutability(obj) else ()
    return known

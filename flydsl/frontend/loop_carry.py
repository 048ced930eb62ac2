"""What a run-time loop hands from one iteration to the next.

Variables bound in the body that are read in a later iteration or after the loop, and places that the body
changes in place (`x[i] = v`, `obj.attr = v`, `list.append`, `atom.set_value`): their values enter as block
arguments and leave as results.
"""

from dis import get_instructions
from types import FunctionType
from typing import Any

from flydsl.expr.numeric.base import Numeric
from flydsl.frontend import carry
from flydsl.frontend.carry import LEAF, RAW, Mismatch, Node, Same
from flydsl.frontend.escape import note_region_local
from flydsl.frontend.heap import mutability
from flydsl.frontend.merge import mismatch_error
from flydsl.frontend.regions import fillers
from flydsl.frontend.site import UNBOUND, Site, is_internal_name
from flydsl.frontend.warn import warn

_MUTATORS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
    )
)


class _Place:
    """A slot of a container or attribute of an object that the body changes, or a whole DSL object (`key` None)."""

    __slots__ = ("key", "name", "node", "obj")

    def __init__(self, name: str, obj: Any, key: Any):
        self.name, self.obj, self.key = name, obj, key
        self.node: Node = carry.plan(self.get())

    def get(self) -> Any:
        if self.key is None:
            return self.obj
        kind, key = self.key
        return self.obj[key] if kind == "item" else getattr(self.obj, key)

    def set(self, value: Any) -> None:
        if self.key is None:
            _copy_state(value, self.obj)
            return
        kind, key = self.key
        if kind == "item":
            self.obj[key] = value
        else:
            setattr(self.obj, key, value)

    @property
    def label(self) -> str:
        if self.key is None:
            return self.name
        kind, key = self.key
        return f"{self.name}[{key!r}]" if kind == "item" else f"{self.name}.{key}"


def _copy_state(new: Any, obj: Any) -> None:
    """Make `obj` hold what `new` holds, attribute by attribute."""
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(new, slot):
                object.__setattr__(obj, slot, getattr(new, slot))
    if hasattr(obj, "__dict__"):
        obj.__dict__.update(new.__dict__)


class LoopCarry:
    """The carried state of one loop that is being traced."""

    def __init__(self, site: Site, variables: dict):
        self.site = site
        self.before = dict(zip(site.names, site.pick(variables)))
        self.nodes: dict[str, Node] = {}
        for name, value in self.before.items():
            if value is not UNBOUND and (name in site.live or name in site.checked):
                self.nodes[name] = carry.plan(value)
        self.places = _places(site, variables)
        self.counters = _counters(site, variables)
        self.sizes = [(name, obj, _keys(obj)) for name, obj in _resizable(site, variables)]

    def initial(self) -> list:
        """Return the IR values with which the loop starts."""
        out: list = []
        for name, node in self.nodes.items():
            node.flatten(self.before[name], out, name)
        for place in self.places:
            place.node.flatten(place.get(), out, place.label)
        return out

    def enter(self, arguments: list) -> list:
        """Bind the block arguments: change the places, return the values of `site.carried`."""
        values = iter(arguments)
        now = dict(self.before)
        for name, node in self.nodes.items():
            now[name] = node.rebuild(values)
        for place in self.places:
            place.set(place.node.rebuild(values))
        for flag in self.site.resets:
            now[flag] = False
        return [now[n] for n in self.site.carried]

    def yielded(self, variables: dict) -> list:
        """Return the IR values at the end of the body."""
        out: list = []
        for name, node in self.nodes.items():
            self._flatten(node, variables.get(name, UNBOUND), out, name, name)
        self._check_sizes()
        self._check_counters()
        for place in self.places:
            self._flatten(place.node, place.get(), out, place.label, place.name)
        return out

    def _flatten(self, node: Node, value: Any, out: list, label: str, name: str) -> None:
        try:
            if value is UNBOUND:
                raise Mismatch(
                    "", f"expected {carry.describe(getattr(node, 'exemplar', None))}, but it was deleted", 0, 0
                )
            node.flatten(value, out)
        except Mismatch as m:
            self._fail(label, name, m)

    def _check_sizes(self) -> None:
        for name, obj, keys in self.sizes:
            now = _keys(obj)
            if now != keys:
                kind = obj.__class__.__name__
                word = "length" if isinstance(obj, list) else "keys"
                detail = f"expected {kind} of {word} {_size(keys)}, got {kind} of {word} {_size(now)}"
                self._fail(name, name, Mismatch("", detail, [], []))

    def _check_counters(self) -> None:
        for name, obj, attribute, value in self.counters:
            if getattr(obj, attribute, value) != value:
                text = (
                    f"'{name}.{attribute}' changes once, while the body of the {self.site.construct} loop is traced, and "
                    f"not in each iteration; make it an fx.Int32 or fx.Float32 before the loop to have it carried"
                )
                warn(text, self.site.spans.get(name) or self.site.span)

    def _fail(self, label: str, name: str, m: Mismatch) -> None:
        site = self.site
        at = site.spans.get(name) or site.span
        notes = (
            f"the loop begins at {site.span}, where '{name}' is {carry.describe(self.before.get(name, m.before))}",
        )
        raise mismatch_error(m, label, f"{site.construct}-body", f"the {site.construct} loop", at, notes)

    def added(self, variables: dict, ip_outside) -> list[tuple[Any, Any, str]]:
        """Return (name, node, values, fillers) of internal variables that the body bound first: a returned value."""
        found = []
        for name, old in self.before.items():
            value = variables.get(name, UNBOUND)
            if old is UNBOUND and value is not UNBOUND and is_internal_name(name) and name in self.site.live:
                node = carry.plan(value)
                out: list = []
                node.flatten(value, out)
                with ip_outside():
                    found.append((name, node, out, fillers([v.type for v in out], "return value")))
        return found

    def leave(self, results: list, added: list, variables: dict) -> list:
        """Put the results into the places; return the values of `site.names` after the loop."""
        values = iter(results)
        after = dict(self.before)
        for name, node in self.nodes.items():
            after[name] = node.rebuild(values)
        for place in self.places:
            place.set(place.node.rebuild(values))
        for name, node, _, _ in added:
            after[name] = node.rebuild(values)
        for name, value in after.items():
            if value is UNBOUND and variables.get(name, UNBOUND) is not UNBOUND:
                note_region_local(self.site, name, True)
        return [after[n] for n in self.site.names]


def _counters(site: Site, variables: dict) -> list[tuple]:
    """Return (name, object, attribute, value) of Python numbers that methods called in the body could change."""
    found = []
    for name, kind, _ in site.changes:
        obj = variables.get(name, UNBOUND)
        if kind != "call" or obj is UNBOUND or name in site.names or not mutability(obj):
            continue
        numbers = ((a, getattr(obj, a, None)) for a in _attributes_set_by_methods(obj))
        found += [(name, obj, a, v) for a, v in numbers if carry.kind_of(v) == carry.NUMBER]
    return found


def _resizable(site: Site, variables: dict) -> list[tuple[str, Any]]:
    """Return the lists and dicts whose length or keys the body could change."""
    found = {}
    for name, kind, key in site.changes:
        obj = variables.get(name, UNBOUND)
        grows = key in _MUTATORS if kind == "call" else kind == "item"
        if isinstance(obj, (list, dict)) and grows and name not in site.names:
            found[id(obj)] = (name, obj)
    return list(found.values())


def _places(site: Site, variables: dict) -> list[_Place]:
    places: dict[tuple, _Place] = {}
    for name, kind, key in site.changes:
        obj = variables.get(name, UNBOUND)
        if obj is UNBOUND or name in site.names:
            continue
        for one in _changed_keys(obj, kind, key):
            place = _Place(name, obj, one)
            if one is not None and place.node.__class__ is Same and kind == "call":
                continue
            places.setdefault((id(obj), one), place)
    return list(places.values())


def _changed_keys(obj: Any, kind: str, key: Any) -> list:
    """Return the keys of an object that a change of this kind can touch; [None] for a whole DSL object."""
    if carry.kind_of(obj) == LEAF:
        changes = kind == "attr" or (kind == "call" and key.startswith("set"))
        return [None] if changes else []
    if kind == "call":
        if isinstance(obj, (list, dict)):
            return [("item", k) for k in _keys(obj)] if key in _MUTATORS else []
        return [("attr", a) for a in _attributes_set_by_methods(obj) if _is_carried_leaf(getattr(obj, a, None))]
    if kind == "attr":
        return [("attr", key)] if mutability(obj) and hasattr(obj, key) else []
    if not isinstance(obj, (list, dict)):
        return []
    if key is None:
        return [("item", k) for k in _keys(obj)]
    return [("item", key)] if _has(obj, key) else []


_set_attributes: dict[type, tuple[str, ...]] = {}


def _attributes_set_by_methods(obj: Any) -> tuple[str, ...]:
    """Return the attributes that the methods of a user's class assign, found in their bytecode."""
    cls = obj.__class__
    known = _set_attributes.get(cls)
    if known is None:
        known = ()
        if mutability(obj):
            methods = [
                m for c in cls.__mro__ for n, m in vars(c).items() if isinstance(m, FunctionType) and n != "__init__"
            ]
            known = tuple(
                dict.fromkeys(i.argval for m in methods for i in get_instructions(m) if i.opname == "STORE_ATTR")
            )
        _set_attributes[cls] = known
    return known


def _is_carried_leaf(value: Any) -> bool:
    kind = carry.kind_of(value)
    return kind == RAW or kind == LEAF and (isinstance(value, Numeric) or not carry.is_static(value))


def _has(obj: Any, key: Any) -> bool:
    return key in obj if isinstance(obj, dict) else isinstance(key, int) and -len(obj) <= key < len(obj)


def _keys(obj: Any) -> list:
    if isinstance(obj, dict):
        return list(obj)
    return list(range(len(obj))) if isinstance(obj, list) else []


def _size(keys: list) -> str:
    return str(len(keys)) if all(isinstance(k, int) for k in keys) else str(keys)

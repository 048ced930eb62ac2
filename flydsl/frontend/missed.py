"""What the body of a run-time loop changed without being carried.

Which places are carried is found before the body is traced, from its syntax and its objects (`places`). That misses
changes through local names for parts of an object, operators, properties, iterators and globals. So what the body can
reach is remembered and compared at its end; a loop that turns out to change more is traced again with those places.
"""

from collections.abc import Sequence
from typing import Any

from flydsl.expr.numeric.base import Numeric
from flydsl.expr.vector import Vector
from flydsl.frontend import carry
from flydsl.frontend.contents import content, entries, put, same_content, slot, takes_values
from flydsl.frontend.escape import Escaped
from flydsl.frontend.heap import Cell, Heap
from flydsl.frontend.object_merge import comparable, is_run_time, pairs, put_back_later
from flydsl.frontend.places import Place, Search
from flydsl.frontend.site import Site

_CONTAINERS = (carry.LIST, carry.TUPLE, carry.DICT, carry.NAMESPACE, carry.DATACLASS)


class MissedChanges:
    """The objects that one loop can reach, as they are before it."""

    __slots__ = ("_changed", "_heap", "_search", "_site", "counters")

    def __init__(self, site: Site, variables: dict):
        self._site = site
        self._heap = Heap(site, variables)
        self._search: Search | None = None
        self._changed: list[tuple[Cell, Any]] = []
        self.counters: list[Place] = []

    def known(self, added: Sequence[Place]) -> list[Place]:
        """Return the places that an earlier trace of this loop missed, in the order of the objects."""
        if not added and not self._site.missed:
            return []
        self._search = Search()
        places = [Place(p.name, p.obj, p.key, hidden=True) for p in added]
        if self._site.missed:
            for cell in self._heap.cells:
                for key, value in entries(cell.before) if takes_values(cell.obj, cell.kind) else ():
                    if (cell.name, key) in self._site.missed and self._search.is_carried(value):
                        places.append(Place(cell.name, cell.obj, slot(cell.kind, key), hidden=True))
        return places

    def found(self, carried: list[Place]) -> list[Place]:
        """Return the places that the body changed and that are not among `carried`.

        Raises   StateNotCarried: the body changed an object that cannot hold run-time values
        """
        for cell in self._heap.cells:
            now = content(cell.obj, cell.kind)
            if not same_content(now, cell.before):
                self._changed.append((cell, now))
        if not self._changed:
            return []
        ids = {p.id for p in carried}
        self._search = Search()
        found: list[Place] = []
        for cell, now in self._changed:
            if not takes_values(cell.obj, cell.kind):
                comparable(cell, cell.before, now, self._site)
            elif (id(cell.obj), None) not in ids:
                found += self._found_in(cell, now, ids)
        return found

    def _found_in(self, cell: Cell, now: Any, ids: set) -> list[Place]:
        found = []
        for key, old, new in pairs(cell.before, now):
            if new is old:
                continue
            place_key = slot(cell.kind, key)
            if (id(cell.obj), place_key) in ids or not self._is_state(old, new):
                continue
            both_numbers = carry.kind_of(old) == carry.kind_of(new) == carry.NUMBER
            place = _place(cell, place_key, old)
            if both_numbers:
                self.counters.append(place)
            else:
                self._site.missed.add((cell.name, key))
                found.append(place)
        return found

    def _is_state(self, old: Any, new: Any) -> bool:
        """Return whether a place that held `old` before the body and holds `new` after it has to be carried."""
        kind = carry.kind_of(old)
        if kind == carry.NUMBER:
            return new != old if carry.kind_of(new) == carry.NUMBER else is_run_time(new)
        if kind in _CONTAINERS:
            if carry.kind_of(new) != kind:
                return False
            parts, others = carry.take_apart(old, kind)[1], carry.take_apart(new, kind)[1]
            return len(parts) == len(others) and any(map(is_run_time, others)) and all(map(self._can_enter, parts))
        if not self._search.is_carried(old) or new.__class__ is Escaped:
            return False
        return carry.kind_of(new) in (carry.LEAF, carry.NUMBER, carry.RAW) and not (
            isinstance(new, Numeric) and carry.is_static(new) and carry.is_static(old) and carry.same_static(old, new)
        )

    def _can_enter(self, value: Any) -> bool:
        kind = carry.kind_of(value)
        if kind in _CONTAINERS:
            return all(map(self._can_enter, carry.take_apart(value, kind)[1]))
        return kind == carry.NUMBER or self._search.is_carried(value)

    def put_back(self) -> None:
        """Have all objects hold what they held before the loop."""
        for cell in self._heap.cells:
            if not same_content(content(cell.obj, cell.kind), cell.before):
                put(cell.obj, cell.kind, cell.before)

    def end(self) -> None:
        """After the loop: what the body added to objects is gone, and objects of the module are put back in the end."""
        for cell, now in self._changed:
            if cell.shared:
                put_back_later(cell)
            if len(now) == len(cell.before):
                continue
            held = dict(entries(cell.before))
            gone = [key for key, value in entries(now) if key not in held and isinstance(value, (Numeric, Vector)) and is_run_time(value)]
            if gone and takes_values(cell.obj, cell.kind):
                after = content(cell.obj, cell.kind)
                for key in gone:
                    after[key] = Escaped(cell.name, self._site)
                put(cell.obj, cell.kind, after)


def _place(cell: Cell, key: tuple, value: Any) -> Place:
    """Return the place of an object that holds `value` before the loop."""
    place = Place(cell.name, cell.obj, key, hidden=True)
    place.entered = value
    return place

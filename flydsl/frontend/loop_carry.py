"""What a run-time loop hands from one iteration to the next.

Variables bound in the body that are read in a later iteration or after the loop, and places that the body
changes in place (`x[i] = v`, `obj.attr = v`, `list.append`, `atom.set_value`): their values enter as block
arguments and leave as results.
"""

from collections.abc import Sequence
from typing import Any

from flydsl.frontend import carry
from flydsl.frontend.carry import Mismatch, Node, OtherMemory
from flydsl.frontend.escape import note_region_local
from flydsl.frontend.fragments import is_temporary
from flydsl.frontend.merge import mismatch_error
from flydsl.frontend.missed import MissedChanges
from flydsl.frontend.places import Place, changed_places, hidden_places, keys_of, resizable
from flydsl.frontend.regions import fillers
from flydsl.frontend.site import UNBOUND, Site, is_internal_name
from flydsl.frontend.warn import warn


class LoopCarry:
    """The carried state of one loop that is being traced."""

    def __init__(self, site: Site, variables: dict, added: Sequence[Place] = ()):
        self.site = site
        self.before = dict(zip(site.names, site.pick(variables)))
        self.nodes: dict[str, Node] = {}
        for name, value in self.before.items():
            if value is not UNBOUND and (name in site.live or name in site.checked):
                self.nodes[name] = carry.plan(value)
        hidden, counters = hidden_places(site, variables)
        self.missed = MissedChanges(site, variables)
        self.places = [*changed_places(site, variables), *hidden, *self.missed.known(added)]
        self.counters = counters
        if self.places:
            self._drop_repeated()
        self.sizes = [(name, obj, keys_of(obj)) for name, obj in resizable(site, variables)]

    def _drop_repeated(self) -> None:
        places: dict[tuple, Place] = {}
        for place in self.places:
            places.setdefault(place.id, place)
        self.places = list(places.values())
        self.counters = [c for c in self.counters if c.id not in places]

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
        self.entered = now
        for place in self.places:
            place.enter(values)
        for flag in self.site.resets:
            now[flag] = False
        return [now[n] for n in self.site.carried]

    def found(self) -> list[Place]:
        """Return places that the body changed and that are not carried, for the loop to be traced again with them."""
        found = self.missed.found(self.places)
        if found:
            self.missed.put_back()
        return found

    def yielded(self, variables: dict) -> list:
        """Return the IR values at the end of the body."""
        out: list = []
        for name, node in self.nodes.items():
            size = len(out)
            try:
                self._flatten(node, variables.get(name, UNBOUND), out, name, name)
            except OtherMemory as m:
                if name in self.site.live:
                    self._fail(name, name, m)
                del out[size:]
                node.flatten(self.entered[name], out)  # never read
        self._check_sizes()
        self._check_counters()
        for place in self.places:
            if place.hidden:
                try:
                    place.flatten_or_forget(out)
                except OtherMemory as m:
                    self._fail(place.label, place.name, m)
            else:
                size = len(out)
                try:
                    self._flatten(place.node, place.get(), out, place.label, place.name)
                except OtherMemory as m:
                    if not is_temporary(m.fragment, m.before):
                        self._fail(place.label, place.name, m)
                    del out[size:]
                    place.forget(out)
        return out

    def _flatten(self, node: Node, value: Any, out: list, label: str, name: str) -> None:
        try:
            if value is UNBOUND:
                raise Mismatch(
                    "", f"expected {carry.describe(getattr(node, 'exemplar', None))}, but it was deleted", 0, 0
                )
            node.flatten(value, out)
        except OtherMemory:
            raise
        except Mismatch as m:
            self._fail(label, name, m)

    def _check_sizes(self) -> None:
        for name, obj, keys in self.sizes:
            now = keys_of(obj)
            if now != keys:
                before = dict.fromkeys(keys) if isinstance(obj, dict) else [None] * len(keys)
                detail = f"expected {carry.describe(before)}, got {carry.describe(obj)}"
                self._fail(name, name, Mismatch("", detail, before, obj))

    def _check_counters(self) -> None:
        if not self.counters and not self.missed.counters:
            return
        for place in {p.id: p for p in (*self.missed.counters, *self.counters)}.values():
            if place.changed():
                text = (
                    f"'{place.label}' is a number before the {self.site.construct} loop and changes once, while its "
                    f"body is traced, not in each iteration; start with fx.Int32 or fx.Float32 to have it carried"
                )
                warn(text, self.site.spans.get(place.name) or self.site.span)

    def _fail(self, label: str, name: str, m: Mismatch) -> None:
        site = self.site
        at = site.spans.get(name) or site.span
        notes = (
            f"the loop begins at {site.span}, where '{name if name in self.before else label + m.path}' is "
            f"{carry.describe(self.before.get(name, m.before))}",
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
            place.leave(values, self.site)
        self.missed.end()
        for name, node, _, _ in added:
            after[name] = node.rebuild(values)
        for name, value in after.items():
            if value is UNBOUND and variables.get(name, UNBOUND) is not UNBOUND:
                note_region_local(self.site, name, True)
        return [after[n] for n in self.site.names]

"""`if` while tracing: a Python condition takes its branch, a run-time condition traces both into an scf.if.

The code that `rewrite.if_` makes asks the object that `branch()` returns: `then`, `otherwise`, `dynamic`.
"""

from typing import Any

from flydsl.diag import PythonSideEffect, warn
from flydsl.frontend.carry import Mismatch, OtherMemory
from flydsl.frontend.contents import put
from flydsl.frontend.escape import Escaped, note_region_local
from flydsl.frontend.fragments import differing, fragments_of, is_temporary
from flydsl.frontend.heap import Heap
from flydsl.frontend.merge import EXPRESSION_VALUE, Merge, expression_error, mismatch_error
from flydsl.frontend.object_merge import comparable, counters, put_back_later, unmerged
from flydsl.frontend.regions import IfRegion
from flydsl.frontend.site import UNBOUND, Site, is_internal_name
from flydsl.frontend.truth import condition


class _Static:
    """A branch that Python takes."""

    __slots__ = ("otherwise", "then")
    dynamic = False

    def __init__(self, taken: bool):
        self.then, self.otherwise = taken, not taken


_TAKEN, _NOT_TAKEN = _Static(True), _Static(False)


def branch(site: Site, test: Any) -> "_Static | Branch":
    """Begin an `if`."""
    cond = condition(test, "if")
    if cond is True:
        return _TAKEN
    if cond is False:
        return _NOT_TAKEN
    return Branch(site, cond)


class Branch:
    """An `if` whose condition is known when the kernel runs."""

    __slots__ = ("after_then", "before", "heap", "region", "site")
    dynamic = then = otherwise = True

    def __init__(self, site: Site, cond: Any):
        self.site = site
        for call, place in site.effects:
            warn(PythonSideEffect(call=call, at=place))
        self.region = IfRegion(cond)
        self.after_then: list | None = None

    def begin(self, variables: dict) -> None:
        """Begin the first branch."""
        site = self.site
        self.before = site.pick(variables)
        self.heap = Heap(site, variables)
        self.region.then()

    def begin_second(self, variables: dict) -> None:
        """Begin the second branch; nothing happens in the first."""
        site = self.site
        self.before = self.after_then = site.pick(variables)
        self.heap = Heap(site, variables)
        self.region.otherwise()

    def middle(self, variables: dict) -> list:
        """End the first branch, begin the second; return the values that variables had before."""
        self._end_then(variables)
        self.region.otherwise()
        return self.before

    def _end_then(self, variables: dict) -> None:
        self.after_then = self.site.pick(variables)
        self.heap.end_then(lambda cell, now: counters(cell, now, self.site))

    def changes(self, variables: dict) -> bool:
        """Return whether the only branch so far changed a variable or a container."""
        now = self.site.pick(variables)
        return any(x is not y for x, y in zip(now, self.before)) or bool(self.heap.changed())

    def only_binds(self, variables: dict) -> bool:
        """Return whether all that the only branch so far changed is to bind variables that had no value."""
        now = self.site.pick(variables)
        return not self.heap.changed() and all(x is y or y is UNBOUND for x, y in zip(now, self.before))

    def end(self, variables: dict, value: tuple | None = None) -> list:
        """End the last branch; return the values that variables have after the `if`.

        `value`: what the two sides of an expression came to, merged too and last in the result.
        """
        if self.after_then is None:
            self._end_then(variables)
            after_else = self.before
        else:
            after_else = self.site.pick(variables)
        return _Ending(self, after_else, value).run()


class _Ending:
    """The merge at the end of one `if`."""

    def __init__(self, b: Branch, after_else: list, value: tuple | None = None):
        self.site, self.b, self.after_else, self.value = b.site, b, after_else, value
        then_dead = self._dead(b.after_then)
        self.merge = Merge(b.region, then_dead, not then_dead and self._dead(after_else))

    def _dead(self, after: list) -> bool:
        """Return whether a branch ended in a jump: one of its flags is statically true."""
        flags = self.site.flags
        return bool(flags) and any(value is True for name, value in zip(self.site.names, after) if name in flags)

    def run(self) -> list:
        b, site = self.b, self.site
        changed = [(cell, *comparable(cell, x, y, site)) for cell, x, y in b.heap.changed()]
        if changed:
            self.merge.then_view = {id(cell.obj): x for cell, x, _ in changed}
            self.merge.else_view = {id(cell.obj): y for cell, _, y in changed}
        values = list(b.before)
        slots = []
        for i, (name, old, x, y) in enumerate(zip(site.names, b.before, b.after_then, self.after_else)):
            if x is y:
                values[i] = x
            elif self._leaves(name, old):
                if self._one_sided(name, x, y):
                    values[i] = UNBOUND
                    note_region_local(site, name, x is not UNBOUND)
                else:
                    self._add(name, old, x, y)
                    slots.append(i)
            elif old is UNBOUND:
                note_region_local(site, name, x is not UNBOUND)
        cells = self._add_objects(changed)
        if self.value is not None:
            self._add(EXPRESSION_VALUE, UNBOUND, *self.value)
        merged = self.merge.finish(self._fail)
        for i, value in zip(slots, merged):
            values[i] = value
        for cell, value in zip(cells, merged[len(slots) :]):
            put(cell.obj, cell.kind, value)
        return values if self.value is None else [*values, merged[-1]]

    def _leaves(self, name: str, old: Any) -> bool:
        return name in self.site.live or (name in self.site.checked and old is not UNBOUND)

    def _one_sided(self, name: str, x: Any, y: Any) -> bool:
        """Return whether a variable has a value after one branch only, and someone could read it after the other."""
        if x is not UNBOUND and y is not UNBOUND or self.site.is_expression:
            return False
        dead = self.merge.then_dead if x is UNBOUND else self.merge.else_dead
        return not dead and not is_internal_name(name)

    def _add(self, name: str, old: Any, x: Any, y: Any) -> None:
        try:
            self.merge.add(name, x, y)
        except Mismatch as m:
            if isinstance(m, OtherMemory) and name in self.site.checked - self.site.live:
                self.merge.add(name, old, old)  # never read
                return
            self._fail(name, "else" if x is old else "then" if y is old else "else", m, swapped=y is old)

    def _add_objects(self, changed: list) -> list:
        cells: list = []
        if not changed:
            return cells
        changed_here = {c[0] for c in self.site.changes}
        for cell, x, y in changed:
            if cell.shared:
                put_back_later(cell)
            _drop_temporaries(cell, x, y, self.site)
            try:
                self.merge.add(cell.name, x, y)
                cells.append(cell)
            except Mismatch as m:
                if cell.name in changed_here and cell.name in self.site.live:
                    self._fail(cell.name, "then" if y is cell.before else "else", m, swapped=True)
                put(cell.obj, cell.kind, unmerged(cell, x, y, self.site))
        return cells

    def _fail(self, name: str, which: str, m: Mismatch, swapped: bool = False) -> None:
        site = self.site
        if swapped:
            m = Mismatch(m.path, _swap(m), m.after, m.before)
        spans = site.spans if which == "then" else site.else_spans
        at = spans.get(name) or site.spans.get(name) or site.else_spans.get(name) or site.span
        other = (site.else_spans if which == "then" else site.spans).get(name)
        notes = (f"'{_shown(name)}' is also bound at {other}",) if other else (f"the branch begins at {site.span}",)
        if name == EXPRESSION_VALUE:
            raise expression_error(m, which)
        construct = site.construct
        raise mismatch_error(m, _shown(name), f"{construct}: {which}-branch", f"the {construct}", at, notes)


def _shown(name: str) -> str:
    return "return value" if is_internal_name(name) else name


def _swap(m: Mismatch) -> str:
    from flydsl.frontend.carry import describe, kind_of, plan

    if kind_of(m.after) and kind_of(m.before):
        try:
            plan(m.after).flatten(m.before, [])
        except Mismatch as swapped:
            return swapped.detail
    return f"expected {describe(m.after)}, produced {describe(m.before)}"


def _drop_temporaries(cell: Any, x: Any, y: Any, site: Site) -> None:
    """Put what cannot be used in the place of fragments that one branch made: they end with it."""
    keys = range(min(len(x), len(y))) if x.__class__ is list else x.keys() & y.keys()
    for key in keys:
        made = x[key] is not y[key] and (differing(x[key], y[key]) or differing(y[key], x[key]))
        if made and (is_temporary(made) or any(map(is_temporary, fragments_of(x[key])))):
            x[key] = y[key] = Escaped(cell.name, site)

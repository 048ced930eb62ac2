"""What a variable is after a run-time `if`: the value of one branch or the other.

`Merge` collects the pairs that differ, checks their types, yields their IR values from the branches and
rebuilds the merged values.
"""

from typing import Any

from flydsl.diag import CarryMismatch, CarryNone, CarryOpaque, FragmentRebound, Span
from flydsl.frontend import carry
from flydsl.frontend.carry import Mismatch, Same, describe
from flydsl.frontend.fragments import differing, is_fragment
from flydsl.frontend.regions import IfRegion
from flydsl.frontend.rewrite.return_ import RESULT
from flydsl.frontend.site import UNBOUND

EXPRESSION_VALUE = "ternary result"


class Merge:
    """Pairs of values (after the first branch, after the second) that become results of one scf.if."""

    def __init__(self, region: IfRegion, then_dead: bool = False, else_dead: bool = False):
        self.region = region
        self.then_view: carry.View = carry.NOTHING
        self.else_view: carry.View = carry.NOTHING
        self.then_dead, self.else_dead = then_dead, else_dead
        self.pairs: list[tuple] = []

    def add(self, name: str, a: Any, b: Any) -> None:
        """Add a pair. On a path that ends in a jump a variable is never read, so it need not fit; a returned
        value must.

        Raises   Mismatch: the two cannot be one value
        """
        try:
            node = carry.unify(a, b, "", self.then_view, self.else_view)
        except Mismatch:
            if name == RESULT or not (self.then_dead or self.else_dead):
                raise
            a, b = (UNBOUND, b) if self.then_dead else (a, UNBOUND)
            node = carry.unify(a, b, "", self.then_view, self.else_view)
        self.pairs.append((name, node, a, b))

    def finish(self, fail) -> list[Any]:
        """Close the op and return the merged values; `fail(name, branch, mismatch)` raises the user's error."""
        region = self.region
        then_values: list = []
        else_values: list = []
        needed = [p for p in self.pairs if p[1].__class__ is not Same]
        if needed:
            region.in_then()
            for name, node, a, _ in needed:
                self._flatten(node, a, then_values, name, "then", fail)
            region.in_else()
            for name, node, _, b in needed:
                self._flatten(node, b, else_values, name, "else", fail)
        results = iter(region.finish(then_values, else_values))
        return [node.rebuild(results) for _, node, _, _ in self.pairs]

    def _flatten(self, node: Any, value: Any, out: list, name: str, branch: str, fail) -> None:
        size = len(out)
        in_then = branch == "then"
        try:
            node.flatten(value, out, "", self.then_view if in_then else self.else_view)
        except Mismatch as m:
            if name == RESULT or not (self.then_dead if in_then else self.else_dead):
                fail(name, branch, m)
            del out[size:]
            node.flatten(UNBOUND, out, name)


def merge_expression(region: IfRegion, a: Any, b: Any) -> Any:
    """Return the value of a conditional expression."""

    def fail(name: str, branch: str, m: Mismatch) -> None:
        raise expression_error(m, branch)

    merge = Merge(region)
    try:
        merge.add(EXPRESSION_VALUE, a, b)
    except Mismatch as m:
        fail(EXPRESSION_VALUE, "else", m)
    return merge.finish(fail)[0]


CarryError = CarryMismatch | CarryNone | CarryOpaque | FragmentRebound


def expression_error(m: Mismatch, branch: str) -> CarryError:
    """Return the error for the two sides of `a if c else b`."""
    return mismatch_error(m, EXPRESSION_VALUE, f"dynamic ifexp {branch}-branch", "the conditional expression", None)


def mismatch_error(
    m: Mismatch, name: str, region: str, construct: str, at: Span | None, notes: tuple[str, ...] = ()
) -> CarryError:
    """Return the error for two values of a variable that cannot be one."""
    place = name + m.path
    fragment = differing(m.before, m.after)
    if fragment is not None:
        named = " " not in place and is_fragment(m.before)
        fields = {"tensor": fragment, "construct": construct, "target": place if named else "target"}
        return FragmentRebound(at=at, notes=notes, region=region, name=place, **fields)
    if m.before is None or m.after is None:
        other = m.after if m.before is None else m.before
        if m.before is None:
            produced = f"becomes {describe(other)}"
            return CarryNone(at=at, notes=notes, region=region, name=place, construct=construct, produced=produced)
    opaque = next((v for v in (m.after, m.before) if v is not None and carry.kind_of(v) == carry.OPAQUE), None)
    if opaque is not None:
        return CarryOpaque(
            at=at, notes=notes, region=region, name=place, cls=opaque.__class__.__name__, described=describe(opaque)
        )
    advice = _advice(m, name if name.isidentifier() else "")
    return CarryMismatch(
        at=at, notes=notes, region=region, name=place, detail=m.detail, construct=construct, advice=advice
    )


def _advice(m: Mismatch, name: str) -> str:
    before, after = m.before, m.after
    if carry.kind_of(before) in (carry.LIST, carry.DICT) and before.__class__ is after.__class__:
        return "keep length and keys the same, for example fill it with zeros first; or make the condition compile-time"
    wanted = describe(before)
    if carry.kind_of(after) in (carry.LEAF, carry.NUMBER) and carry.kind_of(before) in (carry.LEAF, carry.NUMBER):
        got = describe(after)
        if not name:
            return f"convert one side, for example `fx.{wanted}(...)` or `x.to(fx.{wanted})`"
        return f"convert explicitly: start with `{name} = fx.{got}(...)`, or assign `....to(fx.{wanted})`"
    which = f"'{name}'" if name else "both values"
    return f"give {which} one type on all paths, or decide with a compile-time condition"

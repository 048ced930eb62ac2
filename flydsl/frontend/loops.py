"""`for` and `while` while tracing.

The objects made here answer the code that `rewrite.for_` and `rewrite.while_` make. A loop that Python runs has
`open` False and iterates as usual; a run-time loop has `open` True, its body is traced once between `enter` and
`leave`.
"""

import builtins
from collections.abc import Iterable, Iterator
from typing import Any

from flydsl.diag import BothUnrollHints, EndlessLoop, RangeArguments, TupleTargetWithoutInit, WhileElse, YieldCount
from flydsl.expr import control
from flydsl.expr.numeric.base import wrap
from flydsl.expr.numeric.classes import Index, Int32
from flydsl.frontend import carry
from flydsl.frontend.bounds import counter_bounds, index_bounds, is_static_range
from flydsl.frontend.carry import Mismatch
from flydsl.frontend.loop_carry import LoopCarry
from flydsl.frontend.merge import mismatch_error
from flydsl.frontend.places import Place
from flydsl.frontend.regions import CountedWhileRegion, ForRegion, WhileRegion
from flydsl.frontend.site import Site
from flydsl.frontend.truth import as_i1, condition
from flydsl.ir import ir
from flydsl.ir.trace import active

_STATIC_LIMIT = 1 << 16
_MOST_MISSED = 256  # places that a loop is traced again for
_RANGES = (builtins.range, control.range)


class PythonLoop:
    """A loop over an iterable of Python."""

    __slots__ = ("_iterable",)
    open = False

    def __init__(self, iterable: Iterable):
        self._iterable = iterable

    def __iter__(self) -> Iterator:
        return iter(self._iterable)


def for_loop(site: Site, keep_static: bool, callee: Any, args: tuple, hints: dict) -> "PythonLoop | ForLoop":
    """Begin `for ... in range(...)`; with `keep_static` (plain helpers) static bounds make a Python loop."""
    if callee not in _RANGES:
        return PythonLoop(callee(*args, **hints))
    if keep_static and not hints and is_static_range(args):
        return PythonLoop(builtins.range(*(int(a) for a in args)))
    return ForLoop(site, args, **_checked_hints(hints))


def _checked_hints(hints: dict) -> dict:
    unknown = [k for k in hints if k not in ("init", "unroll", "unroll_full")]
    if unknown:
        raise RangeArguments(problem=f"range() got an unexpected argument '{unknown[0]}'", advice="drop it")
    unroll = hints.get("unroll")
    if unroll is not None and (isinstance(unroll, bool) or not isinstance(unroll, int) or unroll < 1):
        raise RangeArguments(problem=f"range() got unroll={unroll!r}", advice="pass a positive Python int, 1 for no unrolling")
    if unroll is not None and hints.get("unroll_full"):
        raise BothUnrollHints()
    return hints


class ForLoop:
    """A run-time loop over range(...)."""

    __slots__ = ("_added", "_bounds", "_carry", "_hints", "_init", "_region", "_results", "_site", "_yielded", "done")
    open = True

    def __init__(self, site: Site, args: tuple, init: Any = None, unroll: int | None = None, unroll_full: bool = False):
        self._site = site
        self._init = None if init is None else _InitState(init)
        self._bounds = counter_bounds(args) if init is None else index_bounds(args)
        self._hints = unroll_attrs(unroll, unroll_full)
        self._yielded: list = []
        self._added: list[Place] = []
        self.done = False
        if site.has_tuple_target and init is None:
            raise TupleTargetWithoutInit(at=site.span)

    def __iter__(self) -> Iterator:
        while not self.done:
            yield self

    def enter(self, variables: dict) -> list:
        """Begin the body; return the values of the variables that it binds."""
        self._carry = LoopCarry(self._site, variables, self._added)
        inits = self._carry.initial()
        if self._init is not None:
            inits = [*self._init.values, *inits]
        if self._site.stop is None:
            self._region = ForRegion(self._bounds, inits, self._hints)
        else:
            self._region = CountedWhileRegion(self._bounds, inits)
        arguments = self._region.arguments
        if self._init is not None:
            self._region.op.attributes["fly.init"] = ir.IntegerAttr.get(active.trace.types.i32, len(self._init.values))
            arguments = self._init.enter(arguments)
        return self._carry.enter(arguments)

    @property
    def target(self) -> Any:
        """The value of the loop's target."""
        if self._init is None:
            return wrap(Int32, self._region.iv)
        return wrap(Index, self._region.iv), self._init.state

    def yield_(self, values: Any) -> None:
        """Take the state that the body yields."""
        self._yielded = self._init.yielded(values, self._site)

    def leave(self, variables: dict) -> list:
        """End the body; return the values that variables have after the loop."""
        site = self._site
        region = self._region
        missed = self._carry.found()
        if missed and len(self._added) < _MOST_MISSED:
            self._added += missed
            region.abandon()
            return list(self._carry.before.values())
        self.done = True
        values = [*self._yielded, *self._carry.yielded(variables)]
        added = self._carry.added(variables, lambda: _outside(region))
        pairs = [pair for _, _, vs, fs in added for pair in zip(vs, fs)]
        if site.stop is None:
            results = region.finish(values, pairs)
        else:
            stop = condition(variables.get(site.stop, False), "for")
            results = region.finish(stop, values, pairs)
        if self._init is not None:
            results = self._init.leave(results)
        return self._carry.leave(results, added, variables)

    @property
    def results(self) -> Any:
        """The final state of a loop with init=: a list, or the one value."""
        return self._init.results


class _outside:
    """Where the loop stands: for values that the loop needs before it starts."""

    def __init__(self, region: Any):
        self._region = region

    def __enter__(self) -> None:
        trace = self._region.trace
        self._inner = trace.ip
        trace.ip = ir.InsertionPoint(self._region.op)

    def __exit__(self, *exc) -> None:
        self._region.trace.ip = self._inner


class _InitState:
    """The explicit state of a loop: `init=` before it, one list inside and after."""

    __slots__ = ("bare", "init", "node", "results", "state", "values")

    def __init__(self, init: Any):
        self.bare = not isinstance(init, (list, tuple))
        self.init = [init] if self.bare else list(init)
        self.node = carry.plan(self.init)
        self.values: list = []
        self.node.flatten(self.init, self.values)

    def enter(self, arguments: list) -> list:
        values = iter(arguments)
        self.state = self.node.rebuild(values)
        return list(values)

    def yielded(self, given: Any, site: Site) -> list:
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(given) != len(self.init):
            raise YieldCount(expected=len(self.init), produced=len(given), notes=(f"the loop begins at {site.span}",))
        out: list = []
        try:
            self.node.flatten(given, out)
        except Mismatch as m:
            notes = (f"the loop begins at {site.span}",)
            raise mismatch_error(m, "state", "for-body", "the for loop", None, notes) from None
        return out

    def leave(self, results: list) -> list:
        values = iter(results)
        after = self.node.rebuild(values)
        self.results = after[0] if len(after) == 1 else after
        return list(values)


def unroll_attrs(unroll: int | None, unroll_full: bool) -> dict | None:
    """Return `llvm.loop_annotation`, which scf-to-cf moves to the back edge of the loop."""
    if unroll is None and not unroll_full:
        return None
    trace = active.trace
    key = ("unroll", unroll, unroll_full)
    attrs = trace.types.memo.get(key)
    if attrs is None:
        what = "full = true" if unroll_full else "disable = true" if unroll == 1 else f"count = {int(unroll)} : i32"
        disabled = "" if unroll == 1 and not unroll_full else "disable = false, "
        text = f"#llvm.loop_annotation<unroll = <{disabled}{what}>>"
        attrs = trace.types.memo[key] = {"llvm.loop_annotation": ir.Attribute.parse(text, trace.context)}
    return attrs


class WhileLoop:
    """A `while`: Python runs it as long as its condition is static, then it becomes an scf.while."""

    __slots__ = ("_added", "_carry", "_cond", "_iterations", "_names", "_region", "_site", "open")

    def __init__(self, site: Site):
        self._site = site
        self.open = False
        self._region = None
        self._added: list[Place] = []
        self._iterations = 0

    def test(self, value: Any, variables: "dict | bool") -> bool:
        """Take the condition; return whether the body is to be run or traced (now for the first time)."""
        cond = condition(value, "while")
        if self._region is not None:
            return self._again() or self._close(cond, variables)
        if cond is True or cond is False:
            self._iterations += 1
            if self._iterations > _STATIC_LIMIT:
                self._endless()
            return cond
        if self._site.has_else:
            raise WhileElse(
                at=self._site.span, reason="the loop runs when the kernel runs, its else body would have to as well"
            )
        self._cond = cond
        self.open = True
        return True

    def _endless(self) -> None:
        raise EndlessLoop(
            at=self._site.span,
            reason=f"its condition was true {_STATIC_LIMIT} times while tracing",
            advice="change the condition in the body, or make it a run-time value (fx.Int32, fx.Boolean)",
        )

    def enter(self, variables: dict) -> list:
        if self._added:
            variables = {**variables, **self._carry.before}
        self._carry = LoopCarry(self._site, variables, self._added)
        self._region = WhileRegion(self._cond, self._carry.initial())
        return self._carry.enter(self._region.arguments)

    def _again(self) -> bool:
        """Return whether the body has to be traced again, with places that it turned out to change."""
        missed = self._carry.found()
        if not missed or len(self._added) >= _MOST_MISSED:
            return False
        self._added += missed
        self._region.abandon()
        return True

    def _close(self, cond: Any, variables: dict) -> bool:
        going = as_i1(cond)
        values = self._carry.yielded(variables)
        added = self._carry.added(variables, lambda: _outside(self._region))
        pairs = [pair for _, _, vs, fs in added for pair in zip(vs, fs)]
        results = self._region.finish(going, values, pairs)
        self._names = self._carry.leave(results, added, variables)
        return False

    def leave(self) -> list:
        """Return the values that variables have after the loop."""
        return self._names

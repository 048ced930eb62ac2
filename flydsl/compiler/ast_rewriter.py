"""FlyDSL's names for what `flydsl.frontend` does: rewriting by hand, and run-time control flow from Python callables.

The functions take the branches or bodies as functions, and the variables as names and values; rewritten code
does not use them.
"""

import ast
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from flydsl.diag import CarryNone
from flydsl.expr.numeric.base import wrap
from flydsl.expr.numeric.classes import Int32
from flydsl.frontend import carry, rewritten
from flydsl.frontend.bounds import counter_bounds
from flydsl.frontend.carry import Mismatch, Node
from flydsl.frontend.merge import Merge, merge_expression, mismatch_error
from flydsl.frontend.regions import ForRegion, IfRegion, WhileRegion
from flydsl.frontend.rewrite.names import names_in
from flydsl.frontend.truth import as_i1, condition
from flydsl.ir import ir

__all__ = [
    "ASTRewriter",
    "CanonicalizeWhile",
    "FallbackLocations",
    "InsertEmptyYieldForSCFFor",
    "ReplaceIfWithDispatch",
]


class ASTRewriter:
    """Rewriting of one function."""

    @staticmethod
    def transform(fn: FunctionType) -> FunctionType:
        """Return the rewritten function; a `fn` without closure runs it from now on, too."""
        new = rewritten(fn)
        if new is not fn and fn.__closure__ is None:
            twin = f"_fly_twin_{id(new)}"
            scope: dict[str, Any] = {}
            exec(f"def forward(*args, **kwargs):\n    return {twin}(*args, **kwargs)", scope)
            fn.__globals__[twin] = new
            fn.__code__ = scope["forward"].__code__
        return new


class FallbackLocations:
    """Locations for ops built without one. Tracing gives every op its place, so nothing is rewritten for it."""

    @staticmethod
    def rewrite_globals() -> dict[str, Any]:
        """Return `_flydsl_loc(file, line, column)`, a context manager that makes a place the current location."""
        return {"_flydsl_loc": ir.Location.file}


def _collect_assigned_vars(stmts: list[ast.stmt], active_symbols: Sequence[set[str]]) -> list[str]:
    """Return the variables that statements bind, in order, of those that are active."""
    active = set().union(*active_symbols)
    handlers = {n.name for s in stmts for n in ast.walk(s) if isinstance(n, ast.ExceptHandler)}
    return [n for n in names_in(stmts).stores if n in active and n not in handlers]


class ReplaceIfWithDispatch:
    """`if` and conditional expressions over callables."""

    @staticmethod
    def scf_if_dispatch(
        cond: Any,
        then_fn: Callable,
        else_fn: Callable | None = None,
        *,
        result_names: Sequence[str] = (),
        result_values: Sequence[Any] = (),
        state_names: Sequence[str] = (),
        state_values: Sequence[Any] = (),
    ) -> Any:
        """Run the branch that `cond` selects, or trace both; return the variables after it: none, one or a tuple."""
        names, values = tuple(result_names or state_names), tuple(result_values or state_values)
        test = condition(cond, "if")
        if isinstance(test, bool):
            taken = then_fn if test else else_fn
            return _packed(_call(taken, names, values) if taken is not None else list(values))
        return _packed(_dynamic_if(test, then_fn, else_fn, names, values))

    @staticmethod
    def scf_ifexp_dispatch(cond: Any, then_fn: Callable, else_fn: Callable) -> Any:
        """Return the value of the side that `cond` selects, or the merged value of both."""
        test = condition(cond, "a conditional expression")
        if isinstance(test, bool):
            return then_fn() if test else else_fn()
        region = IfRegion(test)
        region.then()
        a = then_fn()
        region.otherwise()
        return merge_expression(region, a, else_fn())


class InsertEmptyYieldForSCFFor:
    """`for` over a callable body."""

    @staticmethod
    def scf_for_dispatch(
        start: Any,
        stop: Any,
        step: Any,
        body_fn: Callable,
        *,
        result_names: Sequence[str] = (),
        result_values: Sequence[Any] = (),
    ) -> Any:
        """Trace `body_fn(iv, names, *values)` as an scf.for; return the variables after it."""
        names = tuple(result_names)
        nodes, inits = _planned(names, result_values, "for")
        region = ForRegion(counter_bounds((start, stop, step)), inits)
        values = _rebuilt(nodes, region.arguments)
        after = _named(body_fn(wrap(Int32, region.iv), names, *values), names, values)
        results = region.finish(_flattened(nodes, names, after, "for"), [])
        return _packed(_rebuilt(nodes, results))


class CanonicalizeWhile:
    """`while` over callables for condition and body."""

    @staticmethod
    def scf_while_dispatch(
        before_fn: Callable,
        after_fn: Callable,
        *,
        result_names: Sequence[str] = (),
        result_values: Sequence[Any] = (),
    ) -> Any:
        """Run or trace a loop while `before_fn(names, *values)` holds; return the variables after it."""
        names, values = tuple(result_names), list(result_values)
        test = condition(before_fn(names, *values), "while")
        while test is True:
            values = _named(after_fn(names, *values), names, values)
            test = condition(before_fn(names, *values), "while")
        return _packed(values if test is False else _dynamic_while(test, before_fn, after_fn, names, values))


def _dynamic_if(test: Any, then_fn: Callable, else_fn: Callable | None, names: tuple, values: tuple) -> list:
    _refuse_none(names, values, "if")
    region = IfRegion(test)
    region.then()
    a = _call(then_fn, names, _copies(values))
    region.otherwise()
    b = _call(else_fn, names, _copies(values)) if else_fn is not None else list(values)
    merge = Merge(region)

    def fail(name: str, branch: str, m: Mismatch) -> None:
        raise mismatch_error(m, name, f"if: {branch}-branch", "the if", None)

    for name, old, x, y in zip(names, values, a, b):
        try:
            for side in (x, y):
                if carry.kind_of(side) in (carry.LIST, carry.DICT, carry.TUPLE) or side is None:
                    carry.unify(old, side)
            merge.add(name, *_like(old, x, y))
        except Mismatch as m:
            fail(name, "then", m)
    return merge.finish(fail)


def _like(old: Any, x: Any, y: Any) -> tuple:
    """Return both values in the class of the value before, where they convert."""
    if carry.kind_of(old) != carry.LEAF:
        return x, y
    pair = []
    for side in (x, y):
        if side.__class__ is old.__class__:
            pair.append(side)
            continue
        converted = carry.convert_like(side, old)
        if converted is None:
            raise Mismatch("", f"expected dtype {carry.describe(old)}, produced {carry.describe(side)}", old, side)
        pair.append(converted)
    return tuple(pair)


def _dynamic_while(test: Any, before_fn: Callable, after_fn: Callable, names: tuple, values: list) -> list:
    nodes, inits = _planned(names, values, "while")
    region = WhileRegion(test, inits)
    inside = _rebuilt(nodes, region.arguments)
    after = _named(after_fn(names, *inside), names, inside)
    going = as_i1(condition(before_fn(names, *after), "while"))
    results = region.finish(going, _flattened(nodes, names, after, "while"), [])
    return _rebuilt(nodes, results)


def _planned(names: tuple, values: Sequence[Any], construct: str) -> tuple[list[Node], list]:
    _refuse_none(names, values, construct)
    nodes = [carry.plan(v) for v in values]
    inits: list = []
    for node, value in zip(nodes, values):
        node.flatten(value, inits)
    return nodes, inits


def _refuse_none(names: tuple, values: Sequence[Any], construct: str) -> None:
    for name, value in zip(names, values):
        if value is None:
            raise CarryNone(region=construct, name=name, construct=f"the {construct}", produced="may be bound")


def _rebuilt(nodes: list[Node], values: Sequence[Any]) -> list:
    it = iter(values)
    return [n.rebuild(it) for n in nodes]


def _flattened(nodes: list[Node], names: tuple, values: list, construct: str) -> list:
    out: list = []
    for node, name, value in zip(nodes, names, values):
        try:
            node.flatten(value, out)
        except Mismatch as m:
            raise mismatch_error(m, name, f"{construct}-body", f"the {construct} loop", None) from None
    return out


def _copies(values: Sequence[Any]) -> list:
    """Return the values with containers copied, so that one branch does not see what the other changed."""
    copies = []
    for value in values:
        kind = carry.kind_of(value)
        if kind in (carry.LIST, carry.TUPLE, carry.DICT, carry.NAMESPACE, carry.DATACLASS):
            keys, parts = carry.take_apart(value, kind)
            value = carry.put_together(value, kind, keys, _copies(parts))
        copies.append(value)
    return copies


def _call(fn: Callable, names: tuple, values: Sequence[Any]) -> list:
    """Call a branch with (names, *values) or (*values), as its parameters ask, and return the variables after it."""
    signature = inspect.signature(fn)
    for given in ((names, *values), tuple(values)):
        try:
            signature.bind(*given)
        except TypeError:
            continue
        return _named(fn(*given), names, list(values))
    return _named(fn(), names, list(values))


def _named(result: Any, names: tuple, values: list) -> list:
    """Return the variables after a branch, which gives them by name or all in order; what it does not give stays."""
    if isinstance(result, (list, tuple)) and len(result) == len(names):
        return list(result)
    given = result if isinstance(result, dict) else {}
    return [given.get(n, v) for n, v in zip(names, values)]


def _packed(values: list) -> Any:
    return None if not values else values[0] if len(values) == 1 else tuple(values)

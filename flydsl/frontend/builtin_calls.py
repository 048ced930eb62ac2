"""`min`, `max`, `any`, `all` on run-time values; on static ones they are Python's."""

import builtins
from collections.abc import Callable, Iterable
from typing import Any

from flydsl.frontend.dispatch import call
from flydsl.frontend.truth import as_i1, boolean, is_dynamic, truth
from flydsl.ir import current, emit1


def minimum(*args: Any, **options: Any) -> Any:
    """Return the smallest argument; run-time values are compared and selected."""
    return _extreme(builtins.min, lambda new, best: new < best, args, options)


def maximum(*args: Any, **options: Any) -> Any:
    """Return the largest argument; run-time values are compared and selected."""
    return _extreme(builtins.max, lambda new, best: new > best, args, options)


def _extreme(python: Callable, better: Callable, args: tuple, options: dict) -> Any:
    values = list(args[0]) if len(args) == 1 else list(args)
    if options or not builtins.any(is_dynamic(v) for v in values):
        return python(values, **options) if len(args) == 1 else python(*args, **options)
    best = values[0]
    for new in values[1:]:
        test = better(new, best)
        if is_dynamic(test):
            best = test.select(new, best)
        elif test:
            best = new
    return best


def mapped(function: Callable, *iterables: Iterable) -> Iterable:
    """Return `map(function, ...)`, where a helper of the user's is called as from rewritten code."""
    return builtins.map(call(function), *iterables)


def any_true(values: Iterable) -> Any:
    """Return whether a value is true; a Boolean if that depends on run-time values."""
    return _joined(values, "arith.ori", True)


def all_true(values: Iterable) -> Any:
    """Return whether all values are true; a Boolean if that depends on run-time values."""
    return _joined(values, "arith.andi", False)


def _joined(values: Iterable, op: str, decides: bool) -> Any:
    joined: Any = None
    for value in values:
        t = truth(value, "any" if decides else "all")
        if t is True or t is False:
            if t is decides:
                return decides
        elif joined is None:
            joined = t
        else:
            joined = emit1(op, current().types.i1, (joined, as_i1(t)))
    return (not decides) if joined is None else boolean(joined)

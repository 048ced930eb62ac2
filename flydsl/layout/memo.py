"""The decorator of every operation: memoises calls on immutable values and names the operation
in errors.

Calls in which a leaf carries a payload are computed anew each time, so no IR value outlives its
trace here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .errors import LayoutError, OperandType
from .leaf import Basis, Payloads, Sym

LIMIT = 1 << 16
_caches: list[dict] = []
F = TypeVar("F", bound=Callable)


def carries_payload(x: Any) -> bool:
    """Return whether any leaf below `x` is a Sym with a payload."""
    kind = type(x)
    if kind is int or x is None:
        return False
    if kind is tuple:
        for i in x:
            if type(i) is not int and carries_payload(i):
                return True
        return False
    if kind is Sym:
        return x.value is not None
    if kind is Basis:
        return carries_payload(x.value)
    probe = getattr(x, "carries_payload", None)
    return probe() if probe is not None else False


def operation(fn: F) -> F:
    """Memoise `fn` on its positional arguments and record its name in errors that leave it."""
    cache: dict = {}
    find = cache.get  # `cache` itself, never a result, stands for "not there"
    _caches.append(cache)
    name = fn.__name__.strip("_")

    @wraps(fn)
    def call(*args):
        try:
            known = find(args, cache)
        except TypeError:
            bad = next((a for a in args if getattr(type(a), "__hash__", None) is None), args)
            raise OperandType(f"{type(bad).__name__} is not a value of the algebra", name, args) from None
        if known is not cache:
            return known
        try:
            result = fn(*args)
        except LayoutError as error:
            error.within(name, args)
            raise
        if not Payloads.made or not carries_payload(args):
            if len(cache) >= LIMIT:
                cache.clear()
            cache[args] = result
        return result

    call.uncached = fn
    return call


def clear_memos() -> None:
    """Forget every memoised result."""
    for cache in _caches:
        cache.clear()


def memo_sizes() -> int:
    """Return how many results are remembered now."""
    return sum(len(c) for c in _caches)

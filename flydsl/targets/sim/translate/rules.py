"""The table of op rules: op name -> function that emits Python for it.

A rule takes the `FunctionTranslator` and the op and defines the op's results. What has no rule is refused with its name
and location; no op is ever skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RULES: dict[str, Callable[..., None]] = {}
PREFIX_RULES: list[tuple[str, Callable[..., None]]] = []
INTRINSICS: dict[str, Callable[..., None]] = {}


def rule(*names: str) -> Callable:
    """Register a rule for the ops `names`."""

    def register(fn: Callable[..., None]) -> Callable[..., None]:
        for name in names:
            assert name not in RULES, name
            RULES[name] = fn
        return fn

    return register


def prefix_rule(*prefixes: str) -> Callable:
    """Register a rule for every op whose name starts with one of `prefixes`."""

    def register(fn: Callable[..., None]) -> Callable[..., None]:
        PREFIX_RULES.extend((p, fn) for p in prefixes)
        return fn

    return register


def find_rule(name: str) -> Callable[..., None] | None:
    """Return the rule of op `name`, or None."""
    found = RULES.get(name)
    if found is None:
        for prefix, fn in PREFIX_RULES:
            if name.startswith(prefix):
                RULES[name] = fn
                return fn
    return found


def intrinsic(*names: str) -> Callable:
    """Register a rule for `llvm.call_intrinsic` of the intrinsics `names` (type suffixes after the name are
    accepted)."""

    def register(fn: Callable[..., None]) -> Callable[..., None]:
        for name in names:
            INTRINSICS[name] = fn
        return fn

    return register


def find_intrinsic(name: str) -> Callable[..., None] | None:
    """Return the rule of the intrinsic `name`: exact, else without trailing type suffixes."""
    while name:
        if name in INTRINSICS:
            return INTRINSICS[name]
        name = name.rpartition(".")[0]
    return None


def attribute(op: Any, name: str, default: Any = None) -> Any:
    """Return the attribute `name` of `op`, or `default`."""
    attrs = op.attributes
    return attrs[name] if name in attrs else default


def int_attribute(op: Any, name: str, default: int = 0) -> int:
    """Return an integer attribute of `op`."""
    attr = attribute(op, name)
    return default if attr is None else int(attr.value)

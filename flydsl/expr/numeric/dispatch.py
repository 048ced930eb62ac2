"""Operator methods: a table per operator, keyed by the classes of both operands, whose entries build or fold.

`binary("+")` makes `__add__`, `reflected("+")` makes `__radd__`. An entry is a function `rule(a, b)`; missing
entries are made by `flydsl.expr.numeric.rules`. A rule is called by the method, which is called by the user's
code: rules rely on that depth to find the location quickly (a wrong depth is only slower).
"""

from collections.abc import Callable
from typing import Any

SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

Rule = Callable[[Any, Any], Any]
tables: dict[str, dict[tuple[type, type], Rule]] = {symbol: {} for symbol in SYMBOLS}


def binary(symbol: str) -> Callable:
    """Return the method of `self <symbol> other`."""
    table = tables[symbol]

    def operator(self, other):
        rule = table.get((self.__class__, other.__class__))
        if rule is None:
            rule = _missing(symbol, self, other)
            if rule is None:
                return NotImplemented
        return rule(self, other)

    return operator


def reflected(symbol: str) -> Callable:
    """Return the method of `other <symbol> self`, called when `other` does not know this class."""
    table = tables[symbol]

    def operator(self, other):
        rule = table.get((other.__class__, self.__class__))
        if rule is None:
            rule = _missing(symbol, other, self)
            if rule is None:
                return NotImplemented
        return rule(other, self)

    return operator


def _missing(symbol: str, left: Any, right: Any) -> Rule | None:
    from flydsl.expr.numeric.rules import find_rule

    rule = find_rule(symbol, left, right)
    if rule is not None:
        tables[symbol][left.__class__, right.__class__] = rule
    return rule

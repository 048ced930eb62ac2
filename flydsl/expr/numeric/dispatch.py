"""Operator methods: a table per operator, by the classes of both operands, whose entries build or fold.

`binary("+")` makes `__add__`, `reflected("+")` makes `__radd__`. An entry is a function `rule(a, b)`; missing
entries are made by `flydsl.expr.numeric.rules`. A rule is called by the method, which is called by the user's
code: rules rely on that depth to find the location quickly (a wrong depth is only slower).
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

Rule = Callable[[Any, Any], Any]
Table = defaultdict[type, dict[type, Rule]]  # by the class that has the method, then by the other one

# Two tables per operator, so that only scalar classes get rows: a reflected rule takes its operands as they are written too.
_tables: dict[str, Table] = {symbol: defaultdict(dict) for symbol in SYMBOLS}
_reflected_tables: dict[str, Table] = {symbol: defaultdict(dict) for symbol in SYMBOLS}


def binary(symbol: str) -> Callable:
    """Return the method of `self <symbol> other`."""
    table = _tables[symbol]

    def operator(self, other):
        rule = table[self.__class__].get(other.__class__)
        if rule is None:
            rule = _find(symbol, self, other)
            if rule is None:
                return NotImplemented
            table[self.__class__][other.__class__] = rule
        return rule(self, other)

    return operator


def reflected(symbol: str) -> Callable:
    """Return the method of `other <symbol> self`, called when `other` does not know this class."""
    table = _reflected_tables[symbol]

    def operator(self, other):
        rule = table[self.__class__].get(other.__class__)
        if rule is None:
            rule = _find(symbol, other, self)
            if rule is None:
                return NotImplemented
            table[self.__class__][other.__class__] = rule
        return rule(other, self)

    return operator


def _find(symbol: str, left: Any, right: Any) -> Rule | None:
    from flydsl.expr.numeric.rules import find_rule

    return find_rule(symbol, left, right)

"""`and`, `or`, `not`.

Static   Python: the right side is evaluated only if needed, the result is one of the operands
Dynamic  an operand is a run-time value: the result is a Boolean. The right side is evaluated only if needed
         when it reads memory, could trap or changes variables and containers (then it is in an scf.if); otherwise
         both are computed. `not x` is a Boolean; numbers count as `x != 0`.
"""

import ast

from flydsl.frontend.rewrite.build import constant, place, runtime
from flydsl.frontend.rewrite.effects import Effects


def rewrite(node: ast.BoolOp, rw) -> ast.expr:
    """Return `and_(b if and_first(a) else None)`, nested to the left for more operands."""
    word = "and" if isinstance(node.op, ast.And) else "or"
    effects = [Effects([value], word, node, rw) for value in node.values[1:]]
    result = rw.expr(node.values[0])
    for value, effect in zip(node.values[1:], effects):
        result = guarded(f"{word}_first", f"{word}_", result, rw.expr(value), effect)
    return result


def guarded(first: str, last: str, left: ast.expr, right: ast.expr, effects: Effects) -> ast.expr:
    """Return `last(right if first(left) else None)`, with what evaluating `right` changes."""
    node = effects.node
    begin = place([runtime(first, left, *effects.begin())], left, left)[0]
    choice = place([ast.IfExp(begin, right, constant(None))], node)[0]
    return effects.bound_after(place([runtime(last, choice, *effects.variables())], node)[0])


def rewrite_not(node: ast.UnaryOp, rw) -> ast.expr:
    """Return `not_(x)`."""
    return place([runtime("not_", rw.expr(node.operand))], node)[0]

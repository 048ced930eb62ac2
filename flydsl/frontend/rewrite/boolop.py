"""`and`, `or`, `not`.

Static   Python: the right side is evaluated only if needed, the result is one of the operands
Dynamic  an operand is a run-time value: the result is a Boolean. The right side is evaluated only if needed
         when it reads memory or could trap (then it is in an scf.if); otherwise both are computed. `not x` is a
         Boolean; numbers count as `x != 0`.
"""

import ast

from flydsl.frontend.rewrite.build import constant, place, runtime


def rewrite(node: ast.BoolOp, rw) -> ast.expr:
    """Return `and_(b if and_first(a) else None)`, nested to the left for more operands."""
    first, last = ("and_first", "and_") if isinstance(node.op, ast.And) else ("or_first", "or_")
    result = rw.expr(node.values[0])
    for value in node.values[1:]:
        result = guarded(first, last, result, rw.expr(value), node)
    return result


def guarded(first: str, last: str, left: ast.expr, right: ast.expr, node: ast.expr) -> ast.expr:
    """Return `last(right if first(left) else None)`."""
    begin = place([runtime(first, left)], left, left)[0]
    choice = place([ast.IfExp(begin, right, constant(None))], node)[0]
    return place([runtime(last, choice)], node)[0]


def rewrite_not(node: ast.UnaryOp, rw) -> ast.expr:
    """Return `not_(x)`."""
    return place([runtime("not_", rw.expr(node.operand))], node)[0]

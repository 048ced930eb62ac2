"""Comparison chains: `a < b < c`.

Static   Python: stops at the first comparison that is false
Dynamic  the `and` of the comparisons, see `boolop`. The middle is evaluated once
A single comparison is left as it is.
"""

import ast

from flydsl.frontend.rewrite.boolop import guarded
from flydsl.frontend.rewrite.build import place, runtime
from flydsl.frontend.rewrite.effects import Effects

_REPEATABLE = (ast.Name, ast.Constant)


def rewrite(node: ast.Compare, rw) -> ast.expr:
    """Return the `and` of the comparisons; a middle that is no name or constant is kept between them."""
    effects = [Effects([x], "and", node, rw) for x in node.comparators]
    operands = [rw.expr(x) for x in (node.left, *node.comparators)]
    left: ast.expr = operands[0]
    result: ast.expr | None = None
    was_kept = False
    for i, op in enumerate(node.ops):
        right = operands[i + 1]
        keeps = i + 1 < len(node.ops) and not isinstance(right, _REPEATABLE)
        shown = place([runtime("keep", right)], right)[0] if keeps else right
        comparison = place([ast.Compare(left, [op], [shown])], node)[0]
        if result is None:
            result = comparison
        else:
            first = "chain_first" if was_kept else "and_first"
            result = guarded(first, "chain_and" if keeps else "and_", result, comparison, effects[i])
        was_kept = keeps
        left = place([runtime("kept")], right)[0] if keeps else right
    return result

"""`with` and `try`: bodies are rewritten; what an exception left open is closed.

Static   as in Python; exceptions are those of the trace
Dynamic  a run-time branch or loop that an exception leaves, and the user's code catches, is taken back
         (`__fly__.unwind`)
"""

import ast

from flydsl.frontend.rewrite.build import assign, load, place, runtime


def rewrite_with(node: ast.With, rw) -> list[ast.stmt]:
    """Return the `with`, followed by an unwind: its context manager may swallow an exception."""
    for item in node.items:
        item.context_expr = place([runtime("context", rw.expr(item.context_expr))], item.context_expr)[0]
        if item.optional_vars is not None:
            item.optional_vars = rw.expr(item.optional_vars)
    node.body = rw.block(node.body)
    state = rw.fresh("mark")
    begin = place([assign(state, runtime("mark"))], node, node)
    return [*begin, node, *place([ast.Expr(runtime("unwind", load(state)))], node, node)]


def rewrite_try(node: ast.Try, rw) -> list[ast.stmt]:
    """Return the `try` with an unwind at the start of each handler."""
    before = set(rw.bound)
    state = rw.fresh("mark")
    outer, rw.in_try = rw.in_try, True
    node.body, _ = rw.branch(node.body, before)
    rw.in_try = outer
    node.orelse, _ = rw.branch(node.orelse, before)
    for h in node.handlers:
        h.body, _ = rw.branch(h.body, before)
        h.body = place([ast.Expr(runtime("unwind", load(state)))], h, h) + h.body
    node.finalbody, _ = rw.branch(node.finalbody, before)
    rw.bound = before
    return [*place([assign(state, runtime("mark"))], node, node), node]

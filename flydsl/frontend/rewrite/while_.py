"""`while`.

Static   a condition that is a Python value is decided by Python, in every iteration anew; `while
         const_expr(...)` demands it
Dynamic  as soon as the condition is a run-time value: an scf.while. The condition is computed before the loop
         and at the end of the body; variables that are read in a later iteration or after the loop are carried.
         `else` is for static loops only.
"""

import ast

from flydsl.diag import EndlessLoop
from flydsl.frontend.rewrite.build import (
    assign,
    assign_all,
    attribute,
    constant,
    load,
    locals_call,
    method,
    place,
    runtime,
    unbind_missing,
    when,
)
from flydsl.frontend.rewrite.names import names_in
from flydsl.frontend.rewrite.static import called_name


def rewrite(node: ast.While, rw) -> list[ast.stmt]:
    """Return the statements that stand for a `while`."""
    if called_name(node.test) == "const_expr":
        return _static(node, rw)
    if isinstance(node.test, ast.Constant) and node.test.value and not _may_leave(node, rw):
        raise EndlessLoop(at=rw.span(node), reason="its condition is always true and it has no break", advice=_ADVICE)
    site, names = _site(node, rw)
    me = rw.fresh("while")
    before = set(rw.bound)
    is_open = attribute(load(me), "open")
    opened = [n for n in site.carried if n not in before]
    begin = when(is_open, [assign_all(site.carried, method(me, "enter", locals_call())), *unbind_missing(opened)])
    body, _ = rw.branch(node.body, before)
    rw.bound = before
    variables = ast.BoolOp(ast.And(), [is_open, locals_call()])
    loop = ast.While(method(me, "test", rw.expr(node.test), variables), [*place([begin], node, node.test), *body], [])
    missing = [n for n in names if n not in before]
    end = when(is_open, [assign_all(names, method(me, "leave")), *unbind_missing(missing)])
    out = place([assign(me, runtime("while_", constant(rw.add(site)))), loop, end], node, node.test)
    orelse, _ = rw.branch(node.orelse, before)
    return [*out, *orelse]


def _may_leave(node: ast.While, rw) -> bool:
    """Return whether an exception or a return can end a loop that has no break."""
    return rw.in_try or any(isinstance(n, (ast.Return, ast.Raise)) for s in node.body for n in ast.walk(s))


_ADVICE = "loop on a condition that changes, or leave the loop with `if ...: break`"


def _static(node: ast.While, rw) -> list[ast.stmt]:
    before = set(rw.bound)
    node.test = rw.expr(node.test)
    node.body, _ = rw.branch(node.body, before)
    node.orelse, _ = rw.branch(node.orelse, before)
    rw.bound = before
    return [node]


def _site(node: ast.While, rw) -> tuple:
    inside = names_in([ast.Expr(node.test), *node.body])
    names = rw.own_names(inside)
    live = frozenset(n for n in names if n in node.fly_live_in or n in node.fly_live_out)
    checked = frozenset(n for n in names if n not in live and n not in inside.loads and not n.startswith("_fly_"))
    site = rw.make_site("while", node, node.test, names, live, checked, inside)
    rw.add_flags(site, node)
    site.spans = rw.spans_of(inside)
    site.has_else = bool(node.orelse) or hasattr(node, "fly_had_else")
    site.carried = rw.carried(site)
    return site, names

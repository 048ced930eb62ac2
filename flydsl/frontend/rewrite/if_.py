"""`if` / `elif` / `else`.

Static   a condition that is a Python value takes its branch; a test that is always one (`const_expr(...)`,
         `is`, `in`, isinstance) is left as it is
Dynamic  both branches are traced, into an scf.if. Variables that a branch binds and that are read later leave
         as results; the others get their value from before back. Each branch starts from the variables and
         containers as they were before the `if`.
"""

import ast

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
from flydsl.frontend.rewrite.static import is_static_test


def rewrite(node: ast.If, rw) -> list[ast.stmt]:
    """Return the statements that stand for an `if`."""
    if is_static_test(node.test):
        return _static(node, rw)
    site, names = _site(node, rw)
    me = rw.fresh("if")
    before = set(rw.bound)
    body, after_then = rw.branch(node.body, before)
    orelse, after_else = rw.branch(node.orelse, before)
    missing = [n for n in names if n not in before]
    after = before | (after_then & after_else & (site.live | site.checked))
    rw.bound = after - rw.deleted
    dynamic = attribute(load(me), "dynamic")

    begin = when(dynamic, [ast.Expr(method(me, "begin", locals_call()))])
    then = when(attribute(load(me), "then"), [begin, *body])
    out: list[ast.stmt] = [assign(me, runtime("if_", constant(rw.add(site)), rw.expr(node.test))), then]
    if node.orelse:
        then.body.append(
            when(dynamic, [assign_all(names, method(me, "middle", locals_call())), *unbind_missing(missing)])
        )
        out.append(when(attribute(load(me), "otherwise"), orelse))
    still_missing = [n for n in names if n not in rw.bound]
    out.append(when(dynamic, [assign_all(names, method(me, "end", locals_call())), *unbind_missing(still_missing)]))
    return place(out, node, node.test)


def _static(node: ast.If, rw) -> list[ast.stmt]:
    before = set(rw.bound)
    node.test = rw.expr(node.test)
    node.body, after_then = rw.branch(node.body, before)
    node.orelse, after_else = rw.branch(node.orelse, before)
    rw.bound = after_then & after_else
    return [node]


_SHOWN_OUTSIDE = ("print", "input", "open", "exec")


def _effects(body: list[ast.stmt], rw):
    """Yield (call, place) of statements that call Python functions with an effect outside the kernel."""
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _SHOWN_OUTSIDE:
            yield call.func.id, rw.span(call)


def _site(node: ast.If, rw) -> tuple:
    then, other = names_in(node.body), names_in(node.orelse)
    both = names_in([*node.body, *node.orelse])
    names = rw.own_names(both)
    live = frozenset(n for n in names if n in node.fly_live_out)
    read = set(both.loads)
    checked = frozenset(n for n in names if n not in live and n not in read and not n.startswith("_fly_"))
    site = rw.make_site("if", node, node.test, names, live, checked, both)
    site.spans, site.else_spans = rw.spans_of(then), rw.spans_of(other)
    site.effects = tuple(_effects([*node.body, *node.orelse], rw))
    site.flags = tuple(n for n in names if n.startswith("_fly_") and not n.startswith("_fly_result"))
    site.live |= frozenset(c[0] for c in both.changes if c[0] in node.fly_live_out)
    return site, names

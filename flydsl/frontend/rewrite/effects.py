"""What evaluating a part of an expression can change: variables (`:=`, nonlocal ones that a called function rebinds) and containers.

Such a part, where a run-time value decides whether it is evaluated, gets a site like a branch of an `if`. Its variables are bound
again where the expression ends: `__fly__.first(expression, (c := __fly__.value(0)) if __fly__.has(0) else None, ...)`.
"""

import ast

from flydsl.frontend.rewrite.build import constant, locals_call, place, runtime
from flydsl.frontend.rewrite.call import calls_user_code
from flydsl.frontend.rewrite.names import names_in
from flydsl.frontend.site import Site


class Effects:
    """The site of the conditional parts of one expression; without effects all methods pass what they get."""

    def __init__(self, parts: list[ast.expr], construct: str, node: ast.expr, rw):
        self.names: tuple[str, ...] = ()
        self.site: int | None = None
        self.node = node
        inside = names_in(parts)
        calls = any(calls_user_code(part, rw) for part in parts)
        names = rw.own_names(inside) if calls and not rw.in_expression_scope else tuple(inside.stores)
        if names or calls:
            self.names = names
            self.site = rw.add(_site(construct, node, names, inside, rw))

    def begin(self) -> list[ast.expr]:
        """Return the arguments that begin the first part."""
        return [] if self.site is None else [runtime("site", constant(self.site)), locals_call()]

    def variables(self) -> list[ast.expr]:
        """Return the argument that ends a part."""
        return [] if self.site is None else [locals_call()]

    def bindings(self) -> list[ast.expr]:
        """Return the expressions that bind the variables to what the run-time support found for them."""
        return [
            ast.IfExp(runtime("has", constant(i)), ast.NamedExpr(ast.Name(n, ast.Store()), runtime("value", constant(i))), constant(None))
            for i, n in enumerate(self.names)
        ]

    def bound_after(self, expression: ast.expr) -> ast.expr:
        """Return the expression, followed by the bindings."""
        return place([runtime("first", expression, *self.bindings())], self.node)[0] if self.names else expression


def _site(construct: str, node: ast.expr, names: tuple, inside, rw) -> Site:
    site = rw.make_site(construct, node, node, names, frozenset(names), frozenset(), inside)
    site.spans = rw.spans_of(inside)
    site.is_expression = True
    return site


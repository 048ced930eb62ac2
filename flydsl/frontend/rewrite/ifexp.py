"""`a if c else b`.

Static   Python: one side is evaluated
Dynamic  both sides are traced into the branches of an scf.if; they must have one type
"""

import ast

from flydsl.frontend.rewrite.build import constant, place, runtime
from flydsl.frontend.rewrite.static import is_static_test


def rewrite(node: ast.IfExp, rw) -> ast.expr:
    """Return `pick(a if then(c) else None, b if otherwise() else None)`."""
    test, body, orelse = rw.expr(node.test), rw.expr(node.body), rw.expr(node.orelse)
    if is_static_test(node.test):
        node.test, node.body, node.orelse = test, body, orelse
        return node
    a = place([ast.IfExp(place([runtime("then", test)], test)[0], body, constant(None))], node)[0]
    b = place([ast.IfExp(place([runtime("otherwise")], orelse)[0], orelse, constant(None))], node)[0]
    return place([runtime("pick", a, b)], node)[0]

"""`a if c else b`.

Static   Python: one side is evaluated
Dynamic  both sides are traced into the branches of an scf.if; they must have one type
"""

import ast

from flydsl.frontend.rewrite.build import constant, place, runtime
from flydsl.frontend.rewrite.effects import Effects
from flydsl.frontend.rewrite.static import is_static_test


def rewrite(node: ast.IfExp, rw) -> ast.expr:
    """Return `pick(a if then(c) else None, b if otherwise() else None)`.

    With effects `pick_changed(a if then(c, ...) else None, otherwise(locals()), <bindings>, b if second() else None, locals())`.
    """
    effects = Effects([node.body, node.orelse], "conditional expression", node, rw)
    test, body, orelse = rw.expr(node.test), rw.expr(node.body), rw.expr(node.orelse)
    if is_static_test(node.test):
        node.test, node.body, node.orelse = test, body, orelse
        return node
    a = place([ast.IfExp(place([runtime("then", test, *effects.begin())], test)[0], body, constant(None))], node)[0]
    needed = "otherwise" if effects.site is None else "second"
    b = place([ast.IfExp(place([runtime(needed)], orelse)[0], orelse, constant(None))], node)[0]
    if effects.site is None:
        return place([runtime("pick", a, b)], node)[0]
    between = [runtime("otherwise", *effects.variables()), *effects.bindings()]
    return effects.bound_after(place([runtime("pick_changed", a, *between, b, *effects.variables())], node)[0])

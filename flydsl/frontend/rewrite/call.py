"""Calls: `f(x)` becomes `__fly__.call(f)(x)`, so that plain Python helpers are rewritten when they are first called.

`min`, `max`, `any` and `all` take run-time values, `map` a helper. Left alone where the callee is certainly no function of user
code: builtins, and what is reached through modules of libraries.
"""

import ast
import builtins
import sys
from types import ModuleType
from typing import Any

from flydsl.frontend.rewrite.build import RUNTIME, attribute, load, place, runtime

_BUILTINS = {"min": "minimum", "max": "maximum", "any": "any_true", "all": "all_true", "map": "mapped"}
_FOREIGN = frozenset(sys.stdlib_module_names) | {"flydsl", "numpy", "torch", "ml_dtypes"}


def rewrite(node: ast.Call, rw) -> ast.expr:
    """Return the call through the dispatcher, where it needs it."""
    wrap = _needs_dispatch(node.func, rw)
    own = _builtin_of_ours(node.func, rw)
    node.func = rw.expr(node.func) if own is None else place([attribute(load(RUNTIME), own)], node.func)[0]
    node.args = [rw.expr(a) for a in node.args]
    for k in node.keywords:
        k.value = rw.expr(k.value)
    if wrap:
        node.func = place([runtime("call", node.func)], node.func)[0]
    return node


def calls_user_code(node: ast.expr, rw) -> bool:
    """Return whether evaluating an expression can run a function of the user's."""
    return any(isinstance(n, ast.Call) and _builtin_of_ours(n.func, rw) is None and _needs_dispatch(n.func, rw) for n in ast.walk(node))


def _builtin_of_ours(func: ast.expr, rw) -> str | None:
    """Return the name in `__fly__` of a builtin that asks for truth values."""
    if not isinstance(func, ast.Name) or rw.is_local(func.id) or func.id in rw.globals:
        return None
    return _BUILTINS.get(func.id)


def _needs_dispatch(func: ast.expr, rw) -> bool:
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or rw.is_local(root.id):
        return True
    if root.id == RUNTIME:
        return False
    if root.id not in rw.globals:
        return not (root is func and hasattr(builtins, root.id))
    return not is_library(rw.globals[root.id], root is not func)


def is_library(value: Any, through_attribute: bool) -> bool:
    """Return whether a global is a thing of a library; `through_attribute`: or a module of one."""
    if isinstance(value, ModuleType):
        return through_attribute and value.__name__.split(".")[0] in _FOREIGN
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and home.split(".")[0] in _FOREIGN and hasattr(value, "__qualname__")

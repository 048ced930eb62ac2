"""Stored Python text is run only if it can do nothing but arithmetic: assignments, branches, loops, calls of known
names.

Generated host functions and simulator kernels come back from the disk cache as text. Whoever can write there can write
anything, so the text is parsed and compared with a list of allowed forms before it is compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import Any

_FORMS = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AugAssign, ast.Expr,
    ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Return, ast.Yield, ast.Call,
    ast.keyword, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple,
    ast.List, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Starred,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
BUILTINS = {
    "range": range,
    "len": len,
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "bool": bool,
    "abs": abs,
    "tuple": tuple,
}


class TextRefused(ValueError):
    """The text holds a form, a name or an attribute that generated code does not have."""


def run_text(text: str, origin: str, names: dict[str, Any], attributes: Container[str] = ()) -> dict[str, Any]:
    """Return the namespace after running a stored text with `names`; only `attributes` may be read.

    Raises   TextRefused, SyntaxError
    """
    tree = ast.parse(text)
    check(tree, names, attributes)
    namespace = {"__builtins__": BUILTINS, **names}
    exec(compile(tree, origin, "exec"), namespace)
    return namespace


def check(tree: ast.AST, names: Container[str], attributes: Container[str]) -> None:
    """Refuse what generated code does not have."""
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    own |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not isinstance(node, _FORMS) or getattr(node, "decorator_list", ()):
            raise TextRefused(f"line {getattr(node, 'lineno', '?')}: {type(node).__name__} is not allowed")
        if isinstance(node, ast.Name) and (
            node.id.startswith("__") or not (node.id in own or node.id in names or node.id in BUILTINS)
        ):
            raise TextRefused(f"line {node.lineno}: the name {node.id} is not allowed")
        if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr not in attributes):
            raise TextRefused(f"line {node.lineno}: the attribute {node.attr} is not allowed")

"""Short constructors for the syntax nodes that rewriting inserts. They carry no positions: see `place`."""

import ast
from collections.abc import Iterable

RUNTIME = "__fly__"  # the free variable of rewritten code that holds its run-time support


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def attribute(value: ast.expr, name: str) -> ast.Attribute:
    return ast.Attribute(value, name, ast.Load())


def runtime(method: str, *args: ast.expr) -> ast.Call:
    """Return `__fly__.method(args)`."""
    return ast.Call(attribute(load(RUNTIME), method), list(args), [])


def method(obj: str, name: str, *args: ast.expr) -> ast.Call:
    """Return `obj.name(args)`."""
    return ast.Call(attribute(load(obj), name), list(args), [])


def locals_call() -> ast.Call:
    """Return a read of the frame's variables; `__fly__.locals` is the builtin, which the user may have shadowed."""
    return runtime("locals")


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([store(name)], value)


def assign_all(names: Iterable[str], value: ast.expr) -> ast.stmt:
    """Return `a, b, = value`, or `value` alone where there are no names."""
    targets: list[ast.expr] = [store(n) for n in names]
    return ast.Assign([ast.Tuple(targets, ast.Store())], value) if targets else ast.Expr(value)


def unbind_missing(names: Iterable[str]) -> list[ast.stmt]:
    """Return `if n is __fly__.UNBOUND: del n` for each name."""
    missing = attribute(load(RUNTIME), "UNBOUND")
    return [when(ast.Compare(load(n), [ast.Is()], [missing]), [ast.Delete([ast.Name(n, ast.Del())])]) for n in names]


def when(test: ast.expr, body: list[ast.stmt]) -> ast.If:
    """Return an `if` of plain Python."""
    node = ast.If(test, body, [])
    node.fly_plain = True
    return node


def constant(value: object) -> ast.Constant:
    return ast.Constant(value)


def place(nodes: list, like: ast.AST, end: ast.AST | None = None) -> list:
    """Give inserted nodes, and their children that have none, the position of `like`, cut at the end of `end`.

    Never more than one line: CPython places a method call that spans lines at the line of its last attribute.
    """
    last = end if end is not None else like
    column = last.end_col_offset if last.end_lineno == like.lineno else like.col_offset + 1
    where = (like.lineno, like.col_offset, like.lineno, column)
    for node in nodes:
        _place(node, where)
    return nodes


def _place(node: ast.AST, where: tuple) -> None:
    node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = where
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if value.__class__ is list else (value,):
            if isinstance(child, ast.AST) and not hasattr(child, "lineno"):
                _place(child, where)

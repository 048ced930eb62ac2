"""Statements of a kernel that keep an error and go on: used once a kernel has failed, to find further errors that do not follow from the first.

What a failed statement would have bound is unbound after it; a statement that reads such a name fails because of the first one.
"""

import ast

from flydsl.frontend.rewrite.build import RUNTIME, assign, constant, load, place, runtime

_MARK, _ERROR = "_fly_guard", "_fly_failed"


def guarded(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return rewritten statements, each of which hands its error to `__fly__.collect`."""
    return [new for statement in body for new in _guard(statement)]


def _guard(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, (ast.Return, ast.Global, ast.Nonlocal, ast.Pass, ast.Import, ast.ImportFrom)) or not hasattr(statement, "lineno"):
        return [statement]
    names = sorted(_bound(statement))
    reads = tuple(sorted({n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}))
    note = ast.Expr(runtime("collect", load(_ERROR), load(_MARK), constant(tuple(names)), constant(reads)))
    handler = ast.ExceptHandler(load("Exception"), _ERROR, [note])
    for name in names:
        handler.body += [assign(name, constant(None)), ast.Delete([ast.Name(name, ast.Del())])]
    handler.type = ast.Attribute(load(RUNTIME), "Exception", ast.Load())
    place([handler], statement, statement)
    begin = place([assign(_MARK, runtime("mark"))], statement, statement)
    return [*begin, *place([ast.Try([statement], [handler], [], [])], statement, statement)]


def _bound(node: ast.AST) -> set[str]:
    """Return the names that a statement binds in its own scope."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return set()
    own = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    return own.union(*(_bound(child) for child in ast.iter_child_nodes(node)))

"""Statements of a kernel that keep an error and go on: used once a kernel has failed, to find further errors that do not follow from the first.

Each statement of the kernel, also one inside a loop or a branch, is guarded on its own; nested functions are not, their errors are those of the call.
What a failed statement would have bound is unbound after it; a statement that reads such a name fails because of the first one.
"""

import ast

from flydsl.frontend.rewrite.build import RUNTIME, assign, constant, load, place, runtime

_ERROR = "_fly_failed"
_NOT_GUARDED = (ast.Return, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Pass, ast.Import, ast.ImportFrom)


def guarded(statements: list[ast.stmt], mark: str) -> list[ast.stmt]:
    """Return what one statement of the user was rewritten to so that it hands its error to `__fly__.collect`; `mark` is a new name."""
    if any(isinstance(s, _NOT_GUARDED) for s in statements):
        return statements
    first, last = statements[0], statements[-1]
    names = sorted(set().union(*(_bound(s) for s in statements)))
    reads = tuple(sorted({n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}))
    note = ast.Expr(runtime("collect", load(_ERROR), load(mark), constant(tuple(names)), constant(reads)))
    handler = ast.ExceptHandler(load("Exception"), _ERROR, [note])
    for name in names:
        handler.body += [assign(name, constant(None)), ast.Delete([ast.Name(name, ast.Del())])]
    handler.type = ast.Attribute(load(RUNTIME), "Exception", ast.Load())
    place([handler], first, last)
    begin = place([assign(mark, runtime("mark"))], first, last)
    return [*begin, *place([ast.Try(statements, [handler], [], [])], first, last)]


def _bound(node: ast.AST) -> set[str]:
    """Return the names that a statement binds in its own scope."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return set()
    own = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    return own.union(*(_bound(child) for child in ast.iter_child_nodes(node)))

"""Which Python construct stands at a place, and so asked for the truth of a run-time value. Imports no MLIR."""

import ast
import linecache

from flydsl.diag.source import Span

_NOT_REWRITTEN = (
    "this function is not rewritten: it is a generator, a property, an operator method such as `__add__`, belongs to a library, "
    "or its source cannot be read; move the code into the kernel or a plain function"
)
_CALLS = {
    "bool": "drop bool(...): the value is a condition already",
    "sorted": "sort with compare-and-select on a fixed number of values",
    "filter": "use a loop with an `if` in the kernel",
}


def truth_construct(span: Span | None) -> tuple[str, str] | None:
    """Return (the construct, what to write instead) at a place where a truth value was asked for, or None."""
    if span is None or not span.line:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(span.file)))
    except (SyntaxError, ValueError):
        return None
    found = None
    for node in ast.walk(tree):
        if _covers(node, span):
            found = _name(node, span) or found
    return found


def _covers(node: ast.AST, span: Span) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None or last is None or not first <= span.line <= last:
        return False
    if not span.column or first != last:
        return True
    return node.col_offset < span.column <= node.end_col_offset


def _name(node: ast.AST, span: Span) -> tuple[str, str] | None:
    if isinstance(node, ast.Assert):
        return "`assert`", "assert what is known while tracing; check run-time values with an `if` and fx.printf"
    if isinstance(node, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
        return "`in`", "compare with each element: `x == a or x == b`"
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        tests = [t for g in node.generators for t in g.ifs]
        if any(_covers(t, span) for t in tests):
            return "the `if` of a comprehension", "a list has a static length: keep all, choose with `x if c else y`"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        return f"`{node.func.id}(...)`", _CALLS[node.func.id]
    if isinstance(node, ast.BoolOp):
        return "`and`" if isinstance(node.op, ast.And) else "`or`", _NOT_REWRITTEN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "`not`", _NOT_REWRITTEN
    if isinstance(node, ast.IfExp):
        return "a conditional expression", _NOT_REWRITTEN
    if isinstance(node, (ast.If, ast.While)) and _covers(node.test, span):
        return f"`{type(node).__name__.lower()}`", _NOT_REWRITTEN
    return None

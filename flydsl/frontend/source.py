"""From a function object to the syntax tree of its definition, with the positions of the user's file. Imports
no MLIR.

Only the lines of the definition are parsed (a kernel file of 2,000 lines costs 20 ms otherwise); where those
lines cannot be cut out by indentation (a string that starts in column 0), the whole file is parsed instead.
"""

import ast
import linecache
from types import CodeType, FunctionType

from flydsl.diag import NoSource
from flydsl.utils.record import record

_HEADER_STARTS = ("def ", "async ", "class ")
_CLOSERS = (")", "]", "}")


@record
class FunctionSource:
    """A parsed definition. `class_name` is the class in whose body it stands, for private names and `super()`."""

    node: ast.FunctionDef | ast.Lambda
    file: str
    class_name: str | None


def function_source(fn: FunctionType) -> FunctionSource:
    """Return a fresh tree of the definition of `fn`.

    Raises   NoSource: the file cannot be read, or it no longer holds this function at its line
    """
    code = fn.__code__
    lines = _lines(fn)
    if not lines or code.co_firstlineno > len(lines):
        raise NoSource(function=fn.__qualname__)
    node = _find_lambda(code, lines) if code.co_name == "<lambda>" else _find_def(code, lines)
    if node is None:
        raise NoSource(function=fn.__qualname__)
    return FunctionSource(node, code.co_filename, _class_of(fn))


def _lines(fn: FunctionType) -> list[str]:
    file = fn.__code__.co_filename
    if file not in linecache.cache:
        linecache.checkcache(file)
    return linecache.getlines(file, fn.__globals__)


def _class_of(fn: FunctionType) -> str | None:
    parts = fn.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None


def _find_def(code: CodeType, lines: list[str]) -> ast.FunctionDef | None:
    first = code.co_firstlineno
    for tree in _trees(lines, first):
        for node in _definitions(tree):
            if node.name == code.co_name and _first_line(node) == first:
                return node
    return None


def _definitions(tree: ast.AST):
    """Yield the function definitions in statements, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        if not isinstance(node, ast.expr):
            yield from _definitions(node)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _trees(lines: list[str], first: int):
    """Yield trees that may hold the definition at line `first`, the cheap one first."""
    block = _block(lines, first)
    indented = lines[first - 1][:1] in " \t"
    if first > 1 or not indented:
        text = "\n" * (first - 2) + "if 1:\n" + block if indented else "\n" * (first - 1) + block
        try:
            yield ast.parse(text)
        except SyntaxError:
            pass
    try:
        yield ast.parse("".join(lines))
    except SyntaxError:
        return


def _block(lines: list[str], first: int) -> str:
    """Return the lines from `first` to the next line that is indented no deeper, after the header."""
    indent = _indent(lines[first - 1])
    in_body = False
    end = len(lines)
    for i in range(first - 1, len(lines)):
        text = lines[i].strip()
        if not text or text[0] == "#" or _indent(lines[i]) > indent:
            continue
        if in_body and not text.startswith(_CLOSERS):
            end = i
            break
        in_body = in_body or text.startswith(_HEADER_STARTS)
    return "".join(lines[first - 1 : end])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find_lambda(code: CodeType, lines: list[str]) -> ast.Lambda | None:
    """Return the lambda at the code's line; of several the one with the same parameters and position."""
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
    if len(found) > 1:
        found = [n for n in found if _same_code(n, code)]
    return found[0] if len(found) == 1 else None


def _same_code(node: ast.Lambda, code: CodeType) -> bool:
    expression = ast.Expression(ast.copy_location(node, node))
    compiled = compile(expression, code.co_filename, "eval")
    inner = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    same = ("co_varnames", "co_names", "co_consts")
    if any(getattr(inner, name) != getattr(code, name) for name in same):
        return False
    return not hasattr(code, "co_positions") or next(_columns(inner), None) == next(_columns(code), None)


def _columns(code: CodeType):
    return (p[2:] for p in code.co_positions() if p[2] is not None and p[3] is not None and p[2] != p[3])

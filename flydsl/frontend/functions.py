"""`rewritten(fn)`: the function whose body traces control flow, cached by code object.

The twin has the signature, defaults, globals and closure cells of the original; its code keeps file name, lines
and columns.
"""

import __future__

import ast
import difflib
import logging
import sys
from inspect import CO_GENERATOR
from types import CellType, CodeType, FunctionType

from flydsl.diag import GeneratorInKernel, NoSource, Span
from flydsl.frontend.dispatch import is_rewritten, note_rewritten
from flydsl.frontend.rewrite.build import RUNTIME, place
from flydsl.frontend.rewrite.rewriter import Rewriter, Unit, explain_errors, is_generator
from flydsl.frontend.runtime import Runtime
from flydsl.frontend.source import FunctionSource, function_source
from flydsl.utils import env

_log = logging.getLogger("flydsl")  # `flydsl.utils.logger` gives it its handlers

_templates: dict[tuple, "_Template"] = {}
_keep: list[CodeType] = []


class _Template:
    """The rewritten code of one code object and its run-time support."""

    __slots__ = ("code", "runtime")

    def __init__(self, code: CodeType, runtime: Runtime):
        self.code, self.runtime = code, runtime


def rewritten(fn: FunctionType, *, kernel: bool = False, guarded: bool = False) -> FunctionType:
    """Return a function that does what `fn` does and traces control flow on run-time values.

    `kernel`: the returned values are ignored. `guarded`: statements that fail are noted and passed over (`collect`).
    Cheap on second use; each closure of one code object gets its own cells.
    Raises   NoSource: the source cannot be read; GeneratorInKernel
    """
    if is_rewritten(fn.__code__):
        return fn
    return _bind(fn, _template(fn, keep_static=False, kernel=kernel, guarded=guarded))


def rewritten_helper(fn: FunctionType) -> FunctionType:
    """Return the twin of a plain helper function; `fn` itself where its source cannot be read."""
    try:
        return _bind(fn, _template(fn, keep_static=True, kernel=False))
    except NoSource:
        return fn


def _template(fn: FunctionType, keep_static: bool, kernel: bool, guarded: bool = False) -> _Template:
    code = fn.__code__
    key = (id(code), keep_static, kernel, guarded)
    template = _templates.get(key)
    if template is None:
        _keep.append(code)
        template = _templates[key] = _make(fn, keep_static, kernel, guarded)
    return template


def _bind(fn: FunctionType, template: _Template) -> FunctionType:
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    cells[RUNTIME] = CellType(template.runtime)
    code = template.code
    closure = tuple(cells[name] for name in code.co_freevars)
    new = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    new.__kwdefaults__ = fn.__kwdefaults__
    new.__annotations__ = fn.__annotations__
    new.__qualname__, new.__doc__, new.__module__ = fn.__qualname__, fn.__doc__, fn.__module__
    new.__dict__.update(fn.__dict__)
    new.__wrapped__ = fn
    return new


def _make(fn: FunctionType, keep_static: bool, kernel: bool, guarded: bool) -> _Template:
    source = function_source(fn)
    runtime = Runtime(keep_static)
    node = _as_def(source)
    if fn.__code__.co_flags & CO_GENERATOR and is_generator(node):
        raise GeneratorInKernel(
            at=Span(source.file, node.lineno, node.col_offset + 1, 0, fn.__name__), function=fn.__name__
        )
    before = ast.unparse(node) if env.debug.ast_diff else ""
    unit = Unit(source.file, fn.__globals__, set(fn.__code__.co_freevars), runtime.sites, keep_static)
    rewriter = Rewriter(unit, fn.__name__, set())
    rewriter.guards = guarded
    rewriter.body_of(node, drops_value=kernel)
    if runtime.sites:
        node.body = explain_errors(node.body)
    if before:
        _show_diff(fn, before, ast.unparse(node))
    if env.debug.level >= 3:
        _log.warning("rewritten Python of %s:\n%s", fn.__qualname__, ast.unparse(node))
    code = _compile(node, fn.__code__, source)
    note_rewritten(code)
    return _Template(code, runtime)


def _as_def(source: FunctionSource) -> ast.FunctionDef:
    """Return the definition without what was evaluated when it was defined: decorators, defaults, annotations."""
    node = source.node
    if isinstance(node, ast.Lambda):
        body = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(ast.FunctionDef("_lambda", node.args, [body], [], None), node)
        node.type_params = []
    node.decorator_list, node.returns = [], None
    args = node.args
    args.defaults = []
    args.kw_defaults = [None] * len(args.kwonlyargs)
    for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if a is not None:
            a.annotation = None
    return node


def _compile(node: ast.FunctionDef, original: CodeType, source: FunctionSource) -> CodeType:
    """Compile the definition inside a function with the free variables, and its class for private names.

    It stands there under a name of its own: a function that calls itself by a global name has to find the global.
    """
    node.type_params = []
    node.name = _DEFINITION
    definition: ast.stmt = node
    if source.class_name is not None:
        definition = ast.ClassDef(source.class_name, [], [], [node], [])
        definition.type_params = []
    free = [
        ast.arg(name) for name in (*original.co_freevars, RUNTIME) if name != "__class__" or source.class_name is None
    ]
    arguments = ast.arguments([], free, None, [], [], None, [])
    outer = ast.FunctionDef("_outer", arguments, [definition], [], None)
    outer.type_params = []
    module = ast.Module(place([outer], node), [])
    compiled = compile(module, original.co_filename, "exec", dont_inherit=True, flags=original.co_flags & _FUTURE_FLAGS)
    inner = _inner(_inner(compiled, "_outer"), source.class_name) if source.class_name else _inner(compiled, "_outer")
    code = _inner(inner, _DEFINITION)
    names = {"co_name": original.co_name}  # not co_firstlineno: the line table counts from it, and decorators are gone
    if hasattr(original, "co_qualname"):
        names["co_qualname"] = original.co_qualname
    return code.replace(**names)


_DEFINITION = "_fly_definition"
_FUTURE_FLAGS = __future__.annotations.compiler_flag


def _inner(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _show_diff(fn: FunctionType, before: str, after: str) -> None:
    names = (f"{fn.__qualname__} (source)", f"{fn.__qualname__} (rewritten)")
    sys.stderr.writelines(
        line + "\n" for line in difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    )

"""Helpers of library code that runs while tracing: settings of the innermost scope, and the user's location.

Every op is built with the location of the user's frames outside this package already. A library outside the
package that wants its callers' lines, not its own, decorates its functions with `dsl_loc_tracing`.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from flydsl.diag import mark_internal
from flydsl.ir import current, get_context, ir

F = TypeVar("F", bound=Callable)


class _Frames(threading.local):
    stack: tuple[dict[str, Any], ...] = ()


_frames = _Frames()


class tracing_context:
    """`with tracing_context(func, **options):` - settings that `tracing_option` reads inside."""

    def __init__(self, func: Callable | None = None, **options: Any):
        self.func, self.options = func, options

    def __enter__(self) -> "tracing_context":
        _frames.stack = (*_frames.stack, self.options)
        return self

    def __exit__(self, *exc) -> None:
        _frames.stack = _frames.stack[:-1]


def tracing_option(key: str, default: Any = None) -> Any:
    """Return the innermost setting of `key`."""
    for options in reversed(_frames.stack):
        if key in options:
            return options[key]
    return default


def capture_user_location() -> ir.Location:
    """Return the location of the user's code which led here, as ops get it."""
    return current().loc(1)


def file_location(filename: str, line: int, col: int = 0, context: ir.Context | None = None) -> ir.Location:
    """Return the location of a place in a file."""
    return ir.Location.file(filename, line, col, context or get_context())


def dsl_loc_tracing(fn: F) -> F:
    """Have ops built inside `fn` take the location of its caller."""
    code = getattr(fn, "__code__", None)
    if code is not None:
        mark_internal(code, True)
    return fn


def dsl_wrap_result(target: Any = None) -> Any:
    """Decorator: wrap raw results of a function as scalars or Vectors (or in class `target`)."""

    def decorate(fn: F, cls: Any = None) -> F:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return _wrapped(fn(*args, **kwargs), cls)

        mark_internal(wrapped.__code__, True)
        return wrapped

    if callable(target) and not isinstance(target, type):
        return decorate(target)
    return lambda fn: decorate(fn, target)


def _wrapped(result: Any, cls: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(_wrapped(r, cls) for r in result)
    if not isinstance(result, ir.Value):
        return result
    if cls is not None:
        return cls(result)
    from flydsl.expr.convert import as_dsl_value

    return as_dsl_value(result)

"""Calls from rewritten code: plain Python functions of the user are rewritten too, once, when they are first called.

`__fly__.call(f)` returns what to call instead of `f`: a rewritten twin of a Python function or method of user
code, or `f` itself (classes, builtins, functions of libraries and of this package, generators, functions
without control flow). In a plain helper, `range` over static bounds stays a Python loop: a helper may index
Python lists with its counter.
"""

import sys
import sysconfig
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from flydsl.diag import is_internal

_ATTRIBUTE = "__fly_helper__"
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x100 | 0x200
_STDLIB = tuple(sysconfig.get_path(p) for p in ("stdlib", "platstdlib"))
_SITE = ("site-packages", "dist-packages")
_FOREIGN = frozenset(
    ("numpy", "torch", "torch_mlir", "llvmlite", "ml_dtypes", "jax", "pytest", "_pytest", "hypothesis", "scipy")
)
_left_alone: dict[int, bool] = {}
_keep: list[CodeType] = []
_call_classes: dict[type, Any] = {}


def call(f: Any) -> Any:
    """Return the function to call for `f`."""
    cls = f.__class__
    if cls is FunctionType:
        known = _left_alone.get(id(f.__code__))
        if known:
            return f
        return _helper(f)
    if cls is MethodType:
        function = f.__func__
        if function.__class__ is not FunctionType or _left_alone.get(id(function.__code__)):
            return f
        twin = _helper(function)
        return f if twin is function else MethodType(twin, f.__self__)
    if cls is partial:
        function = call(f.func)
        return f if function is f.func else partial(function, *f.args, **f.keywords)
    return f if _call_classes.get(cls, _UNKNOWN) is None else _callable_object(f, cls)


class _Context:
    """A context manager of a user's class whose methods are called as from rewritten code."""

    __slots__ = ("_enter", "_exit")

    def __init__(self, enter: Any, leave: Any):
        self._enter, self._exit = enter, leave

    def __enter__(self) -> Any:
        return self._enter()

    def __exit__(self, *exc: Any) -> Any:
        return self._exit(*exc)


def context(manager: Any) -> Any:
    """Return the context manager to enter for `manager`."""
    cls = manager.__class__
    methods = [getattr(cls, name, None) for name in ("__enter__", "__exit__")]
    if any(m.__class__ is not FunctionType or _is_foreign(m) for m in methods):
        return manager
    enter, leave = (_helper(m) for m in methods)
    if enter is methods[0] and leave is methods[1]:
        return manager
    return _Context(MethodType(enter, manager), MethodType(leave, manager))


_UNKNOWN = object()


def _callable_object(f: Any, cls: type) -> Any:
    """An object with `__call__` written in user code behaves as a method."""
    known = _call_classes.get(cls, _UNKNOWN)
    if known is _UNKNOWN or known is not None and cls.__call__ is not known:
        method = None if isinstance(f, type) else getattr(cls, "__call__", None)  # noqa: B004
        known = method if method.__class__ is FunctionType and not _is_foreign(method) else None
        _call_classes[cls] = known
    if known is None:
        return f
    twin = _helper(known)
    return f if twin is known else MethodType(twin, f)


def _helper(f: FunctionType) -> FunctionType:
    """Return the rewritten twin of a user's function; itself where there is nothing to rewrite."""
    memo = f.__dict__.get(_ATTRIBUTE)
    code = f.__code__
    if memo is not None and memo[0] is f and memo[2] is code:
        twin = memo[1]
        if twin.__defaults__ is f.__defaults__ and twin.__kwdefaults__ is f.__kwdefaults__:
            return twin
    if is_rewritten(code) or _is_foreign(f):
        leave_alone(code)
        return f
    from flydsl.frontend.functions import rewritten_helper

    twin = rewritten_helper(f)
    if twin is f:
        leave_alone(code)
    else:
        f.__dict__[_ATTRIBUTE] = (f, twin, code)
    return twin


def leave_alone(code: CodeType) -> None:
    """Have calls of functions of this code pass unchanged."""
    _keep.append(code)
    _left_alone[id(code)] = True


_rewritten: dict[int, bool] = {}


def note_rewritten(code: CodeType) -> None:
    """Note that `code`, and the functions defined inside it, are the output of rewriting."""
    _keep.append(code)
    _rewritten[id(code)] = True
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            note_rewritten(inner)


def is_rewritten(code: CodeType) -> bool:
    return id(code) in _rewritten


def _is_foreign(f: FunctionType) -> bool:
    """Return whether a function belongs to this package or to a library that does not use the DSL."""
    code = f.__code__
    if is_internal(code) or code.co_flags & _GENERATOR_FLAGS:
        return True
    file = code.co_filename
    if any(part in file for part in _SITE):
        return (f.__module__ or "").split(".")[0] in _FOREIGN or not _uses_dsl(f)
    return file.startswith(_STDLIB)


def _uses_dsl(f: FunctionType) -> bool:
    module = sys.modules.get(f.__module__)
    values = vars(module).values() if module is not None else f.__globals__.values()
    for v in values:
        home = getattr(v, "__name__" if v.__class__ is sys.__class__ else "__module__", None)
        if isinstance(home, str) and home.split(".")[0] == "flydsl":
            return True
    return False

"""What a traced function's result can depend on beside its arguments: its code, closure values and globals, and those of its helpers."""

from __future__ import annotations

from collections.abc import Hashable
from types import CodeType, FunctionType
from typing import Any

_SIMPLE = (int, float, str, bytes, bool, type(None), complex)


def captured_state(func: Any) -> Hashable:
    """Return a hashable summary of the state that `func` captures."""
    return _function(func, set())


def _function(func: Any, seen: set[int]) -> Hashable:
    if id(func) in seen:
        return "seen"
    seen.add(id(func))
    code = func.__code__
    cells = tuple(_value(c.cell_contents, seen) if _filled(c) else "empty" for c in func.__closure__ or ())
    names = _global_names(code)
    captured = func.__globals__
    found = tuple((n, _value(captured[n], seen)) for n in names if n in captured)
    return (code, cells, found)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _global_names(code: CodeType) -> tuple[str, ...]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names.update(_global_names(const))
    return tuple(sorted(names))


def _value(value: Any, seen: set[int]) -> Hashable:
    if isinstance(value, _SIMPLE):
        return (type(value), value)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(_value(v, seen) for v in value))
    if isinstance(value, dict):
        return tuple((_value(k, seen), _value(v, seen)) for k, v in value.items())
    inner = getattr(value, "func", None) if not isinstance(value, FunctionType) else value
    if isinstance(inner, FunctionType) and not inner.__module__.startswith("flydsl."):
        return _function(inner, seen)
    return ("object", id(value))

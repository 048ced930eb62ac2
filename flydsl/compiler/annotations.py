"""Annotations of the parameters of kernels and jit functions; texts (`from __future__ import annotations`) are
evaluated."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def resolved_annotations(func: Callable, signature: inspect.Signature) -> dict[str, Any]:
    """Return the annotation objects of the parameters; one that cannot be evaluated says nothing: the value decides."""
    return {name: _resolved(func, parameter.annotation) for name, parameter in signature.parameters.items()}


def resolved_signature(func: Callable, signature: inspect.Signature) -> inspect.Signature:
    """Return the signature with annotation objects in place of texts."""
    if not any(isinstance(p.annotation, str) for p in signature.parameters.values()):
        return signature
    parameters = [p.replace(annotation=_resolved(func, p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters)


def _resolved(func: Callable, annotation: Any) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, func.__globals__, _closure(func))
    except Exception:
        return inspect.Parameter.empty


def _closure(func: Callable) -> dict[str, Any]:
    cells = func.__closure__ or ()
    return {n: c.cell_contents for n, c in zip(func.__code__.co_freevars, cells) if _is_filled(c)}


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True

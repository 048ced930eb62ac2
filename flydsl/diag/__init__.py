"""The error catalogue, source frames and rendering. A leaf of the package: standard library only.

`flydsl.diag.X` finds the error class X of `flydsl.diag.errors` on first use, so that importing the package does not load the catalogue.
"""

import importlib
import warnings

from flydsl.diag.base import FlyError, FlyWarning, InternalError, MissingTool, Unsupported, UserError, catalogue
from flydsl.diag.render import render, snippet
from flydsl.diag.source import (
    Span,
    is_internal,
    mark_internal,
    position,
    raised_at,
    span_of,
    user_chain,
    user_frame,
    user_span,
)

__all__ = [
    "FlyError",
    "FlyWarning",
    "InternalError",
    "MissingTool",
    "Span",
    "Unsupported",
    "UserError",
    "catalogue",
    "is_internal",
    "mark_internal",
    "position",
    "raised_at",
    "render",
    "snippet",
    "span_of",
    "user_chain",
    "user_frame",
    "user_span",
    "warn",
]


def warn(warning: FlyWarning) -> None:
    """Issue a warning at its place: once per line, as Python's filters say."""
    place = warning.span
    file, line = (place.file, place.line) if place else ("<kernel>", 1)
    warnings.warn_explicit(warning, None, file, line)


def __getattr__(name: str):
    errors = importlib.import_module("flydsl.diag.errors")
    try:
        return getattr(errors, name)
    except AttributeError:
        raise AttributeError(f"module 'flydsl.diag' has no attribute {name!r}") from None

"""How the user wrote an argument, for messages: `thr_gA` instead of "the source"; and warnings at the user's line.
Off the hot path.
"""

from __future__ import annotations

import ast
import warnings

from flydsl.diag.source import user_span


def argument(position: int, otherwise: str) -> str:
    """Return the source text of a positional argument of the call that is being executed, or `otherwise`."""
    span = user_span()
    if span is None or not span.column or span.end_column <= span.column:
        return otherwise
    try:
        call = ast.parse(span.text[span.column - 1 : span.end_column - 1].strip(), mode="eval").body
    except SyntaxError:
        return otherwise
    if not isinstance(call, ast.Call) or position >= len(call.args):
        return otherwise
    text = ast.unparse(call.args[position])
    return f"`{text}`" if len(text) <= 60 else otherwise


def warn_user(text: str) -> None:
    """Warn at the user's line."""
    span = user_span()
    if span is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, UserWarning, span.file, span.line)

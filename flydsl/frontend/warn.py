"""Warnings about the user's code, at the line that was being traced."""

import warnings

from flydsl.diag import Span, user_span


def warn(text: str, at: Span | None = None) -> None:
    """Issue a UserWarning at a place, by default where the user's code called the package."""
    place = at or user_span()
    if place is None:
        warnings.warn(text, UserWarning, stacklevel=3)
    else:
        warnings.warn_explicit(text, UserWarning, place.file, place.line)

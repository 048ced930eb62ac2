"""Tracebacks without the package's own frames, and the excepthook that shows errors of kernels that way.

`FLYDSL_DEBUG>=1` and `FLYDSL_DEBUG_SHOW_STACKTRACE=1` bring the frames back.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from types import TracebackType

from flydsl.diag.base import FlyError
from flydsl.diag.source import is_internal, is_package_file


def shows_internal_frames() -> bool:
    """Return whether the user asked to see the package's frames."""
    level = os.environ.get("FLYDSL_DEBUG", "0") or "0"
    return level != "0" or os.environ.get("FLYDSL_DEBUG_SHOW_STACKTRACE", "").lower() in ("1", "true", "yes", "on")


def without_internal_frames(tb: TracebackType | None, keep: Callable | None = None) -> TracebackType | None:
    """Return a traceback of those frames for which `keep(code)` holds, by default those of the user's code."""
    keep = keep or (lambda code: not is_internal(code))
    frames = []
    while tb is not None:
        if keep(tb.tb_frame.f_code):
            frames.append(tb)
        tb = tb.tb_next
    trimmed = None
    for entry in reversed(frames):
        trimmed = TracebackType(trimmed, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trimmed


def trimmed(error: Exception) -> Exception:
    """Return the error with the user's frames only, unless those of the package were asked for.

    Where Python itself raised it inside the package, the fault is ours and the frames stay.
    """
    if shows_internal_frames() or not is_users(error, error.__traceback__):
        return error
    return error.with_traceback(without_internal_frames(error.__traceback__))


def is_users(error: BaseException, tb: TracebackType | None) -> bool:
    """Return whether an error is one of ours, or was raised by the user's code: by an import that it makes, too, or by
    Python when it reads the code."""
    if isinstance(error, FlyError):
        return True
    if isinstance(error, SyntaxError) and error.filename:
        return not is_package_file(error.filename)
    last = None
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith("<frozen"):
            last = tb.tb_frame.f_code
        tb = tb.tb_next
    return last is not None and not is_internal(last)


def format_error(error: BaseException, tb: TracebackType | None, keep: Callable | None = None) -> str:
    """Return the text of an uncaught error: the user's stack, a rule, the error, and in one line what caused it."""
    name = "" if isinstance(error, FlyError) else f"{type(error).__name__}: "
    frames = traceback.format_tb(without_internal_frames(tb, keep))
    lines = ["Traceback (most recent call last):\n", *frames, "-" * 60 + "\n", f"{name}{error}\n"]
    if error.__cause__ is not None:
        first = str(error.__cause__).strip().split("\n")[0]
        lines.append(f"  caused by {type(error.__cause__).__name__}: {first} (FLYDSL_DEBUG=1 shows all)\n")
    return "".join(lines)


def hook(previous: Callable, kinds: tuple[type, ...] = (FlyError,), keep: Callable | None = None) -> Callable:
    """Return an excepthook that shows errors of these classes by `format_error`; others, which Python raised, go to `previous`."""

    def excepthook(cls: type, error: BaseException, tb: TracebackType | None) -> None:
        if shows_internal_frames():
            previous(cls, error, tb)
        elif isinstance(error, kinds):
            sys.stderr.write(format_error(error, tb, keep))
        else:
            tb = without_internal_frames(tb) if is_users(error, tb) else tb
            previous(cls, error.with_traceback(tb), tb)

    return excepthook

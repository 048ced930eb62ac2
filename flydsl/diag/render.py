"""One renderer for all errors and findings: header, place, source line with caret, why, fix."""

import os
import sys

from flydsl.diag.base import FlyError
from flydsl.diag.source import Span, raised_at

_RED, _YELLOW, _BLUE, _BOLD, _OFF = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m"


def use_colour() -> bool:
    """Return whether error texts are coloured: only for a terminal, never under NO_COLOR."""
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ


def render(error: FlyError, colour: bool | None = None) -> str:
    """Return the whole text of `error`."""
    colour = use_colour() if colour is None else colour
    red, blue, bold, off = (_RED, _BLUE, _BOLD, _OFF) if colour else ("",) * 4
    word = "error"
    if isinstance(error, Warning):
        word, red = "warning", _YELLOW if colour else ""
    lines = [f"{red}{word}[{error.code}]{off}{bold}: {error.message}{off}"]
    if error.spans:
        lines += snippet(error.spans[0], blue, off, caller=error.spans[1:])
    for note in error.extra_notes:
        lines.append(f"  {blue}note:{off} {note}")
    if error.reason:
        lines.append(f"  {blue}why:{off} {error.reason}")
    if error.advice:
        lines.append(f"  {blue}fix:{off} {error.advice}")
    for other in error.others:
        lines += ["", _other(other, colour)]
    return "\n".join(lines)


def _other(error: BaseException, colour: bool) -> str:
    """Return the text of an error that was found beside another; Python's own errors get the place where they arose."""
    if isinstance(error, FlyError):
        return render(error, colour)
    span = raised_at(error)
    return "\n".join([f"error: {type(error).__name__}: {error}", *(snippet(span) if span else ())])


def snippet(span: Span, blue: str = "", off: str = "", caller: tuple[Span, ...] = (), note: str = "") -> list[str]:
    """Return the lines that show a place: file, source line, caret under the expression."""
    where = f"in {span.function}" if span.function and span.function != "<module>" else ""
    chain = [f"{c}" if c.function in ("", "<module>") else f"{c.function} ({c})" for c in caller[:4]]
    via = f"called from {', '.join(chain)}" if chain else ""
    suffix = ", ".join(part for part in (where, via) if part)
    lines = [f"  {blue}-->{off} {span}{'  ' + suffix if suffix else ''}"]
    text = span.text
    if not text.strip():
        return lines
    shown = text.lstrip()
    cut = len(text) - len(shown)
    gutter = " " * len(str(span.line))
    lines += [f"{gutter} {blue}|{off}", f"{blue}{span.line} |{off} {shown}"]
    if span.column > cut:
        end = span.end_column if span.end_column > span.column else span.column + 1
        carets = "^" * min(end - span.column, len(text) - span.column + 1)
        lines.append(f"{gutter} {blue}|{off} {' ' * (span.column - 1 - cut)}{carets}{' ' + note if note else ''}")
    return lines

"""Frames and source text: which code is the user's, and what stands at a place. Imports no MLIR."""

import ast
import functools
import linecache
import os
import sys
from types import CodeType, FrameType

from flydsl.utils.record import record

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# What calls of this package pass through: imports, cached properties, `python -m`.
_BETWEEN = ("<frozen", functools.__file__, os.path.join(os.path.dirname(functools.__file__), "runpy.py"))

_internal: dict[int, bool] = {}
_positions: dict[int, list] = {}
_keep: list[CodeType] = []  # ids are reused once a code object dies, so those that were looked up stay


@record
class Span:
    """A place in a source file. Lines and columns are 1-based; `column` 0 means unknown, `end_column` is exclusive."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    function: str = ""

    @property
    def text(self) -> str:
        """The source line without its line end, or an empty string when the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def __str__(self) -> str:
        place = f"{os.path.basename(self.file)}:{self.line}"
        return f"{place}:{self.column}" if self.column else place


def named(span: Span) -> Span:
    """Return a place with the name of the innermost function whose text holds it, where it has none."""
    if span.function:
        return span
    functions = _functions_of("".join(linecache.getlines(span.file)))
    around = [(last - first, name) for first, last, name in functions if first <= span.line <= last]
    return Span(span.file, span.line, span.column, span.end_column, min(around)[1]) if around else span


@functools.lru_cache(maxsize=64)
def _functions_of(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return (first line, last line, name) of the functions of a source text; none where it cannot be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return tuple((n.lineno, n.end_lineno or n.lineno, n.name) for n in functions)


def is_internal(code: CodeType) -> bool:
    """Return whether `code` belongs to this package rather than to the user."""
    known = _internal.get(id(code))
    if known is None:
        _keep.append(code)
        known = is_package_file(code.co_filename) or code.co_filename.startswith(_BETWEEN)
        _internal[id(code)] = known
    return known


def is_package_file(file: str) -> bool:
    """Return whether a source file is one of this package's."""
    return file.startswith(_PACKAGE)


def mark_internal(code: CodeType, internal: bool) -> None:
    """Say whether frames of `code` are skipped when the user's frame is searched."""
    _keep.append(code)
    _internal[id(code)] = internal


def position(code: CodeType, lasti: int) -> tuple[int, int, int]:
    """Return (line, column, end column) of the instruction at byte `lasti`; columns 1-based, 0 where unknown."""
    table = _positions.get(id(code))
    if table is None:
        _keep.append(code)
        table = _positions[id(code)] = _position_table(code)
    index = lasti // 2
    line, end_line, column, end_column = table[index] if 0 <= index < len(table) else (None,) * 4
    if line is None:
        return code.co_firstlineno, 0, 0
    column = 0 if column is None else column + 1
    same_line = end_line == line and end_column is not None
    return line, column, end_column + 1 if same_line else 0


def _position_table(code: CodeType) -> list:
    if hasattr(code, "co_positions"):
        return list(code.co_positions())
    table = [(None, None, None, None)] * (len(code.co_code) // 2)  # Python 3.10 knows lines only
    for start, end, line in code.co_lines():
        for i in range(start // 2, end // 2):
            table[i] = (line, line, None, None)
    return table


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """Return the innermost frame of the user's code at or outside `frame` (default: the caller's)."""
    frame = frame or sys._getframe(1)
    while frame is not None and is_internal(frame.f_code):
        frame = frame.f_back
    return frame


def span_of(frame: FrameType) -> Span:
    """Return the place that `frame` is executing."""
    line, column, end_column = position(frame.f_code, frame.f_lasti)
    return Span(frame.f_code.co_filename, line, column, end_column, frame.f_code.co_name)


def raised_at(error: BaseException) -> Span | None:
    """Return the innermost place of the user's code in an error's traceback."""
    found, tb = None, error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if not is_internal(code):
            found = Span(code.co_filename, *position(code, tb.tb_lasti), code.co_name)
        tb = tb.tb_next
    return found


def user_span() -> Span | None:
    """Return the place in the user's code from which the package was called, or None."""
    frame = user_frame(sys._getframe(1))
    return None if frame is None else span_of(frame)


def user_chain(limit: int = 8) -> tuple[Span, ...]:
    """Return the user's frames that led here, innermost first."""
    spans = []
    frame = user_frame(sys._getframe(1))
    while frame is not None and len(spans) < limit:
        spans.append(span_of(frame))
        frame = user_frame(frame.f_back) if frame.f_back else None
    return tuple(spans)

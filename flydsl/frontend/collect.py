"""The errors of one kernel that do not follow from one another."""

import re
import threading
from collections.abc import Callable
from types import FunctionType

from flydsl.diag import FlyError, InternalError, raised_at
from flydsl.frontend.regions import drop, mark

MOST = 9


class _Collecting(threading.local):
    errors: "list[BaseException] | None" = None
    lost: "set[str]" = set()


_now = _Collecting()


def collect(error: Exception, state: tuple, bound: tuple[str, ...], reads: tuple[str, ...]) -> None:
    """Keep the error of a statement, unless it reads what an earlier failed statement would have bound."""
    drop(state)
    follows = not _now.lost.isdisjoint(reads) or _names_lost(error)
    _now.lost.update(bound)
    if not follows and _now.errors is not None:
        _now.errors.append(error)


def _names_lost(error: Exception) -> bool:
    """Return whether Python misses a variable that a failed statement would have bound: an inner function reads it."""
    named = re.search(r"'(\w+)'", str(error)) if isinstance(error, NameError) else None
    return named is not None and named[1] in _now.lost


def other_errors(fn: FunctionType, first: FlyError, trace: Callable[[FunctionType], object]) -> tuple[BaseException, ...]:
    """Return the independent errors of a kernel besides `first`, by tracing once more a version that goes on after an error."""
    from flydsl.frontend.functions import rewritten

    state = mark()
    _now.errors, _now.lost = [], set()
    try:
        trace(rewritten(fn, kernel=True, guarded=True))
    except Exception as error:  # the end of what can be found: whatever went wrong here, the first error is what counts
        if not _names_lost(error):
            _now.errors.append(error)
    finally:
        found, _now.errors = _now.errors, None
        drop(state)
    seen = {_identity(first)}
    others = []
    for error in found:
        if _identity(error) not in seen and _is_worth_showing(error):
            seen.add(_identity(error))
            others.append(error)
    return tuple(others[:MOST])


def _identity(error: BaseException) -> tuple:
    place = error.span if isinstance(error, FlyError) else raised_at(error)
    return (place.file, place.line) if place else (str(error), 0)


def _is_worth_showing(error: BaseException) -> bool:
    if isinstance(error, FlyError):
        return not isinstance(error, InternalError) and error.span is not None
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    place = raised_at(error)
    return tb is not None and place is not None and place.file == tb.tb_frame.f_code.co_filename

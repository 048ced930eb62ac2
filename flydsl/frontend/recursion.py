"""Recursion that a run-time condition was meant to end: Python gives up, and the reason is that both branches are traced."""

from collections import Counter
from types import CodeType, FrameType

from flydsl.diag import FlyError, RunTimeRecursion, Span, position
from flydsl.frontend.dispatch import is_rewritten
from flydsl.frontend.regions import open_now

_REPEATS = 8  # calls of one function on the stack that count as recursion


def explain_recursion(error: RecursionError, frame: FrameType) -> BaseException:
    """Return our error where the calls that do not end stand in regions, else the error itself.

    `frame`   the function that caught it: the calls lie further out, or in the traceback
    """
    if isinstance(error, FlyError):
        return error
    places = _user_places(error, frame)
    counts = Counter(code for code, _ in places)
    code, repeats = max(counts.items(), key=lambda item: item[1], default=(None, 0))
    if repeats < _REPEATS or len(open_now.regions) < repeats // 2:
        return error
    calls = [instruction for c, instruction in places if c is code]
    line, column, end = position(code, calls[-2])  # the last may be anywhere in the function
    at = Span(code.co_filename, line, column, end, code.co_name)
    explained = RunTimeRecursion(at=at, function=code.co_name)
    explained.__suppress_context__ = True
    return explained


def _user_places(error: RecursionError, frame: FrameType) -> list[tuple[CodeType, int]]:
    """Return (code, instruction) of the functions of kernels on the stack where the error arose, outermost first."""
    outer = []
    caller = frame.f_back
    while caller is not None:
        outer.append((caller.f_code, caller.f_lasti))
        caller = caller.f_back
    places = outer[::-1]
    tb = error.__traceback__
    while tb is not None:
        places.append((tb.tb_frame.f_code, tb.tb_lasti))
        tb = tb.tb_next
    return [place for place in places if is_rewritten(place[0])]

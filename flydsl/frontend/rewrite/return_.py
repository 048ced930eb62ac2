"""`return`.

Static   outside of anything dynamic, or under static conditions only: unchanged
Dynamic  the flag `_fly_returned` and the value `_fly_result` are set, the rest is guarded (see `jumps`), and
         the function ends with the value. All returns of the function then work so. Values of different paths
         must have one type, and if one path returns a value, all must: `__fly__.finish` says so at trace time.
         Where the caller drops the value (a kernel) there is none, and no end; functions nested in it have theirs.
"""

import ast

from flydsl.frontend.rewrite.build import assign, constant, locals_call, place, runtime

RETURNED = "_fly_returned"
RESULT = "_fly_result"


def set_return(s: ast.Return, drops_value: bool) -> list[ast.stmt]:
    """Return the assignments that stand for `return value`."""
    if drops_value:
        evaluated = [] if s.value is None else [ast.Expr(s.value)]
        return place([*evaluated, assign(RETURNED, constant(True))], s)
    value = s.value if s.value is not None else constant(None)
    return place([assign(RESULT, value), assign(RETURNED, constant(True))], s)


def finish_function(original: list[ast.stmt], body: list[ast.stmt], function: str, drops_value: bool) -> list[ast.stmt]:
    """Return a body with flagged returns between the flag's start and, unless the value is dropped, the one return."""
    first, last = original[0], original[-1]
    start = place([assign(RETURNED, constant(False))], first, first)
    if drops_value:
        return [*start, *body]
    end = place([ast.Return(runtime("finish", constant(function), locals_call()))], last, last)
    end[0].fly_finish = True
    return [*start, *body, *end]

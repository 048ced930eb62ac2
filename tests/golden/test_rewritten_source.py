"""What the frontend makes of each construct, as source text. `--update-golden` rewrites the files; review the diff."""

import ast
from pathlib import Path

import pytest

from flydsl.expr.control import const_expr
from flydsl.frontend import functions

FOLDER = Path(__file__).parent / "rewritten"


def if_else(n, m):
    if n > m:
        x = n
    else:
        x = m
    return x


def guard_clause(n, out):
    if n < 0:
        return
    out[0] = n


def for_carry(n, m):
    for i in range(n):
        m = m + i
    return m


def for_break_continue(n, m):
    for i in range(n):
        if i == m:
            break
        if i == 3:
            continue
        m = m + 1
    else:
        m = 0
    return m


def for_init(n, m):
    for i, (a, b) in range(0, n, 1, init=[m, 1]):
        c = a + b
        a2, b2 = yield [c, b]
    return a2


def python_loop(n, m):
    for x in (1, 2):
        m = m + x
    return m


def while_loop(n, m):
    while n > m and m != 3:
        n -= 1
    return n


def logic(n, m):
    return (n and m) or not n < m < helper(n)


def conditional_expression(n, m):
    return n if n > m else m


def static_conditions(n, m):
    if m is None:
        return 1
    if const_expr(n):
        return 2
    return [x for x in m if x is not n]


def match(n, m):
    match n:
        case 0 | 1:
            r = m
        case x if x > m:
            r = x
        case _:
            r = 0
    return r


def with_and_try(n, m):
    with m:
        if n > 0:
            n = 1
    try:
        if n > 1:
            n = 2
    except ValueError:
        n = 3
    return n


def nested_function(n, m):
    total = 0

    def add(x):
        nonlocal total
        if x > 0:
            total += x

    for i in range(n):
        add(i)
    return total


def calls(n, m):
    return len(m), helper(n), m.method(n), min(n, 3)


def helper(x):
    return x


CASES = [
    if_else, guard_clause, for_carry, for_break_continue, for_init, python_loop, while_loop, logic, conditional_expression,
    static_conditions, match, with_and_try, nested_function, calls,
]  # fmt: skip


@pytest.mark.parametrize("fn", CASES, ids=lambda f: f.__name__)
def test_rewritten(fn, request, monkeypatch):
    seen = []
    compile_ = functions._compile
    monkeypatch.setattr(
        functions, "_compile", lambda node, *rest: seen.append(ast.unparse(node)) or compile_(node, *rest)
    )
    functions._make(fn, keep_static=False, kernel=False, guarded=False)
    golden = FOLDER / f"{fn.__name__}.py.txt"
    if request.config.getoption("--update-golden", default=False):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(seen[0] + "\n")
    assert seen[0] == ast.unparse(ast.parse(golden.read_text()))  # Python 3.10 writes parentheses around tuples

"""Expressions that bind names or change containers under a run-time condition, patterns, closures: as Python computes them, on the host."""

import functools
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hosted import _flat, hosted

from flydsl.expr.numeric.classes import Int32

GRID = [(n, m, k) for n in (-1, 0, 2, 4, 7) for m in (-3, 0, 3, 5) for k in (1, 3, 6)]


@dataclass
class Pair:
    x: object
    y: object


class Span(NamedTuple):
    first: object
    last: object = 4


class Box:
    def __init__(self, x):
        self.x = x

    def bump(self, y):
        self.x = self.x + y
        return self.x

    def __enter__(self):
        if self.x > 3:
            self.x = self.x + 1
        return self

    def __exit__(self, *_):
        self.x = self.x * 2
        return False


def factorial(x, depth):
    if depth == 0:
        return 1
    return x * factorial(x - 1, depth - 1)


def larger(a, b, c=1):
    if a > b:
        return c
    return b


def and_binds(n, m, k):
    c = 0
    if n > 3 and (c := m + 1) > 2:
        return c, 1
    return c, 0


def or_binds(n, m, k):
    c = 0
    if n > 3 or (c := m + 1) > 2:
        return c, 1
    return c, 0


def guard_binds_what_had_no_value(n, m, k):
    if n > 3 and (v := m * 2) > k:
        return v
    return 0


def choice_binds(n, m, k):
    c = d = 0
    x = (c := m) if n > 3 else (d := c + 5)
    return c, d, x


def choice_calls(n, m, k):
    box = Box(k)
    r = box.bump(m) if n > 3 else box.bump(1)
    return box.x, r


def and_calls(n, m, k):
    box = Box(k)
    r = 1 if n > 3 and box.bump(m) > 2 else 0
    return box.x, r


def or_calls_closure(n, m, k):
    xs = [k]

    def add(y):
        xs[0] = xs[0] + y
        return xs[0] > 3

    r = 1 if n > 3 or add(m) else 0
    return xs[0], r


def chain_calls_second_side(n, m, k):
    xs = [n]

    def add(x):
        xs[0] = xs[0] + m
        return x

    return (1 if n < m < add(k) else 0), xs[0]


def while_condition_calls(n, m, k):
    xs = [0]

    def following():
        xs[0] = xs[0] + 1
        return xs[0]

    t = 0
    while following() < (m & 7):
        t = t + xs[0]
    return xs[0], t


def while_condition_binds(n, m, k):
    i = t = c = 0
    while i < (m & 7) and (c := c + i) < 9:
        t += i
        i += 1
    return i, t, c


def loop_binds(n, m, k):
    c, t = k, 0
    for i in range(n & 7):
        if i > 1 and (c := c + i) > m or (t := t + 1) > 3:
            t = t + c
    return c, t


def binding_that_may_not_happen_keeps_the_value(n, m, k):
    c = 0
    if n > 3:
        c = m
    r = 1 if k > 2 and (c := 5) > 1 else 0
    return c, r


def comprehension_and_lambda_bind(n, m, k):
    t = 0
    xs = [(t := t + x) for x in (n, m, k)]
    ys = [y if x > 3 and (y := x + 1) > 5 else 0 for x in (n, m, k)]
    last = lambda x: y if x > 3 and (y := x + m) > 2 else -1
    return xs, ys, t, last(n), last(k)


def nonlocal_through_two_functions(n, m, k):
    t = 0

    def outer(x):
        u = x

        def inner(y):
            nonlocal t, u
            if y > 3:
                t = t + y
                u = u + 1

        inner(m)
        for i in range(n & 3):
            inner(i + 2)
        return u

    return outer(k), t


def nonlocal_in_expression(n, m, k):
    t = 0

    def add(x):
        nonlocal t
        t = t + x
        return t > 4

    r = 1 if n > 2 and add(m) or k > 2 and add(k) else 0
    return t, r


def closure_changes_in_a_branch(n, m, k):
    xs = [k]
    put = lambda y: xs.__setitem__(0, xs[0] + y)
    box = Box(n)

    def deep(y):
        def deeper(z):
            box.x = box.x + z

        deeper(y)

    if n > 3:
        put(m)
        functools.partial(deep, m)()
    for i in range(n & 3):
        deep(i)
    return xs[0], box.x


def closure_counts_in_a_loop(n, m, k):
    xs, d = [0], {"a": 0}

    def count(i):
        xs[0] = xs[0] + 1
        d["a"] += i

    def indirectly(i):
        count(i)

    for i in range(n & 7):
        indirectly(i)
    return xs[0], d["a"]


def closure_list_behind_a_skipped_branch(n, m, k):
    calls = [0]

    def count(x):
        calls[0] = (calls[0] + 1) & 255
        return x

    a, c = m, n
    for _ in (0, 1):
        if k == 3:
            v = 0
            while v < (sum([n, 1][i] for i in (0, 1)) & 7):
                v += 1
                continue
        for j in range(3):
            a ^= j
            for i in range(count(1) & 3):
                c ^= i
    return c, calls[0], a


class Accumulator:
    def __init__(self, zero):
        self.total, self.log = zero, [zero]

    def __call__(self, x):
        if x > 3:
            self.total = self.total + x
            self.log[0] = self.log[0] + 1
        return self.total


def callable_objects(n, m, k):
    add = Accumulator(n * 0)
    r = add(n) if m > 2 else add(m)
    for i in range(k & 7):
        add(i)
    return r, add.total, add.log[0]


def recursion(n, m, k):
    return factorial(n, 3), factorial(m, 2)


def partial_map_and_context(n, m, k):
    chosen = functools.partial(larger, n, c=k)
    with Box(n) as box:
        if m > 3:
            box.x = box.x + m
    with nullcontext(n) as q:
        if q > 3:
            return q, 0, chosen(m), list(map(lambda x: x + 1 if x > 0 else x, [n, m]))  # noqa: C417
    return box.x, 1, chosen(m), list(map(functools.partial(larger, m), [n, m]))


def patterns(n, m, k):
    found = []
    for s in ((n, m), (n, m, k), [n], Pair(n, m), {"a": n, "b": m}, "text", 5):
        match s:
            case (0, 0):
                found.append(1)
            case (x, 3) if x > 2:
                found.append(x)
            case (x, y):
                found.append(x + y)
            case [a]:
                found.append(a)
            case [first, *middle, 3]:
                found.append(first + len(middle))
            case [first, *_]:
                found.append(-first)
            case Pair(x=3):
                found.append(7)
            case Pair(a, 0):
                found.append(a + 70)
            case Pair(a, y=b):
                found.append(a - b)
            case {"a": 2, **rest}:
                found.append(rest["b"])
            case {"a": v}:
                found.append(v)
            case str():
                found.append(11)
            case int(q) if q == 5:
                found.append(12)
    return found


def failed_patterns_bind_nothing(n, m, k):
    x = 9
    match (n, m):
        case (4, x) if x > k:
            return x, 1
        case (1 | 2, x):
            return x, 2
        case _:
            pass
    return x, 3


def patterns_and_jumps(n, m, k):
    t = 0
    for i in range(n & 7):
        match i % 3, m & 1:
            case 0, 0:
                continue
            case 1, _:
                t += 1
            case _, 1 if t > 3:
                break
            case a, b:
                t += a * 10 + b
    return t


def nested_patterns(n, m, k):
    match ((n, [m]), {"k": (k, 1)}):
        case ((0, _), _):
            return 0
        case ((a, [b]), {"k": (c, 1)}) if a > b:
            return a - b + c
        case ((a, [5]), _):
            return a
    return -1


def loop_result_read_in_else_only(n, m, k):
    a, x = n, m
    for i in range(k):
        a = m + i
    else:
        x = x + a
    a = x
    return a


def named_tuples(n, m, k):
    p = Span(n)
    if n > m:
        p = p._replace(last=m)
    for i in range(k & 3):
        p = Span(p.first + 1, p.last + i)
    return p


PROGRAMS = [
    and_binds, or_binds, guard_binds_what_had_no_value, choice_binds, choice_calls, and_calls, or_calls_closure, chain_calls_second_side,
    while_condition_calls, while_condition_binds, loop_binds, binding_that_may_not_happen_keeps_the_value, comprehension_and_lambda_bind,
    nonlocal_through_two_functions, nonlocal_in_expression, closure_changes_in_a_branch, closure_counts_in_a_loop,
    closure_list_behind_a_skipped_branch, recursion, partial_map_and_context, patterns, failed_patterns_bind_nothing, patterns_and_jumps,
    nested_patterns, named_tuples, callable_objects, loop_result_read_in_else_only,
]  # fmt: skip


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python(fn):
    run = hosted(fn, [Int32, Int32, Int32])
    for args in GRID:
        assert [int(x) for x in run(*args)] == [int(x) for x in _flat(fn(*args))], args


def test_notes_taken_while_tracing_stay():
    """Python objects that a branch notes for whoever traces, through a closure: no data of the kernel, so they stay."""
    noted = []

    def note(x):
        noted.append(x.__class__)

    def program(n, m, k):
        if n > m:
            note(n)
        return n

    assert hosted(program, [Int32, Int32, Int32])(1, 2, 3) == [1]
    assert noted == [Int32]

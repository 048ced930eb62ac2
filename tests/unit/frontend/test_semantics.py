"""Rewritten functions compute what Python computes: every construct, over a grid of arguments, on the host."""

import dataclasses
from types import SimpleNamespace

import pytest
from hosted import _flat, hosted

from flydsl.expr.control import const_expr, range_constexpr
from flydsl.expr.numeric.classes import Int32

GRID = [(n, m) for n in (-3, -1, 0, 1, 2, 3, 5, 8) for m in (-2, 0, 1, 2, 3, 8, 12)]


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def guard_clause(n, m):
    if n < 0:
        return 5
    if n > m:
        return n - m
    return m


def break_continue_else(n, m):
    s = 0
    for i in range(n):
        if i == m:
            break
        if i % 3 == 1:
            continue
        s += i
    else:
        s += 100
    return s


def return_from_two_loops(n, m):
    s = 0
    for i in range(n):
        for j in range(m):
            if i * j == 6:
                return s
            s += j
            if j > i:
                break
    return s - 1


def while_true(n, m):
    i = 0
    while True:
        i += 2
        if i > n:
            break
        if i == m:
            return -i
    return i


def python_loop_with_run_time_jumps(n, m):
    s = 0
    for x in [1, 2, 3, 4, 5]:
        if x == n:
            continue
        if x > m:
            break
        s += x
    else:
        s -= 1000
    return s, x


def containers(n, m):
    xs = [1, 2]
    d = {"a": n, "b": (m, 3)}
    ns = SimpleNamespace(p=0, q=1)
    st = Pair(0, [5, 6])
    if n > m:
        xs.append(n)
        xs[0] = 9
        d["a"] = m
        ns.p += 1
        st.b[0] = n
    else:
        xs.append(m)
        st.a = m
    for i in range(n):
        xs[1] += i
        d["a"] = d["a"] + 1
        ns.p += i
        st.a += 2
        st.b[1] += 1
        if i == 3:
            st = Pair(st.b[1], [i, st.a])
    return xs, d["a"], d["b"], ns.p, ns.q, st.a, st.b


def rebound_here_changed_there(n, m):
    p = Pair(n, 1)
    q = p
    if n > m:
        p.b = 7
    else:
        p = Pair(m, p.a)
    return p.a, p.b, q.a, q.b


def bound_in_both(n, m):
    if n < m:
        y = n
    elif n == m:
        y = 0
    else:
        y = m
        z = 4  # noqa: F841
    return y


def nonlocal_total(n, m):
    tot = 0

    def add(x):
        nonlocal tot
        if x > 2:
            tot += x
        return tot

    for i in range(n):
        add(i + m)
    return tot


def short_circuit(n, m):
    a = n if (n > 0 and 10 // n > m) else m
    b = 1 if (n == 0 or n < 0 or 10 // n > 2) else 0
    return a, b


def matching(n, m):
    match n:
        case 0:
            return 10
        case 1 | 2:
            r = m
        case x if x > 5:
            r = x
        case _:
            r = 7
    return r


def walrus(n, m):
    s = 0
    while (k := n - s) > m:
        s += 1
    return s, k


def comprehension_and_lambda(n, m):
    v = [x if x > n else m for x in [1, 2, 3]]
    f = lambda q: q + 1 if q < m else q - 1
    return v, f(n)


def helper(x, n):
    if x < 0:
        return 0
    t = 0
    for _ in range(n):
        t += x
    return t


def calls_helper(n, m):
    s = 0
    for i in range(m):
        s += helper(n + i, i)
    return s


class Counter:
    def __init__(self, x):
        self.x = x
        self.__seen = 0

    def bump(self, y):
        if y > 1:
            self.x = self.x + y
            self.__seen += 1
        return self.x

    def seen(self):
        return self.__seen


def methods(n, m):
    c = Counter(n)
    if n > 0:
        c.bump(m)
    for i in range(m):
        c.bump(i)
    return c.x, c.seen()


def target_after_loop(n, m):
    i = 99
    for i in range(m, n):
        pass
    return i


def while_with_swap(n, m):
    a, b = 0, 1
    while a < n:
        a, b = b, a + b
        if b > 50:
            continue
        if a == m:
            break
    return a, b


def nested_while(n, m):
    c = 0
    i = 0
    while i < n:
        j = 0
        while j < m:
            if (i + j) % 4 == 3:
                j += 2
                continue
            c += i * j
            if c > 60:
                return c
            j += 1
        i += 1
    return -c


def static_stays_python(n, m):
    names = ["a", "b"]
    k = 0
    while k < len(names):
        k += 1
    if names[0] == "a" and k:
        n = n + k
    for j in range_constexpr(4):
        if const_expr(j == 2):
            continue
        names.append(j)
        m = m + names[-1]
    label = "x" if k > 5 else "y"
    return n, m, len(label)


def temporaries_of_several_types(n, m):
    t = "text"
    for i in range(n):
        t = i + m
        m = t + 1
    if n > 2:
        t = [n, m]
        m = t[0] + t[1]
    else:
        t = {"k": n}
        m = t["k"]
    return m


def chained_comparison(n, m):
    calls = []

    def middle():
        calls.append(1)
        return m

    hit = 0 < middle() < n
    return 1 if hit else 0, len(calls), 1 if 0 <= n < m < 10 else 2


def explicit_state(n, m):
    acc = m
    for i, (a, b) in range(0, n, 1, init=[acc, 1]):
        acc = a + b
        out = yield [acc, b + 1]
    return acc, out[0], out[1]


def single_state(n, m):
    for i, st in range(n, init=[m]):
        st = yield st[0] + 2
    return st


def explicit_state_of_python(n, m):
    acc, one = m, 1
    last = acc
    for _ in range(n):
        last = acc + one
        acc, one = last, one + 1
    return last, acc, one


def deletes(n, m):
    x = 1
    if n > m:
        del x
        x = 5
    return x


def with_and_try(n, m):
    import contextlib

    x = 0
    with contextlib.suppress(ValueError):
        if n > m and n < 50:
            raise ValueError
    try:
        for i in range(n):
            if i > 2:
                while i < m:
                    raise KeyError
    except KeyError:
        x = x + 10
    finally:
        x = x + 100
    return x


def two_breaks_behind_a_guard(n, m):
    a = 0
    for _ in (0, 1, 2):
        if n > 3:
            if m > 2:
                break
        a += 1
        if a == m:
            return a + 50
    return a + m


def builtins_that_compare(n, m):
    xs = [n, m, 3]
    a = min(n, m) + max(xs) + abs(n) + sum(xs)
    return a, any(x > 7 for x in xs), all([n < 5, m < 9]), min(4, 2), any([])


PYTHON = [
    builtins_that_compare,
    guard_clause, break_continue_else, return_from_two_loops, while_true, python_loop_with_run_time_jumps, containers,
    rebound_here_changed_there, bound_in_both, nonlocal_total, short_circuit, matching, walrus, comprehension_and_lambda,
    calls_helper, methods, target_after_loop, while_with_swap, nested_while, static_stays_python,
    temporaries_of_several_types, chained_comparison, deletes, two_breaks_behind_a_guard,
]  # fmt: skip


def ints(value):
    return [int(x) for x in _flat(value)]


@pytest.mark.parametrize("fn", PYTHON, ids=lambda f: f.__name__)
def test_as_python(fn):
    run = hosted(fn, [Int32, Int32])
    for n, m in GRID:
        assert [int(x) for x in run(n, m)] == ints(fn(n, m)), (n, m)


def test_explicit_state_of_init_loops():
    run = hosted(explicit_state, [Int32, Int32])
    for n, m in GRID:
        last, acc, one = explicit_state_of_python(n, m)
        assert run(n, m) == [last if n > 0 else m, acc, one]
    run = hosted(single_state, [Int32, Int32])
    assert run(4, 3) == [11] and run(0, 3) == [3]


def test_regions_left_by_caught_exceptions_are_taken_back():
    run = hosted(with_and_try, [Int32, Int32])
    assert run(5, 1) == [110]  # the exceptions are those of the trace, so they happen whatever n and m are


def hidden_changes_by_methods_helpers_and_closures(n, m):
    class State:
        def __init__(self, x):
            self.x = x
            self.parts = [x, x]
            self.fixed = 3

        def step(self, i):
            self.x = self.x + i
            self.parts[1] = self.parts[1] + self.fixed

    def closure(i):
        boxed[0] = boxed[0] + i

    state, boxed, given = State(n), [m], {"k": [n, m]}
    for i in range(m):
        state.step(i)
        closure(i)
        change_argument(given, i)
    while n > 0:
        change_argument(given, n)
        n = n - 1
    return state.x, state.parts, boxed, given["k"]


def change_argument(d, i):
    if i > 1:
        d["k"][0] = d["k"][0] + i
    d["k"][1] = d["k"][1] + 1


def left_over_values_do_no_harm(n, m):
    class Cache:
        def __init__(self):
            self.last = None

        def put(self, x):
            self.last = x

    cache = Cache()
    scratch = [n, m]
    for i in range(n):
        cache.put(i)
        keep(scratch, i)
        m = m + scratch[0]
    for i in range(m):
        cache.put(i)
        keep(scratch, i)
        n = n + scratch[0] + cache.last
    return n, m


def keep(scratch, i):
    scratch[0] = i + 1


@pytest.mark.parametrize("fn", [hidden_changes_by_methods_helpers_and_closures, left_over_values_do_no_harm])
def test_hidden_changes(fn):
    run = hosted(fn, [Int32, Int32])
    for n, m in GRID:
        assert [int(x) for x in run(n, m)] == ints(fn(n, m)), (n, m)

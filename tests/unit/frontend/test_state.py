"""State that run-time regions change in place: slots, aliases, bound methods, defaults, globals; compared with Python on a grid of arguments."""

import dataclasses
import functools
from collections import deque, namedtuple
from pathlib import Path

import numpy as np
import pytest
import user_settings
from hosted import _flat, hosted

import flydsl.diag as diag
from flydsl.expr.control import range_constexpr
from flydsl.expr.numeric.classes import Int32

GRID = [(n, m) for n in (-1, 0, 1, 2, 5) for m in (-2, 0, 1, 3, 8)]


class Slotted:
    __slots__ = ("__private", "next", "unset", "v")

    def __init__(self, v):
        self.v, self.next, self.__private = v, None, v + 1

    def put(self, x):
        self.v = self.v + x
        self.__private = self.__private - x

    def private(self):
        return self.__private

    def __enter__(self):
        self.v = self.v + 1
        return self

    def __exit__(self, *exc):
        self.v = self.v * 2


class Both(Slotted):
    """Slots of a base class, attributes of its own."""

    def __init__(self, v):
        super().__init__(v)
        self.w = v


@dataclasses.dataclass(slots=True)
class Record:
    a: object
    b: object = 7


@dataclasses.dataclass(frozen=True)
class Frozen:
    parts: list


class Counter:
    def __init__(self, d):
        self.d = d

    def put(self, x):
        self.d = self.d + x

    def __lshift__(self, x):
        self.d = self.d - x
        return self

    @property
    def following(self):
        self.d = self.d + 1
        return self.d

    def __iter__(self):
        self.d = self.d + 3
        return iter((1, 2))


def slots_in_branches(n, m):
    s, r, b = Slotted(n), Record(m), Both(m)
    if n > m:
        s.v = m
        r.a = n
        b.w = b.w + 1
        b.put(n)
    else:
        s.put(m)
        r.b = n
    return s.v, s.private(), r.a, r.b, b.v, b.w, b.private()


def slots_in_loops(n, m):
    s, r, b = Slotted(n), Record(m), Both(m)
    s.next = Record(n, Slotted(n))
    for i in range(m):
        s.v = s.v + i
        s.next.b.v = s.next.b.v + 1
        s.next.a = s.next.a - 1
        r.a = n
        b.put(i)
        b.w = b.w + 2
        if i > 3:
            break
    while r.b < m:
        r.b = r.b + 1
        if r.b == 5:
            continue
        s.put(1)
    return s.v, s.private(), s.next.a, s.next.b.v, r.a, r.b, b.v, b.w, b.private()


def a_slot_that_was_unset(n, m):
    s = Slotted(n)
    if n > m:
        s.unset = n
    else:
        s.unset = m
    return s.unset


def aliases_in_lists(n, m):
    a = [n]
    pair, once, grid = [a, a], [a], [[n] * 2] * 2
    for i in range(m):
        once[0][0] = once[0][0] + 1
        pair[1][0] = pair[0][0] + 1
        grid[0][1] = grid[1][1] + i
    return a, pair[0], pair[1], once[0], grid


def aliases_of_objects(n, m):
    c = Counter(n)
    cs, by_name = [c, c], {"p": c, "q": (c, [c])}
    i = 0
    while i < m:
        cs[0].d = cs[1].d + 1
        by_name["q"][1][0].d = by_name["p"].d + c.d
        i += 1
        if i == 4:
            break
    return c.d, cs[0].d, cs[1].d, by_name["p"].d


def aliases_by_names(n, m):
    a, d = [n, [m]], {"k": [n]}
    b, inner, k = a, a[1], d["k"]
    for i in range(m):
        q = a[1]
        q[0] = q[0] + i
        b[0] = a[0] + 1
        d["k"][0] = k[0] + 2
        if i == 3:
            return a, inner, d["k"], k
    return b, inner, k, d["k"]


def an_element_that_is_rebound_leaves_its_alias(n, m):
    a = [n]
    xs = [a]
    for i in range(m):
        xs[0] = [xs[0][0] + 1]
    return a, xs[0]


def all_elements_beside_a_container(n, m):
    a = [n]
    xs = [a, n, m]
    for i in range(m):
        for j in range_constexpr(1, 3):
            xs[j] = xs[j] + 1
        a[0] = a[0] + xs[1]
    return a, xs[0], xs[1], xs[2]


def elements_that_change_places(n, m):
    a, b = [n], [m]
    xs = [a, b]
    for i in range(m):
        xs.reverse()
        xs[0][0] = xs[0][0] + 10
    return xs[0], xs[1]


def changes_without_a_name(n, m):
    c, e, g = Counter(n), Counter(m), Counter(n)
    put, twice = c.put, functools.partial(e.put, 2)
    if n > m:
        put(n)
        g << m
        n = g.following
        for x in e:
            n = n + x
    for i in range(m):
        put(i)
        twice()
        g << i
        n = n + g.following
        for x in e:
            n = n + x
    return c.d, e.d, g.d, n


def with_in_regions(n, m):
    s = Slotted(n)
    holder = Record(Slotted(m))
    for i in range(m):
        with s, holder.a:
            n = n + s.v
    while n > 100:
        with s as same:
            n = n // 8
            same.put(1)
    if n > m:
        with s:
            n = n + 1
    return s.v, s.private(), holder.a.v, n


def lists_in_frozen_objects(n, m):
    f = Frozen([n, m])
    point = namedtuple("Point", "xs y")([n], 0)
    for i in range(m):
        f.parts[0] = f.parts[0] + i
        point.xs[0] = point.xs[0] + f.parts[1]
    if n > m:
        f.parts[1] = n
        point.xs[0] = 5
    return f.parts, point.xs


def defaults_and_attributes_of_functions(n, m):
    def total(x, seen=[n]):
        seen[0] = seen[0] + x
        total.calls = total.calls + 1
        return seen[0]

    total.calls = n
    if n > m:
        total(n)
    for i in range(m):
        total(i)
    return total(m), total.calls


def attributes_of_a_class(n, m):
    class Local:
        v = n

        @classmethod
        def bump(cls, x):
            cls.v = cls.v + x

    if n > m:
        Local.v = m
    for i in range(m):
        Local.bump(i)
    return Local.v


def an_attribute_with_a_default_in_the_class(n, m):
    class Local:
        v = 4

    c = Local()
    if n > m:
        c.v = n
    return c.v, Local.v


class Increments:
    def __init__(self, v):
        self.__dict__["v"] = v

    def __setattr__(self, name, v):
        self.__dict__[name] = v + 1


def attributes_with_a_setter(n, m):
    c = Increments(n)
    for i in range(m):
        c.v = c.v + i
    if n > m:
        c.v = n
    return c.v


def queues(n, m):
    q = deque([n, m])
    if n > m:
        q[0] = m
    for i in range(m):
        q[1] = q[1] + i
        q.rotate(0)
    return list(q)


def object_arrays(n, m):
    a = np.empty((2, 1), object)
    a[0, 0], a[1, 0] = n, m
    if n > m:
        a[0, 0] = m
    for i in range(m):
        a[1, 0] = a[1, 0] + i
    return a[0, 0], a[1, 0]


def loops_in_loops_that_miss_changes(n, m):
    c, xs = Counter(n), [[m]]
    for i in range(m):
        for j in range(2):
            q = xs[0]
            q[0] = q[0] + j
            c << i
        for j in range_constexpr(2):
            for k in range(2):
                c << xs[0][0]
    return c.d, xs[0]


def init_loops(n, m):
    c = Counter(n)
    s = n
    for i, (s,) in range(0, m, 1, init=[s]):
        c << i.to(Int32) if hasattr(i, "to") else c << i
        s = yield [s + 1]
    return c.d, s


LOCAL = [
    slots_in_branches,
    slots_in_loops,
    a_slot_that_was_unset,
    aliases_in_lists,
    aliases_of_objects,
    aliases_by_names,
    an_element_that_is_rebound_leaves_its_alias,
    all_elements_beside_a_container,
    elements_that_change_places,
    changes_without_a_name,
    with_in_regions,
    lists_in_frozen_objects,
    defaults_and_attributes_of_functions,
    attributes_of_a_class,
    an_attribute_with_a_default_in_the_class,
    attributes_with_a_setter,
    queues,
    object_arrays,
    loops_in_loops_that_miss_changes,
]


@pytest.mark.parametrize("fn", LOCAL, ids=lambda f: f.__name__)
def test_state_of_a_function(fn):
    run = hosted(fn, [Int32, Int32])
    for n, m in GRID:
        assert [int(x) for x in run(n, m)] == [int(x) for x in _flat(fn(n, m))], (n, m)


def test_a_loop_with_init_carries_objects_too():
    run = hosted(init_loops, [Int32, Int32])
    for n, m in GRID:
        assert run(n, m) == [n - sum(range(m)), n + max(m, 0)]


# --- state of the module ---------------------------------------------------------------------------------------------

LIST = [0]
TABLE = {"a": [0]}
TOTAL = 0


class Config:
    v = 0
    parts = [0]

    def count(self, x):
        global TOTAL
        TOTAL = TOTAL + x


OBJECT = Counter(0)


def reset():
    global TOTAL
    TOTAL = 0
    LIST[:], TABLE["a"][:], Config.parts[:] = [0], [0], [0]
    Config.v = OBJECT.d = 0
    helper.__defaults__[0][:] = [0]
    helper.calls = 0
    user_settings.LIMITS[:] = [0]
    user_settings.level = user_settings.Limits.high = 0


def state():
    return user_settings.LIMITS, user_settings.level, user_settings.Limits.high, *own_state()


def own_state():
    return LIST, TABLE["a"], TOTAL, Config.v, Config.parts, OBJECT.d, helper.__defaults__[0], helper.calls


def helper(x, seen=[0]):
    seen[0] = seen[0] + x
    helper.calls = helper.calls + x
    LIST[0] = LIST[0] + x
    return seen[0]


def named_in_the_region(n, m):
    global TOTAL
    if n > m:
        LIST[0] = n
        TABLE["a"][0] = m
        Config.v = n
        OBJECT.d = m
        TOTAL = n
    else:
        Config.parts[0] = n
    return state()


def named_in_a_loop(n, m):
    global TOTAL
    for i in range(m):
        LIST[0] = LIST[0] + i
        Config.v = Config.v + 1
        Config.parts[0] = n
        OBJECT.d = OBJECT.d + i
        TOTAL += 1
    while TOTAL < n:
        TABLE["a"][0] = TABLE["a"][0] + 2
        TOTAL = TOTAL + 1
    return state()


def behind_helpers(n, m):
    c = Config()
    if n > m:
        helper(n)
        c.count(n)
    for i in range(m):
        helper(i + n)
        c.count(n)
    return state()


def of_another_module(n, m):
    if n > m:
        user_settings.LIMITS[0] = n
        user_settings.level = m
        user_settings.Limits.high = n
    for i in range(m):
        user_settings.raise_level(i)
        user_settings.LIMITS[0] += n
    return state()


def by_expressions(n, m):
    x = helper(n) if n > m else helper(m)
    y = n > 0 and helper(n) > 2
    return state(), x, y


@pytest.mark.parametrize("fn", [named_in_the_region, named_in_a_loop, behind_helpers, of_another_module, by_expressions], ids=lambda f: f.__name__)
def test_state_of_the_module(fn):
    reset()
    run = hosted(fn, [Int32, Int32])
    assert [x.__class__ for x in _flat(state())] == [int] * 11, "run-time values outlive the trace"
    again = hosted(fn, [Int32, Int32])
    for n, m in GRID:
        reset()
        expected = [int(x) for x in _flat(fn(n, m))]
        assert [int(x) for x in run(n, m)] == expected, (n, m)
        assert [int(x) for x in again(n, m)] == expected, (n, m)
    reset()


CALLS = {"n": 0}
NOTES = []
CACHE = {}


def count_while_tracing(x):
    CALLS["n"] += 1
    NOTES.append("seen")
    if "key" not in CACHE:
        CACHE["key"] = object()
    return x + 1


def test_bookkeeping_of_helpers_stays_python_with_a_warning():
    def body(n, m):
        if n > m:
            n = count_while_tracing(n)
        else:
            n = count_while_tracing(m)
        return n

    with pytest.warns(UserWarning, match=r"'CALLS\['n'\]': a number of the module that changes once, while the if at line \d+ is traced"):
        run = hosted(body, [Int32, Int32])
    assert (CALLS["n"], len(CACHE)) == (2, 1)
    assert [run(n, m)[0] for n, m in GRID] == [max(n, m) + 1 for n, m in GRID]


# --- what cannot be carried ------------------------------------------------------------------------------------------


def adds_to_a_set(n, m):
    seen = set()
    if n > m:
        seen.add(n)  # <-
    return len(seen)


def writes_bytes(n, m):
    data = bytearray(b"ab")
    for i in range(n):
        data[0] = 7  # <-
    return data[0]


def writes_an_array(n, m):
    data = np.zeros(4, np.int32)
    if n > m:
        data[0] = 7  # <-
    return int(data[0])


@pytest.mark.parametrize(
    "fn, name, cls, region",
    [(adds_to_a_set, "seen", "set", "if"), (writes_bytes, "data", "bytearray", "for"), (writes_an_array, "data", "ndarray", "if")],
)
def test_containers_without_run_time_values(fn, name, cls, region):
    with pytest.raises(diag.StateNotCarried) as caught:
        hosted(fn, [Int32, Int32])
    error = caught.value
    text = Path(__file__).read_text().split("\n")
    assert text[error.span.line - 1].endswith("# <-") and error.code == "FLY_STATE_NOT_CARRIED"
    assert isinstance(error, TypeError) and f"changes '{name}', whose {cls} cannot hold" in str(error) and f"the {region} at line" in str(error)
    assert "keep it in a variable, list, dict or object" in str(error)


def test_what_a_loop_adds_to_an_object_is_gone_after_it():
    def body(n, m):
        c = Counter(n)
        for i in range(m):
            c.extra = i
        return c.extra + 1

    with pytest.raises(diag.EscapedValue, match="through 'c'"):
        hosted(body, [Int32, Int32])

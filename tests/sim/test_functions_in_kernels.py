"""Functions defined inside kernels return what they return: early, from loops, try, with and match, as tuples."""

import contextlib

import numpy as np
import pytest
from lanes import launched

import flydsl.compiler as flyc
import flydsl.diag as diag
import flydsl.expr as fx

LANES = 32
LANE = np.arange(LANES)


@flyc.kernel
def used_as_a_condition(out: fx.Tensor):
    t = fx.thread_idx.x

    def has_square_over(v):
        for i in range(4):
            if i * i > v:
                return fx.Boolean(True)
        return fx.Boolean(False)

    if has_square_over(t):
        out[t] = 1
    else:
        out[t] = 2


@flyc.kernel
def after_a_return_of_the_kernel(out: fx.Tensor):
    t = fx.thread_idx.x
    if t >= 20:
        return

    def clamped(v):
        if v > 7:
            return fx.Int32(7)
        return v

    out[t] = clamped(t)


@flyc.kernel
def a_tuple_from_a_loop(out: fx.Tensor):
    t = fx.thread_idx.x

    def place(v):
        for i in range(8):
            if i * 3 == v:
                return i, v
        return fx.Int32(-1), fx.Int32(-2)

    a, b = place(t)
    out[t] = a * 100 + b


@flyc.kernel
def from_two_loops_and_a_while(out: fx.Tensor):
    t = fx.thread_idx.x

    def pair(v):
        for i in range(4):
            j = fx.Int32(0)
            while j < 4:
                if i * 4 + j == v:
                    return i * 10 + j
                j += 1
        return fx.Int32(-1)

    out[t] = pair(t)


@flyc.kernel
def nested_in_nested(out: fx.Tensor):
    t = fx.thread_idx.x

    def outer(v):
        def inner(w):
            if w > 5:
                return w - 5
            return w + 100

        if v > 20:
            return fx.Int32(9)
        return inner(v) * 2

    out[t] = outer(t)


@flyc.kernel
def methods_of_a_local_class(out: fx.Tensor):
    t = fx.thread_idx.x

    class Clamp:
        def __init__(self, high):
            self.high = high

        def of(self, v):
            if v > self.high:
                return self.high
            return v

        @staticmethod
        def sign(v):
            if v < 4:
                return fx.Int32(-1)
            return fx.Int32(1)

        @property
        def doubled(self):
            if self.high > 10:
                return self.high
            return self.high * 2

        def __call__(self, v):
            if v == self.high:
                return fx.Int32(50)
            return fx.Int32(0)

    clamp = Clamp(t // 2)
    out[t] = clamp.of(fx.Int32(8)) * clamp.sign(t) + clamp.doubled * 1000 + clamp(fx.Int32(3))


@flyc.kernel
def with_a_lambda_inside(out: fx.Tensor):
    t = fx.thread_idx.x

    def shifted(v):
        add = lambda w: w + 3
        if v > 10:
            return add(v)
        return (lambda w: w * 2)(v)

    out[t] = (lambda v: shifted(v) - 1)(t)


@flyc.kernel
def from_try_with_and_match(out: fx.Tensor):
    t = fx.thread_idx.x

    def protected(v):
        try:
            if v > 20:
                return fx.Int32(1)
        finally:
            v = v + 0
        with contextlib.nullcontext():
            if v > 15:
                return fx.Int32(2)
        return v

    def matched(kind, v):
        match kind:
            case "high":
                if v > 10:
                    return fx.Int32(70)
            case _:
                return fx.Int32(80)
        return v

    out[t] = protected(t) * 10000 + matched("high", t) * 100 + matched("low", t)


@flyc.kernel
def none_everywhere(out: fx.Tensor):
    t = fx.thread_idx.x

    def write(v):
        if v > 7:
            return
        out[t] = v
        if v > 3:
            return None
        out[t] = v + 100

    assert write(t) is None


@flyc.kernel
def of_a_helper(out: fx.Tensor):
    t = fx.thread_idx.x
    out[t] = helper(t)


def helper(v):
    def nested(w):
        if w > 3:
            return w * 2
        return w

    return nested(v)


CASES = [
    (used_as_a_condition, lambda t: 1 if t < 9 else 2),
    (after_a_return_of_the_kernel, lambda t: min(t, 7) if t < 20 else 0),
    (a_tuple_from_a_loop, lambda t: t // 3 * 100 + t if t % 3 == 0 and t < 24 else -102),
    (from_two_loops_and_a_while, lambda t: t // 4 * 10 + t % 4 if t < 16 else -1),
    (nested_in_nested, lambda t: 9 if t > 20 else ((t - 5) if t > 5 else t + 100) * 2),
    (
        methods_of_a_local_class,
        lambda t: min(8, t // 2) * (-1 if t < 4 else 1) + (t // 2 if t // 2 > 10 else t // 2 * 2) * 1000 + (50 if t // 2 == 3 else 0),
    ),
    (with_a_lambda_inside, lambda t: (t + 3 if t > 10 else t * 2) - 1),
    (
        from_try_with_and_match,
        lambda t: (1 if t > 20 else 2 if t > 15 else t) * 10000 + (70 if t > 10 else t) * 100 + 80,
    ),
    (none_everywhere, lambda t: 0 if t > 7 else t if t > 3 else t + 100),
    (of_a_helper, lambda t: t * 2 if t > 3 else t),
]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("kernel, want", CASES, ids=[k.func.__name__ for k, _ in CASES])
def test_values(kernel, want, arch):
    assert launched(kernel, LANES, arch) == [want(int(t)) for t in LANE]


def halves(v, depth):
    if fx.const_expr(depth == 0):
        return v
    if v > depth:
        v = halves(v // 2, depth - 1) + 1
    return v


def falling(v):
    if v > 3:
        v = v - 1
    return falling(v)


@flyc.kernel
def ends_while_traced(out: fx.Tensor):
    out[fx.thread_idx.x] = halves(fx.thread_idx.x, 12)


@flyc.kernel
def never_ends(out: fx.Tensor):
    out[fx.thread_idx.x] = falling(fx.thread_idx.x)


def test_recursion_that_python_decides():
    def want(v, depth):
        return want(v // 2, depth - 1) + 1 if depth and v > depth else v

    assert launched(ends_while_traced, LANES) == [want(int(t), 12) for t in LANE]


def test_recursion_under_no_condition_is_pythons_error():
    with pytest.raises(RecursionError) as caught:
        launched(never_ends, LANES)
    assert not isinstance(caught.value, diag.FlyError)
    assert launched(ends_while_traced, LANES, "gfx1100")[0] == 0  # nothing is left behind


@flyc.kernel
def empty_dicts(out: fx.Tensor):
    t = fx.thread_idx.x
    d, e, f = {}, {}, {}
    for _ in range(t):
        d.clear()
        e = {}
    if t > 3:
        e = {}
        f["x"] = t
    else:
        f["x"] = t + 1
    out[t] = 10 * f["x"] + len(d) + len(e)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_dicts_that_stay_empty_or_get_a_key_on_all_paths(arch):
    assert launched(empty_dicts, LANES, arch) == [10 * (t if t > 3 else t + 1) for t in range(LANES)]


def test_a_function_in_a_jit_function():
    @flyc.kernel
    def fill(out: fx.Tensor, value: fx.Int32):
        out[fx.thread_idx.x] = value

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Int32):
        def chosen(v):
            for i in range(4):
                if i * i > v:
                    return i, fx.Int32(1)
            return v, fx.Int32(2)

        a, b = chosen(n)
        fill(out, a * 10 + b).launch(grid=(1, 1, 1), block=(LANES, 1, 1))

    for n, want in ((0, 11), (5, 31), (12, 122)):
        out = np.zeros(LANES, np.int32)
        launch(out, n)
        assert out.tolist() == [want] * LANES


@flyc.kernel
def value_or_nothing(out: fx.Tensor):
    t = fx.thread_idx.x

    def positive(v):
        if v > 3:
            return v

    out[t] = positive(t)


@flyc.kernel
def value_or_none(out: fx.Tensor):
    t = fx.thread_idx.x

    def positive(v):
        if v > 3:
            return v
        return None

    out[t] = positive(t)


@flyc.kernel
def two_types(out: fx.Tensor):
    t = fx.thread_idx.x

    def mixed(v):
        if v > 3:
            return v
        return 1.5

    out[t] = mixed(t)


@flyc.kernel
def two_lengths(out: fx.Tensor):
    t = fx.thread_idx.x

    def mixed(v):
        if v > 3:
            return v, v
        return v, v, v

    out[t] = mixed(t)[0]


REFUSED = [
    (value_or_nothing, "MixedReturn", "`positive` returns a value on some run-time paths", "if v > 3:"),
    (value_or_none, "CarryMismatch", "'return value' does not match the region entry: expected Int32, produced None", "return None"),
    (two_types, "CarryMismatch", "expected dtype Int32, produced Float32", "return 1.5"),
    (two_lengths, "CarryMismatch", "expected tuple of length 2, got tuple of length 3", "return v, v, v"),
]


@pytest.mark.parametrize("kernel, error, text, line", REFUSED, ids=[k.func.__name__ for k, *_ in REFUSED])
def test_refused(kernel, error, text, line):
    with pytest.raises(getattr(diag, error)) as caught:
        launched(kernel, LANES)
    shown = str(caught.value)
    assert text in shown and f"| {line}" in shown.replace("    ", ""), shown

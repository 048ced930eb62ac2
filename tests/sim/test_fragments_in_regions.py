"""Register tensors under run-time control flow: a name stands for one of them on all paths, or it is an error.

What works is compared with the same steps on lists of Python, per lane.
"""

import pytest
from lanes import launched

import flydsl.compiler as flyc
import flydsl.diag as diag
import flydsl.expr as fx

LANES = 16
ARCHS = ("gfx942", "gfx1100")


def pair(t):
    a, b = fx.make_rmem_tensor(1, fx.Int32), fx.make_rmem_tensor(1, fx.Int32)
    a[0] = t
    b[0] = t + 100
    return a, b


def table(t):
    """A fragment of (4, 2): column c holds 100 t + 10 c + 0..3."""
    f = fx.make_rmem_tensor(fx.make_layout((4, 2), (1, 4)), fx.Int32)
    for i in fx.range_constexpr(8):
        f[i] = t * 100 + 10 * (i // 4) + i % 4
    return f


class Holder:
    """A user's object."""

    def swap(self):
        self.a, self.b = self.b, self.a


@fx.struct
class Held:
    part: fx.Tensor


def swap_in_list(xs):
    xs[0], xs[1] = xs[1], xs[0]


# --- refused: (kernel, name in the message); the line is marked `# <-` ------------------------------------------------


@flyc.kernel
def swap_in_a_branch(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    if t > 3:
        a, b = b, a  # <-
    out[t] = a[0]


@flyc.kernel
def swap_in_a_loop(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    for _ in range(t):
        a, b = b, a  # <-
    out[t] = a[0]


@flyc.kernel
def swap_in_a_while(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    i = t
    while i > 0:
        a, b = b, a  # <-
        i -= 1
    out[t] = a[0]


@flyc.kernel
def new_in_a_branch(out: fx.Tensor):
    t = fx.thread_idx.x
    a, _ = pair(t)
    if t > 3:
        a = fx.make_rmem_tensor(1, fx.Int32)  # <-
        a[0] = 99
    out[t] = a[0]


@flyc.kernel
def new_from_the_last_iteration(out: fx.Tensor):
    t = fx.thread_idx.x
    a, _ = pair(t)
    for _ in range(t):
        n = fx.make_rmem_tensor(1, fx.Int32)
        n[0] = a[0] + 1
        a = n  # <-
    out[t] = a[0]


@flyc.kernel
def conditional_expression(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    c = a if t > 3 else b  # <-
    out[t] = c[0]


@flyc.kernel
def walrus(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    c = a
    _ = (t > 3) and (c := b)[0] > 0  # <-
    out[t] = c[0]


@flyc.kernel
def in_a_list(out: fx.Tensor):
    t = fx.thread_idx.x
    xs = [*pair(t)]
    for _ in range(t):
        xs[0], xs[1] = xs[1], xs[0]  # <-
    out[t] = xs[0][0]


@flyc.kernel
def in_a_dict(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    d = {"a": a, "b": b}
    if t > 3:
        d["a"] = b  # <-
    out[t] = d["a"][0]


@flyc.kernel
def in_a_tuple(out: fx.Tensor):
    t = fx.thread_idx.x
    p = pair(t)
    for _ in range(t):
        p = (p[1], p[0])  # <-
    out[t] = p[0][0]


@flyc.kernel
def in_an_object(out: fx.Tensor):
    t = fx.thread_idx.x
    h = Holder()
    h.a, h.b = pair(t)
    for _ in range(t):
        h.a, h.b = h.b, h.a  # <-
    out[t] = h.a[0]


@flyc.kernel
def by_a_method_in_a_loop(out: fx.Tensor):
    t = fx.thread_idx.x
    h = Holder()
    h.a, h.b = pair(t)
    x = fx.Int32(0)
    for _ in range(t):
        h.swap()  # <-
        x = h.a[0]
    out[t] = x


@flyc.kernel
def by_a_helper_in_a_loop(out: fx.Tensor):
    t = fx.thread_idx.x
    xs = [*pair(t)]
    for _ in range(t):  # <-
        swap_in_list(xs)
    out[t] = xs[0][0]


@flyc.kernel
def by_a_nested_function(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)

    def swap():
        nonlocal a, b
        a, b = b, a

    for _ in range(t):  # <-
        swap()
    out[t] = a[0]


@flyc.kernel
def in_a_struct(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    s = Held(part=a)
    if t > 3:
        s = Held(part=b)  # <-
    out[t] = s.part[0]


@flyc.kernel
def in_the_state_of_a_loop(out: fx.Tensor):
    t = fx.thread_idx.x
    for _, s in range(0, t, 1, init=[*pair(t)]):
        r = yield [s[1], s[0]]  # <-
    out[t] = r[0][0]


@flyc.kernel
def returned(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)

    def chosen():
        if t > 3:
            return b
        return a  # <-

    out[t] = chosen()[0]


@flyc.kernel
def another_view(out: fx.Tensor):
    t = fx.thread_idx.x
    f = table(t)
    v = f[None, 0]
    if t > 3:
        v = f[None, 1]  # <-
    out[t] = v[0]


@flyc.kernel
def a_view_at_the_counter(out: fx.Tensor):
    t = fx.thread_idx.x
    f = table(t)
    v = f[None, t % 2]
    for i in range(2):
        v = f[None, i]  # <-
    out[t] = v[0]


REFUSED = [
    (swap_in_a_branch, "if: then-branch: 'a'"),
    (swap_in_a_loop, "for-body: 'a'"),
    (swap_in_a_while, "while-body: 'a'"),
    (new_in_a_branch, "if: then-branch: 'a'"),
    (new_from_the_last_iteration, "for-body: 'a'"),
    (conditional_expression, "dynamic ifexp else-branch: 'ternary result'"),
    (walrus, "and: then-branch: 'c'"),
    (in_a_list, "for-body: 'xs[0]'"),
    (in_a_dict, "'d['a']'"),
    (in_a_tuple, "for-body: 'p[0]'"),
    (in_an_object, "for-body: 'h.a'"),
    (by_a_method_in_a_loop, "for-body: 'h.a'"),
    (by_a_helper_in_a_loop, "for-body: 'xs[0]'"),
    (by_a_nested_function, "for-body: 'a'"),
    (in_a_struct, "if: then-branch: 's'"),
    (in_the_state_of_a_loop, "for-body: 'state[0]'"),
    (returned, "if: else-branch: 'return value'"),
    (another_view, "if: then-branch: 'v'"),
    (a_view_at_the_counter, "for-body: 'v'"),
]


@pytest.mark.parametrize("kernel, subject", REFUSED, ids=[k.func.__name__ for k, _ in REFUSED])
def test_one_or_the_other_is_refused(kernel, subject):
    with pytest.raises(diag.FragmentRebound) as caught:
        launched(kernel, LANES)
    error = caught.value
    assert error.message.startswith(subject[: subject.find("'")]) and f"{subject} would be one register tensor or" in error.message
    lines = open(__file__).read().splitlines()
    assert lines[error.span.line - 1].endswith("# <-"), (error.span, str(error))
    assert "copy the contents" in error.advice and "register" in error.reason


def test_the_advice_names_what_can_be_stored_to():
    texts = {}
    for kernel in (swap_in_a_branch, conditional_expression, in_an_object, in_a_struct):
        with pytest.raises(diag.FragmentRebound) as caught:
            launched(kernel, LANES)
        texts[kernel.func.__name__] = caught.value.advice
    assert "`a.store(other.load())`" in texts["swap_in_a_branch"]
    assert "`h.a.store(other.load())`" in texts["in_an_object"]
    assert "`target.store(" in texts["conditional_expression"] and "`target.store(" in texts["in_a_struct"]


@flyc.kernel
def object_keeps_what_a_loop_made(out: fx.Tensor):
    t = fx.thread_idx.x
    h = Holder()
    h.a, h.b = pair(t)
    for i in range(t):
        h.a = fx.make_rmem_tensor(1, fx.Int32)
        h.a[0] = i
    out[t] = h.a[0]


@flyc.kernel
def object_keeps_what_a_branch_made(out: fx.Tensor):
    t = fx.thread_idx.x
    h = Holder()
    h.a, h.b = pair(t)
    if t > 3:
        h.a = fx.make_rmem_tensor(1, fx.Int32)
        h.a[0] = 9
    out[t] = h.a[0]


@pytest.mark.parametrize("kernel", [object_keeps_what_a_loop_made, object_keeps_what_a_branch_made], ids=lambda k: k.func.__name__)
def test_what_a_region_made_ends_with_it(kernel):
    with pytest.raises(diag.EscapedValue, match="through 'h'"):
        launched(kernel, LANES)


# --- what works ------------------------------------------------------------------------------------------------------


@flyc.kernel
def the_same_object(out: fx.Tensor):
    t = fx.thread_idx.x
    a, _ = pair(t)
    d = a
    if t > 3:
        d = a
        d[0] = 5
    out[t] = d[0]


@flyc.kernel
def the_same_view(out: fx.Tensor):
    t = fx.thread_idx.x
    f = table(t)
    v = f[None, 1]
    if t > 3:
        v = f[None, 1]
        v[0] = 5
    w = fx.make_view(fx.get_iter(f) + 4, fx.make_layout(2, 1))
    for _ in range(2):
        w = fx.make_view(fx.get_iter(f) + 4, fx.make_layout(2, 1))
        w[1] = w[1] + 1
    out[t] = v[0] * 10 + w[1]


@flyc.kernel
def the_same_view_at_a_run_time_place(out: fx.Tensor):
    t = fx.thread_idx.x
    f = table(t)
    v = f[None, t % 2]
    for _ in range(3):
        v = f[None, t % 2]
        v[0] = v[0] + 1
    out[t] = v[0]


@flyc.kernel
def the_same_returned(out: fx.Tensor):
    t = fx.thread_idx.x
    a, _ = pair(t)

    def changed():
        if t > 3:
            a[0] = 7
            return a
        return a

    out[t] = changed()[0]


@flyc.kernel
def temporaries(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    h = Holder()
    h.a, h.b, h.n = a, b, t
    xs, p, total = [a, b], (a, t), fx.Int32(0)
    for i in range(t):
        a = fx.make_rmem_tensor(1, fx.Int32)
        a[0] = i
        xs[0] = fx.make_rmem_tensor(1, fx.Int32)
        xs[0][0] = a[0] * 2
        p = (a, i)
        h.a = fx.make_rmem_tensor(1, fx.Int32)
        h.a[0] = p[0][0] + p[1]
        total += a[0] + xs[0][0] + h.a[0]
    if t > 3:
        b = fx.make_rmem_tensor(1, fx.Int32)
        b[0] = 1000
        h.b = fx.make_rmem_tensor(1, fx.Int32)
        h.b[0] = b[0]
        h.n = h.n + 1
        total += h.b[0]
    out[t] = total + h.n


@flyc.kernel
def views_of_each_loop(out: fx.Tensor):
    t = fx.thread_idx.x
    f = table(t)
    total = fx.Int32(0)
    for i in fx.range_constexpr(2):
        v = f[None, i]
        total += v[0]
    for _ in range(2):
        v = f[None, 1]
        total += v[1]
    out[t] = total


@flyc.kernel
def contents_copied(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    for _ in range(t):
        x, y = a.load(), b.load()
        a.store(y)
        b.store(x)
    out[t] = a[0]


@flyc.kernel
def contents_selected(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    c = t > 3
    x, y = a.load(), b.load()
    a.store(c.select(y, x))
    b.store(c.select(x, y))
    out[t] = a[0] * 1000 + b[0]


@flyc.kernel
def pointers_chosen(out: fx.Tensor):
    t = fx.thread_idx.x
    a, b = pair(t)
    p, q = fx.get_iter(a), fx.get_iter(b)
    for _ in range(t):
        p, q = q, p
    v = fx.make_view(p, fx.make_layout(1, 1))
    v[0] = v[0] + 1
    out[t] = a[0] * 1000 + b[0]


def _temporaries(t):
    total = sum(i + 2 * i + 2 * i for i in range(t))
    return total + (1000 + t + 1 if t > 3 else t)


WORK = [
    (the_same_object, lambda t: 5 if t > 3 else t),
    (the_same_view, lambda t: (5 if t > 3 else 100 * t + 10) * 10 + 100 * t + 11 + 2),
    (the_same_view_at_a_run_time_place, lambda t: 100 * t + 10 * (t % 2) + 3),
    (the_same_returned, lambda t: 7 if t > 3 else t),
    (temporaries, _temporaries),
    (views_of_each_loop, lambda t: 400 * t + 10 + 2 * 11),
    (contents_copied, lambda t: t + 100 * (t % 2)),
    (contents_selected, lambda t: (t + 100) * 1000 + t if t > 3 else t * 1000 + t + 100),
    (pointers_chosen, lambda t: (t + 1 - t % 2) * 1000 + t + 100 + t % 2),
]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel, want", WORK, ids=[k.func.__name__ for k, _ in WORK])
def test_values(kernel, want, arch):
    assert launched(kernel, LANES, arch) == [want(t) for t in range(LANES)]

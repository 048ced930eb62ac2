"""Mistakes in control flow: each is one Python exception at the user's expression (the line marked `# <-`), with a reason and a fix."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "frontend"))
from hosted import traced

import flydsl.diag as diag
import flydsl.expr.control as fx
from flydsl.expr.control import const_expr, range_constexpr
from flydsl.expr.numeric.classes import Float32, Int32, Int64


class Keeper:
    """A user's object that no protocol covers."""


def integer_condition(n, m):
    if n:  # <-
        pass


def float_condition(n, m):
    while Float32(n):  # <-
        pass


def accumulates_floats_in_an_integer(n, m):
    x = 0
    for i in range(n):
        x = x + 1.0  # <-
    return x


def integer_in_a_branch_of_a_float(n, m):
    x = Float32(0)
    if n > m:
        x = 1  # <-
    return x


def wider_in_a_loop(n, m):
    for i in range(n):
        m = Int64(m) + 1  # <-
    return m


def none_before_a_branch(n, m):
    x = None
    if n > m:
        x = n  # <-
    return x


def none_before_a_loop(n, m):
    x = None
    for i in range(n):
        x = i  # <-
    return x


def list_against_number(n, m):
    a = [n, m]
    if n > m:
        a = 3  # <-
    return a


def grows_a_list_in_a_loop(n, m):
    xs = []
    for i in range(n):
        xs.append(i)  # <-


def grows_a_list_in_a_branch(n, m):
    xs = [1, 2]
    if n > m:
        xs.append(m)  # <-
    return xs


def adds_a_key(n, m):
    d = {"a": 1}
    while n > m:
        n = n - 1
        d["b"] = 3  # <-
    return d["a"]


def first_key_in_a_loop(n, m):
    d = {}
    for i in range(n):
        d["a"] = i  # <-
    return m


def first_key_in_a_branch(n, m):
    d = {}
    if n > m:
        d["a"] = n  # <-
    return m + len(d)


def recursion(n, m):
    def factorial(k):
        if k <= 1:
            return Int32(1)
        return k * factorial(k - 1)  # <-

    return factorial(n)


def recursion_of_two(n, m):
    def even(k):
        r = k == 0
        if k > 0:
            r = odd(k - 1)  # <-
        return r

    def odd(k):
        return even(k - 1)

    return even(n)


def recursion_in_an_expression(n, m):
    class Sum:
        def of(self, k):
            return self.of(k - 1) + k if k > 0 else k  # <-

    return Sum().of(n)


def string_in_a_loop(n, m):
    s = "abc"
    for i in range(n):
        s = "def"  # <-
    return s


def string_in_a_branch(n, m):
    x = 0
    if n > m:
        x = "s"  # <-
    return x


def ternary_of_two_types(n, m):
    return 1 if n > m else 2.0  # <-


def returns_two_types(n, m):
    if n > m:
        return 1
    return 2.0  # <-


def returns_on_one_path(n, m):
    if n > m:  # <-
        return 1


def bound_in_one_branch(n, m):
    if n > m:
        y = 1
    return y + n  # <-


def bound_in_a_loop(n, m):
    for i in range(n):
        y = i
    return y  # <-


def leaves_through_an_object(n, m):
    keep = Keeper()

    def put(q):
        keep.v = q

    for i in range(n):
        put(i + 1)
    return keep.v + 1  # <-


def wide_bound(n, m):
    for i in range(Int64(n)):  # <-
        pass


def float_bound(n, m):
    for i in range(Float32(n)):  # <-
        pass


def huge_bound(n, m):
    for i in range(1 << 40):  # <-
        pass


def falling_loop(n, m):
    for i in range(4, 0, -1):  # <-
        pass


def zero_step(n, m):
    for i in range(0, n, 0):  # <-
        pass


def four_bounds(n, m):
    for i in range(1, 2, 3, 4):  # <-
        pass


def unknown_hint(n, m):
    for i in range(n, unrol=2):  # <-
        pass


def two_hints(n, m):
    for i in fx.range(n, unroll=2, unroll_full=True):  # <-
        pass


def hint_of_text(n, m):
    for i in range(n, unroll="2"):  # <-
        pass


def tuple_target(n, m):
    for a, b in range(n):  # <-
        pass


def no_yield(n, m):
    for i, st in range(n, init=[m]):
        st = st[0] + 1  # <-


def yield_too_much(n, m):
    for i, st in range(n, init=[m]):
        yield [m, m]  # <-


def yield_other_type(n, m):
    for i, st in range(n, init=[m]):
        yield [1.0]  # <-


def yield_in_the_middle(n, m):
    for i, st in range(n, init=[m]):
        yield [m]  # <-
        yield [m]


def break_with_explicit_state(n, m):
    for i, st in range(n, init=[m]):  # <-
        if i > 3:
            break
        yield [m]


def generator(n, m):  # <-
    yield n


def const_expr_of_run_time_value(n, m):
    if const_expr(n > 3):  # <-
        pass


def range_constexpr_of_run_time_value(n, m):
    for k in range_constexpr(n):  # <-
        pass


def while_true_without_break(n, m):
    while True:  # <-
        n = n + 1


def while_else(n, m):
    while n > m:  # <-
        n = n - 1
    else:
        m = 4


def asserts(n, m):
    assert n > m  # <-


def membership(n, m):
    return n in [1, 2]  # <-


def comprehension_filter(n, m):
    return [x for x in [1, 2] if n > x]  # <-


def python_sorted(n, m):
    return sorted([n, m])  # <-


CASES = [
    (integer_condition, diag.ConditionNotBoolean, TypeError, "if n", "!= 0"),
    (float_condition, diag.ConditionNotBoolean, TypeError, None, "!= 0"),
    (accumulates_floats_in_an_integer, diag.CarryMismatch, TypeError, "x", "expected dtype Int32, produced Float32"),
    (integer_in_a_branch_of_a_float, diag.CarryMismatch, TypeError, "x", "expected dtype Float32, produced Int32"),
    (wider_in_a_loop, diag.CarryMismatch, TypeError, "m", "expected dtype Int32, produced Int64"),
    (none_before_a_branch, diag.CarryNone, TypeError, "x", "None before the if"),
    (none_before_a_loop, diag.CarryNone, TypeError, "x", "None before the for loop"),
    (list_against_number, diag.CarryMismatch, TypeError, "a", "expected list of length 2, produced Int32"),
    (grows_a_list_in_a_loop, diag.CarryMismatch, TypeError, "xs.append", "length 0, got list of length 1"),
    (grows_a_list_in_a_branch, diag.CarryMismatch, TypeError, None, "length 2, got list of length 3"),
    (adds_a_key, diag.CarryMismatch, TypeError, 'd["b"]', "keys ['a'], got dict with keys ['a', 'b']"),
    (first_key_in_a_loop, diag.CarryMismatch, TypeError, 'd["a"]', "'d' is dict with keys []"),
    (first_key_in_a_branch, diag.CarryMismatch, TypeError, None, "expected dict with keys [], got dict with keys ['a']"),
    (recursion, diag.RunTimeRecursion, RecursionError, "factorial(k - 1)", "`factorial` calls itself under a run-time condition"),
    (recursion_of_two, diag.RunTimeRecursion, RecursionError, "odd(k - 1)", "both branches of a run-time `if` are traced"),
    (recursion_in_an_expression, diag.RunTimeRecursion, RecursionError, "self.of(k - 1)", "`of` calls itself"),
    (string_in_a_loop, diag.CarryOpaque, TypeError, "s", "Cannot extract IR values from str"),
    (string_in_a_branch, diag.CarryOpaque, TypeError, "x", "Cannot extract IR values from str"),
    (ternary_of_two_types, diag.CarryMismatch, TypeError, "1 if n > m else 2.0", "dynamic ifexp else-branch"),
    (returns_two_types, diag.CarryMismatch, TypeError, None, "expected dtype Int32, produced Float32"),
    (returns_on_one_path, diag.MixedReturn, TypeError, None, "return a value of the same type on every path"),
    (bound_in_one_branch, diag.RegionLocal, NameError, "y", "the first branch of the if at line"),
    (bound_in_a_loop, diag.RegionLocal, NameError, "y", "the for loop at line"),
    (leaves_through_an_object, diag.EscapedValue, ValueError, None, "the for at line"),
    (wide_bound, diag.LoopBoundType, TypeError, None, "for-loop stop must be i32, got i64"),
    (float_bound, diag.LoopBoundType, TypeError, None, "for-loop stop must be i32, got Float32"),
    (huge_bound, diag.LoopBoundType, TypeError, None, "does not fit 32 bits"),
    (falling_loop, diag.LoopStep, ValueError, None, "must be positive, got -1"),
    (zero_step, diag.LoopStep, ValueError, None, "must be positive, got 0"),
    (four_bounds, diag.RangeArguments, TypeError, None, "1 to 3 bounds"),
    (unknown_hint, diag.RangeArguments, TypeError, None, "'unrol'"),
    (hint_of_text, diag.RangeArguments, TypeError, None, "unroll='2'"),
    (two_hints, diag.BothUnrollHints, ValueError, None, "not both"),
    (tuple_target, diag.TupleTargetWithoutInit, TypeError, None, "init="),
    (no_yield, diag.YieldMissing, TypeError, "st = st[0] + 1", "does not end with a yield"),
    (yield_too_much, diag.YieldCount, TypeError, None, "the loop begins at"),
    (yield_other_type, diag.CarryMismatch, TypeError, None, "expected dtype Int32, produced Float32"),
    (yield_in_the_middle, diag.YieldMissing, TypeError, "yield [m]", "must be its last statement"),
    (break_with_explicit_state, diag.InitLoopJump, TypeError, None, "ordinary variables"),
    (generator, diag.GeneratorInKernel, TypeError, None, "generator"),
    (const_expr_of_run_time_value, diag.ConstExprDynamic, RuntimeError, "const_expr(n > 3)", "drop const_expr"),
    (range_constexpr_of_run_time_value, diag.ConstExprDynamic, RuntimeError, "range_constexpr(n)", "range(...)"),
    (while_true_without_break, diag.EndlessLoop, ValueError, None, "no break"),
    (while_else, diag.WhileElse, NotImplementedError, "while n > m", "after the loop"),
    (asserts, diag.DynamicAsPython, RuntimeError, "n > m", "in `assert`"),
    (membership, diag.DynamicAsPython, RuntimeError, "n in [1, 2]", "compare with each element"),
    (comprehension_filter, diag.DynamicAsPython, RuntimeError, "n > x", "the `if` of a comprehension"),
    (python_sorted, diag.DynamicAsPython, RuntimeError, "sorted([n, m])", "compare-and-select"),
]


def marked_line(fn):
    lines = Path(__file__).read_text().splitlines()
    first = fn.__code__.co_firstlineno
    return next(i for i in range(first, len(lines) + 1) if lines[i - 1].endswith("# <-"))


@pytest.mark.parametrize("fn, error, base, underlined, phrase", CASES, ids=[c[0].__name__ for c in CASES])
def test_mistake(fn, error, base, underlined, phrase):
    with pytest.raises(error) as caught:
        traced(fn, [Int32, Int32])
    e = caught.value
    text = str(e)
    assert isinstance(e, base)
    assert e.span.file == __file__ and e.span.line == marked_line(fn), text
    assert phrase in text
    assert e.code in text and "why:" in text and "fix:" in text
    if underlined is not None and sys.version_info >= (3, 11):  # Python 3.10 has no columns
        source = e.span.text
        assert source[e.span.column - 1 : e.span.end_column - 1] == underlined, text


def test_mismatch_shows_both_lines():
    def both(n, m):
        if n > m:
            x = 1
        else:
            x = 2.0
        return x

    with pytest.raises(diag.CarryMismatch) as caught:
        traced(both, [Int32, Int32])
    first = both.__code__.co_firstlineno
    assert caught.value.span.line == first + 4
    assert f"'x' is also bound at {Path(__file__).name}:{first + 2}" in str(caught.value)


def test_missing_source_names_the_function():
    scope = {}
    exec("def made_up(n, m):\n    return n\n", scope)
    with pytest.raises(diag.NoSource, match="could not get source code of `made_up`") as caught:
        traced(scope["made_up"], [Int32, Int32])
    assert isinstance(caught.value, OSError)


def test_a_trace_works_after_one_that_failed_inside_regions():
    with pytest.raises(diag.CarryMismatch):
        traced(accumulates_floats_in_an_integer, [Int32, Int32])

    def fine(n, m):
        if n > m:
            n = m
        return n if n > 0 and m > 0 else m

    traced(fine, [Int32, Int32])


def test_static_loop_that_never_ends():
    def endless(n, m):
        k = 0
        while k < 10:
            m = m + 0
        return m

    with pytest.raises(diag.EndlessLoop, match="65536 times"):
        traced(endless, [Int32, Int32])

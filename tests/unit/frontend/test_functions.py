"""From a function to its twin: source and positions, closures, methods, caching, helpers on demand."""

import functools
import inspect
import sys
import textwrap

import pytest
from hosted import hosted, traced

from flydsl.expr.numeric.classes import Int32
from flydsl.frontend import functions, rewritten
from flydsl.frontend.dispatch import call
from flydsl.frontend.source import function_source

needs_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no columns")


def plus_one(x):
    return x + 1 if x > 0 else x


class Base:
    def value(self, n):
        return n + 1


class Method(Base):
    __hidden = 7

    def value(self, n):
        if n > 0:
            n = super().value(n) + self.__hidden
        return n

    @staticmethod
    def still(n):
        while n > 3:
            n = n - 2
        return n

    @classmethod
    def of_class(cls, n):
        return cls.__hidden + (n if n > 0 else 0)


class Callable:
    def __call__(self, n):
        return n + 1 if n > 4 else n


# fmt: off
def body_over_lines(n, m):
    x = n
    if n > m:
        x = (
            x + m
        )
    return x
# fmt: on


@needs_columns
def test_positions_are_those_of_the_file():
    body = body_over_lines
    trace, _ = traced(body, [Int32, Int32])
    asm = trace.module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
    first = body.__code__.co_firstlineno
    add = next(line for line in asm.splitlines() if "arith.addi" in line)
    compare = next(line for line in asm.splitlines() if "arith.cmpi" in line)
    assert f'test_functions.py":{first + 4}:13' in add
    assert f'test_functions.py":{first + 2}:8' in compare
    assert "callsite" not in add


@needs_columns
def test_locations_inside_helpers_name_the_chain():
    def body(n, m):
        return plus_one(n)

    trace, _ = traced(body, [Int32, Int32])
    asm = trace.module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
    line = plus_one.__code__.co_firstlineno + 1
    assert f'callsite("{__file__}":{line}:12 at "{__file__}":{body.__code__.co_firstlineno + 1}:16' in asm


def test_the_chain_is_as_long_as_the_environment_says(monkeypatch):
    def inner(n, depth):
        return inner(n, depth - 1) if depth else plus_one(n)

    def body(n, m):
        return inner(n, 7)

    for depth in (1, 3, 5):
        if depth != 5:
            monkeypatch.setenv("FLYDSL_DEBUG_MAX_LOC_DEPTH", str(depth))
        else:
            monkeypatch.delenv("FLYDSL_DEBUG_MAX_LOC_DEPTH")
        trace, _ = traced(body, [Int32, Int32])
        asm = trace.module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
        add = next(line for line in asm.splitlines() if "arith.addi" in line)
        assert add.count(f'"{__file__}"') == depth, add


def test_the_twin_has_the_signature():
    def body(n, m=3, *, k: int = 4):
        """Says what it does."""
        return n if n > m else k

    twin = rewritten(body)
    assert inspect.signature(twin) == inspect.signature(body)
    assert (twin.__name__, twin.__qualname__, twin.__doc__) == (body.__name__, body.__qualname__, body.__doc__)
    assert twin.__code__.co_filename == __file__ and twin.__code__.co_firstlineno == body.__code__.co_firstlineno
    assert twin(5) == 5 and twin(1) == 4 and twin(1, k=9) == 9


def test_two_closures_of_one_code_object():
    def make(step, unused, scale):
        def body(n, m):
            if n > m:
                n = n + step
            return n * scale

        return body

    a, b = make(10, None, 2), make(100, None, 3)
    assert hosted(a, [Int32, Int32])(1, 0) == [22] and hosted(b, [Int32, Int32])(1, 0) == [303]
    assert rewritten(a).__code__ is rewritten(b).__code__


def test_a_closure_sees_later_rebinding():
    step = 1

    def body(n, m):
        return n + step if n > m else n

    twin = rewritten(body)
    step = 50
    assert twin(2, 1) == 52


def test_rewriting_is_done_once():
    def body(n, m):
        return n if n > m else m

    first, second = rewritten(body), rewritten(body)
    assert first.__code__ is second.__code__
    assert rewritten(first) is first


def test_methods():
    obj = Method()

    def body(n, m):
        return obj.value(n), Method.still(m), Method.of_class(n), Callable()(n)

    run = hosted(body, [Int32, Int32])
    for n in (-1, 0, 5):
        assert run(n, 9) == list(body(n, 9))
    twin = rewritten(Method.value)
    assert twin(obj, 3) == 11


def test_lambdas():
    f = lambda n, m: n if n > m else m
    assert hosted(f, [Int32, Int32])(3, 8) == [8]
    pair = (lambda n, m: n - m if n > m else 0, lambda n, m: n + m if n > m else 1)
    assert hosted(pair[1], [Int32, Int32])(3, 2) == [5]


def test_helpers_are_rewritten_where_range_over_static_bounds_stays_python():
    table = [1, 2, 3, 4]

    def lookup(n):
        s = 0
        for i in range(4):
            s = s + table[i] * n
        for i in range(n):
            s = s + i
        return s

    def body(n, m):
        return lookup(n)

    assert hosted(body, [Int32, Int32])(3, 0) == [lookup(3)]


def test_functions_of_libraries_are_left_alone():
    for f in (textwrap.dedent, functools.reduce, len, Int32, traced.__class__, inspect.signature):
        assert call(f) is f


def test_generators_are_left_alone():
    def tiles(k):
        for i in range(k):
            yield i * 2

    def body(n, m):
        for t in tiles(3):
            n = n + t
        return n

    assert call(tiles) is tiles
    assert hosted(body, [Int32, Int32])(1, 0) == [7]


def test_a_replaced_helper_is_found(monkeypatch):
    def body(n, m):
        return plus_one(n)

    assert hosted(body, [Int32, Int32])(1, 0) == [2]
    monkeypatch.setitem(globals(), "plus_one", lambda x: x + 100 if x > 0 else x)
    assert hosted(body, [Int32, Int32])(1, 0) == [101]


def test_wrapped_helpers_are_their_own():
    def inner(n):
        return n + 1 if n > 0 else n

    call(inner)

    @functools.wraps(inner)
    def outer(n):
        return inner(n) + 10 if n > 5 else 0

    def body(n, m):
        return outer(n)

    assert hosted(body, [Int32, Int32])(6, 0) == [17]


def test_source_of_awkward_definitions():
    def plain(n):
        text = """
not indented: the block cannot be cut by indentation
"""
        return n if n else text

    # fmt: off
    def with_signature(
        n,
        m=(1,
           2),
    ):
        return n
    # fmt: on

    for fn in (plain, with_signature, Method.still):
        node = function_source(fn).node
        assert node.name == fn.__name__ and node.body[-1].lineno > fn.__code__.co_firstlineno


def test_environment_switch_shows_the_difference(monkeypatch, capsys):
    monkeypatch.setenv("FLYDSL_DEBUG_AST_DIFF", "1")

    def body(n, m):
        return n if n > m else m

    rewritten(body)
    err = capsys.readouterr().err
    assert "-    return n if n > m else m" in err and "+    return __fly__.pick(" in err


def test_globals_and_nested_classes():
    def body(n, m):
        global _COUNT
        _COUNT = 0

        class Local:
            def twice(self, x):
                return x * 2 if x > 0 else x

        for i in range(2):
            _COUNT += 1
        return Local().twice(n), _COUNT

    assert hosted(body, [Int32, Int32])(4, 0) == [8, 2]
    assert globals()["_COUNT"] == 0  # run-time values do not outlive the trace


def test_unroll_hints_become_loop_annotations():
    for hint, text in [
        ({"unroll": 4}, "disable = false, count = 4 : i32"),
        ({"unroll": 1}, "disable = true"),
        ({"unroll_full": True}, "disable = false, full = true"),
    ]:

        def body(n, m):
            for i in range(n, **hint):
                m = m + i
            return m

        trace, _ = traced(body, [Int32, Int32])
        assert f"#llvm.loop_unroll<{text}>" in str(trace.module)


def test_static_code_needs_no_trace():
    def body(n):
        out = []
        while n > 0 and len(out) < 5:
            if n % 2 == 0 or n == 1:
                out.append(n)
            n -= 1
        return out if out else None

    assert rewritten(body)(9) == body(9)
    assert functions.rewritten_helper(body)(9) == body(9)


@pytest.mark.parametrize("word, expected", [("and", "scf.if"), ("or", "scf.if")])
def test_right_side_that_reads_memory_is_guarded(word, expected):
    from flydsl.ir import emit1
    from flydsl.ir.trace import current

    def load(pointer):
        return Int32(emit1("llvm.load", current().types.i32, (pointer,)))

    def both(n, p):
        return n > 0 and load(p) > 3

    def either(n, p):
        return n > 0 or load(p) > 3

    trace, _ = traced(both if word == "and" else either, [Int32], memory=True)
    text = str(trace.module)
    assert text.index(expected) < text.index("llvm.load")
    cheap, _ = traced(lambda n, m: n > 0 and m > 3, [Int32, Int32])
    assert "scf.if" not in str(cheap.module)


class Stage:
    def __init__(self):
        self.count = 0
        self.total = Int32(0)

    def step(self, i):
        self.count += 1
        self.total = self.total + i


def test_numbers_changed_by_methods_in_a_loop_are_warned_about():
    def body(n, m):
        stage = Stage()
        for i in range(n):
            stage.step(i)
        return stage.total

    line = body.__code__.co_firstlineno + 3
    with pytest.warns(UserWarning, match="'stage.count' is a number before the for loop and changes once") as caught:
        run = hosted(body, [Int32, Int32])
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]
    assert run(5, 0) == [10]


def test_an_index_bound_is_converted_with_a_warning():
    from flydsl.expr.numeric.classes import Index

    def body(n, m):
        for i in range(Index(n)):
            m = m + i
        return m

    with pytest.warns(UserWarning, match="Index is converted to 32 bits") as caught:
        run = hosted(body, [Int32, Int32])
    assert caught[0].lineno == body.__code__.co_firstlineno + 1
    assert run(4, 1) == [7]


def test_values_returned_by_a_kernel_are_ignored():
    def body(n, m):
        if n > m:
            return n
        if n < 0:
            return 2.5
        for i in range(m):
            if i == n:
                return None

    _, results = traced(body, [Int32, Int32], kernel=True)
    assert results == []

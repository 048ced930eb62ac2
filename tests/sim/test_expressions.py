"""Random expression trees over all classes: exact operations give NumPy's bits, others stay within a bound
computed in float64.

Each example runs in the simulator; trees whose LLVM IR has no GPU intrinsic run on this machine too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from elementwise import Case, GpuIntrinsics, Program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirror import BITWISE, KINDS, binary, common, convert, edge_values, same

import flydsl.expr as fx
from flydsl.expr.numeric import CLASSES

LANES = 64
NAMES = list(KINDS)
EXACT = ("+", "-", "*", "/", "<", "<=", "==", "!=", "&", "|", "^")
SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@dataclass(frozen=True)
class Tree:
    """A node: `apply` computes it on a list of scalars, `want` on NumPy arrays, giving values and class."""

    text: str
    apply: Callable
    want: Callable
    name: str


def leaf(index: int, name: str) -> Tree:
    return Tree(f"v{index}", lambda vs: vs[index], lambda xs: (xs[index], name), name)


def literal(value: int | float) -> Tree:
    name = "Boolean" if isinstance(value, bool) else "Float32" if isinstance(value, float) else "Int32"
    array = np.full(LANES, value).astype(KINDS[name][2])
    return Tree(repr(value), lambda vs: value, lambda xs: (array, name), name)


def joined(symbol: str, a: Tree, b: Tree) -> Tree:
    text = f"({a.text} {symbol} {b.text})"
    code = compile(f"p {symbol} q", text, "eval")
    names = "Boolean" if symbol in ("<", "<=", "==", "!=") else _result(symbol, a.name, b.name)

    def apply(vs):
        return eval(code, {"p": a.apply(vs), "q": b.apply(vs)})

    def want(xs):
        return binary(symbol, *a.want(xs), *b.want(xs))

    return Tree(text, apply, want, names)


def _result(symbol: str, a: str, b: str) -> str:
    zeros = np.zeros(1)
    return binary(symbol, zeros.astype(KINDS[a][2]), a, np.ones(1).astype(KINDS[b][2]), b)[1]


def cast(a: Tree, name: str) -> Tree:
    cls = CLASSES[name]
    return Tree(f"{name}({a.text})", lambda vs: cls(a.apply(vs)), lambda xs: (convert(a.want(xs)[0], name), name), name)


def chosen(c: Tree, a: Tree, b: Tree) -> Tree:
    name = common(a.name, b.name)

    def want(xs):
        return np.where(
            convert(c.want(xs)[0], "Boolean"), convert(a.want(xs)[0], name), convert(b.want(xs)[0], name)
        ), name

    def apply(vs):
        condition = c.apply(vs)
        return (fx.as_numeric(condition) if not hasattr(condition, "select") else condition).select(
            a.apply(vs), b.apply(vs)
        )

    return Tree(f"{c.text}.select({a.text}, {b.text})", apply, want, name)


@st.composite
def trees(draw, names: tuple[str, ...], depth: int = 3) -> Tree:
    """Trees of exact operations; at least one leaf of a joined pair is run-time often enough."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        index = draw(st.integers(0, len(names) - 1))
        return leaf(index, names[index])
    kind = draw(st.sampled_from(["binary", "binary", "binary", "literal", "cast", "select"]))
    a = draw(trees(names, depth - 1))
    if kind == "cast":
        is_float = KINDS[a.name][0] == "f"
        widths = [n for n in NAMES if not is_float or (KINDS[n][0] == "f" and (a.name, n) != ("Float64", "BFloat16"))]
        return cast(a, draw(st.sampled_from(widths)))
    if kind == "literal":
        value = draw(st.one_of(st.integers(-100, 100), st.sampled_from([0.5, -3.0, 1e3]), st.booleans()))
        b = literal(value)
    else:
        b = draw(trees(names, depth - 1))
    if kind == "select":
        return chosen(draw(trees(names, depth - 1)), a, b)
    has_float = "f" in KINDS[a.name][0] + KINDS[b.name][0]
    return joined(draw(st.sampled_from([s for s in EXACT if not (has_float and s in BITWISE)])), a, b)


def values(rng: np.random.Generator, name: str) -> np.ndarray:
    kind, _, dtype = KINDS[name]
    if kind == "b":
        return rng.integers(0, 2, LANES).astype(bool)
    if kind == "f":
        x = np.concatenate([edge_values(name).astype(np.float64), rng.normal(0, 100, LANES)])[:LANES]
        return x.astype(np.float32 if name == "BFloat16" else dtype).astype(dtype)
    info = np.iinfo(dtype)
    return np.concatenate([edge_values(name), rng.integers(info.min, info.max, LANES, dtype=dtype)])[:LANES]


@pytest.mark.parametrize("seed", range(3))
def test_exact_trees(seed):
    counts = {"host": 0, "trees": 0}

    @SETTINGS
    @given(st.data())
    def check(data):
        rng = np.random.default_rng(seed)
        names = tuple(data.draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=3)))
        xs = [values(rng, n) for n in names]
        tree = data.draw(trees(names))
        want, name = tree.want(xs)
        program = Program(
            [Case(lambda *vs: fx.as_numeric(tree.apply(vs)), tuple(CLASSES[n] for n in names), tuple(xs))]
        )
        runs = [program.simulate()]
        assert program.results[0].__name__ == name, tree.text
        counts["trees"] += 1
        if "BFloat16" not in tree.text and not {"BFloat16", "Float16"} & set(names):
            runs.append(program.run_on_host())
            counts["host"] += 1
        for (got,) in runs:
            bad = ~same(got, want)
            assert not bad.any(), (tree.text, names, [x[bad][:3] for x in xs], got[bad][:3], want[bad][:3])

    check()
    assert counts["host"] >= 5, counts


UNARY = {
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -120, 120),
    "log": (np.log, 1e-30, 1e30),
    "log2": (np.log2, 1e-30, 1e30),
    "sqrt": (np.sqrt, 0, 1e30),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30),
    "sin": (np.sin, -100, 100),
    "cos": (np.cos, -100, 100),
    "tanh": (np.tanh, -15, 15),
    "atan": (np.arctan, -100, 100),
}


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """Return the largest distance from float64 values in units of the last place of float32."""
    spacing = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(got.astype(np.float64) - want) / spacing))


@pytest.mark.parametrize("name", UNARY)
def test_each_function_alone_is_within_two_ulp(name):
    f, low, high = UNARY[name]
    rng = np.random.default_rng(7)
    x = (np.exp(rng.uniform(np.log(low), np.log(high), 4000)) if low > 0 else rng.uniform(low, high, 4000)).astype(
        np.float32
    )
    function = getattr(fx, name)
    program = Program([Case(lambda v: function(v), (CLASSES["Float32"],), (x,))])
    want = f(x.astype(np.float64))
    (got,) = program.simulate()
    limit = 0.5 if name == "sqrt" else 2.0
    assert ulps(got, want) <= limit
    try:
        (got,) = program.run_on_host()
    except GpuIntrinsics:
        return
    assert ulps(got, want) <= limit


def test_fma_rounds_once():
    rng = np.random.default_rng(1)
    a, b, c = (rng.normal(0, 1, 2000).astype(np.float32) for _ in range(3))
    f32 = CLASSES["Float32"]
    program = Program([Case(lambda p, q, r: fx.fma(p, q, r), (f32, f32, f32), (a, b, -(a * b)))])
    c = -(a * b)
    want = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)
    (got,) = program.simulate()
    assert same(got, want).all()
    (got,) = program.run_on_host()
    assert same(got, want).all()


@dataclass(frozen=True)
class Approximate:
    """A Float32 node with its value in float64 and a bound on the error of evaluating it in float32."""

    text: str
    apply: Callable
    value: np.ndarray
    error: np.ndarray


U = 2.0**-24


def rounded(text: str, apply: Callable, value: np.ndarray, error: np.ndarray, ulp: float = 0.5) -> Approximate:
    """Add the rounding of the operation itself: `ulp` units of the last place, and the smallest subnormal."""
    return Approximate(text, apply, value, error + 2 * ulp * U * (np.abs(value) + error) + 2.0**-148)


@st.composite
def approximate(draw, xs: tuple[np.ndarray, ...], depth: int = 3) -> Approximate:
    """Trees of float32 operations and functions on operands of moderate size."""
    if depth == 0:
        i = draw(st.integers(0, len(xs) - 1))
        return Approximate(f"v{i}", lambda vs: vs[i], xs[i].astype(np.float64), np.zeros(LANES))
    a = draw(approximate(xs, depth - 1))
    kind = draw(st.sampled_from(["+", "-", "*", "sin", "cos", "tanh", "sqrt", "exp2", "log"]))
    if kind in "+-*":
        b = draw(approximate(xs, depth - 1))
        code = compile(f"p {kind} q", "tree", "eval")
        value = eval(code, {"p": a.value, "q": b.value})
        error = a.error + b.error
        if kind == "*":
            error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
        text = f"({a.text} {kind} {b.text})"
        return rounded(text, lambda vs: eval(code, {"p": a.apply(vs), "q": b.apply(vs)}), value, error)
    return _function(kind, a)


def _function(kind: str, a: Approximate) -> Approximate:
    text = f"{kind}({a.text})"
    if kind in ("sin", "cos", "tanh"):  # Lipschitz 1
        f = getattr(np, kind)
        return rounded(text, lambda vs: getattr(fx, kind)(a.apply(vs)), f(a.value), a.error, 2.0)
    if kind == "exp2":  # of a tame argument: exp2(tanh(x))
        t = _function("tanh", a)
        value = np.exp2(t.value)
        return rounded(f"exp2({t.text})", lambda vs: fx.exp2(t.apply(vs)), value, value * np.expm1(t.error), 2.0)
    # sqrt and log of 1 + x*x, which is at least 1
    value, error = 1 + a.value**2, 2 * np.abs(a.value) * a.error + a.error**2
    inner = rounded("", None, value, error + 2 * U * (value + error))
    f = getattr(np, kind)
    out, slope = (
        f(inner.value),
        (0.5 / np.sqrt(inner.value) if kind == "sqrt" else 1 / np.maximum(inner.value - inner.error, 1)),
    )
    return rounded(
        f"{kind}(1 + {a.text}**2)",
        lambda vs: getattr(fx, kind)(a.apply(vs) * a.apply(vs) + 1.0),
        out,
        inner.error * slope * 1.01,
        2.0,
    )


def test_trees_of_functions_stay_within_their_bound():
    @SETTINGS
    @given(st.data())
    def check(data):
        rng = np.random.default_rng(5)
        xs = tuple(rng.normal(0, 3, LANES).astype(np.float32) for _ in range(2))
        node = data.draw(approximate(xs))
        f32 = CLASSES["Float32"]
        program = Program([Case(lambda *vs: node.apply(vs), (f32, f32), xs)])
        (got,) = program.simulate()
        error = np.abs(got.astype(np.float64) - node.value)
        worst = int(np.argmax(error / node.error))
        assert (error <= node.error).all(), (node.text, got[worst], node.value[worst], error[worst], node.error[worst])

    check()

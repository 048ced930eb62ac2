"""Every operator on every pair of classes, at edge values: the simulator and the LLVM IR run on this machine
give NumPy's bits.
"""

import itertools
import operator

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from elementwise import Case, Program
from mirror import ARITHMETIC, BITWISE, COMPARISONS, KINDS, binary, convert, defined, edge_values, same

import flydsl.expr as fx
from flydsl.expr.numeric import CLASSES

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def pairs(symbol: str, names) -> list[tuple[str, str]]:
    """Return the pairs of classes which have the operator; a Boolean shifted by a Boolean has no defined result."""
    found = []
    for a, b in itertools.product(names, names):
        kinds = KINDS[a][0] + KINDS[b][0]
        if symbol in BITWISE and "f" in kinds:
            continue
        if symbol in ("<<", ">>") and kinds == "bb":
            continue
        found.append((a, b))
    return found


def cases_of(symbol: str, names) -> tuple[list[Case], list]:
    """Return the cases, and for each the expected values and class."""
    cases, expected = [], []
    for a, b in pairs(symbol, names):
        x, y = (np.array(v) for v in zip(*itertools.product(edge_values(a), edge_values(b)), strict=True))
        x, y = x.astype(KINDS[a][2]), y.astype(KINDS[b][2])
        kept = defined(symbol, x, a, y, b)
        x, y = x[kept], y[kept]
        cases.append(Case(OPERATORS[symbol], (CLASSES[a], CLASSES[b]), (x, y)))
        expected.append((a, b, x, y, *binary(symbol, x, a, y, b)))
    return cases, expected


def check(symbol: str, results: list, classes: list, expected: list) -> None:
    for got, cls, (a, b, x, y, want, name) in zip(results, classes, expected, strict=True):
        assert cls.__name__ == name, (a, symbol, b)
        wrong = ~same(got[: len(want)], want)
        shown = [(x[i], y[i], got[i], want[i]) for i in np.flatnonzero(wrong)[:5]]
        assert not wrong.any(), f"{a} {symbol} {b}: (x, y, ours, numpy) {shown}"


@pytest.mark.parametrize("symbol", OPERATORS)
def test_in_the_simulator(symbol):
    cases, expected = cases_of(symbol, KINDS)
    program = Program(cases)
    check(symbol, program.simulate(), program.results, expected)


def host_classes(symbol: str) -> list[str]:
    """Return the classes that this machine computes without library calls, and without flushing subnormals.

    The x86 instruction that rounds to bf16 flushes subnormals, which quotients of edge values are.
    """
    features = llvm.get_host_cpu_features()
    needs = {"Float16": "f16c", "BFloat16": "avx512bf16"}
    names = [name for name in KINDS if name not in needs or features.get(needs[name])]
    return [name for name in names if name != "BFloat16" or symbol not in ("/", "//")]


@pytest.mark.parametrize("symbol", OPERATORS)
def test_as_llvm_ir_on_this_machine(symbol):
    cases, expected = cases_of(symbol, host_classes(symbol))
    program = Program(cases)
    check(symbol, program.run_on_host(), program.results, expected)


CAST_TARGETS = list(KINDS)


def cast_cases() -> tuple[list[Case], list]:
    cases, expected = [], []
    for a, b in itertools.product(KINDS, CAST_TARGETS):
        x = edge_values(a)
        if KINDS[a][0] == "f" and KINDS[b][0] in "iu":
            wide, info = x.astype(np.float64), np.iinfo(KINDS[b][2])
            with np.errstate(invalid="ignore"):
                x = x[np.isfinite(wide) & (np.trunc(wide) >= info.min) & (np.trunc(wide) <= info.max)]
        if a == "Float64" and b == "BFloat16":
            x = x[np.isfinite(x)]
        target = CLASSES[b]
        cases.append(Case(lambda v, target=target: v.to(target), (CLASSES[a],), (x,)))
        expected.append((a, b, x, x, convert(x, b), b))
    return cases, expected


def test_casts_in_the_simulator():
    cases, expected = cast_cases()
    program = Program(cases)
    check("to", program.simulate(), program.results, expected)


@pytest.mark.parametrize("symbol", [*ARITHMETIC, *COMPARISONS])
def test_vectors_compute_as_scalars_do(symbol):
    names = ("Boolean", "Int8", "Uint8", "Int32", "Uint64", "Float16", "Float32")
    cases, expected = cases_of(symbol, names)

    def on_vectors(function):
        def apply(x, y):
            v = fx.Vector.filled(2, x, x.dtype)
            return function(v, fx.Vector.filled(2, y, y.dtype) if x.dtype is y.dtype else y)[1]

        return apply

    program = Program([Case(on_vectors(c.function), c.classes, c.operands) for c in cases])
    check(symbol, program.simulate(), program.results, expected)


SMALL = ("Float8E4M3FN", "Float8E5M2", "Float8E4M3FNUZ")


@pytest.mark.parametrize("symbol", ["+", "-", "*", "<", "=="])
def test_small_floats_compute_through_f32(symbol):
    """All pairs of a sample of codes; the result is rounded to the format once."""
    cases, expected = [], []
    for name in SMALL:
        cls = CLASSES[name]
        codes = np.arange(0, 256, 5, dtype=np.uint8).view(cls.numpy_dtype)
        x, y = (np.array(v).astype(cls.numpy_dtype) for v in zip(*itertools.product(codes, codes), strict=True))
        with np.errstate(all="ignore"):
            want = OPERATORS[symbol](x.astype(np.float32), y.astype(np.float32))
            fits = np.isnan(want.astype(np.float32)) | (
                np.abs(want.astype(np.float32)) <= float(ml_dtypes.finfo(x.dtype).max)
            )
            x, y, want = x[fits], y[fits], want[fits]
            want = want if want.dtype == np.bool_ else want.astype(cls.numpy_dtype)
        cases.append(Case(OPERATORS[symbol], (cls, cls), (x, y)))
        expected.append((name, name, x, y, want, "Boolean" if symbol in COMPARISONS else name))
    program = Program(cases)
    results = program.simulate()
    for got, (name, _, x, y, want, result) in zip(results, expected, strict=True):
        assert program.results[SMALL.index(name)].__name__ == result
        got = got[: len(want)]
        wrong = ~((got == want) | ((got != got) & (want != want)))
        shown = [(x[i], y[i], got[i], want[i]) for i in np.flatnonzero(wrong)[:5]]
        assert not wrong.any(), f"{name} {symbol}: {shown}"

"""Recorded expressions on scalars and vectors print the recorded result."""

import pytest
from golden_types import evaluate, read_rows, same

_NOT_HERE = ("fx.Constexpr",)  # kernel parameters are tested with the compiler

# Ours differs on purpose: (expression) -> outcome.
DEVIATIONS = {
    "int(n)": "INVALID RuntimeError: \"dynamic 'Int32' has no Python integer representation\"",  # names the class
    "range(n)": "INVALID RuntimeError: \"dynamic 'Int32' has no Python integer representation\"",
    # 32 bits as 64: the reference builds an op that no verifier accepts.
    "fx.Float32(1.0).bitcast(fx.Int64)": (
        "INVALID ValueError: 'the bits of Float32 (32) to Int64 (64 bits) conversion is not supported'"
    ),
    # exp of an integer: the reference builds an op that no verifier accepts.
    "fx.exp(n)": "INVALID TypeError: 'exp needs a float operand, got Int32'",
}

ROWS = [(e, DEVIATIONS.get(e, outcome)) for e, outcome in read_rows() if not e.startswith(_NOT_HERE)]


@pytest.fixture(scope="module")
def ours() -> dict[str, str]:
    expressions = [e for e, _ in ROWS]
    return dict(zip(expressions, evaluate(expressions), strict=True))


@pytest.mark.parametrize(("expression", "outcome"), ROWS, ids=[e for e, _ in ROWS])
def test_recorded_result(expression, outcome, ours):
    assert same(outcome, ours[expression]), ours[expression]


def test_rows_are_there():
    assert len(ROWS) >= 170

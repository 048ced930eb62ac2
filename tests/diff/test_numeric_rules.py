"""Every recorded row "operator on two scalar types" gives our result: class, folded value, ops, error class.

Where we differ on purpose, the row falls under one of the reasons below; each also says how ours is checked.
All other rows are compared to the letter, and all IR that ours emits passes MLIR's verifier.
"""

from collections import Counter

import pytest
from numeric_rules import Row, differing, read_rows


def _same_result(row: Row, ours: tuple) -> bool:
    return (row.result, row.value, row.error) == (ours[0], ours[1], ours[3])


def _ops(ours: tuple) -> str:
    return "; ".join(ours[2][1])


def index_to_float(row: Row, ours: tuple) -> bool:
    """The reference emits `uitofp(index)`, which no verifier accepts: ours goes through i64."""
    return "uitofp(index)" in row.ir_ops and _same_result(row, ours) and "uitofp(i64)" in _ops(ours)


def index_quotient(row: Row, ours: tuple) -> bool:
    """The reference wraps an index quotient as Float64 without converting it: ours divides in f64."""
    return (
        row.op == "/"
        and "divui" in row.ir_ops
        and _same_result(row, ours)
        and _ops(ours).endswith("divf(f64,f64)->f64")
    )


def float_to_index(row: Row, ours: tuple) -> bool:
    """The reference emits `index_cast` of a float, which no verifier accepts: ours converts to i64 first, or folds."""
    cast_of_float = any(f"index_cast({t})" in row.ir_ops for t in ("f8E4M3FN", "f8E5M2", "f16", "bf16", "f32", "f64"))
    return cast_of_float and ours[0] == "Index" and ("fptosi" in _ops(ours) or ours[1].startswith("static="))


def fnuz(row: Row, ours: tuple) -> bool:
    """The reference cannot convert to gfx942's own fp8 nor negate it: ours can."""
    return "Float8E4M3FNUZ" in (row.lhs, row.rhs) and row.error in ("ValueError", "TypeError") and not ours[3]


def huge_power(row: Row, ours: tuple) -> bool:
    """The reference computes 7 ** (2**32 - 2) before it wraps, which never ends."""
    if row.error != "timeout":
        return False
    base = int(row.lhs.split(":")[2]) % 2**32
    return ours[1] == f"static={pow(base, 2**32 - 2, 2**32)}"


def lossless_float(row: Row, ours: tuple) -> bool:
    """`float()` of a static Float32(2.5) is 2.0 in the reference: ours is 2.5."""
    return row.op == "float(x)" and ours[1] == "python=2.5"


def wrapped_uint128(row: Row, ours: tuple) -> bool:
    """Uint128(-2.7) holds -2 in the reference, outside its range: ours wraps, as all other unsigned classes do."""
    return row.rhs == "Uint128" and ours[1] == f"static={2**128 - 2}"


def integral_index(row: Row, ours: tuple) -> bool:
    """A static Index can hold a float or a bool in the reference: ours holds an int."""
    recorded = row.value.removeprefix("static=")
    return ours[0] == "Index" and recorded and int(eval(recorded)) == int(ours[1].removeprefix("static="))


REASONS = {
    index_to_float: 168,
    index_quotient: 38,
    float_to_index: 16,
    fnuz: 46,
    huge_power: 4,
    lossless_float: 1,
    wrapped_uint128: 2,
    integral_index: 5,
}


@pytest.fixture(scope="module")
def different() -> list:
    return differing(read_rows())


def _reason(row: Row, ours: tuple):
    return next((r for r in REASONS if r(row, ours)), None)


def test_all_rows_are_there():
    assert len(read_rows()) == 12466


def test_every_difference_has_a_reason(different):
    unexplained = [
        f"{row.operation}: recorded {row.outcome}, ours {ours}" for row, ours in different if not _reason(row, ours)
    ]
    assert not unexplained, "\n".join(unexplained[:20])


def test_differences_are_as_many_as_stated(different):
    counts = Counter(_reason(row, ours) for row, ours in different)
    assert dict(counts) == REASONS

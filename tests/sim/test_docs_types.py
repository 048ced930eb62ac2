"""Every row of the tables in docs/types.md: run time in the simulator, compile time by folding, and NumPy."""

import builtins
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elementwise import Case, Program

import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr.numeric import CLASSES, Numeric

DOCS = Path(__file__).parents[2] / "docs" / "types.md"


@dataclass(frozen=True)
class Row:
    """A table row; `a` and `b` are texts such as `Int32(-7)`, b may be empty."""

    expression: str
    a: str
    b: str
    run_time: str
    compile_time: str
    numpy: str

    def __str__(self) -> str:
        return f"{self.expression} with {self.a} {self.b}"

    @property
    def operands(self) -> list[str]:
        return [text for text in (self.a, self.b) if text]


def tables() -> dict[str, list[list[str]]]:
    """Return the tables by their header line."""
    found: dict[str, list[list[str]]] = {}
    header = None
    for line in DOCS.read_text().splitlines():
        cells = [c.strip().strip("`") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            header = None
        elif header is None:
            header = " ".join(cells)
        elif not set("".join(cells)) <= set("-"):
            found.setdefault(header, []).append(cells)
    return found


TABLES = tables()
VALUES = [Row(*cells) for cells in TABLES["expression a b run time compile time NumPy"]]
CLASS_ROWS = TABLES["expression a b class"]


def names(**operands: Any) -> dict[str, Any]:
    return {**CLASSES, "fx": fx, "np": np, "nan": float("nan"), "inf": float("inf"), **operands}


def operand(text: str) -> Numeric:
    return eval(text, names())


def typed(text: str) -> np.generic:
    """Return an operand as a NumPy scalar of its class."""
    x = operand(text)
    return np.array(x.value).astype(x.dtype.numpy_dtype)[()]


def run(row_expression: str, operands: list[str]) -> tuple[type[Numeric], Any]:
    """Return class and value of an expression with run-time operands, in the simulator."""
    classes = tuple(operand(text).dtype for text in operands)
    values = tuple(np.array([typed(text)]) for text in operands)
    program = Program([Case(lambda *vs: eval(row_expression, names(**dict(zip("ab", vs)))), classes, values)])
    (result,) = program.simulate()
    return program.results[0], result[0]


def agrees(value: Any, text: str) -> bool:
    """Whether a value is the one that a cell shows; the sign of zero counts."""
    want = float(text) if "." in text or text in ("nan", "inf") else int(text)
    if isinstance(want, int):
        return int(value) == want
    got = float(value)
    return got != got if want != want else got == want and np.signbit(got) == np.signbit(want)


@pytest.mark.parametrize("row", VALUES, ids=str)
def test_run_time(row):
    if row.run_time == "undefined":
        with pytest.raises(FlyError) as caught:
            run(row.expression, row.operands)
        assert "FLY_SIM_UNDEFINED" in str(caught.value)
        return
    _, value = run(row.expression, row.operands)
    assert agrees(value, row.run_time), value


@pytest.mark.parametrize("row", [r for r in VALUES if r.numpy], ids=str)
def test_numpy_gives_the_same(row):
    operands = dict(zip("ab", (typed(text) for text in row.operands)))
    with np.errstate(all="ignore"):
        want = eval(row.numpy, names(**operands))
    assert agrees(want, row.run_time), want
    cls, value = run(row.expression, row.operands)
    assert np.array(want).dtype == np.dtype(cls.numpy_dtype), "NumPy's result has another type"
    assert np.array(value).tobytes() == np.array(want).tobytes() or (value != value and want != want)


FOLDED_AT_RUN_TIME = ("fx.round", "fx.roundeven", "fx.maxnumf", "bitcast", "Index")


@pytest.mark.parametrize("row", VALUES, ids=str)
def test_compile_time(row):
    operands = dict(zip("ab", (operand(text) for text in row.operands)))
    if any(name in row.expression for name in FOLDED_AT_RUN_TIME):
        program = Program(
            [Case(lambda v: eval(row.expression, names(**operands)), (fx.Int32,), (np.zeros(1, np.int32),))]
        )
        (result,) = program.simulate()
        assert agrees(result[0], row.compile_time)
    elif row.compile_time in dir(builtins):
        with pytest.raises(getattr(builtins, row.compile_time)):
            eval(row.expression, names(**operands))
    else:
        x = eval(row.expression, names(**operands))
        value = x.value if isinstance(x, Numeric) else x
        assert agrees(value, row.compile_time), value


@pytest.mark.parametrize("cells", CLASS_ROWS, ids=" ".join)
def test_class_of_the_result(cells):
    expression, a, b, name = cells
    operands = [text for text in (a, b) if text]
    cls, _ = run(expression, operands)
    assert cls.__name__ == name
    assert eval(expression, names(**dict(zip("ab", map(operand, operands))))).dtype is cls


def test_tables_are_there():
    assert len(VALUES) >= 65
    assert len(CLASS_ROWS) >= 14

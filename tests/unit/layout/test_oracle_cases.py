"""The oracle records and the table of deviations; our own golden records, which need no shared data."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import flydsl.layout as fl
from flydsl.layout import cases
from flydsl.layout.deviations import TABLE, counterexample, parse_result
from flydsl.layout.int_tuple import to_str
from tests.unit.layout.shared_data import golden_rows, shared

GOLDEN = Path(__file__).with_name("golden.jsonl")


def verdicts(path: Path) -> dict[str, list]:
    out: dict[str, list] = {"agree": [], "deviation": [], "disagree": []}
    for record in cases.records(str(path)):
        verdict, ours = cases.check(record)
        out[verdict].append((record, ours))
    return out


def test_shared_cases_agree():
    found = verdicts(shared("data", "layout_cases.jsonl"))
    assert not found["disagree"], found["disagree"][:5]
    total = sum(map(len, found.values()))
    assert len(found["deviation"]) <= total / 100, "documented deviations stay below one per cent"


def test_own_golden_agrees():
    found = verdicts(GOLDEN)
    assert not found["disagree"] and not found["deviation"]


def test_runner_says_the_sum(capsys, tmp_path):
    assert cases.main([str(GOLDEN)]) == 0
    count = len(list(cases.records(str(GOLDEN))))
    assert capsys.readouterr().out == f"agree {count} of {count}, documented deviations 0\n"
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps({"op": "size", "args": ["(4,8)"], "result": "33", "error": False}))
    assert cases.main([str(wrong)]) == 1
    assert "got      32" in capsys.readouterr().out


@pytest.mark.parametrize("row", TABLE, ids=[r.name for r in TABLE])
def test_each_deviation_has_a_counterexample(row):
    op, args, reference = row.example
    operands = [fl.parse(a) for a in args]
    assert op in row.ops and len(row.reason) > 20
    assert counterexample(row, op, operands, parse_result(reference)), "the reference breaks the law"
    record = {"op": op, "args": list(args), "result": reference, "error": False}
    verdict, ours = cases.check(record)
    assert verdict == "deviation" and f"[{row.name}]" in ours


class _Fx:
    """The functions under the names of the front end; a run-time value is a dynamic leaf."""

    Int64 = staticmethod(lambda n: fl.Sym(64))
    slice = staticmethod(fl.slice_)

    def __getattr__(self, name):
        return getattr(fl, name)

    make_shape = staticmethod(lambda *s: s[0] if len(s) == 1 and isinstance(s[0], _It) else fl.make_shape(*s))


class _It(tuple):
    """A tuple made by the front end: `make_shape` takes it as it is."""


def _layout(shape, stride):
    return fl.make_layout(shape, stride)


NAMES = {
    "fx": _Fx(),
    "L": _layout,
    "SW": fl.Swizzle,
    "E": fl.E,
    "n": fl.Sym(),
    "m": fl.Sym(),
}
# Rows about values which only the front end has; all rows run there in `test_golden_front_end`.
FRONT_END = (
    "fx.get(",
    "get_scalar",
    "get_leaves",
    "ir_type",
    "to_py_value",
    ".unpack",
    "fx.static",
    "thread_idx",
    "get_static_leaf_int",
    "(1,4)),None)",
    "make_int_tuple((1,2))[",
    "make_int_tuple((1,n)).is",
    "has no attribute",
    "fx.idx2crd(5, 8)",
    "get_hier_coord",
    "make_coord(None,1))",
    "E(0)*n",
    ".get_flat_coord(13)",
    "*1.5",
    ".get_1d_coord(13)",
    "fx.rank(fx.make_tile",
    "L(fx.make_shape",
    "make_int_tuple(3)",
)


def _shown(x) -> str:
    if isinstance(x, (bool, fl.Sym)) and not isinstance(x, fl.Sym):
        return "Boolean[i1]"
    if isinstance(x, fl.Layout):
        return f"layout<{x}>"
    if isinstance(x, fl.ComposedLayout):
        return f"composed_layout<{x}>"
    if isinstance(x, fl.Tile):
        return f"tile<{x}>"
    if isinstance(x, fl.Swizzle):
        return f"swizzle<{x}>"
    return f"int_tuple<{to_str(x)}>"


DOCUMENTED = {"fx.complement(L((3,2),(1,2)),12)": "complement-not-injective"}


PLAIN_ROWS = [row for row in golden_rows() if not any(word in "".join(row) for word in FRONT_END)]


@pytest.mark.parametrize("text, wanted", PLAIN_ROWS, ids=lambda t: t[:60])
def test_golden_layout(text, wanted):
    text = text.replace("n*4", "n").replace("n*8", "n")  # arithmetic on values loses what is known
    source = compile(ast.parse(text, mode="eval"), "golden", "eval")
    if text in DOCUMENTED:
        with pytest.raises(fl.LayoutError):
            eval(source, NAMES)
        return
    if wanted.startswith("INVALID"):
        with pytest.raises((ValueError, TypeError, IndexError)):
            eval(source, NAMES)
        return
    got = eval(source, NAMES)
    plain = wanted.startswith(("int_tuple", "layout", "composed", "tile", "swizzle"))
    if wanted == "Boolean[i1]":
        assert isinstance(got, (bool, fl.Sym))
    elif not plain:
        assert to_str(got).replace(" ", "") == wanted.replace(" ", "") or str(got) == wanted
    else:
        assert _shown(got) == wanted

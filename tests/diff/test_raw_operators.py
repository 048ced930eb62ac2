"""Operators on raw integers build the op, with the sign, that the reference builds: 1,296 pairs of operands recorded from it."""

from pathlib import Path
from typing import Any

import pytest
from kernel_trace import kernel

import flydsl.expr as fx

ROWS = [line.split("\t") for line in (Path(__file__).parent / "data" / "raw_operators.tsv").read_text().splitlines()]


def operands() -> dict[str, Any]:
    """Return the operands of the rows: scalars, and raw values of all sign flags."""
    i = fx.thread_idx.x + 1
    u, wide, x = fx.Uint32(i) + fx.Uint32(2), fx.Int64(i), fx.Index(i)
    raw = {name + "r": value.ir_value() for name, value in (("i", i), ("u", u), ("l", wide), ("x", x))}
    added = fx.arith.addi(raw["ir"], raw["ir"])
    flags = {"s0": raw["ir"].with_signedness(False), "sN": raw["ir"].with_signedness(None)}
    return {"i": i, "u": u, "l": wide, "x": x, **raw, "tid": fx.gpu.thread_id("x"), "bi": added, **flags, "3": 3}


@pytest.mark.parametrize("symbol", sorted({row[0].split()[1] for row in ROWS}))
def test_ops_and_signs(symbol):
    wrong = []
    with kernel():
        values = operands()
        for text, expected in ROWS:
            left, operator, right = text.split()
            if operator != symbol:
                continue
            result = eval(f"a {operator} b", {"a": values[left], "b": values[right]})
            op = (result if isinstance(result, fx.arith.ArithValue) else result.ir_value()).owner
            built = op.name + (f" {op.attributes['predicate'].value}" if op.name == "arith.cmpi" else "")
            if built != expected:
                wrong.append((text, expected, built))
    assert not wrong


def test_flags_of_results():
    with kernel():
        values = operands()
        i, u, x = values["ir"], values["ur"], values["xr"]
        assert (i.signed, u.signed, x.signed, values["tid"].signed) == (True, False, False, None)
        results = (i + i, u + u, 3 + i, i < i, -i, i >> 1, u // 3, fx.arith.addi(u, u), fx.arith.extsi(fx.Int64, i), fx.arith.ArithValue(i))
        assert [r.signed for r in results] == [None] * len(results)
        assert fx.arith.unwrap(values["u"]).signed is False

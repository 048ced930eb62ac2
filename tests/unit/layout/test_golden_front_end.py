"""Every golden record evaluated as it is written, through `flydsl.expr` inside a kernel being traced."""

from __future__ import annotations

import pytest
from kernel_trace import kernel

import flydsl.expr as fx
from flydsl.expr.numeric import wrap
from flydsl.ir import ir
from tests.unit.layout.shared_data import golden_rows

# What the reference answers and we refuse, with the row of the table that says why.
REFUSED = {
    "fx.complement(L((3,2),(1,2)),12)": "complement-not-injective in flydsl.layout.deviations",
}


def shown(x) -> str:
    """Print a value as the records do: an IR type without its dialect, sequences in round brackets."""
    if isinstance(x, (tuple, list)):
        return "(" + ", ".join(shown(i) for i in x) + ")"
    if isinstance(x, (bool, int)):
        return str(x)
    if isinstance(x, ir.Value):
        return str(x.type)
    if isinstance(x, fx.Numeric):
        return f"{type(x).__name__}[{x.ir_value().type}]"
    kind = getattr(x, "type", None)
    return str(kind).removeprefix("!fly.").replace('"', "") if kind is not None else str(x)


def names(arguments) -> dict:
    n, m = (wrap(fx.Int32, a) for a in arguments)
    return {"fx": fx, "L": fx.make_layout, "SW": lambda *f: fx.static(fx.SwizzleType.get(*f)), "E": fx.E, "n": n, "m": m}


@pytest.mark.parametrize("text, wanted", golden_rows(), ids=lambda t: t[:60])
def test_golden_row_through_the_front_end(text, wanted):
    with kernel("i32", "i32") as (_, arguments):
        if wanted.startswith("INVALID") or text in REFUSED:
            with pytest.raises((ValueError, TypeError, IndexError, AttributeError)):
                eval(text, names(arguments))
        else:
            assert shown(eval(text, names(arguments))) == wanted

"""Evaluates the recorded expressions on scalars and vectors; prints the rows that differ when run as a program."""

import builtins
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flydsl.diag import FlyError
from flydsl.expr import arith, convert, fastmath, math, numeric, vector
from flydsl.expr.type_shortcuts import T
from flydsl.ir import Trace, ir

DATA = Path(__file__).parent / "data" / "golden_types.tsv"


def namespace() -> SimpleNamespace:
    """Return the part of `fx` which the rows use."""
    fx = SimpleNamespace(T=T, **vector.ALIASES)
    for module in (numeric, vector, math, arith, fastmath, convert):
        for name in getattr(module, "__all__", dir(module)):
            if not name.startswith("_") and not hasattr(fx, name):
                setattr(fx, name, getattr(module, name))
    return fx


def read_rows() -> list[tuple[str, str]]:
    """Return (expression, recorded outcome)."""
    lines = [line.split("\t") for line in DATA.read_text().splitlines() if line and not line.startswith("#")]
    return [(expression, outcome) for expression, outcome, *_ in lines]


def evaluate(expressions: list[str]) -> list[str]:
    """Return the outcome of each expression, with run-time Int32 arguments `n` and `m`."""
    outcomes = []
    with Trace("gfx942") as trace:
        i32 = trace.types.i32
        function_type = ir.TypeAttr.get(ir.FunctionType.get([i32, i32], []))
        attrs = {"sym_name": ir.StringAttr.get("f"), "function_type": function_type}
        loc = trace.unknown_loc
        function = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=loc, ip=trace.ip)
        block = ir.Block.create_at_start(function.regions[0], [i32, i32], [loc, loc])
        with trace.in_function(block, "kernel", None):
            n, m = (numeric.wrap(numeric.Int32, v) for v in block.arguments)
            names = {"fx": namespace(), "arith": arith, "T": T, "n": n, "m": m}
            outcomes = [_outcome(e, names) for e in expressions]
    return outcomes


def _outcome(expression: str, names: dict) -> str:
    try:
        return show(eval(expression, names))
    except Exception as e:  # any error can be the recorded outcome
        kind = next(c.__name__ for c in type(e).__mro__ if c.__module__ == builtins.__name__)
        return f"INVALID {kind}: {e.message if isinstance(e, FlyError) else str(e)!r}".replace(": ", ": ", 1)


def show(x: Any) -> str:
    """Return a value in the notation of the rows."""
    match x:
        case tuple() | list():
            return f"({', '.join(show(i) for i in x)})"
        case numeric.Numeric() if x.is_static():
            return f"{type(x).__name__}({x.value!r})"
        case numeric.Numeric():
            return f"{type(x).__name__}[{x.ir_value().type}]"
        case vector.Vector() | ir.Value():
            return str(x.ir_value().type if isinstance(x, vector.Vector) else x.type)
        case ir.Type():
            return f"{type(x).__name__}({x})"
        case type() if isinstance(x, type(vector.Vector)):
            return "object"
        case type():
            return f"{x.__module__}.{x.__name__}"
    return repr(x)


def main() -> None:
    rows = read_rows()
    ours = evaluate([e for e, _ in rows])
    different = [(e, want, got) for (e, want), got in zip(rows, ours, strict=True) if not same(want, got)]
    for e, want, got in different:
        print(f"{e}\n    recorded {want}\n    ours     {got}")
    print(f"{len(rows) - len(different)} of {len(rows)} rows agree")


def same(want: str, got: str) -> bool:
    """Whether two outcomes are equal; quotes do not count, nor what newer Pythons say about a missing member of an enum."""
    return want == got or _essence(want) == _essence(got)


def _essence(outcome: str) -> str:
    return re.sub(r"type object \w+ has no attribute ", "", outcome.replace('"', "").replace("'", ""))


if __name__ == "__main__":
    sys.exit(main())

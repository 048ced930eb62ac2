"""Evaluates the recorded rows "one operator on two scalar types" with our classes, from the text of each row.

    python tests/diff/numeric_rules.py [FILE.tsv | FILE.tsv.gz]     prints every row that differs

Columns: kind, lhs, op, rhs, result class, folded value, emitted ops, error class (tests/diff/README.md).
"""

import builtins
import gzip
import operator
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from flydsl.expr import numeric
from flydsl.expr.numeric import Numeric
from flydsl.ir import Trace, ir

DATA = Path(__file__).parent / "data" / "numeric_rules.tsv.gz"

_PYTHON = {"py:int": 3, "py:negint": -7, "py:float": 1.5, "py:bool": True, "py:bigint": 2**40}
_BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
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
_UNARY = {
    "-x": operator.neg,
    "~x": operator.invert,
    "abs(x)": abs,
    "+x": operator.pos,
    "not x": operator.not_,
    "bool(x)": bool,
    "int(x)": int,
    "float(x)": float,
}
_DEFAULT_ATTRS = ("fastmath", "overflowFlags")


@dataclass(frozen=True)
class Row:
    kind: str
    lhs: str
    op: str
    rhs: str
    result: str
    value: str
    ir_ops: str
    error: str

    @property
    def operation(self) -> tuple[str, str, str, str]:
        return self.kind, self.lhs, self.op, self.rhs

    @property
    def outcome(self) -> tuple[str, str, tuple, str]:
        return self.result, self.value, op_bag(self.ir_ops.split("; ") if self.ir_ops else []), self.error


def op_bag(ops: list[str]) -> tuple:
    """Return the ops in order, constants apart as a sorted list: we place those in the entry block, one per value."""
    constants = sorted({o for o in ops if o.startswith("arith.constant")})
    return tuple(constants), tuple(o for o in ops if not o.startswith("arith.constant"))


def read_rows(path: Path = DATA) -> list[Row]:
    """Return the rows of the table."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    lines = text.splitlines()[1:]
    return [Row(*(line.split("\t") + [""] * 8)[:8]) for line in lines if line and not line.startswith("#")]


class Evaluator:
    """A module being traced; each row gets a function of its own, with an argument of every scalar class."""

    def __init__(self):
        self.trace = Trace("gfx942")
        self.classes = list(numeric.CLASSES.values())

    def __enter__(self) -> "Evaluator":
        self.trace.__enter__()
        types = [c.ir_type for c in self.classes]
        function_type = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        self.types, self.attrs, self.count = types, {"function_type": function_type}, 0
        return self

    def __exit__(self, *exc) -> None:
        self.trace.__exit__(*exc)

    def new_block(self) -> ir.Block:
        """Return the entry block of a new function."""
        loc = self.trace.unknown_loc
        self.count += 1
        attrs = {**self.attrs, "sym_name": ir.StringAttr.get(f"row{self.count}")}
        function = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=loc, ip=self.trace.ip)
        return ir.Block.create_at_start(function.regions[0], self.types, [loc] * len(self.types))

    def run(self, row: Row) -> tuple[str, str, tuple, str]:
        """Return result class, value, ops and error class of one row."""
        with self.trace.in_function(self.new_block(), "kernel", None) as block:
            try:
                result = self._evaluate(row, self.operand(row.lhs, block), self.operand(row.rhs, block))
                name, value = _describe(result)
                if row.kind in ("ctor", "to") and value:
                    result.ir_value()
            except Exception as e:  # any error class can be the recorded one
                ir.Operation.create("func.return", loc=self.trace.unknown_loc, ip=self.trace.ip)
                return "", "", op_bag([]), _builtin_name(e)
            ops = op_bag([_op_text(op.operation) for op in block.operations])
            ir.Operation.create("func.return", loc=self.trace.unknown_loc, ip=self.trace.ip)
            return name, value, ops, ""

    def operand(self, text: str, block: ir.Block):
        """Return the operand that a row names."""
        if text in _PYTHON:
            return _PYTHON[text]
        if text.startswith("static:"):
            _, cls, value = text.split(":")
            return getattr(numeric, cls)(float(value) if "." in value else int(value))
        cls = numeric.CLASSES.get(text)
        return cls and numeric.wrap(cls, block.arguments[self.classes.index(cls)])

    def _evaluate(self, row: Row, lhs, rhs):
        if row.kind == "bin":
            return _BINARY[row.op](lhs, rhs)
        if row.kind == "un":
            return _UNARY[row.op](lhs)
        target = getattr(numeric, row.rhs)
        return target(lhs) if row.kind == "ctor" else lhs.to(target)


def _builtin_name(e: Exception) -> str:
    """Return the built-in class of an error: ours derive from the one that the reference raises."""
    known = (c.__name__ for c in type(e).__mro__ if c.__module__ == builtins.__name__)
    return next(known)


def _describe(result) -> tuple[str, str]:
    if not isinstance(result, Numeric):
        return type(result).__name__, f"python={result!r}"
    return type(result).__name__, f"static={result.value!r}" if result.is_static() else ""


def _op_text(op: ir.Operation) -> str:
    attrs = {a: op.attributes[a] for a in _names(op) if a not in _DEFAULT_ATTRS}
    shown = f"[{','.join(f'{k}={v}' for k, v in attrs.items())}]" if attrs else ""
    operands = ",".join(str(v.type) for v in op.operands)
    results = ",".join(str(v.type) for v in op.results)
    return f"{op.name}{shown}({operands})->{results}"


def _names(op: ir.Operation) -> list[str]:
    return [a if isinstance(a, str) else a.name for a in op.attributes]


def differing(rows: list[Row]) -> list[tuple[Row, tuple]]:
    """Return the rows whose outcome differs from ours, with ours. All ops that we emit must pass the verifier."""
    with Evaluator() as evaluator:
        outcomes = [(row, evaluator.run(row)) for row in rows]
        evaluator.trace.module.operation.verify()
    return [(row, ours) for row, ours in outcomes if ours != row.outcome]


def main() -> None:
    rows = read_rows(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
    different = differing(rows)
    for row, ours in different:
        print(*row.operation, "recorded", row.outcome, "ours", ours, sep=" | ")
    kinds = Counter((row.kind, row.lhs.split(":")[0], row.op, row.rhs) for row, _ in different)
    print(f"{len(rows) - len(different)} of {len(rows)} rows agree; {len(kinds)} kinds of difference")


if __name__ == "__main__":
    main()

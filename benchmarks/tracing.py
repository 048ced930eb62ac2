"""Microseconds of thread time per traced operation, location included.

    python benchmarks/tracing.py [--runs N] [--json FILE]

Each row traces a loop of operations into a fresh module; the figure is the median of the runs. The first row is
the floor: building one op with the bindings, without anything of ours. The issue's limit for the median over
all rows is 5 us.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

from flydsl.expr import arith, math, numeric, vector
from flydsl.expr.numeric import Float32, Int32, Int64
from flydsl.ir import Trace, ir
from flydsl.ir.trace import create_op

REPEAT = 2000
ROWS: dict[str, tuple[str, Callable]] = {}


def row(kind: str, name: str) -> Callable[[Callable], Callable]:
    """Register a body `f(n, m, x, y)`, which traces REPEAT operations."""

    def register(body: Callable) -> Callable:
        ROWS[name] = (kind, body)
        return body

    return register


def source_row(kind: str, name: str, prepare: str = "pass") -> None:
    """Register a row from the text of one operation, so that the loop around it costs the same everywhere."""
    code = f"def body(n, m, x, y):\n    {prepare}\n    for _ in range({REPEAT}):\n        {name}\n"
    names = {"arith": arith, "math": math, "Vector": vector.Vector, "Float32": Float32, "Int32": Int32, "Int64": Int64}
    exec(compile(code, "<row>", "exec"), names)
    row(kind, name)(names["body"])


for text in ("n + m", "n + 5", "n * 2 + m", "x * y", "x * 2.0", "x / y", "n < m", "x <= y", "n // 3", "-x", "~n"):
    source_row("arithmetic", text)
source_row("arithmetic", "n + q", "q = Int64(m)")
source_row("arithmetic", "a + b", "a, b = Int32(5), Int32(6)")
source_row("arithmetic", "Float32(n)")
source_row("arithmetic", "n.ir_value()")
source_row("arithmetic", "p.select(n, 3)", "p = n < m")
source_row("arithmetic", "arith.max(n, m)")
source_row("arithmetic", "math.exp2(x)")
source_row("arithmetic", "math.fma(x, y, x)")
source_row("arithmetic", "r + s", "r, s = n.ir_value(), m.ir_value()")
source_row("arithmetic", "arith.addi(r, s)", "r, s = n.ir_value(), m.ir_value()")
for text in ("v + v", "v * 2.0", "v * x", "v[3]", "v[n]", "v.to(Float32)", "v.reduce('add')", "(v < 1.0)"):
    source_row("vector", text, "v = Vector.filled(8, x, Float32)")
source_row("vector", "v.bitcast(Int32)", "v = Vector.filled(8, x, Float32)")
source_row("vector", "Vector.from_elements([x, y, x, y])")
source_row("vector", "Vector.filled(8, x, Float32)")


@row("floor", "create an op and take its result")
def floor(n, m, x, y) -> None:
    from flydsl.ir import current

    trace = current()
    operands = (n.value, m.value)
    types, ip, loc = (trace.types.i32,), trace.ip, trace.unknown_loc
    for _ in range(REPEAT):
        create_op("arith.addi", types, operands, None, None, 0, loc, ip).result  # noqa: B018


def measure(body: Callable) -> float:
    """Return microseconds per operation of one run of `body` in a new module."""
    with Trace("gfx942") as trace:
        classes = (Int32, Int32, Float32, Float32)
        types = [c.ir_type for c in classes]
        function_type = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        attrs = {"sym_name": ir.StringAttr.get("f"), "function_type": function_type}
        loc = trace.unknown_loc
        function = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=loc, ip=trace.ip)
        block = ir.Block.create_at_start(function.regions[0], types, [loc] * len(types))
        with trace.in_function(block, "kernel", body.__code__):
            args = [numeric.wrap(c, v) for c, v in zip(classes, block.arguments, strict=True)]
            start = time.thread_time()
            body(*args)
            return (time.thread_time() - start) / REPEAT * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", help="append the medians as one JSON line")
    options = parser.parse_args()
    medians: dict[str, float] = {}
    for _ in range(2):
        for _, body in ROWS.values():
            measure(body)
    samples = {name: [] for name in ROWS}
    for _ in range(options.runs):
        for name, (_, body) in ROWS.items():
            samples[name].append(measure(body))
    medians = {name: statistics.median(times) for name, times in samples.items()}
    for name, (kind, _) in ROWS.items():
        print(f"{kind:11s} {name:36s} {medians[name]:6.2f} us")
    rows = [medians[name] for name, (kind, _) in ROWS.items() if kind != "floor"]
    print(f"median over {len(rows)} rows: {statistics.median(rows):.2f} us")
    if options.json:
        with open(options.json, "a") as file:
            file.write(json.dumps(medians) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

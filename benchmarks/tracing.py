"""Microseconds of thread time per traced operation, location included.

    python benchmarks/tracing.py [--runs N] [--json FILE]

Each row traces a loop of operations into a fresh module; the figure is the median of the runs. The first row is
the floor: building one op with the bindings, without anything of ours. The issue's limit for the median over
all rows is 5 us.
"""

import argparse
import functools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["FLYDSL_RUNTIME_ENABLE_CACHE"] = "0"  # an entry on disk would spare the tracing

from flydsl.expr import arith, math, numeric, vector
from flydsl.expr.numeric import Float32, Int32, Int64
from flydsl.ir import Trace, ir
from flydsl.ir.trace import create_op
from flydsl.utils.collector import paused_collector

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
source_row("arithmetic", "helper(n, m)", "helper = lambda a, b: a + b")
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


KERNEL_ROWS = {
    "layout": ["fx.crd2idx((n, m), layout)", "A[n, m]", "A[None, n]", "fx.int_tuple_add((n, 4), (m, 8))"],
    "copy": ["fx.copy(atom, part, frag)", "frag.load()"],
    "loop": ["for i in range(n): s = s + i"],
}
KERNEL_REPEAT = 100
_KERNEL = """
import time
import numpy as np
import flydsl.compiler as flyc
import flydsl.expr as fx

TIMES = []

@flyc.kernel
def kernel(A: fx.Tensor, n: fx.Int32, m: fx.Int32):
    layout = A.layout
    atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
    tiled = fx.make_tiled_copy_tv(atom, fx.make_layout((16, 4), (4, 1)), fx.make_layout((1, 4), (1, 1)))
    part = tiled.get_slice(fx.thread_idx.x).partition_S(fx.zipped_divide(A, (16, 16))[None, (0, 0)])
    frag = fx.make_fragment_like(part)
    s = fx.Int32(0)
    start = time.thread_time()
    for _ in fx.range_constexpr({repeat}):
        {operation}
    TIMES.append((time.thread_time() - start) / {repeat} * 1e6)

@flyc.jit
def run(A: fx.Tensor, n: fx.Int32, m: fx.Int32):
    kernel(A, n, m).launch(grid=(1, 1, 1), block=(64, 1, 1))

run.compile((np.zeros((64, 64), np.float32), 1, 1), {{}})
"""


def kernel_rows(folder: str) -> dict[str, tuple[str, Callable[[], float]]]:
    """Return the rows that need a kernel; their sources go to `folder`, since kernels are rewritten from source."""
    rows = {}
    for kind, operations in KERNEL_ROWS.items():
        for operation in operations:
            path = os.path.join(folder, f"row{len(rows)}.py")
            source = _KERNEL.format(repeat=KERNEL_REPEAT, operation=operation)
            with open(path, "w") as file:
                file.write(source)
            rows[operation] = (kind, functools.partial(measure_kernel, source, path))
    return rows


def measure_kernel(source: str, path: str) -> float:
    """Return microseconds per operation of one compile of a kernel, defined anew so that no cache has it."""
    namespace: dict = {"__name__": "row"}
    exec(compile(source, path, "exec"), namespace)
    return namespace["TIMES"].pop()


def measure(body: Callable) -> float:
    """Return microseconds per operation of one run of `body` in a new module, with the collector paused as in a compile."""
    with paused_collector(), Trace("gfx942") as trace:
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
    with tempfile.TemporaryDirectory() as folder:
        kinds = {name: (kind, functools.partial(measure, body)) for name, (kind, body) in ROWS.items()}
        kinds |= kernel_rows(folder)
        for _ in range(2):
            for _, run in kinds.values():
                run()
        samples = {name: [] for name in kinds}
        for _ in range(options.runs):
            for name, (_, run) in kinds.items():
                samples[name].append(run())
    medians = {name: statistics.median(times) for name, times in samples.items()}
    for name, (kind, _) in kinds.items():
        print(f"{kind:11s} {name:36s} {medians[name]:6.2f} us")
    rows = [medians[name] for name, (kind, _) in kinds.items() if kind != "floor"]
    print(f"median over {len(rows)} rows: {statistics.median(rows):.2f} us")
    if options.json:
        with open(options.json, "a") as file:
            file.write(json.dumps(medians) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

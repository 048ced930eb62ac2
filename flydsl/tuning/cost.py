"""A static estimate of what a launch costs, for choosing between configurations where there is no GPU to time them on.

The lowered kernel is walked with the launch's arguments as one wave of workgroup 0 would go through it: trips of
loops and uniform branches
are evaluated where they follow from arguments and constants (elsewhere a loop counts once and the longer branch
counts). Each operation
costs issue cycles, matrix operations by their size, memory accesses by their bytes; registers, LDS and spills come
from the generated code.
The number orders variants of one kernel. It knows no caches, no bank conflicts and no overlap, and is not a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from flydsl import arch as chips
from flydsl.arch.boards import board
from flydsl.ir import ir
from flydsl.layout.view import element_bytes

_MACS_PER_CYCLE = 256  # of one SIMD's matrix unit in 16-bit elements
_GLOBAL_BYTES_PER_CYCLE, _LDS_BYTES_PER_CYCLE = 64, 128  # per compute unit
_BARRIER_CYCLES, _SPILL_CYCLES = 16, 16
_FREE = re.compile(
    r"arith\.constant|llvm\.mlir|gpu\.(thread|block|grid)|scf\.yield|.*(return|cast|getelementptr|ptrtoint|inttoptr)$"
)
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")


def static_cost(artifact: Any, flat: Sequence[Any]) -> float:
    """Return the estimated cycles of everything that one host call launches; `flat` are its machine arguments.

    Raises   what code generation raises: a configuration that cannot be compiled has no cost
    """
    stats, total = artifact.stats, 0.0
    functions = _kernels(artifact.lowered)

    def record(kernel: str, grid: tuple, block: tuple, *others: Any) -> None:
        nonlocal total
        arguments = others[-1]
        if 0 not in grid:
            total += _launch_cycles(functions[kernel], stats[kernel], grid, block, arguments, artifact.arch)

    artifact.host(record, *flat)
    return total


def _launch_cycles(function: Any, facts: Any, grid: tuple, block: tuple, arguments: tuple, arch: str) -> float:
    chip = chips.get(arch)
    walk = _Walk(function, arguments, grid, block, chip.wave_size)
    issue, memory = walk.cycles()
    issue += facts.scratch_ops * _SPILL_CYCLES
    waves = math.ceil(math.prod(block) / chip.wave_size)
    units, together = board(arch).compute_units, max(1, facts.max_blocks_per_cu)
    resident = min(together, math.ceil(math.prod(grid) / units))
    rounds = math.ceil(math.prod(grid) / (units * resident))
    hidden = 1 + 2 / max(1, facts.occupancy)  # few waves hide little of a memory access
    return rounds * resident * waves * (issue / chip.simds + memory * hidden)


def _kernels(module: Any) -> dict[str, Any]:
    found = {}
    for op in module.body.operations:
        if op.operation.name == "gpu.module":
            for inner in op.operation.regions[0].blocks[0].operations:
                if inner.operation.name == "gpu.func":
                    found[ir.StringAttr(inner.operation.attributes["sym_name"]).value] = inner.operation
    return found


class _Walk:
    """One pass over a kernel's operations; `known` holds the integers that follow from the launch."""

    def __init__(self, function: Any, arguments: Sequence[Any], grid: tuple, block: tuple, wave_size: int):
        self.entry = function.regions[0].blocks[0]
        self.wave_size = wave_size
        self.known: dict[Any, int] = {
            a: int(v) for a, v in zip(self.entry.arguments, arguments, strict=False) if isinstance(v, (int, bool))
        }
        self.sizes = {"gpu.block_dim": block, "gpu.grid_dim": grid}

    def cycles(self) -> tuple[float, float]:
        """Return (issue cycles, memory cycles) of a wave."""
        return self.block(self.entry)

    def block(self, block: Any) -> tuple[float, float]:
        issue = memory = 0.0
        for op in block.operations:
            i, m = self.op(op.operation)
            issue, memory = issue + i, memory + m
        return issue, memory

    def op(self, op: Any) -> tuple[float, float]:
        name = op.name
        if name == "scf.for":
            return self.loop(op)
        if name == "scf.if":
            return self.branch(op)
        if len(op.regions):
            parts = [self.block(b) for r in op.regions for b in r.blocks]
            return sum(p[0] for p in parts), sum(p[1] for p in parts)
        self.evaluate(op)
        return self.price(op)

    def loop(self, op: Any) -> tuple[float, float]:
        start, stop, step = (self.known.get(v) for v in list(op.operands)[:3])
        trips = len(range(start, stop, step)) if None not in (start, stop, step) and step > 0 else 1
        body = op.regions[0].blocks[0]
        if start is not None:
            self.known[body.arguments[0]] = start
        issue, memory = self.block(body)
        return trips * (issue + 2), trips * memory

    def branch(self, op: Any) -> tuple[float, float]:
        parts = [self.block(b) for r in op.regions for b in r.blocks]
        condition = self.known.get(op.operands[0])
        if condition is not None:
            taken = 0 if condition else 1
            return parts[taken] if taken < len(parts) else (1.0, 0.0)
        return max(parts, key=sum)

    def evaluate(self, op: Any) -> None:
        """Remember the result of integer arithmetic on known values."""
        if len(op.results) != 1:
            return
        value = None
        if op.name == "arith.constant" or op.name == "llvm.mlir.constant":
            value = _constant(op)
        elif op.name in self.sizes:
            value = self.sizes[op.name]["xyz".index(str(op.attributes["dimension"]).rstrip(">")[-1])]
        elif op.name in ("gpu.block_id", "gpu.thread_id"):
            value = 0
        elif op.name in _ARITHMETIC:
            operands = [self.known.get(v) for v in op.operands]
            if None not in operands:
                value = _ARITHMETIC[op.name](*operands)
        elif op.name == "arith.cmpi":
            operands = [self.known.get(v) for v in op.operands]
            if None not in operands:
                value = int(_COMPARE[ir.IntegerAttr(op.attributes["predicate"]).value](*operands))
        if value is not None:
            self.known[op.results[0]] = value

    def price(self, op: Any) -> tuple[float, float]:
        name = op.name
        if "mfma" in name or "wmma" in name:
            m, n, k = map(int, found.groups()) if (found := _SHAPE.search(name)) else (16, 16, 16)
            return m * n * k / _MACS_PER_CYCLE, 0.0
        if "barrier" in name:
            return _BARRIER_CYCLES, 0.0
        if _is_access(name):
            return 1.0, self.access(op)
        return (0.0, 0.0) if _FREE.match(name) else (float(_elements(op)), 0.0)

    def access(self, op: Any) -> float:
        is_store = "store" in op.name
        value = op.operands[0].type if is_store else op.results[0].type if len(op.results) else None
        lane_bytes = _bytes(value) if value is not None else 16
        addresses = " ".join(str(v.type) for v in op.operands)
        is_lds = "<3>" in addresses and "<1>" not in addresses
        per_cycle = _LDS_BYTES_PER_CYCLE if is_lds else _GLOBAL_BYTES_PER_CYCLE
        if "<5>" in addresses:
            return 0.0
        return max(1.0, lane_bytes * self.wave_size / per_cycle)


def _is_access(name: str) -> bool:
    plain = name in ("llvm.load", "llvm.store", "vector.load", "vector.store")
    return plain or "buffer" in name and ("load" in name or "store" in name)


def _constant(op: Any) -> int | None:
    attribute = op.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def _elements(op: Any) -> int:
    kind = op.results[0].type if len(op.results) else None
    return math.prod(ir.VectorType(kind).shape) if kind is not None and isinstance(kind, ir.VectorType) else 1


def _bytes(kind: Any) -> float:
    if isinstance(kind, ir.VectorType):
        kind = ir.VectorType(kind)
        return math.prod(kind.shape) * _bytes(kind.element_type)
    try:
        return element_bytes(str(kind))
    except (KeyError, ValueError):
        return 4


_ARITHMETIC: dict[str, Callable[..., int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: a // b if b else None,
    "arith.divui": lambda a, b: a // b if b else None,
    "arith.ceildivsi": lambda a, b: -(-a // b) if b else None,
    "arith.floordivsi": lambda a, b: a // b if b else None,
    "arith.remsi": lambda a, b: a % b if b else None,
    "arith.remui": lambda a, b: a % b if b else None,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
    "arith.shrui": lambda a, b: a >> b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": min,
    "arith.maxui": max,
    "arith.index_cast": lambda a: a,
    "arith.index_castui": lambda a: a,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
    "arith.select": lambda c, a, b: a if c else b,
}
_COMPARE: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b,
    lambda a, b: a >= b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b,
)  # fmt: skip

"""The jit body as a Python function: grid arithmetic, branches and loops around launches, translated from the lowered
`func.func`.

The text is generated, kept with the artifact, and needs only `flydsl.runtime.host_math`. Integers wrap to their width
as in IR, f32 is rounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from flydsl.diag import NotHostCode, PassFailed
from flydsl.diag.errors.target import KernelAttributeBad
from flydsl.ir import ir
from flydsl.ir.location import span_of_location
from flydsl.ir.walks import symbol
from flydsl.layout.view import element_bytes

PASS = "host-program"
DEFAULT_MOST_THREADS = 256  # upstream's conversion to ROCDL writes this where nothing else is said
_BINARY = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
    "arith.shli": "<<",
    "arith.shrsi": ">>",
    "arith.addf": "+",
    "arith.subf": "-",
    "arith.mulf": "*",
}
_CALLS = {
    "arith.divf": "fdiv",
    "arith.divsi": "div",
    "arith.remsi": "rem",
    "arith.ceildivsi": "ceildiv",
    "arith.minsi": "min",
    "arith.maxsi": "max",
    "arith.minimumf": "min",
    "arith.maximumf": "max",
}
_UNSIGNED = {
    "arith.divui": "//",
    "arith.remui": "%",
    "arith.shrui": ">>",
}
_UNSIGNED_CALLS = {"arith.ceildivui": "ceildiv", "arith.minui": "min", "arith.maxui": "max"}
_CMPI = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_CMPF = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 6: "!=", 8: "==", 9: ">", 10: ">=", 11: "<", 12: "<=", 13: "!="}
_SAME = frozenset(
    "arith.extsi arith.index_cast arith.extf llvm.ptrtoint llvm.inttoptr".split()
)


def host_function(module: ir.Module, name: str) -> str:
    """Return the Python text of the host function `name`: `def host(launch, *flat arguments)`."""
    for op in module.body.operations:
        op = op.operation
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == name:
            return _Writer(_kernels(module)).function(op)
    raise PassFailed(pass_name=PASS, problem=f"no host function {name}")


def _kernels(module: ir.Module) -> dict[str, ir.Operation]:
    """Return the kernels of a module by name."""
    modules = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    inner = [op.operation for m in modules for op in m.regions[0].blocks[0].operations]
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in inner if op.name == "gpu.func"}


class _Writer:
    def __init__(self, kernels: dict[str, ir.Operation]):
        self.kernels = kernels
        self.lines: list[str] = []
        self.names: dict[ir.Value, str] = {}
        self.depth = 1

    def function(self, op: ir.Operation) -> str:
        entry = op.regions[0].blocks[0]
        parameters = [self.name(a) for a in entry.arguments]
        self.block(entry)
        header = f"def host({', '.join(['launch', *parameters])}):"
        return "\n".join([header, *(self.lines or ["    pass"])]) + "\n"

    def name(self, v: ir.Value) -> str:
        known = self.names.get(v)
        if known is None:
            known = self.names[v] = f"v{len(self.names)}"
        return known

    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, block: ir.Block) -> None:
        for op in block.operations:
            self.op(op.operation)

    def op(self, op: ir.Operation) -> None:
        rule = _RULES.get(op.name)
        if rule is not None:
            rule(self, op)
            return
        text = self._expression(op)
        if text is None:
            raise NotHostCode(op=f"`{op.name}`", at=span_of_location(op.location))
        self.put(f"{self.name(op.results[0])} = {text}")

    def _expression(self, op: ir.Operation) -> str | None:
        args = [self.name(v) for v in op.operands]
        if op.name in _BINARY:
            return self._wrapped(op, f"{args[0]} {_BINARY[op.name]} {args[1]}")
        if op.name == "arith.floordivsi":
            return self._wrapped(op, f"{args[0]} // {args[1]}")
        if op.name in _CALLS:
            return self._wrapped(op, f"{_CALLS[op.name]}({args[0]}, {args[1]})")
        if op.name in _UNSIGNED or op.name in _UNSIGNED_CALLS:
            width = _width(op.operands[0].type)
            a, b = (f"unsigned({x}, {width})" for x in args)
            text = f"{a} {_UNSIGNED[op.name]} {b}" if op.name in _UNSIGNED else f"{_UNSIGNED_CALLS[op.name]}({a}, {b})"
            return self._wrapped(op, text)
        if op.name in _SAME:
            return args[0]
        return None

    def _wrapped(self, op: ir.Operation, text: str) -> str:
        width = _width(op.results[0].type)
        if isinstance(op.results[0].type, ir.F32Type):
            return f"single({text})"
        if width == 32:  # inline: a call takes three times as long
            return f"(({text}) + {1 << 31} & {(1 << 32) - 1}) - {1 << 31}"
        return f"wrap({text}, {width})" if width else text

    def assign(self, targets: list[ir.Value], sources: list[ir.Value]) -> None:
        """Assign several names at once (they may overlap)."""
        if targets:
            left, right = (", ".join(self.name(v) for v in values) for values in (targets, sources))
            self.put(f"{left} = {right}")


def _width(type_: ir.Type) -> int:
    if isinstance(type_, ir.IntegerType):
        return ir.IntegerType(type_).width
    return 64 if isinstance(type_, ir.IndexType) else 0


def _constant(w: _Writer, op: ir.Operation) -> None:
    attr = op.attributes["value"]
    value = ir.FloatAttr(attr).value if isinstance(attr, ir.FloatAttr) else ir.IntegerAttr(attr).value
    if op.result.type == ir.IntegerType.get_signless(1, op.context):
        value = bool(value)
    w.names[op.result] = _literal(value)


def _literal(value: bool | int | float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "(1e999 - 1e999)" if value != value else "1e999" if value > 0 else "(-1e999)"
    return f"({value!r})" if value < 0 else repr(value)


def _cmpi(w: _Writer, op: ir.Operation) -> None:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    a, b = (w.name(v) for v in op.operands)
    if predicate > 5:
        width = _width(op.operands[0].type)
        a, b = f"unsigned({a}, {width})", f"unsigned({b}, {width})"
    w.put(f"{w.name(op.result)} = {a} {_CMPI[predicate]} {b}")


def _cmpf(w: _Writer, op: ir.Operation) -> None:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    a, b = (w.name(v) for v in op.operands)
    w.put(f"{w.name(op.result)} = {a} {_CMPF[predicate]} {b}")


def _select(w: _Writer, op: ir.Operation) -> None:
    c, a, b = (w.name(v) for v in op.operands)
    w.put(f"{w.name(op.result)} = {a} if {c} else {b}")


def _trunci(w: _Writer, op: ir.Operation) -> None:
    width = _width(op.result.type)
    text = f"bool({w.name(op.operands[0])} & 1)" if width == 1 else f"wrap({w.name(op.operands[0])}, {width})"
    w.put(f"{w.name(op.result)} = {text}")


def _extui(w: _Writer, op: ir.Operation) -> None:
    width = _width(op.operands[0].type)
    w.put(f"{w.name(op.result)} = unsigned({w.name(op.operands[0])}, {width})")


def _tofp(w: _Writer, op: ir.Operation) -> None:
    value = w.name(op.operands[0])
    if op.name == "arith.uitofp":
        value = f"unsigned({value}, {_width(op.operands[0].type)})"
    w.put(f"{w.name(op.result)} = {w._wrapped(op, f'float({value})')}")


def _truncf(w: _Writer, op: ir.Operation) -> None:
    w.put(f"{w.name(op.result)} = {w._wrapped(op, w.name(op.operands[0]))}")


def _fptosi(w: _Writer, op: ir.Operation) -> None:
    w.put(f"{w.name(op.result)} = int({w.name(op.operands[0])})")


def _gep(w: _Writer, op: ir.Operation) -> None:
    constants = list(ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))
    if len(constants) != 1:
        raise PassFailed(pass_name=PASS, problem=f"{op.name} at {op.location} has several indices")
    index = w.name(op.operands[1]) if len(op.operands) > 1 else str(constants[0])
    elem = ir.TypeAttr(op.attributes["elem_type"]).value
    w.put(f"{w.name(op.result)} = {w.name(op.operands[0])} + {index} * {element_bytes(str(elem))}")


def _if(w: _Writer, op: ir.Operation) -> None:
    w.put(f"if {w.name(op.operands[0])}:")
    for i, region in enumerate(op.regions):
        if not len(region.blocks):
            continue
        if i:
            w.put("else:")
        _body(w, region.blocks[0], list(op.results))


def _for(w: _Writer, op: ir.Operation) -> None:
    start, stop, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    induction, *carried = body.arguments
    w.assign(list(carried), inits)
    w.put(f"for {w.name(induction)} in range({w.name(start)}, {w.name(stop)}, {w.name(step)}):")
    _body(w, body, list(carried))
    w.assign(list(op.results), list(carried))


def _body(w: _Writer, body: ir.Block, carried: list[ir.Value]) -> None:
    """Write an indented block; what it yields is assigned to `carried`."""
    w.depth += 1
    before = len(w.lines)
    for inner in body.operations:
        inner = inner.operation
        if inner.name == "scf.yield":
            w.assign(carried, list(inner.operands))
        else:
            w.op(inner)
    if len(w.lines) == before:
        w.put("pass")
    w.depth -= 1


def _while(w: _Writer, op: ir.Operation) -> None:
    first, second = (r.blocks[0] for r in op.regions)
    w.assign(list(first.arguments), list(op.operands))
    w.put("while True:")
    w.depth += 1
    for inner in first.operations:
        inner = inner.operation
        if inner.name == "scf.condition":
            condition, *values = inner.operands
            w.assign(list(second.arguments), values)
            w.put(f"if not {w.name(condition)}: break")
        else:
            w.op(inner)
    w.depth -= 1
    _body(w, second, list(first.arguments))
    w.assign(list(op.results), list(second.arguments))


def _launch(w: _Writer, op: ir.Operation) -> None:
    kernel = str(op.attributes["kernel"]).split("::@")[-1]
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands: Iterator[ir.Value] = iter(op.operands)
    groups = [[next(operands) for _ in range(n)] for n in segments]
    names = [[w.name(v) for v in g] for g in groups]
    grid, block, cluster = (_tuple([g[0] for g in names[i : i + 3] if g]) for i in (1, 4, 7))
    smem = names[10][0] if names[10] else "0"
    stream = names[12][0] if names[12] else "0"
    arguments = _tuple([_argument(w, v) for v in groups[11]])
    if not all(n.isdigit() for g in names[4:7] for n in g):  # else the block was checked while tracing
        w.put(f"check_block({kernel!r}, {block}, {_most_threads(w.kernels[kernel])}, {_declared_block(w.kernels[kernel])})")
    w.put(f"launch({kernel!r}, {grid}, {block}, {cluster}, {smem}, {stream}, {arguments})")


def _most_threads(kernel: ir.Operation) -> int:
    """Return the workgroup size up to which code is generated for a kernel whose block is not known while compiling."""
    if "rocdl.flat_work_group_size" in kernel.attributes:
        held = kernel.attributes["rocdl.flat_work_group_size"]
        found = re.fullmatch(r'"\d+,(\d+)"', str(held))
        if found is None:
            name, wanted = symbol(kernel), "a string 'least,most'"
            raise KernelAttributeBad(kernel=name, attribute="rocdl.flat_work_group_size", value=str(held), wanted=wanted)
        return int(found[1])
    if "rocdl.max_flat_work_group_size" in kernel.attributes:
        return ir.IntegerAttr(kernel.attributes["rocdl.max_flat_work_group_size"]).value
    return DEFAULT_MOST_THREADS


def _declared_block(kernel: ir.Operation) -> tuple[int, ...]:
    return tuple(kernel.attributes["known_block_size"]) if "known_block_size" in kernel.attributes else ()


def _argument(w: _Writer, v: ir.Value) -> str:
    return f"bf16({w.name(v)})" if isinstance(v.type, ir.BF16Type) else w.name(v)


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _nothing(w: _Writer, op: ir.Operation) -> None:
    """Terminators and what has no effect on the host."""


_RULES: dict[str, Callable[[_Writer, ir.Operation], None]] = {
    "arith.constant": _constant,
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.select": _select,
    "arith.trunci": _trunci,
    "arith.extui": _extui,
    "arith.index_castui": _extui,
    "arith.sitofp": _tofp,
    "arith.uitofp": _tofp,
    "arith.truncf": _truncf,
    "arith.fptosi": _fptosi,
    "llvm.getelementptr": _gep,
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "gpu.launch_func": _launch,
    "func.return": _nothing,
}

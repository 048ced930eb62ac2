"""Warnings about kernels that work and are probably not meant, or slow without need. Reads the IR, changes nothing.

On traced IR: barriers under conditions that depend on the thread, run-time indices into registers, unread loop state. On lowered IR: global
accesses whose neighbouring lanes lie far apart, where the address is an affine function of the thread's number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl import layout as la
from flydsl.diag import BarrierDiverges, FlyWarning, RegisterIndexDynamic, Uncoalesced, YieldUnused, warn
from flydsl.dialects import value_of
from flydsl.ir import ir, walks
from flydsl.ir.location import span_of_location

CACHE_LINE_BYTES = 64  # the shortest line of the chips that are supported
_REGIONS = ("scf.if", "scf.while", "scf.for")
_THREAD = ("gpu.thread_id", "gpu.lane_id", "rocdl.workitem.id.x", "rocdl.workitem.id.y", "rocdl.workitem.id.z", "rocdl.mbcnt.lo", "rocdl.mbcnt.hi")


def check_traced(module: ir.Module) -> None:
    """Warn about what the traced module shows."""
    for op in walks.collect(module.operation, _RULES.keys()):
        _RULES[op.name](op)


def _say(op: ir.Operation, make: Callable[..., FlyWarning], **fields: Any) -> None:
    span = span_of_location(op.location)
    if span is not None:
        warn(make(at=span, **fields))


def _barrier(op: ir.Operation) -> None:
    around = op.parent
    while around is not None and around.name not in ("gpu.func", "func.func", "builtin.module"):
        if around.name in _REGIONS and any(_depends_on_thread(v, {}) for v in _condition(around)):
            _say(op, BarrierDiverges)
            return
        around = around.parent


def _condition(region: ir.Operation) -> list[ir.Value]:
    """Return the values that decide whether, or how often, the body of a region runs."""
    if region.name == "scf.while":
        before = region.regions[0].blocks[0]
        return [before.operations[len(before.operations) - 1].operands[0]]
    return list(region.operands)[: 1 if region.name == "scf.if" else 3]


def _depends_on_thread(value: ir.Value, known: dict) -> bool:
    """Return whether a value is arithmetic on the thread's number. What memory holds and loops carry is not followed."""
    if value in known:
        return known[value]
    known[value] = False
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    op = owner.operation
    if op.name in _THREAD:
        known[value] = True
    elif op.name.startswith(("arith.", "fly.", "math.")) and "load" not in op.name:
        known[value] = any(_depends_on_thread(v, known) for v in op.operands)
    return known[value]


def _register_access(op: ir.Operation) -> None:
    tensor, coord = (op.operands[0], op.operands[1]) if op.name == "fly.memref_load" else (op.operands[1], op.operands[2])
    view = value_of(tensor.type)
    if getattr(view, "ptr", None) is not None and view.ptr.space == "register" and not la.tuple_is_static(value_of(coord.type)):
        _say(op, RegisterIndexDynamic)


def _loop_state(op: ir.Operation) -> None:
    if "fly.init" not in op.attributes:
        return
    count = ir.IntegerAttr(op.attributes["fly.init"]).value
    del op.attributes["fly.init"]
    arguments = op.regions[0].blocks[0].arguments
    for i in range(count):
        uses = [use.owner for use in arguments[1 + i].uses]
        is_read = any(user.operation.name != "scf.yield" for user in uses) or next(iter(op.results[i].uses), None) is not None
        if not is_read:
            _say(op, YieldUnused, index=i)


_RULES: dict[str, Callable[[ir.Operation], None]] = {
    "gpu.barrier": _barrier,
    "fly.memref_load": _register_access,
    "fly.memref_store": _register_access,
    "scf.for": _loop_state,
}


# --- coalescing --------------------------------------------------------------------------------------------------------

_BYTES = {"i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}


def check_lowered(module: ir.Module) -> None:
    """Warn about scattered accesses of global memory."""
    for op in walks.collect(module.operation, {"llvm.load", "llvm.store"}):
        address = op.operands[1 if op.name == "llvm.store" else 0]
        if str(address.type) != "!llvm.ptr<1>":
            continue
        width = _bytes(op.operands[0].type if op.name == "llvm.store" else op.results[0].type)
        stride = _pointer_step(address, {})
        if stride is not None and width and abs(stride) >= max(CACHE_LINE_BYTES, 4 * width):
            _say(op, Uncoalesced, stride=abs(stride), bytes=width, lines=64)


def _bytes(type_: ir.Type) -> int:
    text = str(type_)
    if text.startswith("vector<"):
        count, _, elem = text[7:-1].partition("x")
        return int(count) * _BYTES.get(elem, 0) if count.isdigit() else 0
    return _BYTES.get(text, 0)


def _pointer_step(pointer: ir.Value, known: dict) -> int | None:
    """Return by how many bytes a pointer moves from a lane to the next, or None where it is not known."""
    owner = pointer.owner
    if isinstance(owner, ir.Block):
        return 0
    op = owner.operation
    if op.name != "llvm.getelementptr" or len(op.operands) > 2:
        return None
    base = _pointer_step(op.operands[0], known)
    elem = _bytes(ir.TypeAttr(op.attributes["elem_type"]).value)
    step = _step(op.operands[1], known) if len(op.operands) == 2 else 0
    return None if base is None or step is None or not elem else base + elem * step


_SAME = ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_castui")


def _step(value: ir.Value, known: dict) -> int | None:
    """Return the coefficient of the thread's x number in an integer, or None where the value is not affine in it."""
    if value not in known:
        known[value] = _step_of(value, known)
    return known[value]


def _step_of(value: ir.Value, known: dict) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return 0  # arguments, and counters of loops; what a loop carries may depend on the thread, which only loses a warning
    op = owner.operation
    if op.name == "gpu.thread_id":
        return 1 if "x" in str(op.attributes["dimension"]).split(" ")[-1] else 0
    if op.name in _SAME:
        return _step(op.operands[0], known)
    steps = [_step(v, known) for v in op.operands]
    if all(s == 0 for s in steps):
        return 0
    if None in steps:
        return None
    if op.name in ("arith.addi", "arith.subi"):
        return steps[0] + steps[1] * (1 if op.name == "arith.addi" else -1)
    if op.name in ("arith.muli", "arith.shli") and steps[1] == 0:
        factor = _constant(op.operands[1])
        return None if factor is None else steps[0] * (factor if op.name == "arith.muli" else 1 << factor)
    return None


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.operation.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None

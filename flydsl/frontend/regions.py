"""Builders of scf.if, scf.for and scf.while, and the regions that are open while their bodies are traced.

A body is traced into its own block; the op with results is made when the body's values are known, and takes the
block over. An `scf.if` without results is made once. Each open region keeps the insertion point that it
interrupted.
"""

import threading
from typing import Any

from flydsl.diag import NoFiller
from flydsl.ir import constant, current, emit1, ir
from flydsl.ir.trace import create_op

_at_end = ir.InsertionPoint


class _Open(threading.local):
    def __init__(self):
        self.regions: list[Region] = []
        self.operands: list[Any] = []  # of expressions under way, see `logic`
        self.bound: list[Any] = []  # values of the variables that an expression changed


open_now = _Open()


class Region:
    """An op whose body is being traced. `block` is where ops go now."""

    __slots__ = ("loc", "op", "outer", "trace")

    def __init__(self):
        self.trace = current()
        self.outer = self.trace.ip
        self.loc = self.trace.loc(1)
        self.op: Any = None
        regions = open_now.regions
        if regions and not regions[-1].trace.alive:  # left by a trace that ended in an error
            regions.clear()
            open_now.operands.clear()
        regions.append(self)

    def enter(self, block: "ir.Block") -> None:
        self.trace.ip = _at_end(block)

    def close(self) -> None:
        """Go back to where the op stands."""
        self.trace.ip = self.outer
        regions = open_now.regions
        while regions and regions.pop() is not self:
            pass

    def abandon(self) -> None:
        """End an op that an exception left: valid, and never run. Python objects may hold values made in it."""
        self.complete()
        never = self.create("scf.if", (), (constant(self.trace.types.i1, False),), 2)
        block = never.regions[0].blocks.append()
        self.op.move_before(create_op("scf.yield", (), (), None, None, 0, self.loc, _at_end(block)))

    def complete(self) -> None:
        """End the op with any values."""
        raise NotImplementedError

    def create(self, name: str, types: list, operands: list, regions: int, attrs: dict | None = None) -> Any:
        return create_op(name, types, operands, attrs, None, regions, self.loc, self.outer)

    def terminate(self, block: "ir.Block", name: str, operands: list) -> None:
        create_op(name, (), operands, None, None, 0, self.loc, _at_end(block))


class IfRegion(Region):
    """scf.if. Call `then`, trace, optionally `otherwise`, trace, `finish`."""

    __slots__ = ("cond", "else_block", "then_block")

    def __init__(self, cond: "ir.Value"):
        super().__init__()
        self.cond = cond
        self.op = self.create("scf.if", (), (cond,), 2)
        self.then_block = self.else_block = None

    def then(self) -> None:
        self.then_block = self.op.regions[0].blocks.append()
        self.enter(self.then_block)

    def otherwise(self) -> None:
        self.else_block = self.op.regions[1].blocks.append()
        self.enter(self.else_block)

    def in_then(self) -> None:
        if self.then_block is None:
            self.then()
        else:
            self.enter(self.then_block)

    def in_else(self) -> None:
        if self.else_block is None:
            self.otherwise()
        else:
            self.enter(self.else_block)

    def finish(self, then_values: list, else_values: list) -> list:
        """End both branches with their values; return the results of the op."""
        types = [v.type for v in then_values]
        if self.then_block is None:
            self.then()
        if self.else_block is None and types:
            self.otherwise()
        self.terminate(self.then_block, "scf.yield", then_values)
        if self.else_block is not None:
            self.terminate(self.else_block, "scf.yield", else_values)
        self.close()
        if not types:
            return []
        empty = self.op
        self.op = self.create("scf.if", types, (self.cond,), 2)
        self.then_block.append_to(self.op.regions[0])
        self.else_block.append_to(self.op.regions[1])
        empty.erase()
        return list(self.op.results)

    def complete(self) -> None:
        self.finish([], [])

    def inline(self, block: "ir.Block") -> None:
        """Move the ops of a traced block to before the op, and drop the op."""
        for op in list(block.operations):
            op.operation.move_before(self.op)
        self.close()
        self.op.erase()


class LoopRegion(Region):
    """A loop with carried values: `arguments` inside, results of `finish` after."""

    __slots__ = ("arguments", "attrs", "body", "bounds", "inits", "iv")

    def __init__(self, inits: list, attrs: dict | None = None):
        super().__init__()
        self.inits, self.attrs = inits, attrs
        self.arguments: list = []

    def open_body(self, holder: "ir.Region", types: list) -> Any:
        self.body = ir.Block.create_at_start(holder, types, [self.loc] * len(types))
        self.enter(self.body)
        return self.body.arguments

    def move_body(self, holder: "ir.Region") -> None:
        self.body.append_to(holder)


class ForRegion(LoopRegion):
    """scf.for over [lower, upper) by step."""

    __slots__ = ()

    def __init__(self, bounds: tuple, inits: list, attrs: dict | None = None):
        super().__init__(inits, attrs)
        types = [v.type for v in inits]
        self.bounds = bounds
        self.op = self.create("scf.for", types, [*bounds, *inits], 1, attrs)
        args = self.open_body(self.op.regions[0], [bounds[0].type, *types])
        self.iv, self.arguments = args[0], list(args)[1:]

    def finish(self, values: list, added: list) -> list:
        """End the body; `added` are values first made in it, which leave through (value, filler) pairs."""
        if added:
            self._rebuild(added)
        self.terminate(self.body, "scf.yield", [*values, *(v for v, _ in added)])
        self.close()
        return list(self.op.results)

    def complete(self) -> None:
        self.finish(self.arguments, [])

    def _rebuild(self, added: list) -> None:
        inits = [*self.inits, *(filler for _, filler in added)]
        old = self.op
        self.op = self.create("scf.for", [v.type for v in inits], [*self.bounds, *inits], 1, self.attrs)
        for value, _ in added:
            self.body.add_argument(value.type, self.loc)
        self.move_body(self.op.regions[0])
        old.erase()


class WhileRegion(LoopRegion):
    """scf.while over (going, carried...): the condition is computed before the loop and after each iteration."""

    __slots__ = ("going",)

    def __init__(self, going: "ir.Value", inits: list):
        super().__init__(inits)
        self.going = going
        self.op = self.create("scf.while", (), (), 2)
        self.iv = None
        self.arguments = list(self.open_body(self.op.regions[1], [v.type for v in inits]))

    def finish(self, going: "ir.Value", values: list, added: list) -> list:
        self.terminate(self.body, "scf.yield", [going, *values, *(v for v, _ in added)])
        self.close()
        inits = [*self.inits, *(filler for _, filler in added)]
        types = [v.type for v in inits]
        old = self.op
        self.op = self.create("scf.while", types, [self.going, *inits], 2)
        before = ir.Block.create_at_start(self.op.regions[0], [self.going.type, *types], [self.loc] * (1 + len(types)))
        args = list(before.arguments)
        self.terminate(before, "scf.condition", args)
        for value, _ in added:
            self.body.add_argument(value.type, self.loc)
        self.move_body(self.op.regions[1])
        old.erase()
        return list(self.op.results)

    def complete(self) -> None:
        self.finish(constant(self.trace.types.i1, False), self.arguments, [])


class CountedWhileRegion(LoopRegion):
    """scf.while that counts like a `for` and can stop early: state is (counter, going, carried...)."""

    __slots__ = ()

    def __init__(self, bounds: tuple, inits: list):
        super().__init__(inits)
        self.bounds = bounds
        self.op = self.create("scf.while", (), (), 2)
        args = self.open_body(self.op.regions[1], [bounds[0].type, *(v.type for v in inits)])
        self.iv, self.arguments = args[0], list(args)[1:]

    def finish(self, stop: "ir.Value | bool", values: list, added: list) -> list:
        lower, upper, step = self.bounds
        types_of = self.trace.types
        true = constant(types_of.i1, True)
        after = emit1("arith.addi", lower.type, (self.iv, step))
        known = stop is True or stop is False
        going = constant(types_of.i1, not stop) if known else emit1("arith.xori", types_of.i1, (stop, true))
        self.terminate(self.body, "scf.yield", [after, going, *values, *(v for v, _ in added)])
        self.close()
        inits = [*self.inits, *(filler for _, filler in added)]
        types = [v.type for v in inits]
        old = self.op
        self.op = self.create("scf.while", [lower.type, *types], [lower, true, *inits], 2)
        self._condition([lower.type, types_of.i1, *types], upper)
        for value, _ in added:
            self.body.add_argument(value.type, self.loc)
        self.move_body(self.op.regions[1])
        old.erase()
        return list(self.op.results)[1:]

    def complete(self) -> None:
        self.finish(True, self.arguments, [])

    def _condition(self, types: list, upper: "ir.Value") -> None:
        before = ir.Block.create_at_start(self.op.regions[0], types, [self.loc] * len(types))
        iv, going, *carried = before.arguments
        ip, i1 = _at_end(before), self.trace.types.i1
        below = create_op("arith.cmpi", (i1,), (iv, upper), _signed_less(self.trace), None, 0, self.loc, ip).result
        both = create_op("arith.andi", (i1,), (below, going), None, None, 0, self.loc, ip).result
        self.terminate(before, "scf.condition", [both, iv, *carried])


def _signed_less(trace) -> dict:
    memo = trace.types.memo
    attrs = memo.get("frontend slt")
    if attrs is None:
        attrs = memo["frontend slt"] = {"predicate": ir.IntegerAttr.get(trace.types.i64, 2)}
    return attrs


def fillers(types: list, name: str = "") -> list:
    """Return a value of each type that is never read.

    Raises   NoFiller
    """
    return [_filler(t, name) for t in types]


def _filler(type_: "ir.Type", name: str) -> "ir.Value":
    if isinstance(type_, (ir.IntegerType, ir.IndexType, ir.FloatType)):
        return constant(type_, 0 if not isinstance(type_, ir.FloatType) else 0.0)
    if isinstance(type_, ir.VectorType):
        element = type_.element_type
        zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        return emit1("arith.constant", type_, (), {"value": ir.DenseElementsAttr.get_splat(type_, zero)})
    if str(type_).startswith("!llvm.ptr"):
        return emit1("llvm.mlir.zero", type_)
    raise NoFiller(name=name, type=type_, construct="this region")


def is_speculatable(block: "ir.Block") -> bool:
    """Return whether the ops of a block may run where the kernel would not have run them: no memory access, no trap."""
    return all(_op_is_speculatable(op.operation) for op in block.operations)


_PURE_DIALECTS = ("arith.", "math.", "index.")
_DIVISIONS = frozenset(
    (
        "arith.divsi",
        "arith.divui",
        "arith.remsi",
        "arith.remui",
        "arith.ceildivsi",
        "arith.floordivsi",
        "arith.ceildivui",
    )
)
_PURE_OPS = frozenset(
    (
        "vector.extract",
        "vector.insert",
        "vector.broadcast",
        "vector.bitcast",
        "vector.shape_cast",
        "vector.shuffle",
        "vector.reduction",
    )
    + (
        "vector.from_elements",
        "vector.extract_strided_slice",
        "vector.insert_strided_slice",
        "llvm.bitcast",
        "llvm.getelementptr",
    )
    + tuple(f"gpu.{name}" for name in ("thread_id", "block_id", "block_dim", "grid_dim", "lane_id"))
)


def _op_is_speculatable(op: "ir.Operation") -> bool:
    name = op.name
    if name in _DIVISIONS:
        return _is_nonzero_constant(op.operands[1])
    return name.startswith(_PURE_DIALECTS) or name in _PURE_OPS


def _is_nonzero_constant(value: "ir.Value") -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    attr = owner.attributes["value"]
    return isinstance(attr, ir.IntegerAttr) and attr.value > 0


def mark() -> tuple:
    """Return the state of open regions and expressions, for `unwind`."""
    return len(open_now.regions), len(open_now.operands)


def unwind(state: tuple) -> None:
    """Close what was opened since `mark` and left by an exception that the user's code caught."""
    regions, operands = state
    del open_now.operands[operands:]
    while len(open_now.regions) > regions:
        open_now.regions[-1].abandon()


def drop(state: tuple) -> None:
    """Forget what was opened since `mark`: the module is not going to be used."""
    regions, operands = state
    del open_now.operands[operands:]
    if len(open_now.regions) > regions:
        first = open_now.regions[regions]
        first.trace.ip = first.outer
        del open_now.regions[regions:]

"""fly-int-swizzle-simplify: cheaper integer arithmetic for swizzled offsets and power-of-two coordinates.

Before  arith on i32 and i64 as the layout lowering wrote it
After   the same values: a division or remainder of a value that cannot be negative by a power of two is a shift or a
        mask; masking what is already inside the mask, and shifting out what the mask kept, disappear; a swizzled offset
        `swizzle(x + c)` leaves as much of the constant c outside of the swizzle as it can: where c lies above the
        swizzle's bits it is added to the pointer (an immediate of the instruction), where it meets only zeros of x it
        is one exclusive or after swizzle(x); constants in the offset of a buffer pointer are added to the pointer as well,
        so that what remains is computed once for many accesses; a comparison with a constant that every value known to
        occur passes, or fails, is a constant

What is known about a value (no negative numbers, bits that are zero) comes from ids and their bounds, masks, shifts and
sums of such.
"""

from __future__ import annotations

from typing import NamedTuple

from flydsl.dialects import value_of
from flydsl.dialects.values import BUFFER_DESC
from flydsl.ir import Types, ir
from flydsl.passes.rewriting import Editor, entry_block, functions, replace, visit


class Range(NamedTuple):
    """A value known to lie in 0..`high`."""

    high: int


def run(module: ir.Module, types: Types) -> None:
    """Simplify every function of `module`."""
    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            _Simplifier(types, entry, _block_size(function)).run(entry)


def _block_size(function: ir.Operation) -> list[int]:
    attr = function.attributes["known_block_size"] if "known_block_size" in function.attributes else None
    return list(ir.DenseI32ArrayAttr(attr)) if attr is not None else [1024, 1024, 1024]


class _Simplifier:
    def __init__(self, types: Types, entry: ir.Block, block_size: list[int]):
        self.editor = Editor(types)
        self.editor.enter_function(entry)
        self.block_size = block_size
        self.known: dict[ir.Value, Range | None] = {}
        self.bits: dict[ir.Value, int] = {}

    def run(self, entry: ir.Block) -> None:
        visit(entry, self._simplify)

    def _simplify(self, op: ir.Operation) -> None:
        name = op.name
        if name == "fly.ptr_add" and len(op.operands) == 2:
            self._hoist_constant(op)
        elif name in ("arith.divsi", "arith.remsi", "arith.andi"):
            self._cheaper(op, name)
        elif name == "arith.cmpi":
            self._decide(op)

    def _decide(self, op: ir.Operation) -> None:
        """Replace a comparison `value < constant` (or the like) whose outcome is known."""
        fn = _OUTCOMES.get(ir.IntegerAttr(op.attributes["predicate"]).value)
        bound = constant_of(op.operands[1])
        known = self.range_of(op.operands[0]) if fn is not None and bound is not None else None
        outcome = fn(known.high, bound) if known is not None else None
        if outcome is not None:
            self.editor.before(op)
            replace(op, self.editor.constant(op.result.type, outcome))

    def _cheaper(self, op: ir.Operation, name: str) -> None:
        value, by = op.operands[0], constant_of(op.operands[1])
        known = self.range_of(value)
        if known is None or by is None or by <= 0:
            return
        type_ = op.result.type
        if name == "arith.andi":
            if by & (by + 1) == 0 and known.high <= by:
                replace(op, value)
            return
        if by & (by - 1):
            return
        self.editor.before(op)
        if name == "arith.divsi":
            shift = self.editor.constant(type_, by.bit_length() - 1)
            replace(op, value if by == 1 else self.editor.value("arith.shrui", type_, [value, shift]))
        elif known.high < by:
            replace(op, value)
        else:
            replace(op, self.editor.value("arith.andi", type_, [value, self.editor.constant(type_, by - 1)]))

    def _hoist_constant(self, op: ir.Operation) -> None:
        """Take the constant part of a swizzled offset out of the swizzle."""
        swizzle = _swizzle_of(op.operands[1])
        if swizzle is None:
            if value_of(op.operands[0].type).space == BUFFER_DESC:
                self._hoist_from_sum(op)
            return
        x, constant = _without_constant(swizzle.operand)
        above = 1 << swizzle.mask.bit_length()
        low = constant % above
        if constant == 0 or low & self.possible_bits(x):
            low, x, constant = 0, *self._only_above(swizzle.operand, x, constant, above)
            if constant == 0:
                return
        self.editor.before(op)
        type_ = x.type
        picked = self.editor.value("arith.andi", type_, [x, self.editor.constant(type_, swizzle.mask)])
        moved = self.editor.value("arith.shrui", type_, [picked, self.editor.constant(type_, swizzle.shift)])
        offset = self.editor.value("arith.xori", type_, [x, moved])
        flipped = low ^ ((low & swizzle.mask) >> swizzle.shift)
        if flipped:
            offset = self.editor.value("arith.xori", type_, [offset, self.editor.constant(type_, flipped)])
        op.operands[1] = offset
        total = ir.IntegerAttr(op.attributes["offset"]).value + constant - constant % above
        op.attributes["offset"] = ir.IntegerAttr.get(self.editor.types.i64, total)

    def _hoist_from_sum(self, op: ir.Operation) -> None:
        """Add the constants of a buffer offset to the pointer: 32-bit sums wrap alike in any order."""
        offset = op.operands[1]
        if offset.type != self.editor.types.i32:
            return
        terms: list[ir.Value] = []
        constant = _terms_of(offset, terms, _DEEPEST_SUM)
        if constant == 0 or not terms:
            return
        self.editor.before(op)
        total = terms[0]
        for term in terms[1:]:
            total = self.editor.value("arith.addi", total.type, [total, term])
        op.operands[1] = total
        static = ir.IntegerAttr(op.attributes["offset"]).value + constant
        wrapped = (static + (1 << 31)) % (1 << 32) - (1 << 31)
        op.attributes["offset"] = ir.IntegerAttr.get(self.editor.types.i64, wrapped)

    def _only_above(self, whole: ir.Value, x: ir.Value, constant: int, above: int) -> tuple[ir.Value, int]:
        """Return (x + low part, high part) of a constant whose low part has to stay inside."""
        low = constant % above
        if low == constant:
            return whole, 0
        self.editor.before(whole.owner.operation)
        return self.editor.value(
            "arith.addi", x.type, [x, self.editor.constant(x.type, low)]
        ) if low else x, constant - low

    def possible_bits(self, v: ir.Value) -> int:
        """Return a mask of the bits that may be set in an i32."""
        found = self.bits.get(v)
        if found is None:
            found = self.bits[v] = self._bits_of(v)
        return found

    def _bits_of(self, v: ir.Value) -> int:
        owner = v.owner
        if not isinstance(owner, (ir.Operation, ir.OpView)):
            return _ALL
        op = owner.operation
        known = self.range_of(v)
        limit = (1 << known.high.bit_length()) - 1 if known is not None else _ALL
        fn = _BITS.get(op.name)
        return limit & fn(*(self.possible_bits(o) for o in op.operands), op) if fn is not None else limit

    def range_of(self, v: ir.Value) -> Range | None:
        """Return what is known about a value, or None."""
        if v in self.known:
            return self.known[v]
        self.known[v] = None
        found = self._derive(v)
        self.known[v] = found
        return found

    def _derive(self, v: ir.Value) -> Range | None:
        owner = v.owner
        if not isinstance(owner, (ir.Operation, ir.OpView)):
            return None
        op = owner.operation
        fn = _DERIVE.get(op.name)
        return fn(self, op) if fn is not None else None

    def _constant(self, op: ir.Operation) -> Range | None:
        value = constant_of(op.results[0])
        return Range(value) if value is not None and value >= 0 else None

    def _thread_id(self, op: ir.Operation) -> Range:
        dimension = "xyz".index(str(op.attributes["dimension"])[-2])
        return Range(self.block_size[dimension] - 1)

    def _same(self, op: ir.Operation) -> Range | None:
        return self.range_of(op.operands[0])

    def _add(self, op: ir.Operation) -> Range | None:
        return self._both(op, lambda a, b: a + b)

    def _mul(self, op: ir.Operation) -> Range | None:
        return self._both(op, lambda a, b: a * b)

    def _or(self, op: ir.Operation) -> Range | None:
        return self._both(op, lambda a, b: (1 << max(a.bit_length(), b.bit_length())) - 1)

    def _both(self, op: ir.Operation, combine) -> Range | None:
        a, b = self.range_of(op.operands[0]), self.range_of(op.operands[1])
        if a is None or b is None:
            return None
        high = combine(a.high, b.high)
        return Range(high) if high < 1 << 31 else None

    def _and(self, op: ir.Operation) -> Range | None:
        mask = constant_of(op.operands[1])
        known = self.range_of(op.operands[0])
        highs = [
            h
            for h in (mask if mask is not None and mask >= 0 else None, known.high if known else None)
            if h is not None
        ]
        return Range(min(highs)) if highs else None

    def _shr(self, op: ir.Operation) -> Range | None:
        known, by = self.range_of(op.operands[0]), constant_of(op.operands[1])
        return Range(known.high >> by) if known is not None and by is not None else None

    def _div(self, op: ir.Operation) -> Range | None:
        known, by = self.range_of(op.operands[0]), constant_of(op.operands[1])
        return Range(known.high // by) if known is not None and by else None

    def _rem(self, op: ir.Operation) -> Range | None:
        known, by = self.range_of(op.operands[0]), constant_of(op.operands[1])
        return Range(min(known.high, by - 1)) if known is not None and by and by > 0 else None


_ALL = (1 << 32) - 1


def _sum_bits(a: int, b: int, op: ir.Operation) -> int:
    """Bits of a sum: without carries when the terms share none."""
    if a & b == 0:
        return a | b
    lowest = min(a & -a, b & -b)
    return ((1 << (a + b).bit_length()) - 1) & ~(lowest - 1) & _ALL


def _product_bits(a: int, b: int, op: ir.Operation) -> int:
    factor = constant_of(op.operands[1])
    if factor is not None and factor > 0 and factor & (factor - 1) == 0:
        return a * factor & _ALL
    return _ALL & ~((a & -a) * (b & -b) - 1)


def _shifted_bits(a: int, b: int, op: ir.Operation) -> int:
    by = constant_of(op.operands[1])
    return a >> by if by is not None and a < 1 << 31 else _ALL


_BITS = {
    "arith.constant": lambda op: _ALL if constant_of(op.result) is None else constant_of(op.result) & _ALL,
    "arith.addi": _sum_bits,
    "arith.muli": _product_bits,
    "arith.andi": lambda a, b, op: a & b,
    "arith.ori": lambda a, b, op: a | b,
    "arith.xori": lambda a, b, op: a | b,
    "arith.shrui": _shifted_bits,
    "arith.shrsi": _shifted_bits,
    "arith.index_cast": lambda a, op: a,
}


class Swizzled(NamedTuple):
    """`operand ^ ((operand & mask) >> shift)`."""

    operand: ir.Value
    mask: int
    shift: int


def _swizzle_of(v: ir.Value) -> Swizzled | None:
    """Return the swizzle that a value is, or None."""
    xor = _op_of(v, "arith.xori")
    shr = xor and (_op_of(xor.operands[1], "arith.shrsi") or _op_of(xor.operands[1], "arith.shrui"))
    masked = shr and _op_of(shr.operands[0], "arith.andi")
    if not masked or masked.operands[0] != xor.operands[0] or str(v.type) != "i32":
        return None
    mask, shift = constant_of(masked.operands[1]), constant_of(shr.operands[1])
    if mask is None or shift is None or mask <= 0 or mask & (mask >> shift):
        return None
    return Swizzled(xor.operands[0], mask, shift)


def _op_of(v: ir.Value, name: str) -> ir.Operation | None:
    owner = v.owner
    is_op = isinstance(owner, (ir.Operation, ir.OpView)) and owner.operation.name == name
    return owner.operation if is_op else None


_DEEPEST_SUM = 6


def _terms_of(v: ir.Value, terms: list[ir.Value], depth: int) -> int:
    """Append the terms of a sum to `terms`, without its constants; return the sum of those."""
    c = constant_of(v)
    if c is not None:
        return c
    add = _op_of(v, "arith.addi") if depth else None
    if add is None:
        terms.append(v)
        return 0
    return sum(_terms_of(operand, terms, depth - 1) for operand in add.operands)


def _without_constant(v: ir.Value) -> tuple[ir.Value, int]:
    """Return (x, c) with v = x + c."""
    total = 0
    while (add := _op_of(v, "arith.addi")) is not None:
        c = constant_of(add.operands[1])
        if c is None:
            break
        v, total = add.operands[0], total + c
    return v, total


# Predicate of arith.cmpi -> outcome of `x <predicate> bound` for every x in 0..high, or None where it depends on x.
_OUTCOMES = {
    2: lambda high, bound: True if high < bound else False if bound <= 0 else None,  # slt
    3: lambda high, bound: True if high <= bound else False if bound < 0 else None,  # sle
    4: lambda high, bound: True if bound < 0 else False if high <= bound else None,  # sgt
    5: lambda high, bound: True if bound <= 0 else False if high < bound else None,  # sge
}

_DERIVE = {
    "arith.constant": _Simplifier._constant,
    "gpu.thread_id": _Simplifier._thread_id,
    "gpu.lane_id": lambda self, op: Range(63),
    "arith.index_cast": _Simplifier._same,
    "arith.extsi": _Simplifier._same,
    "arith.extui": _Simplifier._same,
    "arith.trunci": _Simplifier._same,
    "arith.addi": _Simplifier._add,
    "arith.muli": _Simplifier._mul,
    "arith.ori": _Simplifier._or,
    "arith.xori": _Simplifier._or,
    "arith.andi": _Simplifier._and,
    "arith.shrui": _Simplifier._shr,
    "arith.shrsi": _Simplifier._shr,
    "arith.divsi": _Simplifier._div,
    "arith.divui": _Simplifier._div,
    "arith.remsi": _Simplifier._rem,
    "arith.remui": _Simplifier._rem,
}


def constant_of(v: ir.Value) -> int | None:
    """Return the integer of an `arith.constant`, or None."""
    owner = v.owner
    if not isinstance(owner, (ir.Operation, ir.OpView)) or owner.operation.name != "arith.constant":
        return None
    attr = owner.operation.attributes["value"]
    return ir.IntegerAttr(attr).value if isinstance(attr, ir.IntegerAttr) else None

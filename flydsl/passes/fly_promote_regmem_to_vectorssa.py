"""fly-promote-regmem-to-vectorssa: register memory becomes SSA values.

Before  `fly.alloca` of register memory, read and written through `fly.ptr_add` with static offsets
After   each allocation is cut into the pieces that its accesses need (an access is a union of whole pieces); every
        piece is an SSA vector or scalar, carried by `scf.for`, `scf.while` and `scf.if` where it is written inside;
        reads before any write are `ub.poison`. An allocation that is indexed dynamically, or whose address escapes,
        stays memory.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from typing import NamedTuple

from flydsl.dialects import value_of
from flydsl.ir import Types, ir, walks
from flydsl.passes.rewriting import Editor, entry_block, functions

Pieces = list[tuple[int, int]]  # (start, length) of each


class Slot:
    """One promotable allocation: `cuts` are the starts of its pieces, ascending; the last cut is its size."""

    def __init__(self, elem: ir.Type, cuts: list[int]):
        self.elem = elem
        self.cuts = cuts
        self._known: dict[tuple[int, int], Pieces] = {}

    def pieces(self, first: int, count: int) -> Pieces:
        """Return the pieces that make up an access."""
        known = self._known.get((first, count))
        if known is None:
            inside = self.cuts[bisect_left(self.cuts, first) : bisect_left(self.cuts, first + count) + 1]
            known = self._known[first, count] = [(s, e - s) for s, e in itertools.pairwise(inside)]
        return known


class Access(NamedTuple):
    """A load or store of `count` elements from `first` on of an allocation."""

    slot: Slot
    first: int
    count: int


class Step(NamedTuple):
    """An op that the pass looks at: an access, or an op with accesses inside; `inside` has a plan per block and region."""

    op: ir.Operation
    access: Access | None
    inside: tuple[tuple[Plan, ...], ...] = ()


Plan = list[Step]  # of one block, in order
State = dict[tuple[int, int], ir.Value]  # (id of slot, start of piece) -> current value


def run(module: ir.Module, types: Types) -> None:
    """Promote the register memory of every function of `module`."""
    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            _Promotion(types, entry).run()


class _Promotion:
    def __init__(self, types: Types, entry: ir.Block):
        self.types = types
        self.entry = entry
        self.editor = Editor(types)
        self.editor.enter_function(entry)
        self.pointers: dict[ir.Value, tuple[Slot, int]] = {}  # by value: an op's hash changes with its operands
        self.slots: list[Slot] = []
        self.chains: list[ir.Operation] = []

    def run(self) -> None:
        for alloca in walks.collect(self.entry.owner.operation, {"fly.alloca"}):
            self._collect(alloca)
        if not self.slots:
            return
        self._block(self._plan(self.entry), {})
        for op in reversed(self.chains):
            op.erase()

    # What is promotable

    def _collect(self, alloca: ir.Operation) -> None:
        accesses: list[tuple[ir.Operation, int, int]] = []
        pointers: list[tuple[ir.Value, int]] = []
        chain = [alloca]
        if not _follow(alloca.result, 0, accesses, pointers, chain):
            return
        elem = self.types.by_name[value_of(alloca.result.type).elem]
        size = ir.IntegerAttr(alloca.attributes["elems"]).value
        if any(_elem_type(op) != elem or first < 0 or first + n > size for op, first, n in accesses):
            return
        slot = Slot(elem, sorted({0, size, *(f for _, f, _ in accesses), *(f + n for _, f, n in accesses)}))
        self.slots.append(slot)
        self.chains += chain
        for pointer, first in pointers:
            self.pointers[pointer] = (slot, first)

    def _access(self, op: ir.Operation) -> Access | None:
        """Return what an op accesses of a promotable allocation."""
        place = _PLACES.get(op.name)
        found = None if place is None else self.pointers.get(op.operands[place])
        return None if found is None else Access(*found, _count(op))

    def _plan(self, block: ir.Block) -> Plan:
        plan = []
        for view in block.operations:
            op = view.operation
            access = self._access(op)
            if access is not None:
                plan.append(Step(op, access))
            elif len(op.regions):
                inside = tuple(tuple(self._plan(inner) for inner in region.blocks) for region in op.regions)
                if any(map(any, inside)):
                    plan.append(Step(op, None, inside))
        return plan

    # Rewriting

    def _block(self, plan: Plan, state: State) -> None:
        """Rewrite the accesses of a block; `state` is updated to what holds at its end."""
        for step in plan:
            op, access, inside = step
            if access is not None:
                if op.name == "fly.ptr_load":
                    self._load(op, access, state)
                else:
                    self._store(op, access, state)
            elif op.name in _STRUCTURED:
                _STRUCTURED[op.name](self, step, state)
            else:
                for inner in itertools.chain.from_iterable(inside):
                    self._block(inner, state)

    def _load(self, op: ir.Operation, access: Access, state: State) -> None:
        self.editor.before(op)
        pieces = access.slot.pieces(access.first, access.count)
        values = [(s - access.first, n, self._piece(access.slot, s, n, state)) for s, n in pieces]
        is_vector = isinstance(op.result.type, ir.VectorType)
        if len(values) == 1:
            result = self._as(values[0][2], values[0][1], is_vector, access.slot.elem)
        else:
            result = self.editor.value("ub.poison", op.result.type)
            for offset, n, v in values:
                result = self._insert(self._as(v, n, True, access.slot.elem), result, offset)
        op.result.replace_all_uses_with(result)
        op.erase()

    def _store(self, op: ir.Operation, access: Access, state: State) -> None:
        self.editor.before(op)
        value = op.operands[0]
        is_vector = isinstance(value.type, ir.VectorType)
        for start, n in access.slot.pieces(access.first, access.count):
            part = value
            if is_vector and n != access.count:
                part = self._extract(value, start - access.first, n, access.slot.elem)
            state[(id(access.slot), start)] = part if n > 1 else self._as(part, 1, False, access.slot.elem)
        op.erase()

    def _piece(self, slot: Slot, start: int, n: int, state: State) -> ir.Value:
        key = (id(slot), start)
        value = state.get(key)
        if value is None:
            value = state[key] = self.editor.value("ub.poison", self._type(slot, n))
        return value

    def _type(self, slot: Slot, n: int) -> ir.Type:
        return self.types.vector(n, slot.elem) if n > 1 else slot.elem

    def _as(self, v: ir.Value, n: int, vector: bool, elem: ir.Type) -> ir.Value:
        """Return a piece as a vector or as a scalar; pieces of one element are kept as scalars."""
        is_vector = isinstance(v.type, ir.VectorType)
        if is_vector == vector:
            return v
        if vector:
            return self.editor.value("vector.from_elements", self.types.vector(n, elem), [v])
        attrs = {"static_position": ir.DenseI64ArrayAttr.get([0])}
        return self.editor.value("vector.extract", elem, [v], attrs)

    def _insert(self, part: ir.Value, whole: ir.Value, offset: int) -> ir.Value:
        attrs = {"offsets": self.editor.ints(offset), "strides": self.editor.ints(1)}
        return self.editor.value("vector.insert_strided_slice", whole.type, [part, whole], attrs)

    def _extract(self, v: ir.Value, offset: int, n: int, elem: ir.Type) -> ir.Value:
        if n == 1:
            attrs = {"static_position": ir.DenseI64ArrayAttr.get([offset])}
            return self.editor.value("vector.extract", elem, [v], attrs)
        attrs = {"offsets": self.editor.ints(offset), "sizes": self.editor.ints(n), "strides": self.editor.ints(1)}
        return self.editor.value("vector.extract_strided_slice", self.types.vector(n, elem), [v], attrs)

    # Structured control flow

    def _written(self, step: Step) -> list[tuple[Slot, int, int]]:
        """Return the pieces (slot, start, length) that are stored to inside an op, in a fixed order."""
        found: dict[tuple[int, int], tuple[Slot, int, int]] = {}

        def look(plan: Plan) -> None:
            for op, access, inside in plan:
                if access is None:
                    for inner in itertools.chain.from_iterable(inside):
                        look(inner)
                elif op.name == "fly.ptr_store":
                    for start, n in access.slot.pieces(access.first, access.count):
                        found.setdefault((id(access.slot), start), (access.slot, start, n))

        for inner in itertools.chain.from_iterable(step.inside):
            look(inner)
        order = {id(slot): i for i, slot in enumerate(self.slots)}
        return sorted(found.values(), key=lambda p: (order[id(p[0])], p[1]))

    def _only_read(self, step: Step, state: State) -> None:
        """Rewrite an op that stores nothing: it carries no values."""
        for inner in itertools.chain.from_iterable(step.inside):
            self._block(inner, dict(state))

    def _current(self, op: ir.Operation, pieces: list, state: State) -> list[ir.Value]:
        self.editor.before(op)
        return [self._piece(slot, start, n, state) for slot, start, n in pieces]

    def _if(self, step: Step, state: State) -> None:
        op, pieces = step.op, self._written(step)
        if not pieces:
            self._only_read(step, state)
            return
        before = self._current(op, pieces, state)
        keys = [(id(s), start) for s, start, _ in pieces]
        ends = []
        for plans in step.inside:
            inner = dict(state)
            for plan in plans:
                self._block(plan, inner)
            ends.append([inner[k] for k in keys] if plans else before)
        types = [r.type for r in op.results] + [v.type for v in before]
        new = self.editor.before(op).op("scf.if", types, list(op.operands), _attrs(op), regions=2)
        for region, old, values in zip(new.regions, op.regions, ends, strict=True):
            if len(old.blocks):
                block = old.blocks[0]
                block.append_to(region)
                _extend_terminator(block, values)
            else:
                block = region.blocks.append()
                self.editor.at_end(block, op.location).op("scf.yield", (), values)
        self._take_results(op, new, keys, state)

    def _for(self, step: Step, state: State) -> None:
        op, pieces = step.op, self._written(step)
        if not pieces:
            self._only_read(step, state)
            return
        body = op.regions[0].blocks[0]
        before = self._current(op, pieces, state)
        keys = [(id(s), start) for s, start, _ in pieces]
        inner = dict(state)
        for key, v in zip(keys, before, strict=True):
            inner[key] = body.add_argument(v.type, op.location)
        self._block(step.inside[0][0], inner)
        types = [r.type for r in op.results] + [v.type for v in before]
        new = self.editor.before(op).op("scf.for", types, [*op.operands, *before], _attrs(op), regions=1)
        body.append_to(new.regions[0])
        _extend_terminator(body, [inner[k] for k in keys])
        self._take_results(op, new, keys, state)

    def _while(self, step: Step, state: State) -> None:
        op, pieces = step.op, self._written(step)
        if not pieces:
            self._only_read(step, state)
            return
        first, second = (region.blocks[0] for region in op.regions)
        first_plan, second_plan = (plans[0] for plans in step.inside)
        before = self._current(op, pieces, state)
        keys = [(id(s), start) for s, start, _ in pieces]
        types = [r.type for r in op.results] + [v.type for v in before]
        inner = dict(state)
        for key, v in zip(keys, before, strict=True):
            inner[key] = first.add_argument(v.type, op.location)
        self._block(first_plan, inner)
        at_condition = [inner[k] for k in keys]
        for key, v in zip(keys, before, strict=True):
            inner[key] = second.add_argument(v.type, op.location)
        self._block(second_plan, inner)
        new = self.editor.before(op).op("scf.while", types, [*op.operands, *before], _attrs(op), regions=2)
        first.append_to(new.regions[0])
        second.append_to(new.regions[1])
        _extend_terminator(first, at_condition)
        _extend_terminator(second, [inner[k] for k in keys])
        self._take_results(op, new, keys, state)

    def _take_results(self, old: ir.Operation, new: ir.Operation, keys: list, state: State) -> None:
        results = list(new.results)
        for mine, theirs in zip(old.results, results, strict=False):
            mine.replace_all_uses_with(theirs)
        for key, v in zip(keys, results[len(old.results) :], strict=True):
            state[key] = v
        old.erase()


_STRUCTURED = {"scf.if": _Promotion._if, "scf.for": _Promotion._for, "scf.while": _Promotion._while}


def _attrs(op: ir.Operation) -> dict:
    return {name: op.attributes[name] for name in op.attributes}


def _extend_terminator(block: ir.Block, values: list[ir.Value]) -> None:
    """Append operands to a block's terminator (scf.yield, scf.condition)."""
    old = block.operations[len(block.operations) - 1].operation
    operands = [*old.operands, *values]
    ir.Operation.create(old.name, [], operands, _attrs(old), None, 0, old.location, ir.InsertionPoint(old))
    old.erase()


def _elem_type(op: ir.Operation) -> ir.Type:
    type_ = op.result.type if op.name == "fly.ptr_load" else op.operands[0].type
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _count(op: ir.Operation) -> int:
    type_ = op.result.type if op.name == "fly.ptr_load" else op.operands[0].type
    return type_.shape[0] if isinstance(type_, ir.VectorType) else 1


_PLACES = {"fly.ptr_load": 0, "fly.ptr_store": 1}  # where the pointer stands among the operands


def _follow(pointer: ir.Value, offset: int, accesses: list, pointers: list, chain: list) -> bool:
    """Collect the accesses through `pointer`; return False when one of its uses keeps it in memory."""
    pointers.append((pointer, offset))
    for use in pointer.uses:
        op = use.owner.operation
        if op.name == "fly.ptr_add" and len(op.operands) == 1:
            chain.append(op)
            inner = offset + ir.IntegerAttr(op.attributes["offset"]).value
            if not _follow(op.result, inner, accesses, pointers, chain):
                return False
        elif op.name == "fly.ptr_load" or (op.name == "fly.ptr_store" and use.operand_number == 1):
            accesses.append((op, offset, _count(op)))
        else:
            return False
    return True

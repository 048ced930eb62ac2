"""Rules of `scf`: branches and loops that test at run time whether they are uniform.

A mask name holds None (all lanes), False (no lane) or a boolean array. Regions run only when a lane is active.
"""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.poison import texts
from flydsl.targets.sim.translate.rules import attribute, rule
from flydsl.targets.sim.translate.types import IrType
from flydsl.targets.sim.translate.values import Piece, Scalar, Struct, Value, Vector


@rule("scf.if")
def scf_if(t: FunctionTranslator, op: Any) -> None:
    cond = t.scalar(op.operands[0])
    m_then, m_else = t.fresh("m"), t.fresh("m")
    t.emit(f"{m_then}, {m_else} = h_split({t.mask}, {cond})")
    sides = [run_side(t, region, m) for region, m in zip(op.regions, (m_then, m_else))]
    results = list(op.results)
    if not results:
        for m, (lines, _) in zip((m_then, m_else), sides):
            emit_guarded(t, m, lines)
        return
    (then_lines, then_vals), (else_lines, else_vals) = sides
    slots = [slot for a, b in zip(then_vals, else_vals) for slot in paired_slots(a, b)]
    names = [(t.fresh(), t.fresh()) for _ in slots]
    for m, lines, side in ((m_then, then_lines, 0), (m_else, else_lines, 1)):
        emit_guarded(t, m, lines + slot_lines(t, m, slots, [n[side] for n in names], side))
        t.emit(f"else: {' = '.join(n[side] for n in names)} = None") if names else None
    merged = iter([t.let(merge_text(s, cond, n)) for s, n in zip(slots, names)])
    for result, a, b in zip(results, then_vals, else_vals):
        t.define(result, rebuild(t, t.type_of(result), a, b, merged))


def run_side(t: FunctionTranslator, region: Any, mask: str) -> tuple[list[str], list[Value]]:
    """Translate one region of an `scf.if`; return its lines and the values that it yields."""
    blocks = list(region.blocks)
    if not blocks:
        return [], []
    with t.captured(mask) as lines:
        terminator = t.run_block(blocks[0])
        values = [t.get(v) for v in terminator.operands]
    return lines, t.flatten(values)


def emit_guarded(t: FunctionTranslator, mask: str, lines: list[str]) -> None:
    """Emit lines under `if mask is not False`."""
    if lines:
        t.emit(f"if {mask} is not False:")
        t.lines.extend(lines)


# A slot is one carried Python name: (value, offset, length) of both sides, length 0 for scalars.
Slot = tuple[Value, Value, int, int]


def paired_slots(a: Value, b: Value) -> list[Slot]:
    """Return the names needed to carry a value that comes from `a` or `b`: one, or one per common piece."""
    if isinstance(a, Scalar):
        return [(a, b, 0, 0)]
    cuts = sorted({*a.cuts(), *b.cuts()})
    bounds = [0, *cuts, a.n]
    if cuts and a.n // (len(cuts) + 1) < 4:
        bounds = [0, a.n]
    return [(a, b, lo, hi - lo) for lo, hi in zip(bounds, bounds[1:])]


def slot_lines(t: FunctionTranslator, mask: str, slots: list[Slot], names: list[str], side: int) -> list[str]:
    """Return the lines that assign one side's values to `names` at the end of its region."""
    with t.captured(mask) as lines:
        for (a, b, off, length), name in zip(slots, names):
            t.emit(f"{name} = {slot_text(t, (a, b)[side], off, length)}")
    return lines


def slot_text(t: FunctionTranslator, v: Value, off: int, length: int) -> str:
    """Return the expression of a slot's value, an array of `length` elements or a scalar."""
    if isinstance(v, Scalar):
        return v.text
    pieces = v.slice(off, length)
    if len(pieces) == 1 and pieces[0].is_splat:
        return f"h_splat({pieces[0].text}, {length})"
    if len(pieces) == 1 and pieces[0].length == pieces[0].total:
        return pieces[0].text  # may stay a matrix accumulator
    return t.vector_text(v, off, length)


def merge_text(slot: Slot, cond: str, names: tuple[str, str]) -> str:
    vec = "v" if slot[3] else ""
    return f"h_merge{vec}({cond}, {names[0]}, {names[1]})"


def rebuild(t: FunctionTranslator, type_: IrType, a: Value, b: Value, names: Any) -> Value:
    """Make the value of `type_` from the next names of the iterator `names`."""
    if type_.elem == "struct":
        raise t.refuse("a struct carried through a branch", "carry its fields as separate values")
    if isinstance(a, Scalar):
        return Scalar(next(names), type_, None, a.base if a.base == b.base else None)
    pieces = []
    for *_, length in paired_slots(a, b):
        name = next(names)
        t.accs.add(name)
        pieces.append(Piece(name, 0, length, length))
    return Vector(type_, pieces)


# --- loops -----------------------------------------------------------------------------------------------------------


@rule("scf.for")
def scf_for(t: FunctionTranslator, op: Any) -> None:
    lo, hi, step = (t.scalar(v) for v in list(op.operands)[:3])
    block = op.regions[0].blocks[0]
    args = list(block.arguments)
    inits = [t.get(v) for v in list(op.operands)[3:]]
    carries = [Carry(t, arg, init) for arg, init in zip(args[1:], inits)]
    iv, m_in, outer = t.fresh(), t.fresh("m"), t.mask
    unsigned = attribute(op, "unsignedCmp") is not None
    bound = Scalar(iv, t.type_of(args[0]))
    first = mark_unwritten(t, carries, inits)
    with t.captured(m_in) as lines:
        t.define(args[0], bound)
        terminator = t.run_block(block)
        assign_carries(t, carries, [t.get(v) for v in terminator.operands], m_in, outer)
        if first is not None:
            t.emit(f"{first} = False")
        if not t.lines:
            t.emit("pass")
    for name in (n for c in carries for n, *_ in c.parts):
        t.poisons.guards.pop(name, None)
    site = t.site()
    t.emit(f"for {iv}, {m_in} in h_range(M, {site}, {lo}, {hi}, {step}, {outer}, {unsigned}):")
    t.lines.extend(lines)
    for result, carry in zip(op.results, carries):
        t.define(result, carry.value)


def mark_unwritten(t: FunctionTranslator, carries: list[Carry], inits: list[Value]) -> str | None:
    """Mark carried names whose initial value nothing wrote; they are unwritten while the returned name is true."""
    names = []
    for carry, init in zip(carries, inits):
        for name, off, length in carry.parts:
            part = init if isinstance(init, Scalar) else Vector(init.type, init.slice(off, length))
            found = t.poisons.names(part)
            if found and len(found) == len(texts(part)):
                names.append(name)
    if not names:
        return None
    first = t.let("True", "u")
    t.poisons.guards.update(dict.fromkeys(names, first))
    return first


class Carry:
    """A loop-carried value: its names, initialised before the loop, and the value that they form inside and after
    it."""

    def __init__(self, t: FunctionTranslator, arg: Any, init: Value):
        self.type = t.type_of(arg)
        if isinstance(init, Struct):
            raise t.refuse("a struct carried through a loop", "carry its fields as separate values")
        if isinstance(init, Scalar):
            name = t.let(init.text)
            self.parts = [(name, 0, 0)]
            self.value: Value = Scalar(name, self.type, None, init.base if base_is_kept(t, arg, init) else None)
        else:
            bounds = carry_bounds(arg, self.type.n)
            self.parts = []
            for lo, hi in zip(bounds, bounds[1:]):
                name = t.let(slot_text(t, init, lo, hi - lo))
                t.accs.add(name)
                self.parts.append((name, lo, hi - lo))
            self.value = Vector(self.type, [Piece(name, 0, n, n) for name, _, n in self.parts])
        t.define(arg, self.value)


def base_is_kept(t: FunctionTranslator, arg: Any, init: Scalar) -> bool:
    """Return whether a carried pointer only moves by address arithmetic from itself, so that it stays in its tensor."""
    if init.base is None:
        return False
    block = arg.owner
    number = arg.arg_number
    ops = list(block.operations)
    terminator = ops[-1].operation
    shift = 1 if block.owner.operation.name == "scf.for" else 0
    if shift == 0 or number - shift >= len(terminator.operands):
        return False
    value = terminator.operands[number - shift]
    while value != arg:
        owner = value.owner
        if not hasattr(owner, "name") or owner.name != "llvm.getelementptr":
            return False
        value = owner.operands[0]
    return True


def assign_carries(t: FunctionTranslator, carries: list[Carry], values: list[Value], inner: str, outer: str) -> None:
    """Emit the assignment of the next iteration's values; lanes outside `inner` keep theirs."""
    targets, sources = [], []
    for carry, value in zip(carries, values):
        for name, off, length in carry.parts:
            text = slot_text(t, value, off, length)
            if text != name:
                vec = "v" if length else ""
                targets.append(name)
                sources.append(f"h_carry{vec}({inner}, {outer}, {text}, {name})")
    if targets:
        t.emit(f"{', '.join(targets)} = {', '.join(sources)}")


def carry_bounds(arg: Any, n: int) -> list[int]:
    """Return where a loop-carried vector is cut: at the slices that the body takes from it or puts into it."""
    cuts: set[int] = set()
    for value in slice_chain(arg):
        for use in value.uses:
            cuts |= slice_cuts(use.owner, use.operand_number)
    bounds = sorted({0, n} | {c for c in cuts if 0 < c < n})
    return bounds if n // max(1, len(bounds) - 1) >= 2 else [0, n]


def slice_chain(arg: Any) -> list[Any]:
    """Return `arg` and the values that insertions make from it."""
    chain, todo = [], [arg]
    while todo and len(chain) < 4096:
        value = todo.pop()
        chain.append(value)
        for use in value.uses:
            owner = use.owner.operation
            if owner.name == "vector.insert_strided_slice" and use.operand_number == 1:
                todo.append(owner.results[0])
    return chain


def slice_cuts(owner: Any, operand: int) -> set[int]:
    """Return the cut points of one use."""
    op = owner.operation
    if op.name == "vector.extract_strided_slice":
        off = int(op.attributes["offsets"][0].value)
        return {off, off + int(op.attributes["sizes"][0].value)}
    if op.name == "vector.insert_strided_slice" and operand == 1:
        off = int(op.attributes["offsets"][0].value)
        from_type = str(op.operands[0].type)
        return {off, off + int(from_type[7 : from_type.index("x")])}
    return set()


@rule("scf.while")
def scf_while(t: FunctionTranslator, op: Any) -> None:
    before, after = (r.blocks[0] for r in op.regions)
    carries = [Carry(t, arg, t.get(v)) for arg, v in zip(before.arguments, op.operands)]
    outer, m_loop, m_go = t.mask, t.fresh("m"), t.fresh("m")
    out_types = [t.type_of(r) for r in op.results]
    outs = [t.fresh() for _ in out_types]
    for name in outs:
        t.emit(f"{name} = None")
    t.emit(f"{m_loop} = {outer}")
    with t.captured(m_loop) as lines:
        cond_op = t.run_block(before)
        cond = t.scalar(cond_op.operands[0])
        forwarded = [t.get(v) for v in list(cond_op.operands)[1:]]
        for name, value, type_ in zip(outs, forwarded, out_types):
            vec = "v" if type_.is_vector else ""
            t.emit(f"{name} = h_carry{vec}({m_loop}, {outer}, {slot_text(t, value, 0, type_.n or 0)}, {name})")
        t.emit(f"{m_go}, _ = h_split({m_loop}, {cond})")
        t.emit(f"if {m_go} is False: break")
        t.emit(f"M.count_trip({t.site()})")
        t.mask = m_go
        for arg, value in zip(after.arguments, forwarded):
            t.define(arg, value)
        terminator = t.run_block(after)
        assign_carries(t, carries, [t.get(v) for v in terminator.operands], m_go, outer)
        t.emit(f"{m_loop} = {m_go}")
    t.emit("while True:")
    t.lines.extend(lines)
    for result, name, type_ in zip(op.results, outs, out_types):
        if type_.is_vector:
            t.accs.add(name)
            t.define(result, Vector(type_, [Piece(name, 0, type_.n, type_.n)]))
        else:
            t.define(result, Scalar(name, type_))


@rule("scf.index_switch")
def scf_index_switch(t: FunctionTranslator, op: Any) -> None:
    """Only without results: a chain of branches on `arg == case`."""
    if len(op.results):
        raise t.refuse("with results", "use `if` / `elif`")
    value, rest = t.scalar(op.operands[0]), t.mask
    cases = [int(c) for c in attribute(op, "cases")]
    for case, region in zip(cases, list(op.regions)[1:]):
        taken, left = t.fresh("m"), t.fresh("m")
        t.emit(f"{taken}, {left} = h_split({rest}, {value} == {case}) if {rest} is not False else (False, False)")
        emit_guarded(t, taken, run_side(t, region, taken)[0])
        rest = left
    emit_guarded(t, rest, run_side(t, op.regions[0], rest)[0])


@rule("scf.execute_region")
def scf_execute_region(t: FunctionTranslator, op: Any) -> None:
    terminator = t.run_block(op.regions[0].blocks[0])
    for result, value in zip(op.results, terminator.operands):
        t.define(result, t.get(value))

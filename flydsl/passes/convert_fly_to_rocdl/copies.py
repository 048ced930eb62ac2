"""Copy atoms: which instruction moves the data, by the key of the atom's operation."""

from collections.abc import Callable

from flydsl.atoms.copy_ops import CopyAtom
from flydsl.diag import PassFailed
from flydsl.dialects import is_fly_type, value_of
from flydsl.ir import ir
from flydsl.layout.view import element_bits
from flydsl.passes.convert_fly_to_rocdl.conversion import PASS, Conversion, Raw, rule
from flydsl.passes.convert_fly_to_rocdl.pointers import (
    buffer_load,
    buffer_store,
    effective,
    from_memory,
    memory_type,
    scaled_bytes,
    to_memory,
)
from flydsl.passes.rewriting import registrar

State = dict[str, ir.Value]


class Call:
    """One atom call: `source` and `target` are pointers (Raw) or, for a register source, the value itself."""

    def __init__(self, conv: Conversion, op: ir.Operation):
        operands = list(op.operands)
        self.op = op
        self.atom: CopyAtom = value_of(operands[0].type)
        self.state = atom_state(operands[0])
        self.source = conv.pointer(operands[1]) if is_fly_type(operands[1].type) else operands[1]
        self.target = conv.pointer(operands[2]) if len(operands) > 2 else None
        self.result: ir.Type | None = op.results[0].type if len(op.results) else None

    @property
    def align_bytes(self) -> int:
        """The atom's promise: its own width."""
        return max(1, self.atom.op.bits // 8)

    def finish(self, value: ir.Value) -> None:
        """Replace the loaded vector."""
        self.op.results[0].replace_all_uses_with(value)


CopyRule = Callable[[Conversion, Call], None]
COPIES: dict[str, CopyRule] = {}
copy_rule = registrar(COPIES)  # decorator: the function is the rule of the copy operations with these `CopyOp.key`s


def atom_state(atom: ir.Value) -> State:
    """Return the state fields set on an atom value, the last setting of each."""
    state: State = {}
    owner = atom.owner
    while isinstance(owner, (ir.Operation, ir.OpView)) and owner.operation.name == "fly.atom_set_value":
        op = owner.operation
        state.setdefault(ir.StringAttr(op.attributes["field"]).value, op.operands[1])
        owner = op.operands[0].owner
    return state


@rule("static")
def _static(conv: Conversion, op: ir.Operation) -> None:
    """An atom: its calls have read the type."""


@rule("atom_set_value")
def _atom_set_value(conv: Conversion, op: ir.Operation) -> None:
    """Its calls have read the chain."""


@rule("copy_atom_call_ssa")
def _copy_atom_call_ssa(conv: Conversion, op: ir.Operation) -> None:
    call = Call(conv, op)
    fn = COPIES.get(call.atom.op.key)
    if fn is None:
        raise PassFailed(pass_name=PASS, problem=f"no rule for {call.atom} at {op.location}")
    call.atom.op.check(conv.arch)
    fn(conv, call)


@copy_rule("universal_copy")
def _universal_copy(conv: Conversion, call: Call) -> None:
    """A plain load, store, or both, of the atom's width."""
    if isinstance(call.source, Raw):
        if call.result is not None:
            stored = memory_type(conv, call.result)
            value = conv.load(effective(conv, call.source), stored, call.align_bytes)
            call.finish(from_memory(conv, value, call.result))
            return
        bits = call.atom.op.bits
        words = conv.types.vector(bits // 32, conv.types.i32) if bits > 32 else conv.types.by_name[f"i{bits}"]
        value = conv.load(effective(conv, call.source), words, call.align_bytes)
        conv.store(value, effective(conv, call.target), call.align_bytes)
        return
    conv.store(to_memory(conv, call.source), effective(conv, call.target), call.align_bytes)


@copy_rule("buffer_copy")
def _buffer_copy(conv: Conversion, call: Call) -> None:
    """A buffer load or store; `soffset` counts elements of the buffer tensor."""
    aux = call.atom.op.cache
    if call.result is not None:
        soffset = soffset_bytes(conv, call.state, call.source)
        value = buffer_load(conv, call.source, memory_type(conv, call.result), soffset, aux)
        call.finish(from_memory(conv, value, call.result))
        return
    soffset = soffset_bytes(conv, call.state, call.target)
    buffer_store(conv, call.target, to_memory(conv, call.source), soffset, aux)


def soffset_bytes(conv: Conversion, state: State, buffer: Raw) -> ir.Value | None:
    """Return the state field `soffset`, which counts elements, in bytes; None where it is not set."""
    offset = state.get("soffset")
    return None if offset is None else scaled_bytes(conv, offset, element_bits(buffer.info.elem))

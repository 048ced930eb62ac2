"""Rules of memory: LLVM loads, stores, address arithmetic, atomics, allocas, and buffer resources.

Pointers are integers: real addresses in global memory, byte offsets in LDS and private memory. A pointer that static
address arithmetic derived
from a kernel argument or an LDS array carries that as its `base`, and accesses are checked against it.
"""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator, call
from flydsl.targets.sim.translate.rules import attribute, int_attribute, rule
from flydsl.targets.sim.translate.types import IrType, element_of, layout_of, struct_layout
from flydsl.targets.sim.translate.values import Scalar, Struct

SPACES = {"p0": "f", "p1": "g", "p3": "l", "p4": "g", "p5": "p"}
DYNAMIC_INDEX = -(1 << 31)
LDS_APERTURE = 1 << 60
PRIVATE_APERTURE = 1 << 61


def space_of(t: FunctionTranslator, pointer: Any) -> str:
    """Return the memory letter of a pointer: g, l (LDS), p (private), f (generic)."""
    elem = t.type_of(pointer).elem
    if elem not in SPACES:
        raise t.refuse(f"through a pointer in address space {elem[1:]}", "use a global, LDS or private pointer")
    return SPACES[elem]


def base_text(t: FunctionTranslator, pointer: Scalar) -> str:
    """Return the literal that names what the pointer was derived from."""
    if pointer.base is None:
        return "None"
    if pointer.base[0] == "@":
        return repr(pointer.base[1:])
    return pointer.base[1:]


def dtype_text(type_: IrType) -> str:
    elem = "i64" if type_.is_pointer else type_.elem
    return f"T_{elem}"


@rule("llvm.load")
def load(t: FunctionTranslator, op: Any) -> None:
    pointer = t.get(op.operands[0])
    type_ = t.type_of(op.results[0])
    if type_.elem == "struct" or (type_.elem == "i1" and type_.is_vector):
        raise t.refuse(f"of type {op.results[0].type}", "load its elements")
    align = int_attribute(op, "alignment", layout_of(str(op.results[0].type))[1])
    note_width(t, type_)
    space = space_of(t, op.operands[0])
    t.accesses.note(space, "read", pointer.base, type_.nbytes)
    t.set(
        op.results[0],
        call(
            f"M.load_{space}",
            t.site(),
            pointer.text,
            base_text(t, pointer),
            dtype_text(type_),
            type_.n,
            align,
            t.mask,
        ),
    )


@rule("llvm.store")
def store(t: FunctionTranslator, op: Any) -> None:
    pointer = t.get(op.operands[1])
    type_ = t.type_of(op.operands[0])
    if type_.elem == "struct" or (type_.elem == "i1" and type_.is_vector):
        raise t.refuse(f"of type {op.operands[0].type}", "store its elements")
    align = int_attribute(op, "alignment", layout_of(str(op.operands[0].type))[1])
    note_width(t, type_)
    space = space_of(t, op.operands[1])
    t.accesses.note(space, "write", pointer.base, type_.nbytes)
    value = t.operand_array(op.operands[0])
    t.emit(call(f"M.store_{space}", t.site(), pointer.text, base_text(t, pointer), value, type_.n, align, t.mask))


def note_width(t: FunctionTranslator, type_: IrType) -> None:
    """Remember the widest value, which bounds how many lanes run at once."""
    t.widest_bytes = max(t.widest_bytes, type_.nbytes)


# --- addresses -------------------------------------------------------------------------------------------------------


@rule("llvm.getelementptr")
def getelementptr(t: FunctionTranslator, op: Any) -> None:
    pointer = t.get(op.operands[0])
    dynamic = iter(list(op.operands)[1:])
    raw = [int(i) for i in attribute(op, "rawConstantIndices")]
    text, offset, terms = str(attribute(op, "elem_type").value), 0, []
    for depth, index in enumerate(raw):
        if depth == 0:
            size = layout_of(text)[0]
        elif text.startswith("!llvm.struct<"):
            (start, text) = struct_layout(text)[0][index]
            offset += start
            continue
        else:
            text = element_of(text)
            size = layout_of(text)[0]
        if index == DYNAMIC_INDEX:
            value = t.get(next(dynamic))
            if value.const is not None:
                offset += int(value.const) * size
            else:
                terms.append(scaled(t, value, size))
        else:
            offset += index * size
    parts = [pointer.text, *terms] + ([t.constant("i64", offset).text] if offset else [])
    if len(parts) == 1:
        t.define(op.results[0], pointer)
        return
    static_sum = None
    if not terms and isinstance(pointer.const, int):
        static_sum = pointer.const + offset
        t.define(op.results[0], Scalar(t.constant("i64", static_sum).text, pointer.type, static_sum, pointer.base))
        return
    t.set_scalar(op.results[0], " + ".join(parts), pointer.base)


def scaled(t: FunctionTranslator, index: Scalar, size: int) -> str:
    """Return the text of `index * size` in 64 bits."""
    wide = index.text
    if index.type.elem != "i64":
        wide = t.cached(("wide", index.text), lambda: t.let(f"{index.text}.astype(T_i64)"))
    if size == 1:
        return wide
    if size & (size - 1) == 0:
        return f"({wide} << {t.constant('i64', size.bit_length() - 1).text})"
    return f"({wide} * {t.constant('i64', size).text})"


@rule("llvm.mlir.addressof")
def addressof(t: FunctionTranslator, op: Any) -> None:
    name = attribute(op, "global_name").value
    if name not in t.module.lds_offsets(t.name):
        raise t.refuse(f"of @{name}, which is not an LDS array", "only LDS arrays may be global variables of a kernel")
    offset = t.module.lds_offsets(t.name)[name]
    c = t.constant("i64", offset)
    t.define(op.results[0], Scalar(c.text, t.type_of(op.results[0]), offset, f"@{name}"))


@rule("llvm.ptrtoint")
def ptrtoint(t: FunctionTranslator, op: Any) -> None:
    t.set_scalar(op.results[0], f"{t.scalar(op.operands[0])}.astype(T_{t.type_of(op.results[0]).elem})")


@rule("llvm.inttoptr")
def inttoptr(t: FunctionTranslator, op: Any) -> None:
    src = t.type_of(op.operands[0])
    text = t.scalar(op.operands[0])
    if src.bits < 64:
        text = f"{text}.view(T_u{src.bits})"
    t.set_scalar(op.results[0], f"{text}.astype(T_i64)")


@rule("llvm.addrspacecast")
def addrspacecast(t: FunctionTranslator, op: Any) -> None:
    src, dst = t.type_of(op.operands[0]).elem, t.type_of(op.results[0]).elem
    value = t.get(op.operands[0])
    aperture = {"p3": LDS_APERTURE, "p5": PRIVATE_APERTURE}
    base = value.base
    shift = 0
    if dst == "p0" and src in aperture:
        shift = aperture[src]
    elif src == "p0" and dst in aperture:
        shift = -aperture[dst]
    if shift == 0:
        t.define(op.results[0], Scalar(value.text, t.type_of(op.results[0]), value.const, base))
        return
    t.set_scalar(op.results[0], f"{value.text} + {t.constant('i64', shift).text}", base)


@rule("llvm.alloca")
def alloca(t: FunctionTranslator, op: Any) -> None:
    count = t.const_of(op.operands[0])
    if count is None:
        raise t.refuse("with a run-time size", "give private arrays a static size")
    size, align = layout_of(str(attribute(op, "elem_type").value))
    align = max(int_attribute(op, "alignment", align), align, 4)
    offset = -(-t.private_bytes // align) * align
    t.private_bytes = offset + size * int(count)
    t.private_arrays.append((offset, size * int(count), t.site()))
    c = t.constant("i64", offset)
    name = f"@p{len(t.private_arrays) - 1}"
    t.define(op.results[0], Scalar(c.text, t.type_of(op.results[0]), offset, name))


# --- buffer resources ------------------------------------------------------------------------------------------------


@rule("rocdl.make.buffer.rsrc")
def make_rsrc(t: FunctionTranslator, op: Any) -> None:
    base = t.get(op.operands[0])
    args = ", ".join(t.scalar(v) for v in op.operands)
    t.set_scalar(op.results[0], f"h_rsrc({args})", base.base)


@rule("rocdl.raw.ptr.buffer.load")
def buffer_load(t: FunctionTranslator, op: Any) -> None:
    rsrc = t.get(op.operands[0])
    voffset, soffset = (t.scalar(v) for v in list(op.operands)[1:3])
    type_ = t.type_of(op.results[0])
    note_width(t, type_)
    t.accesses.note("g", "read", rsrc.base, t.type_of(op.results[0]).nbytes)
    t.set(
        op.results[0],
        call(
            "M.buffer_load",
            t.site(),
            rsrc.text,
            base_text(t, rsrc),
            voffset,
            soffset,
            dtype_text(type_),
            type_.n,
            t.mask,
        ),
    )


@rule("rocdl.ptr.s.buffer.load")
def s_buffer_load(t: FunctionTranslator, op: Any) -> None:
    rsrc = t.get(op.operands[0])
    type_ = t.type_of(op.results[0])
    zero = t.constant("i32", 0).text
    t.set(
        op.results[0],
        call(
            "M.buffer_load",
            t.site(),
            rsrc.text,
            base_text(t, rsrc),
            t.scalar(op.operands[1]),
            zero,
            dtype_text(type_),
            type_.n,
            t.mask,
        ),
    )


@rule("rocdl.raw.ptr.buffer.store")
def buffer_store(t: FunctionTranslator, op: Any) -> None:
    rsrc = t.get(op.operands[1])
    voffset, soffset = (t.scalar(v) for v in list(op.operands)[2:4])
    type_ = t.type_of(op.operands[0])
    note_width(t, type_)
    t.accesses.note("g", "write", rsrc.base, type_.nbytes)
    value = t.operand_array(op.operands[0])
    t.emit(call("M.buffer_store", t.site(), rsrc.text, base_text(t, rsrc), voffset, soffset, value, type_.n, t.mask))


@rule(*(f"rocdl.raw.ptr.buffer.atomic.{k}" for k in ("fadd", "fmax", "smax", "umin")))
def buffer_atomic(t: FunctionTranslator, op: Any) -> None:
    kind = {"fadd": "fadd", "fmax": "fmax", "smax": "max", "umin": "umin"}[op.name.rpartition(".")[2]]
    rsrc = t.get(op.operands[1])
    voffset, soffset = (t.scalar(v) for v in list(op.operands)[2:4])
    type_ = t.type_of(op.operands[0])
    value = t.operand_array(op.operands[0])
    t.accesses.note("g", "atomic", rsrc.base, type_.nbytes)
    t.set(
        op.results[0],
        call(
            "M.buffer_atomic",
            t.site(),
            repr(kind),
            rsrc.text,
            base_text(t, rsrc),
            voffset,
            soffset,
            value,
            type_.n,
            t.mask,
        ),
    )


@rule("rocdl.raw.ptr.buffer.atomic.cmpswap")
def buffer_cmpswap(t: FunctionTranslator, op: Any) -> None:
    new, expected, rsrc, voffset, soffset = list(op.operands)[:5]
    r = t.get(rsrc)
    t.accesses.note("g", "atomic", r.base, t.type_of(new).nbytes)
    args = [t.site(), r.text, base_text(t, r), t.scalar(voffset), t.scalar(soffset), t.scalar(expected), t.scalar(new)]
    t.set_scalar(op.results[0], call("M.buffer_cmpswap", *args, t.mask))


# --- atomics ---------------------------------------------------------------------------------------------------------


@rule("llvm.atomicrmw")
def atomicrmw(t: FunctionTranslator, op: Any) -> None:
    pointer = t.get(op.operands[0])
    value = t.operand_array(op.operands[1])
    type_ = t.type_of(op.results[0])
    kind = BIN_OPS[int(attribute(op, "bin_op").value)]
    used = any(True for _ in op.results[0].uses)
    note_atomic(t, op, pointer, type_)
    space = space_of(t, op.operands[0])
    text = call(
        "M.atomic", t.site(), repr(kind), repr(space), pointer.text, base_text(t, pointer), value, type_.n, t.mask, used
    )
    if used:
        t.set(op.results[0], text)
    else:
        t.emit(text)


# Values of LLVM's AtomicBinOp enumeration.
BIN_OPS = (
    "xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin", "fadd", "fsub", "fmax", "fmin",
    "uinc_wrap", "udec_wrap", "usub_cond", "usub_sat", "fmaximum", "fminimum",
)  # fmt: skip


@rule("llvm.cmpxchg")
def cmpxchg(t: FunctionTranslator, op: Any) -> None:
    pointer = t.get(op.operands[0])
    expected, new = (t.scalar(v) for v in list(op.operands)[1:3])
    space = space_of(t, op.operands[0])
    note_atomic(t, op, pointer, t.type_of(op.operands[1]))
    pair = t.let(
        f"M.cmpxchg({t.site()}, '{space}', {pointer.text}, {base_text(t, pointer)}, {expected}, {new}, {t.mask})"
    )
    type_ = t.type_of(op.results[0])
    fields = [Scalar(t.let(f"{pair}[{i}]"), f) for i, f in enumerate(type_.fields)]
    t.define(op.results[0], Struct(type_, fields))


def note_atomic(t: FunctionTranslator, op: Any, pointer: Scalar, type_: IrType) -> None:
    """Record an atomic; with an ordering of acquire or stronger, workgroups may synchronise through it."""
    t.accesses.note(space_of(t, op.operands[0]), "atomic", pointer.base, type_.nbytes)
    order = attribute(op, "ordering") or attribute(op, "success_ordering")
    if order is not None and int(order.value) >= 4:
        t.accesses.has_sync = True


@rule("llvm.fence")
def fence(t: FunctionTranslator, op: Any) -> None:
    t.accesses.has_sync = True
    t.emit(f"M.fence({t.site()}, {str(attribute(op, 'syncscope', ''))!r})")


@rule(
    "llvm.intr.prefetch",
    "llvm.intr.lifetime.start",
    "llvm.intr.lifetime.end",
    "rocdl.global.prefetch",
    "rocdl.flat.prefetch",
)
def no_effect(t: FunctionTranslator, op: Any) -> None:
    """Hints without a visible effect."""

"""Rules of copies between global memory and LDS that the lanes do not wait for, and of transposing LDS reads."""

from __future__ import annotations

from typing import Any

from flydsl import arch as chips
from flydsl.targets.sim.translate.function import FunctionTranslator, call
from flydsl.targets.sim.translate.memory import base_text
from flydsl.targets.sim.translate.rules import int_attribute, rule


@rule("rocdl.raw.ptr.buffer.load.lds", "rocdl.raw.ptr.buffer.load.async.lds")
def buffer_load_lds(t: FunctionTranslator, op: Any) -> None:
    rsrc, lds, size, voffset, soffset, offset = list(op.operands)[:6]
    size, offset = t.const_of(size), t.const_of(offset)
    if size is None or offset is None:
        raise t.refuse("with a run-time size or offset", "give both as constants")
    t.uses_dma = True
    r, p = t.get(rsrc), t.get(lds)
    note(t, "read", r.base, int(size))
    is_async = ".async." in op.name
    args = [t.site(), r.text, base_text(t, r), p.text, base_text(t, p), int(size), t.scalar(voffset), t.scalar(soffset)]
    t.emit(call("M.pending.buffer_to_lds", *args, int(offset), t.mask, is_async))


@rule("rocdl.global.load.lds", "rocdl.load.to.lds", "rocdl.global.load.async.lds", "rocdl.load.async.to.lds")
def global_load_lds(t: FunctionTranslator, op: Any) -> None:
    src, lds = (t.get(v) for v in list(op.operands)[:2])
    size, offset = int_attribute(op, "size"), int_attribute(op, "offset")
    t.uses_dma = True
    note(t, "read", src.base, size)
    if src.type.elem in ("p7", "p8"):
        raise t.refuse("from a buffer pointer", "use raw.ptr.buffer.load.lds")
    args = [t.site(), src.text, base_text(t, src), lds.text, base_text(t, lds), size, offset, t.mask]
    t.emit(call("M.pending.global_to_lds", *args, "'vmcnt'", "async" in op.name, False))


@rule(*(f"rocdl.global.load.async.to.lds.b{b}" for b in (8, 32, 64, 128)))
def global_load_async(t: FunctionTranslator, op: Any) -> None:
    src, lds = (t.get(v) for v in list(op.operands)[:2])
    size = int(op.name.rpartition("b")[2]) // 8
    t.uses_dma = True
    note(t, "read", src.base, size)
    offset = int_attribute(op, "offset")
    args = [t.site(), src.text, base_text(t, src), lds.text, base_text(t, lds), size, offset, t.mask]
    t.emit(call("M.pending.global_to_lds", *args, "'asynccnt'", False, True))


@rule(*(f"rocdl.cluster.load.async.to.lds.b{b}" for b in (8, 32, 64, 128)))
def cluster_load_async(t: FunctionTranslator, op: Any) -> None:
    """Every workgroup of the mask issues the load, and receives the data at its own LDS addresses."""
    src = t.get(op.operands[0])
    t.emit(call("M.check_multicast", t.site(), t.scalar(op.operands[2]), src.text, t.mask))
    global_load_async(t, op)


@rule(*(f"rocdl.global.store.async.from.lds.b{b}" for b in (8, 32, 64, 128)))
def global_store_async(t: FunctionTranslator, op: Any) -> None:
    dst, lds = (t.get(v) for v in list(op.operands)[:2])
    size = int(op.name.rpartition("b")[2]) // 8
    t.uses_dma = True
    note(t, "write", dst.base, size)
    offset = int_attribute(op, "offset")
    args = [t.site(), dst.text, base_text(t, dst), lds.text, base_text(t, lds), size, offset, t.mask]
    t.emit(call("M.pending.lds_to_global", *args))


def note(t: FunctionTranslator, kind: str, base: str | None, size: int) -> None:
    """Record a copy of `size` bytes per lane: its global side, and LDS."""
    t.accesses.note("g", kind, base, size)
    t.accesses.note("l", "write" if kind == "read" else "read", None, size)


@rule("rocdl.tensor.load.to.lds", "rocdl.tensor.store.from.lds")
def tensor_copy(t: FunctionTranslator, op: Any) -> None:
    t.uses_dma = True
    is_load = "load" in op.name
    t.accesses.note("l", "write" if is_load else "read", None, 2)
    if not is_load:
        t.accesses.note("g", "write", None, 2)
    groups = "".join(f"{t.operand_array(v)}, " for v in list(op.operands)[:4])
    t.emit(call(f"M.tensor_dma.{'load' if is_load else 'store'}", t.site(), f"({groups})", t.mask))


# (bits per element, bytes per lane)
TRANSPOSED = {"tr16.b64": (16, 8), "tr8.b64": (8, 8), "tr4.b64": (4, 8), "tr6.b96": (6, 12)}
TRANSPOSED_WAVE32 = {"tr16.b128": (16, 16), "tr8.b64": (8, 8), "tr4.b64": (4, 8), "tr6.b96": (6, 12)}
GLOBAL_TRANSPOSED = {"tr.b128": (16, 16), "tr.b64": (8, 8), "tr4.b64": (4, 8), "tr6.b96": (6, 12)}


@rule(*(f"rocdl.ds.read.{k}" for k in TRANSPOSED))
def ds_read_transposed(t: FunctionTranslator, op: Any) -> None:
    read_transposed(t, op, "M.pending.read_transposed", TRANSPOSED[op.name.removeprefix("rocdl.ds.read.")])


@rule(*(f"rocdl.ds.load.{k}" for k in TRANSPOSED_WAVE32))
def ds_load_transposed(t: FunctionTranslator, op: Any) -> None:
    form = TRANSPOSED_WAVE32[op.name.removeprefix("rocdl.ds.load.")]
    known_order(t, form)
    read_transposed(t, op, "M.pending.read_transposed", form)


@rule(*(f"rocdl.global.load.{k}" for k in GLOBAL_TRANSPOSED))
def global_load_transposed(t: FunctionTranslator, op: Any) -> None:
    form = GLOBAL_TRANSPOSED[op.name.removeprefix("rocdl.global.load.")]
    known_order(t, form)
    t.accesses.note("g", "read", t.get(op.operands[0]).base, form[1])
    read_transposed(t, op, "M.pending.read_global_transposed", form)


def known_order(t: FunctionTranslator, form: tuple[int, int]) -> None:
    """Refuse forms whose order of elements no source states."""
    if form[0] < 8 or not chips.get(t.module.arch).has("ds_load_tr"):
        what = f"{form[0]}-bit elements on {t.module.arch}: no source states how they move between the lanes"
        raise t.refuse(what, "load the elements as they lie and exchange them with ds_bpermute")


def read_transposed(t: FunctionTranslator, op: Any, reader: str, form: tuple[int, int]) -> None:
    bits, size = form
    p = t.get(op.operands[0])
    type_ = t.type_of(op.results[0])
    text = f"{reader}({t.site()}, {p.text}, {base_text(t, p)}, {bits}, {size}, T_{type_.elem}, {t.mask})"
    t.set(op.results[0], text if type_.is_vector else f"{text}[..., 0]")


@rule("rocdl.ds.atomic.barrier.arrive.rtn.b64")
def barrier_arrive(t: FunctionTranslator, op: Any) -> None:
    """Each lane subtracts its count from the LDS barrier and receives the barrier's word from before."""
    p = t.get(op.operands[0])
    t.accesses.note("l", "atomic", p.base, 8)
    args = [t.site(), "'barrier_arrive'", "'l'", p.text, base_text(t, p), t.scalar(op.operands[1]), None, t.mask, True]
    t.set(op.results[0], call("M.atomic", *args))


@rule("rocdl.ds.atomic.async.barrier.arrive.b64")
def async_barrier_arrive(t: FunctionTranslator, op: Any) -> None:
    """Each lane arrives once, after the asynchronous copies that its wave has issued."""
    p = t.get(op.operands[0])
    t.uses_dma = True
    t.accesses.note("l", "atomic", p.base, 8)
    t.emit(call("M.pending.async_arrive", t.site(), p.text, t.mask))

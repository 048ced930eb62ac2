"""Rules of `gpu`: ids, shuffles, barriers, printf."""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.rules import attribute, rule
from flydsl.targets.sim.translate.values import Scalar, Vector

IDS = {
    "gpu.thread_id": "tid", "gpu.block_id": "bid", "gpu.block_dim": "bdim", "gpu.grid_dim": "gdim",
    "gpu.global_id": "gid", "gpu.cluster_id": "cid", "gpu.cluster_block_id": "cbid", "gpu.cluster_dim_blocks": "cdim",
    "gpu.cluster_dim": "ncluster",
}  # fmt: skip
ROCDL_IDS = {"workitem.id": "tid", "workgroup.id": "bid", "cluster.workgroup.id": "cbid", "cluster.id": "cid"}


@rule(*IDS)
def ids(t: FunctionTranslator, op: Any) -> None:
    axis = str(attribute(op, "dimension")).split("dim ")[-1].strip("> ")
    named(t, op, f"{IDS[op.name]}_{axis}")


@rule(*(f"rocdl.{n}.{a}" for n in ROCDL_IDS for a in "xyz"))
def rocdl_ids(t: FunctionTranslator, op: Any) -> None:
    name, _, axis = op.name.removeprefix("rocdl.").rpartition(".")
    named(t, op, f"{ROCDL_IDS[name]}_{axis}")


@rule(
    "gpu.lane_id", "gpu.subgroup_id", "rocdl.wave.id", "gpu.subgroup_size", "gpu.num_subgroups", "rocdl.wavefrontsize"
)
def wave_ids(t: FunctionTranslator, op: Any) -> None:
    names = {"lane_id": "lane_id", "subgroup_id": "wave_id", "wave.id": "wave_id", "subgroup_size": "wave_size_value"}
    names |= {"num_subgroups": "num_waves", "wavefrontsize": "wave_size_value"}
    named(t, op, names[op.name.partition(".")[2]])


def named(t: FunctionTranslator, op: Any, name: str) -> None:
    """Bind the result to a machine register, converted to the result's width."""
    elem = t.type_of(op.results[0]).elem
    text = t.cached(("id", name, elem), lambda: t.let(f"M.{name}.astype(T_{elem})"))
    t.define(op.results[0], Scalar(text, t.type_of(op.results[0])))


@rule("gpu.shuffle")
def shuffle(t: FunctionTranslator, op: Any) -> None:
    mode = str(attribute(op, "mode")).split("<")[-1].strip("> ").split()[-1]
    value = t.get(op.operands[0])
    offset, width = t.scalar(op.operands[1]), t.scalar(op.operands[2])
    text = t.operand_array(op.operands[0])
    helper = "h_shuffle_vector" if isinstance(value, Vector) else "h_shuffle"
    static = t.const_of(op.operands[1])
    if mode == "xor" and static is not None and t.const_of(op.operands[2]) == t.module.wave_size:
        t.set(op.results[0], f"{helper}_xor(M, {text}, {int(static)}, {t.mask})")
        t.define(op.results[1], t.constant("i1", True))
        return
    pair = t.let(f"{helper}_any(M, {t.site()}, '{mode}', {text}, {offset}, {width}, {t.mask})")
    t.set(op.results[0], f"{pair}[0]")
    t.set_scalar(op.results[1], f"{pair}[1]")


@rule("gpu.rotate")
def rotate(t: FunctionTranslator, op: Any) -> None:
    offset, width = (int(attribute(op, n).value) for n in ("offset", "width"))
    pair = t.let(f"h_rotate(M, {t.scalar(op.operands[0])}, {offset}, {width}, {t.mask})")
    t.set_scalar(op.results[0], f"{pair}[0]")
    t.set_scalar(op.results[1], f"{pair}[1]")


@rule("gpu.ballot")
def ballot(t: FunctionTranslator, op: Any) -> None:
    elem = t.type_of(op.results[0]).elem
    t.set_scalar(op.results[0], f"h_ballot(M, {t.scalar(op.operands[0])}, {t.mask}, T_{elem})")


@rule("gpu.subgroup_broadcast")
def subgroup_broadcast(t: FunctionTranslator, op: Any) -> None:
    if len(op.operands) == 2:
        t.set_scalar(op.results[0], f"h_readlane(M, {t.scalar(op.operands[0])}, {t.scalar(op.operands[1])}, {t.mask})")
    else:
        t.set_scalar(op.results[0], f"h_readfirstlane(M, {t.scalar(op.operands[0])}, {t.mask})")


@rule("gpu.barrier", "rocdl.barrier", "rocdl.s.barrier")
def barrier(t: FunctionTranslator, op: Any) -> None:
    t.has_barrier = True
    t.emit(f"yield M.barrier({t.site()}, {t.mask}, {op.name != 'rocdl.s.barrier'})")


@rule("gpu.printf")
def printf(t: FunctionTranslator, op: Any) -> None:
    text = attribute(op, "format").value
    args = "".join(f"{t.operand_array(v)}, " for v in op.operands)
    t.emit(f"M.printf({t.site()}, {text!r}, ({args}), {t.mask})")


@rule("gpu.return")
def gpu_return(t: FunctionTranslator, op: Any) -> None:
    return

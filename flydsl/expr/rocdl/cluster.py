"""Clusters of workgroups on gfx1250: position in the cluster, and the barrier of a cluster."""

from typing import Any

from flydsl.expr.numeric import Boolean, Index
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.values import const_i32, dsl, operand, require
from flydsl.expr.rocdl.wave import wave_id
from flydsl.ir import current, emit, emit1, ir

CLUSTER_BARRIER_ID = -3
CLUSTER_WAIT_ALL = -3
_IDS = {axis: builder(f"cluster_workgroup_id_{axis}") for axis in "xyz"}
_signal, _wait = builder("s_barrier_signal"), builder("s_barrier_wait")
_EQUAL = 0  # arith.cmpi predicate


def cluster_workgroup_id_x(res: Any = None) -> Any:
    """Return the workgroup's x in its cluster."""
    return _IDS["x"](current().types.i32 if res is None else res)


def cluster_workgroup_id_y(res: Any = None) -> Any:
    """Return the workgroup's y in its cluster."""
    return _IDS["y"](current().types.i32 if res is None else res)


def cluster_workgroup_id_z(res: Any = None) -> Any:
    """Return the workgroup's z in its cluster."""
    return _IDS["z"](current().types.i32 if res is None else res)


def compute_cluster_position() -> tuple[Any, Any]:
    """Return (x, y) of the workgroup in its cluster, as Index."""
    index = current().types.index
    x, y = cluster_workgroup_id_x(), cluster_workgroup_id_y()
    return tuple(dsl(Index, emit1("arith.index_cast", index, (operand(v),))) for v in (x, y))


def is_wave_leader() -> Any:
    """Return whether this is the first wave of its workgroup: one wave signals for all."""
    types = current().types
    predicate = ir.IntegerAttr.get(types.i64, _EQUAL)
    attrs = {"predicate": predicate}
    return dsl(Boolean, emit1("arith.cmpi", types.i1, (operand(wave_id()), const_i32(0)), attrs))


def cluster_signal_once_per_wg() -> None:
    """Signal the cluster's barrier, by the first wave of the workgroup only."""
    require("clusters", "cluster.cluster_signal_once_per_wg")
    leader = operand(is_wave_leader())
    op = emit("scf.if", (), (leader,), None, 2)
    trace = current()
    with trace.in_block(op.regions[0].blocks.append()):
        _signal(CLUSTER_BARRIER_ID)
        emit("scf.yield")


def cluster_wait() -> None:
    """Wait until all workgroups of the cluster have signalled."""
    require("clusters", "cluster.cluster_wait")
    _wait(CLUSTER_BARRIER_ID)


def cluster_barrier() -> None:
    """Signal the cluster's barrier once per workgroup and wait for all."""
    cluster_signal_once_per_wg()
    cluster_wait()

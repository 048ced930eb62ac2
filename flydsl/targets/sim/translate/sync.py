"""Rules of waits, split barriers and scheduling hints."""

from __future__ import annotations

from typing import Any

from flydsl.targets.sim.translate.function import FunctionTranslator
from flydsl.targets.sim.translate.rules import attribute, int_attribute, rule

HINTS = (
    "rocdl.sched.barrier", "rocdl.sched.group.barrier", "rocdl.iglp.opt", "rocdl.s.setprio", "rocdl.s.nop",
    "rocdl.s.sleep", "rocdl.wave.barrier", "rocdl.s.wait.expcnt",
)  # fmt: skip


@rule(*HINTS)
def hint(t: FunctionTranslator, op: Any) -> None:
    """Program order is kept, so hints to the scheduler have no effect."""


@rule("rocdl.s.waitcnt")
def s_waitcnt(t: FunctionTranslator, op: Any) -> None:
    t.emit(f"M.pending.waitcnt({t.site()}, {int_attribute(op, 'bitfield')}, {t.mask})")


COUNTERS = {
    "loadcnt": "vmcnt",
    "storecnt": "storecnt",
    "dscnt": "lgkmcnt",
    "asynccnt": "asynccnt",
    "tensorcnt": "tensorcnt",
}


@rule(*(f"rocdl.s.wait.{c}" for c in COUNTERS))
def s_wait(t: FunctionTranslator, op: Any) -> None:
    counter = COUNTERS[op.name.rpartition(".")[2]]
    t.emit(f"M.pending.wait({t.site()}, '{counter}', {int_attribute(op, 'count')}, {t.mask})")


@rule("rocdl.asyncmark")
def asyncmark(t: FunctionTranslator, op: Any) -> None:
    t.emit(f"M.pending.mark({t.site()})")


@rule("rocdl.wait.asyncmark")
def wait_asyncmark(t: FunctionTranslator, op: Any) -> None:
    t.emit(f"M.pending.wait_mark({t.site()}, {int_attribute(op, 'count')}, {t.mask})")


@rule("rocdl.s.barrier.signal", "rocdl.s.barrier.signal.isfirst")
def barrier_signal(t: FunctionTranslator, op: Any) -> None:
    """Arrival: the wait does the waiting; before it, waves of a workgroup do not meet."""
    if len(op.results):
        raise t.refuse("", "use s_barrier_signal without a result")
    t.emit(f"M.barrier_signal({t.site()}, {int(attribute(op, 'id').value)}, {t.mask})")


@rule("rocdl.s.barrier.wait")
def barrier_wait(t: FunctionTranslator, op: Any) -> None:
    t.has_barrier = True
    t.emit(f"yield M.barrier({t.site()}, {t.mask}, False)")

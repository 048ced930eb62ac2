"""The simulator's checks for users: collect findings, choose checks, stop inside a kernel.

    import flydsl.sim
    with flydsl.sim.check(on_finding="collect", checks="default,holes") as findings:
        launch(a, b, c)
    for f in findings:
        print(f)            # or f.kind, f.span.line, f.other, f.tensor, f.index, f.block, f.thread
    print(findings.summary())

Outside a `check` block the environment decides: `FLYDSL_SIM_CHECK`, `FLYDSL_SIM_ON_FINDING`, `FLYDSL_SIM_SCHEDULE`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from flydsl.diag.errors.simulator import SimFindings
from flydsl.targets.sim import session
from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.options import CHECKS, REPORTS, VALUES, parse_checks
from flydsl.targets.sim.report import RunReport
from flydsl.targets.sim.session import Findings
from flydsl.targets.sim.streams import order
from flydsl.targets.sim.trace import BREAKPOINT, Stop
from flydsl.targets.sim.trace import on_breakpoint as handlers

__all__ = [
    "CHECKS", "REPORTS", "VALUES", "Finding", "Findings", "RunReport", "SimFindings", "Stop", "breakpoint", "check",
    "closing_line", "on_breakpoint", "synchronize",
]  # fmt: skip


@contextmanager
def check(
    on_finding: str = "collect", checks: str | Iterable[str] | None = None, schedule: str | None = None
) -> Iterator[Findings]:
    """Check the launches inside the block and collect what is found.

    `on_finding`: `collect` lets launches run on and only collects; `warn` also issues a Python warning per fault;
    `raise` stops the launch at its first fault with `SimFindings` (which is collected, too). `checks`: names, or the
    groups `default`, `reports`, `values`, `all`, `none`; without it those of FLYDSL_SIM_CHECK. `schedule`: order of
    waves.

    Raises   ValueError: an unknown name
    """
    fields: dict[str, object] = {"on_finding": on_finding}
    if checks is not None:
        fields["checks"] = parse_checks(checks)
    if schedule is not None:
        fields["schedule"] = schedule
    with session.scope(**fields) as found:
        yield found


def synchronize(stream: int | None = None) -> None:
    """State that the host waits here for a stream (a handle), or for all: later launches are ordered after its launches.

    For programs that order streams in a way that the simulator does not see; `flydsl sim` sees what torch does.
    """
    order.synchronize(stream)


def breakpoint(**values: Any) -> None:
    """Stop a kernel here: open a Python prompt on the values of its variables, in all lanes that are active.

    Without arguments it shows the caller's numbers and vectors by their names; `breakpoint(x=x + 1)` shows what is
    given. Without a terminal the values are printed. Only for the simulator: remove it before compiling for a GPU.
    """
    from flydsl.ir import emit, ir, is_tracing

    if not is_tracing():
        import builtins

        builtins.breakpoint()
        return
    shown: dict[str, Any] = {}
    for name, value in (values or sys._getframe(1).f_locals).items():
        parts = value.__extract_to_ir_values__() if hasattr(value, "__extract_to_ir_values__") else []
        if len(parts) == 1 and str(parts[0].type).startswith(("i", "f", "bf", "vector")):
            shown[name] = parts[0]
    text = BREAKPOINT + " ".join(shown)
    emit("gpu.printf", (), tuple(shown.values()), {"format": ir.StringAttr.get(text)})


@contextmanager
def on_breakpoint(handler: Callable[[Stop], object]) -> Iterator[None]:
    """Call `handler(stop)` at breakpoints inside the block instead of opening a prompt."""
    handlers.append(handler)
    try:
        yield
    finally:
        handlers.pop()


def closing_line() -> str:
    """Return one line about all launches of this process so far: checked, approximated, not modelled, found."""
    return session.totals.line()

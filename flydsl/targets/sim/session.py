"""What launches in the simulator leave behind: the scope that collects findings, and totals of this process.

The runtime asks `options()` before a launch and hands its report to `deliver`; `flydsl.sim.check` opens scopes.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flydsl.diag import SwitchValue
from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.options import GROUPS, Allocation, SimOptions, parse_checks
from flydsl.targets.sim.program import Program
from flydsl.targets.sim.recorded import RecordedLaunch, snapshot
from flydsl.targets.sim.report import RunReport, failure
from flydsl.targets.sim.streams import Footprint, order
from flydsl.targets.sim.trace import Trace
from flydsl.utils import env
from flydsl.utils.logger import log
from flydsl.utils.record import record

NOT_MODELLED = ("time", "caches", "clock and power", "the compiler's instruction order", "several GPUs")


class Findings(list):
    """The findings of a scope, equal ones of several launches merged; `runs`: the reports of its launches."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[RunReport] = []

    def of(self, severity: str) -> list[Finding]:
        """Return the findings of one severity: error, warning or note."""
        return [f for f in self if f.severity == severity]

    @property
    def errors(self) -> list[Finding]:
        """The faults."""
        return self.of("error")

    def add(self, found: Iterable[Finding]) -> None:
        """Append findings; one that is known from an earlier launch only counts up."""
        for finding in found:
            key = (finding.kernel, finding.key())
            known = next((f for f in self if (f.kernel, f.key()) == key), None)
            if known is None:
                self.append(finding)
            elif known is not finding:
                known.count += finding.count

    @property
    def banks(self) -> list[Any]:
        """Rows of the bank-conflict report, worst first; they need the check `banks`."""
        rows = [row for run in self.runs if run.banks is not None for row in run.banks.rows.values()]
        return sorted(rows, key=lambda r: -r.degree)

    def summary(self) -> str:
        """Return the closing line of these launches."""
        totals = Totals()
        for run in self.runs:
            totals.count(run)
        return totals.line()

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self), self.summary()])


@dataclass
class Totals:
    """What launches checked, approximated and found."""

    launches: Counter = field(default_factory=Counter)
    checks: set[str] = field(default_factory=set)
    approximated: set[str] = field(default_factory=set)
    found: Counter = field(default_factory=Counter)
    schedules: set[str] = field(default_factory=set)

    def count(self, run: RunReport) -> None:
        """Add a launch."""
        self.launches[run.kernel] += 1
        self.checks |= run.checks
        self.approximated.update(run.approximated)
        self.schedules.add(run.schedule)
        self.found.update(f.severity for f in run.findings)

    def line(self) -> str:
        """Return one line: what was checked, what was approximated, what is not modelled, what was found."""
        if not self.launches:
            return "simulator: no launch"
        launches, kernels = sum(self.launches.values()), len(self.launches)
        counts = [(self.found[s], s) for s in ("error", "warning", "note") if self.found[s]]
        found = ", ".join(f"{n} {s}{'s' * (n > 1)}" for n, s in counts) or "nothing"
        parts = [
            f"simulator: {launches} launch{'es' * (launches > 1)} of {kernels} kernel{'s' * (kernels > 1)}",
            f"checked: {', '.join(sorted(self.checks)) or 'nothing'} ({', '.join(sorted(self.schedules))})",
            f"approximated: {', '.join(sorted(self.approximated)) or 'nothing'}",
            f"not modelled: {', '.join(NOT_MODELLED)}",
            f"found: {found}",
        ]
        return "; ".join(parts)


@record
class Scope:
    """Settings of one `check` block; None leaves what the environment says."""

    found: Findings
    fields: dict[str, Any]


_scope: ContextVar[Scope | None] = ContextVar("flydsl_sim_scope", default=None)
totals = Totals()


@contextmanager
def scope(**fields: Any) -> Iterator[Findings]:
    """Collect the findings of the launches inside the block; `fields` override options of the environment."""
    found = Findings()
    SimOptions(**(env_fields() | fields))  # refuses bad names at the `with` line
    token = _scope.set(Scope(found, fields))
    try:
        yield found
    finally:
        _scope.reset(token)


SCHEDULES_WANTED = "auto, lockstep, ahead, reverse, or random:SEED with a whole number"
CHECKS_WANTED = f"a comma list of {', '.join((*GROUPS, *GROUPS['all']))}; a `-` before a name takes it out"


def env_fields() -> dict[str, Any]:
    """Return the options that the environment sets.

    Raises   SwitchValue: it names checks or an order of waves that do not exist
    """
    fields: dict[str, Any] = {}
    if env.sim.check:
        fields["checks"] = parse_checks(env.sim.check)
        _check_switch("FLYDSL_SIM_CHECK", env.sim.check, CHECKS_WANTED, checks=fields["checks"])
    if env.sim.schedule:
        fields["schedule"] = env.sim.schedule
        _check_switch("FLYDSL_SIM_SCHEDULE", env.sim.schedule, SCHEDULES_WANTED, schedule=env.sim.schedule)
    if env.sim.on_finding:
        fields["on_finding"] = env.sim.on_finding
    if env.sim.trace:
        fields["trace"] = Trace.parse(env.sim.trace, env.sim.trace_lines)
    return fields


def _check_switch(variable: str, text: str, expected: str, **fields: Any) -> None:
    try:
        SimOptions(**fields)
    except ValueError as e:
        raise SwitchValue(variable=variable, value=text, expected=expected) from e


def options() -> SimOptions:
    """Return the options in force: those of the innermost scope, else of the environment, else the defaults."""
    inner = _scope.get()
    return SimOptions(**(env_fields() | (inner.fields if inner is not None else {})))


def dump_of(
    program: Program, kernel: str, geometry: dict[str, Any], args: list[Any], allocations: list[Any], options: SimOptions
) -> RecordedLaunch | None:
    """Return the launch with a copy of its memory if `FLYDSL_SIM_DUMP` wants launches with faults."""
    if not env.sim.dump:
        return None
    checks = sorted(options.checks)
    return RecordedLaunch(
        program.text, program.arch, kernel, geometry, args, allocations, snapshot(allocations), checks, options.schedule
    )


def save_dump(dump: RecordedLaunch | None, found: list[Finding]) -> None:
    """Write a launch with faults to the folder of `FLYDSL_SIM_DUMP` and say how to repeat it."""
    if dump is not None and any(f.severity == "error" for f in found):
        home = dump.save(Path(env.sim.dump), found)
        log.warning("launch of %s written; run it again: python -m flydsl.tools.replay %s", dump.kernel, home)


def deliver(run: RunReport, options: SimOptions, dump: RecordedLaunch | None = None) -> None:
    """Take the report of a launch that ended: to the scope, to Python's warnings, to the log, to the totals."""
    totals.count(run)
    save_dump(dump, run.findings)
    inner = _scope.get()
    if inner is not None:
        inner.found.runs.append(run)
        inner.found.add(run.findings)
    for finding in run.findings:
        if finding.severity == "warning" and options.on_finding != "collect":
            warnings.warn(str(finding), RuntimeWarning, stacklevel=2)
        elif finding.severity == "note" and inner is None:
            log.info("%s", finding)
    if log.isEnabledFor(20):
        one = Totals()
        one.count(run)
        log.info("%s", one.line())


def deliver_failure(found: list[Finding], dump: RecordedLaunch | None = None) -> None:
    """Take the findings of a launch that was stopped."""
    save_dump(dump, found)
    totals.found.update(f.severity for f in found)
    inner = _scope.get()
    if inner is not None:
        inner.found.add(found)


def read_on_stream(reader: str, tensors: Iterable[Allocation], stream: int) -> None:
    """Something other than a kernel reads tensors on a stream: report launches on other streams that may still write
    them.

    Raises   SimFindings: there is one, and faults stop launches
    """
    in_force = options()
    if not in_force.has("streams"):
        return
    stream, clock = order.begin(stream)
    reads = [Footprint("read", a, a.address, a.address + a.nbytes, is_dense(a)) for a in tensors]
    found = order.finish(reader, stream, clock, reads)
    if not found:
        return
    deliver_failure(found)
    faults = [f for f in found if f.severity == "error"]
    if in_force.on_finding == "raise" and faults:
        raise failure(faults)
    if in_force.on_finding != "collect":
        warnings.warn("\n\n".join(map(str, found)), RuntimeWarning, stacklevel=2)


def is_dense(a: Allocation) -> bool:
    """Return whether a tensor has all bytes of its range."""
    return a.nbytes == a.itemsize * math.prod(a.shape)

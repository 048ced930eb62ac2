"""What a launch is given: allocations, options, geometry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from flydsl.targets.sim.trace import Trace
from flydsl.utils.record import record

CHECKS = ("bounds", "uninit", "race", "barrier", "waits", "undefined", "streams")
REPORTS = ("banks", "holes", "needless", "stale", "unread")
VALUES = ("nan", "overflow", "lossy")  # opt-in: they look at every result, so kernels are translated once more for them
GROUPS = {
    "default": CHECKS, "reports": REPORTS, "values": VALUES, "all": (*CHECKS, *REPORTS, *VALUES), "none": (),
}  # fmt: skip


def parse_checks(given: str | Iterable[str]) -> frozenset[str]:
    """Return the checks that a comma list (or names) states; names of `GROUPS` stand for several, `-name` takes out.

    Unknown names are among the checks, for `SimOptions` to refuse.
    """
    names = given.replace(" ", "").split(",") if isinstance(given, str) else list(given)
    chosen: set[str] = set()
    for name in filter(None, names):
        members = GROUPS.get(name.lstrip("-"), (name.lstrip("-"),))
        is_out = name[0] == "-" and set(members) <= set(GROUPS["all"])
        chosen = chosen.difference(members) if is_out else chosen.union(members)
    return frozenset(chosen)


@record
class Allocation:
    """Memory that a launch may access. `strides` and `shape` are in elements, `itemsize` and `nbytes` in bytes."""

    name: str
    address: int
    nbytes: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    itemsize: int = 1
    dtype: str = "i8"
    writable: bool = True

    def coordinate(self, byte_offset: int) -> tuple[int, ...] | None:
        """Return the multi-dimensional index of the element at a byte offset, or None where no index has it.

        Dimensions are taken from the largest stride down; the first one may run past its extent, so that an access
        past the
        end shows which index is too large.
        """
        if not self.shape or byte_offset < 0 or any(s < 0 for s in self.strides):
            return None
        rest = byte_offset // self.itemsize
        index = [0] * len(self.shape)
        order = sorted((i for i, s in enumerate(self.strides) if s > 0), key=lambda i: (-self.strides[i], i))
        for i in order:
            index[i] = rest // self.strides[i]
            rest -= index[i] * self.strides[i]
        return tuple(index) if rest == 0 else None


@record
class SimOptions:
    """How a launch runs.

    `checks`: names of `CHECKS`, `REPORTS` and `VALUES`; `on_finding`: `raise` at the first fault, `warn`, or `collect`;
    `schedule`: `lockstep`, `ahead`, `reverse`, `random:SEED`, or `auto` (lockstep unless waves must run apart);
    `lanes`: how many lanes a slab has at most; `trip_limit`: trips of one divergent loop before it counts as endless.
    """

    checks: frozenset[str] = frozenset(CHECKS)
    on_finding: str = "raise"
    schedule: str = "auto"
    lanes: int = 65536
    slab_bytes: int = 1 << 20
    trip_limit: int = 1 << 24
    max_findings: int = 100
    trace: Trace | None = None

    def __post_init__(self) -> None:
        known = (*CHECKS, *REPORTS, *VALUES)
        unknown = set(self.checks) - set(known)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ValueError(f"unknown simulator checks: {names}; known: {', '.join(known)}")
        if self.on_finding not in ("raise", "warn", "collect"):
            raise ValueError(f"on_finding must be raise, warn or collect, not {self.on_finding!r}")
        name, _, seed = self.schedule.partition(":")
        if name not in ("auto", "lockstep", "ahead", "reverse", "random") or seed and (name != "random" or not seed.isdecimal()):
            raise ValueError(f"unknown schedule {self.schedule!r}; known: lockstep, ahead, reverse, random:SEED")

    @property
    def values(self) -> frozenset[str]:
        """The checks of values that are on, and the lines that are traced: what the translated text depends on."""
        return self.checks & frozenset(VALUES) | ({self.trace.key()} if self.trace is not None else frozenset())

    def has(self, check: str) -> bool:
        """Return whether a check is on."""
        return check in self.checks


@record
class LaunchConfig:
    """Geometry of a launch, in workgroups and threads; `stream`: its handle, 0 for the default stream."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic_lds_bytes: int = 0
    allocations: tuple[Allocation, ...] = field(default=())
    stream: int = 0

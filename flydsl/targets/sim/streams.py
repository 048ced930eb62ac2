"""Which launches of a process are ordered, and the races between those that are not.

The simulator runs launches one after the other; on a GPU, launches on different streams overlap unless an event, a wait
or the host orders them. Each stream has a vector clock: per stream the number of its launches that are known to be over.
A launch that touches bytes of an earlier launch on another stream, one of them writing, must know of it.

Handle 0 is the default stream. It waits for blocking streams, and they for it; those that were added by `add_stream`
are of the other kind, which torch makes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from flydsl.diag import Span
from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.known_memory import known
from flydsl.targets.sim.options import Allocation
from flydsl.utils.record import record

Clock = dict[int, int]  # stream -> launches on it that are over
MOST = 512  # footprints that are kept; the oldest go first


@record
class Footprint:
    """The bytes of a tensor that a launch reads or writes.

    `cells`: which of the `1 << shift` bytes wide cells from `start` on, None for all. `is_exact`: they were noted one by
    one; else the range is that of the whole tensor, of which a part may be untouched.
    """

    kind: str
    allocation: Allocation
    start: int
    end: int
    is_exact: bool
    span: Span | None = None
    cells: np.ndarray | None = None
    shift: int = 0

    def touched(self, low: int, high: int) -> np.ndarray:
        """Return which bytes of a range inside this one are touched."""
        if self.cells is None:
            return np.ones(high - low, bool)
        first, last = low - self.start >> self.shift, (high - 1 - self.start >> self.shift) + 1
        wide = np.repeat(self.cells[first:last], 1 << self.shift)
        skip = low - self.start - (first << self.shift)
        return wide[skip : skip + high - low]

    def meets(self, other: Footprint) -> int | None:
        """Return the address of the first byte that both touch."""
        low, high = max(self.start, other.start), min(self.end, other.end)
        if low >= high:
            return None
        both = self.touched(low, high) & other.touched(low, high)
        return low + int(both.argmax()) if both.any() else None

    def covers(self, other: Footprint) -> bool:
        """Return whether every conflict with the other one is a conflict with this one."""
        whole = self.cells is None and self.is_exact >= other.is_exact
        return whole and self.kind in ("write", other.kind) and self.start <= other.start and other.end <= self.end


@record
class Past:
    """A footprint of launch number `tick` of a stream; `moment`: when, for the question whether its memory was freed."""

    footprint: Footprint
    kernel: str
    stream: int
    tick: int
    moment: int


def join(clock: Clock, other: Clock) -> None:
    """Let a clock know what another one knows."""
    for stream, tick in other.items():
        if tick > clock.get(stream, 0):
            clock[stream] = tick


class StreamOrder:
    """Clocks of all streams of the process and of the host, and what unordered launches may still touch."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all streams and launches."""
        self.clocks: dict[int, Clock] = {}
        self.host: Clock = {}
        self.past: dict[tuple, Past] = {}
        self.free: set[int] = set()  # streams that the default stream does not wait for
        self.is_concurrent = False
        self.lock = threading.RLock()
        self.acting = threading.local()

    # --- order -------------------------------------------------------------------------------------------------------

    def add_stream(self, stream: int) -> None:
        """A stream was made that does not wait for the default stream."""
        with self.lock:
            self.free.add(stream)
            self.is_concurrent = True

    def view(self, stream: int) -> Clock:
        """Return the clock of a stream, up to date: what work that is given to it now comes after."""
        with self.lock:
            clock = self.clocks.setdefault(stream, {})
            join(clock, self.host)
            if stream not in self.free:
                for other in [s for s in self.clocks if s not in self.free] if stream == 0 else [0]:
                    join(clock, self.clocks.get(other, {}))
            return clock

    def mark(self, stream: int) -> Clock:
        """Return what an event that is recorded now on a stream stands for."""
        return dict(self.view(stream))

    def wait(self, stream: int, event: Clock) -> None:
        """Work that is given to a stream from now on comes after an event."""
        with self.lock:
            join(self.view(stream), event)

    def synchronize(self, stream: int | None = None) -> None:
        """The host waits for a stream, or (None) for all."""
        with self.lock:
            for one in [*self.clocks] if stream is None else [stream]:
                self.reached(self.mark(one))

    def reached(self, event: Clock) -> None:
        """The host has waited for an event: all launches from now on come after it."""
        with self.lock:
            join(self.host, event)
            self.past = {k: p for k, p in self.past.items() if self.host.get(p.stream, 0) < p.tick}

    @contextmanager
    def all_on(self, stream: int) -> Iterator[None]:
        """Let launches of this thread count as launches on one stream: those of a graph that is replayed on it."""
        before = getattr(self.acting, "stream", None)
        self.acting.stream = stream
        try:
            yield
        finally:
            self.acting.stream = before

    # --- launches ----------------------------------------------------------------------------------------------------

    def begin(self, stream: int) -> tuple[int, Clock]:
        """A launch starts: return its stream and its clock."""
        stream = getattr(self.acting, "stream", None) if getattr(self.acting, "stream", None) is not None else stream
        with self.lock:
            self.is_concurrent |= stream != 0
            clock = self.view(stream)
            clock[stream] = clock.get(stream, 0) + 1
            return stream, dict(clock)

    def finish(self, kernel: str, stream: int, clock: Clock, footprints: Sequence[Footprint]) -> list[Finding]:
        """A launch has ended: return its races with earlier launches, and remember what it touched. `kernel`: who, in
        words."""
        found = []
        with self.lock:
            late = self.unordered(stream, clock) if self.is_concurrent else []
            for mine in footprints:
                for past in late:
                    theirs = past.footprint
                    at = None if mine.kind == theirs.kind == "read" else mine.meets(theirs)
                    if at is not None:
                        found.append(race(kernel, stream, mine, past, at))
            for mine in footprints:
                self.remember(Past(mine, kernel, stream, clock[stream], known.moment))
        return found

    def remember(self, past: Past) -> None:
        """Keep a footprint in the place of those of its stream that it covers."""
        mine, stream = past.footprint, past.stream
        if self.is_concurrent:
            self.past = {k: p for k, p in self.past.items() if p.stream != stream or not mine.covers(p.footprint)}
        key = (stream, mine.kind, mine.start, mine.end, None if mine.cells is None else past.tick)
        self.past.pop(key, None)
        self.past[key] = past
        if len(self.past) > MOST:
            del self.past[next(iter(self.past))]

    def unordered(self, stream: int, clock: Clock) -> list[Past]:
        """Return what launches that may still run touch; memory that is gone is forgotten."""
        late = [(k, p) for k, p in self.past.items() if p.stream != stream and clock.get(p.stream, 0) < p.tick]
        gone = [k for k, p in late if not known.is_same(p.footprint.allocation.address, p.moment)]
        for key in gone:
            del self.past[key]
        return [p for k, p in late if k in self.past]


def race(kernel: str, stream: int, mine: Footprint, past: Past, at: int) -> Finding:
    """Return the finding of a launch, or of what else reads a tensor, that meets an earlier launch at an address."""
    theirs, a = past.footprint, mine.allocation
    is_exact = mine.is_exact and theirs.is_exact
    index = a.coordinate(at - a.address)
    where = f" at {index}" if index is not None and is_exact else ""
    name = f"`{a.name}`" if mine.span is not None or not is_exact else a.name
    verb, still = ({"read": "reads", "write": "writes"}[mine.kind], {"read": "read", "write": "write"}[theirs.kind])
    overlap = "work on different streams overlaps"
    return Finding(
        "race",
        f"{kernel} on stream {stream:#x} {verb} {name}{where}, which {past.kernel} on stream {past.stream:#x} may still {still}",
        span=mine.span,
        kernel=kernel,
        tensor=a.name,
        index=index if is_exact else None,
        offset=at - a.address,
        other=theirs.span,
        missing="no event, wait_stream or synchronize orders the two",
        severity="error" if is_exact else "warning",
        why=overlap if is_exact else f"{overlap}, and both may touch this tensor",
        fix="let the second stream wait (`wait_stream`, or record an event and `wait_event`), or use one stream",
    )


order = StreamOrder()

"""Values of the lines of a kernel while one wave runs: `FLYDSL_SIM_TRACE=block=0,wave=1` with `FLYDSL_SIM_TRACE_LINES=40-60`.

One line of text per executed source line whose value changed: the value of the last operation of the line, which for an
assignment is the variable's. Also `flydsl.sim.breakpoint()`: values of a kernel's variables, for all lanes.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl.utils.record import record

_ASSIGNED = re.compile(r"\s*([A-Za-z_][\w.\[\]]*)\s*(?::[^=]+)?(?:[-+*/%&|^]|//|<<|>>)?=[^=]")
BREAKPOINT = "@breakpoint "


@record
class Trace:
    """Which wave is shown, and the first and last source line. `block` is x, y, z."""

    block: tuple[int, int, int]
    wave: int
    lines: tuple[int, int] = (0, 1 << 30)

    @classmethod
    def parse(cls, where: str, lines: str = "") -> Trace:
        """Return the trace that `block=0,wave=1` (or `block=2/0/1`) and `40-60` (or `42`) state.

        Raises   ValueError: the text has another form
        """
        fields = dict(part.split("=", 1) for part in where.replace(" ", "").split(",") if "=" in part)
        if not fields or set(fields) - {"block", "wave"} or not re.fullmatch(r"(\d+(-\d+)?)?", lines):
            raise ValueError(f"trace {where!r} lines {lines!r}: expected block=X or block=X/Y/Z, wave=N, lines 40-60")
        block = [int(x) for x in fields.get("block", "0").split("/")]
        first, _, last = lines.partition("-")
        span = (int(first), int(last or first)) if first else (0, 1 << 30)
        return cls((*block, *[0] * (3 - len(block))), int(fields.get("wave", 0)), span)  # type: ignore[arg-type]

    def key(self) -> str:
        """Return what the translated text depends on."""
        return f"trace:{self.lines[0]}-{self.lines[1]}"


def lines_of(checks: frozenset[str]) -> tuple[int, int] | None:
    """Return the lines that a translation must show, by the keys that it was asked with."""
    for key in checks:
        if key.startswith("trace:"):
            first, _, last = key[6:].partition("-")
            return int(first), int(last)
    return None


def variable(file: str, line: int) -> str:
    """Return the variable that a source line assigns, else the line."""
    text = linecache.getline(file, line)
    found = _ASSIGNED.match(text)
    return found[1] if found else " ".join(text.split())[:60] or "value"


class Tracer:
    """Prints values of one wave of a launch; `write` takes the text."""

    def __init__(self, trace: Trace, write: Callable[[str], object] | None = None):
        self.trace = trace
        self.write = write or sys.stdout.write
        self.last: dict[tuple, str] = {}

    def show(self, machine: Any, frame: tuple[str, int, int], value: Any, m: Any) -> None:
        """Print the value of a source line if it is this wave's and has changed."""
        place = self.lanes(machine)
        if place is None:
            return
        g, lanes = place
        active = np.broadcast_to(True if m is None else m, (machine.G, machine.B))[g, lanes]
        if not active.any():
            return
        text = picture(pick(machine, value, g, lanes), active)
        if self.last.get(frame) == text:
            return
        self.last[frame] = text
        file, line, _ = frame
        self.write(f"{file.rpartition('/')[2]}:{line}: {variable(file, line)} = {text}\n")

    def lanes(self, machine: Any) -> tuple[int, slice] | None:
        """Return (workgroup in the slab, threads in the machine) of the traced wave, or None if it is not here."""
        gx, gy, _ = machine.launch.config.grid
        x, y, z = self.trace.block
        g = x + gx * (y + gy * z) - machine.slab.first
        first = self.trace.wave * machine.wave_size - machine.first_thread
        if not (0 <= g < machine.G and 0 <= first < machine.B):
            return None
        return g, slice(first, first + machine.wave_size)


def pick(machine: Any, value: Any, g: int, lanes: slice) -> np.ndarray:
    """Return one wave's lanes of a scalar (lanes) or vector (lanes, n) value."""
    value = np.asarray(value if isinstance(value, (np.ndarray, np.generic)) else value.lanes())
    tail = value.shape[2:] if value.ndim > 2 else value.shape[-1:] if value.ndim == 1 else ()
    return np.broadcast_to(value, (machine.G, machine.B, *tail))[g, lanes]


def picture(values: np.ndarray, active: np.ndarray) -> str:
    """Return lanes' values in short: one value if all agree, else the first ones and the last."""
    live = values[active]
    note = "" if active.all() else f"  ({int(active.sum())} of {len(active)} lanes)"
    if (live == live[0]).all() or not (live == live).all() and len(live) == 1:
        return f"{number(live[0])} in all lanes{note}" if not note else f"{number(live[0])}{note}"
    shown = [number(v) for v in (live if len(live) <= 8 else (*live[:6], live[-1]))]
    if len(live) > 8:
        shown.insert(6, "...")
    return f"[{', '.join(shown)}]{note}"


def number(value: Any) -> str:
    """Return a value, or a vector's first elements, as text."""
    if np.ndim(value):
        more = ", ..." if len(value) > 4 else ""
        return "(" + ", ".join(number(v) for v in value[:4]) + more + ")"
    return f"{float(value):.6g}" if value.dtype.kind not in "biu" else str(value)


# --- breakpoints ------------------------------------------------------------------------------------------------------


@dataclass
class Stop:
    """A kernel that stopped at a breakpoint: `values` by name, each (workgroups, threads[, elements])."""

    file: str
    line: int
    values: dict[str, np.ndarray]
    active: np.ndarray
    blocks: list[tuple[int, int, int]]

    def __str__(self) -> str:
        rows = [f"{n} = {picture(v[0], self.active[0])}" for n, v in self.values.items() if self.active[0].any()]
        return "\n".join([f"breakpoint at {self.file}:{self.line}, block {self.blocks[0]}", *rows])


def console(stop: Stop) -> None:
    """Open a Python prompt on the values; without a terminal print them."""
    if not sys.stdin.isatty():
        sys.stdout.write(f"{stop}\n")
        return
    import code

    code.interact(banner=f"{stop}\n(Ctrl-D continues; `stop` has everything)", local={**stop.values, "stop": stop}, exitmsg="")


on_breakpoint: list[Callable[[Stop], object]] = []


def stop_at(machine: Any, site: int, names: list[str], values: tuple, m: Any) -> None:
    """Hand the values of a breakpoint to the innermost handler, else to a prompt."""
    frames = machine.reporter.sites[site][1]
    file, line = frames[0][:2] if frames else ("?", 0)
    shape = (machine.G, machine.B)
    wide = {}
    for name, value in zip(names, values):
        value = np.asarray(value if isinstance(value, (np.ndarray, np.generic)) else value.lanes())
        tail = value.shape[2:] if value.ndim > 2 else value.shape[-1:] if value.ndim == 1 else ()
        wide[name] = np.broadcast_to(value, (*shape, *tail))
    active = np.broadcast_to(True if m is None else m, shape)
    stop = Stop(file, line, wide, active, [machine.block_of(g) for g in range(machine.G)])
    (on_breakpoint[-1] if on_breakpoint else console)(stop)

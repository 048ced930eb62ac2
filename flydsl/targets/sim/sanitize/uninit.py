"""Reads of LDS or private bytes that nothing wrote in this launch, and of LDS that an outstanding copy has yet to
fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.sanitize.shadow import PENDING, WRITTEN, Shadow


class UninitCheck:
    """State of every cell of LDS and private memory."""

    def __init__(self, cell_bytes: dict[str, int], has_uninit: bool, has_waits: bool):
        self.cell_bytes = cell_bytes
        self.has_uninit = has_uninit
        self.has_waits = has_waits

    def shadow(self, memory: Any, letter: str) -> Shadow:
        """Return the shadow of a row memory, made on first use."""
        if memory.shadow is None:
            memory.shadow = Shadow(len(memory.raw), self.cell_bytes[letter])
        return memory.shadow

    def store(self, memory: Any, letter: str, off: Any, nbytes: int, m: Any) -> None:
        """Mark bytes as written."""
        shadow = self.shadow(memory, letter)
        if not shadow.is_complete:
            shadow.set_state(off, nbytes, m, WRITTEN)

    def pending(self, memory: Any, off: Any, nbytes: int, m: Any) -> None:
        """Mark bytes as the target of an outstanding copy."""
        shadow = self.shadow(memory, "l")
        shadow.is_complete = False
        shadow.set_state(off, nbytes, m, PENDING)

    def load(
        self,
        machine: Any,
        site: int,
        memory: Any,
        letter: str,
        addr: Any,
        off: Any,
        nbytes: int,
        m: Any,
        base: str | None,
    ) -> None:
        """Report lanes that read bytes in another state than written."""
        shadow = self.shadow(memory, letter)
        if shadow.is_complete:
            return
        bad = shadow.not_written(off, nbytes)
        if not np.any(bad):
            return
        bad = np.asarray(bad if m is None else bad & m)
        if not bad.any():
            return
        waiting = np.asarray((shadow.states(off, nbytes) == PENDING).any(axis=-1)) & bad
        if waiting.any() and self.has_waits:
            self.report_pending(machine, site, waiting, off, base)
        unwritten = bad & ~waiting
        if unwritten.any() and self.has_uninit:
            self.report_unwritten(machine, site, letter, unwritten, addr, nbytes, base)

    def load_tile(self, machine: Any, site: int, memory: Any, off: Any, tile: Any) -> None:
        """Report a tensor copy that reads bytes in another state than written."""
        shadow = self.shadow(memory, "l")
        bad = shadow.not_written(off, tile.size)
        if not bad.any():
            return
        flags = np.zeros((machine.G, machine.B), bool)
        flags[tile.group, tile.wave * machine.wave_size] = True
        first = off[bad][:1]
        where = np.full(flags.shape, int(first[0]), np.int64)
        if (shadow.states(first, tile.size) == PENDING).any():
            self.report_pending(machine, site, flags, where, None)
        elif self.has_uninit:
            self.report_unwritten(machine, site, "l", flags, where % memory.pitch, tile.size, None)

    def report_unwritten(
        self, machine: Any, site: int, letter: str, bad: Any, addr: Any, nbytes: int, base: str | None
    ) -> None:
        reporter = machine.reporter
        what = "LDS" if letter == "l" else "private memory"
        first = int(np.broadcast_to(addr, bad.shape)[bad][0]) if bad.ndim else int(addr)
        span = machine.slab.lds.arrays.get(base) if letter == "l" else None
        name = f" of array `{base}`" if span else ""
        at = first - (span[0] if span else 0)
        reporter.add(
            Finding(
                "uninitialised",
                f"read of {nbytes} bytes of {what} at byte {at}{name}, which nothing wrote in this launch",
                **reporter.at(machine, site, bad),
                tensor=base,
                offset=at,
                why=f"{what} holds whatever the previous kernel left there",
                fix="write it first (all elements, also in the last, partial tile), or do not read it",
            )
        )

    def report_pending(self, machine: Any, site: int, bad: Any, off: Any, base: str | None) -> None:
        reporter = machine.reporter
        first = int(np.broadcast_to(off, bad.shape)[bad][0]) if bad.ndim else int(off)
        issue = machine.pending.issuer_of(first)
        place = reporter.span(issue) if issue is not None else None
        since = f" from line {place.line}" if place else ""
        reporter.add(
            Finding(
                "missing-wait",
                "LDS is read before the asynchronous copy that fills it has landed",
                **reporter.at(machine, site, bad),
                tensor=base,
                other=place,
                missing=f"no wait for the copy{since} (vmcnt, asynccnt or wait_asyncmark) before this read",
                why="a copy to LDS lands at some time between its issue and its wait",
                fix="wait for the copy, then let the workgroup meet at a barrier, then read",
            )
        )

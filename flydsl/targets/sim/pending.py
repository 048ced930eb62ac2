"""Asynchronous copies to LDS: they read when issued and land when their counter is waited for; until then their target is poison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine


@dataclass
class Entry:
    """One outstanding operation of a counter: its LDS bytes (if it writes LDS) and the waves that issued it (None: all)."""

    counter: str
    site: int
    off: Any = None
    addr: Any = None
    items: Any = None
    lanes: Any = None
    waves: Any = None
    group: int = 0


class PendingCopies:
    """The queues of one machine, oldest first, per counter."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.queues: dict[str, list[Entry]] = {}
        self.has_copies = False
        self.groups: dict[str, int] = {}

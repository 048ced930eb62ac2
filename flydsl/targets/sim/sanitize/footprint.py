"""Which bytes of each tensor a launch reads and writes, for the order of launches (`streams`): noted one by one while
several streams are in use, else the whole tensors that the kernel may touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.sanitize.shadow import WRITTEN, AccessMap
from flydsl.targets.sim.streams import Footprint


class Footprints:
    """Maps of one launch."""

    def __init__(self) -> None:
        self.maps = {"read": AccessMap(), "write": AccessMap()}

    def note(self, kind: str, region: Any, off: Any, nbytes: int, m: Any, site: int) -> None:
        """Mark bytes as read or written."""
        if not region.is_mapping:
            self.maps[kind].note(region, off, nbytes, m, site)

    def collect(self, reporter: Any) -> list[Footprint]:
        """Return what was touched, the ends trimmed."""
        found = []
        for kind, marks in self.maps.items():
            for region, shadow, site in marks.shadows.values():
                cells = shadow.state.raw == WRITTEN
                where = np.flatnonzero(cells)
                if not len(where):
                    continue
                first, last = int(where[0]), int(where[-1]) + 1
                part = None if len(where) == last - first else cells[first:last].copy()
                start, end = (region.origin + (x << shadow.shift) for x in (first, last))
                span = reporter.span(site)
                found.append(Footprint(kind, region.allocation, start, end, True, span, part, shadow.shift))
        return found


def whole_tensors(text: Any, bases: list[Any]) -> list[Footprint]:
    """Return the tensors that a kernel may read and write by its pointer arguments."""
    found = []
    for kind, arguments in (("read", text.reads), ("write", text.writes)):
        for i in arguments:
            region = bases[i] if i is not None else None
            if region is not None and not region.is_mapping:
                found.append(Footprint(kind, region.allocation, region.start, region.end, False))
    return found

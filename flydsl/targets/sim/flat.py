"""Generic pointers: global addresses, or LDS and private offsets above their apertures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine

LDS_APERTURE = 1 << 60
PRIVATE_APERTURE = 1 << 61
_HALF = 1 << 59  # offsets may go below their aperture by address arithmetic


class FlatAccess:
    """Loads and stores through generic pointers: each lane goes to the memory that its address names."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def parts(self, addr: Any, m: Any) -> list[tuple[str, Any, Any]]:
        """Return (memory letter, address in it, mask) for each memory that some active lane names."""
        private = addr >= PRIVATE_APERTURE - _HALF
        lds = (addr >= LDS_APERTURE - _HALF) & ~private
        found = []
        for letter, here, shift in (
            ("g", ~(lds | private), 0),
            ("l", lds, LDS_APERTURE),
            ("p", private, PRIVATE_APERTURE),
        ):
            if np.all(here):
                return [(letter, addr - shift if shift else addr, m)]
            live = here if m is None else here & m
            if np.any(live):
                found.append((letter, addr - shift, live))
        return found

    def load(self, site: int, addr: Any, base: Any, dtype: Any, n: int | None, align: int, m: Any) -> Any:
        """Return the values at generic addresses."""
        parts = self.parts(addr, m)
        result = None
        for letter, local, live in parts:
            where = base if letter != "g" or isinstance(base, int) else None
            got = getattr(self.machine, f"load_{letter}")(site, local, where, dtype, n, align, live)
            if result is None:
                result = got
            else:
                result = np.where(live if n is None else live[..., None], got, result)
        return result

    def store(self, site: int, addr: Any, base: Any, value: Any, n: int | None, align: int, m: Any) -> None:
        """Write values at generic addresses."""
        for letter, local, live in self.parts(addr, m):
            where = base if letter != "g" or isinstance(base, int) else None
            getattr(self.machine, f"store_{letter}")(site, local, where, value, n, align, live)

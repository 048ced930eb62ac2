"""Checks of memory use, one file each: `uninit`, `race_lds`, `race_global`, `banks`, `holes`; `watch` passes accesses
to them.

Bounds and alignment are checked by the memories themselves, barriers and undefined operations by the machine.
"""

from flydsl.targets.sim.sanitize.watch import Watch, make_watch

__all__ = ["Watch", "make_watch"]

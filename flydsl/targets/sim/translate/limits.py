"""What the simulator approximates in a kernel, in words, by the ops that the kernel has."""

from __future__ import annotations

from collections.abc import Iterable

MATRIX = "sums inside matrix instructions (rounded once; the chip's order is not published)"
TRANSCENDENTAL = "transcendental functions (within 2 ulp)"
LDS_LATENCY = "LDS stores (finished at a bare s_barrier)"
SPLIT = "split barriers (waves meet at the wait; the race check tells what runs before it)"
FENCES = "order by fences and ordered atomics (reads of other workgroups are not judged)"
EXACT_MATH = frozenset("abs copysign floor ceil trunc round roundeven fma ctlz cttz ctpop isnan sqrt".split())
ROCDL_MATH = ("exp2", "exp", "log", "sin", "cos", "rcp", "rsq", "sqrt", "tanh")


def approximations(names: Iterable[str], has_sync: bool) -> tuple[str, ...]:
    """Return the approximations that kernels with these op names meet."""
    found = set()
    for name in set(names):
        dialect, _, rest = name.partition(".")
        if dialect == "rocdl" and ("mfma" in rest or "wmma" in rest):
            found.add(MATRIX)
        elif dialect == "math" and rest not in EXACT_MATH or dialect == "rocdl" and rest in ROCDL_MATH:
            found.add(TRANSCENDENTAL)
        elif rest == "s.barrier" and dialect == "rocdl":
            found.add(LDS_LATENCY)
        elif rest.startswith("s.barrier.signal"):
            found.add(SPLIT)
    if has_sync:
        found.add(FENCES)
    return tuple(sorted(found))

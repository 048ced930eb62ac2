"""CDNA3 forms of what `fx.rocdl` chooses by the target."""

from typing import Any

from flydsl.expr.rocdl.waits import normalize_s_waitcnt_field, wait_on
from flydsl.ir import ir

__all__ = ["normalize_s_waitcnt_field", "s_waitcnt"]


def s_waitcnt(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> ir.Operation:
    """Emit `s_waitcnt` in the encoding of CDNA3; None does not wait on the counter."""
    return wait_on("gfx942", vmcnt, lgkmcnt, expcnt)

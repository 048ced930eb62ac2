"""`s_waitcnt`: counters by name, encoded for the chip; and the waits of gfx950's asynchronous copies."""

from functools import cache
from typing import Any

from flydsl.atoms import waitcnt
from flydsl.diag import WaitcntLegacy, WaitcntStatic
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.rocdl.build import builder
from flydsl.expr.rocdl.values import arch_name, static_int
from flydsl.ir import ir

_raw_waitcnt = builder("s_waitcnt")
_asyncmark = builder("asyncmark")
_wait_asyncmark = builder("wait_asyncmark")


def s_waitcnt(bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> ir.Operation:
    """Wait until each named counter is at most its value; None does not wait on it.

    vmcnt counts global and buffer loads (on CDNA also stores and DMA to LDS), lgkmcnt LDS and scalar memory. A
    positional integer is the raw field of the instruction and excludes the names.

    Raises   WaitcntLegacy, WaitcntStatic, WaitcntRange; WaitcntUnsupported on chips with one wait instruction per
    counter
    """
    if bitfield is None:
        return wait_on(arch_name(), vmcnt, lgkmcnt, expcnt)
    if any(c is not None for c in (vmcnt, lgkmcnt, expcnt)):
        raise WaitcntLegacy()
    return _raw_waitcnt(static_int(bitfield, "s_waitcnt", "bitfield"))


def wait_on(arch: str, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> ir.Operation:
    """Emit the wait in the encoding of `arch`."""
    given = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    counts = {name: _static(name, value) for name, value in given.items() if value is not None}
    return _raw_waitcnt(_encoded(arch, *(counts.get(name) for name in given)))


@cache
def _encoded(arch: str, vmcnt: int | None, lgkmcnt: int | None, expcnt: int | None) -> int:
    return waitcnt.encode(arch, vmcnt=vmcnt, lgkmcnt=lgkmcnt, expcnt=expcnt)


def _static(name: str, value: Any) -> int:
    if isinstance(value, Numeric) and value.is_integer and value.is_static():
        value = value.value
    if not isinstance(value, int):
        got = "a run-time value" if isinstance(value, (Numeric, ir.Value)) else type(value).__name__
        raise WaitcntStatic(counter=name, got=got)
    return int(value)


def normalize_s_waitcnt_field(name: str, value: Any, maximum: int) -> int:
    """Return a count as an int: None is `maximum`, which does not wait.

    Raises   WaitcntStatic, WaitcntRange
    """
    if value is None:
        return maximum
    count = _static(name, value)
    if not 0 <= count <= maximum:
        raise waitcnt.WaitcntRange(subject=name, most=maximum, value=count)
    return count


def asyncmark() -> ir.Operation:
    """Close a group of asynchronous copies to LDS (gfx950)."""
    return _asyncmark()


def wait_asyncmark(count: Any = 0) -> ir.Operation:
    """Wait until at most `count` groups of asynchronous copies are unfinished (gfx950)."""
    return _wait_asyncmark(count)

"""Hints on register placement. LLVM 22.1 has no instruction for them: accepted, without effect on the code."""

from typing import Any


def sched_bank(value: Any, bank: Any, soft: bool = False, **ignored: Any) -> Any:
    """Return `value`; asks for a register of this bank."""
    return value


def sched_vgpr(value: Any, regnum: Any, soft: bool = False, **ignored: Any) -> Any:
    """Return `value`; asks for this vector register."""
    return value


def sched_sgpr(value: Any, regnum: Any, soft: bool = False, **ignored: Any) -> Any:
    """Return `value`; asks for this scalar register."""
    return value


def sched_agpr(value: Any, regnum: Any, soft: bool = False, **ignored: Any) -> Any:
    """Return `value`; asks for this accumulation register."""
    return value

"""Hints to the instruction scheduler. They never change what a kernel computes."""

from typing import Any

from flydsl.expr.rocdl.build import builder

# Kinds of instructions in scheduling masks; "read" and "write" are of the wave.
mask_alu = 0x1  # anything that touches no memory
mask_valu = 0x2
mask_salu = 0x4
mask_mfma = 0x8  # MFMA and WMMA
mask_vmem = 0x10
mask_vmem_rd = 0x20
mask_vmem_wr = 0x40
mask_ds = 0x80
mask_dsrd = 0x100
mask_dswr = 0x200
mask_trans = 0x400
mask_ldsdma = 0x800

sched_barrier = builder("sched_barrier")
sched_group_barrier = builder("sched_group_barrier")


def sched_mfma(cnt: Any) -> None:
    """Place `cnt` matrix instructions next."""
    sched_group_barrier(mask_mfma, cnt, 0)


def sched_vmem(cnt: Any) -> None:
    """Place `cnt` loads from global memory next."""
    sched_group_barrier(mask_vmem_rd, cnt, 0)


def sched_dsrd(cnt: Any) -> None:
    """Place `cnt` reads of LDS next."""
    sched_group_barrier(mask_dsrd, cnt, 0)


def sched_dswr(cnt: Any) -> None:
    """Place `cnt` writes of LDS next."""
    sched_group_barrier(mask_dswr, cnt, 0)

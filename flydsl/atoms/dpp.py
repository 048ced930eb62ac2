"""Data-parallel primitives: control codes, and the lane each lane reads.

Rows are 16 lanes, quads 4. Source: "DPP control" in the CDNA3 and RDNA3 instruction-set
manuals.
"""

from __future__ import annotations

from flydsl import arch as chips

from .errors import OutOfRange, UnsupportedChip

ROW = 16
ROW_SHL, ROW_SHR, ROW_ROR = 0x100, 0x110, 0x120
WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR = 0x130, 0x134, 0x138, 0x13C
ROW_MIRROR, ROW_HALF_MIRROR, ROW_BCAST15, ROW_BCAST31 = 0x140, 0x141, 0x142, 0x143
ROW_SHARE, ROW_XMASK = 0x150, 0x160

_GFX9_ONLY = {WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR, ROW_BCAST15, ROW_BCAST31}
_FIXED = {ROW_MIRROR, ROW_HALF_MIRROR} | _GFX9_ONLY


def quad_perm(a: int, b: int, c: int, d: int) -> int:
    """Return the code by which lane i of each quad reads the i-th of the four named lanes of
    its quad.
    """
    if any(not 0 <= x <= 3 for x in (a, b, c, d)):
        raise OutOfRange(subject="quad_perm", expected="four lanes in [0, 3]", value=(a, b, c, d))
    return a | b << 2 | c << 4 | d << 6


def feature(ctrl: int) -> str | None:
    """Return the chip feature a code needs, None where every chip has it.

    Raises   OutOfRange: no such code
    """
    if 0 <= ctrl <= 0xFF or ctrl in (ROW_MIRROR, ROW_HALF_MIRROR):
        return None
    if ctrl in _GFX9_ONLY:
        return "dpp_row_bcast"
    base = ctrl & ~0xF
    if base in (ROW_SHL, ROW_SHR, ROW_ROR) and ctrl & 0xF:
        return None
    if base in (ROW_SHARE, ROW_XMASK):
        return "dpp_row_share"
    raise OutOfRange(subject="dpp_ctrl", expected="a DPP control code", value=hex(ctrl))


def check(ctrl: int, arch: str) -> int:
    """Return the code when the chip has it.

    Raises   OutOfRange, UnsupportedChip
    """
    needs = feature(ctrl)
    if needs is not None and not chips.get(arch).has(needs):
        raise UnsupportedChip(
            atom=f"dpp_ctrl {ctrl:#x}",
            feature=needs,
            arch=arch,
            supported=tuple(name for name in chips.names() if chips.get(name).has(needs)),
        )
    return ctrl


def source_lane(ctrl: int, lane: int, wave_size: int) -> int | None:
    """Return the lane that `lane` reads, None where the code reads past the row, the wave or
    nothing.
    """
    feature(ctrl)
    row, i = lane - lane % ROW, lane % ROW
    n = ctrl & 0xF
    if ctrl <= 0xFF:
        return lane - lane % 4 + (ctrl >> 2 * (lane % 4) & 3)
    if ctrl in _FIXED:
        return _fixed_source(ctrl, lane, wave_size)
    base = ctrl & ~0xF
    if base == ROW_SHL:
        return row + i + n if i + n < ROW else None
    if base == ROW_SHR:
        return row + i - n if i >= n else None
    if base == ROW_ROR:
        return row + (i - n) % ROW
    return row + n if base == ROW_SHARE else row + (i ^ n)


def _fixed_source(ctrl: int, lane: int, wave_size: int) -> int | None:
    row, i = lane - lane % ROW, lane % ROW
    if ctrl == ROW_MIRROR:
        return row + 15 - i
    if ctrl == ROW_HALF_MIRROR:
        return lane - lane % 8 + 7 - lane % 8
    if ctrl == ROW_BCAST15:
        return row - 1 if row else None
    if ctrl == ROW_BCAST31:
        return 31 if lane >= 32 else None
    step = 1 if ctrl in (WAVE_SHL, WAVE_ROL) else -1
    other = lane + step
    if ctrl in (WAVE_ROL, WAVE_ROR):
        return other % wave_size
    return other if 0 <= other < wave_size else None

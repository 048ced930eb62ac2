"""Cache modifiers of buffer accesses: the bits of the `aux` operand per chip, and how the ISA
writes them.

tests/diff/test_atoms_oracle.py compares the text with recorded assembly.
"""

from __future__ import annotations

from flydsl import arch as chips

from .errors import OutOfRange

_GFX94 = (("sc0", 1), ("nt", 2), ("sc1", 16))
_GFX11 = (("glc", 1), ("slc", 2), ("dlc", 4))
_LOAD_HINTS = ("RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT", "RESERVED")
_STORE_HINTS = ("RT", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB")
_SCOPES = ("CU", "SE", "DEV", "SYS")


def _flags(arch: str) -> tuple[tuple[str, int], ...] | None:
    chip = chips.get(arch)
    if chip.has("mfma"):
        return _GFX94
    return _GFX11 if chip.family == "rdna3" else None


def bits(arch: str, *names: str) -> int:
    """Return the aux value of named bits: sc0 sc1 nt (CDNA), glc slc dlc (gfx11).

    Raises   OutOfRange: the chip has no such bit
    """
    known = dict(_flags(arch) or ())
    out = 0
    for name in names:
        if name not in known:
            raise OutOfRange(
                subject="cache bit",
                expected=f"one of {', '.join(known) or 'th_scope(...)'} on {arch}",
                value=name,
            )
        out |= known[name]
    return out


def th_scope(hint: int = 0, scope: int = 0) -> int:
    """Return the aux value on gfx12 and gfx1250: temporal hint in bits 0-2, scope in bits 3-4."""
    return hint & 7 | (scope & 3) << 3


def text(arch: str, aux: int, is_load: bool) -> str:
    """Return the modifiers as the assembler writes them, "" for the default."""
    flags = _flags(arch)
    if flags is not None:
        return " ".join(name for name, bit in flags if aux & bit)
    parts = []
    if hint := aux & 7:
        kind = "LOAD" if is_load else "STORE"
        parts.append(f"th:TH_{kind}_{(_LOAD_HINTS if is_load else _STORE_HINTS)[hint]}")
    if scope := aux >> 3 & 3:
        parts.append(f"scope:SCOPE_{_SCOPES[scope]}")
    return " ".join(parts)

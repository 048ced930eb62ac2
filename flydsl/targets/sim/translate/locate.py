"""Source locations of ops: the frames of an MLIR location, innermost first, read from its printed form."""

from __future__ import annotations

import re
from functools import lru_cache

_FRAME = re.compile(r'"((?:[^"\\]|\\.)+)":(\d+):(\d+)')

Frame = tuple[str, int, int]


@lru_cache(maxsize=100_000)
def frames_of(text: str) -> tuple[Frame, ...]:
    """Return (file, line, column) of each file location in the printed location `text`, the op's own first."""
    return tuple((m.group(1), int(m.group(2)), int(m.group(3))) for m in _FRAME.finditer(text))

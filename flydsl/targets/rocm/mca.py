"""Static cycle counts with llvm-mca, where it is installed: a model of one wave that never misses a cache and
never waits for another.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

_ITERATIONS = 100
_NOT_MODELLED = re.compile(r"^s_(cbranch|branch|endpgm)")


@functools.cache
def find() -> str | None:
    """Return the path of llvm-mca, or None: `$ROCM_PATH/llvm/bin`, then `PATH`, the newest version first (14
    models no MFMA).
    """
    rocm = os.path.join(os.environ.get("ROCM_PATH", "/opt/rocm"), "llvm", "bin", "llvm-mca")
    if os.access(rocm, os.X_OK):
        return rocm
    names = (*(f"llvm-mca-{n}" for n in range(25, 17, -1)), "llvm-mca")
    return next((path for name in names if (path := shutil.which(name))), None)


class Cycles(NamedTuple):
    """Cycles of one repetition; `has_waits`: whether wait instructions stall in the model."""

    count: float
    has_waits: bool


def cycles(lines: Sequence[str], arch: str) -> Cycles | None:
    """Return the cycles of one repetition of `lines` (instructions; branches are left out); None without a model.

    llvm-mca 19 crashes on buffer loads where it models waits (its AMDGPU custom behaviour), so those loops are counted
    without. Lines that the installed llvm-mca does not know make it fail as a whole: an old one says None for a
    new chip.
    """
    tool = find()
    body = [line for line in lines if not _NOT_MODELLED.match(line)]
    if tool is None or not body:
        return None
    command = [
        tool,
        "-mtriple=amdgcn-amd-amdhsa",
        f"-mcpu={arch}",
        f"-iterations={_ITERATIONS}",
        "-instruction-info=false",
    ]
    command += ["-resource-pressure=false", "-"]
    for has_waits in (True, False):
        count = _run(command if has_waits else [*command, "-disable-cb"], "\n".join(body) + "\n")
        if count is not None:
            return Cycles(count / _ITERATIONS, has_waits)
    return None


def _run(command: list[str], text: str) -> int | None:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^Total Cycles:\s+(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if done.returncode == 0 and found else None

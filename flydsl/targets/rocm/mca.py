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


def cycles(lines: Sequence[str], arch: str) -> float | None:
    """Return the cycles of one repetition of `lines` (instructions without branches out of them); None without a model.

    Lines that the installed llvm-mca does not know make it fail as a whole, so an old one says None for a new chip.
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
    try:
        done = subprocess.run(command, input="\n".join(body) + "\n", capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^Total Cycles:\s+(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) / _ITERATIONS if done.returncode == 0 and found else None

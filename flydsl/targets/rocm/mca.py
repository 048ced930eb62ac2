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
    """Return the cycles of one repetition of `lines` (instructions; branches are left out); None without a model.

    Lines that the installed llvm-mca does not know make it fail as a whole: an old one says None for a new chip.
    """
    tool = find()
    body = [_modelled(line) for line in lines if not _NOT_MODELLED.match(line)]
    if tool is None or not body:
        return None
    command = [tool, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", f"-iterations={_ITERATIONS}", "-"]
    count = _run([*command, "-instruction-info=false", "-resource-pressure=false"], "\n".join(body) + "\n")
    return None if count is None else count / _ITERATIONS


_BUFFER = re.compile(r"buffer_(load|store)_(\w+) (.*)")


def _modelled(line: str) -> str:
    """Return an instruction as llvm-mca can take it: its version 19 crashes on buffer accesses, so they become global
    ones of the same width, which LLVM's model gives the same latency.
    """
    found = _BUFFER.match(line)
    if found is None:
        return line
    operands = [o.strip() for o in found[3].split(",")]
    into_lds = operands[-1].endswith(" lds")
    address = operands[0] if into_lds else operands[1]
    number = int(re.sub(r"\D.*", "", address.lstrip("v[")) or 0) & ~1
    pair = f"v[{number}:{number + 1}]"
    if into_lds:
        return f"global_load_lds_{found[2]} {pair}, off"
    return (
        f"global_load_{found[2]} {operands[0]}, {pair}, off"
        if found[1] == "load"
        else f"global_store_{found[2]} {pair}, {operands[0]}, off"
    )


def _run(command: list[str], text: str) -> int | None:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^Total Cycles:\s+(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if done.returncode == 0 and found else None

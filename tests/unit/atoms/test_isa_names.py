"""The mnemonic of every matrix row against what LLVM's code generator prints for its intrinsic."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flydsl import atoms

pytest.importorskip("llvmlite", reason="llvmlite is not installed: no code generator to compare with")
HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.mark.parametrize("chip", ["gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_llvm_prints_the_mnemonic(chip):
    env = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run([sys.executable, str(HERE / "isa_names.py"), chip], env=env, text=True,
                          capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = atoms.supported(chip)
    printed = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert len(printed) == len(rows) > 0
    wrong = {row.rocdl: printed[str(i)] for i, row in enumerate(rows) if printed[str(i)] != row.isa}
    assert wrong == {}

"""`flydsl explain`: every example is true. The code before gives the error, the code after does not; the page of errors is up to date."""

import subprocess
import sys

import numpy as np
import pytest
from test_mistakes import load_body

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.diag.examples import EXAMPLES
from flydsl.utils import env


def compile_body(tmp_path, name: str, text: str) -> None:
    kernel = flyc.kernel(load_body(tmp_path, name, text)[0])

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, n: fx.Int32):
        kernel(x, out, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    arrays = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942", FLYDSL_WARN="0"):
        launch.artifact_for(launch.wrap_arguments((*arrays, 3), {}))


@pytest.mark.parametrize("code", EXAMPLES)
def test_example(tmp_path, code):
    before, after = EXAMPLES[code]
    with pytest.raises(FlyError) as e:
        compile_body(tmp_path, f"{code}_before", before)
    assert e.value.code == code, str(e.value)
    compile_body(tmp_path, f"{code}_after", after)


def test_the_most_common_errors_have_examples():
    assert len(EXAMPLES) >= 40


def test_explain_prints_both_sides():
    done = subprocess.run([sys.executable, "-m", "flydsl.tools.cli", "explain", "fly_carry_mismatch"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "before:" in done.stdout and "total = fx.Float32(0)" in done.stdout, done.stderr


def test_docs_errors_is_generated():
    from flydsl.tools.docs import ROOT, errors_page

    assert (ROOT / "docs" / "errors.md").read_text() == errors_page().rstrip("\n") + "\n", "run python3 dev.py docs"

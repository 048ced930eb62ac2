"""What a user sees of an error: own frames only, the cause in a line, all of it with FLYDSL_DEBUG; the process ends with status 1."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = '''
import numpy as np
import flydsl.compiler as flyc
import flydsl.expr as fx

def helper(a):
    return {wrong}

@flyc.kernel
def kernel(x: fx.Tensor):
    helper(x[0])

@flyc.jit
def launch(x: fx.Tensor):
    kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))

def main():
    {call}

if __name__ == "__main__":
    main()
'''
CALLS = {
    "call": "launch(np.zeros(4, np.float32))",
    "compile": "flyc.compile(launch, np.zeros(4, np.float32))",
    "count": "launch()",
}


def stderr_of(tmp_path, call: str, wrong: str = "fx.Int32(a) << 1.5", **env: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(call=call, wrong=wrong))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLYDSL_RUNTIME_CACHE_DIR": "", "ARCH": "gfx942", **env}
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("name", CALLS)
def test_only_the_users_frames_are_shown(tmp_path, name):
    text = stderr_of(tmp_path, CALLS[name])
    files = [line.split('"')[1] for line in text.splitlines() if line.startswith('  File "')]
    assert files and {pathlib.Path(f).name for f in files} == {"program.py"}, text
    assert "error[FLY_" in text and "fix: " in text, text


def test_the_chain_from_kernel_to_helper(tmp_path):
    text = stderr_of(tmp_path, CALLS["call"])
    assert text.index("in main") < text.index("in launch") < text.index("in kernel") < text.index("in helper"), text
    if sys.version_info >= (3, 11):  # Python 3.10 has no columns
        assert "program.py:7:12" in text and "^" in text, text
    assert "program.py:7" in text, text


def test_errors_of_python_itself_lose_our_frames_too(tmp_path):
    text = stderr_of(tmp_path, CALLS["call"], "undefined_name + a")
    files = {line.split('"')[1] for line in text.splitlines() if line.startswith('  File "')}
    assert {pathlib.Path(f).name for f in files} == {"program.py"} and "NameError" in text, text


def test_debug_shows_all_frames(tmp_path):
    for switch in ({"FLYDSL_DEBUG": "1"}, {"FLYDSL_DEBUG_SHOW_STACKTRACE": "1"}):
        text = stderr_of(tmp_path, CALLS["call"], **switch)
        assert "jit_function.py" in text and "error[FLY_" in text


def test_caught_errors_carry_the_users_frames(tmp_path):
    import numpy as np

    import flydsl.compiler as flyc
    import flydsl.expr as fx
    from flydsl.diag import FlyError

    @flyc.kernel
    def kernel(x: fx.Tensor):
        fx.Int32(x[0]) << 1.5

    @flyc.jit
    def launch(x: fx.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with pytest.raises(FlyError) as e:
        launch(np.zeros(4, np.float32))
    frames = []
    tb = e.value.__traceback__
    while tb is not None:
        frames.append(tb.tb_frame.f_code)
        tb = tb.tb_next
    ours = [code.co_name for code in frames if "/flydsl/" in code.co_filename]
    assert ours == ["__call__"]  # Python itself adds the frame that the error leaves through
    assert frames[-1].co_filename == __file__ and frames[-1].co_name == "kernel"

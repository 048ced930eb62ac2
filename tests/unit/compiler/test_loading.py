"""What is imported with the package, in fresh processes."""

import os
import subprocess
import sys

import pytest

KERNEL = """
import numpy as np
@flyc.kernel
def kernel(x: fx.Tensor):
    x[fx.thread_idx.x] = 1.0
@flyc.jit
def launch(x: fx.Tensor):
    kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))
launch(np.zeros(64, np.float32))
"""


def run(tmp_path, code: str, **env: str) -> subprocess.CompletedProcess:
    path = tmp_path / "program.py"
    path.write_text("import sys\n" + code)
    cleared = {k: v for k, v in os.environ.items() if k not in ("COMPILE_ONLY", "ARCH")}
    env = {**cleared, "FLYDSL_RUNTIME_ENABLE_CACHE": "0", **env}
    return subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=120)


def test_the_simulator_does_without_llvm(tmp_path):
    """Also on a machine with an AMD GPU, which is one where this file exists."""
    code = "import os\nexists = os.path.exists\nos.path.exists = lambda path: path == '/dev/kfd' or exists(path)\n"
    code += f"import flydsl.compiler as flyc, flydsl.expr as fx\n{KERNEL}\nprint('llvmlite' in sys.modules)"
    done = run(tmp_path, code, FLYDSL_RUNTIME_KIND="sim")
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_without_llvm_the_package_imports_and_a_compile_says_what_is_missing(tmp_path):
    code = f"sys.modules['llvmlite'] = None\nimport flydsl.compiler as flyc, flydsl.expr as fx\nprint('imported')\n{KERNEL}"
    done = run(tmp_path, code, COMPILE_ONLY="1", ARCH="gfx942")
    assert (done.returncode, done.stdout) == (1, "imported\n")
    assert "FLY_NO_LLVM" in done.stderr and "fix:" in done.stderr


def test_an_llvm_without_amd_gpus_is_said_by_the_compile_only(tmp_path):
    llvm = "import llvmlite.binding as llvm\ndef none(triple): raise RuntimeError('no target for ' + triple)\nllvm.Target.from_triple = none"
    code = f"{llvm}\nimport threading, flydsl.compiler as flyc, flydsl.expr as fx\n"
    code += "[thread.join() for thread in threading.enumerate() if thread is not threading.main_thread()]\n"
    done = run(tmp_path, f"{code}print('imported')\n{KERNEL}", COMPILE_ONLY="1", ARCH="gfx942")
    assert (done.returncode, done.stdout) == (1, "imported\n")
    assert "error[FLY_NO_LLVM]" in done.stderr and "cannot be used: no target for amdgcn" in done.stderr
    assert "Exception in thread" not in done.stderr


@pytest.mark.parametrize(("body", "expected"), [("fx.rocdl.s_nop(0)", True), ("(lambda: fx.rocdl.s_nop(0))()", True), ("fx.barrier()", False)])
def test_instructions_are_imported_with_the_kernel_that_names_them(tmp_path, body, expected):
    code = f"import flydsl.compiler as flyc, flydsl.expr as fx\n@flyc.kernel\ndef kernel():\n    {body}\n"
    done = run(tmp_path, code + "print('flydsl.expr.rocdl' in sys.modules)")
    assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr


ENDS = {
    "at once": "",
    "in a child": "import os\npid = os.fork()\nif pid == 0:\n    launch(np.zeros(64, np.float32))\n    os._exit(7)\n"
    "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n",
}


@pytest.mark.parametrize("end", ENDS)
def test_programs_end_and_fork_while_llvm_warms_up(tmp_path, end):
    kernel = KERNEL.replace("launch(np.zeros(64, np.float32))\n", "")
    code = f"import flydsl.compiler as flyc, flydsl.expr as fx\n{kernel}\n{ENDS[end]}print('end')"
    done = run(tmp_path, code, COMPILE_ONLY="1", ARCH="gfx942")
    noise = [line for line in done.stderr.splitlines() if not line.startswith("[flydsl] COMPILE_ONLY is set")]
    assert (done.returncode, done.stdout, noise) == (0, "end\n", [])

"""pyright (basic) and mypy accept the examples, and notice what is wrong in a kernel: so the annotations of `fx` are not all `Any`."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "MYPY_CACHE_DIR": os.environ.get("MYPY_CACHE_DIR", "")}
WRONG = """import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def kernel(x: fx.Tensor, n: fx.Constexpr[int], m: fx.Int32):
    a: str = n
    c = fx.make_layout((4, 8), (8, 1)).no_such_member
    for i in fx.range(m):
        e: str = i
    kernel(x, n, m).launch(gird=(1, 1, 1), block=(64, 1, 1))
"""
WRONG_LINES = {7, 8, 10, 11}


def run(tool: str, *arguments: str) -> subprocess.CompletedProcess:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed (pip install -e '.[dev]')")
    command = [sys.executable, "-m", tool]
    if tool == "pyright" and subprocess.run([*command, "--version"], capture_output=True, timeout=120).returncode:
        pytest.skip("pyright could not be started: it needs Node.js, and on first use the network")
    return subprocess.run([*command, *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=280)


def arguments(tool: str, tmp_path: pathlib.Path) -> list[str]:
    if tool == "mypy":
        return ["--cache-dir", str(tmp_path / "cache")]
    return ["--pythonpath", sys.executable]


@pytest.mark.parametrize("tool", ("mypy", "pyright"))
def test_examples_are_accepted(tool, tmp_path):
    done = run(tool, *arguments(tool, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("tool", ("mypy", "pyright"))
def test_mistakes_are_noticed(tool, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    config = []
    if tool == "pyright":  # files on its command line are checked without the project's settings
        (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)], "typeCheckingMode": "basic"}))
        config = ["-p", str(tmp_path)]
    done = run(tool, *arguments(tool, tmp_path), *(config or [str(path)]))
    assert done.returncode == 1, done.stdout + done.stderr
    found = {int(line.split("wrong.py:")[1].split(":")[0]) for line in done.stdout.splitlines() if "wrong.py:" in line and "error" in line}
    assert found == WRONG_LINES, done.stdout

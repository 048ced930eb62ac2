"""dev.py before anything is installed: help, wrong words, old Pythons; and which benchmarks `dev.py bench` runs."""

import ast
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ("demo", "test", "bench", "lint", "docs")


def dev(*arguments: str, venv: pathlib.Path, python: str = sys.executable) -> subprocess.CompletedProcess:
    environment = {**os.environ, "FLYDSL_VENV": str(venv)}
    return subprocess.run([python, str(ROOT / "dev.py"), *arguments], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_a_command_does_and_does_nothing(tmp_path, command, option):
    done = dev(command, option, venv=tmp_path / "venv")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"python3 dev.py {command}: ")
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bench", "nothing"], "there is no benchmark nothing\nbenchmarks:\n  compile_time\n"),
        (["bench", "layout", "tracing", "nothing"], "there is no benchmark nothing\nbenchmarks:\n"),
        (["demo", "03"], "dev.py demo takes no arguments, got 03; one example: "),
        (["nothing"], "Set up and work on FlyDSL"),
        ([], "Set up and work on FlyDSL"),
    ],
)
def test_wrong_words_get_the_list_and_nothing_is_installed(tmp_path, arguments, text):
    done = dev(*arguments, venv=tmp_path / "venv")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(text), done.stderr
    assert not (tmp_path / "venv").exists()


def test_old_pythons_are_told_the_version(tmp_path):
    """The file runs as far as its check on a Python without `list[str]`: no annotation outside quotes subscripts anything."""
    tree = ast.parse((ROOT / "dev.py").read_text(), feature_version=(3, 7))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    annotations = [a.annotation for f in functions for a in ast.walk(f.args) if isinstance(a, ast.arg)] + [f.returns for f in functions]
    assert len(annotations) > 10
    assert not [ast.unparse(a) for a in annotations if a is not None and any(isinstance(n, ast.Subscript) for n in ast.walk(a))]
    for name in ("python3.7", "python3.8", "python3.9"):
        found = shutil.which(name)
        if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            done = dev("demo", venv=tmp_path / "venv", python=found)
            assert done.returncode == 2 and re.fullmatch(r"FlyDSL needs Python 3\.10 or newer; this is 3\.[789]\.\d+\n", done.stderr), done.stderr


@pytest.fixture
def module(monkeypatch, tmp_path):
    """dev.py with a folder of two benchmarks beside those that need something; what it would run is recorded."""
    spec = importlib.util.spec_from_file_location("dev_under_test", ROOT / "dev.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    found.ran = []
    found.has_torch = True

    def run(*arguments: str) -> int:
        if arguments[0] == "-c":
            return int(not found.has_torch)
        found.ran.append((pathlib.Path(arguments[0]).stem, *arguments[1:]))
        return int("fail" in arguments)

    monkeypatch.setattr(found, "run", run)
    return found


def test_bench_runs_what_can_run_and_says_how_to_run_the_rest(module, capsys):
    assert module.bench([]) == 0
    names = [name for name, *_ in module.ran]
    assert names == [b for b in module.benchmarks() if b not in module.NEEDS] and "launch_overhead" in names
    out = capsys.readouterr().out
    for name, (need, arguments) in module.NEEDS.items():
        assert f"== skipped {name}: {need}: python3 dev.py bench {name} {arguments}\n" in out
    module.ran.clear()
    module.has_torch = False
    assert module.bench([]) == 0
    assert "launch_overhead" not in [name for name, *_ in module.ran]
    skipped = re.search(r"== skipped launch_overhead: .*torch is not installed: .*", capsys.readouterr().out)
    assert skipped and "-m pip install torch && python3 dev.py bench launch_overhead" in skipped[0]


def test_bench_runs_the_named_ones_and_passes_arguments_on(module, capsys):
    assert module.bench(["layout", "tracing"]) == 0
    assert module.bench(["emulate_tiles", "--emulator", "folder"]) == 0
    assert module.ran == [("layout",), ("tracing",), ("emulate_tiles", "--emulator", "folder")]
    assert module.bench(["layout", "fail"]) == 1 and "FAILED, or missed a target: layout" in capsys.readouterr().out


def test_benchmarks_without_needs_have_no_required_arguments(module):
    """Those that need something are all of those that would do nothing, or not start, without arguments."""
    for name in module.benchmarks():
        source = (ROOT / "benchmarks" / f"{name}.py").read_text()
        assert ("required=True" in source) <= (name in module.NEEDS), name

"""The `flydsl` command as a new user meets it: what it prints, where, and with which status."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from flydsl.diag import CompileCommandArgument, CompileCommandFunction, CompileCommandOutput
from flydsl.tools import compile_command
from flydsl.tools.compile_command import artifact_of, parse_argument

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
import numpy as np
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def scale_kernel(a: fx.Tensor, n: fx.Int32):
    a[fx.thread_idx.x] = a[fx.thread_idx.x] * 2.0

@flyc.jit
def scale(a: fx.Tensor, n: fx.Int32):
    scale_kernel(a, n).launch(grid=(n,), block=(64,))

{more}

if __name__ == "__main__":
    print("the program prints")
    scale(np.zeros(64, np.float32), 1)
"""
OTHER = "@flyc.jit\ndef other(a: fx.Tensor):\n    scale_kernel(a, 1).launch(grid=(1,), block=(64,))\n"


def flydsl(*arguments: object, cwd: pathlib.Path, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLYDSL_RUNTIME_CACHE_DIR": str(cwd / "cache"), **variables}
    command = [sys.executable, "-m", "flydsl.tools.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=cwd, env=environment, timeout=200)


def texts(done: subprocess.CompletedProcess) -> tuple[int, str, str]:
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("{more}", ""))
    return path


def test_without_a_command_it_says_what_there_is(tmp_path):
    for arguments in ((), ("cache",)):
        status, out, err = texts(flydsl(*arguments, cwd=tmp_path))
        assert (status, out) == (2, "") and "usage: flydsl" in err and "explain" in err
    status, out, _ = texts(flydsl("--version", cwd=tmp_path))
    assert status == 0 and out.startswith("flydsl 0.")


@pytest.mark.parametrize(
    ("emit", "start"),
    [
        ("origin", b"module attributes {fly.arch"),
        ("lowered", b"module attributes {fly.arch"),
        ("llvm", b"; ModuleID"),
        ("isa", b"\t.amdgcn_target"),
        ("obj", b"\x7fELF"),
        ("hsaco", b"\x7fELF"),
    ],
)
def test_every_output_is_all_there_is_on_standard_output(program, emit, start):
    done = flydsl("compile", "program.py", "--emit", emit, "--arch", "gfx1201", cwd=program.parent)
    assert done.returncode == 0 and done.stdout.startswith(start), done.stderr.decode()
    assert b"the program prints" in done.stderr and b"the program prints" not in done.stdout


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (":scale_kernel", "scale_kernel is a kernel: name the jit function that launches it"),
        (":nothing", "it has no nothing"),
        (":np", "np is not a @flyc.jit function"),
        (":other", "running the file never calls other"),
        (".missing:scale", "there is no such file"),
    ],
)
def test_functions_are_found_or_named(program, monkeypatch, name, problem):
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", "")
    program.write_text(PROGRAM.replace("{more}", OTHER))
    with pytest.raises(CompileCommandFunction, match=problem):
        artifact_of(f"{program}{name}", [])
    with pytest.raises(CompileCommandFunction, match="(?s)2 jit functions.*scale, other"):
        artifact_of(f"{program}", ["f32[64]"])
    assert "scale_kernel_0" in artifact_of(f"{program}:other", ["f32[64]"]).isa


@pytest.mark.parametrize("argument", ["f32[a]", "i32:x", "f7[3]", "const", "f32[3"])
def test_bad_arguments(argument):
    with pytest.raises(CompileCommandArgument):
        parse_argument(argument)


def test_every_8_bit_float_of_flydsl_has_a_name_for_arg():
    for text, dtype in [
        ("f8E4M3FN", "float8_e4m3fn"), ("f8E5M2", "float8_e5m2"), ("f8E4M3FNUZ", "float8_e4m3fnuz"), ("fp8_e4m3fnuz", "float8_e4m3fnuz"),
        ("float8_e5m2", "float8_e5m2"), ("Float8E4M3FN", "float8_e4m3fn"), ("fp8", "float8_e4m3fn"), ("bf8", "float8_e5m2"),
        ("f8E4M3B11FNUZ", "float8_e4m3b11fnuz"), ("f8E8M0FNU", "float8_e8m0fnu"), ("f8E4M3", "float8_e4m3"),
        ("bf16", "bfloat16"), ("f64", "float64"), ("u8", "uint8"), ("i64", "int64"),
    ]:  # fmt: skip
        array = parse_argument(f"{text}[3,4]")
        assert (array.dtype.name, array.shape) == (dtype, (3, 4)), text


def test_one_bad_word_of_the_command_has_no_place_in_the_users_program(program):
    """Neither the script that pip makes for `flydsl` nor `python -m` is the user's source."""
    script = program.parent / "flydsl_script.py"
    script.write_text("import sys\nfrom flydsl.tools.cli import main\nsys.exit(main())\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLYDSL_RUNTIME_CACHE_DIR": ""}
    for start in ([str(script)], ["-m", "flydsl.tools.cli"]):
        for arguments in (["nothing.py:f"], ["program.py:nothing"], ["program.py:scale", "--arg", "x7[3]"], ["program.py", "--arg", "i32:1"]):
            command = [sys.executable, *start, "compile", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, cwd=program.parent, env=environment, timeout=200)
            assert done.returncode == 1 and "error[FLY_" in done.stderr, done.stderr
            assert "-->" not in done.stderr and "main()" not in done.stderr, done.stderr
            assert not [line for line in done.stderr.splitlines() if line != line.rstrip()], done.stderr


def test_errors_of_the_users_program_point_at_it_alone(program):
    program.write_text(PROGRAM.replace("{more}", "").replace("* 2.0", "<< 1.5"))
    status, out, err = texts(flydsl("compile", "program.py:scale", cwd=program.parent))
    assert (status, out) == (1, "") and "--> program.py:8" in err and "called from scale (program.py:12" in err
    assert "cli.py" not in err and "compile_command.py" not in err and "runpy" not in err


@pytest.mark.parametrize(
    ("source", "frames", "last"),
    [
        ("def f(:\n    pass\n", ["program.py"], "SyntaxError: "),
        ("import of_nothing\n", ["program.py"], "ModuleNotFoundError: No module named 'of_nothing'"),
        ("import broken\n", ["program.py", "broken.py"], "SyntaxError: "),
        ("def f():\n    raise KeyError('x')\nf()\n", ["program.py", "program.py"], "KeyError: 'x'"),
    ],
)
def test_pythons_errors_in_the_users_file_show_its_frames_alone(program, source, frames, last):
    program.write_text(source)
    (program.parent / "broken.py").write_text("x = (\n")
    status, out, err = texts(flydsl("compile", "program.py:f", cwd=program.parent))
    shown = re.findall(r'^  File "(.*)", line', err, re.MULTILINE)
    assert (status, out) == (1, "") and [pathlib.Path(f).name for f in shown] == frames, err
    assert err.splitlines()[-1].startswith(last), err
    assert "compile_command.py" in texts(flydsl("compile", "program.py:f", cwd=program.parent, FLYDSL_DEBUG="1"))[2]


def test_a_function_without_arguments_is_compiled_though_nothing_calls_it(program):
    more = "@flyc.jit\ndef alone(n: fx.Constexpr[int] = 3):\n    empty_kernel(n).launch(grid=(1,), block=(64,))\n"
    kernel = "@flyc.kernel\ndef empty_kernel(n: fx.Constexpr[int]):\n    i = fx.thread_idx.x + n\n"
    program.write_text(PROGRAM.replace("{more}", kernel + more))
    status, out, err = texts(flydsl("compile", "program.py:alone", "--emit", "origin", "--arch", "gfx942", cwd=program.parent))
    assert status == 0 and "gpu.func @empty_kernel_0" in out, err
    program.write_text(program.read_text() + "\n    raise SystemExit(3)\n")
    assert texts(flydsl("compile", "program.py:alone", cwd=program.parent))[0] == 0


SCRIPT = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--times", type=int, default=3)
parser.add_argument("wanted", nargs={nargs!r})
print("arguments", sys.argv[1:], parser.parse_args().times)
assert sys.modules["__main__"].PROGRAM_IS_MAIN
"""


def test_the_script_has_no_arguments_of_the_command(program):
    more = "PROGRAM_IS_MAIN = True\n" + SCRIPT.format(nargs="?")
    program.write_text(PROGRAM.replace("{more}", more))
    status, _, err = texts(flydsl("compile", "program.py:scale", "--arch", "gfx942", cwd=program.parent))
    assert status == 0 and "arguments [] 3" in err, err
    program.write_text(PROGRAM.replace("{more}", SCRIPT.format(nargs=1)))
    status, out, err = texts(flydsl("compile", "program.py:scale", cwd=program.parent))
    assert (status, out) == (1, "") and "running the file exits with status 2 and never calls scale" in err, err
    assert texts(flydsl("compile", "program.py:scale", "--arg", "f32[64]", "--arg", "i32:1", cwd=program.parent))[0] == 0


def test_another_chip_than_asked_for_is_refused(program):
    text = PROGRAM.replace("{more}", "import os\nos.environ['ARCH'] = 'gfx1100'\n")
    program.write_text(text)
    for command in (["compile"], ["report"]):
        status, out, err = texts(flydsl(*command, "program.py:scale", "--arch", "gfx942", cwd=program.parent))
        assert (status, out) == (1, "") and "`scale` of program.py was compiled for gfx1100, not for gfx942" in err, err
        assert texts(flydsl(*command, "program.py:scale", "--arch", "gfx1100", cwd=program.parent))[0] == 0


def test_files_that_cannot_be_written_or_read(program):
    for name in ("nowhere/x.s", "."):
        status, out, err = texts(flydsl("compile", "program.py:scale", "--emit", "origin", "-o", name, cwd=program.parent))
        assert (status, out) == (1, "") and f"error[FLY_OUTPUT]: cannot write {name}: " in err and "Traceback" not in err
    status, out, err = texts(flydsl("report", "nowhere.s", cwd=program.parent))
    assert (status, out) == (1, "") and "error[FLY_INPUT]: cannot read nowhere.s: No such file" in err


def test_help_says_that_the_file_is_run(tmp_path):
    status, out, _ = texts(flydsl("compile", "--help", cwd=tmp_path))
    assert status == 0 and "Without --arg, FILE is run as a script" in " ".join(out.split())


def test_cache_commands(program):
    folder = program.parent
    assert texts(flydsl("cache", "list", cwd=folder))[:2] == (0, f"no entry in {folder}/cache\n")
    for arch in ("gfx942", "gfx950"):
        assert flydsl("compile", "program.py:scale", "--arch", arch, "-o", "x.s", cwd=folder).returncode == 0
    status, out, _ = texts(flydsl("cache", "list", cwd=folder))
    assert status == 0 and len(out.splitlines()) == 2 and "gfx942" in out and "gfx950" in out
    status, out, _ = texts(flydsl("cache", "explain", "scale", cwd=folder))
    assert status == 0 and "arch: stored 'gfx942', now 'gfx950'" in out
    assert texts(flydsl("cache", "explain", "scale", "zz", cwd=folder))[0] == 1
    status, out, _ = texts(flydsl("cache", "stats", cwd=folder))
    assert status == 0 and "2 entries" in out
    assert "removed 2 entries" in texts(flydsl("cache", "clear", cwd=folder))[1]


def test_differences_are_cut_to_where_they_are():
    from flydsl.compiler.disk import explain_difference

    long = "Layout((Sym(32, 1), Sym(32, 1)), (Sym(64, {}), Sym(64, 1), Sym(64, 1), Sym(64, 1), Sym(64, 1)))"
    (line,) = explain_difference({"arguments": [("a", long.format(16))]}, {"arguments": [("a", long.format(4))]})
    stored, _, now = line.partition(", now ")
    assert "Sym(64, 4)" in stored and "Sym(64, 16)" in now and len(line) < 200
    (line,) = explain_difference({"g": [("a", "x")]}, {"g": []})
    assert line == "g: a: stored nothing, now 'x'"


def test_report(program):
    status, out, err = texts(flydsl("report", "program.py", "--arch", "gfx942", cwd=program.parent))
    assert status == 0 and out.startswith("scale_kernel_0 on gfx942") and "the program prints" in err


def test_machine_code_does_not_go_to_a_terminal(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_command, "artifact_of", lambda function, arguments, arch: None)
    monkeypatch.setattr(compile_command, "emit", lambda artifact, what: b"\x7fELF")
    monkeypatch.setattr(sys, "stdout", type("Terminal", (), {"isatty": lambda self: True})())
    args = argparse.Namespace(function="p.py:f", arg=[], arch=None, emit="hsaco", output=None)
    with pytest.raises(CompileCommandOutput, match="--emit hsaco gives 4 bytes that are no text") as e:
        compile_command.run(args)
    assert "fix: write them to a file: -o kernel.hsaco" in str(e.value)
    args.output = tmp_path / "kernel.hsaco"
    assert compile_command.run(args) == 0 and args.output.read_bytes() == b"\x7fELF"


# --- flydsl doctor ---


@pytest.mark.parametrize(
    ("variables", "status", "text"),
    [
        ({"FLYDSL_RUNTIME_KIND": "null", "ARCH": "gfx1201"}, 0, "runtime        null (launches do nothing)\ntarget         gfx1201"),
        ({"FLYDSL_RUNTIME_KIND": "sim"}, 0, "runtime        sim (the simulator)"),
        ({"FLYDSL_RUNTIME_KIND": "cuda"}, 1, "wrong:\n  FLYDSL_RUNTIME_KIND='cuda' is not valid: expected one of auto, sim"),
        ({"ARCH": "gfx9"}, 1, "wrong:\n  unknown arch `gfx9`"),
        ({"FLYDSL_COMPILE_BACKEND": "ptx"}, 1, "target         gfx942, backend ptx\n"),
        ({"FLYDSL_COMPILE_BACKEND": "ptx"}, 1, "wrong:\n  there is no compile backend named ptx"),
    ],
)
def test_doctor_says_what_the_environment_has_wrong(tmp_path, variables, status, text):
    found, out, err = texts(flydsl("doctor", cwd=tmp_path, **{"ARCH": "gfx942", **variables}))
    assert text in out and (found, err) == (status, ""), out


def doctor(folder: pathlib.Path, **variables: str) -> tuple[int, str]:
    status, out, err = texts(flydsl("doctor", cwd=folder, **{"ARCH": "gfx942", **variables}))
    assert err == "", err
    return status, out


def hidden(folder: pathlib.Path, module: str) -> str:
    """Return a PYTHONPATH on which importing `module` fails."""
    (folder / "hidden" / module).mkdir(parents=True)
    (folder / "hidden" / module / "__init__.py").write_text("raise ImportError('hidden by the test')\n")
    return f"{folder / 'hidden'}{os.pathsep}{ROOT}"


@pytest.mark.parametrize(
    ("module", "package"), [("numpy", "numpy"), ("ml_dtypes", "ml_dtypes"), ("torch_mlir", "torch-mlir"), ("llvmlite", "llvmlite")]
)
def test_doctor_survives_the_packages_that_it_reports(tmp_path, module, package):
    done = flydsl("doctor", cwd=tmp_path, ARCH="gfx942", PYTHONPATH=hidden(tmp_path, module))
    status, out, err = texts(done)
    assert status == 1 and "flydsl" not in err, err  # NumPy's C code prints what ml_dtypes makes of its absence
    assert re.search(rf"^{package} +\S+, but its import fails: ImportError: hidden by the test$", out, re.MULTILINE), out
    assert re.search(rf"^missing:\n(  .*\n)*  {package}: pip install --force-reinstall '{package}[=>]=", out, re.MULTILINE), out
    assert re.search(r"^target +gfx942$", out, re.MULTILINE)


def test_doctor_compares_versions_with_those_that_pyproject_states():
    from flydsl.tools import doctor

    text = (ROOT / "pyproject.toml").read_text()
    required = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)[1]
    stated = re.findall(r'"([\w-]+)([=>]=[\w.]+)"', required)
    assert stated == [(p.name, p.version) for p in doctor.REQUIRED] and len(stated) == 4
    assert f'hsaco = ["ziglang{doctor.OPTIONAL[0].version}"]' in text
    for version, wanted, holds in [
        ("1.26.4", ">=1.26", True), ("1.9.9", ">=1.26", False), ("2.0", ">=1.26", True), ("2.0.0rc1", ">=2", True),
        ("20261001", "==20261001", True), ("20261002", "==20261001", False), ("2.13.0+cpu", ">=2.13.1", False), ("1.26", ">=1.26.0", True),
        ("anything", "", True),
    ]:  # fmt: skip
        assert doctor.satisfies(version, wanted) == holds, (version, wanted)


def test_doctor_names_a_version_that_is_too_old(tmp_path):
    for name in ("llvmlite-0.40.0.dist-info", "torch_mlir-20250101.dist-info"):
        (tmp_path / "old" / name).mkdir(parents=True)
        package, version = name.removesuffix(".dist-info").split("-")
        (tmp_path / "old" / name / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    status, out = doctor(tmp_path, PYTHONPATH=f"{tmp_path / 'old'}{os.pathsep}{ROOT}")
    assert status == 1
    assert "0.40.0, but flydsl needs >=0.50" in out and "llvmlite: pip install 'llvmlite>=0.50'" in out
    assert "20250101, but flydsl needs ==20261001" in out and "torch-mlir: pip install 'torch-mlir==20261001'" in out


def test_doctor_tells_a_missing_hip_from_a_broken_one(tmp_path):
    status, out = doctor(tmp_path, FLYDSL_RUNTIME_KIND="rocm", ROCM_PATH="")
    assert status == 1 and "wrong:\n  FLYDSL_RUNTIME_KIND=rocm, but the HIP runtime library (libamdhip64.so) is not found" in out
    (tmp_path / "lib").mkdir()
    library = tmp_path / "lib" / "libamdhip64.so"
    library.write_text("not a library")
    status, out = doctor(tmp_path, ROCM_PATH=str(tmp_path))
    assert status == 0 and f"HIP            {library} cannot be used as the HIP runtime library: " in out
    status, out = doctor(tmp_path, ROCM_PATH=str(tmp_path), FLYDSL_RUNTIME_KIND="rocm")
    assert status == 1 and f"wrong:\n  FLYDSL_RUNTIME_KIND=rocm, but {library} cannot be used" in out


def test_doctor_tries_the_linker_and_the_assembler(tmp_path):
    status, out = doctor(tmp_path)
    assert status == 0 and re.search(r"^linker +\S+.*\(from \w+\)$", out, re.MULTILINE)
    assert re.search(r"^assembler +\S+.*\(from \w+\)$", out, re.MULTILINE)
    false = shutil.which("false")
    status, out = doctor(tmp_path, FLYDSL_LLD=false)
    assert status == 1 and f"wrong:\n  FLYDSL_LLD={false} is no ld.lld (exit 1): correct it, or unset it\n" in out
    status, out = doctor(tmp_path, FLYDSL_LLD="/nope")
    assert status == 1 and "wrong:\n  FLYDSL_LLD=/nope is not an executable file: set it to an ld.lld, or unset it" in out
    rocm = tmp_path / "llvm" / "bin"
    rocm.mkdir(parents=True)
    (rocm / "clang").write_text("#!/bin/sh\nexit 1\n")
    (rocm / "clang").chmod(0o755)
    status, out = doctor(tmp_path, ROCM_PATH=str(tmp_path))
    assert status == 0 and f"{rocm}/clang (from ROCM_PATH), which cannot assemble for gfx942" in out and "assembler (optional): " in out

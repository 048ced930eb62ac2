"""`python -m flydsl.tools.opt`: what it refuses, how, and that what it prints it reads."""

import subprocess
import sys

import pytest

from flydsl.dialects.values import LLVM_SPACE
from flydsl.layout import ParseError, parse
from flydsl.layout.view import SPACES
from flydsl.tools import opt

MODULE = "func.func @f(%a: !fly.memref<f16, {space}, (4,8):(8,1)>, %b: !fly.ptr<f32, {space}>) {{ return }}"


def command(capsys, *arguments: str) -> tuple[int, str, str]:
    status = opt.main(list(arguments))
    return (status, *capsys.readouterr())


@pytest.mark.parametrize("space", LLVM_SPACE)
def test_every_memory_space_is_read_and_printed(tmp_path, capsys, space):
    path = tmp_path / "in.mlir"
    path.write_text(MODULE.format(space=space))
    status, out, err = command(capsys, str(path))
    assert (status, err) == (0, "") and f"!fly.memref<f16, {space}, (4,8):(8,1)>" in out and f"!fly.ptr<f32, {space}>" in out
    path.write_text(out)
    assert command(capsys, str(path)) == (0, out, "")


def test_the_spaces_of_the_notation_are_those_that_are_lowered():
    assert set(SPACES) == set(LLVM_SPACE)


@pytest.mark.parametrize("text", ["!fly.memref<f16, globl, 4:1>", "!fly.ptr<f16, globl>", "!fly.memref<f16, Global, 4:1>"])
def test_an_unknown_memory_space_is_refused_with_the_list(text):
    with pytest.raises(ParseError, match=r"one of the memory spaces generic, global, shared, register, #fly_rocdl.buffer_desc, got [gG]lob") as e:
        parse(text)
    assert e.value.facts["column"] == text.index(",") + 3


@pytest.mark.parametrize("passes", ["", "canonicalize", "lower"])
def test_types_are_judged_whatever_the_passes_look_at(tmp_path, capsys, passes):
    path = tmp_path / "in.mlir"
    path.write_text(MODULE.format(space="globl"))
    status, out, err = command(capsys, "-p", passes, str(path))
    assert (status, out) == (1, "") and err.startswith("error[FLY_IR_SYNTAX]") and "got globl" in err and "(4,8):(8,1)>" in err


def test_unknown_chips_are_refused_without_a_pass_that_asks(tmp_path, capsys):
    path = tmp_path / "in.mlir"
    path.write_text("module {}")
    status, out, err = command(capsys, "--arch", "gfx9999", str(path))
    assert (status, out) == (1, "") and err.startswith("error[FLY_UNKNOWN_ARCH]: unknown arch `gfx9999`")
    assert command(capsys, "--arch", "gfx1201", str(path)) == (0, "module {\n}\n", "")


def test_files_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "bytes.mlir").write_bytes(b"\xff\xfe")
    for name, problem in [("none.mlir", "No such file or directory"), (".", "Is a directory"), ("bytes.mlir", "it is no text")]:
        status, out, err = command(capsys, str(tmp_path / name))
        assert (status, out) == (1, "") and err.startswith(f"error[FLY_INPUT]: cannot read {tmp_path / name}: {problem}\n"), err


def test_the_command_ends_without_a_traceback(tmp_path):
    done = subprocess.run([sys.executable, "-m", "flydsl.tools.opt", str(tmp_path / "none.mlir")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "-->" not in done.stderr, done.stderr

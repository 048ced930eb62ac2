"""debug_info=True: DWARF line tables name the user's files and lines, read by pyelftools."""

import io
import pathlib
import re

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.targets.rocm import CodegenOptions, compile_lowered

TEXT = """module { gpu.module @kernels { gpu.func @k(%p: !llvm.ptr<1>, %f: f32) kernel {
  %g = arith.mulf %f, %f : f32 loc(callsite("helper.py":7:3 at "user.py":11:5))
  llvm.store %g, %p : f32, !llvm.ptr<1> loc("user.py":12:5)
  gpu.return loc("user.py":13:1)
 } loc("user.py":10:1) } }"""


def lines(image: bytes) -> set[tuple[str, int]]:
    elf = ELFFile(io.BytesIO(image))
    if not elf.has_dwarf_info():
        return set()
    dwarf = elf.get_dwarf_info()
    found = set()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        names = [entry.name.decode() for entry in program["file_entry"]]
        found |= {(names[e.state.file - 1], e.state.line) for e in program.get_entries() if e.state and e.state.line}
    return found


def test_lines_of_kernel_and_helper():
    found = lines(compile_lowered(TEXT, "gfx942", CodegenOptions(debug_info=True)).hsaco)
    assert {("helper.py", 7), ("user.py", 12), ("user.py", 13)} <= found


def test_no_table_without_the_option():
    assert not lines(compile_lowered(TEXT, "gfx942").hsaco)


# --- kernels of users ------------------------------------------------------------------------------------------------


def helper(value):
    return value * 3.0 + 1.0  # HELPER


@flyc.kernel
def lines_kernel(x: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    value = x[i]  # LOAD
    value = helper(value)  # CALL
    for k in range(n):
        value = value / (value + 2.0)  # LOOP
    x[i] = value  # STORE


@flyc.jit
def lines_launch(x: fx.Tensor, n: fx.Int32):
    lines_kernel(x, n).launch(grid=(1,), block=(64,))


def marked(mark: str) -> int:
    """Return the line of this file with a mark."""
    text = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(text, 1) if line.endswith(f"# {mark}"))


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_instructions_map_to_the_users_lines(monkeypatch, arch):
    """The DWARF table, address by address, against the instructions that llvmlite's ISA shows under the same `.loc`."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "sim")
    monkeypatch.setenv("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")
    artifact = flyc.compile(lines_launch, np.zeros(64, np.float32), 5).artifact
    table = {
        line for name, line in lines(artifact.codegen(("hsaco",)).hsaco) if name.endswith(pathlib.Path(__file__).name)
    }
    assert {marked("LOAD"), marked("HELPER"), marked("LOOP"), marked("STORE")} <= table
    at = None
    seen: dict[str, set[int]] = {}
    for text in artifact.codegen().isa.splitlines():
        if found := re.match(r"\s+\.loc\s+\d+ (\d+)", text):
            at = int(found[1])
        elif found := re.match(r"\s+((?:global|buffer|flat|v_div|v_rcp)\w*)", text):
            seen.setdefault(found[1].split("_dword")[0].split("_b32")[0], set()).add(at)
    assert seen["global_load"] == {marked("LOAD")} and seen["global_store"] == {marked("STORE")}
    divisions = set().union(*(s for name, s in seen.items() if name.startswith(("v_div", "v_rcp"))))
    assert divisions == {marked("LOOP")}


def test_the_file_can_be_found(monkeypatch):
    monkeypatch.setenv("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "sim")
    image = flyc.compile(lines_launch, np.zeros(64, np.float32), 5).artifact.codegen(("hsaco",)).hsaco
    dwarf = ELFFile(io.BytesIO(image)).get_dwarf_info()
    paths = set()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        assert program["version"] == 4  # directory 0 is the unit's
        folders = [unit.get_top_DIE().attributes["DW_AT_comp_dir"].value, *program["include_directory"]]
        paths |= {pathlib.Path(folders[e.dir_index].decode(), e.name.decode()) for e in program["file_entry"]}
    assert pathlib.Path(__file__) in paths

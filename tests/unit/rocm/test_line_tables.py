"""debug_info=True: DWARF line tables name the user's files and lines, read by pyelftools."""

import io

from elftools.elf.elffile import ELFFile

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

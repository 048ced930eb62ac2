"""The catalogue of atoms in `docs/atoms.md`: `python -m flydsl.atoms.catalogue >
docs/atoms.md`.

Everything is read from the tables: what each chip has, the thread-value layouts with pictures,
the copy atoms, and where we differ from the reference. tests/unit/atoms/test_catalogue.py keeps
the page up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from flydsl import arch as chips
from flydsl.layout import Layout, crd2idx, size

from . import copy_ops, copy_rows, tdm
from .deviations import DEVIATIONS
from .errors import AtomError
from .matrix_rows import MatrixRow
from .mma_ops import supported

_CHIPS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
_PICTURE_COLUMNS = 16


def picture(layout: Layout, rows: int, columns: int) -> list[str]:
    """Return lines that show, for each element of a matrix, `lane.value`; lanes that share it
    are listed once.

    Shapes   layout: (lane, value) -> index in (rows, columns), column-major; wide matrices are
             cut
    """
    held: dict[int, str] = {}
    for value in range(size(layout[1])):
        for lane in range(size(layout[0])):
            held.setdefault(crd2idx((lane, value), layout), f"{lane}.{value}")
    shown = min(columns, _PICTURE_COLUMNS)
    cells = [[held.get(r + rows * c, "") for c in range(shown)] for r in range(rows)]
    width = max(len(cell) for line in cells for cell in line)
    more = " ..." if columns > shown else ""
    return [" ".join(cell.rjust(width) for cell in line).rstrip() + more for line in cells]


class _Maps:
    """Numbers for the distinct lane maps, in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, int, int], int] = {}

    def number(self, layout: Layout, rows: int, columns: int) -> int:
        """Return the number of a map; a map is a layout with the extents of what it maps into."""
        return self.numbers.setdefault((str(layout), rows, columns), len(self.numbers) + 1)


def _matrix_table(chip: str, maps: _Maps) -> Iterator[str]:
    yield "| shape | blocks | A, B -> C | registers A, B, C | instruction | rocdl op | maps A, B, C |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in supported(chip):
        if row.scale_type and row.a != row.b:
            continue
        numbers = (
            maps.number(row.layout_a, row.m, row.k),
            maps.number(row.layout_b, row.n, row.k),
            maps.number(row.layout_c, row.m, row.n),
        )
        links = ", ".join(f"[{n}](#map-{n})" for n in numbers)
        yield (
            f"| {row.m}x{row.n}x{row.k} | {row.blocks} | {row.a}, {row.b} -> {row.acc} "
            f"| {', '.join(_short(r) for r in row.regs)} | `{row.isa}` | `{row.rocdl}` | {links} |"
        )


def _short(register: str) -> str:
    return register.replace("vector<", "").replace(">", "") if "<" in register else register


def _copy_table(chip: str) -> Iterator[str]:
    yield "| atom | from, to | instruction | state |"
    yield "| --- | --- | --- | --- |"
    for op, elem in _copies():
        for src, dst in op.spaces:
            if len(op.spaces) > 2 and (src, dst) != (copy_ops.GLOBAL, copy_ops.REGISTER):
                continue  # the universal copy connects all pointers; one line says so
            line = _copy_line(op, elem, src, dst, chip)
            if line:
                yield line


def _copy_line(op: copy_ops.CopyOp, elem: str, src: str, dst: str, chip: str) -> str | None:
    try:
        found = copy_rows.require_instruction(op, copy_rows.row(op, elem, src, dst, chip), chip)
    except AtomError:
        return None
    names = "any pointer" if len(op.spaces) > 2 else f"{_space(src)} to {_space(dst)}"
    isa = (
        f"`{found.isa}`"
        if found.isa
        else f"`{found.memory.split(' ptr')[0]}`"
        if found.memory
        else "load, store"
    )
    return f"| `{op.short}` | {names} | {isa} | {', '.join(op.state_fields) or '-'} |"


def _space(name: str) -> str:
    return "buffer" if name == copy_ops.BUFFER else name


def _copies() -> Iterator[tuple[copy_ops.CopyOp, str]]:
    yield from ((copy_ops.UniversalCopy(b), "i8") for b in (8, 16, 32, 64, 128))
    yield from ((copy_ops.BufferCopy(b), "i8") for b in (8, 16, 32, 64, 96, 128))
    yield from ((copy_ops.BufferCopyLDS(b), "i8") for b in (32, 128))
    yield from ((copy_ops.BufferLoadAsyncLDS(b), "i8") for b in (32, 96, 128))
    yield from ((copy_ops.GlobalLoadAsyncLDS(b), "i8") for b in (32, 96, 128))
    for unit, bits, elem in (
        (16, 64, "f16"),
        (8, 64, "i8"),
        (4, 64, "f4E2M1FN"),
        (6, 96, "f6E2M3FN"),
    ):
        yield copy_ops.LDSReadTrans(unit, bits), elem
    for op, elem in (
        ("add", "f32"),
        ("add", "f64"),
        ("max", "f32"),
        ("min", "ui32"),
        ("or", "i32"),
        ("inc", "i32"),
    ):
        yield copy_ops.UniversalAtomic(op, elem, "agent"), elem
    for op, elem in (("add", "f32"), ("add", "f64"), ("add", "vector<2xf16>"), ("add", "vector<2xbf16>"),
                     ("max", "f64"), ("max", "i32"), ("max", "i64"), ("min", "ui32"), ("min", "ui64")):  # fmt: skip
        yield copy_ops.BufferAtomic(op, elem), elem
    yield tdm.TDM(2, 4), "f16"


def _map_section(maps: _Maps) -> Iterator[str]:
    yield "## Thread-value layouts"
    yield ""
    yield "A layout maps (lane, value) to the column-major index of an element in (M, K) for A, (N, K) for B,"
    yield "(M, N) for C and D. Pictures show `lane.value` at each element, at most 16 columns; where several lanes"
    yield "hold an element the lowest is shown. Forms with several blocks repeat this per block (slowest index)."
    yield ""
    from flydsl.layout import parse

    for (text, rows, columns), number in maps.numbers.items():
        yield f"### Map {number}"
        yield ""
        yield f"`{text}` over {rows} x {columns}"
        yield ""
        yield "```"
        yield from picture(parse(text), rows, columns)
        yield "```"
        yield ""


def pages() -> Iterator[str]:
    """Yield the lines of the catalogue."""
    maps = _Maps()
    yield "# Atoms"
    yield ""
    yield "Generated from the tables in `flydsl/atoms` by `python -m flydsl.atoms.catalogue`. Registers are per lane:"
    yield "`4xf16` is a vector of four. Maps are drawn at the end of the page."
    yield ""
    for chip in _CHIPS:
        facts = chips.get(chip)
        yield f"## {chip} ({facts.family}, wave{facts.wave_size})"
        yield ""
        yield "### Matrix instructions"
        yield ""
        yield from _matrix_table(chip, maps)
        if facts.has("mfma_scale") or facts.has("wmma_scale"):
            yield ""
            yield "The scaled instructions take fp8, bf8, fp6, bf6 and fp4 in any mix; A and B keep their own map."
        yield ""
        yield "### Copies"
        yield ""
        yield from _copy_table(chip)
        yield ""
    yield from _map_section(maps)
    yield "## Where we differ from the reference"
    yield ""
    for deviation in DEVIATIONS:
        yield f"* **{deviation.name}**. Reference: {deviation.reference}. Ours: {deviation.why}."
    yield ""
    yield from _HARDWARE_NOTES


_HARDWARE_NOTES = """## Where layouts and hardware differ

* **Scaled MFMA with 8-bit operands (gfx950).** The maps above are the reference's: lane group g holds k = 32 g to
  32 g + 31 in the order of its registers. The hardware reads the first 16 register elements as k = 16 g to 16 g + 15 and
  the last 16 as the same half of K later (16x16x128: 64, 32x32x64: 32). As long as A and B are both of such types and no
  scale is set, the two numberings give the same sum. Scales count by the hardware's k: lane row + rows * b scales
  k = 32 b to 32 b + 31. 6- and 4-bit operands hold 32 neighbours per lane. Load operands with a k permutation of
  (16,2,groups):(1,K/2,16) in the tiled MMA, as examples/09_scaled_mma.py does; the simulator executes the hardware's
  order. Sources: Composable Kernel, test/mx_mfma_op (run on gfx950), Triton's layouts, and FlyDSL's public MXFP8, MXFP6 and
  MXFP4 kernel.
* **Scaled WMMA with 8-bit operands (gfx1250).** The maps above are the reference's: half waves alternate in runs of 8 k. The
  hardware has runs of 16 (of 32 for 6- and 4-bit operands). Two 8-bit operands and a scale per 32 k give the same sum in
  both numberings; a partner of 6 or 4 bits, or a scale per 16 k, meets the hardware's k, which the simulator executes. Sources:
  Triton (what `tl.dot_scaled` compiles to), Composable Kernel, and FlyDSL's public A8W4 kernel for gfx1250, whose loads are
  runs of 16 bytes: with runs of 8 its tests fail in the simulator.

## What lane maps were compared with

A map of ours is data of one table that lowering and simulator share; each was compared element by element with sources that do
not know it (tests/unit/atoms: isa_maps.py has formulas written from manuals and from Composable Kernel, calculator_maps.json and
triton_maps.json what two programs answered, with the scripts that asked them). A permuted map fails those tests.

| chip | instructions | sources |
| --- | --- | --- |
| gfx942 | MFMA, v_smfmac and its index | CDNA3 manual, section 7; AMD's matrix instruction calculator 1.3.2; single blocks: Triton 3.9 |
| gfx950 | MFMA with twice the k; scaled MFMA and its scales | Triton 3.9; scaled, with 6-bit operands too: Composable Kernel, test/mx_mfma_op |
| gfx950 | v_smfmac with twice the k | Composable Kernel (ck_tile/core/arch/mma/sparse); AMD's instruction emulator in ROCm/rocm-systems |
| gfx1100 | WMMA | RDNA3 manual, section 7.9; calculator; f16, bf16, i8 also Triton |
| gfx1201 | WMMA | RDNA4 manual, section 7.12; calculator; f16, bf16, i8, 8-bit floats also Triton |
| gfx1250 | WMMA with 32-bit results; scaled WMMA of fp8, bf8, fp4 and its scales | Triton 3.9; rows and columns of C also Composable Kernel |
| gfx1250 | WMMA with 16-bit results; scaled WMMA of fp6, bf6 | Composable Kernel (kCMPerLane, kNumAccess); AMD's instruction emulator |

* Where A and B are of one width and unscaled, sources number k as they like, A and B alike: Triton has runs of 8 for 8-bit types of
  gfx1250, as we do, AMD's emulator runs of 16; the calculator has runs of 4 for 16-bit types of gfx1201, Composable Kernel and
  Triton runs of 8, as we do. Products are the same.
* The comparison changed four maps: 16-bit results of gfx1250 (two rows per register; the reference has even rows, then odd ones),
  A and C of 32x16x128 (see wmma-scale-32x16), 8-bit operands of scaled WMMA (above), and B of v_smfmac with twice the k.
  The last: A's k are consecutive in a lane, B's are two runs, half of K apart (16x16x64 f16: lane group g has 8 g to 8 g + 7 and
  32 + 8 g to 32 + 8 g + 7), so that the numbering does matter. Index bits lie with the register elements of A.
* gfx1250's manual was not at hand, and no chip: its maps rest on programs of AMD and Triton that agree with each other.
* `v_wmma_i32_16x16x32_iu4` of the tables has no source: gfx1250 has no such instruction, the reference lowers to it.

Every matrix instruction of gfx942, gfx950, gfx1100 and gfx1201 was executed at instruction level beside the simulator on
the same random registers (benchmarks/emulate_tiles.py): all equal bit by bit. The emulator as it is stops at
`v_mfma_f64_4x4x4_4b_f64`: its rule reads four f64 per lane where the instruction has one (a fault of the emulator,
not of the code object). With that count corrected it is equal too, and it showed a wrong map of ours: D of this form
has element (i, j) of block b in lane j + 4 b + 16 i, while the general formula of the CDNA3 manual (section 7.1.4)
gives j + 4 i + 16 b. AMD's matrix instruction calculator and programs checked on gfx90a and gfx950 agree with the
former.

`cbsz`, `abid` and `blgp` of MFMA and the sparse forms (v_smfmac) are raw operations only; the simulator executes them
(tests/sim/test_atoms_controls.py, from section 7 of the CDNA3 manual; the emulator has no sparse ones).""".split("\n")


def main() -> None:
    """Print the catalogue."""
    sys.stdout.write("\n".join(pages()) + "\n")


__all__ = ["MatrixRow", "main", "pages", "picture"]

if __name__ == "__main__":
    main()

"""Atoms: construction, refusals with what exists instead, state, printed forms, and their instructions."""
import pytest

from flydsl import arch, atoms
from flydsl.atoms import (
    BUFFER,
    GLOBAL,
    REGISTER,
    SHARED,
    TDM,
    BufferAtomic,
    BufferCopy,
    BufferCopyLDS,
    BufferLoadAsyncLDS,
    GlobalLoadAsyncLDS,
    LDSReadTrans,
    MFMAScale,
    UniversalAtomic,
    UniversalCopy,
    UniversalFMA,
    WMMAScale,
    copy_atom,
    copy_row,
    mfma,
    wmma,
)
from flydsl.atoms.copy_rows import require_instruction
from flydsl.atoms.mma_calls import call_text

OPS = [
    UniversalCopy(128), BufferCopy(64), BufferCopy(128, 2), BufferCopyLDS(32), BufferLoadAsyncLDS(96),
    GlobalLoadAsyncLDS(128), LDSReadTrans(8, 64), UniversalAtomic("add", "f32", "agent"),
    UniversalAtomic("inc", "i32"), BufferAtomic("add", "vector<2xf16>"), TDM(2, 4, 64, 8, 2, True, False),
]
MMAS = [
    mfma(16, 16, 16, "f16"), mfma(32, 32, 16, "f8E4M3FNUZ", b="f8E5M2FNUZ"), mfma(16, 16, 8, "tf32"),
    mfma(16, 16, 4, "f64"), mfma(32, 32, 16, "i8", "i32"), MFMAScale(32, 32, 64, "f4E2M1FN", "f8E5M2", "f32", 1, 2),
    wmma("gfx1100", 16, 16, 16, "i8", "i32", sign_a=True, clamp=True), wmma("gfx1201", 16, 16, 16, "f8E5M2"),
    wmma("gfx1250", 16, 16, 32, "f16", "f16", mod_c=1),
    WMMAScale(16, 16, 128, "f8E4M3FN", "f6E2M3FN", "f32", block_size=16), UniversalFMA.of("f32"),
]


@pytest.mark.parametrize("op", OPS, ids=str)
def test_copy_ops_print_and_parse(op):
    assert atoms.parse_copy_op(op.text) == op == atoms.parse_copy_op(op.short)
    atom = copy_atom(op, 16)
    assert atoms.parse_copy_atom(atom.text) == atom == atoms.parse_copy_atom(atom.short)


@pytest.mark.parametrize("op", MMAS, ids=str)
def test_mma_ops_print_and_parse(op):
    assert atoms.parse_mma_op(op.text) == op == atoms.parse_mma_op(op.short)
    assert atoms.parse_mma_atom(f"!fly.mma_atom<{op.text}>") == op


@pytest.mark.parametrize("text", [
    "", "!fly.copy_atom<>", "!fly.universal_copy", "!fly.no_such_copy<8>", "!fly_rocdl.cdna4.lds_read_trans<64>",
    "!fly.universal_copy<wide>",
])
def test_bad_copy_texts_are_refused(text):
    with pytest.raises(ValueError):
        atoms.parse_copy_op(text)


@pytest.mark.parametrize("text", ["", "!fly_rocdl.cdna3.mfma<16x16, f16>", "!fly.mma_atom<x>",
                                  "!fly_rocdl.gfx99.wmma<16x16x16, (f16, f16) -> f32>"])
def test_bad_mma_texts_are_refused(text):
    with pytest.raises(ValueError):
        atoms.parse_mma_op(text)


REFUSALS = [
    (lambda: mfma(16, 16, 64, "f16", arch="gfx942"), "32x32x8, 16x16x16"),
    (lambda: mfma(16, 16, 32, "f16", arch="gfx942"), "32x32x8, 16x16x16"),
    (lambda: mfma(16, 16, 8, "tf32", arch="gfx950"), "gfx950 has for these element types: none"),
    (lambda: mfma(16, 16, 16, "f16", arch="gfx1201"), "gfx1201"),
    (lambda: mfma(16, 32, 16, "f16"), "32x32x8"),
    (lambda: mfma(16, 16, 32, "i8"), "8-bit integers -> i32"),
    (lambda: mfma(16, 16, 16, "f16", b="bf16"), "equal 16- or 32-bit floats"),
    (lambda: MFMAScale(16, 16, 64, "f8E4M3FN", "f8E4M3FN", "f32"), "16x16x128, 32x32x64"),
    (lambda: MFMAScale(16, 16, 128, "f8E4M3FNUZ", "f8E4M3FN", "f32"), "f8E4M3FN, f8E5M2"),
    (lambda: MFMAScale(16, 16, 128, "f8E4M3FN", "f8E4M3FN", "f32", 4), r"opsel_a must be in \[0, 3\]"),
    (lambda: WMMAScale(16, 16, 128, "f8E4M3FN", "f8E4M3FN", "f32", 0, 2), r"opsel_b must be in \[0, 1\]"),
    (lambda: MFMAScale(16, 16, 128, "f8E4M3FN", "f8E4M3FN", "f32").row("gfx942"), "gfx942"),
    (lambda: wmma("gfx942", 16, 16, 16, "f16"), "gfx942"),
    (lambda: wmma("gfx1250", 16, 16, 16, "f16"), "16x16x32"),
    (lambda: wmma("gfx1100", 16, 16, 16, "f16", "f16"), r"\(f16, f16\) -> f32"),
    (lambda: wmma("gfx1201", 16, 16, 16, "f16", sign_a=True), "left out for float operands"),
    (lambda: wmma("gfx1100", 16, 16, 16, "f16").row("gfx1201"), "gfx1201"),
    (lambda: UniversalFMA.of("i32"), "f64"),
    (lambda: BufferCopyLDS(64), "32, 128"),
    (lambda: BufferCopyLDS(128).check("gfx942"), "gfx950"),
    (lambda: BufferCopyLDS(32).check("gfx1100"), "lds_dma"),
    (lambda: GlobalLoadAsyncLDS(32).check("gfx942"), "gfx950"),
    (lambda: LDSReadTrans(16, 128), "64 bits in units of 16"),
    (lambda: LDSReadTrans(6, 96).tv_src(16), "whole number of 16-bit"),
    (lambda: LDSReadTrans(16, 64).check("gfx942"), "gfx950"),
    (lambda: BufferCopy(256), "8, 16, 32, 64, 96, 128"),
    (lambda: UniversalCopy(0), "positive int"),
    (lambda: UniversalCopy(128).check_spaces(GLOBAL, BUFFER), "global to shared"),
    (lambda: BufferCopy(128).check_spaces(GLOBAL, REGISTER), "#fly_rocdl.buffer_desc to register"),
    (lambda: UniversalCopy(16).check_element(32), "not a whole number of 32-bit"),
    (lambda: UniversalAtomic("and", "f32").check(), "integers"),
    (lambda: UniversalAtomic("add", "vector<2xf16>"), "BufferAtomicPkAdd"),
    (lambda: UniversalAtomic("xor", "i32"), "add, max, min"),
    (lambda: BufferAtomic("and", "i32").check(), "nothing"),
    (lambda: BufferAtomic("add", "i32").check(), "floats and packed pairs"),
    (lambda: BufferCopy(128).check_state("offset"), "soffset"),
    (lambda: UniversalCopy(128).check_state("soffset"), "none"),
    (lambda: mfma(16, 16, 16, "f16").check_state("scale_a"), "none"),
    (lambda: TDM(6), r"\[1, 5\]"),
    (lambda: TDM(2, 3), "power of two"),
    (lambda: TDM(2).check("gfx950"), "gfx1250"),
    (lambda: copy_atom(UniversalCopy(8), "f7"), "unknown element type"),
    (lambda: atoms.by_rocdl_name("rocdl.mfma.f32.99x99"), "not a matrix instruction"),
    (lambda: atoms.by_rocdl_name("rocdl.mfma.f32.16x16x16f16", "gfx1100"), "gfx942"),
]


@pytest.mark.parametrize("make, message", REFUSALS, ids=range(len(REFUSALS)))
def test_refusals_say_what_exists(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert caught.value.code.startswith("FLY_") and caught.value.fix


@pytest.mark.parametrize("chip", arch.names())
def test_every_instruction_of_a_chip_has_an_atom_or_is_raw_only(chip):
    """Atoms reach all single-block instructions except the 16-bit results that need an op-sel."""
    for row in atoms.supported(chip):
        found = atoms.by_rocdl_name(row.rocdl, chip, row.regs)
        assert found.rocdl == row.rocdl and found.wave_size in arch.get(chip).wave_sizes
        assert row in atoms.rows_named(row.python_name)
        assert row in atoms.rows_named(row.llvm_name)
        assert row in atoms.rows_named(row.isa)


def test_rows_shared_by_generations_are_told_apart_by_the_chip():
    a = atoms.by_rocdl_name("rocdl.wmma.f32.16x16x16.f16", "gfx1100")
    b = atoms.by_rocdl_name("rocdl.wmma.f32.16x16x16.f16", "gfx1201")
    assert a.regs[0] == "vector<16xf16>" and b.regs[0] == "vector<8xf16>"


def test_scaled_rows_are_told_apart_by_registers():
    regs = ("vector<4xi32>", "vector<8xi32>")
    row = atoms.by_rocdl_name("rocdl.mfma.scale.f32.16x16x128.f8f6f4", "gfx950", regs)
    assert (row.a, row.regs[:2]) == ("fp4", regs)


def test_ocp_on_gfx942_is_flagged():
    op = mfma(16, 16, 32, "f8E4M3FN", arch="gfx942")
    assert op.reads_as_fnuz("gfx942") and not op.reads_as_fnuz("gfx950")
    assert not mfma(16, 16, 32, "f8E4M3FNUZ").reads_as_fnuz("gfx942")


def test_state_fields():
    assert MFMAScale(16, 16, 128, "f8E4M3FN", "f8E4M3FN", "f32").check_state("scale_a") == "i32"
    assert WMMAScale(16, 16, 128, "f8E4M3FN", "f8E4M3FN", "f32", block_size=16).check_state("scale_b") == "i64"
    assert BufferCopyLDS(32).check_state("imm_offset") == "i32"
    assert list(TDM(2).state_fields) == ["extent_0", "extent_1", "stride_0", "imm_offset", "workgroup_mask"]


def test_calls_carry_the_atoms_constants():
    op = wmma("gfx1201", 16, 16, 16, "i8", "i32", sign_a=True, clamp=True)
    assert call_text(op, op.row("gfx1201")) == (
        "<8 x i32>", "llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v2i32",
        "i1 true, <2 x i32> _, i1 false, <2 x i32> _, <8 x i32> _, i1 true")


@pytest.mark.parametrize("chip, mnemonic", [("gfx942", "buffer_load_dwordx3"), ("gfx1100", "buffer_load_b96"),
                                            ("gfx1250", "buffer_load_b96")])
def test_96_bit_buffer_loads_are_selectable(chip, mnemonic):
    row = copy_row(BufferCopy(96), "f32", BUFFER, REGISTER, chip)
    assert (row.intrinsic, row.isa) == ("llvm.amdgcn.raw.ptr.buffer.load.v3i32", mnemonic)


def test_unsigned_atomics_compare_unsigned():
    assert UniversalAtomic("max", "ui32").rmw == "umax" and UniversalAtomic("max", "i32").rmw == "max"
    assert copy_row(UniversalAtomic("min", "ui64"), "ui64", REGISTER, SHARED, "gfx942").memory.startswith(
        "atomicrmw umin ptr addrspace(3)")


def test_errors_point_at_the_caller():
    with pytest.raises(ValueError) as caught:
        BufferCopyLDS(64)
    assert caught.value.span.file == __file__


def test_no_ir_is_imported():
    import subprocess
    import sys
    code = "import sys, flydsl.atoms; print(sorted(m for m in sys.modules if 'mlir' in m or m == 'numpy'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# What the reference's code generator makes of each, "" where it cannot select one.
BUFFER_ATOMICS = {
    ("add", "f32"): ["buffer_atomic_add_f32"] * 5,
    ("add", "f64"): ["buffer_atomic_add_f64", "buffer_atomic_add_f64", "", "", "buffer_atomic_add_f64"],
    ("add", "vector<2xf16>"): [*["buffer_atomic_pk_add_f16"] * 2, "", *["buffer_atomic_pk_add_f16"] * 2],
    ("add", "vector<2xbf16>"): ["", "buffer_atomic_pk_add_bf16", "", *["buffer_atomic_pk_add_bf16"] * 2],
    ("max", "f32"): ["", "", "buffer_atomic_max_f32", *["buffer_atomic_max_num_f32"] * 2],
    ("max", "f64"): [*["buffer_atomic_max_f64"] * 2, "", "", "buffer_atomic_max_num_f64"],
    ("max", "i32"): [*["buffer_atomic_smax"] * 2, *["buffer_atomic_max_i32"] * 3],
    ("max", "i64"): [*["buffer_atomic_smax_x2"] * 2, *["buffer_atomic_max_i64"] * 3],
    ("min", "i32"): [*["buffer_atomic_umin"] * 2, *["buffer_atomic_min_u32"] * 3],
    ("min", "i64"): [*["buffer_atomic_umin_x2"] * 2, *["buffer_atomic_min_u64"] * 3],
}


@pytest.mark.parametrize("op, elem", BUFFER_ATOMICS)
def test_buffer_atomics_of_every_chip(op, elem):
    chips = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
    atom = BufferAtomic(op, elem)
    for chip, want in zip(chips, BUFFER_ATOMICS[op, elem]):
        found = copy_row(atom, atom.elem, REGISTER, BUFFER, chip)
        assert found.isa == want, chip
        if want:
            assert require_instruction(atom, found, chip) is found
        else:
            with pytest.raises(ValueError, match="atomic"):
                require_instruction(atom, found, chip)

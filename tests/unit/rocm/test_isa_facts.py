"""isa_stats and assert_isa on generated code and on a hand-written text."""

import pytest
from lowered_text import ARCHS, VECTOR_ADD, module_text

from flydsl.targets.rocm import compile_lowered
from flydsl.targets.rocm.isa_stats import access_bits, assert_isa, isa_stats


@pytest.mark.parametrize("arch", ARCHS)
def test_vector_add(arch):
    artifact = compile_lowered(VECTOR_ADD, arch, emit=("isa", "hsaco"))
    stats = isa_stats(artifact.isa)["vec_add_0"]
    info = artifact.kernels["vec_add_0"]
    assert (stats.vgprs, stats.sgprs, stats.wave_size) == (info.vgprs, info.sgprs, info.wave_size)
    assert stats.arch == arch and stats.spills == 0 and stats.workgroup == 256
    assert stats.widths["global_loads"] == {128: 2} and stats.widths["global_stores"] == {128: 1}
    assert stats.occupancy >= 8 and stats.code_bytes > 0
    assert stats.instructions == sum(stats.mnemonics.values()) == sum(stats.counts.values())


def test_matrix_and_lds_instructions():
    lds = "llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>"
    body = """%a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %q = llvm.getelementptr %a[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xf32>
    llvm.store %v, %q {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
    gpu.barrier
    %x = llvm.load %a {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
    %y = vector.extract_strided_slice %x {offsets = [0], sizes = [4], strides = [1]} : vector<8xf16> to vector<4xf16>
    %z = vector.extract_strided_slice %x {offsets = [4], sizes = [4], strides = [1]} : vector<8xf16> to vector<4xf16>
    %r = rocdl.mfma.f32.16x16x16f16 %y, %z, %v, 0, 0, none : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
    llvm.store %r, %p {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>"""
    isa = compile_lowered(module_text(body, globals_=lds), "gfx942", emit=("isa",)).isa
    assert_isa(isa, kernel="k", mfma=1, lds_writes=1, lds_reads__ge=1, barriers=1, spills=0, lds_bytes=4096, agprs=0)
    with pytest.raises(AssertionError, match="k: mfma is 1, wanted ge 32; k: spills is 0, wanted == 1"):
        assert_isa(isa, mfma__ge=32, spills=1)
    with pytest.raises(AttributeError, match="no fact 'mfmas'"):
        assert_isa(isa, mfmas=1)


def test_spills_are_seen():
    loads = "\n".join(f"%q{i} = llvm.getelementptr %p[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, vector<4xf32>\n%x{i} = llvm.load volatile %q{i} {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<4xf32>" for i in range(40))
    stores = "\n".join(f"llvm.store volatile %x{i}, %q{i} {{alignment = 16 : i64}} : vector<4xf32>, !llvm.ptr<1>" for i in range(40))
    from flydsl.targets.rocm import CodegenOptions

    options = CodegenOptions(waves_per_eu=(16, 16))
    isa = compile_lowered(module_text(loads + "\n" + stores), "gfx1102", options, emit=("isa",)).isa
    assert isa_stats(isa)["k"].vgpr_spills > 0 and isa_stats(isa)["k"].scratch_bytes > 0


@pytest.mark.parametrize("mnemonic, bits", [
    ("global_load_dwordx4", 128), ("global_load_b128", 128), ("global_load_dword", 32), ("global_load_ubyte", 8),
    ("buffer_load_short_d16", 16), ("ds_read_b64", 64), ("ds_read2_b32", 64), ("ds_load_2addr_b32", 64), ("ds_write_b8", 8),
    ("s_load_dwordx16", 512), ("s_load_b256", 256), ("global_load_u16", 16), ("global_load_d16_b16", 16), ("s_endpgm", 0),
])
def test_access_widths(mnemonic, bits):
    assert access_bits(mnemonic) == bits


def test_text_without_target():
    with pytest.raises(ValueError, match="amdgcn_target"):
        isa_stats("s_endpgm")

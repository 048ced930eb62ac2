"""Code objects of five chips, read by pyelftools and msgpack; our own reader must agree with them."""

import io

import msgpack
import pytest
from elftools.elf.elffile import ELFFile
from lowered_text import ARCHS, VECTOR_ADD, module_text

from flydsl import arch as chips
from flydsl.targets.rocm import CodegenOptions, compile_lowered


def notes(image: bytes) -> dict:
    elf = ELFFile(io.BytesIO(image))
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_NOTE":
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU":
                    return msgpack.unpackb(note["n_descdata"] if "n_descdata" in note else note["n_desc"])
    raise AssertionError("no AMDGPU note")


@pytest.mark.parametrize("arch", ARCHS)
def test_vector_add(arch):
    artifact = compile_lowered(VECTOR_ADD, arch, emit=("hsaco",))
    elf = ELFFile(io.BytesIO(artifact.hsaco))
    assert elf["e_type"] == "ET_DYN" and elf["e_machine"] == "EM_AMDGPU"
    assert elf["e_flags"] & 0xFF == chips.get(arch).code_object.mach
    symbols = {s.name: s for s in elf.get_section_by_name(".dynsym").iter_symbols()}
    assert {"vec_add_0", "vec_add_0.kd"} <= symbols.keys()
    assert all(s["st_shndx"] != "SHN_UNDEF" for name, s in symbols.items() if name)

    read = notes(artifact.hsaco)
    assert read["amdhsa.target"] == f"amdgcn-amd-amdhsa--{arch}"
    (kernel,) = read["amdhsa.kernels"]
    explicit = [a for a in kernel[".args"] if not a[".value_kind"].startswith("hidden")]
    assert [(a[".offset"], a[".size"]) for a in explicit] == [(0, 8), (8, 8), (16, 8), (24, 4)]
    assert kernel[".wavefront_size"] == chips.get(arch).wave_size
    assert kernel[".reqd_workgroup_size"] == [256, 1, 1]
    assert kernel[".max_flat_workgroup_size"] == 256
    assert kernel[".group_segment_fixed_size"] == 0
    assert kernel[".private_segment_fixed_size"] == 0

    info = artifact.kernels["vec_add_0"]
    assert [(a.offset, a.size, a.kind) for a in info.args] == [
        (a[".offset"], a[".size"], a[".value_kind"]) for a in kernel[".args"]
    ]
    assert [a.name for a in info.explicit_args] == ["A", "B", "C", "n"]
    assert (info.kernarg_bytes, info.vgprs, info.sgprs, info.symbol) == (
        kernel[".kernarg_segment_size"], kernel[".vgpr_count"], kernel[".sgpr_count"], kernel[".symbol"],
    )
    assert info.workgroup == (256, 1, 1) and info.wave_size == kernel[".wavefront_size"]


def test_kernel_arguments_of_every_type():
    arguments = "%a: i1, %b: i8, %c: i16, %d: i32, %e: i64, %f: f16, %g: f64, %h: vector<4xf32>, %p: !llvm.ptr<1>"
    artifact = compile_lowered(module_text("llvm.store %h, %p : vector<4xf32>, !llvm.ptr<1>", arguments=arguments), "gfx942")
    (kernel,) = notes(artifact.hsaco)["amdhsa.kernels"]
    assert [(a[".offset"], a[".size"]) for a in kernel[".args"]] == [
        (0, 1), (1, 1), (2, 2), (4, 4), (8, 8), (16, 2), (24, 8), (32, 16), (48, 8),
    ]


@pytest.mark.parametrize("arch", ARCHS)
def test_static_and_dynamic_lds(arch):
    lds = """llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>
    llvm.mlir.global internal @unused() {addr_space = 3 : i32} : !llvm.array<60000 x i8>
    llvm.mlir.global external @dyn() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>"""
    body = """%a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %d = llvm.mlir.addressof @dyn : !llvm.ptr<3>
    llvm.store volatile %f, %a : f32, !llvm.ptr<3>
    llvm.store volatile %f, %d : f32, !llvm.ptr<3>"""
    artifact = compile_lowered(module_text(body, globals_=lds), arch)
    (kernel,) = notes(artifact.hsaco)["amdhsa.kernels"]
    assert kernel[".group_segment_fixed_size"] == 4096
    info = artifact.kernels["k"]
    assert info.lds_bytes == 4096 and info.has_dynamic_lds


def test_grid_size_comes_from_the_hidden_arguments():
    body = """%g = gpu.grid_dim y
    %b = gpu.block_dim x
    %s = arith.addi %g, %b : index
    %r = arith.index_cast %s : index to i32
    llvm.store %r, %p : i32, !llvm.ptr<1>"""
    artifact = compile_lowered(module_text(body, attributes="fly.x = 0 : i32"), "gfx942")
    (kernel,) = notes(artifact.hsaco)["amdhsa.kernels"]
    kinds = {a[".value_kind"]: a[".offset"] for a in kernel[".args"]}
    explicit_end = 48  # pointer, i32, f32, then a 16-byte vector at 16, rounded to 8: 32
    assert kinds["hidden_block_count_x"] < explicit_end
    assert kinds["hidden_block_count_y"] - kinds["hidden_block_count_x"] == 4
    assert kinds["hidden_group_size_x"] - kinds["hidden_block_count_x"] == 12
    assert "__ockl" not in artifact.llvm_ir


def test_outputs_are_made_when_asked_for():
    artifact = compile_lowered(VECTOR_ADD, "gfx942", emit=("llvm_ir",))
    assert artifact._made == {}
    assert "v_pk_add_f32" in artifact.isa
    assert artifact.obj[:4] == b"\x7fELF"
    assert artifact.llvm_dialect is None
    assert "llvm.func" in compile_lowered(VECTOR_ADD, "gfx942", emit=("llvm_dialect",)).llvm_dialect


def test_dump_stages():
    stages = {}
    compile_lowered(VECTOR_ADD, "gfx942", dump=stages.__setitem__)
    assert list(stages) == ["llvm_dialect", "llvm_ir", "final_isa"]
    assert "global_load_dwordx4" in stages["final_isa"]


def test_lowered_module_stays_usable():
    from flydsl.ir import ir, make_context

    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(VECTOR_ADD)
        before = str(module)
        first = compile_lowered(module, "gfx942").hsaco
        assert str(module) == before
        assert compile_lowered(module, "gfx942").hsaco == first, "the same input gives the same bytes"


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_optimisation_levels(level):
    artifact = compile_lowered(VECTOR_ADD, "gfx942", CodegenOptions(opt_level=level), emit=("isa",))
    assert "global_store_dwordx4" in artifact.isa


def test_waves_per_eu_limits_registers():
    text = compile_lowered(VECTOR_ADD, "gfx942", CodegenOptions(waves_per_eu=(2, 4)), emit=("llvm_ir",)).llvm_ir
    assert '"amdgpu-waves-per-eu"="2,4"' in text
    with pytest.raises(ValueError, match="positive int or a pair"):
        CodegenOptions(waves_per_eu=(4, 2))


def test_fast_math_reaches_the_arithmetic():
    text = compile_lowered(VECTOR_ADD, "gfx942", CodegenOptions(fast_fp_math=True), emit=("llvm_ir",)).llvm_ir
    assert "fadd fast <4 x float>" in text


def test_assembled_object_has_the_same_code():
    """The object that an assembler makes of the ISA text has the bytes that LLVM emits directly."""
    from flydsl.targets.rocm import tools

    artifact = compile_lowered(VECTOR_ADD, "gfx942", emit=("isa", "obj"))
    sections = [
        ELFFile(io.BytesIO(elf)).get_section_by_name(".text").data()
        for elf in (artifact.obj, tools.assemble(artifact.isa, "gfx942"))
    ]
    assert sections[0] == sections[1]

"""DESIGN section 5: for each native abort of the stack, a Python exception here, and the process lives on.

`crashes_natively` runs the stack alone in a child and shows that the hazard is real; the test then shows our guard.
"""

import os
import signal
import subprocess
import sys

import pytest
from lowered_text import VECTOR_ADD, module_text

from flydsl import arch as chips
from flydsl.diag.errors import target as errors
from flydsl.targets.rocm import CodegenOptions, codegen, compile_lowered, worker


def crashes_natively(program: str) -> str:
    """Run `program` in a child that must die without a Python exception; return what it printed."""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr, result.stderr
    return result.stderr


def still_alive() -> None:
    assert "vec_add_0" in compile_lowered(VECTOR_ADD, "gfx942", emit=("isa",)).isa


TRANSLATE = """
from flydsl.ir import ir, translate_module_to_llvmir
with ir.Context(), ir.Location.unknown():
    m = ir.Module.parse('''module { llvm.func @k(%p: !llvm.ptr<1>, %n: i32, %f: f32) { BODY
 llvm.return } }''')
    translate_module_to_llvmir(m.operation)
"""
EMIT = """
import llvmlite.binding as b
b.initialize_all_targets(); b.initialize_all_asmprinters()
m = b.parse_assembly('''TEXT''')
b.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx942", opt=2).emit_OUTPUT(m)
"""


def emit(text: str, output: str = "object") -> str:
    return EMIT.replace("TEXT", 'target triple = "amdgcn-amd-amdhsa"\n' + text).replace("OUTPUT", output)


def test_unknown_intrinsic():
    """Hazard 1: an unknown name segfaults in the translation, or becomes a call of an undefined symbol."""
    crashes_natively(TRANSLATE.replace("BODY", '%r = llvm.call_intrinsic "llvm.amdgcn.nosuch"(%f) : (f32) -> f32'))
    body = '%r = llvm.call_intrinsic "llvm.amdgcn.nosuch"(%f) : (f32) -> f32\nllvm.store %r, %p : f32, !llvm.ptr<1>'
    with pytest.raises(errors.IntrinsicUnknown, match="no intrinsic `llvm.amdgcn.nosuch`") as caught:
        compile_lowered(module_text(body), "gfx942")
    assert caught.value.span.line == 4
    still_alive()


def test_intrinsic_with_wrong_types():
    """Hazard 1: a known name with another signature, as a newer LLVM may have it."""
    crashes_natively(TRANSLATE.replace("BODY", '%r = llvm.call_intrinsic "llvm.amdgcn.mbcnt.lo"(%n) : (i32) -> i32'))
    body = '%r = llvm.call_intrinsic "llvm.amdgcn.mbcnt.lo"(%n) : (i32) -> i32\nllvm.store %r, %p : i32, !llvm.ptr<1>'
    with pytest.raises(errors.IntrinsicUnknown, match="mbcnt.lo"):
        compile_lowered(module_text(body), "gfx942")
    still_alive()


def test_run_time_value_where_the_instruction_has_a_constant():
    body = '%r = llvm.call_intrinsic "llvm.amdgcn.ds.swizzle"(%n, %n) : (i32, i32) -> i32'
    crashes_natively(TRANSLATE.replace("BODY", body))
    with pytest.raises(errors.IntrinsicUnknown, match="run-time value as operand 1"):
        compile_lowered(module_text(body), "gfx942")
    still_alive()


def test_intrinsic_of_another_chip():
    """LLVM exits on most (cannot select) and silently takes some; the table refuses both."""
    body = "%r = rocdl.cvt.pk.fp8.f32 %f, %f -> %n[false] : i32\nllvm.store %r, %p : i32, !llvm.ptr<1>"
    with pytest.raises(errors.IntrinsicNotOnChip) as caught:
        compile_lowered(module_text(body), "gfx1100")
    assert "`cvt.pk.fp8.f32` is not available on gfx1100" in str(caught.value)
    assert "gfx942, gfx950" in str(caught.value)
    assert caught.value.span.line == 4


def test_float_literals():
    """Hazard 2: LLVM 22.1 does not parse what MLIR prints for inexact constants, infinities and NaN."""
    lines = [
        "%a = arith.constant 1.000000e-01 : f32", "%b = arith.constant 0xFF800000 : f32", "%c = arith.constant 0x7FC00000 : f32",
        "%d = arith.constant 3.141592653589793 : f64", "%h = arith.constant 1.000980e-01 : f16",
        "%g = arith.constant 1.001000e-01 : bf16", "%w = arith.constant dense<[0.1, 0.2, 0.3, 0.4]> : vector<4xf32>",
    ]
    for name, kind in zip("abcdhgw", ("f32", "f32", "f32", "f64", "f16", "bf16", "vector<4xf32>")):
        lines.append(f"llvm.store volatile %{name}, %p : {kind}, !llvm.ptr<1>")
    isa = compile_lowered(module_text("\n".join(lines)), "gfx942", emit=("isa",)).isa
    for bits in ("0x3dcccccd", "0xff800000", "0x7fc00000", "0x400921fb", "0x54442d18", "0x2e68", "0x3dcd", "0x3e4ccccd"):
        assert bits in isa, bits


def test_leftover_op():
    """Hazard 2: any op but llvm and rocdl ones segfaults in the translation."""
    crashes_natively(TRANSLATE.replace("BODY", "%r = arith.addf %f, %f : f32"))
    body = "%r = vector.outerproduct %v, %f : vector<4xf32>, f32\nllvm.store %r, %p : vector<4xf32>, !llvm.ptr<1>"
    with pytest.raises(errors.RocmOpLeft, match="`vector.outerproduct` of type") as caught:
        compile_lowered(module_text(body), "gfx942")
    assert caught.value.span.line == 4
    still_alive()


def test_leftover_cast():
    crashes_natively(TRANSLATE.replace("BODY", "%r = builtin.unrealized_conversion_cast %f : f32 to index"))
    body = "%r = builtin.unrealized_conversion_cast %f : f32 to !llvm.struct<(f32)>\nllvm.store %r, %p : !llvm.struct<(f32)>, !llvm.ptr<1>"
    with pytest.raises(errors.RocmOpLeft, match="unrealized_conversion_cast"):
        compile_lowered(module_text(body), "gfx942")
    still_alive()


def test_inline_assembly():
    """Hazard 3: llvmlite cannot emit an object with inline assembly; the assembler path gives it."""
    text = 'define amdgpu_kernel void @k() { call void asm sideeffect "s_nop 1", ""() ret void }'
    assert "asm parser" in crashes_natively(emit(text))
    body = '%r = llvm.inline_asm has_side_effects "v_add_f32 $0, $1, $1", "=v,v" %f : (f32) -> f32\nllvm.store %r, %p : f32, !llvm.ptr<1>'
    artifact = compile_lowered(module_text(body), "gfx942", emit=("isa", "hsaco"))
    assert "v_add_f32" in artifact.isa and artifact.kernels["k"].vgprs > 0


def test_inline_assembly_that_is_no_instruction():
    body = 'llvm.inline_asm has_side_effects "v_foo_f32 v0, v0", "" : () -> ()'
    with pytest.raises(errors.AssemblyRejected, match="v_foo_f32"):
        compile_lowered(module_text(body), "gfx942")


def test_bad_constraint():
    """Hazard 4: LLVM exits; in the worker that is an exception."""
    body = '%r = llvm.inline_asm has_side_effects "v_mov_b32 $0, $1", "=q,v" %f : (f32) -> f32\nllvm.store %r, %p : f32, !llvm.ptr<1>'
    with pytest.raises(errors.CodegenFailed) as caught:
        compile_lowered(module_text(body), "gfx942")
    assert "constraint 'q'" in str(caught.value) and "v is a VGPR" in str(caught.value)
    still_alive()


def test_missing_assembler(monkeypatch):
    from flydsl.targets.rocm import tools

    monkeypatch.setattr(tools, "_zig", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ROCM_PATH", raising=False)
    tools._find_assembler.cache_clear()
    body = 'llvm.inline_asm has_side_effects "s_nop 1", "" : () -> ()'
    try:
        with pytest.raises(errors.MissingAssembler, match="pip install ziglang"):
            compile_lowered(module_text(body), "gfx942")
    finally:
        tools._find_assembler.cache_clear()


def test_too_much_lds():
    """Hazard 4: LLVM exits with `local memory exceeds limit`; we say what takes the space."""
    text = """@l = internal addrspace(3) global [70000 x i8] poison
define amdgpu_kernel void @k() { store volatile i8 1, ptr addrspace(3) @l ret void }"""
    assert "exceeds limit" in crashes_natively(emit(text))
    lds = """llvm.mlir.global internal @tile_a() {addr_space = 3 : i32} : !llvm.array<50000 x i8>
    llvm.mlir.global internal @tile_b() {addr_space = 3 : i32} : !llvm.array<5000 x f32>"""
    body = """%a = llvm.mlir.addressof @tile_a : !llvm.ptr<3>
    %b = llvm.mlir.addressof @tile_b : !llvm.ptr<3>
    llvm.store volatile %f, %a : f32, !llvm.ptr<3>
    llvm.store volatile %f, %b : f32, !llvm.ptr<3>"""
    with pytest.raises(errors.LdsLimit) as caught:
        compile_lowered(module_text(body, globals_=lds), "gfx942")
    assert "needs 70000 bytes of LDS, but a workgroup of gfx942 has 65536" in str(caught.value)
    assert "tile_a 50000, tile_b 20000" in str(caught.value)
    assert compile_lowered(module_text(body, globals_=lds), "gfx950").kernels["k"].lds_bytes >= 70000


def test_too_large_workgroup():
    with pytest.raises(errors.WorkgroupLimit, match="2048 threads per workgroup"):
        compile_lowered(module_text("", attributes="known_block_size = array<i32: 256, 8, 1>"), "gfx942")


def test_cannot_select():
    """Hazard 4: an operation that the chip has not; outside the proven set, so compiled in the worker."""
    text = "define amdgpu_kernel void @k(ptr addrspace(1) %p, float %f) { %r = call float @llvm.tanh.f32(float %f) store float %r, ptr addrspace(1) %p ret void }\ndeclare float @llvm.tanh.f32(float)"
    crashes_natively(emit(text))
    body = '%r = llvm.call_intrinsic "llvm.tanh.f32"(%f) : (f32) -> f32\nllvm.store %r, %p : f32, !llvm.ptr<1>'
    with pytest.raises(errors.CodegenFailed) as caught:
        compile_lowered(module_text(body), "gfx942")
    assert caught.value.log
    still_alive()


def test_huge_private_array():
    body = """%c = llvm.mlir.constant(100000000 : i32) : i32
    %a = llvm.alloca %c x f32 : (i32) -> !llvm.ptr<5>
    %q = llvm.getelementptr %a[%n] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, f32
    llvm.store volatile %f, %q : f32, !llvm.ptr<5>"""
    with pytest.raises(errors.CodegenFailed):
        compile_lowered(module_text(body), "gfx942")
    still_alive()


def test_second_code_generation_of_one_module():
    """Hazard 4: it aborts natively; an artifact makes each output from the optimised bitcode."""
    artifact = compile_lowered(VECTOR_ADD, "gfx942", emit=("isa", "obj"))
    assert artifact.isa and artifact.obj and artifact.hsaco
    assert "fadd" in artifact.llvm_ir_optimised


def test_llvm_options_stay_in_their_worker():
    """Hazard 4: options are process-wide and cannot be taken back."""
    plain = compile_lowered(VECTOR_ADD, "gfx942", emit=("isa",)).isa
    options = CodegenOptions(llvm_options={"amdgpu-waitcnt-forcezero": True})
    changed = compile_lowered(VECTOR_ADD, "gfx942", options, emit=("isa",)).isa
    assert changed.count("s_waitcnt") > plain.count("s_waitcnt")
    assert compile_lowered(VECTOR_ADD, "gfx942", emit=("isa",)).isa == plain


@pytest.mark.parametrize("option, value, text", [("amdgpu-early-inline", True, "did you mean amdgpu-early-inline-all"), ("unroll-threshold", "abc", "invalid for uint")])
def test_bad_llvm_option(option, value, text):
    with pytest.raises(errors.LlvmOptionBad, match=text):
        compile_lowered(VECTOR_ADD, "gfx942", CodegenOptions(llvm_options={option: value}))
    still_alive()


def test_worker_gives_the_same_code():
    here = compile_lowered(VECTOR_ADD, "gfx942", emit=("isa", "obj"))
    there = compile_lowered(VECTOR_ADD, "gfx942", CodegenOptions(isolate=True), emit=("isa", "obj"))
    assert (here.isa, here.obj) == (there.isa, there.obj)


def test_worker_that_was_killed_is_replaced():
    options = CodegenOptions(isolate=True)
    compile_lowered(VECTOR_ADD, "gfx942", options, emit=("isa",))
    first = worker.get_worker()
    first._process.kill()
    first._process.wait(timeout=30)
    assert compile_lowered(VECTOR_ADD, "gfx942", options, emit=("isa",)).isa


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "tanh", "exp", "exp2", "log", "log2", "log10", "erf", "powf", "rsqrt", "floor", "ceil"])
def test_no_library_symbol_remains(name):
    """Hazard 6: upstream turns these into `__ocml_*` calls, which nothing defines."""
    operands = "%f, %f" if name == "powf" else "%f"
    body = f"%r = math.{name} {operands} : f32\nllvm.store %r, %p : f32, !llvm.ptr<1>"
    artifact = compile_lowered(module_text(body), "gfx942")
    assert "__o" not in artifact.llvm_ir


def test_remainder_is_llvms_own():
    body = "%r = arith.remf %f, %f : f32\nllvm.store %r, %p : f32, !llvm.ptr<1>"
    text = compile_lowered(module_text(body), "gfx942").llvm_ir
    assert "frem float" in text and "__ocml" not in text


def test_f64_function_without_expansion():
    body = "%d = arith.extf %f : f32 to f64\n%r = math.erf %d : f64\nllvm.store %r, %p : f64, !llvm.ptr<1>"
    with pytest.raises(errors.MathUnsupported) as caught:
        compile_lowered(module_text(body), "gfx942")
    assert "`math.erf` has no expansion for f64" in str(caught.value) and caught.value.span.line == 5


def test_small_float_arithmetic():
    """Hazard 7: a vector of 8-bit floats segfaults in the translation."""
    crashes_natively(TRANSLATE.replace("BODY", "%r = llvm.bitcast %n : i32 to vector<4xf8E4M3FN>"))
    body = "%x = arith.truncf %f : f32 to f8E4M3FN\n%r = arith.addf %x, %x : f8E4M3FN\n%y = arith.extf %r : f8E4M3FN to f32\nllvm.store %y, %p : f32, !llvm.ptr<1>"
    with pytest.raises(errors.SmallFloatUnsupported) as caught:
        compile_lowered(module_text(body), "gfx942")
    assert caught.value.span.line == 4
    still_alive()


def test_rounding_mode_of_truncf():
    """`to_nearest_even` becomes a constrained intrinsic, on which LLVM exits for bf16."""
    body = "%r = arith.truncf %f to_nearest_even : f32 to bf16\nllvm.store %r, %p : bf16, !llvm.ptr<1>"
    assert compile_lowered(module_text(body), "gfx942").kernels["k"]


def test_load_to_lds_of_a_size_that_does_not_exist():
    lds = "llvm.mlir.global internal @a() {addr_space = 3 : i32} : !llvm.array<4096 x i8>"
    body = """%a = llvm.mlir.addressof @a : !llvm.ptr<3>
    "rocdl.global.load.lds"(%p, %a) {size = 3 : i32, offset = 0 : i32, aux = 0 : i32} : (!llvm.ptr<1>, !llvm.ptr<3>) -> ()"""
    with pytest.raises(errors.IntrinsicUnknown, match="for 3 bytes"):
        compile_lowered(module_text(body, globals_=lds), "gfx942")


def test_nothing_to_compile():
    with pytest.raises(errors.NoGpuModule, match="no kernel was launched"):
        compile_lowered("module {}", "gfx942")


def test_unknown_arch():
    with pytest.raises(ValueError, match="unknown arch `gfx943`"):
        compile_lowered(VECTOR_ADD, "gfx943")


def test_missing_linker(monkeypatch):
    from flydsl.targets.rocm import tools

    monkeypatch.setattr(tools, "_zig", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.delenv("FLYDSL_LLD", raising=False)
    tools._find_linker.cache_clear()
    try:
        artifact = compile_lowered(VECTOR_ADD, "gfx942", emit=("isa", "obj"))  # neither needs it
        with pytest.raises(errors.MissingLinker) as caught:
            artifact.hsaco
        assert "FLYDSL_LLD" in str(caught.value) and "pip install" in str(caught.value)
        monkeypatch.setenv("FLYDSL_LLD", "/nonexistent/ld.lld")
        with pytest.raises(errors.MissingLinker, match="not an executable file"):
            artifact.hsaco
    finally:
        tools._find_linker.cache_clear()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("not a program", "did not start"),
        ("#!/bin/sh\necho no room >&2\nexit 3\n", r"exit 3.*no room"),
        ("#!/bin/sh\ncat >/dev/null\n", r"exit 0.*no output"),
        ("#!/bin/sh\necho a banner\ncat >/dev/null\n", r"no object file on standard output, but b'a banner"),
    ],
)
def test_linker_that_fails(tmp_path, monkeypatch, script, message):
    linker = tmp_path / "ld.lld"
    linker.write_text(script)
    linker.chmod(0o755)
    monkeypatch.setenv("FLYDSL_LLD", str(linker))
    with pytest.raises(errors.LinkFailed, match=message):
        compile_lowered(VECTOR_ADD, "gfx942")


def test_linker_that_gives_no_answer(tmp_path, monkeypatch):
    """The script is killed; what it started goes on and holds the pipes, which must not be waited for."""
    from flydsl.targets.rocm import tools

    linker, started = tmp_path / "ld.lld", tmp_path / "pid"
    linker.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >{started}\nwait\n")
    linker.chmod(0o755)
    monkeypatch.setenv("FLYDSL_LLD", str(linker))
    monkeypatch.setattr(tools, "_TIMEOUT_S", 0.5)
    try:
        with pytest.raises(errors.LinkFailed, match=r"exit -9.*no answer in 0.5 s"):
            compile_lowered(VECTOR_ADD, "gfx942")
    finally:
        os.kill(int(started.read_text()), signal.SIGKILL)


def test_the_linker_ends_with_an_interrupted_program(monkeypatch):
    from flydsl.targets.rocm import tools

    job = tools.start_linking("gfx942")
    monkeypatch.setattr(job._process, "communicate", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        job.finish(b"")
    assert job._process.returncode == -9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_keep_the_linker_waiting(monkeypatch):
    """The linker reads until all writers have closed its input, and the child has the parent's files."""
    from flydsl.targets.rocm import tools

    monkeypatch.setattr(tools, "_TIMEOUT_S", 20)
    obj = compile_lowered(VECTOR_ADD, "gfx942", emit=("obj",)).obj
    job = tools.start_linking("gfx942")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent is done
        os._exit(0)
    try:
        assert job.finish(obj).startswith(b"\x7fELF")
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


def test_the_linker_ends_with_a_failed_code_generation(monkeypatch):
    from flydsl.targets.rocm import compile as compiling
    from flydsl.targets.rocm import tools

    started = []
    start = tools.start_linking
    monkeypatch.setattr(tools, "start_linking", lambda arch: started.append(start(arch)) or started[0])
    monkeypatch.setattr(compiling, "run_codegen", lambda *_: (_ for _ in ()).throw(RuntimeError("stop")))
    with pytest.raises(RuntimeError, match="stop"):
        compile_lowered(VECTOR_ADD, "gfx942")
    assert [job._process.returncode for job in started] == [-9]


def test_undefined_symbol_is_refused_before_linking():
    text = VECTOR_ADD.replace("gpu.func @vec_add_0", "llvm.func @helper(f32) -> f32\n    gpu.func @vec_add_0", 1).replace(
        "%ok = arith", "%one = arith.constant 1.0 : f32\n      %z = llvm.call @helper(%one) : (f32) -> f32\n      %ok = arith"
    )
    with pytest.raises(errors.UndefinedSymbol, match="helper"):
        compile_lowered(text, "gfx942")


@pytest.mark.parametrize("arch", chips.names())
def test_the_warm_up_kernel_compiles_for_every_chip(arch):
    codegen.warm_up(arch)


@pytest.mark.parametrize(
    ("instructions", "matrix", "level"),
    [(900, True, 2), (1100, True, 1), (1100, False, 2), (3900, False, 2), (4100, False, 1)],
)
def test_codegen_level_by_kind_and_size(instructions, matrix, level):
    call = "\n  %2 = call <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float %0, float %0, <4 x float> %1, i32 0, i32 0, i32 0)"
    text = (call if matrix else "") + "\n  %3 = add i32 %0, 1" * (instructions - matrix)
    assert codegen.codegen_level(2, text) == level

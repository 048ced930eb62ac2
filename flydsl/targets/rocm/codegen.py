"""LLVM IR text to ISA text and object bytes, with llvmlite. Runs in this process or in a worker (`worker.py`).

Imports nothing of flydsl at run time, so that a worker starts fast; failures are plain `LlvmError`s, which
`isolate.py`
turns into the errors a user sees. One code generation per LLVM module (a second one aborts): the optimised module is
kept as bitcode and parsed again for each output.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import llvmlite.binding as llvm

TRIPLE = "amdgcn-amd-amdhsa"
# Up to about this many LLVM instructions codegen level 2 costs little. Above it, level 1 makes nearly equal code of matrix
# kernels in half to a fifth of the time (a GEMM: 0.4 % more instructions, 190 instead of 697 ms). For other kernels level 2
# pays up to the second number (layernorm backward: 47 instead of 72 VGPRs in the same time).
# Level 3 places blocks with tail duplication, which made a kernel of 12 predicated copies 11 % longer
# (gfx942: 178 -> 198 instructions; gfx1201: 202 -> 226).
SMALL_INSTRUCTIONS, MEDIUM_INSTRUCTIONS = 1000, 4000
_MATRIX = (".mfma.", ".smfmac.", ".wmma.", ".swmmac.")


class LlvmError(Exception):
    """LLVM refused the text; `symbols` names unknown intrinsics."""

    def __init__(self, text: str, symbols: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.symbols = symbols


class NoAmdgpu(Exception):
    """This build of LLVM has no code generator for AMD GPUs."""


class Request(NamedTuple):
    """One code generation: from IR `text`, or from the optimised `bitcode` of an earlier one.

    `outputs` holds any of `llvm_ir` (optimised), `isa`, `obj`; `level` is LLVM's codegen level.
    """

    cpu: str
    opt_level: int
    level: int
    outputs: tuple[str, ...]
    text: str = ""
    bitcode: bytes = b""
    link_libs: tuple[str, ...] = ()


def set_llvm_option(name: str, value: bool | int | str) -> None:
    """Set a command-line option of LLVM for the rest of the process; only workers do this."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    llvm.set_option("flydsl", f"--{name.lstrip('-')}={text}")


@functools.cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(TRIPLE)
    except RuntimeError as error:
        raise NoAmdgpu(str(error)) from error


@functools.lru_cache(maxsize=32)
def target_machine(cpu: str, level: int) -> llvm.TargetMachine:
    """Return the code generator of one chip at one level (kept: making one takes half a millisecond).

    Raises   NoAmdgpu
    """
    machine = _target().create_target_machine(cpu=cpu, opt=level)
    machine.set_asm_verbosity(True)
    return machine


# What most kernels are made of: vectors, a loop, a branch, LDS, a buffer; every chip has all of it.
_ORDINARY_KERNEL = """
@lds = internal addrspace(3) global [256 x float] undef
define amdgpu_kernel void @warm_up(ptr addrspace(1) %in, ptr addrspace(8) %rows, i32 %n) {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %inside = icmp slt i32 %t, %n
  br i1 %inside, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <4 x float> [ zeroinitializer, %entry ], [ %more, %loop ]
  %at = shl i32 %i, 2
  %index = add i32 %at, %t
  %from = getelementptr <4 x float>, ptr addrspace(1) %in, i32 %index
  %x = load <4 x float>, ptr addrspace(1) %from
  %row = call <4 x float> @llvm.amdgcn.raw.ptr.buffer.load.v4f32(ptr addrspace(8) %rows, i32 %index, i32 0, i32 0)
  %product = fmul <4 x float> %x, %row
  %more = fadd <4 x float> %sum, %product
  %next = add i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %done
done:
  %first = extractelement <4 x float> %more, i32 0
  %half = fptrunc float %first to half
  %place = getelementptr float, ptr addrspace(3) @lds, i32 %t
  store float %first, ptr addrspace(3) %place
  call void @llvm.amdgcn.s.barrier()
  %neighbour = xor i32 %t, 1
  %there = getelementptr float, ptr addrspace(3) @lds, i32 %neighbour
  %other = load float, ptr addrspace(3) %there
  %chosen = call float @llvm.maxnum.f32(float %other, float %first)
  %whole = insertelement <4 x float> %more, float %chosen, i32 3
  store <4 x float> %whole, ptr addrspace(1) %from
  %to = getelementptr half, ptr addrspace(1) %in, i32 %t
  store half %half, ptr addrspace(1) %to
  br label %end
end:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare <4 x float> @llvm.amdgcn.raw.ptr.buffer.load.v4f32(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.maxnum.f32(float, float)
"""


def warm_up(cpu: str) -> None:
    """Generate code for an ordinary kernel: LLVM's first one for a chip takes two to three times as long as the next."""
    generate(Request(cpu, 2, 2, ("obj",), _ORDINARY_KERNEL))


def generate(request: Request) -> dict[str, str | bytes]:
    """Return the outputs that `request` names, and `bitcode`, the optimised module they were made from.

    Raises   LlvmError: the text does not parse, does not verify, or declares intrinsics that LLVM does not have; NoAmdgpu
    """
    context = llvm.create_context()
    machine = target_machine(request.cpu, request.level)
    if request.bitcode:
        module = llvm.parse_bitcode(request.bitcode, context=context)
        bitcode = request.bitcode
    else:
        module = parse(request.text, context)
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        for path in request.link_libs:
            link(module, path, context)
        optimise(module, machine, request.opt_level, "llvm.loop.unroll" in request.text, bool(request.link_libs))
        if request.link_libs:
            check_defined(module)
        bitcode = module.as_bitcode()
    results: dict[str, str | bytes] = {"bitcode": bitcode}
    for output in request.outputs:
        if module is None:
            module = llvm.parse_bitcode(bitcode, context=context)
        results[output] = _emit(output, module, machine)
        if output != "llvm_ir":  # code generation changes the module and cannot be repeated on it
            module = None
    return results


def _emit(output: str, module: llvm.ModuleRef, machine: llvm.TargetMachine) -> str | bytes:
    match output:
        case "llvm_ir":
            return str(module)
        case "isa":
            return machine.emit_assembly(module)
        case "obj":
            return machine.emit_object(module)
    raise ValueError(f"unknown output {output!r}")


def parse(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """Return the verified module of LLVM IR text; unknown intrinsics are refused (they have no attributes)."""
    try:
        module = llvm.parse_assembly(text, context=context)
        module.verify()
    except RuntimeError as error:
        raise LlvmError(str(error).strip()) from error
    unknown = tuple(
        f.name
        for f in module.functions
        if f.is_declaration and f.name.startswith("llvm.") and not any(True for _ in f.attributes)
    )
    if unknown:
        raise LlvmError(f"unknown intrinsics: {', '.join(unknown)}", unknown)
    return module


def link(module: llvm.ModuleRef, path: str, context: llvm.ContextRef) -> None:
    """Link the device bitcode at `path` into `module`; what it defines becomes internal, and is inlined where it may be."""
    try:
        with open(path, "rb") as f:
            library = llvm.parse_bitcode(f.read(), context=context)
        library.verify()
        defined = [v.name for v in (*library.functions, *library.global_variables) if not v.is_declaration]
        library.triple, library.data_layout = module.triple, module.data_layout
        module.link_in(library)
    except (OSError, RuntimeError) as error:
        raise LlvmError(f"{path}: {str(error).strip()}") from error
    for function in module.functions:
        if function.name in defined and not function.is_declaration:
            function.linkage = "internal"
            if b"noinline" not in b" ".join(function.attributes):
                function.add_function_attribute("alwaysinline")


def check_defined(module: llvm.ModuleRef) -> None:
    """Refuse functions that are still called and nothing that was linked defines."""
    missing = tuple(f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm."))
    if missing:
        raise LlvmError(f"undefined symbols: {', '.join(missing)}", missing)


def codegen_level(opt_level: int, text: str) -> int:
    """Return LLVM's codegen level for `opt_level` (see `CodegenOptions`) and IR `text` of that kind and size."""
    if opt_level != 2:
        return opt_level
    instructions = text.count("\n  ")
    has_matrix = any(name in text for name in _MATRIX)
    return 2 if instructions <= (SMALL_INSTRUCTIONS if has_matrix else MEDIUM_INSTRUCTIONS) else 1


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt_level: int, hinted: bool = False, linked: bool = False) -> None:
    """Run the middle end in place: nothing at 0, slim at 1 and 2, O3 at 3.

    Slim unrolls only where loops are `hinted`.
    """
    if opt_level == 0 and not linked:
        return
    tuning = llvm.create_pipeline_tuning_options(opt_level)
    builder = llvm.create_pass_builder(machine, tuning)
    if opt_level == 0:
        passes = llvm.create_new_module_pass_manager()
        _add_linking(passes)
    elif opt_level == 3:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        if linked:
            _add_linking(passes)
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_loop_rotate_pass()  # removes the copies of loop carries
        passes.add_instruction_combine_pass()
        passes.add_new_gvn_pass()
        if hinted:
            passes.add_loop_unroll_pass()
            passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def _add_linking(passes: llvm.ModulePassManager) -> None:
    """Inline what was linked and drop what nobody calls."""
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()

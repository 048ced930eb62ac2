"""Errors of chips, code generation, linking and devices."""

import difflib

from flydsl.diag.base import InternalError, MissingTool, Unsupported, UserError

__all__ = [
    "AssemblyRejected",
    "ClusterLaunchUnsupported",
    "ClusterUnsupported",
    "CodegenFailed",
    "IntrinsicNotOnChip",
    "IntrinsicUnknown",
    "KernelAttributeBad",
    "LdsLimit",
    "LinkFailed",
    "LinkerPath",
    "LlvmOptionBad",
    "LlvmRejected",
    "MathUnsupported",
    "MissingAssembler",
    "MissingLinker",
    "MissingLlvm",
    "NoGpuModule",
    "OccupancyImpossible",
    "PrintfBad",
    "RocmOpLeft",
    "SmallFloatUnsupported",
    "UndefinedSymbol",
    "UnknownArch",
    "WorkgroupLimit",
]


class UnknownArch(UserError, ValueError):
    """Raised with `arch` and `known`; `close` holds the known names that look alike."""

    code = "FLY_UNKNOWN_ARCH"
    what = "unknown arch `{arch}`{hint}"
    why = "known chips: {known_text}"
    fix = "set ARCH (or FLYDSL_GPU_ARCH) to one of them"

    def __init__(self, *, arch: str, known: tuple[str, ...], **rest):
        close = tuple(difflib.get_close_matches(arch, known, n=3, cutoff=0.6))
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        super().__init__(arch=arch, known=known, close=close, hint=hint, known_text=", ".join(known), **rest)


class MissingLlvm(MissingTool, ImportError):
    code = "FLY_NO_LLVM"
    what = "llvmlite, which holds LLVM's AMDGPU code generator, cannot be used: {problem}"
    why = "ISA text and code objects are made by LLVM 22.1 from the llvmlite wheel; the simulator does not need it"
    fix = "pip install 'llvmlite==0.50.*'"


class MissingLinker(MissingTool, FileNotFoundError):
    code = "FLY_NO_LINKER"
    what = "no linker for AMD code objects: ld.lld was not found"
    why = "searched: {searched_text}"
    fix = "pip install ziglang (its wheel holds an ld.lld), or set FLYDSL_LLD to an ld.lld"


class LinkerPath(MissingLinker):
    code = "FLY_LINKER_PATH"
    what = "FLYDSL_LLD={path} is not an executable file"
    why = "it names the linker of AMD code objects, and no other one is looked for"
    fix = "set it to an ld.lld, or unset it; where none is installed, pip install ziglang brings one"


class MissingAssembler(MissingTool, FileNotFoundError):
    code = "FLY_NO_ASSEMBLER"
    what = "no AMDGPU assembler was found, which kernel `{kernel}` needs for its inline assembly"
    why = "llvmlite has none; searched: {searched_text}"
    fix = "pip install ziglang (its wheel holds a clang), or set ROCM_PATH to a ROCm installation"


class AssemblyRejected(UserError, ValueError):
    code = "FLY_ASSEMBLY"
    what = "the inline assembly of kernel `{kernel}` is not valid on {arch}: {problem}"
    why = "LLVM passes the text of an inline assembly on as it is; the assembler judges it"
    fix = "check the mnemonic and its operands in the instruction-set manual of {arch}"


class LinkFailed(InternalError, RuntimeError):
    code = "FLY_LINK_FAILED"
    what = "{tool} failed ({status}): {problem}"
    why = "the object file for {arch} could not be made into a code object"
    fix = "check that the tool knows {arch}: `{command}`"


class UndefinedSymbol(UserError, LookupError):
    code = "FLY_UNDEFINED_SYMBOL"
    what = "the code object for {arch} refers to undefined symbols: {symbols_text}"
    why = "nothing that was compiled or linked defines them, and the GPU's loader would refuse the file"
    fix = "link the bitcode that defines them, or correct the name"


class NoGpuModule(UserError, ValueError):
    code = "FLY_NO_GPU_MODULE"
    what = "there is nothing to compile: {problem}"
    why = "code is generated for the kernels in one gpu.module"
    fix = "launch a @flyc.kernel in the @flyc.jit function, or pass the module of one compile"


class RocmOpLeft(InternalError, RuntimeError):
    code = "FLY_ROCM_OP"
    what = "the rocm target has no lowering for `{op}`{detail}"
    why = "only llvm and rocdl ops on integers and f16, bf16, f32, f64 can become LLVM IR; others would crash LLVM"
    fix = "lower the op before it reaches the target, or report this with the kernel"


class IntrinsicUnknown(UserError, LookupError):
    code = "FLY_INTRINSIC_UNKNOWN"
    what = "LLVM 22.1 has no intrinsic `{name}`{hint}"
    why = "{reason_text}"
    fix = "check the spelling and the operand types against LLVM 22.1's IntrinsicsAMDGPU"


class IntrinsicNotOnChip(Unsupported, ValueError):
    code = "FLY_INTRINSIC_ARCH"
    what = "`{name}` is not available on {arch}"
    why = "this instruction exists on {chips_text}"
    fix = "choose another instruction for {arch}, or compile for one of these chips"


class LdsLimit(UserError, ValueError):
    code = "FLY_LDS_LIMIT"
    what = "kernel `{kernel}` needs {used} bytes of LDS, but a workgroup of {arch} has {limit}"
    why = "it is taken by: {breakdown}"
    fix = "use smaller or fewer LDS arrays (fewer stages, a smaller tile)"


class WorkgroupLimit(UserError, ValueError):
    code = "FLY_WORKGROUP_LIMIT"
    what = "kernel `{kernel}` is launched with {threads} threads per workgroup, but {arch} allows {limit}"
    why = "the hardware dispatches at most {limit} threads as one workgroup"
    fix = "launch smaller blocks"


class KernelAttributeBad(UserError, ValueError):
    code = "FLY_KERNEL_ATTRIBUTE"
    what = "kernel `{kernel}` has the attribute {attribute} = {value}"
    why = "expected {wanted}"
    fix = "correct unit_attrs or value_attrs of the launch"


class OccupancyImpossible(UserError, ValueError):
    code = "FLY_OCCUPANCY"
    what = "waves_per_eu={wanted}: a SIMD of {arch} holds at most {limit} waves"
    why = "waves share the registers and the slots of a SIMD"
    fix = "ask for {limit} or fewer, and fewer still where the kernel needs many registers"


class ClusterUnsupported(Unsupported, ValueError):
    code = "FLY_CLUSTER"
    what = "`{kernel}` asks for clusters of {cluster} workgroups, which do not exist on {arch}"
    why = "only gfx1250 dispatches workgroups in clusters"
    fix = "leave cluster (or rocdl.cluster_dims) out on {arch}"


class ClusterLaunchUnsupported(Unsupported, RuntimeError):
    code = "FLY_CLUSTER_LAUNCH"
    what = "`{kernel}` is launched in clusters of {cluster} workgroups, which this HIP library cannot do"
    why = "it has no hipDrvLaunchKernelEx, and hipModuleLaunchKernel takes no cluster size"
    fix = "install a newer ROCm, or run the kernel in the simulator: FLYDSL_RUNTIME_KIND=sim"


class MathUnsupported(Unsupported, TypeError):
    code = "FLY_MATH_TYPE"
    what = "`{op}` has no expansion for {dtype}"
    why = "supported: {supported}"
    fix = "convert to a supported type first"


class SmallFloatUnsupported(Unsupported, TypeError):
    code = "FLY_SMALL_FLOAT"
    what = "`{op}` cannot work on {dtype}"
    why = "8-, 6- and 4-bit floats are storage types: they are loaded, moved, compared for bits and converted"
    fix = "convert to f32, f16 or bf16, compute, and convert back"


class PrintfBad(UserError, ValueError):
    code = "FLY_PRINTF"
    what = "printf cannot print {problem}"
    why = "a record of the print buffer holds integers, floats, pointers and vectors of these, at most {limit} bytes"
    fix = "print fewer or simpler values in one call"


class LlvmRejected(InternalError, RuntimeError):
    code = "FLY_LLVM_REJECTED"
    what = "LLVM does not accept the generated code: {problem}"
    why = "the IR text is written by a newer LLVM than the code generator's (22.1), or an operand type is wrong"
    fix = "FLYDSL_DUMP_IR=1 writes the LLVM IR; please report this with the kernel"


class LlvmOptionBad(UserError, ValueError):
    code = "FLY_LLVM_OPTION"
    what = "LLVM does not know the option `{option}`{detail}"
    why = "options are passed to LLVM 22.1 as written"
    fix = "write llvm_options={{'amdgpu-...': value}} with names that `llc --help-hidden` of LLVM 22 lists"


class CodegenFailed(UserError, RuntimeError):
    """LLVM ended its worker process; `log` holds what it printed."""

    code = "FLY_CODEGEN"
    what = "LLVM could not generate {arch} code: {problem}"
    why = "{reason_text}"
    fix = "{advice_text}"

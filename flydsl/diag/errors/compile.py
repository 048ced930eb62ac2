"""Errors of decorating, calling, compiling and launching."""

import difflib
import re
from collections.abc import Sequence

from flydsl.diag.base import InternalError, UserError

__all__ = [
    "BitcodeMissing",
    "ExternCall",
    "ExternUnbound",
    "ArgumentClass",
    "ArgumentCount",
    "ArgumentRange",
    "ArgumentType",
    "BackendCode",
    "BackendName",
    "BlockLimit",
    "BlockSizeConflict",
    "CompileCommandArgument",
    "CompileCommandFunction",
    "CompileCommandOutput",
    "DynamicSharedTooSmall",
    "ExportName",
    "ExportedArch",
    "ExportedArgument",
    "ExportedCount",
    "ExportedFile",
    "IrSyntax",
    "KernelInKernel",
    "KernelOutsideJit",
    "GridTooLarge",
    "LaunchGeometry",
    "MissingLaunch",
    "NoSource",
    "NoStream",
    "NotExportable",
    "NotTracing",
    "NotHostCode",
    "PassFailed",
    "PassName",
    "RunOnly",
    "RunOnlyFolder",
    "RunOnlyMiss",
    "SharedMemoryTooLarge",
    "SignatureChanged",
    "StrideNotUnit",
    "DumpFolder",
    "SwitchValue",
    "TensorDtype",
    "TensorExtent",
    "TensorMemory",
    "TensorNegated",
    "TensorPromise",
    "TensorRank",
    "UndeclaredNumber",
    "UnsupportedHint",
    "VerifyFailed",
]


class NotTracing(UserError, RuntimeError):
    code = "FLY_NOT_TRACING"
    what = "this operation builds GPU code, but no kernel is being traced"
    why = "operations on run-time values exist only while the body of a @flyc.kernel or @flyc.jit function runs"
    fix = "move the call into a @flyc.kernel or @flyc.jit function, or use static Python values"


class KernelInKernel(UserError, RuntimeError):
    code = "FLY_KERNEL_IN_KERNEL"
    what = "@kernel can only be called inside @jit function: `{kernel}` was called inside the kernel `{caller}`"
    why = "kernels are launched by the host; a running kernel launches no other"
    fix = (
        "launch both from a @flyc.jit function, one after the other; or make `{kernel}` a @flyc.jit or plain function: "
        "called in a kernel, it becomes part of it"
    )


class KernelOutsideJit(UserError, RuntimeError):
    code = "FLY_KERNEL_OUTSIDE_JIT"
    what = "@kernel can only be called inside @jit function: `{kernel}` was called from plain Python"
    why = "a kernel has no grid of its own; the @flyc.jit function around it computes the grid and launches it"
    fix = "write `@flyc.jit def launch(...): {kernel}(...).launch(grid=..., block=...)` and call `launch`"


class NoSource(UserError, OSError):
    code = "FLY_NO_SOURCE"
    what = "could not get source code of `{function}`"
    why = "the bodies of kernels and jit functions are parsed from their source file"
    fix = "define `{function}` in a file (or a notebook cell), not through exec or the plain interactive prompt"


class IrSyntax(UserError, ValueError):
    code = "FLY_IR_SYNTAX"
    what = "this text is not valid IR: {problem}"
    why = "the text starts with `{text}`"
    fix = "print the op or type once with str() and compare the spelling"


class VerifyFailed(InternalError, RuntimeError):
    code = "FLY_VERIFY_FAILED"
    what = "invalid IR after {stage}: {problem}"
    why = "the op at this place does not fit its operands or types"
    fix = "FLYDSL_DUMP_IR=1 writes every stage; please report this with the kernel"


class NotHostCode(UserError, RuntimeError):
    code = "FLY_NOT_HOST_CODE"
    what = "{op} is outside of every kernel, where a @flyc.jit function only computes the sizes and arguments of launches"
    why = "the body of a jit function runs on the host: it cannot touch the memory of tensors or execute GPU instructions"
    fix = "move it into a @flyc.kernel function, or compute it in Python before the call and pass the result as an argument"


class PassFailed(InternalError, RuntimeError):
    code = "FLY_PASS_FAILED"
    what = "pass {pass_name} failed: {problem}"
    why = "the op cannot be lowered as it stands"
    fix = "FLYDSL_DUMP_IR=1 writes the IR before the pass; repeat it with `python -m flydsl.tools.opt -p {pass_name}`"


class PassName(UserError, ValueError):
    """Raised with the `name` that was asked for (a pass, or a pipeline of them), what MLIR `said` of it, the `known` names."""

    code = "FLY_PASS_NAME"
    what = "{problem}{hint}"
    why = "{owner} passes by FlyDSL's names, or a pipeline of upstream passes in MLIR's textual form; MLIR says: {said}"
    fix = "correct the name, option or nesting; `flydsl.passes.registry.PASSES` holds ours, `mlir-opt --help` lists MLIR's"

    def __init__(self, *, name: str, said: str, known: Sequence[str], owner: str = "a pass list names", **rest):
        found = re.search(r"'([^']*)' does not refer to", said)
        unknown = found[1] if found else name
        problem = f"there is no compile pass `{unknown}`" if found else f"the pass pipeline `{name}` cannot be read"
        close = difflib.get_close_matches(unknown, known, n=3, cutoff=0.6) if found else ()
        hint = f"; did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else ""
        self.said = said
        super().__init__(problem=problem, hint=hint, said=" ".join(said.split()), owner=owner, **rest)


class ArgumentCount(UserError, TypeError):
    code = "FLY_ARGUMENT_COUNT"
    what = "`{function}` cannot be called like this: {problem}"
    why = "its signature is `{function}{signature}`"
    fix = "pass the arguments that the signature names"


class ArgumentType(UserError, TypeError):
    code = "FLY_ARGUMENT_TYPE"
    what = "{parameter}: {got} is neither a JitArgument nor has a registered constructor"
    why = "`{function}` declares `{parameter}: {declared}`"
    fix = "{advice}"


class ArgumentClass(UserError, TypeError):
    code = "FLY_ARGUMENT_CLASS"
    what = "`{parameter}` of `{function}` is declared as fx.{declared}, but gets {got}"
    why = "{reason_text}"
    fix = "{advice_text}"


class UndeclaredNumber(UserError, TypeError):
    code = "FLY_UNDECLARED_NUMBER"
    what = "`{parameter}` of kernel `{kernel}` gets the Python {type} {value}, and has no annotation that says what it becomes"
    why = "a number may be compiled into the kernel, or be passed at each launch as a scalar of some class"
    fix = "pass fx.{cls}({value}), or declare the parameter: `{name}: fx.Constexpr[{declared}]`{scalar}"

    def __init__(self, *, parameter: str, name: str, type: str, cls: str, **rest):
        is_part = parameter != name
        scalar = "" if is_part else f" or `{name}: fx.{cls}`"
        declared = "..." if is_part else type
        super().__init__(parameter=parameter, name=name, type=type, cls=cls, scalar=scalar, declared=declared, **rest)


class NoStream(UserError, TypeError):
    code = "FLY_STREAM"
    what = "`{got}` is no stream"
    why = "a stream is None (the default one), a torch stream, an integer handle of the driver, or fx.Stream of these"
    fix = "pass torch.cuda.current_stream(), or None"


class TensorDtype(UserError, TypeError):
    code = "FLY_TENSOR_DTYPE"
    what = "unsupported {library} dtype for memref element type: {dtype}"
    why = "a tensor in a kernel holds one of: {supported}"
    fix = "convert the array, or view its bytes as an integer type"


class TensorMemory(UserError, ValueError):
    code = "FLY_TENSOR_MEMORY"
    what = "a kernel cannot use the memory of this {library} tensor: {problem}"
    why = "a kernel reads and writes aligned elements in the GPU's byte order at an address of the host or of the GPU"
    fix = "pass a plain copy: dense, aligned, in native byte order, on the device that runs the kernel"


class TensorNegated(UserError, ValueError):
    code = "FLY_TENSOR_NEGATED"
    what = "the memory of {tensor} holds the negatives of its values: its negative bit is set"
    why = "torch makes the imaginary part of a conjugate (`z.conj().imag`) such a view; a kernel uses the memory as it is"
    fix = "pass `{name}.resolve_neg()`; it is a copy, so results that a kernel writes to it must be copied back"


class ArgumentRange(UserError, OverflowError):
    code = "FLY_ARGUMENT_RANGE"
    what = "{value} does not fit {dtype}, as which `{parameter}` of `{function}` is declared"
    why = "{dtype} parameters hold whole numbers from {low} to {high}; another one would become a different number"
    fix = (
        "declare a wider parameter (fx.Int64, fx.Float32), or pass a smaller or rounded number; "
        "where its low bits are meant, say so: fx.{dtype}(0xFFFFFFFF) wraps"
    )


class TensorPromise(UserError, ValueError):
    code = "FLY_TENSOR_PROMISE"
    what = "a tensor is not what it was declared to be: {problem}"
    why = "the code uses wide accesses and folded arithmetic that are wrong without it"
    fix = "leave the declaration out (`assumed_align`, `divisibility`, `use_32bit_stride`), or pad the tensor"


class TensorExtent(UserError, ValueError):
    code = "FLY_TENSOR_EXTENT"
    what = "a tensor of shape {shape} has more than 2^31 - 1 elements along one dimension"
    why = "extents are 32-bit integers in kernels; strides and addresses have 64 bits"
    fix = "give it more dimensions (`t.view(-1, 1 << 20)`), or pass its address with flyc.from_c_void_p"


class TensorRank(UserError, ValueError):
    code = "FLY_TENSOR_RANK"
    what = "a tensor without dimensions cannot be a kernel argument"
    why = "a kernel's tensor is a layout over memory, and a layout has at least one mode"
    fix = "reshape it to one element (`t.reshape(1)`), or pass the number as a scalar"


class StrideNotUnit(UserError, RuntimeError):
    code = "FLY_STRIDE_NOT_UNIT"
    what = "no dimension of this tensor is contiguous: shape {shape}, strides {strides}"
    why = "to auto-mark layout-dynamic a tensor that is passed as it is, one of its strides must be 1"
    fix = "pass `flyc.from_dlpack(t)` to keep all its strides static, or a contiguous copy"


class LaunchGeometry(UserError, ValueError):
    """Raised with the `parameter` (grid, block, cluster) and its `value`. A grid with a size of 0 launches nothing."""

    code = "FLY_LAUNCH_GEOMETRY"
    what = "{parameter}={value} is not a launch size"
    why = "{parameter} is an int, an Int32 or a tuple of one to three of them, each at least {least}"
    fix = "write `{parameter}=(x, y, z)` with whole numbers"

    def __init__(self, *, parameter: str, value: object, **rest):
        least = "0 (which launches nothing)" if parameter == "grid" else "1"
        super().__init__(parameter=parameter, value=value, least=least, **rest)


class GridTooLarge(UserError, ValueError):
    code = "FLY_GRID_TOO_LARGE"
    what = "grid.{axis}={blocks} workgroups of {lanes} work items are more than a launch holds: at most {most}"
    why = "the dispatch packet counts work items in 32 bits per dimension (2^32 - 1)"
    fix = "spread the workgroups over grid.y and grid.z, or let each workgroup loop over several tiles"


class BlockSizeConflict(UserError, ValueError):
    code = "FLY_BLOCK_SIZE"
    what = "`{kernel}` is launched with block={launched}, but declares known_block_size={declared}"
    why = "the declared size is compiled into the kernel"
    fix = "launch with the declared size, or leave known_block_size out"


class BlockLimit(UserError, ValueError):
    code = "FLY_BLOCK_LIMIT"
    what = "`{kernel}` is launched with block={block}, {threads} threads, but its code was generated for at most {most}"
    why = "the block size is a run-time value here; registers are shared out while compiling, for {most} threads where nothing else is said"
    fix = (
        "make the block size a compile-time value (fx.Constexpr[int], known_block_size=), or state the most threads at the launch: "
        "value_attrs={{'rocdl.flat_work_group_size': '1,1024'}}"
    )


class DynamicSharedTooSmall(UserError, ValueError):
    code = "FLY_DYNAMIC_SHARED"
    what = "smem={given} is less than the {needed} bytes that `{kernel}` allocates"
    why = "the dynamic SharedAllocator of the kernel has handed out {needed} bytes"
    fix = "leave smem out: the launch then passes what the kernel needs"


class SharedMemoryTooLarge(UserError, RuntimeError):
    code = "FLY_SHARED_MEMORY"
    what = "{used} bytes of shared memory are more than the {limit} bytes that one workgroup has on {arch}"
    why = "LDS is a fixed memory of each compute unit"
    fix = "use smaller tiles, fewer stages, or let buffers that are not alive together share their space (fx.union)"


class MissingLaunch(UserError, RuntimeError):
    code = "FLY_MISSING_LAUNCH"
    what = "`{kernel}(...)` is called here but never launched"
    why = "calling a kernel only binds its arguments; nothing runs without a grid"
    fix = "write `{kernel}(...).launch(grid=(...), block=(...))`"


class SignatureChanged(UserError, TypeError):
    code = "FLY_SIGNATURE_CHANGED"
    what = "`{function}` was compiled for another `{parameter}`: got {got}, compiled for {compiled}"
    why = "a CompiledFunction holds code for one signature only"
    fix = "call the jit function itself, or compile again for these arguments"


class RunOnly(UserError, ValueError):
    code = "FLY_RUN_ONLY"
    what = "FLYDSL_RUNTIME_RUN_ONLY forbids compiling, but {problem}"
    why = "with it every kernel comes from the disk cache"
    fix = "unset FLYDSL_RUNTIME_RUN_ONLY, or the switch that asks for a compile"


class RunOnlyFolder(UserError, RuntimeError):
    code = "FLY_RUN_ONLY_FOLDER"
    what = "FLYDSL_RUNTIME_RUN_ONLY takes every kernel from the disk cache, but FLYDSL_RUNTIME_CACHE_DIR is empty"
    why = "an empty text turns the disk cache off"
    fix = "set FLYDSL_RUNTIME_CACHE_DIR to the folder that a run with COMPILE_ONLY=1 has filled, or unset it for ~/.flydsl/cache"


class RunOnlyMiss(UserError, RuntimeError):
    code = "FLY_RUN_ONLY_MISS"
    what = "FLYDSL_RUNTIME_RUN_ONLY: `{function}` is not in the disk cache ({problem}); key {key}, folder {folder}"
    why = "compiling is forbidden, and this specialisation has not been compiled into that folder by this version"
    fix = "run once with COMPILE_ONLY=1 and the same arguments, target and versions; `flydsl cache explain {function}` shows what differs"


class DumpFolder(UserError, OSError):
    code = "FLY_DUMP_FOLDER"
    what = "the stages of a compile cannot be written to {path}: {problem}"
    why = "FLYDSL_DUMP_IR is set, and FLYDSL_DUMP_DIR is {folder}"
    fix = "set FLYDSL_DUMP_DIR to a folder that can be made and written, or unset FLYDSL_DUMP_IR"


class SwitchValue(UserError, ValueError):
    code = "FLY_SWITCH_VALUE"
    what = "{variable}={value!r} is not valid: expected {expected}"
    why = "switches are read from the environment when they are needed, and this one takes no other value"
    fix = "set {variable} to what is expected, or unset it; docs/environment.md says what each switch does"


class UnsupportedHint(UserError, ValueError):
    code = "FLY_HINT"
    what = "compile hint {hint} is not supported on this backend"
    why = "AMD GPUs have no such limit per launch"
    fix = "use `waves_per_eu` to trade registers for occupancy"


class BackendName(UserError, ValueError):
    code = "FLY_BACKEND"
    what = "there is no compile backend named {name}"
    why = "registered are: {known}"
    fix = "correct FLYDSL_COMPILE_BACKEND or the name, or register the class first: flydsl.compiler.backends.register_backend"


class BackendCode(UserError, NotImplementedError):
    code = "FLY_BACKEND_CODE"
    what = "the compile backend {name} has targets of the family {family}, which no code is generated for"
    why = "code generation and the simulator take AMD targets; other backends can be registered and asked, but not compiled with"
    fix = "derive the class from flydsl.compiler.backends.rocm.RocmBackend, or unset FLYDSL_COMPILE_BACKEND"


class CompileCommandFunction(UserError, ValueError):
    code = "FLY_COMPILE_FUNCTION"
    what = "cannot compile {wanted}: {problem}"
    why = "`flydsl compile` needs FILE:FUNCTION, where FUNCTION is decorated with @flyc.jit. {found}"
    fix = "flydsl compile my_kernels.py:launch --arch gfx942 --arg f32[64,128] --arg i32:64"


class CompileCommandOutput(UserError, ValueError):
    code = "FLY_COMPILE_OUTPUT"
    what = "--emit {what} gives {bytes} bytes that are no text, and standard output is a terminal"
    why = "a terminal would take them for control sequences"
    fix = "write them to a file: -o kernel.{what}"


class CompileCommandArgument(UserError, ValueError):
    code = "FLY_COMPILE_ARGUMENT"
    what = "--arg {text} does not describe an argument"
    why = "an argument is a tensor `f32[64,128]`, a number `i32:5` or `f32:0.5`, or a constant `const:4`"
    fix = "give one --arg per parameter, in order"


class NotExportable(UserError, NotImplementedError):
    code = "FLY_NOT_EXPORTABLE"
    what = "this function cannot be exported: {problem}"
    why = "exported code takes tensors, pointers, numbers and one stream, and starts without this package's compiler"
    fix = "pass what the kernel needs as tensors and numbers, or use the disk cache (COMPILE_ONLY=1) instead of an export"


class ExportedFile(UserError, ValueError):
    code = "FLY_EXPORTED_FILE"
    what = "{path} is no usable export: {problem}"
    why = "the file states a hash of its content and a format, and both are checked before anything of it is used"
    fix = "export the function again with this version"


class ExportedArch(UserError, RuntimeError):
    code = "FLY_EXPORTED_ARCH"
    what = "the exported `{function}` has no code for {arch}"
    why = "it was compiled for {archs}"
    fix = "export it with archs=(..., '{arch}')"


class ExportedCount(UserError, TypeError):
    code = "FLY_EXPORTED_COUNT"
    what = "the exported `{function}` takes {expected} arguments, got {given}"
    why = "its parameters are: {names}; constants were compiled in"
    fix = "pass one value per parameter, in this order"


class ExportedArgument(UserError, TypeError):
    code = "FLY_EXPORTED_ARGUMENT"
    what = "the exported `{function}` cannot take this `{parameter}`: got {got}"
    why = "it was compiled for {wanted}"
    fix = "pass what it was compiled for, or export the function for these arguments"


class ExportName(UserError, ValueError):
    code = "FLY_EXPORT_NAME"
    what = "cannot export under the name '{name}': {problem}"
    why = "the name becomes a file or a symbol of C"
    fix = "give another base name or function_prefix"


class ExternCall(UserError, TypeError):
    code = "FLY_EXTERN_CALL"
    what = "`{symbol}` cannot be called like this: {problem}"
    why = "it was declared as `{prototype}`; bits are passed on as they are, so nothing is converted"
    fix = "convert the arguments in the kernel (fx.Int32(x)), or correct the declaration"


class ExternUnbound(UserError, RuntimeError):
    code = "FLY_EXTERN_UNBOUND"
    what = "the external function `{symbol}` cannot be used here: {problem}"
    why = "it is device code, which exists only in the module of a kernel"
    fix = "call it in the body of a @flyc.kernel function"


class BitcodeMissing(UserError, FileNotFoundError):
    code = "FLY_BITCODE_MISSING"
    what = "the device bitcode {path}, which should define `{symbol}`, does not exist"
    why = "it is linked into every kernel that calls `{symbol}`"
    fix = "build it (`clang -target amdgcn-amd-amdhsa -mcpu=gfx942 -c -emit-llvm`), or correct bitcode_path"

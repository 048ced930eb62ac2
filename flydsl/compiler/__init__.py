"""`flyc`: kernels, jit functions, compiling and launching."""

from flydsl.utils.collector import paused_collector

with paused_collector(all_stays=True):
    from flydsl.compiler.context import CompilationContext
    from flydsl.compiler.diagnostics import install_excepthook
    from flydsl.compiler.export import export, materialise
    from flydsl.compiler.jit_argument import (
        JitArgumentRegistry,
        from_c_void_p,
        from_dlpack,
        from_torch_tensor,
    )
    from flydsl.compiler.jit_executor import CompiledArtifact, CompiledFunction
    from flydsl.compiler.jit_function import CompileCallable, JitFunction, jit
    from flydsl.compiler.kernel_function import KernelFunction, KernelLauncher, kernel
    from flydsl.compiler.loading import load_compiler

    load_compiler()

compile = CompileCallable()
install_excepthook()

__all__ = [
    "CompilationContext",
    "CompiledArtifact",
    "CompiledFunction",
    "JitArgumentRegistry",
    "JitFunction",
    "KernelFunction",
    "KernelLauncher",
    "compile",
    "export",
    "from_c_void_p",
    "from_dlpack",
    "from_torch_tensor",
    "jit",
    "kernel",
    "materialise",
]

"""From a traced module to an artifact: verify, lower, dump."""

from __future__ import annotations

import time

from flydsl.compiler.backends import check_passes, compiling_backend
from flydsl.compiler.context import CompilationContext
from flydsl.compiler.dump import Dumper
from flydsl.compiler.jit_executor import CodegenRequest, CompiledArtifact
from flydsl.diag import FlyError, Span, SwitchUnused, warn
from flydsl.ir import Trace, ir, print_op
from flydsl.ir.verify import verify
from flydsl.passes.registry import run_pass
from flydsl.passes.warn_suspicious import check_lowered, check_traced
from flydsl.utils import env
from flydsl.utils.logger import log


class MlirCompiler:
    """The lowering step. Public tests replace `compile` to look at the traced module alone; nothing else should."""

    @classmethod
    def compile(cls, module: ir.Module, *, trace: Trace, dumper: Dumper | None, timer: StageTimer) -> ir.Module:
        """Lower a traced module in place and return it."""
        backend, hints = compiling_backend(trace.arch), CompilationContext.get_compile_hints()
        backend.lower_compile_hints(module, compile_hints=hints)
        passes = backend.pipeline_fragments(compile_hints=hints)
        check_passes(backend, passes, module.context)
        for pass_name in passes:
            run_pass(pass_name, module, trace.types, trace.arch)
            timer.mark(pass_name)
            if dumper:
                dumper.stage(pass_name, module)
            if env.debug.print_after_all or env.debug.level >= 5:
                log.warning("after %s:\n%s", pass_name, print_op(module))
        if env.debug.enable_verifier:
            verify(module, passes[-1] if passes else "tracing")
            timer.mark("verify")
        module.operation.attributes["fly.lowered"] = ir.UnitAttr.get()
        return module


_warned: set[str] = set()  # switches, once per process: they are not of one kernel


def _warn_of_switches() -> None:
    for option in env.set_without_effect():
        if option.env_var not in _warned:
            _warned.add(option.env_var)
            warn(SwitchUnused(switch=option.env_var, reason=option.unused))


def _raw_error(message: str, note: str, at: Span | None) -> FlyError | None:
    from flydsl.compiler.raw_operands import raw_error  # only errors need it

    return raw_error(message, note, at)


def compile_module(trace: Trace, name: str, context: CompilationContext) -> CompiledArtifact:
    """Return the artifact of a traced module; machine code is generated now only if it is asked for."""
    module = trace.module
    kernels = kernel_names(module)
    timer = StageTimer(name)
    verify(module, "tracing", _raw_error)
    if env.compile.warn:
        _warn_of_switches()
        check_traced(module)
    timer.mark("verify")
    origin = module.operation.clone().operation  # passes rewrite the module in place; a copy is cheaper than its text
    if env.debug.print_origin_ir or env.debug.level >= 4:
        log.warning("traced module of %s:\n%s", name, print_op(origin))
    dumper = None
    if dumping():
        text = print_op(module, locations=True)
        dumper = Dumper(kernels[0] if len(kernels) == 1 else name, (trace.arch, text, repr(context.hints)))
        dumper.write("origin", text)
    module = MlirCompiler.compile(module, trace=trace, dumper=dumper, timer=timer)
    if env.compile.warn:
        check_lowered(module)
    request = CodegenRequest.of(context.hints, context.link_libs)
    artifact = CompiledArtifact(name, trace.arch, module, request, origin, tuple(kernels))
    artifact.post_load = tuple(context.post_load)
    wants_text = dumper or env.debug.dump_asm or env.debug.level >= 6
    if (wants_text or env.compile.compile_only) and artifact.is_lowered:
        _generate(artifact, dumper)
        timer.mark("code generation")
    timer.report()
    return artifact


def kernel_names(module: ir.Module) -> list[str]:
    """Return the names of the kernels in a module."""
    names = []
    for op in module.body.operations:
        if op.operation.name == "gpu.module":
            for inner in op.operation.regions[0].blocks[0].operations:
                if inner.operation.name == "gpu.func":
                    names.append(ir.StringAttr(inner.operation.attributes["sym_name"]).value)
    return names


def dumping() -> bool:
    """Return whether every stage is written."""
    return env.debug.dump_ir


def _generate(artifact: CompiledArtifact, dumper: Dumper | None) -> None:
    """Generate the code that somebody looks at. The code object is made only where it is the result: it needs a linker,
    the texts do not."""
    if not artifact.kernel_names:
        return
    if dumper is None and env.debug.dump_asm:
        dumper = _IsaDumper(artifact.kernel_names[0], (artifact.arch, artifact.source_ir, repr(artifact.request)))
    logged = env.debug.level >= 6

    def show(stage: str, text: str) -> None:
        if logged and stage != "llvm_dialect":
            log.warning("%s of %s:\n%s", stage, artifact.name, text)
        if dumper is not None:
            dumper.text(stage, text)

    emit = ("hsaco",) if env.compile.compile_only else ()
    artifact.codegen(emit, dump=show if logged or dumper is not None else None)


class _IsaDumper(Dumper):
    """Writes the assembly alone (FLYDSL_DEBUG_DUMP_ASM)."""

    def text(self, stage: str, text: str) -> None:
        if stage == "final_isa":
            super().text(stage, text)


class StageTimer:
    """Time per stage, reported with FLYDSL_DEBUG=1."""

    def __init__(self, name: str):
        self.name = name
        self.active = env.debug.level >= 1
        self.last = time.perf_counter()
        self.marks: list[tuple[str, float]] = []

    def mark(self, stage: str) -> None:
        if self.active:
            now = time.perf_counter()
            self.marks.append((stage, now - self.last))
            self.last = now

    def report(self) -> None:
        if self.active:
            total = sum(t for _, t in self.marks)
            parts = ", ".join(f"{stage} {1e3 * t:.1f}" for stage, t in self.marks)
            log.warning("compile %s: %.1f ms (%s)", self.name, 1e3 * total, parts)

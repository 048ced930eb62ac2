"""Compile a lowered module: LLVM dialect, LLVM IR, ISA, object, code object, each made when it is first asked for.

artifact = compile_lowered(module, arch="gfx942", emit=("hsaco",)) artifact.hsaco,
artifact.kernels["vec_add_0"].args
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from flydsl import arch as chips
from flydsl.arch import Chip
from flydsl.diag.errors.target import LinkFailed, MissingLinker, UndefinedSymbol
from flydsl.ir import ir, make_context
from flydsl.targets.base import KernelInfo
from flydsl.targets.rocm import code_object, printf, tools
from flydsl.targets.rocm.isolate import CodegenInput, run_codegen
from flydsl.targets.rocm.options import CodegenOptions
from flydsl.targets.rocm.to_llvm import DeviceModule, KernelFacts, lower_to_llvm, to_llvm_ir

Dump = Callable[[str, str], None]
OUTPUTS = ("llvm_dialect", "llvm_ir", "isa", "obj", "hsaco")


@dataclass
class RocmArtifact:
    """The outputs of one compile, each made when it is first asked for and kept.

    `llvm_dialect` is there only when `emit` named it or a dump was written: the module it prints is not kept.
    """

    arch: str
    source: CodegenInput
    facts: dict[str, KernelFacts]
    llvm_dialect: str | None = None
    _made: dict[str, Any] = field(default_factory=dict, repr=False)
    _linker: tools.Job | None = field(default=None, repr=False)

    @property
    def llvm_ir(self) -> str:
        """LLVM IR text before optimisation, as LLVM 22.1 reads it."""
        return self.source.text

    @property
    def llvm_ir_optimised(self) -> str:
        """LLVM IR text after the middle end."""
        self._generate("llvm_ir")
        return self._made["llvm_ir"]

    @property
    def isa(self) -> str:
        """The assembly text, with LLVM's remarks on registers and occupancy."""
        self._generate("isa")
        return self._made["isa"]

    @property
    def obj(self) -> bytes:
        """The relocatable object file."""
        if self.source.has_inline_asm:  # llvmlite has no assembly parser, which emitting an object would need
            return self._keep("obj", lambda: tools.assemble(self.isa, self.arch, next(iter(self.facts))))
        self._generate("obj")
        return self._made["obj"]

    @property
    def hsaco(self) -> bytes:
        """The code object that a HIP runtime loads."""
        return self._keep("hsaco", self._link)

    @property
    def kernels(self) -> dict[str, KernelInfo]:
        """Facts per kernel, read from the machine code's metadata."""
        return self._keep("kernels", self._read_kernels)

    def make(self, outputs: tuple[str, ...]) -> None:
        """Make `outputs`, LLVM's part of them in one go."""
        wanted = ["isa"] if "isa" in outputs else []
        if "obj" in outputs or "hsaco" in outputs:
            wanted.append("isa" if self.source.has_inline_asm else "obj")
        with self._linker_ahead("hsaco" in outputs):
            self._generate(*wanted)
            for output in ("obj", "hsaco"):
                if output in outputs:
                    getattr(self, output)

    @contextmanager
    def _linker_ahead(self, is_wanted: bool) -> Iterator[None]:
        """Let the linker start while code is generated inside."""
        if not is_wanted or "hsaco" in self._made:
            yield
            return
        with suppress(MissingLinker, LinkFailed):  # said when its turn comes: the kernel's own faults come first
            self._linker = tools.start_linking(self.arch)
        try:
            yield
        finally:
            if self._linker is not None:  # no object was made for it
                self._linker.abandon()
                self._linker = None

    def _generate(self, *outputs: str) -> None:
        missing = tuple(o for o in dict.fromkeys(outputs) if o not in self._made)
        if not missing:
            return
        made = run_codegen(self.source, missing, self._made.get("bitcode", b""))
        if self.source.options.opt_level == 2 and (spilled := _spilled(made)):
            full = replace(self.source, options=replace(self.source.options, opt_level=3))
            again = run_codegen(full, missing)
            if _spilled(again) < spilled:
                self.source, made = full, again
                self._made.clear()
        self._made.update(made)

    def _keep(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _link(self) -> bytes:
        obj = self.obj
        linker, self._linker = self._linker or tools.start_linking(self.arch), None
        image = linker.finish(obj)
        missing = code_object.undefined_symbols(image)
        if missing:
            raise UndefinedSymbol(arch=self.arch, symbols=missing, symbols_text=", ".join(missing))
        return image

    def _read_kernels(self) -> dict[str, KernelInfo]:
        infos = code_object.kernel_infos(self.obj)
        return {name: _named(info, self.facts.get(name)) for name, info in infos.items()}


def _spilled(made: dict[str, Any]) -> int:
    """Return how many registers the generated code keeps in scratch memory, or 0 where no code was generated.

    LLVM's full middle end needs fewer registers in some large kernels: one of 4,900 instructions spilled 85 of 384
    VGPRs after the slim one, none after the full one.
    """
    if "obj" in made:
        kernels = code_object.metadata(made["obj"]).get("amdhsa.kernels", ())
        return sum(k.get(".vgpr_spill_count", 0) for k in kernels)
    return sum(map(int, re.findall(r"^\s*\.vgpr_spill_count:\s*(\d+)", made.get("isa", ""), re.MULTILINE)))


def compile_lowered(
    module: ir.Module | str,
    arch: str,
    options: CodegenOptions = CodegenOptions(),
    emit: tuple[str, ...] = ("hsaco",),
    dump: Dump | None = None,
) -> RocmArtifact:
    """Return the artifact of a lowered module (or its text) for chip `arch`; what `emit` names is made at once.

    `dump(stage, text)` receives `llvm_dialect`, `llvm_ir` and `final_isa`.
    Raises   UnknownArch, the errors of `guards`, LdsLimit, CodegenFailed, MissingLinker
    """
    unknown = set(emit) - set(OUTPUTS)
    if unknown:
        raise ValueError(f"emit: unknown output {sorted(unknown)}; known: {', '.join(OUTPUTS)}")
    chip = chips.get(arch)
    if isinstance(module, str):
        module = _parse(module)
    device = lower_to_llvm(module, chip, options)
    artifact = _artifact(device, chip, options)
    if dump is not None or "llvm_dialect" in emit:
        artifact.llvm_dialect = device.module.operation.get_asm(enable_debug_info=options.debug_info)
    if dump is not None:
        dump("llvm_dialect", artifact.llvm_dialect)
        dump("llvm_ir", artifact.llvm_ir)
        artifact.make(("isa",) if artifact.source.has_inline_asm or "hsaco" not in emit else ("isa", "obj"))
        dump("final_isa", artifact.isa)  # before a linker or an assembler may turn out to be missing
    artifact.make(tuple(emit))
    return artifact


def _artifact(device: DeviceModule, chip: Chip, options: CodegenOptions) -> RocmArtifact:
    source = CodegenInput.of(to_llvm_ir(device), chip, options, device.facts, next(iter(device.kernels)))
    return RocmArtifact(arch=chip.name, source=source, facts=device.kernels)


def _parse(text: str) -> ir.Module:
    with make_context(), ir.Location.unknown():
        return ir.Module.parse(text)


def _named(info: KernelInfo, facts: KernelFacts | None) -> KernelInfo:
    """Add what only the lowered IR knows: the user's parameter names, dynamic LDS, print formats."""
    if facts is None:
        return info
    names = dict(enumerate(facts.params))
    explicit = [a for a in info.args if not a.is_hidden]
    if facts.printf_formats:
        names[len(explicit) - 1] = printf.ARGUMENT
    args = [replace(a, name=names.get(i, a.name)) for i, a in enumerate(explicit)]
    return replace(
        info,
        args=(*args, *(a for a in info.args if a.is_hidden)),
        has_dynamic_lds=facts.has_dynamic_lds,
        has_printf=bool(facts.printf_formats),
        printf_formats=facts.printf_formats,
    )

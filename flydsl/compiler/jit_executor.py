"""Compiled code: the artifact of one specialisation, and the callable made of it."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flydsl.compiler.dispatch import MOST_PATTERNS, buffer
from flydsl.compiler.host_program import host_function
from flydsl.compiler.jit_argument import compiled_argument, compiled_form
from flydsl.compiler.lines import Place, move_sites
from flydsl.compiler.parameters import described_parameters, exportable
from flydsl.diag.source import mark_internal
from flydsl.ir import get_context, ir, make_context, parse_module, print_op
from flydsl.runtime import host_math
from flydsl.runtime import stored_artifact as stored
from flydsl.runtime.disk_cache import Entry
from flydsl.runtime.host_arrays import HostArray
from flydsl.runtime.kinds import Loaded, current_runtime, suited_to
from flydsl.targets.base import KernelInfo
from flydsl.targets.stored_text import run_text
from flydsl.utils import env
from flydsl.utils.record import record

if TYPE_CHECKING:
    from flydsl.targets.sim import Program


@record
class CodegenRequest:
    """What hints and switches ask of code generation; the target's options are made of it when code is generated."""

    opt_level: int
    debug_info: bool
    fields: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, hints: dict[str, Any], link_libs: Sequence[str] = ()) -> CodegenRequest:
        """Return the request of a compile with these hints in the present environment."""
        fields: dict[str, Any] = {}
        if "waves_per_eu" in hints:
            fields["waves_per_eu"] = hints["waves_per_eu"]
        if hints.get("fast_fp_math") or hints.get("unsafe_fp_math"):
            fields["fast_fp_math"] = True
        if "llvm_options" in hints:
            fields["llvm_options"] = hints["llvm_options"]
        if link_libs:
            fields["link_libs"] = tuple(link_libs)
        opt_level = hints.get("opt_level", env.compile.opt_level)
        return cls(opt_level, env.debug.enable_debug_info, tuple(fields.items()))

    @property
    def link_libs(self) -> tuple[str, ...]:
        """The files of device bitcode that are linked."""
        return dict(self.fields).get("link_libs", ())

    def options(self) -> Any:
        """Return the ROCm target's options."""
        from flydsl.targets.rocm.options import CodegenOptions

        return CodegenOptions(opt_level=self.opt_level, debug_info=self.debug_info, **dict(self.fields))


class CompiledArtifact:
    """One specialisation: its lowered module; the host function and machine code are made on first use.

    An artifact from the disk cache has an `entry` instead of modules, which are parsed only when somebody asks for IR.
    What is made later is handed to `keep`, which adds it to the stored entry.
    """

    def __init__(
        self,
        name: str,
        arch: str,
        lowered: ir.Module | None,
        request: CodegenRequest,
        origin: ir.Operation | None,
        kernel_names: tuple[str, ...] = (),
        entry: Entry | None = None,
    ):
        self.name, self.arch, self.request, self.kernel_names = name, arch, request, kernel_names
        self.entry = entry or Entry({})
        self.keep: Callable[[Entry], None] = _keep_nothing
        self.post_load: tuple[Callable[[int], Any], ...] = ()  # called with each loaded module
        self._lowered, self._origin = lowered, origin
        self._codegen: Any = None
        self._program: Program | None = None
        self.moved: dict[Place, Place] = {}  # source places of the entry that are elsewhere now
        self._loaded: dict[str, Loaded] = {}

    # --- the disk cache ----------------------------------------------------------------------------------------------

    @classmethod
    def from_entry(cls, entry: Entry) -> CompiledArtifact:
        """Return the artifact of a cache entry.

        Raises   KeyError, TypeError, ValueError: it is not an entry of ours
        """
        facts = entry.facts["artifact"]
        fields = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in facts["request"]["fields"])
        request = CodegenRequest(facts["request"]["opt_level"], facts["request"]["debug_info"], fields)
        artifact = cls(facts["name"], facts["arch"], None, request, None, tuple(facts["kernels"]), entry)
        artifact.host  # noqa: B018  (refuses text that is not generated code)
        for name in entry.sections:
            stored.unpack(entry, name) if name in stored.PACKED else None
        return artifact

    def to_entry(self, facts: dict[str, Any]) -> Entry:
        """Return the entry to store, with what has been made so far."""
        request = {
            "opt_level": self.request.opt_level,
            "debug_info": self.request.debug_info,
            "fields": self.request.fields,
        }
        artifact = {"name": self.name, "arch": self.arch, "kernels": self.kernel_names, "request": request}
        self.entry.facts = {**facts, "artifact": artifact}
        for name, operation in ((stored.LOWERED, self.lowered.operation), (stored.ORIGIN, self.origin)):
            self._section(name, operation.get_asm(enable_debug_info=True, use_local_scope=True))
        self._section(stored.HOST, self.host_text)
        return self.entry

    def _section(self, name: str, text: str | bytes) -> None:
        self.entry.sections[name] = stored.pack(name, text)

    # --- IR ----------------------------------------------------------------------------------------------------------

    @property
    def lowered(self) -> ir.Module:
        """The lowered module."""
        if self._lowered is None:
            self._lowered = parse_module(stored.unpack(self.entry, stored.LOWERED), make_context())
        return self._lowered

    @property
    def origin(self) -> ir.Operation:
        """The traced module, before any pass."""
        if self._origin is None:
            self._origin = parse_module(stored.unpack(self.entry, stored.ORIGIN), get_context()).operation
        return self._origin

    @property
    def source_ir(self) -> str:
        """The traced module, before any pass, with locations."""
        return print_op(self.origin, locations=True)

    @property
    def ir(self) -> str:
        """The lowered IR, with locations."""
        return print_op(self.lowered, locations=True)

    @property
    def is_lowered(self) -> bool:
        """Whether the passes have run on the module."""
        return self._lowered is None or "fly.lowered" in self.lowered.operation.attributes

    def dump(self, compiled: bool = True) -> None:
        """Print the IR after (`compiled`) or before lowering."""
        sys.stdout.write(f"{self.ir if compiled else self.source_ir}\n")

    # --- code --------------------------------------------------------------------------------------------------------

    def codegen(self, emit: Sequence[str] = ("isa", "hsaco"), dump: Callable | None = None) -> Any:
        """Return the ROCm artifact (ISA, object, code object, facts per kernel)."""
        if self._codegen is None:
            from flydsl.targets.rocm import compile_lowered

            options = self.request.options()
            self._codegen = compile_lowered(self.lowered, arch=self.arch, options=options, emit=emit, dump=dump)
        return self._codegen

    def code_object(self) -> tuple[bytes, dict[str, KernelInfo]]:
        """Return the code object and the facts of its kernels; generated at most once per cache entry."""
        sections = self.entry.sections
        if stored.CODE not in sections:
            generated = self.codegen(("isa", "hsaco"))
            self._section(stored.CODE, generated.hsaco)
            self._section(stored.KERNELS, stored.kernels_to_json(generated.kernels))
            self._section(stored.ISA, generated.isa)
            self.keep(self.entry)
            return generated.hsaco, generated.kernels
        return sections[stored.CODE], stored.kernels_from_json(stored.unpack(self.entry, stored.KERNELS))

    def sim_program(self) -> Program:
        """Return the simulator's program; translated at most once per cache entry."""
        if self._program is None:
            self._program = self._sim_program()
        return self._program

    def _sim_program(self) -> Program:
        from flydsl.targets.sim import Program  # 40 ms that a compile for a GPU does not need

        text = stored.unpack(self.entry, stored.SIM)
        if text is not None:
            try:
                payload = {**json.loads(text), "ir": stored.unpack(self.entry, stored.LOWERED)}
                payload = move_sites(payload, self.moved) if self.moved else payload
                return Program.from_payload(payload, checked=True)
            except (KeyError, TypeError, ValueError, AttributeError):  # not what we write: translated again
                pass
        program = Program(self.lowered, self.arch)
        self._section(stored.SIM, json.dumps({**program.to_payload(), "ir": ""}))
        self.keep(self.entry)
        return program

    @property
    def isa(self) -> str:
        """The assembly text."""
        return stored.unpack(self.entry, stored.ISA) or self.codegen(("isa",)).isa

    @property
    def stats(self) -> dict[str, Any]:
        """Facts of the generated code by kernel: registers, spills, LDS, instruction mix."""
        from flydsl.targets.rocm.isa_stats import isa_stats

        return isa_stats(self.isa, self.arch)

    # --- launching ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def host_text(self) -> str:
        """The Python text of the host function."""
        return stored.unpack(self.entry, stored.HOST) or host_function(self.lowered, self.name)

    @functools.cached_property
    def host(self) -> Callable:
        """The host function: `host(launch, *flat arguments)`."""
        function = run_text(self.host_text, f"<host function of {self.name}>", host_math.NAMES)["host"]
        mark_internal(function.__code__, True)
        return function

    def prepare(self) -> None:
        """Make what the first launch on the runtime in force needs."""
        self.loaded  # noqa: B018

    @property
    def loaded(self) -> Loaded:
        """The artifact on the runtime in force."""
        runtime = current_runtime()
        if runtime.name not in self._loaded:
            self._loaded[runtime.name] = runtime.load(self)
        return self._loaded[runtime.name]

    def entry_point(self, device: int, array_names: Sequence[str]) -> Callable:
        """Return what the fast path calls with the flat arguments, and before them the arrays where the runtime must
        know them."""
        loaded, host = self.loaded, self.host
        if not loaded.needs_buffers:
            return functools.partial(host, loaded.on_device(None if device < 0 else device))

        def run(arrays: tuple, *flat: Any) -> None:
            host(loaded.launcher([(n, buffer(a)) for n, a in zip(array_names, arrays, strict=True)]), *flat)

        return run

    def run(self, flat: Sequence[Any], buffers: Sequence[tuple[str, HostArray]]) -> None:
        """Launch everything that the host function launches."""
        self.host(self.loaded.launcher(buffers), *flat)


def _keep_nothing(entry: Entry) -> None:
    """What an artifact that is not stored does with new sections."""


class CompiledFunction:
    """A function compiled for one signature. Called with positional arguments of that signature; others are refused."""

    def __init__(self, function: Any, artifact: CompiledArtifact, arguments: Sequence[tuple[str, Any]]):
        self._function = function
        self._parameters = described_parameters(arguments)
        self.artifact = artifact
        self._compiled = tuple(compiled_form(argument) for _, argument in arguments)
        self._signatures = tuple(argument.signature() for _, argument in arguments)
        self._calls: tuple[Callable, ...] = ()
        self._count = len(arguments)

    def __call__(self, *args: Any) -> None:
        if len(args) == self._count:
            for call in self._calls:
                if call(*args):
                    return
        self._call_slowly(args)

    def _call_slowly(self, args: tuple) -> None:
        """Launch with arguments in a form that was not met yet, or refuse them. Those left out have their defaults."""
        function = self._function
        if len(args) != self._count:
            args = function.positional(args, {})
            if any(call(*args) for call in self._calls):
                return
        typed = map(compiled_argument, args, self._compiled)
        arguments = function.wrap_arguments(tuple(typed), {})
        function.check_signature(arguments, self._signatures)
        with suited_to(b.device for _, argument in arguments if (b := argument.buffer()) is not None):
            function.launch(self.artifact, arguments)
            pattern = function.pattern(arguments, args, self.artifact)
        if pattern is not None and len(self._calls) < MOST_PATTERNS:
            self._calls = (*self._calls, pattern.call)

    def export_to_c(self, file_path: str, file_name: str, function_prefix: str = "") -> str:
        """Write `<file_name>.o`, `.h`, `.json` and the code object into a folder; return the exported symbol
        (`compiler.export_c`).

        Raises   FileNotFoundError, ExportName, NotExportable
        """
        from flydsl.compiler.export_c import export_to_c

        parameters = exportable(self._parameters)
        return export_to_c(file_path, file_name, function_prefix, self.artifact.name, parameters, [self.artifact])

    def max_blocks_per_cu(self) -> int:
        """Return how many workgroups of the first kernel fit one compute unit, by registers and LDS."""
        facts = next(iter(self.artifact.stats.values()))
        return facts.max_blocks_per_cu

    @property
    def stats(self) -> dict[str, Any]:
        """Facts of the generated code by kernel."""
        return self.artifact.stats

"""Compiled code: the artifact of one specialisation, and the callable made of it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flydsl.compiler.dispatch import MOST_PATTERNS, buffer
from flydsl.compiler.host_arrays import HostArray
from flydsl.compiler.host_program import host_function
from flydsl.ir import ir, print_op
from flydsl.runtime import host_math
from flydsl.runtime.kinds import Loaded, current_runtime
from flydsl.utils import env


@dataclass(frozen=True)
class CodegenRequest:
    """What hints and switches ask of code generation; the target's options are made of it when code is generated."""

    opt_level: int
    debug_info: bool
    fields: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, hints: dict[str, Any]) -> CodegenRequest:
        """Return the request of a compile with these hints in the present environment."""
        fields: dict[str, Any] = {}
        if "waves_per_eu" in hints:
            fields["waves_per_eu"] = hints["waves_per_eu"]
        if hints.get("fast_fp_math") or hints.get("unsafe_fp_math"):
            fields["fast_fp_math"] = True
        if "llvm_options" in hints:
            fields["llvm_options"] = hints["llvm_options"]
        opt_level = hints.get("opt_level", env.compile.opt_level)
        return cls(opt_level, env.debug.enable_debug_info, tuple(fields.items()))

    def options(self) -> Any:
        """Return the ROCm target's options."""
        from flydsl.targets.rocm.options import CodegenOptions

        return CodegenOptions(opt_level=self.opt_level, debug_info=self.debug_info, **dict(self.fields))


@dataclass
class CompiledArtifact:
    """One specialisation: its lowered module; the host function and machine code are made on first use.

    `params` names the host function's flat arguments.
    """

    name: str
    arch: str
    lowered: ir.Module
    request: CodegenRequest
    origin: ir.Operation
    kernel_names: tuple[str, ...] = ()
    _codegen: Any = field(default=None, repr=False)
    _loaded: dict[str, Loaded] = field(default_factory=dict, repr=False)

    @property
    def source_ir(self) -> str:
        """The traced module, before any pass, with locations."""
        return print_op(self.origin, locations=True)

    @property
    def ir(self) -> str:
        """The lowered IR, with locations."""
        return print_op(self.lowered, locations=True)

    def codegen(self, emit: Sequence[str] = ("isa", "hsaco"), dump: Callable | None = None) -> Any:
        """Return the ROCm artifact (ISA, object, code object, facts per kernel)."""
        if self._codegen is None:
            from flydsl.targets.rocm import compile_lowered

            options = self.request.options()
            self._codegen = compile_lowered(self.lowered, arch=self.arch, options=options, emit=emit, dump=dump)
        return self._codegen

    @property
    def stats(self) -> dict[str, Any]:
        """Facts of the generated code by kernel: registers, spills, LDS, instruction mix."""
        from flydsl.targets.rocm.isa_stats import isa_stats

        return isa_stats(self.codegen(("isa",)).isa, self.arch)

    def dump(self, compiled: bool = True) -> None:
        """Print the IR after (`compiled`) or before lowering."""
        sys.stdout.write(f"{self.ir if compiled else self.source_ir}\n")

    @property
    def is_lowered(self) -> bool:
        """Whether the passes have run on the module."""
        return "fly.lowered" in self.lowered.operation.attributes

    @functools.cached_property
    def host_text(self) -> str:
        """The Python text of the host function."""
        return host_function(self.lowered, self.name)

    @functools.cached_property
    def host(self) -> Callable:
        """The host function: `host(launch, *flat arguments)`."""
        namespace = dict(host_math.NAMES)
        exec(compile(self.host_text, f"<host function of {self.name}>", "exec"), namespace)
        return namespace["host"]

    @property
    def loaded(self) -> Loaded:
        """The artifact on the runtime in force."""
        runtime = current_runtime()
        if runtime.name not in self._loaded:
            self._loaded[runtime.name] = runtime.load(self)
        return self._loaded[runtime.name]

    def entry(self, device: int, array_names: Sequence[str]) -> Callable:
        """Return what the fast path calls with the flat arguments, and before them the arrays where the runtime must know them."""
        loaded, host = self.loaded, self.host
        if not loaded.needs_buffers:
            return functools.partial(host, loaded.on_device(None if device < 0 else device))

        def run(arrays: tuple, *flat: Any) -> None:
            host(loaded.launcher([(n, buffer(a)) for n, a in zip(array_names, arrays, strict=True)]), *flat)

        return run

    def run(self, flat: Sequence[Any], buffers: Sequence[tuple[str, HostArray]]) -> None:
        """Launch everything that the host function launches."""
        self.host(self.loaded.launcher(buffers), *flat)


class CompiledFunction:
    """A function compiled for one signature. Called with positional arguments of that signature; others are refused."""

    def __init__(self, function: Any, artifact: CompiledArtifact, signatures: tuple, args: Sequence[Any]):
        self._function = function
        self.artifact = artifact
        self._signatures = signatures
        self._calls: tuple[Callable, ...] = ()
        self._count = len(args)

    def __call__(self, *args: Any) -> None:
        if len(args) == self._count:
            for call in self._calls:
                if call(*args):
                    return
        self._call_slowly(args)

    def _call_slowly(self, args: tuple) -> None:
        """Launch with arguments in a form that was not met yet, or refuse them."""
        function = self._function
        arguments = function.wrap_arguments(args, {})
        function.check_signature(arguments, self._signatures)
        function.launch(self.artifact, arguments)
        pattern = function.pattern(arguments, args, self.artifact)
        if pattern is not None and len(self._calls) < MOST_PATTERNS:
            self._calls = (*self._calls, pattern.call)
            self._count = len(args)

    def max_blocks_per_cu(self) -> int:
        """Return how many workgroups of the first kernel fit one compute unit, by registers and LDS."""
        facts = next(iter(self.artifact.stats.values()))
        return facts.max_blocks_per_cu

    @property
    def stats(self) -> dict[str, Any]:
        """Facts of the generated code by kernel."""
        return self.artifact.stats

"""Compiled code: the artifact of one specialisation, and the callable made of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flydsl.compiler.host_arrays import HostArray
from flydsl.ir import ir, print_op
from flydsl.runtime import host_math
from flydsl.runtime.kinds import Loaded, current_runtime


@dataclass
class CompiledArtifact:
    """One specialisation: its lowered module and the text of its host function; machine code is made on first use.

    `params` names the host function's flat arguments.
    """

    name: str
    arch: str
    lowered: ir.Module
    host_text: str
    options: Any
    source_ir: str | None = None
    kernel_names: tuple[str, ...] = ()
    _codegen: Any = field(default=None, repr=False)

    @property
    def ir(self) -> str:
        """The lowered IR, with locations."""
        return print_op(self.lowered, locations=True)

    def codegen(self, emit: Sequence[str] = ("isa", "hsaco"), dump: Callable | None = None) -> Any:
        """Return the ROCm artifact (ISA, object, code object, facts per kernel)."""
        if self._codegen is None:
            from flydsl.targets.rocm import compile_lowered

            self._codegen = compile_lowered(self.lowered, arch=self.arch, options=self.options, emit=emit, dump=dump)
        return self._codegen

    @property
    def stats(self) -> dict[str, Any]:
        """Facts of the generated code by kernel: registers, spills, LDS, instruction mix."""
        from flydsl.targets.rocm.isa_stats import isa_stats

        return isa_stats(self.codegen(("isa",)).isa, self.arch)

    def dump(self, compiled: bool = True) -> None:
        """Print the IR after (`compiled`) or before lowering."""
        text = self.ir if compiled else self.source_ir
        import sys

        sys.stdout.write(f"{text}\n")

    @functools.cached_property
    def host(self) -> Callable:
        """The host function: `host(launch, *flat arguments)`."""
        namespace = dict(host_math.NAMES)
        exec(compile(self.host_text, f"<host function of {self.name}>", "exec"), namespace)
        return namespace["host"]

    @functools.cached_property
    def loaded(self) -> Loaded:
        """The artifact on the runtime in force."""
        return current_runtime().load(self)

    def run(self, flat: Sequence[Any], buffers: Sequence[tuple[str, HostArray]]) -> None:
        """Launch everything that the host function launches."""
        self.host(self.loaded.launcher(buffers), *flat)


class CompiledFunction:
    """A function compiled for one signature. Called with positional arguments of that signature; others are refused."""

    def __init__(self, function: Any, artifact: CompiledArtifact, key: Any):
        self._function = function
        self.artifact = artifact
        self._key = key

    def __call__(self, *args: Any) -> None:
        wrapped = self._function.wrap_arguments(args, {})
        self._function.check_signature(wrapped, self._key)
        self._function.launch(self.artifact, wrapped)

    def max_blocks_per_cu(self) -> int:
        """Return how many workgroups of the first kernel fit one compute unit, by registers and LDS."""
        facts = next(iter(self.artifact.stats.values()))
        return facts.max_blocks_per_cu

    @property
    def stats(self) -> dict[str, Any]:
        """Facts of the generated code by kernel."""
        return self.artifact.stats

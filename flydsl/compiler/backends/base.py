"""What a compile backend is: a target, and the passes that turn a traced module into one that code is generated from.

The compiler asks the backend in force, once per compile, for `lower_compile_hints` and `pipeline_fragments`; `hash` is
part of the cache key. The other methods are questions that user code asks.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from flydsl.compiler.disk import toolchain
from flydsl.dialects.values import GENERIC, GLOBAL, LLVM_SPACE, REGISTER, SHARED
from flydsl.utils.record import record

_PROCESS = f"{os.getpid()} of {time.time_ns()}"
_ADDRESS_SPACES = {**{space: LLVM_SPACE[space] for space in (GENERIC, GLOBAL, SHARED, REGISTER)}, "constant": 4, "private": LLVM_SPACE[REGISTER]}


@record
class GPUTarget:
    """What code is generated for: the family of `backend`, its chip `arch`, `warp_size` in lanes."""

    backend: str
    arch: str
    warp_size: int


class BaseBackend:
    """A compile backend for one target. Code generation takes what `pipeline_fragments` leaves, so a backend of one's own
    derives from `RocmBackend`, or lowers to the same form (docs/architecture.md, "The lowered IR")."""

    def __init__(self, target: GPUTarget):
        if not self.supports_target(target):
            raise ValueError(f"{type(self).__name__} does not support {target}")
        self.target = target

    @staticmethod
    def detect_target() -> GPUTarget:
        """Return the target where nobody names a chip."""
        raise NotImplementedError

    @classmethod
    def make_target(cls, arch: str) -> GPUTarget:
        """Return the target of a chip."""
        raise NotImplementedError

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Return whether there is code for a target."""
        raise NotImplementedError

    def lower_compile_hints(self, module: Any, *, compile_hints: Mapping[str, Any]) -> None:
        """Write hints into a traced module, in place; called before the passes. Here nothing: code generation gets the
        hints by itself."""

    def pipeline_fragments(self, *, compile_hints: Mapping[str, Any]) -> list[str]:
        """Return the passes in order: names of ours (`passes.registry`), or upstream pipelines in MLIR's textual form."""
        raise NotImplementedError

    def gpu_module_targets(self) -> list[str]:
        """Return the target attributes of GPU modules, as text."""
        raise NotImplementedError

    def jit_runtime_lib_basenames(self) -> list[str]:
        """Return the native libraries that launches need; none: the runtime is Python."""
        return []

    def llvm_address_space(self, space: str) -> int:
        """Return LLVM's number of a memory space: global, shared, register, constant, generic. KeyError for others."""
        return _ADDRESS_SPACES[space.lower()]

    def toolkit_fingerprint(self) -> str:
        """Return what identifies the compiler: a hash over versions and sources."""
        return hashlib.sha256(json.dumps(toolchain()).encode()).hexdigest()

    def hash(self) -> str:
        """Return what identifies the code of this backend: its target, its passes without hints, its class' source, the
        toolkit."""
        passes = self.pipeline_fragments(compile_hints={})
        parts = [repr(self.target), *passes, *map(_source, type(self).__mro__), self.toolkit_fingerprint()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _source(cls: type) -> str:
    if cls.__module__.startswith("flydsl.") or cls is object:  # hashed with the toolkit
        return cls.__qualname__
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):  # typed into a prompt: known to this process only
        return f"{cls.__qualname__} at {id(cls)} in {_PROCESS}"

"""What the first compile needs is imported with the package or the kernel, where it is sure to be needed."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from types import CodeType
from typing import Any

from flydsl.diag.errors.target import MissingLlvm
from flydsl.passes.registry import load_passes
from flydsl.runtime.kinds import may_have_amd_gpu
from flydsl.utils import env


def load_compiler() -> None:
    """Import the passes, and code generation with LLVM where kernels will run on an AMD GPU or are only compiled.

    In the simulator, LLVM is never needed.
    """
    load_passes()
    if env.compile.compile_only or may_have_amd_gpu():
        from flydsl.targets.rocm import compile, isolate  # noqa: F401

        with suppress(MissingLlvm):  # a compile says what is missing
            isolate.load_codegen()


def load_named(code: Any) -> None:
    """Import `fx.rocdl` (20 ms) where the code of a kernel names it: else its first compile would."""
    if isinstance(code, CodeType):
        if "rocdl" in code.co_names:
            import_module("flydsl.expr.rocdl")
        for constant in code.co_consts:
            load_named(constant)

"""What the first compile needs is imported with the package or the kernel, where it is sure to be needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import CodeType
from typing import Any

from flydsl import arch as chips
from flydsl.diag.errors.target import MissingLlvm, UnknownArch
from flydsl.ir import make_context_ahead
from flydsl.passes.registry import load_passes
from flydsl.runtime.device import target_arch
from flydsl.runtime.kinds import may_have_amd_gpu
from flydsl.utils import env

compiling = threading.Event()  # set when the first compile begins: it wants the machine for itself


def load_compiler() -> None:
    """Import the passes, and code generation with LLVM where kernels will run on an AMD GPU or are only compiled.

    In the simulator, LLVM is never needed. Elsewhere the compiler warms up in a thread while the program goes on: to
    import torch, to make its tensors.
    """
    load_passes()
    if env.compile.compile_only or (may_have_amd_gpu() and env.runtime.kind.strip().lower() != "sim"):
        from flydsl.targets.rocm import compile, intrinsics, isolate  # noqa: F401

        with suppress(MissingLlvm, UnknownArch):  # a compile says what is missing
            codegen, chip = isolate.load_codegen(), chips.get(target_arch())

            def warm_up() -> None:
                make_context_ahead()
                intrinsics.table()
                if not compiling.is_set():
                    with suppress(codegen.NoAmdgpu):  # a compile says so
                        codegen.warm_up(chip.mcpu)

            _start(warm_up)


def _start(work: Callable[[], None]) -> None:
    """Run `work` in a thread of its own. A fork waits for its end: the child would inherit locks that nobody holds."""
    thread = threading.Thread(target=work, name="flydsl-warm-up")
    with suppress(RuntimeError):  # no thread to be had: the first compile takes longer
        thread.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=thread.join)


def load_named(code: Any) -> None:
    """Import `fx.rocdl` (20 ms) where the code of a kernel names it: else its first compile would."""
    if isinstance(code, CodeType):
        if "rocdl" in code.co_names:
            import_module("flydsl.expr.rocdl")
        for constant in code.co_consts:
            load_named(constant)

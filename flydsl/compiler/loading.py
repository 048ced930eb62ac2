"""What the first compile needs is imported with the package, where it is sure to be needed."""

from __future__ import annotations

import importlib
import importlib.util
import os

from flydsl.passes.registry import load_passes
from flydsl.utils import env


def load_compiler() -> None:
    """Import the passes, and code generation with LLVM where kernels will run on an AMD GPU or are only compiled.

    In the simulator, LLVM is never needed.
    """
    load_passes()
    if env.compile.compile_only or os.path.exists("/dev/kfd"):
        importlib.import_module("flydsl.targets.rocm.compile")
        if importlib.util.find_spec("llvmlite") is not None:  # a compile without it says what is missing
            importlib.import_module("flydsl.targets.rocm.codegen")

"""Import of the MLIR bindings and the one registration that they need.

The bindings look for a Python module `<prefix>.<dialect>` whenever they return an op or a typed value of a dialect. If there is
none, the failed import is repeated at every access (13 us instead of 0.6): so `flydsl.ir.dialect_modules`, which holds a
module `fly` and a module `fly_rocdl`, is registered as a search prefix.
"""

import importlib

from torch_mlir import ir, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import ext
from torch_mlir.passmanager import PassManager

_mlir.globals.append_dialect_search_prefix("flydsl.ir.dialect_modules")


def translate_module_to_llvmir(op: "ir.Operation") -> str:
    """Return the LLVM IR text of a module of `llvm`/`rocdl` ops; the bindings crash on anything else, so check first."""
    native = importlib.import_module("torch_mlir._mlir_libs._mlirDialectsLLVM")  # without the op classes: 55 ms less
    return native.translate_module_to_llvmir(op)


def dialect(name: str):
    """Import and return the bindings' module of an upstream dialect (`arith`, `rocdl`, ...)."""
    return importlib.import_module(f"torch_mlir.dialects.{name}")


__all__ = ["PassManager", "dialect", "ext", "ir", "rewrite", "translate_module_to_llvmir"]

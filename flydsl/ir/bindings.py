"""Import of the MLIR bindings and the one registration that they need.

The bindings look for a Python module `<prefix>.<dialect>` whenever they return an op or a typed value of a dialect. Two costs lie there: if there
is no module, the failed import is repeated at every access (13 us instead of 0.6); if there is one, it is imported, and the generated classes of
`llvm`, `rocdl` and `gpu` take 20 to 90 ms that a compile does not need, because ops are built by name. So `flydsl.ir.dialect_modules` is the first
prefix, with an empty module for every dialect; whoever wants the generated classes asks for them by `dialect(name)`.
"""

import importlib
import sys
import types
import weakref

from torch_mlir import ir, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import ext
from torch_mlir.passmanager import PassManager

_PREFIX = "flydsl.ir.dialect_modules"
_DIALECTS = (
    "fly fly_rocdl builtin func gpu scf cf arith vector math llvm rocdl memref ub irdl amdgpu nvvm ptr dlti index affine tensor complex"
).split()


def _register() -> None:
    package = types.ModuleType(_PREFIX)
    package.__path__ = []
    sys.modules[_PREFIX] = package
    for name in _DIALECTS:
        sys.modules[f"{_PREFIX}.{name}"] = types.ModuleType(f"{_PREFIX}.{name}")
    prefixes = [p for p in _mlir.globals.dialect_search_modules if p != _PREFIX]
    _mlir.globals.dialect_search_modules = [_PREFIX, *prefixes]


_register()


def translate_module_to_llvmir(op: "ir.Operation") -> str:
    """Return the LLVM IR text of a module of `llvm`/`rocdl` ops; the bindings crash on anything else, so check first."""
    return importlib.import_module("torch_mlir._mlir_libs._mlirDialectsLLVM").translate_module_to_llvmir(op)


# what the DSL and its passes build; a context with every dialect of the bindings takes three times as long to make
_ALWAYS = "builtin func gpu scf cf arith vector math llvm rocdl memref ub irdl amdgpu index".split()
_NAMESPACES = {"async_dialect": "async", "openacc": "acc", "openmp": "omp"}  # where the module's name is another
_asked_for: list[str] = []
_contexts: weakref.WeakSet[ir.Context] = weakref.WeakSet()


def new_context() -> ir.Context:
    """Return a context with the upstream dialects that were asked for so far; text loads the dialects that it names."""
    context = ir.Context(load_on_create_dialects=_ALWAYS)
    for name in _asked_for:
        _load(context, name)
    _contexts.add(context)
    return context


def _load(context: ir.Context, name: str) -> None:
    try:
        context.dialects[_NAMESPACES.get(name, name)]
    except (AttributeError, IndexError, KeyError):  # a module of the bindings that is no dialect
        pass


def dialect(name: str):
    """Import and return the bindings' module of an upstream dialect (`arith`, `rocdl`, ...) with its generated op classes.

    Its ops can be built in every context from now on.
    """
    module = importlib.import_module(f"torch_mlir.dialects.{name}")
    if name not in _ALWAYS and name not in _asked_for:
        _asked_for.append(name)
        for context in _contexts:
            _load(context, name)
    return module


__all__ = ["PassManager", "dialect", "ext", "ir", "new_context", "rewrite", "translate_module_to_llvmir"]

"""Every pass of our own by its name, and how to run a list of passes on a module."""

import importlib
import re
from types import ModuleType

from flydsl.diag import PassName
from flydsl.ir import PassManager, Types, ir

# name -> (module, does it depend on the chip)
PASSES: dict[str, tuple[str, bool]] = {
    "fly-rewrite-func-signature": ("fly_rewrite_func_signature", False),
    "fly-canonicalize": ("fly_canonicalize", False),
    "fly-layout-lowering": ("fly_layout_lowering", False),
    "fly-int-swizzle-simplify": ("fly_int_swizzle_simplify", False),
    "fly-convert-atom-call-to-ssa-form": ("fly_convert_atom_call_to_ssa_form", False),
    "fly-promote-regmem-to-vectorssa": ("fly_promote_regmem_to_vectorssa", False),
    "fly-lower-raw-memref": ("fly_lower_raw_memref", False),
    "fly-lower-small-floats": ("fly_lower_small_floats", True),
    "convert-fly-to-rocdl": ("convert_fly_to_rocdl", True),
}
# Upstream passes that a pipeline of one's own may want, for suggestions: MLIR has no list of its passes for Python.
UPSTREAM = tuple(
    "arith-expand arith-int-range-narrowing arith-unsigned-when-equivalent canonicalize control-flow-sink "
    "convert-arith-to-llvm convert-cf-to-llvm convert-func-to-llvm convert-gpu-to-rocdl convert-index-to-llvm "
    "convert-math-to-llvm convert-scf-to-cf convert-vector-to-llvm convert-vector-to-scf cse expand-strided-metadata "
    "gpu-kernel-outlining inline int-range-optimizations lower-affine loop-invariant-code-motion "
    "loop-invariant-subset-hoisting mem2reg print-ir reconcile-unrealized-casts remove-dead-values scf-for-loop-peeling "
    "sccp sroa strip-debuginfo symbol-dce topological-sort".split()
)  # fmt: skip


def parse_upstream(name: str, context: ir.Context) -> PassManager:
    """Return the pass manager of a pipeline of upstream passes.

    Raises   PassName: MLIR does not know a name in it, or an option
    """
    try:
        return PassManager.parse(f"builtin.module({name})", context)
    except ValueError as e:
        raise PassName(name=name, said=str(e), known=(*PASSES, *UPSTREAM)) from None


def run_pass(name: str, module: ir.Module, types: Types, arch: str) -> None:
    """Run one pass: ours by its name, else a pipeline of upstream passes in MLIR's textual form."""
    if name not in PASSES:
        manager = parse_upstream(name, module.context)
        manager.enable_verifier(False)
        manager.run(module.operation)
        return
    module_name, needs_arch = PASSES[name]
    run = _module(module_name).run
    run(module, types, arch) if needs_arch else run(module, types)


def load_passes() -> None:
    """Import every pass."""
    for module_name, _ in PASSES.values():
        _module(module_name)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"flydsl.passes.{name}")


def stage_name(name: str) -> str:
    """Return the name of a stage in dump files."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")

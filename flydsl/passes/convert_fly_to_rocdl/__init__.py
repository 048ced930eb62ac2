"""convert-fly-to-rocdl: pointers become LLVM pointers or buffer resources, atom calls become AMD instructions.

Before  flat Fly ops (pointers, `fly.ptr_load`, atom calls in SSA form), register memory promoted where possible
After   no Fly op or type; what kernels compute is in arith, vector, math, scf, gpu, llvm and rocdl: the lowered IR
"""

from flydsl.ir import Types, ir
from flydsl.passes.convert_fly_to_rocdl import (  # noqa: F401  (add their rules)
    atomics,
    copies,
    lds_copies,
    matrix,
    pointers,
)
from flydsl.passes.convert_fly_to_rocdl.conversion import Conversion
from flydsl.passes.rewriting import entry_block, functions


def run(module: ir.Module, types: Types, arch: str) -> None:
    """Convert every function of `module` for the chip `arch`."""
    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            Conversion(types, arch).run(entry)

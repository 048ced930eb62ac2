"""fly-layout-lowering: turn layout ops on run-time values into integer arithmetic.

Before  fly, arith, scf, gpu, vector ops; every layout type fully known; function arguments are flat
After   no op uses a layout, int tuple or view: copies and matrix operations are single atom calls on pointers,
        accesses are `fly.ptr_load` and `fly.ptr_store`, offsets are static or integers
"""

from flydsl.ir import Types, ir
from flydsl.passes.fly_layout_lowering import accesses  # noqa: F401  (adds its rules)
from flydsl.passes.fly_layout_lowering.lowering import Lowering
from flydsl.passes.rewriting import entry_block, functions


def run(module: ir.Module, types: Types) -> None:
    """Lower every function of `module`."""
    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            Lowering(types).run(entry)

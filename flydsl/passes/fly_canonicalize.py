"""fly-canonicalize: forward what an accessor takes apart to what put it together.

Before  any Fly ops
After   `get_iter`, `get_layout`, `get_shape`, `get_stride` of a `make_view` or `make_layout` in sight are its
        operands; a result that its type states completely comes from `fly.static`
"""

from flydsl.dialects import is_fly_type, value_of
from flydsl.dialects.fly.algebra import ALGEBRA
from flydsl.dialects.values import KIND_OF_CLASS, is_static
from flydsl.ir import Types, ir
from flydsl.passes.rewriting import Editor, entry_block, functions, replace, visit

_FORWARD = {
    ("fly.get_iter", "fly.make_view"): 0,
    ("fly.get_layout", "fly.make_view"): 1,
    ("fly.get_shape", "fly.make_layout"): 0,
    ("fly.get_stride", "fly.make_layout"): 1,
    ("fly.composed_get_inner", "fly.make_composed_layout"): 0,
    ("fly.composed_get_offset", "fly.make_composed_layout"): 1,
    ("fly.composed_get_outer", "fly.make_composed_layout"): 2,
}


def run(module: ir.Module, types: Types) -> None:
    """Simplify every function of `module`."""
    editor = Editor(types)

    def simplify(op: ir.Operation) -> None:
        if op.name not in ALGEBRA:
            return
        result = op.results[0]
        if is_fly_type(result.type) and is_static(value_of(result.type)) and _is_foldable(result):
            replace(op, editor.before(op).value("fly.static", result.type))
            return
        source = op.operands[0].owner
        name = source.operation.name if isinstance(source, (ir.Operation, ir.OpView)) else ""
        index = _FORWARD.get((op.name, name))
        if index is not None:
            replace(op, source.operation.operands[index])

    for function in functions(module):
        entry = entry_block(function)
        if entry is not None:
            visit(entry, simplify)


def _is_foldable(result: ir.Value) -> bool:
    return KIND_OF_CLASS[type(value_of(result.type))] not in ("copy_atom", "mma_atom")

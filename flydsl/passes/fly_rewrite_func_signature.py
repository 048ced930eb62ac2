"""fly-rewrite-func-signature: kernels and host functions take pointers and integers instead of Fly values.

Before  functions and launches whose arguments are Fly values: tensors, pointers, layouts, int tuples
After   a tensor is its raw pointer, then its dynamic leaves (shape, then stride) as i32 or i64; a layout or int tuple
        is its leaves; a static value takes no argument; the body rebuilds the Fly value from them. `fly.params` names
        each argument.
"""

from flydsl import layout as la
from flydsl.dialects import is_fly_type, type_of, value_of
from flydsl.dialects.values import KIND_OF_CLASS, LLVM_SPACE, dynamic_leaves, is_static
from flydsl.ir import Types, ir
from flydsl.layout.view import CoordTensor, MemRef, Ptr
from flydsl.passes.rewriting import Editor, entry_block, functions


def run(module: ir.Module, types: Types) -> None:
    """Rewrite all function signatures and launches of `module`."""
    editor = Editor(types)
    launches: list[ir.Operation] = []
    for function in functions(module):
        entry = entry_block(function)
        if entry is None:
            continue
        editor.enter_function(entry)
        _rewrite_function(function, entry, editor)
        _collect_launches(entry, launches)
    for launch in launches:
        _rewrite_launch(launch, editor)


def flat_types(value: object, types: Types) -> list[ir.Type]:
    """Return the argument types that a Fly value becomes."""
    out = []
    if isinstance(value, (Ptr, MemRef)):
        ptr = value if isinstance(value, Ptr) else value.ptr
        out.append(types.llvm_ptr(LLVM_SPACE[ptr.space]))
    return out + [types.i64 if leaf.width == 64 else types.i32 for leaf in dynamic_leaves(value)]


def leaf_names(name: str, value: object) -> list[str]:
    """Return the names of the arguments that the parameter `name` becomes."""
    if isinstance(value, Ptr):
        return [name]
    if isinstance(value, MemRef):
        shape = [f"{name}.shape[{i}]" for i, _ in _dynamic_positions(value.layout, "shape")]
        stride = [f"{name}.stride[{i}]" for i, _ in _dynamic_positions(value.layout, "stride")]
        names = [name, *shape, *stride]
        if len(names) == 1 + len(dynamic_leaves(value)):
            return names
        return [name] + [f"{name}.leaf[{i}]" for i in range(len(dynamic_leaves(value)))]
    return [f"{name}.leaf[{i}]" for i in range(len(dynamic_leaves(value)))]


def _dynamic_positions(layout: object, part: str) -> list:
    if not isinstance(layout, la.Layout):
        return []
    leaves = la.get_leaves(getattr(layout, part))
    return [(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, la.Sym)]


def _rewrite_function(function: ir.Operation, entry: ir.Block, editor: Editor) -> None:
    names = _param_names(function, len(entry.arguments))
    if not any(is_fly_type(a.type) for a in entry.arguments):
        _set_names(function, names)
        return
    first = entry.operations[0]
    editor.before(first)
    new_types: list[ir.Type] = []
    new_names: list[str] = []
    arguments = list(entry.arguments)
    locations = [a.location if hasattr(a, "location") else function.location for a in arguments]
    for argument, name, loc in zip(arguments, names, locations, strict=True):
        if not is_fly_type(argument.type):
            new = entry.add_argument(argument.type, loc)
            argument.replace_all_uses_with(new)
            new_types.append(argument.type)
            new_names.append(name)
            continue
        value = value_of(argument.type)
        flat = [entry.add_argument(t, loc) for t in flat_types(value, editor.types)]
        new_types += [a.type for a in flat]
        new_names += leaf_names(name, value)
        argument.replace_all_uses_with(rebuild(value, flat, editor))
    for i in reversed(range(len(arguments))):
        entry.erase_argument(i)
    results = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(new_types, results, context=function.context)
    )
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]
    _set_names(function, new_names)


def rebuild(value: object, flat: list[ir.Value], editor: Editor) -> ir.Value:
    """Build the Fly value of plain value `value` from its flat arguments."""
    target = type_of(value)
    if is_static(value):
        return editor.value("fly.static", target)
    if isinstance(value, Ptr):
        return editor.value("fly.from_llvm_ptr", target, [flat[0]])
    if isinstance(value, MemRef):
        ptr = editor.value("fly.from_llvm_ptr", type_of(value.ptr), [flat[0]])
        layout = rebuild(value.layout, flat[1:], editor)
        return editor.value("fly.make_view", target, [ptr, layout])
    if isinstance(value, CoordTensor):
        count = len(dynamic_leaves(value.base))
        base, layout = rebuild(value.base, flat[:count], editor), rebuild(value.layout, flat[count:], editor)
        return editor.value("fly.make_view", target, [base, layout])
    if isinstance(value, la.Layout):
        count = len(dynamic_leaves(value.shape))
        shape, stride = rebuild(value.shape, flat[:count], editor), rebuild(value.stride, flat[count:], editor)
        return editor.value("fly.make_layout", target, [shape, stride])
    if isinstance(value, la.ComposedLayout):
        parts = []
        for part in (value.inner, value.offset, value.outer):
            count = len(dynamic_leaves(part))
            parts.append(rebuild(part, flat[:count], editor))
            flat = flat[count:]
        return editor.value("fly.make_composed_layout", target, parts)
    assert KIND_OF_CLASS[type(value)] == "int_tuple", value
    return make_int_tuple(target, value, flat, editor)


def make_int_tuple(target: ir.Type, value: object, leaves: list[ir.Value], editor: Editor) -> ir.Value:
    """Build `fly.make_int_tuple`; `leaves` are all dynamic leaves in order."""
    widths = [leaf.width for leaf in dynamic_leaves(value)]
    narrow = [v for v, w in zip(leaves, widths, strict=True) if w != 64]
    wide = [v for v, w in zip(leaves, widths, strict=True) if w == 64]
    segments = ir.DenseI32ArrayAttr.get([len(narrow), len(wide)])
    return editor.value("fly.make_int_tuple", target, narrow + wide, {"operandSegmentSizes": segments})


def _param_names(function: ir.Operation, count: int) -> list[str]:
    if "fly.params" in function.attributes:
        return [ir.StringAttr(a).value for a in ir.ArrayAttr(function.attributes["fly.params"])]
    return [f"arg{i}" for i in range(count)]


def _set_names(function: ir.Operation, names: list[str]) -> None:
    function.attributes["fly.params"] = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in names])


def _collect_launches(block: ir.Block, out: list[ir.Operation]) -> None:
    for op in block.operations:
        op = op.operation
        if op.name == "gpu.launch_func":
            out.append(op)
        for region in op.regions:
            for inner in region.blocks:
                _collect_launches(inner, out)


def _rewrite_launch(launch: ir.Operation, editor: Editor) -> None:
    """Replace Fly operands of a launch by their flat parts; the layout lowering folds the accessors away."""
    operands = list(launch.operands)
    if not any(is_fly_type(v.type) for v in operands):
        return
    editor.before(launch)
    flat: list[ir.Value] = []
    count = 0
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    kernel_operands = _kernel_operand_range(segments)
    for i, v in enumerate(operands):
        parts = flatten(v, editor) if is_fly_type(v.type) else [v]
        flat += parts
        count += len(parts) if i in kernel_operands else 0
    segments[_KERNEL_OPERANDS] = count
    attrs = {name: launch.attributes[name] for name in launch.attributes}
    attrs["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    new = editor.op("gpu.launch_func", [r.type for r in launch.results], flat, attrs)
    for old, result in zip(launch.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    launch.erase()


# Operand groups of gpu.launch_func: async dependencies, grid x y z, block x y z, cluster x y z, dynamic LDS, kernel
# operands, async object.
_KERNEL_OPERANDS = 11


def _kernel_operand_range(segments: list[int]) -> range:
    start = sum(segments[:_KERNEL_OPERANDS])
    return range(start, start + segments[_KERNEL_OPERANDS])


def flatten(v: ir.Value, editor: Editor) -> list[ir.Value]:
    """Build the flat parts of a Fly value: raw pointer, then dynamic leaves."""
    value = value_of(v.type)
    out = []
    if isinstance(value, (Ptr, MemRef)):
        ptr = value if isinstance(value, Ptr) else value.ptr
        source = v if isinstance(value, Ptr) else editor.value("fly.get_iter", type_of(ptr), [v])
        out.append(editor.value("fly.to_llvm_ptr", editor.types.llvm_ptr(LLVM_SPACE[ptr.space]), [source]))
    for i, leaf in enumerate(dynamic_leaves(value)):
        leaf_type = editor.types.i64 if leaf.width == 64 else editor.types.i32
        index = ir.IntegerAttr.get(editor.types.i32, i)
        out.append(editor.value("fly.get_leaf", leaf_type, [v], {"index": index}))
    return out

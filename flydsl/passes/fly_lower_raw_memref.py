"""fly-lower-raw-memref: memrefs that older kernels build by hand become LLVM pointers.

Before  `memref.global` in LDS, get_global, view, load, store, extract_aligned_pointer_as_index; vector.load and
vector.store on them
After   no memref; `llvm.mlir.global` in LDS, getelementptr, llvm.load, llvm.store
Shapes  static, row-major, without offset
"""

import math
from collections.abc import Callable

from flydsl.diag import PassFailed
from flydsl.ir import Types, ir
from flydsl.passes.rewriting import Editor, entry_block, erase_all, functions

PASS = "fly-lower-raw-memref"
_LDS_SPACE = 3
_DYNAMIC = -(2**31)


def run(module: ir.Module, types: Types) -> None:
    """Lower the raw memrefs of every gpu.module and function."""
    editor = Editor(types)
    for op in list(module.operation.regions[0].blocks[0].operations):
        if op.operation.name == "gpu.module":
            _globals(op.operation, editor)
    for function in functions(module):
        entry = entry_block(function)
        if entry is not None and _uses_memrefs(entry):
            editor.enter_function(entry)
            _Function(editor).run(entry)


def _uses_memrefs(block: ir.Block) -> bool:
    for view in block.operations:
        op = view.operation
        if op.name.startswith("memref.") or any(_uses_memrefs(b) for r in op.regions for b in r.blocks):
            return True
    return False


def _globals(module: ir.Operation, editor: Editor) -> None:
    for view in list(module.regions[0].blocks[0].operations):
        op = view.operation
        if op.name != "memref.global":
            continue
        editor.before(op)
        type_ = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
        attrs = {
            "sym_name": op.attributes["sym_name"],
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{_bytes(type_)} x i8>", op.context)),
            "linkage": ir.Attribute.parse("#llvm.linkage<internal>", op.context),
            "addr_space": ir.IntegerAttr.get(editor.types.i32, _LDS_SPACE),
        }
        if "alignment" in op.attributes:
            attrs["alignment"] = op.attributes["alignment"]
        editor.op("llvm.mlir.global", (), (), attrs, 1)
        op.erase()


def _bytes(type_: ir.MemRefType) -> int:
    """Return the bytes of a memref as getelementptr steps through it: elements below a byte have one each."""
    return math.prod(type_.shape) * -(-type_.element_type.width // 8)


class _Function:
    """One function: the pointer behind every memref value."""

    def __init__(self, editor: Editor):
        self.editor = editor
        self.types = editor.types
        self.pointers: dict[ir.Value, ir.Value] = {}
        self.dead: list[ir.Operation] = []

    def run(self, entry: ir.Block) -> None:
        self._block(entry)
        erase_all(self.dead)

    def _block(self, block: ir.Block) -> None:
        for view in list(block.operations):
            op = view.operation
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
            if op.name.startswith("memref.") or (op.name in _VECTOR_RULES):
                rule = _RULES.get(op.name)
                if rule is None:
                    raise PassFailed(pass_name=PASS, problem=f"no rule for {op.name} at {op.location}")
                self.editor.before(op)
                rule(self, op)
                self.dead.append(op)

    def pointer(self, memref: ir.Value) -> ir.Value:
        """Return the pointer of a memref."""
        found = self.pointers.get(memref)
        if found is None:
            raise PassFailed(pass_name=PASS, problem=f"the memref {memref.type} comes from an op that is not lowered")
        return found

    def element(self, memref: ir.Value, indices: list[ir.Value]) -> ir.Value:
        """Return the pointer of an element: indices are row-major."""
        type_ = ir.MemRefType(memref.type)
        pointer, linear = self.pointer(memref), None
        for extent, index in zip(type_.shape, indices, strict=True):
            i = self.integer(index)
            if linear is None:
                linear = i
                continue
            scaled = self.editor.value("arith.muli", self.types.i32, [linear, self.editor.i32(extent)])
            linear = self.editor.value("arith.addi", self.types.i32, [scaled, i])
        return pointer if linear is None else self.advance(pointer, type_.element_type, linear)

    def integer(self, index: ir.Value) -> ir.Value:
        """Return an `index` as i32: LDS addresses are 32 bits wide."""
        return self.editor.value("arith.index_cast", self.types.i32, [index])

    def advance(self, pointer: ir.Value, elem: ir.Type, index: ir.Value) -> ir.Value:
        attrs = {"elem_type": ir.TypeAttr.get(elem), "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC])}
        return self.editor.value("llvm.getelementptr", pointer.type, [pointer, index], attrs)

    def alignment(self, type_: ir.Type) -> dict[str, ir.Attribute]:
        """Return the alignment of an access: that of one element."""
        width = getattr(type_, "element_type", type_).width
        return {"alignment": ir.IntegerAttr.get(self.types.i64, max(1, width // 8))}


def _get_global(fn: _Function, op: ir.Operation) -> None:
    attrs = {"global_name": op.attributes["name"]}
    fn.pointers[op.result] = fn.editor.value("llvm.mlir.addressof", fn.types.llvm_ptr(_LDS_SPACE), (), attrs)


def _view(fn: _Function, op: ir.Operation) -> None:
    source, shift = op.operands[0], op.operands[1]
    fn.pointers[op.result] = fn.advance(fn.pointer(source), fn.types.i8, fn.integer(shift))


def _cast(fn: _Function, op: ir.Operation) -> None:
    fn.pointers[op.result] = fn.pointer(op.operands[0])


def _address(fn: _Function, op: ir.Operation) -> None:
    address = fn.editor.value("llvm.ptrtoint", fn.types.i64, [fn.pointer(op.operands[0])])
    op.result.replace_all_uses_with(fn.editor.value("arith.index_cast", fn.types.index, [address]))


def _load(fn: _Function, op: ir.Operation) -> None:
    memref, *indices = op.operands
    value = fn.editor.value("llvm.load", op.result.type, [fn.element(memref, indices)], fn.alignment(op.result.type))
    op.result.replace_all_uses_with(value)


def _store(fn: _Function, op: ir.Operation) -> None:
    value, memref, *indices = op.operands
    fn.editor.op("llvm.store", (), [value, fn.element(memref, indices)], fn.alignment(value.type))


_VECTOR_RULES = ("vector.load", "vector.store")
_RULES: dict[str, Callable[[_Function, ir.Operation], None]] = {
    "memref.get_global": _get_global,
    "memref.view": _view,
    "memref.cast": _cast,
    "memref.memory_space_cast": _cast,
    "memref.extract_aligned_pointer_as_index": _address,
    "memref.load": _load,
    "memref.store": _store,
    "vector.load": _load,
    "vector.store": _store,
}

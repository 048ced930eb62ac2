"""The engine: walks a function once and keeps, for every Fly value, its plain value with payloads."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flydsl import layout as la
from flydsl.diag import PassFailed
from flydsl.dialects import is_fly_type, laws, type_of, value_of
from flydsl.dialects.fly.algebra import ALGEBRA, params_of
from flydsl.dialects.values import KIND_OF_CLASS, dynamic_leaves, with_leaves
from flydsl.ir import Types, ir
from flydsl.layout.view import Ptr
from flydsl.passes.fly_layout_lowering.access import Access
from flydsl.passes.fly_layout_lowering.builder import Address, IrBuilder
from flydsl.passes.rewriting import Editor, registrar

PASS = "fly-layout-lowering"
_ATOM_KINDS = ("copy_atom", "mma_atom")
Rule = Callable[["Lowering", ir.Operation], None]
RULES: dict[str, Rule] = {}
rule = registrar(RULES, "fly.")  # decorator: the function is the rule of the named Fly ops


class Lowering:
    """One function being lowered. A rule defines the values of its op's results, or replaces the op by flat ones."""

    def __init__(self, types: Types):
        self.types = types
        self.editor = Editor(types)
        self.builder = IrBuilder(self.editor)
        self.access = Access(self.editor, self.builder)
        self.values: dict[ir.Value, Any] = {}
        self.dead: list[ir.Operation] = []

    def run(self, entry: ir.Block) -> None:
        self.editor.enter_function(entry)
        with la.use_builder(self.builder):
            self._block(entry)
        for op in reversed(self.dead):
            op.erase()

    def _block(self, block: ir.Block) -> None:
        for argument in block.arguments:
            if is_fly_type(argument.type):
                self._define_argument(argument)
        for view in list(block.operations):
            op = view.operation
            if op.name.startswith("fly."):
                self._lower(op)
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
            self._check_foreign(op)

    def _lower(self, op: ir.Operation) -> None:
        fn = RULES.get(op.name) or (_algebra if op.name in ALGEBRA else None)
        if fn is None:
            raise PassFailed(pass_name=PASS, problem=f"no rule for {op.name} at {op.location}")
        self.editor.before(op)
        try:
            fn(self, op)
        except la.LayoutError as e:
            raise PassFailed(pass_name=PASS, problem=f"{op.name} at {op.location}: {e}") from e

    def _define_argument(self, argument: ir.BlockArgument) -> None:
        value = value_of(argument.type)
        if not isinstance(value, Ptr):
            raise PassFailed(pass_name=PASS, problem=f"a block argument of type {argument.type} is not flat")
        self.values[argument] = replace(value, value=Address(argument))

    def _check_foreign(self, op: ir.Operation) -> None:
        for v in op.operands:
            if is_fly_type(v.type) and KIND_OF_CLASS[type(value_of(v.type))] != "ptr":
                raise PassFailed(pass_name=PASS, problem=f"{op.name} at {op.location} uses a value of type {v.type}")

    # Values

    def plain(self, v: ir.Value) -> Any:
        """Return the plain value of a Fly value, payloads included."""
        value = self.values.get(v, self)
        return value_of(v.type) if value is self else value

    def define(self, v: ir.Value, value: Any) -> None:
        """State the plain value of an op's result."""
        self.values[v] = value

    def forget(self, op: ir.Operation) -> None:
        """Erase `op` when the function is done: its users are lowered by then."""
        self.dead.append(op)

    def define_pointer(self, result: ir.Value) -> None:
        """State that a pointer result stands for itself."""
        self.define(result, replace(value_of(result.type), value=Address(result)))


def _algebra(low: Lowering, op: ir.Operation) -> None:
    """Every op of the algebra: its law on plain values."""
    cls = ALGEBRA[op.name]
    result = cls.infer([low.plain(v) for v in op.operands], params_of(op))
    low.define(op.result, result)
    low.forget(op)


@rule("static")
def _static(low: Lowering, op: ir.Operation) -> None:
    value = value_of(op.result.type)
    if KIND_OF_CLASS[type(value)] in _ATOM_KINDS:
        return  # atoms stay: calls name them by value
    low.define(op.result, value)
    low.forget(op)


@rule("make_int_tuple")
def _make_int_tuple(low: Lowering, op: ir.Operation) -> None:
    value = value_of(op.result.type)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    narrow, wide = iter(operands[: segments[0]]), iter(operands[segments[0] :])
    leaves = [
        la.Sym(leaf.width, leaf.div, next(wide if leaf.width == 64 else narrow)) for leaf in dynamic_leaves(value)
    ]
    low.define(op.result, with_leaves(value, iter(leaves)))
    low.forget(op)


@rule("get_scalar")
def _get_scalar(low: Lowering, op: ir.Operation) -> None:
    leaf = la.get_scalar(low.plain(op.operands[0]))
    width = 64 if op.result.type == low.types.i64 else 32
    op.result.replace_all_uses_with(low.builder.leaf(leaf, width))
    low.forget(op)


@rule("get_leaf")
def _get_leaf(low: Lowering, op: ir.Operation) -> None:
    index = ir.IntegerAttr(op.attributes["index"]).value
    leaf = dynamic_leaves(low.plain(op.operands[0]))[index]
    op.result.replace_all_uses_with(low.builder.leaf(leaf))
    low.forget(op)


@rule("elem_less", "equal")
def _compare(low: Lowering, op: ir.Operation) -> None:
    law = la.elem_less if op.name == "fly.elem_less" else la.equal
    result = law(low.plain(op.operands[0]), low.plain(op.operands[1]))
    op.result.replace_all_uses_with(low.builder.bit(result))
    low.forget(op)


@rule("tiled_copy_partition_src", "tiled_copy_partition_dst")
def _partition_copy(low: Lowering, op: ir.Operation) -> None:
    tiled, view, thread = (low.plain(v) for v in op.operands)
    low.define(op.result, laws.partition_copy(tiled, view, thread, op.name[-3:]))
    low.forget(op)


@rule("tiled_copy_retile")
def _retile(low: Lowering, op: ir.Operation) -> None:
    low.define(op.result, laws.retile(*(low.plain(v) for v in op.operands)))
    low.forget(op)


@rule("tiled_mma_partition")
def _partition_mma(low: Lowering, op: ir.Operation) -> None:
    tiled, view, thread = (low.plain(v) for v in op.operands)
    operand = ir.StringAttr(op.attributes["operand"]).value
    low.define(op.result, laws.partition_mma(tiled, view, thread, operand))
    low.forget(op)


@rule("alloca")
def _alloca(low: Lowering, op: ir.Operation) -> None:
    """A register memref becomes a pointer to as many elements as its layout reaches."""
    view = value_of(op.result.type)
    if isinstance(view, Ptr):
        low.define_pointer(op.result)
        return
    elems = ir.IntegerAttr.get(low.types.i64, la.cosize(view.layout))
    base = low.editor.value("fly.alloca", type_of(view.ptr), (), {"elems": elems})
    low.define(op.result, replace(view, ptr=replace(view.ptr, value=Address(base))))
    low.forget(op)


@rule("make_buffer_ptr", "recast_iter", "ptrtoint", "to_llvm_ptr", "buffer_parts", "ptr_load")
def _reads_pointer(low: Lowering, op: ir.Operation) -> None:
    """Ops that stay and take a pointer first: it is materialised; pointer results stand for themselves."""
    op.operands[0] = low.builder.materialise(low.plain(op.operands[0]))
    for result in op.results:
        if is_fly_type(result.type):
            low.define_pointer(result)


@rule("inttoptr", "from_llvm_ptr", "from_buffer_parts", "shared_ptr")
def _makes_pointer(low: Lowering, op: ir.Operation) -> None:
    low.define_pointer(op.result)


@rule("ptr_store")
def _ptr_store(low: Lowering, op: ir.Operation) -> None:
    op.operands[1] = low.builder.materialise(low.plain(op.operands[1]))


@rule("atom_set_value")
def _atom_set_value(low: Lowering, op: ir.Operation) -> None:
    """Stays: the conversion to target ops reads atom state from the chain of these."""

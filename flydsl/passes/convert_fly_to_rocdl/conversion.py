"""The engine: one walk that maps every Fly pointer to its target form and hands each Fly op to its rule."""

from collections.abc import Callable
from typing import Any

from flydsl.diag import PassFailed
from flydsl.dialects import is_fly_type, value_of
from flydsl.dialects.values import BUFFER_DESC
from flydsl.ir import Types, ir
from flydsl.layout.view import Ptr
from flydsl.passes.rewriting import Editor, registrar
from flydsl.utils.record import record

PASS = "convert-fly-to-rocdl"
_DYNAMIC = -(2**31)  # marks a dynamic index among the constants of llvm.getelementptr


@record
class Raw:
    """A converted pointer: an LLVM pointer, or for a buffer its resource and the offset in elements (i32)."""

    info: Ptr
    pointer: ir.Value
    offset: ir.Value | None = None

    @property
    def is_buffer(self) -> bool:
        return self.info.space == BUFFER_DESC


Rule = Callable[["Conversion", ir.Operation], None]
RULES: dict[str, Rule] = {}
rule = registrar(RULES, "fly.")  # decorator: the function is the rule of the named Fly ops


class Conversion:
    """One function being converted. A rule replaces its op's results and forgets the op."""

    def __init__(self, types: Types, arch: str):
        self.types = types
        self.arch = arch
        self.editor = Editor(types)
        self.raw: dict[ir.Value, Raw] = {}
        self.dead: list[ir.Operation] = []
        self.forms: dict[ir.Type, Any] = {}  # of matrix atoms, see `matrix`

    def run(self, entry: ir.Block) -> None:
        self.editor.enter_function(entry)
        self._block(entry)
        for op in reversed(self.dead):
            op.erase()

    def _block(self, block: ir.Block) -> None:
        for view in list(block.operations):
            op = view.operation
            if op.name.startswith("fly."):
                fn = RULES.get(op.name)
                if fn is None:
                    raise PassFailed(pass_name=PASS, problem=f"no rule for {op.name} at {op.location}")
                self.editor.before(op)
                fn(self, op)
                self.dead.append(op)
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
            for v in op.operands:
                if is_fly_type(v.type):
                    raise PassFailed(pass_name=PASS, problem=f"{op.name} at {op.location} uses {v.type}")

    def pointer(self, v: ir.Value) -> Raw:
        """Return the converted form of a Fly pointer."""
        return self.raw[v]

    def define(self, result: ir.Value, pointer: ir.Value, offset: ir.Value | None = None) -> None:
        """State the converted form of a pointer result."""
        self.raw[result] = Raw(value_of(result.type), pointer, offset)

    # Building blocks

    def elem(self, name: str) -> ir.Type:
        """Return the type in which an element lies in memory; narrower ones than a byte share bytes."""
        return self.types.i8 if name.startswith(("f8E", "f6E", "f4E")) or name == "i4" else self.types.by_name[name]

    def advance(self, pointer: ir.Value, elem: ir.Type, index: int | ir.Value) -> ir.Value:
        """Return an LLVM pointer moved by `index` elements."""
        if isinstance(index, int) and index == 0:
            return pointer
        if isinstance(index, int) and not _DYNAMIC < index < 2**31:
            index = self.editor.i64(index)
        constants = [index if isinstance(index, int) else _DYNAMIC]
        attrs = {
            "elem_type": ir.TypeAttr.get(elem),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get(constants),
        }
        operands = [pointer] if isinstance(index, int) else [pointer, index]
        return self.editor.value("llvm.getelementptr", pointer.type, operands, attrs)

    def load(self, pointer: ir.Value, type_: ir.Type, align: int, **attrs: ir.Attribute) -> ir.Value:
        """Return `llvm.load`; `align` in bytes."""
        attrs["alignment"] = ir.IntegerAttr.get(self.types.i64, align)
        return self.editor.value("llvm.load", type_, [pointer], attrs)

    def store(self, value: ir.Value, pointer: ir.Value, align: int, **attrs: ir.Attribute) -> None:
        """Build `llvm.store`; `align` in bytes."""
        attrs["alignment"] = ir.IntegerAttr.get(self.types.i64, align)
        self.editor.op("llvm.store", (), [value, pointer], attrs)

    def bitcast(self, v: ir.Value, type_: ir.Type) -> ir.Value:
        """Return the same bits as another type."""
        return v if v.type == type_ else self.editor.value("llvm.bitcast", type_, [v])

    def i32_attr(self, value: int) -> ir.Attribute:
        return ir.IntegerAttr.get(self.types.i32, value)

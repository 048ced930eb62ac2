"""Rewrites of lowered IR that upstream's conversions lack; they run before those.

* math ops to accurate code (`math/`), print ops to the print buffer (`lower_printf.py`)
* gpu.grid_dim, and gpu.block_dim where it is not known: loads from the implicit arguments, not ROCm library calls
* vector.extract_strided_slice and insert_strided_slice of 1-D vectors: vector.shuffle
* llvm.call_intrinsic: a plain call of a declared function, so that LLVM 22.1 and not MLIR's newer LLVM judges
name and types
"""

from __future__ import annotations

from collections.abc import Callable

from flydsl.diag.errors.target import IntrinsicUnknown
from flydsl.ir import ir, walks
from flydsl.ir.expression import Builder
from flydsl.targets.rocm import intrinsics, math
from flydsl.targets.rocm.guards import place
from flydsl.targets.rocm.llvm_text import INTRINSIC_PREFIX
from flydsl.targets.rocm.lower_printf import lower_printf
from flydsl.targets.rocm.printf import PrintfFormat

Rules = dict[str, Callable[[ir.Operation, ir.Operation], None]]
_HINT = "llvm.loop_annotation"
_DIMENSIONS = {"x": 0, "y": 1, "z": 2}
_BLOCK_COUNT, _GROUP_SIZE = (
    0,
    12,
)  # offsets in the implicit arguments, code object version 5 and later: u32 x 3, u16 x 3


def prepare(device: ir.Operation, ops: list[ir.Operation], rules: Rules) -> dict[str, tuple[PrintfFormat, ...]]:
    """Rewrite a gpu.module in place; return the print formats of each kernel that prints.

    `ops` are those inside `device`; `rules` (op name to rewrite) come in addition to the ones of this file.
    """
    rules = _RULES | rules
    found = walks.by_name(ops)
    formats = {}
    if "gpu.printf" in found:
        for function in found["gpu.func"]:
            if prints := walks.collect(function, {"gpu.printf"}):
                formats[walks.symbol(function)] = lower_printf(function, prints)
    with device.context:
        for name in found.keys() & rules.keys():
            for op in found[name]:
                with op.location:
                    rules[name](op, device)
    for name in found.keys() & math.NAMES:
        for op in found[name]:
            math.expand(op)
    return formats


def finish(groups: dict[str, list[ir.Operation]]) -> bool:
    """Undo what upstream's conversion does that this target does not want; pass on the hints of loops.

    `groups` are the ops of the module by name; returns whether some were replaced: upstream makes the remainder a call
    of a ROCm library function, and LLVM 22 expands its own instruction for it correctly.
    """
    for op in (*groups.get("llvm.br", ()), *groups.get("llvm.cond_br", ())):
        if _HINT in op.attributes:  # upstream leaves the hint of the loop where the translation does not look
            op.attributes["loop_annotation"] = op.attributes[_HINT]
            del op.attributes[_HINT]
    remainders = [op for op in groups.get("llvm.call", ()) if str(op.attributes["callee"]).startswith("@__ocml_fmod")]
    for op in remainders:
        with op.context:
            replace_op(op, [Builder(op).emit("llvm.frem", op.results[0].type, list(op.operands))])
    if remainders:
        for op in groups["llvm.func"]:
            if walks.symbol(op).startswith("__ocml_fmod"):
                op.erase()
    return bool(remainders)


def replace_op(op: ir.Operation, values: list[ir.Value]) -> None:
    """Give the uses of `op` to `values` and erase it."""
    for old, new in zip(op.results, values):
        old.replace_all_uses_with(new)
    op.erase()


def _grid_dim(op: ir.Operation, device: ir.Operation) -> None:
    replace_op(op, [_implicit(op, device, _BLOCK_COUNT + 4 * _dimension(op), "i32")])


def _block_dim(op: ir.Operation, device: ir.Operation) -> None:
    function = op.parent
    while function.name != "gpu.func":
        function = function.parent
    if "known_block_size" not in function.attributes:  # else upstream makes a constant
        replace_op(op, [_implicit(op, device, _GROUP_SIZE + 2 * _dimension(op), "i16")])


def _dimension(op: ir.Operation) -> int:
    return _DIMENSIONS[str(op.attributes["dimension"]).split()[-1].rstrip(">").split("<")[-1]]


def _implicit(op: ir.Operation, device: ir.Operation, offset: int, width: str) -> ir.Value:
    """Load an unsigned number from the implicit arguments, as an index."""
    b = Builder(op)
    i64 = b.type("i64")
    with op.context, op.location:
        base = call_intrinsic(b, device, "llvm.amdgcn.implicitarg.ptr", b.type("!llvm.ptr<4>"), [])
        address = b.emit(
            "llvm.getelementptr",
            base.type,
            [base],
            {"elem_type": ir.TypeAttr.get(b.type("i8")), "rawConstantIndices": ir.DenseI32ArrayAttr.get([offset])},
        )
        invariant = {"alignment": ir.IntegerAttr.get(i64, 2 if width == "i16" else 4), "invariant": ir.UnitAttr.get()}
        value = b.emit("llvm.load", b.type(width), [address], invariant)
        return b.emit("arith.index_castui", b.type("index"), [value])


def _extract_slice(op: ir.Operation, device: ir.Operation) -> None:
    start, count = _first(op, "offsets"), _first(op, "sizes")
    source = op.operands[0]
    replace_op(op, [_shuffle(op, source, source, range(start, start + count))])


def _insert_slice(op: ir.Operation, device: ir.Operation) -> None:
    piece, target = op.operands
    start, total = _first(op, "offsets"), ir.VectorType(target.type).shape[0]
    count = ir.VectorType(piece.type).shape[0]
    widened = _shuffle(op, piece, piece, [i if i < count else -1 for i in range(total)])
    mask = [total + i - start if start <= i < start + count else i for i in range(total)]
    replace_op(op, [_shuffle(op, target, widened, mask)])


def _drop_rounding(op: ir.Operation, device: ir.Operation) -> None:
    """To nearest even is what the plain op does; the constrained form of LLVM cannot be selected."""
    if "roundingmode" in op.attributes and ir.IntegerAttr(op.attributes["roundingmode"]).value == 0:
        del op.attributes["roundingmode"]


def _first(op: ir.Operation, name: str) -> int:
    return ir.IntegerAttr(ir.ArrayAttr(op.attributes[name])[0]).value


def _shuffle(op: ir.Operation, a: ir.Value, c: ir.Value, mask: range | list[int]) -> ir.Value:
    with op.context, op.location:
        kind = ir.VectorType.get([len(mask)], ir.VectorType(a.type).element_type)
        return Builder(op).emit("vector.shuffle", kind, [a, c], {"mask": ir.DenseI64ArrayAttr.get(list(mask))})


def _call_intrinsic(op: ir.Operation, device: ir.Operation) -> None:
    name = ir.StringAttr(op.attributes["intrin"]).value
    operands = list(op.operands)
    for row in intrinsics.find(name):
        if len(row.operands) == len(operands):
            for i, kind in enumerate(row.operands):
                if kind.startswith("#"):
                    require_constant(op, i, name)
    kind = op.results[0].type if len(op.results) else None
    value = call_intrinsic(Builder(op), device, name, kind, operands)
    replace_op(op, [] if value is None else [value])


def require_constant(op: ir.Operation, index: int, name: str) -> None:
    """Refuse a run-time value for an operand that is part of the instruction.

    Raises   IntrinsicUnknown: LLVM would end the process
    """
    owner = op.operands[index].owner
    if not isinstance(owner, ir.Block) and owner.name in ("arith.constant", "llvm.mlir.constant"):
        return
    raise IntrinsicUnknown(
        name=name,
        hint=f" with a run-time value as operand {index}",
        at=place(op),
        reason_text="this operand is encoded in the instruction, so it must be a constant",
    )


def call_intrinsic(
    b: Builder, device: ir.Operation, name: str, result: ir.Type | None, operands: list[ir.Value]
) -> ir.Value | None:
    """Call intrinsic `name` of LLVM 22.1; it is declared in `device` with the operands' types."""
    symbol = INTRINSIC_PREFIX + name
    with b.context, b.location:
        kinds = ", ".join(_bare(str(o.type)) for o in operands)
        kind = ir.Type.parse(f"!llvm.func<{_bare(str(result)) if result is not None else 'void'} ({kinds})>")
        body = device.regions[0].blocks[0]
        if not any(f.name == "llvm.func" and walks.symbol(f) == symbol for f in walks.children(device)):
            declare = {
                "sym_name": ir.StringAttr.get(symbol),
                "function_type": ir.TypeAttr.get(kind),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
            }
            start = ir.InsertionPoint.at_block_begin(body)
            ir.Operation.create("llvm.func", [], [], declare, None, 1, b.location, start)
        call = {
            "callee": ir.FlatSymbolRefAttr.get(symbol),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        return b.emit("llvm.call", result, operands, call)


def _bare(kind: str) -> str:
    return kind.removeprefix("!llvm.")


_RULES: Rules = {
    "arith.truncf": _drop_rounding,
    "gpu.grid_dim": _grid_dim,
    "gpu.block_dim": _block_dim,
    "vector.extract_strided_slice": _extract_slice,
    "vector.insert_strided_slice": _insert_slice,
    "llvm.call_intrinsic": _call_intrinsic,
}

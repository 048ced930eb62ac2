"""Calls of LLVM intrinsics and inline assembly, for instructions that have no rocdl op."""

from collections.abc import Sequence
from typing import Any

from flydsl.expr.rocdl.values import dsl, operand, result_type
from flydsl.ir import current, emit, ir


def call(name: str, result: ir.Type | None, args: Sequence[ir.Value]) -> ir.Value | ir.Operation:
    """Emit `llvm.call_intrinsic`; returns the value, or the op where `result` is None."""
    types = current().types
    attrs = types.memo.get(("call_intrinsic", name, len(args)))
    if attrs is None:
        ctx = types.i1.context
        attrs = types.memo[("call_intrinsic", name, len(args))] = {
            "intrin": ir.StringAttr.get(name, ctx),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(args), 0], ctx),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([], ctx),
        }
    op = emit("llvm.call_intrinsic", () if result is None else (result,), args, attrs)
    return op if result is None else op.result


def assemble(
    result: ir.Type | None, template: str, constraints: str, args: Sequence[ir.Value], has_side_effects: bool = False
) -> ir.Value | ir.Operation:
    """Emit `llvm.inline_asm`; returns the value, or the op where `result` is None."""
    types = current().types
    key = ("inline_asm", template, constraints, has_side_effects)
    attrs = types.memo.get(key)
    if attrs is None:
        ctx = types.i1.context
        attrs = {"asm_string": ir.StringAttr.get(template, ctx), "constraints": ir.StringAttr.get(constraints, ctx)}
        if has_side_effects:
            attrs["has_side_effects"] = ir.UnitAttr.get(ctx)
        types.memo[key] = attrs
    op = emit("llvm.inline_asm", () if result is None else (result,), args, attrs)
    return op if result is None else op.result


def inline_asm(
    res_type: Any, template: str, constraints: str, operands: Sequence[Any] = (), *, has_side_effects: bool = False
) -> Any:
    """Emit GCN assembly: `$0` is the result (if `res_type` is not None), then the operands in order.

    Constraints are LLVM's: `=v` result in a VGPR, `v`, `s`, `a` operands in VGPR, SGPR, AGPR, `~{memory}` clobbers.
    """
    values = [
        operand(x, None, "inline_asm", "operands", "inline_asm(res_type, template, constraints, operands)")
        for x in operands
    ]
    type_ = None if res_type is None else result_type(res_type, "inline_asm")
    out = assemble(type_, template, constraints, values, has_side_effects)
    return out if type_ is None else dsl(res_type, out)

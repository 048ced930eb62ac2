"""Failures of MLIR as our errors at the user's line."""

from __future__ import annotations

from collections.abc import Callable

from flydsl.diag import EscapedValue, FlyError, Span, VerifyFailed
from flydsl.ir.bindings import ir
from flydsl.ir.location import span_of_location


def verify(module: ir.Module, stage: str, explain: Callable[[str, str, Span | None], FlyError | None] | None = None) -> None:
    """Verify a module.

    `explain`: gives the error for MLIR's message, its note and the place where the cause is the user's

    Raises VerifyFailed: at the line of the op that does not fit; EscapedValue: at the line that uses a value of another region
    """
    try:
        module.operation.verify()
    except ir.MLIRError as e:
        diagnostics = list(e.error_diagnostics)
        problem = diagnostics[0].message if diagnostics else str(e)
        at = span_of_location(diagnostics[0].location) if diagnostics else None
        escaped = find_escape(module) if "dominate" in problem else None
        if escaped is not None:
            raise escaped from None
        if explain is not None and diagnostics:
            notes = "\n".join(note.message for note in diagnostics[0].notes)
            explained = explain(problem, notes, at)
            if explained is not None:
                raise explained from None
        raise VerifyFailed(stage=stage, problem=problem, at=at) from e


def find_escape(module: ir.Module) -> EscapedValue | None:
    """Return our error for the first op that uses a value of a region that it is not in."""
    found: list[EscapedValue] = []

    def look(op: ir.Operation) -> ir.WalkResult:
        for value in op.operands:
            block = value.owner if isinstance(value.owner, ir.Block) else _block_of(value.owner)
            if not _is_inside(op, block):
                found.append(_escaped(op, block))
                return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found[0] if found else None


def _block_of(op: ir.Operation) -> ir.Block:
    return ir.InsertionPoint(op.operation).block


def _is_inside(op: ir.Operation, block: ir.Block) -> bool:
    while op is not None and op.name != "builtin.module":
        if _block_of(op) == block:
            return True
        op = op.operation.parent
    return False


def _escaped(op: ir.Operation, block: ir.Block) -> EscapedValue:
    region = block.owner.operation
    while region.parent is not None and region.parent.name.startswith("scf.") and not _is_inside(op, _block_of(region)):
        region = region.parent.operation
    start = span_of_location(region.location)
    kind = region.name.removeprefix("scf.")
    place = f"the {kind} at line {start.line}" if start is not None else f"a {kind}"
    return EscapedValue(at=span_of_location(op.location), region=place, variable="")

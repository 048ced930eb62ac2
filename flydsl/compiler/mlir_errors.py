"""Failures of MLIR as our errors at the user's line."""

from __future__ import annotations

from flydsl.diag import Span, VerifyFailed
from flydsl.ir import ir


def verify(module: ir.Module, stage: str) -> None:
    """Verify a module.

    Raises VerifyFailed: at the line of the op that does not fit
    """
    try:
        module.operation.verify()
    except ir.MLIRError as e:
        diagnostics = list(e.error_diagnostics)
        problem = diagnostics[0].message if diagnostics else str(e)
        at = span_of_location(diagnostics[0].location) if diagnostics else None
        raise VerifyFailed(stage=stage, problem=problem, at=at) from e


def span_of_location(loc: ir.Location) -> Span | None:
    """Return the innermost file place of a location."""
    while loc.is_a_callsite():
        loc = loc.callee
    if not loc.is_a_file():
        return None
    return Span(loc.filename, loc.start_line, loc.start_col)

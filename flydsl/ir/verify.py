"""Failures of MLIR as our errors at the user's line."""

from __future__ import annotations

import re

from flydsl.diag import Span, VerifyFailed
from flydsl.ir.bindings import ir


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


_PLACE = re.compile(r'"((?:[^"\\\\]|\\\\.)*)":(\d+):(\d+)')


def span_of_location(loc: ir.Location) -> Span | None:
    """Return the innermost file place of a location, or None."""
    found = _PLACE.search(str(loc))
    return Span(found[1], int(found[2]), int(found[3])) if found else None

"""Reading IR without op classes: a class of `llvm` or `rocdl` costs an import of 20 to 60 ms on its first use."""

from __future__ import annotations

from collections.abc import Callable

from flydsl.ir.bindings import ir


def children(op: ir.Operation) -> list[ir.Operation]:
    """Return the ops directly inside the regions of `op`, in order."""
    found: list[ir.Operation] = []
    is_root = True

    def visit(inner: ir.Operation) -> ir.WalkResult:
        nonlocal is_root
        if is_root:
            is_root = False
            return ir.WalkResult.ADVANCE
        found.append(inner)
        return ir.WalkResult.SKIP

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def each(op: ir.Operation, visit: Callable[[ir.Operation], None]) -> None:
    """Call `visit` for `op` and everything inside it; what it raises ends the walk and comes out as it is."""
    raised: list[Exception] = []

    def advance(inner: ir.Operation) -> ir.WalkResult:
        try:
            visit(inner)
        except Exception as error:  # the bindings would turn it into a RuntimeError with a text
            raised.append(error)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    op.walk(advance)
    if raised:
        raise raised[0]


def collect(op: ir.Operation, names: frozenset[str] | set[str]) -> list[ir.Operation]:
    """Return the ops inside `op` whose name is in `names`, in post order."""
    found: list[ir.Operation] = []
    each(op, lambda inner: found.append(inner) if inner.name in names else None)
    return found


def symbol(op: ir.Operation) -> str:
    """Return the symbol name of a function or global."""
    return ir.StringAttr(op.attributes["sym_name"]).value

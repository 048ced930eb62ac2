"""Reading IR without op classes: a class of `llvm` or `rocdl` costs an import of 20 to 60 ms on its first use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container

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

    _walk(op, visit, ir.WalkOrder.PRE_ORDER)
    return found


def everything(op: ir.Operation) -> list[ir.Operation]:
    """Return the ops inside `op` and `op` itself, in post order."""
    found: list[ir.Operation] = []
    note, advance = found.append, ir.WalkResult.ADVANCE

    def visit(inner: ir.Operation) -> ir.WalkResult:
        note(inner)
        return advance

    _walk(op, visit, ir.WalkOrder.POST_ORDER)
    return found


def _walk(op: ir.Operation, visit: Callable[[ir.Operation], ir.WalkResult], order: ir.WalkOrder) -> None:
    """Walk with a callback that raises nothing but what a signal does: the bindings make a RuntimeError of Ctrl-C."""
    try:
        op.walk(visit, order)
    except RuntimeError as error:
        if "\nKeyboardInterrupt" in str(error):  # a line of the traceback that it quotes
            raise KeyboardInterrupt from None
        raise


def by_name(ops: list[ir.Operation]) -> dict[str, list[ir.Operation]]:
    """Return `ops` by their names, each group in order."""
    groups: dict[str, list[ir.Operation]] = defaultdict(list)
    for op in ops:
        groups[op.name].append(op)
    return groups


def collect(op: ir.Operation, names: Container[str]) -> list[ir.Operation]:
    """Return the ops inside `op` whose name is in `names`, in post order."""
    return [inner for inner in everything(op) if inner.name in names]


def symbol(op: ir.Operation) -> str:
    """Return the symbol name of a function or global."""
    return ir.StringAttr(op.attributes["sym_name"]).value

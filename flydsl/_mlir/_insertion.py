"""One insertion point for raw ops and for the DSL.

The DSL builds at `current().ip` of its trace; the bindings keep a stack of their own. Raw builders are run inside
`here()`, which puts the trace's place and the user's location on that stack. `InsertionPoint`, entered, sets the
trace's place too, and where no trace is active begins one around the user's own module, so that DSL functions work in
hand-made functions.
"""

import sys
from typing import Any

from flydsl.ir import get_context, get_types, ir
from flydsl.ir.trace import Scope, Trace, active, location_cache

_Base = ir.InsertionPoint
_FUNCTIONS = ("func.func", "gpu.func", "llvm.func")


class BorrowedTrace(Trace):
    """A trace over a module that the user makes by hand; it owns no module."""

    def __init__(self) -> None:
        from flydsl.expr.rocdl.values import arch_name

        self.context, self.types, self.arch = get_context(), get_types(), arch_name()
        self.locations = location_cache(self.context)
        self.unknown_loc = ir.Location.unknown(self.context)
        self.module = self.ip = self.scope = self._outer = None
        self.block_depth, self.alive = 0, True


def scope_of(trace: Trace, block: ir.Block) -> Scope:
    """Return the scope of the function around `block`: the current one if it is the same function, else the
    function's own.
    """
    entry = entry_block(block)
    if trace.scope is not None and trace.scope.entry.block == entry:
        return trace.scope
    scopes = trace.__dict__.setdefault("user_scopes", [])
    for scope in scopes:
        if scope.entry.block == entry:
            return scope
    scope = Scope(entry, "kernel", None, trace.locations)
    scope.outlives_trace = True
    scopes.append(scope)
    return scope


def entry_block(block: ir.Block) -> ir.Block:
    """Return the entry block of the function around `block`; outside functions the block itself."""
    op = block.owner.operation
    while op is not None:
        if op.name in _FUNCTIONS:
            return op.regions[0].blocks[0]
        parent = op.parent
        op = None if parent is None else parent.operation
    return block


class _Current:
    """`InsertionPoint.current`: the bindings' class takes no metaclass with a property."""

    def __get__(self, instance: Any, owner: type) -> _Base:
        return current_point()


class InsertionPoint(_Base):
    """Where ops go: the end of a block, or before an op. Entered, it is where the DSL builds as well."""

    current = _Current()

    @staticmethod
    def at_block_begin(block: ir.Block) -> "InsertionPoint":
        """Return the place before the first op of `block`."""
        first = next(iter(block.operations), None)
        return InsertionPoint(block) if first is None else InsertionPoint(first)

    @staticmethod
    def at_block_terminator(block: ir.Block) -> "InsertionPoint":
        """Return the place before the last op of `block`."""
        return InsertionPoint(list(block.operations)[-1])

    def __enter__(self) -> "InsertionPoint":
        _Base.__enter__(self)
        trace = active.trace
        began = None
        if trace is None and self.block.owner.operation.context == get_context():
            trace = active.trace = began = BorrowedTrace()
        saved = None if trace is None else (trace, trace.ip, trace.scope, began)
        _entered().append(saved)
        if trace is not None:
            trace.scope = scope_of(trace, self.block)
            trace.ip = self
            trace.block_depth += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        saved = _entered().pop()
        if saved is not None:
            trace, trace.ip, trace.scope, began = saved
            trace.block_depth -= 1
            if began is not None:
                began.alive = False
                active.trace = None
        _Base.__exit__(self, *exc)


def _entered() -> list:
    """Return the stack of what entered points have replaced, of this thread."""
    stack = getattr(active, "user_points", None)
    if stack is None:
        stack = active.user_points = []
    return stack


def current_point() -> _Base:
    """Return the place where ops go: the trace's, else the bindings' current one."""
    trace = active.trace
    return _Base.current if trace is None else trace.ip


class here:
    """Context manager: the bindings build where the trace does, with the location of the user's code. Without a
    trace: nothing.
    """

    __slots__ = ("loc", "point")

    def __enter__(self) -> None:
        trace = active.trace
        self.loc = None
        if trace is not None:
            self.loc = trace.locate(sys._getframe(1))
            self.point = trace.ip
            self.loc.__enter__()
            _Base.__enter__(self.point)

    def __exit__(self, *exc: Any) -> None:
        if self.loc is not None:
            _Base.__exit__(self.point, *exc)
            self.loc.__exit__(*exc)

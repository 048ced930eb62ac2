"""The module under construction: where the next op goes, constants, and locations.

Ops are built with `Operation.create` only (0.7 us; the generated classes cost 3-8 us) and are not checked when built: the module is
verified once after tracing. The trace owns the module; values must not be touched after it ended, because the bindings do
not keep a module alive for its values.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from flydsl.ir.bindings import ir
from flydsl.ir.context import context_for_module, get_types
from flydsl.ir.location import LocationCache
from flydsl.utils import env


class _Active(threading.local):
    trace: "Trace | None" = None


active = _local = _Active()  # `active.trace`: for hot paths; else use `current()`
create_op = _create = ir.Operation.create


class Scope:
    """One function body: its entry block for constants, and the code object whose frames end location chains.

    `lines` holds the locations of the body's own code by instruction offset; the operators of scalars read it directly.
    `outlives_trace`: the module is the user's, so values may be read after the trace. `undo` is called backwards at the
    end of the body.
    """

    __slots__ = ("_entry", "_locations", "block", "constants", "kind", "lines", "outlives_trace", "owner", "root", "undo")

    def __init__(self, entry: ir.Block, kind: str, root: CodeType | None, locations: LocationCache, owner: object = None):
        self.block = entry
        self._locations = locations
        self.outlives_trace = False
        self.lines: dict[int, ir.Location] = {}
        self._entry = ir.InsertionPoint.at_block_begin(entry)
        self.constants: dict = {}
        self.undo: list[Callable[[], None]] = []
        self.kind = kind
        self.root = root
        self.owner = owner

    @property
    def entry(self) -> ir.InsertionPoint:
        """Where ops go that must dominate the whole body: before the op that was the first of the entry block.

        A point made while the block is empty would stay at its end, so it is made anew once there is an op. For ops
        that use one another take the point once.
        """
        if self._entry.ref_operation is None:
            self._entry = ir.InsertionPoint.at_block_begin(self.block)
        return self._entry

    def locate(self, frame: FrameType | None) -> ir.Location:
        """Return the location of the innermost user frame at or outside `frame`."""
        if frame is None or frame.f_code is not self.root:
            return self._locations.at(frame, self.root)
        loc = self.lines.get(frame.f_lasti)
        if loc is None:
            loc = self.lines[frame.f_lasti] = self._locations.at(frame, self.root)
        return loc


class Trace:
    """A module being traced. Use as a context manager: entered, it is `current()`."""

    def __init__(self, arch: str):
        self.context = context_for_module(may_renew=active.trace is None)
        self.types = get_types()
        self.arch = arch
        self.locations = location_cache(self.context)
        self.unknown_loc = ir.Location.unknown(self.context)
        self.module = ir.Module.create(self.unknown_loc)
        self.ip = ir.InsertionPoint(self.module.body)
        self.scope: Scope | None = None
        self.block_depth = 0
        self._outer: Trace | None = None
        self.alive = True

    def __enter__(self) -> "Trace":
        self._outer = _local.trace
        _local.trace = self
        self.context.__enter__()
        self.unknown_loc.__enter__()  # checked types (`ir.VectorType.get`) ask for a location when kernels make them
        return self

    def __exit__(self, *exc) -> None:
        self.alive = False
        self.unknown_loc.__exit__(*exc)
        self.context.__exit__(*exc)
        _local.trace = self._outer

    def in_function(self, entry: ir.Block, kind: str, root: CodeType | None, owner: object = None) -> "_Inside":
        """Return a context manager: build into `entry`, the entry block of a new function of `kind` "kernel" or "host"."""
        return _Inside(self, entry, Scope(entry, kind, root, self.locations, owner))

    def in_block(self, block: ir.Block) -> "_Inside":
        """Return a context manager: build at the end of `block`, in the same function."""
        return _Inside(self, block, self.scope)

    def loc(self, depth: int = 1) -> ir.Location:
        """Return the location of the user's code, searched from `depth` frames above the caller."""
        return self.locate(sys._getframe(depth + 1))

    def locate(self, frame: FrameType) -> ir.Location:
        """Return the location of the innermost user frame at or outside `frame`."""
        scope = self.scope
        return self.locations.at(frame, None) if scope is None else scope.locate(frame)


class _Inside:
    __slots__ = ("block", "saved", "scope", "trace")

    def __init__(self, trace: Trace, block: ir.Block, scope: Scope):
        self.trace, self.block, self.scope = trace, block, scope

    def __enter__(self) -> ir.Block:
        t = self.trace
        self.saved = (t.ip, t.scope)
        t.ip, t.scope = ir.InsertionPoint(self.block), self.scope
        t.block_depth += 1
        return self.block

    def __exit__(self, *exc) -> None:
        t = self.trace
        t.ip, t.scope = self.saved
        t.block_depth -= 1
        if self.scope is not t.scope:
            while self.scope.undo:
                self.scope.undo.pop()()


def location_cache(context: ir.Context) -> LocationCache:
    """Return the locations of `context`, one cache per context."""
    cache = getattr(context, "fly_locations", None)
    if cache is None:
        cache = context.fly_locations = LocationCache(context)
    cache.most = env.debug.max_loc_depth
    return cache


def is_tracing() -> bool:
    """Return whether this thread is building a module."""
    return _local.trace is not None


def current() -> Trace:
    """Return this thread's trace; NotTracing if there is none."""
    trace = _local.trace
    if trace is None:
        from flydsl.diag import NotTracing

        raise NotTracing()
    return trace


def emit(
    name: str,
    results: Sequence[ir.Type] = (),
    operands: Sequence[ir.Value] = (),
    attrs: dict | None = None,
    regions: int = 0,
    loc: ir.Location | None = None,
) -> ir.Operation:
    """Build an op at the insertion point with the user's location, and return it."""
    trace = _local.trace or current()
    if loc is None:
        loc = trace.locate(sys._getframe(1))
    return _create(name, results, operands, attrs, None, regions, loc, trace.ip)


def emit1(name: str, result: ir.Type, operands: Sequence[ir.Value] = (), attrs: dict | None = None) -> ir.Value:
    """Build an op with one result and return the result."""
    trace = _local.trace or current()
    frame, scope = sys._getframe(1), trace.scope
    loc = trace.locate(frame) if scope is None else scope.locate(frame)
    return _create(name, (result,), operands, attrs, None, 0, loc, trace.ip).result


def constant(type_: ir.Type, value: int | float | bool) -> ir.Value:
    """Return `arith.constant value : type_`, one per function, placed in the entry block.

    Integers are wrapped to the width. The float key keeps the sign of zero.
    """
    trace = _local.trace or current()
    scope = trace.scope
    key = (type_, value, str(value)) if value.__class__ is float else (type_, value)
    v = scope.constants.get(key)
    if v is None:
        attr = constant_attr(type_, value)
        v = _create("arith.constant", (type_,), (), {"value": attr}, None, 0, trace.unknown_loc, scope.entry).result
        scope.constants[key] = v
    return v


def constant_attr(type_: ir.Type, value: int | float | bool) -> ir.Attribute:
    """Return the attribute of a constant; integers are wrapped to the width of the type."""
    if isinstance(type_, ir.IntegerType):
        width = type_.width
        if width > 64:
            return ir.Attribute.parse(f"{_wrap(int(value), width)} : i{width}", type_.context)
        return ir.IntegerAttr.get(type_, _wrap(int(value), width))
    if isinstance(type_, ir.IndexType):
        return ir.IntegerAttr.get(type_, int(value))
    return ir.FloatAttr.get(type_, float(value), loc=ir.Location.unknown(type_.context))


def _wrap(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) and width > 1 else value

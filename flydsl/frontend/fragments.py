"""Register tensors ("fragments") in run-time control flow.

A fragment crosses a region as nothing: it is memory of the lane, and what the region writes to it stays in it. So a
name must stand for the same memory on all paths. Registers have no address that the kernel could choose at run time.
Values that hold fragments (structs, objects with the carrying methods) are compared fragment by fragment.
"""

from collections.abc import Iterator
from typing import Any

from flydsl.dialects.fly.algebra import ALGEBRA
from flydsl.dialects.values import REGISTER
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.values import FlyValue
from flydsl.expr.vector.core import Vector
from flydsl.frontend.regions import open_now
from flydsl.ir import current, ir
from flydsl.layout.view import MemRef

_PURE = ("arith.", "index.", "gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "fly.tiled_", "fly.make_")
_PURE_OPS = frozenset(
    f"fly.{name}" for name in ("static", "get_leaf", "get_scalar", "recast_iter", "to_llvm_ptr", "from_llvm_ptr")
)
_DEPTH = 64  # ops between a view and its memory that are compared
_LEVELS = 3  # values in values
_may_hold: dict[type, bool] = {}


def is_fragment(value: Any) -> bool:
    """Return whether a value is a register tensor."""
    return isinstance(value, FlyValue) and value.plain.__class__ is MemRef and value.plain.ptr.space == REGISTER


def fragments_of(value: Any, levels: int = _LEVELS) -> Iterator[FlyValue]:
    """Yield the register tensors that a value is or holds in its attributes."""
    cls = value.__class__
    may = _may_hold.get(cls)
    if may is None:
        may = _may_hold[cls] = not issubclass(cls, (Numeric, Vector, ir.Value, type))
    if not may:
        return
    if isinstance(value, FlyValue):
        if is_fragment(value):
            yield value
    elif levels and hasattr(cls, "__extract_to_ir_values__"):
        for part in _attributes(value, cls):
            yield from fragments_of(part, levels - 1)


def _attributes(value: Any, cls: type) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for parent in cls.__mro__:
        slots = parent.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot != "__dict__" and hasattr(value, slot):
                yield getattr(value, slot)


def differing(a: Any, b: Any) -> FlyValue | None:
    """Return the first fragment of `b` that may be other memory than the one in its place in `a`, None if there is none."""
    if a is b:
        return None
    return next((y for x, y in zip(fragments_of(a), fragments_of(b)) if not same_memory(x, y)), None)


def same_memory(a: FlyValue, b: FlyValue) -> bool:
    """Return whether two fragments are the same elements of the same allocation: the same value, or the same view of one."""
    if a is b:
        return True
    scope = current().scope
    return a._scope is scope and b._scope is scope and a.plain == b.plain and _same(a._value, b._value, _DEPTH)


def _same(a: "ir.Value", b: "ir.Value", depth: int) -> bool:
    if a == b:
        return True
    x, y = a.owner, b.owner
    if not depth or isinstance(x, ir.Block) or isinstance(y, ir.Block) or a.type != b.type or x.name != y.name:
        return False
    if not _is_pure(x.name) or len(x.operands) != len(y.operands) or _attributes_of(x) != _attributes_of(y):
        return False
    return all(_same(p, q, depth - 1) for p, q in zip(x.operands, y.operands))


def _is_pure(name: str) -> bool:
    """Return whether an op gives equal results for equal operands: the layout algebra, views, arithmetic."""
    return name in ALGEBRA or name in _PURE_OPS or name.startswith(_PURE)


def _attributes_of(op: "ir.Operation") -> dict[str, str]:
    return {name: str(op.attributes[name]) for name in op.attributes}


def lasting(a: Any, b: Any) -> Any:
    """Return that of two values of one type which outlives the open region, if one is a fragment made in it."""
    if a.__class__ is not b.__class__ or not isinstance(a, FlyValue) or next(fragments_of(a), None) is None:
        return a
    return b if is_made_inside(a, open_now.regions[-1].op) else a


def is_temporary(fragment: FlyValue, before: Any = None) -> bool:
    """Return whether a fragment was made in the open region, which used none of those that its place held before.

    Then it ends with the region, and the place holds nothing after it.
    """
    region = open_now.regions[-1].op
    return is_made_inside(fragment, region) and not any(is_used_inside(x, region) for x in fragments_of(before))


def is_made_inside(value: FlyValue, region: "ir.Operation") -> bool:
    """Return whether a value was made in the regions of an op, so that it ends with them."""
    if value._scope is not current().scope:
        return False
    owner = value._value.owner
    return _is_inside(owner if isinstance(owner, ir.Block) else ir.InsertionPoint(owner.operation).block, region)


def is_used_inside(value: FlyValue, region: "ir.Operation") -> bool:
    """Return whether an op in the regions of an op takes a value."""
    if value._scope is not current().scope:
        return False
    return any(_is_inside(ir.InsertionPoint(use.owner.operation).block, region) for use in value._value.uses)


def _is_inside(block: "ir.Block", region: "ir.Operation") -> bool:
    op = block.owner.operation
    while op is not None and op.name not in ("func.func", "gpu.func", "llvm.func"):
        if op == region.operation:
            return True
        op = op.parent.operation if op.parent is not None else None
    return False

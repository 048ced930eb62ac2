"""`and`, `or`, `not`, `a if c else b` and comparison chains on run-time values.

Rewriting turns `a and b` into `and_(b if and_first(a) else None)`: Python evaluates `a`, then `b` only if it is
needed, in the user's own scope. What is under way between the two calls is kept on a stack. The right side is
traced into a branch of an `scf.if`; if its ops may run anyway (no memory access, no division by zero) they move
out and the result is one `arith.andi`.
"""

from typing import Any

from flydsl.frontend.merge import merge_expression
from flydsl.frontend.regions import IfRegion, is_speculatable, open_now
from flydsl.frontend.truth import as_i1, boolean, condition, is_dynamic, truth
from flydsl.ir import current, emit1


class _Pending:
    """A left operand that was evaluated. Static: `value`. Dynamic: `left` is its i1, `region` holds the right side."""

    __slots__ = ("kept", "left", "region", "value")

    def __init__(self, value: Any = None, left: Any = None, region: IfRegion | None = None):
        self.value, self.left, self.region, self.kept = value, left, region, None


def and_first(a: Any) -> bool:
    """Take the left side of `and`; return whether the right side has to be evaluated."""
    left = truth(a, "and")
    if left is True or left is False:
        open_now.operands.append(_Pending(value=a))
        return left
    region = IfRegion(left)
    region.then()
    open_now.operands.append(_Pending(left=left, region=region))
    return True


def or_first(a: Any) -> bool:
    """Take the left side of `or`; return whether the right side has to be evaluated."""
    left = truth(a, "or")
    if left is True or left is False:
        open_now.operands.append(_Pending(value=a))
        return not left
    region = IfRegion(left)
    region.otherwise()
    open_now.operands.append(_Pending(left=left, region=region))
    return True


def and_(b: Any) -> Any:
    """Return `a and b`."""
    pending = open_now.operands.pop()
    if pending.region is None:
        return _static_left(pending.value, b, bool(pending.value))
    return _combine(pending, pending.region.then_block, b, "and")


def or_(b: Any) -> Any:
    """Return `a or b`."""
    pending = open_now.operands.pop()
    if pending.region is None:
        return _static_left(pending.value, b, not pending.value)
    return _combine(pending, pending.region.else_block, b, "or")


def _static_left(a: Any, b: Any, takes_right: bool) -> Any:
    if not takes_right:
        return a
    return boolean(truth(b, "and")) if is_dynamic(b) else b


def _combine(pending: _Pending, block: Any, b: Any, word: str) -> Any:
    region, left = pending.region, pending.left
    right = truth(b, word)
    if is_speculatable(block):
        region.inline(block)
        return _strict(left, right, word)
    right = as_i1(right)
    short = as_i1(word == "or")
    values = ([right], [short]) if word == "and" else ([short], [right])
    return boolean(region.finish(*values)[0])


def _strict(left: Any, right: Any, word: str) -> Any:
    if right is True or right is False:
        decided = right is (word == "or")
        return boolean(as_i1(right)) if decided else boolean(left)
    op = "arith.andi" if word == "and" else "arith.ori"
    return boolean(emit1(op, current().types.i1, (left, right)))


# --- comparison chains: `a < b < c` is `a < b and b < c` with b evaluated once ---------------------------------------


def keep(b: Any) -> Any:
    """Remember the middle of a chain, and return it."""
    open_now.operands.append(b)
    return b


def chain_first(comparison: Any) -> bool:
    """Like `and_first`, for a comparison whose right side was kept."""
    middle = open_now.operands.pop()
    needed = and_first(comparison)
    open_now.operands[-1].kept = middle
    return needed


def kept() -> Any:
    """Return the middle of the chain."""
    return open_now.operands[-1].kept


def chain_and(comparison: Any) -> Any:
    """Like `and_`, for a comparison whose right side was kept for the next one."""
    operands = open_now.operands
    middle = operands.pop() if operands[-1].__class__ is not _Pending else None
    result = and_(comparison)
    operands.append(middle)
    return result


# --- a if c else b ---------------------------------------------------------------------------------------------------


def then(c: Any) -> bool:
    """Take the condition of a conditional expression; return whether its first side has to be evaluated."""
    cond = condition(c, "... if ... else ...")
    if cond is True or cond is False:
        open_now.operands.append(_Pending(value=cond))
        return cond
    region = IfRegion(cond)
    region.then()
    open_now.operands.append(_Pending(left=cond, region=region))
    return True


def otherwise() -> bool:
    """Begin the second side; return whether it has to be evaluated."""
    pending = open_now.operands[-1]
    if pending.region is None:
        return not pending.value
    pending.region.otherwise()
    return True


def pick(a: Any, b: Any) -> Any:
    """Return `a if c else b`."""
    pending = open_now.operands.pop()
    if pending.region is None:
        return a if pending.value else b
    return merge_expression(pending.region, a, b)

"""`and`, `or`, `not`, `a if c else b` and comparison chains on run-time values.

Rewriting turns `a and b` into `and_(b if and_first(a) else None)`: Python evaluates `a`, then `b` only if it is
needed, in the user's own scope. What is under way between the two calls is kept on a stack. The right side is
traced into a branch of an `scf.if`; if its ops may run anyway (no memory access, no division by zero) they move
out and the result is one `arith.andi`. Where the right side can change variables or containers (`rewrite.effects`)
the calls carry a site and the frame's variables, and the region is that of a `Branch`.
"""

from typing import Any

from flydsl.frontend.branch import Branch
from flydsl.frontend.merge import merge_expression
from flydsl.frontend.regions import IfRegion, is_speculatable, open_now
from flydsl.frontend.site import UNBOUND, Site
from flydsl.frontend.truth import as_i1, boolean, condition, is_dynamic, truth
from flydsl.ir import current, emit1


class _Pending:
    """A left operand that was evaluated. Static: `value`. Dynamic: `left` is its i1, `region` holds the right side."""

    __slots__ = ("branch", "kept", "left", "region", "value")

    def __init__(self, value: Any = None, left: Any = None, region: IfRegion | None = None, branch: Branch | None = None):
        self.value, self.left, self.region, self.branch, self.kept = value, left, region, branch, None


def _open(left: Any, site: Site | None, variables: dict | None, second: bool) -> _Pending:
    """Begin the side that runs if `left` is true, or with `second` if it is false."""
    if site is not None:
        branch = Branch(site, left)
        (branch.begin_second if second else branch.begin)(variables)
        return _Pending(left=left, region=branch.region, branch=branch)
    region = IfRegion(left)
    if second:
        region.otherwise()
    else:
        region.then()
    return _Pending(left=left, region=region)


def and_first(a: Any, site: Site | None = None, variables: dict | None = None) -> bool:
    """Take the left side of `and`; return whether the right side has to be evaluated."""
    left = truth(a, "and")
    if left is True or left is False:
        open_now.operands.append(_Pending(value=a))
        return left
    open_now.operands.append(_open(left, site, variables, second=False))
    return True


def or_first(a: Any, site: Site | None = None, variables: dict | None = None) -> bool:
    """Take the left side of `or`; return whether the right side has to be evaluated."""
    left = truth(a, "or")
    if left is True or left is False:
        open_now.operands.append(_Pending(value=a))
        return not left
    open_now.operands.append(_open(left, site, variables, second=True))
    return True


def and_(b: Any, variables: dict | None = None) -> Any:
    """Return `a and b`."""
    pending = open_now.operands.pop()
    if pending.region is None:
        return _static_left(pending.value, b, bool(pending.value))
    return _combine(pending, pending.region.then_block, b, "and", variables)


def or_(b: Any, variables: dict | None = None) -> Any:
    """Return `a or b`."""
    pending = open_now.operands.pop()
    if pending.region is None:
        return _static_left(pending.value, b, not pending.value)
    return _combine(pending, pending.region.else_block, b, "or", variables)


def _static_left(a: Any, b: Any, takes_right: bool) -> Any:
    open_now.bound = []
    if not takes_right:
        return a
    return boolean(truth(b, "and")) if is_dynamic(b) else b


def _combine(pending: _Pending, block: Any, b: Any, word: str, variables: dict | None) -> Any:
    region, left = pending.region, pending.left
    right = truth(b, word)
    open_now.bound = []
    speculatable = is_speculatable(block)
    branch = pending.branch
    if branch is not None and branch.changes(variables):
        if not (speculatable and branch.only_binds(variables)):
            right, short = boolean(as_i1(right)), boolean(as_i1(word == "or"))
            *open_now.bound, result = branch.end(variables, (right, short) if word == "and" else (short, right))
            return result
        open_now.bound = branch.site.pick(variables)
    if speculatable:
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


def chain_first(comparison: Any, *effects: Any) -> bool:
    """Like `and_first`, for a comparison whose right side was kept."""
    middle = open_now.operands.pop()
    needed = and_first(comparison, *effects)
    open_now.operands[-1].kept = middle
    return needed


def kept() -> Any:
    """Return the middle of the chain."""
    return open_now.operands[-1].kept


def chain_and(comparison: Any, *effects: Any) -> Any:
    """Like `and_`, for a comparison whose right side was kept for the next one."""
    operands = open_now.operands
    middle = operands.pop() if operands[-1].__class__ is not _Pending else None
    result = and_(comparison, *effects)
    operands.append(middle)
    return result


# --- a if c else b ---------------------------------------------------------------------------------------------------


def then(c: Any, site: Site | None = None, variables: dict | None = None) -> bool:
    """Take the condition of a conditional expression; return whether its first side has to be evaluated."""
    cond = condition(c, "... if ... else ...")
    if cond is True or cond is False:
        open_now.operands.append(_Pending(value=cond))
        return cond
    open_now.operands.append(_open(cond, site, variables, second=False))
    return True


def otherwise(variables: dict | None = None) -> bool:
    """Begin the second side; return whether it has to be evaluated."""
    pending = open_now.operands[-1]
    open_now.bound = []
    if pending.region is None:
        return not pending.value
    if pending.branch is None:
        pending.region.otherwise()
    else:
        open_now.bound = pending.branch.middle(variables)
    return True


def second() -> bool:
    """Return whether the second side, which has begun, has to be evaluated."""
    pending = open_now.operands[-1]
    return pending.region is not None or not pending.value


def pick(a: Any, b: Any) -> Any:
    """Return `a if c else b`."""
    pending = open_now.operands.pop()
    if pending.region is None:
        return a if pending.value else b
    return merge_expression(pending.region, a, b)


def pick_changed(a: Any, *rest: Any) -> Any:
    """Return `a if c else b` whose sides can change variables; `rest` ends with b and the frame's variables."""
    b, variables = rest[-2:]
    pending = open_now.operands.pop()
    open_now.bound = []
    if pending.region is None:
        return a if pending.value else b
    *open_now.bound, result = pending.branch.end(variables, (a, b))
    return result


# --- variables that an expression changed ----------------------------------------------------------------------------


def first(value: Any, *_: Any) -> Any:
    """Return the value of an expression; what follows bound its variables."""
    return value


def has(i: int) -> bool:
    """Return whether a variable of the expression that just ended is to be bound."""
    return bool(open_now.bound) and open_now.bound[i] is not UNBOUND


def value(i: int) -> Any:
    """Return what a variable of the expression that just ended is bound to."""
    return open_now.bound[i]

"""Errors of the layout algebra: one class per violated condition, with fields and a stable code.

Neighbours: raised everywhere in `flydsl.layout`; `flydsl.diag` renders the fields. Does not
print anything.
"""

from __future__ import annotations

from typing import Any


class LayoutError(Exception):
    """Base of all errors of the algebra.

    Fields: `condition` (what was violated, in one clause), `op` and `operands` (the outermost
    operation
    that was called and its arguments), `inner` (operations below it, innermost first), `facts`
    (named
    numbers of the violation). Class attributes: `code`, `why`, `fix`.
    """

    code = "FLY_LAYOUT_INVALID"
    why = "the operation is not defined for these operands"
    fix = "check shapes, strides and profiles of the operands"

    def __init__(self, condition: str, op: str | None = None, operands: tuple = (), **facts: Any):
        super().__init__(condition)
        self.condition = condition
        self.op = op
        self.operands = tuple(operands)
        self.inner: list[tuple[str, tuple]] = []
        self.facts = facts

    def within(self, op: str, operands: tuple) -> None:
        """Record that the error left operation `op`; the outermost one becomes `self.op`."""
        if self.op is not None:
            self.inner.append((self.op, self.operands))
        self.op, self.operands = op, tuple(operands)

    def __str__(self) -> str:
        if self.op is None:
            return f"{self.condition} [{self.code}]"
        operands = " and ".join(f"`{show(x)}`" for x in self.operands if x is not None)
        return f"{self.op} of {operands}: {self.condition} [{self.code}]"


def show(x: Any) -> str:
    """Return the printed notation of any value of the algebra."""
    if x is None:
        return "*"
    if isinstance(x, (tuple, list)):
        return "(" + ",".join(show(i) for i in x) + ")"
    return str(x)


class ProfileMismatch(LayoutError, ValueError):
    code = "FLY_LAYOUT_PROFILE"
    why = "the two tuples do not nest in the same way"
    fix = "give both the same nesting, or a leaf where a whole mode is meant"


class RankMismatch(LayoutError, ValueError):
    code = "FLY_LAYOUT_RANK"
    why = "one operand has more modes than the other can serve"
    fix = "group or append modes until the ranks fit"


class ModeOutOfRange(LayoutError, IndexError, ValueError):
    code = "FLY_LAYOUT_MODE"
    why = "there is no such mode"
    fix = "mode numbers start at 0 and end before the rank"


class NotDivisible(LayoutError, ValueError):
    code = "FLY_LAYOUT_DIVISIBILITY"
    why = "the result would not be a layout: an extent or a stride is not a multiple of the other"
    fix = "choose extents and strides that divide one another, or pad the larger one"


class DivisionByZero(LayoutError, ValueError):
    code = "FLY_LAYOUT_ZERO"
    why = "a stride or divisor of zero has no inverse"
    fix = "drop broadcast (stride 0) modes first, for example with select or coalesce"


class NotStatic(LayoutError, ValueError):
    code = "FLY_LAYOUT_DYNAMIC"
    why = "the result depends on the order or exact value of numbers known only at run time"
    fix = "use static shapes and strides here, or make the dynamic mode separate"


class NotInjective(LayoutError, ValueError):
    code = "FLY_LAYOUT_NOT_INJECTIVE"
    why = "two coordinates share one index, or the modes interleave, so nothing can fill the gaps"
    fix = "remove overlapping modes, or pad strides to multiples of the extent below them"


class BasisMismatch(LayoutError, ValueError):
    code = "FLY_LAYOUT_BASIS"
    why = "coordinate (basis) strides and integer strides cannot be combined here"
    fix = "apply the operation to the layout before mapping it to coordinates"


class OperandType(LayoutError, TypeError):
    code = "FLY_LAYOUT_OPERAND"
    why = "the operation does not take this kind of value"
    fix = "pass the kind of value which the message names"


class ParseError(LayoutError, ValueError):
    code = "FLY_LAYOUT_SYNTAX"
    why = "the text is not in the layout notation"
    fix = "write layouts as (4,8):(8,1), tiles as [4|8], swizzles as S<3,3,3>"

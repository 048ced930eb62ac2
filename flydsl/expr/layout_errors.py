"""Refusals of the layout algebra as the user's errors: the same code, reason and advice, with the source line.

`flydsl.layout` imports nothing and states its faults once; here each of its classes gets a partner among the
package's errors.
"""

from __future__ import annotations

from flydsl.diag.base import UserError
from flydsl.layout import errors as faults
from flydsl.layout.errors import LayoutError, show

_CLASSES = {
    fault: type(
        fault.__name__,
        (UserError, *(b for b in fault.__bases__ if b is not LayoutError)),
        {
            "__doc__": f"`flydsl.layout.{fault.__name__}` at the user's line.",
            "__module__": __name__,
            "code": fault.code,
            "what": "{op}: {condition}",
            "why": fault.why,
            "fix": fault.fix,
        },
    )
    for fault in vars(faults).values()
    if isinstance(fault, type) and issubclass(fault, LayoutError) and fault is not LayoutError
}


def user_error(error: LayoutError, op: str) -> UserError:
    """Return the error to raise instead of `error`, which left operation `op` of the DSL."""
    operands = " and ".join(f"`{show(x)}`" for x in error.operands if x is not None)
    name = error.op or op
    inside = f" (in {name})" if name != op else ""
    condition = error.condition if error.code != "FLY_LAYOUT_PROFILE" else f"profile mismatch: {error.condition}"
    notes = (f"operands of {name}{inside}: {operands}",) if operands else ()
    return _CLASSES.get(type(error), _CLASSES[faults.OperandType])(op=op, condition=condition, notes=notes)

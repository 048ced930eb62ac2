"""What an object holds after a run-time region that changed it: merged content, notes of Python objects, or a refusal.

Objects that outlive the trace (globals, attributes of their classes, defaults of their functions) hold run-time values
only while the function is traced; they are put back at its end.
"""

from typing import Any

from flydsl.diag import Span, StateNotCarried
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.vector import Vector
from flydsl.frontend import carry
from flydsl.frontend.contents import OBJECT, SLOTTED, content, put, same_content, takes_values
from flydsl.frontend.escape import Escaped
from flydsl.frontend.heap import Cell
from flydsl.frontend.site import Site
from flydsl.frontend.warn import warn
from flydsl.ir import current

_MISSING = object()


def comparable(cell: Cell, x: Any, y: Any, site: Site) -> tuple[Any, Any]:
    """Return the contents after the two branches in the form in which they are merged.

    An attribute that one branch added has in the other the value of the class. Numbers of the module that a called
    function counted while tracing stay numbers, with a warning.
    Raises   StateNotCarried: the object cannot hold run-time values
    """
    if not takes_values(cell.obj, cell.kind) and _notes(cell.before, x, y) is None:
        raise StateNotCarried(
            at=place_of(cell, site), region=f"the {site.construct} at line {site.span.line}", name=cell.name, cls=cell.obj.__class__.__name__
        )
    if cell.kind in (OBJECT, SLOTTED) and x.keys() != y.keys():
        defaults = {k: v for k in x.keys() ^ y.keys() if (v := _class_value(cell.obj, k)) is not _MISSING}
        x, y = {**defaults, **x}, {**defaults, **y}
    counted = counters(cell, y, site)
    if not counted:
        return x, y
    warn_counted(cell, counted, site)
    if x.__class__ is list:
        return [y[i] if i in counted else v for i, v in enumerate(x)], y
    return {k: y[k] if k in counted else v for k, v in x.items()}, y


def _class_value(obj: Any, name: str) -> Any:
    value = getattr(obj.__class__, name, _MISSING)
    return _MISSING if hasattr(value, "__get__") else value


def place_of(cell: Cell, site: Site) -> Span:
    """Return where a region changes an object: the last place that names it, else the region."""
    return site.spans.get(cell.name) or site.else_spans.get(cell.name) or site.span


def counters(cell: Cell, now: Any, site: Site) -> set:
    """Return the keys of the module's numbers that something out of sight of the region replaced by other numbers."""
    if not cell.shared or cell.name in site.spans or cell.name in site.else_spans:
        return set()
    changes = pairs(cell.before, now)
    return {k for k, a, b in changes if a is not b and carry.kind_of(a) == carry.NUMBER and carry.kind_of(b) == carry.NUMBER}


def pairs(before: Any, now: Any) -> list[tuple]:
    """Return (key, value before, value now) of the keys that were there before and are there now."""
    if before.__class__ is list:
        return [(i, a, b) for i, (a, b) in enumerate(zip(before, now))]
    return [(k, a, now[k]) for k, a in before.items() if k in now]


def warn_counted(cell: Cell, keys: set, site: Site) -> None:
    """Warn of numbers of the module that change while a region is traced."""
    names = ", ".join(sorted(f"'{label(cell, k)}'" for k in keys))
    warn(
        f"{names}: a number of the module that changes once, while the {site.construct} at line {site.span.line} is traced, "
        f"whatever the kernel does; start with fx.Int32 or fx.Float32 to have it changed by the kernel",
        site.span,
    )


def label(cell: Cell, key: Any) -> str:
    """Return how a user would name a place in an object."""
    if cell.name == key:
        return cell.name
    return f"{cell.name}[{key!r}]" if isinstance(cell.obj, (list, dict)) or not isinstance(key, str) else f"{cell.name}.{key}"


def unmerged(cell: Cell, x: Any, y: Any, site: Site) -> Any:
    """Return what an object holds whose contents after the two branches cannot be one."""
    after = _notes(cell.before, x, y)
    return _poisoned(cell, x, y, site) if after is None else after


def _notes(before: Any, x: Any, y: Any) -> Any:
    """Return what one branch alone noted in a container: Python objects that no kernel computes with, like classes and texts; else None."""
    if not (same_content(before, x) or same_content(before, y)):
        return None
    new = y if same_content(before, x) else x
    if isinstance(new, dict):
        parts = [v for k, v in new.items() if k not in before or before[k] is not v]
    else:
        parts = [v for v in new if not any(v is old for old in before)]
    return None if any(_holds_data(p) for p in parts) else new


def _holds_data(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(_holds_data(p) for p in (value.values() if isinstance(value, dict) else value))
    return carry.kind_of(value) != carry.OPAQUE


def _poisoned(cell: Cell, x: Any, y: Any, site: Site) -> Any:
    gone = Escaped(cell.name, site)
    if x.__class__ is list:
        return [gone] * max(len(x), len(y))
    keeps = cell.shared  # a cache of the module
    return {
        k: v if x.get(k, gone) is v or keeps and k not in cell.before and not is_run_time(v) else gone for k, v in {**x, **y}.items()
    }


# --- the end of the trace --------------------------------------------------------------------------------------------


def is_run_time(value: Any) -> bool:
    """Return whether a value, or an element of it, exists only in the function that is traced."""
    if isinstance(value, (list, tuple, dict)):
        return any(is_run_time(p) for p in (value.values() if isinstance(value, dict) else value))
    if isinstance(value, (Numeric, Vector)):
        return not carry.is_static(value)
    return value.__class__ is Escaped or carry.kind_of(value) == carry.RAW


def put_back_later(cell: Cell) -> None:
    """Have an object of the module hold at the end of the trace what it held before, where it holds a run-time value."""
    scope = current().scope
    if scope is not None:
        scope.undo.append(lambda: _put_back(cell))


def _put_back(cell: Cell) -> None:
    before, now = cell.before, content(cell.obj, cell.kind)
    if before.__class__ is list:
        new = [before[i] if is_run_time(v) else v for i, v in enumerate(now) if i < len(before) or not is_run_time(v)]
    else:
        new = {k: before[k] if is_run_time(v) else v for k, v in now.items() if k in before or not is_run_time(v)}
    if not same_content(new, now):
        put(cell.obj, cell.kind, new)

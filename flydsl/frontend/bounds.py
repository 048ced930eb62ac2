"""Bounds of run-time loops: 32-bit counters, or `index` for loops with init=."""

from typing import Any

from flydsl.diag import LoopBoundType, LoopStep, RangeArguments
from flydsl.expr.numeric.base import Numeric, raw
from flydsl.expr.numeric.classes import Index, Int32
from flydsl.frontend.carry import RAW, is_static, kind_of
from flydsl.frontend.warn import warn
from flydsl.ir import current, emit1, ir

_NAMES = ("start", "stop", "step")


def is_static_range(args: tuple) -> bool:
    """Return whether all bounds are known while tracing."""
    return all(hasattr(a, "__index__") and (not isinstance(a, (Numeric, ir.Value)) or is_static(a)) for a in args)


def _three(args: tuple) -> tuple:
    if not 1 <= len(args) <= 3:
        raise RangeArguments(
            problem=f"range() takes 1 to 3 bounds, got {len(args)}", advice="pass stop, or start, stop, or all three"
        )
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1
    _check_step(step)
    return start, stop, step


def _check_step(step: Any) -> None:
    if isinstance(step, (int, Numeric)) and is_static_range((step,)) and int(step) <= 0:
        raise LoopStep(step=int(step))


def counter_bounds(args: tuple) -> tuple:
    """Return start, stop and step as i32 values.

    Raises   LoopBoundType, LoopStep, RangeArguments
    """
    return tuple(_as_i32(a, which) for a, which in zip(_three(args), _NAMES))


def _as_i32(x: Any, which: str) -> "ir.Value":
    if x.__class__ is Int32:
        return raw(x)
    if isinstance(x, bool) or not hasattr(x, "__index__") and not isinstance(x, ir.Value):
        raise _not_an_int(x, which)
    if isinstance(x, int):
        if not -(1 << 31) <= x < 1 << 31:
            raise LoopBoundType(which=which, type="i64", advice="split the loop: the bound does not fit 32 bits")
        return raw(Int32(x))
    value = x if kind_of(x) == RAW or isinstance(x, ir.Value) else _raw_integer(x, which)
    types = current().types
    if value.type == types.i32:
        return value
    if value.type == types.index:
        warn(f"for-loop {which}: an Index is converted to 32 bits")
        return emit1("arith.index_cast", types.i32, (value,))
    raise LoopBoundType(which=which, type=value.type, advice="convert the bound: `.to(fx.Int32)`")


def _raw_integer(x: Any, which: str) -> "ir.Value":
    if isinstance(x, Numeric) and not x.is_integer:
        raise _not_an_int(x, which)
    return raw(x) if isinstance(x, Numeric) else raw(Int32(x))


def _not_an_int(x: Any, which: str) -> LoopBoundType:
    return LoopBoundType(which=which, type=x.__class__.__name__, advice="pass a Python int or an fx.Int32")


def index_bounds(args: tuple) -> tuple:
    """Return start, stop and step as `index` values, for loops with init=; any integer width is accepted."""
    return tuple(_as_index(a, which) for a, which in zip(_three(args), _NAMES))


def _as_index(x: Any, which: str) -> "ir.Value":
    if isinstance(x, ir.Value):
        types = current().types
        if x.type == types.index:
            return x
        return emit1("arith.index_cast", types.index, (x,))
    if isinstance(x, bool) or not hasattr(x, "__index__") or isinstance(x, Numeric) and not x.is_integer:
        raise _not_an_int(x, which)
    return raw(Index(x))

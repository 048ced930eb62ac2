"""`const_expr`, `range_constexpr`, and a typed `range`: how a kernel says what is decided while it is traced.

Inside kernels the frontend turns `range(...)` and `fx.range(...)` into run-time loops; the function here gives
the type checkers their types and serves plain Python code.
"""

import builtins
from collections.abc import Iterator
from typing import Any, TypeVar, overload

from flydsl.diag import ConstExprDynamic
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Index, Int32
from flydsl.ir import ir

T = TypeVar("T")
IntLike = int | Int32
_IF_ADVICE = "drop const_expr to branch at run time, or make the value a fx.Constexpr parameter"
_LOOP_ADVICE = "write `range(...)` for a run-time loop, or make the bound a fx.Constexpr parameter"


def const_expr(x: T) -> T:
    """Return `x`, which must be known while tracing; `if const_expr(...)` is decided then.

    Raises   ConstExprDynamic
    """
    if _is_dynamic(x):
        raise ConstExprDynamic(function="const_expr", dtype=_name(x), advice=_IF_ADVICE)
    return x


def range_constexpr(*bounds: int) -> builtins.range:
    """Return Python's `range`: the loop over it is unrolled and its counter is a Python int.

    Raises   ConstExprDynamic: a bound is known only when the kernel runs
    """
    for b in bounds:
        if _is_dynamic(b):
            raise ConstExprDynamic(function="range_constexpr", dtype=_name(b), advice=_LOOP_ADVICE)
    return builtins.range(*(int(b) if isinstance(b, Numeric) else b for b in bounds))


@overload
def range(*bounds: IntLike, unroll: int | None = None, unroll_full: bool = False) -> Iterator[Int32]: ...


@overload
def range(
    *bounds: IntLike, init: list[T], unroll: int | None = None, unroll_full: bool = False
) -> Iterator[tuple[Index, list[T]]]: ...


def range(*bounds: Any, init: Any = None, unroll: Any = None, unroll_full: Any = False) -> Any:
    """Run-time loop over start, stop, step; see docs on control flow. Outside of traced code: Python's range."""
    if init is not None or unroll is not None or unroll_full:
        raise TypeError("range() with init=, unroll= or unroll_full= needs a kernel or jit function around it")
    return builtins.range(*bounds)


def _is_dynamic(x: Any) -> bool:
    if isinstance(x, Numeric):
        return not x.is_static()
    if isinstance(x, (bool, int, str)) or x is None:
        return False
    state = getattr(x, "is_static", True)
    return isinstance(x, ir.Value) or not (state() if callable(state) and not isinstance(x, type) else state)


def _name(x: Any) -> str:
    return str(x.type) if isinstance(x, ir.Value) else x.__class__.__name__

"""Checks of results (opt-in): which lanes stop being finite, wrap, or lose more than a rounding in a conversion."""

from __future__ import annotations

from typing import Any

import numpy as np


def lanes_of(bad: Any, m: Any, is_vector: bool) -> np.ndarray | None:
    """Return the active faulty lanes as a 2-D mask, or None; a vector is faulty where one of its elements is."""
    if not np.any(bad):
        return None
    bad = np.asarray(bad.any(axis=-1) if is_vector and np.ndim(bad) else bad)
    bad = np.asarray(bad if m is None else bad & m)
    return np.atleast_2d(bad) if bad.any() else None


def became_infinite(value: Any, operands: tuple) -> Any:
    """Return where a result is NaN or infinite although its operands were finite."""
    bad = ~np.isfinite(value)
    for x in operands:
        if np.any(bad) and x.dtype.kind not in "biu":
            bad = bad & np.isfinite(x)
    return bad


def wraps(kind: str, signs: str, a: Any, b: Any) -> Any:
    """Return where a 32-bit sum, difference or product wraps; `signs` says per operand how its bits are read, s or u."""
    x, y = (
        v.astype(np.int64) if sign == "s" else v.view(np.uint32).astype(np.int64) for v, sign in zip((a, b), signs)
    )
    if "u" not in signs:
        exact = {"addi": x + y, "subi": x - y, "muli": x * y}[kind]
        return exact != exact.astype(np.int32)
    if kind == "muli":  # up to 2^64: compare the high halves
        return x.astype(np.float64) * y.astype(np.float64) >= 2.0**32
    exact = x + y if kind == "addi" else x - y
    return (exact < 0) | (exact >= 1 << 32)


def loses(kind: str, value: Any, result: Any) -> Any:
    """Return where a conversion loses more than a rounding: finite to infinite, out of the integer's range, an
    integer that the float does not hold."""
    if kind == "float":
        return np.isfinite(value) & ~np.isfinite(result)
    is_signed = kind.endswith(" signed")
    if kind.startswith("to"):
        bits = 8 * result.dtype.itemsize - is_signed
        low, high = (-(2.0**bits) if is_signed else 0.0), 2.0**bits
        whole = np.trunc(value.astype(np.float64))
        return ~((whole >= low) & (whole < high))  # NaN is out of range
    source = value if is_signed else value.view(f"u{value.dtype.itemsize}")
    wide = result.astype(np.float64)
    fits = np.isfinite(wide) & (np.abs(wide) < 2.0**63)
    back = np.where(fits, wide, 0).astype(source.dtype if source.dtype.itemsize == 8 else np.int64)
    return ~fits | (back != source)


def first_pair(lost: Any, lanes: np.ndarray, value: Any, result: Any, kind: str) -> tuple[str, str]:
    """Return a lossy conversion's operand and result in the first of the faulty lanes, as text."""
    g, b = (int(i) for i in np.argwhere(lanes)[0])
    which = np.atleast_1d(of_lane(lost, g, b))
    element = int(which.argmax())
    pair = [np.atleast_1d(of_lane(x, g, b)) for x in (value, result)]
    if kind == "to unsigned":
        pair[1] = pair[1].view(f"u{pair[1].dtype.itemsize}")
    elif kind == "from unsigned":
        pair[0] = pair[0].view(f"u{pair[0].dtype.itemsize}")
    before, after = (x[min(element, len(x) - 1)] for x in pair)
    return text_of(before), text_of(after)


def text_of(number: Any) -> str:
    """Return a number with the digits that tell it from its neighbours; large whole floats as integers."""
    if number.dtype.kind in "iu":
        return str(int(number))
    wide = float(number)
    return str(int(wide)) if wide.is_integer() and 1e4 < abs(wide) < 1e19 else repr(wide)


def of_lane(x: Any, g: int, b: int) -> Any:
    """Return one lane's scalar or vector of an array whose axes may be shorter where lanes agree."""
    x = np.asarray(x)
    return x[min(g, x.shape[0] - 1), min(b, x.shape[1] - 1)] if x.ndim >= 2 else x

"""Fast-math flags: the enum, the accepted spellings, and the ambient value.

Three controls, highest first: the `fastmath=` keyword of a named operation, the innermost `with
fx.fastmath(...)`, the compile hint (`hinted`, entered by the compiler around a trace). The ambient value is per
thread and crosses helper calls.
"""

import enum
import threading
from collections.abc import Iterable, Mapping

from flydsl.diag.base import UserError
from flydsl.ir import ir


class FastMathFlags(enum.IntFlag):
    """What the compiler may assume or ignore about floats."""

    none = 0
    reassoc = 1
    nnan = 2
    ninf = 4
    nsz = 8
    arcp = 16
    contract = 32
    afn = 64
    fast = 127


class RoundingMode(enum.IntEnum):
    """Rounding of a narrowing float cast; the numbers are MLIR's."""

    to_nearest_even = 0
    downward = 1
    upward = 2
    toward_zero = 3
    to_nearest_away = 4


class BadFastMath(UserError, ValueError):
    code = "FLY_FASTMATH_FLAGS"
    what = "{value} is not a set of fast-math flags"
    why = "the flags are none, reassoc, nnan, ninf, nsz, arcp, contract, afn, fast"
    fix = 'write "fast", "nnan,ninf", fx.FastMathFlags.contract, or a list of these'


FlagsLike = FastMathFlags | str | Iterable | None

_SINGLE = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")


class _Ambient(threading.local):
    flags: int | None = None


ambient = _Ambient()


def flag_bits(flags: FlagsLike) -> int | None:
    """Return the flags as bits; None stays None (not given)."""
    if flags is None:
        return None
    if isinstance(flags, ir.Attribute):
        flags = str(flags).partition("<")[2].rstrip(">")
    if isinstance(flags, str):
        return _parse(flags)
    if isinstance(flags, int):
        if not 0 <= flags <= FastMathFlags.fast:
            raise BadFastMath(value=flags)
        return int(flags)
    try:
        parts = list(flags)
    except TypeError:
        raise BadFastMath(value=repr(flags)) from None
    bits = 0
    for part in parts:
        bits |= flag_bits(part) or 0
    return bits


def _parse(text: str) -> int:
    bits = 0
    for word in filter(None, (w.strip() for w in text.replace("|", ",").split(","))):
        try:
            bits |= FastMathFlags[word]
        except KeyError:
            raise BadFastMath(value=repr(text)) from None
    return int(bits)


def flags_text(bits: int) -> str:
    """Return the flags as MLIR prints them."""
    if bits in (0, FastMathFlags.fast):
        return "fast" if bits else "none"
    return ",".join(name for name in _SINGLE if bits & FastMathFlags[name])


def float_attrs(trace, flags: FlagsLike = None) -> dict | None:
    """Return the attributes of a float op: `flags` if given, else the ambient ones; None when there are none."""
    bits = ambient.flags if flags is None else flag_bits(flags)
    return attrs_of_bits(trace, bits) if bits else None


def attrs_of_bits(trace, bits: int) -> dict:
    """Return `{"fastmath": ...}` for nonzero bits, one dict per context."""
    memo = trace.types.memo
    attrs = memo.get(("fastmath", bits))
    if attrs is None:
        attrs = {"fastmath": ir.Attribute.parse(f"#arith.fastmath<{flags_text(bits)}>", trace.context)}
        memo["fastmath", bits] = attrs
    return attrs


class fastmath:
    """`with fx.fastmath("fast"):` - flags for the float operations built inside, also in functions called there."""

    __slots__ = ("_bits", "_outer")

    def __init__(self, flags: FlagsLike = FastMathFlags.fast):
        self._bits = flag_bits(flags)
        self._outer: list = []

    def __enter__(self) -> FastMathFlags | None:
        self._outer.append(ambient.flags)
        ambient.flags = self._bits
        return None if self._bits is None else FastMathFlags(self._bits)

    def __exit__(self, *exc) -> None:
        ambient.flags = self._outer.pop()


def hinted(hints: Mapping) -> fastmath:
    """Return the scope of a compile with these hints; it hides flags that were ambient outside."""
    if "fastmath" in hints:
        return fastmath(hints["fastmath"])
    return fastmath(FastMathFlags.fast if hints.get("fast_fp_math") else None)

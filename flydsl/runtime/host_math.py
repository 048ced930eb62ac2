"""What generated host programs call: arithmetic, and the check of block sizes that are known only at run time.

Integers wrap to their width as in IR, f32 is rounded, division is IEEE's.
"""

import ctypes
import math
import struct


def wrap(value: int, width: int) -> int:
    """Return `value` modulo 2^width as a signed number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    """Return the unsigned reading of a signed number."""
    return value & ((1 << width) - 1)


def div(a: int, b: int) -> int:
    """Return a / b rounded toward zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def rem(a: int, b: int) -> int:
    """Return the remainder with the sign of `a`."""
    return a - b * div(a, b)


def floordiv(a: int, b: int) -> int:
    """Return a / b rounded down."""
    return a // b


def ceildiv(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def single(value: float) -> float:
    """Return a number rounded to f32."""
    return ctypes.c_float(value).value


def fdiv(a: float, b: float) -> float:
    """Return a / b; by zero it is infinite or NaN."""
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


class BFloat16(float):
    """A bf16 argument of a launch: the number, rounded, and its `bits`, which no `struct` letter packs."""

    bits: int


def bf16(value: float) -> BFloat16:
    """Return a number rounded to bf16, to the nearest and of two the even one."""
    bits = struct.unpack("<I", struct.pack("<f", single(value)))[0]
    bits = bits >> 16 | 0x40 if value != value else bits + 0x7FFF + (bits >> 16 & 1) >> 16
    made = BFloat16(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    made.bits = bits
    return made


def check_block(kernel: str, block: tuple[int, int, int], most: int, declared: tuple[int, ...]) -> None:
    """Refuse a block that is known only now and that the code of the kernel was not generated for.

    Raises   BlockLimit: more than `most` threads; BlockSizeConflict: another size than the `declared` one, if there is one
    """
    from flydsl.diag import BlockLimit, BlockSizeConflict

    if declared and block != declared:
        raise BlockSizeConflict(kernel=kernel, launched=block, declared=declared)
    if not declared and math.prod(block) > most:
        raise BlockLimit(kernel=kernel, block=block, threads=math.prod(block), most=most)


NAMES = {
    "check_block": check_block,
    "bf16": bf16,
    "wrap": wrap,
    "unsigned": unsigned,
    "div": div,
    "rem": rem,
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "single": single,
    "fdiv": fdiv,
}

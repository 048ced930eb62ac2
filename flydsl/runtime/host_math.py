"""Integer arithmetic of generated host programs: values wrap to their width as in IR."""


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


NAMES = {"wrap": wrap, "unsigned": unsigned, "div": div, "rem": rem, "floordiv": floordiv, "ceildiv": ceildiv}

"""Text to values: every notation of the algebra, and the view types around it. Printing is `str`.

Law   parse(str(x)) == x for every value without payloads
"""

from __future__ import annotations

import re
from typing import Any

from .errors import ParseError
from .layout import ComposedLayout, Layout, Tile
from .leaf import Basis, Sym
from .swizzle import CoordSwizzle, Swizzle
from .view import SPACES, CoordTensor, MemRef, Ptr, element_bytes

_INT = re.compile(r"-?\d+")
_SYM = re.compile(r"\?(?:\{(i64|i32)?\s*(?:div=(-?\d+))?\})?")
_NAME = re.compile(r"[#\w.]+(?:<\w+>)?")
_WRAPPERS = ("int_tuple", "layout", "composed_layout", "swizzle", "coord_swizzle", "tile")


class _Text:
    """A cursor over the text."""

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def fail(self, wanted: str) -> ParseError:
        return ParseError(f"expected {wanted} at column {self.at + 1}", "parse", (self.text,), column=self.at + 1)

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def peek(self, token: str) -> bool:
        self.skip()
        return self.text.startswith(token, self.at)

    def accept(self, token: str) -> bool:
        if self.peek(token):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(f"`{token}`")

    def match(self, pattern: re.Pattern, wanted: str) -> re.Match:
        self.skip()
        found = pattern.match(self.text, self.at)
        if not found:
            raise self.fail(wanted)
        self.at = found.end()
        return found

    def integer(self) -> int:
        return int(self.match(_INT, "an integer").group())


def parse(text: str) -> Any:
    """Return the value a text denotes: tuple, layout, composed layout, tile, swizzle, pointer
    or view.
    """
    cursor = _Text(text.strip())
    value = _value(cursor)
    cursor.skip()
    if cursor.at != len(cursor.text):
        raise cursor.fail("the end")
    return value


def parse_path(text: str) -> tuple:
    """Return the mode numbers of a list such as `[0,1]`."""
    inside = text.strip()
    if not (inside.startswith("[") and inside.endswith("]")):
        raise ParseError("expected a list of mode numbers", "parse_path", (text,))
    return tuple(int(p) for p in inside[1:-1].split(",") if p.strip())


def _value(c: _Text) -> Any:
    value = _part(c)
    while c.peek("o ") and not isinstance(value, (Tile, Ptr)):
        c.expect("o ")
        offset = _tuple(c)
        c.expect("o ")
        value = ComposedLayout(value, offset, _part(c))
    return value


def _part(c: _Text) -> Any:
    c.skip()
    if c.peek("!fly.") or any(c.peek(w + "<") for w in _WRAPPERS):
        return _type(c)
    if c.accept("S<"):
        fields = _integers(c, 3)
        c.expect(">")
        return Swizzle(*fields)
    if c.accept("CS<"):
        return _coord_swizzle(c)
    if c.accept("["):
        return _bracket(c)
    shape = _tuple(c)
    return Layout(shape, _tuple(c)) if c.accept(":") else shape


def _integers(c: _Text, count: int) -> list[int]:
    out = [c.integer()]
    for _ in range(count - 1):
        c.expect(",")
        out.append(c.integer())
    return out


def _path(c: _Text) -> tuple:
    c.expect("[")
    out = [c.integer()]
    while c.accept(","):
        out.append(c.integer())
    c.expect("]")
    return tuple(out)


def _coord_swizzle(c: _Text) -> CoordSwizzle:
    bits, base_row = _integers(c, 2)
    c.expect(",")
    row = _path(c)
    c.expect(",")
    base_col = c.integer()
    c.expect(",")
    col = _path(c)
    c.expect(">")
    return CoordSwizzle(bits, base_row, row, base_col, col)


def _bracket(c: _Text) -> Any:
    """Return a tile, or the composed layout which stands in brackets as an outer part."""
    entries = [_value(c)]
    while c.accept("|"):
        entries.append(_value(c))
    c.expect("]")
    if len(entries) == 1 and isinstance(entries[0], ComposedLayout):
        return entries[0]
    return Tile(entries)


def _tuple(c: _Text) -> Any:
    if not c.accept("("):
        return _leaf(c)
    if c.accept(")"):
        return ()
    out = [_tuple(c)]
    while c.accept(","):
        out.append(_tuple(c))
    c.expect(")")
    return tuple(out)


def _leaf(c: _Text) -> Any:
    if c.accept("*"):
        return None
    if c.peek("?"):
        width, div = c.match(_SYM, "a dynamic leaf").groups()
        value: Any = Sym(64 if width == "i64" else 32, int(div or 1))
    else:
        value = c.integer()
    modes = []
    while c.at < len(c.text) and c.text[c.at] == "E":
        c.at += 1
        modes.append(c.integer())
    return Basis(value, modes) if modes else value


def _type(c: _Text) -> Any:
    c.accept("!fly.")
    name = c.match(re.compile(r"\w+"), "a type name").group()
    c.expect("<")
    if name in _WRAPPERS:
        value = _value(c)
    elif name == "coord_tensor":
        base = _tuple(c)
        c.expect(",")
        value = CoordTensor(base, _value(c))
    elif name in ("ptr", "memref"):
        value = _pointer_type(c, name)
    else:
        raise c.fail("int_tuple, layout, composed_layout, swizzle, tile, ptr, memref or coord_tensor")
    c.expect(">")
    return value


def _space(c: _Text) -> str:
    c.skip()
    start = c.at
    name = c.match(_NAME, f"a memory space, one of {', '.join(SPACES)}").group()
    if name not in SPACES:
        c.at = start
        raise c.fail(f"one of the memory spaces {', '.join(SPACES)}, got {name},")
    return name


def _pointer_type(c: _Text, name: str) -> Any:
    elem = c.match(_NAME, "an element type").group()
    c.expect(",")
    space = _space(c)
    layout, align, swizzle = None, 0, None
    while c.accept(","):
        if c.accept("align<"):
            align = c.integer()
            if align <= 0 or (align % element_bytes(elem) and element_bytes(elem) % align):
                raise c.fail(f"a multiple or a divisor of the {element_bytes(elem)} bytes of {elem}")
            c.expect(">")
        elif name == "memref" and layout is None:
            layout = _value(c)
        else:
            swizzle = _value(c)
    ptr = Ptr(elem, space, align, swizzle)
    return ptr if name == "ptr" else MemRef(ptr, layout)

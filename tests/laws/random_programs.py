"""Random programs with nested control flow, as Python source: the text of one function over three integers.

Values stay in 0..255 (every result is masked), so Python integers and i32 agree. Every loop ends: `for` bounds are masked, a
`while` counts a variable of its own. A program mixes carried scalars, a flag, a dict with a tuple and a `@fx.struct` in it, a struct, a
dataclass, a named tuple, a namespace and a list; break, continue and return stand under conditions at any depth (loops nest three deep); helpers,
methods and nested functions have control flow of their own; expressions bind names and call functions that change containers.
`fx` is a name of the text: the package where it is traced, `PLAIN` where Python runs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace


def _plain_struct(cls: type) -> type:
    """Stand in for `@fx.struct`: an immutable record with `replace`."""
    cls = dataclass(frozen=True)(cls)
    cls.replace = replace
    return cls


PLAIN = SimpleNamespace(struct=_plain_struct, Int32=int)

PRELUDE = '''
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple


@fx.struct
class State:
    low: fx.Int32
    high: fx.Int32


class Span(NamedTuple):
    first: object
    last: object


@dataclass
class Pair:
    u: object
    v: object


def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


def steps(x, n):
    t = 0
    for i in range(n & 3):
        if (x ^ i) & 1 == 1:
            continue
        t = (t + x + i) & 255
        if t > 200:
            break
    return t


def poke(xs, q, y):
    if y > 3:
        xs[0] = (xs[0] + y) & 255
    for i in range(y & 1):
        q.v = (q.v ^ xs[0]) & 255


class Box:
    def __init__(self, x):
        self.x = x

    def bump(self, y):
        if y > self.x:
            self.x = (self.x + 3) & 255
        else:
            self.x = (self.x ^ y) & 255
        return self.x
'''

_RESULT = "(a, b, c, 1 if f else 0, d['x'], d['y'][0], d['y'][1], p.u, p.v, s.w, xs[0], xs[1], box.x, total, pokes[0], q.v, st.low, st.high, d['z'].low, d['z'].high, span.first, span.last, calls[0])"

RESULTS = 23


@dataclass
class Writer:
    """Writes one program; `pick(k)` returns a number in 0..k-1."""

    pick: Callable[[int], int]
    lines: list[str] = field(default_factory=list)
    names: int = 0
    budget: int = 22

    def one_of(self, *options):
        return options[self.pick(len(options))]

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- expressions ---------------------------------------------------------------------------------------------

    def atom(self) -> str:
        return self.one_of(
            "a", "b", "c", "n", "m", "k", "d['x']", "d['y'][0]", "d['y'][1]", "p.u", "p.v", "s.w", "xs[0]", "xs[1]",
            "box.x", "st.low", "st.high", "d['z'].low", "span.last", "0", "1", "3", "17", "200",
        )  # fmt: skip

    def value(self, depth: int = 2) -> str:
        if depth == 0:
            return self.atom()
        kind = self.pick(11)
        x = self.value(depth - 1)
        if kind < 3:
            return self.atom()
        y = self.value(depth - 1)
        if kind == 3:
            return f"(({x} + {y}) & 255)"
        if kind == 4:
            return f"(({x} - {y}) & 255)"
        if kind == 5:
            return f"(({x} * {y}) & 255)"
        if kind == 6:
            return f"({x} if {self.test(depth - 1)} else {y})"
        if kind == 7:
            return self.one_of(f"clamp({x}, 3, {y})", f"steps({x}, {y})", f"({x} // 3)", f"({x} % 7)")
        if kind == 8:
            return self.one_of(f"(c := {x})", f"box.bump({x})", f"count({x})")
        if kind == 9:
            return self.one_of(f"max({x}, {y})", f"sum([{x}, {y}][i] for i in (0, 1)) & 255", f"(lambda x: x if x > 7 else {self.atom()})({x})")
        return f"({x} ^ {y})"

    def test(self, depth: int = 2) -> str:
        if depth <= 0:
            return self.compare(0)
        kind = self.pick(8)
        if kind == 0:
            return f"({self.test(depth - 1)} and {self.test(depth - 1)})"
        if kind == 1:
            return f"({self.test(depth - 1)} or {self.test(depth - 1)})"
        if kind == 2:
            return f"(not {self.test(depth - 1)})"
        if kind == 3:
            return f"({self.value(1)} < {self.value(1)} <= {self.value(1)})"
        if kind == 4:
            return "f"
        return self.compare(depth - 1)

    def compare(self, depth: int) -> str:
        op = self.one_of("<", "<=", ">", ">=", "==", "!=")
        return f"{self.value(depth)} {op} {self.value(depth)}"

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, depth: int, nest: int, loops: int) -> None:
        for _ in range(1 + self.pick(3)):
            self.statement(depth, nest, loops)

    def statement(self, depth: int, nest: int, loops: int) -> None:
        self.budget -= 1
        kind = self.pick(19)
        if self.budget < 0 or nest == 0 or kind < 7:
            self.simple(depth, loops)
        elif kind < 10:
            self.branch(depth, nest, loops)
        elif kind < 12:
            self.for_loop(depth, nest)
        elif kind < 14:
            self.while_loop(depth, nest)
        elif kind == 14:
            self.both(depth)
        elif kind == 15:
            self.python_loop(depth, nest)
        elif kind == 16:
            self.match(depth, nest, loops)
        elif kind == 17:
            self.match_parts(depth, nest, loops)
        else:
            self.write(depth, "try:")
            self.block(depth + 1, nest - 1, loops)
            self.write(depth, "finally:")
            self.write(depth + 1, "s.w ^= 1")

    def simple(self, depth: int, loops: int) -> None:
        kind = self.pick(20)
        if kind == 0 and loops:
            return self.jump(depth, self.one_of("break", "continue"))
        if kind == 1:
            return self.jump(depth, f"return {_RESULT}")
        if kind == 2:
            return self.write(depth, f"f = {self.test()}")
        if kind == 3:
            return self.write(depth, f"d['y'] = ({self.value()}, d['y'][0])")
        if kind == 4:
            return self.write(depth, f"p = Pair({self.value()}, p.u)")
        if kind == 5:
            return self.write(depth, f"add({self.value()})")
        if kind == 6:
            return self.write(depth, f"a, b = b, {self.value()}")
        if kind == 7:
            return self.write(depth, self.one_of(f"box.bump({self.value()})", f"poke(pokes, q, {self.value()})"))
        if kind == 16:
            part = self.one_of("low", "high")
            return self.write(depth, self.one_of(f"st = st.replace({part}={self.value()})", f"d['z'] = d['z'].replace({part}={self.value()})"))
        if kind == 17:
            return self.write(depth, self.one_of(f"st = State(low={self.value()}, high=st.low)", "st, d['z'] = d['z'], st"))
        if kind == 18:
            return self.write(depth, self.one_of(f"span = Span({self.value()}, span.first)", f"span = span._replace(last={self.value()})"))
        if kind == 19:
            return self.write(depth, f"a, *rest = {self.value()}, {self.value()}, b; b, c = rest")
        target = self.one_of("a", "b", "c", "d['x']", "p.v", "p.u", "s.w", "xs[0]", "xs[1]")
        if kind < 11:
            return self.write(depth, f"{target} ^= {self.value()}")
        self.write(depth, f"{target} = {self.value()}")

    def jump(self, depth: int, jump: str) -> None:
        if self.pick(4):
            self.write(depth, f"if {self.test(1)}:")
            depth += 1
        self.write(depth, jump)

    def branch(self, depth: int, nest: int, loops: int) -> None:
        self.write(depth, f"if {self.test()}:")
        self.block(depth + 1, nest - 1, loops)
        if self.pick(3) == 0:
            self.write(depth, f"elif {self.test(1)}:")
            self.block(depth + 1, nest - 1, loops)
        if self.pick(2):
            self.write(depth, "else:")
            self.block(depth + 1, nest - 1, loops)

    def for_loop(self, depth: int, nest: int) -> None:
        i = self.fresh()
        self.write(depth, f"for {i} in range({self.value(1)} & {self.one_of(3, 7)}):")
        self.write(depth + 1, f"{self.one_of('a', 'b', 'c')} ^= {i}")
        self.block(depth + 1, nest - 1, 1)
        self.loop_else(depth, nest)

    def loop_else(self, depth: int, nest: int) -> None:
        if self.pick(4) == 0:
            self.write(depth, "else:")
            self.block(depth + 1, nest - 1, 0)

    def while_loop(self, depth: int, nest: int) -> None:
        i = self.fresh()
        limit = self.value(1) if self.pick(3) else "5"
        self.write(depth, f"{i} = 0")
        if self.pick(4) == 0:
            self.write(depth, "while True:")
            self.write(depth + 1, f"if {i} >= ({limit} & 7):")
            self.write(depth + 2, "break")
        else:
            extra = self.one_of("", f" and {self.test(1)}")
            self.write(depth, f"while {i} < ({limit} & 7){extra}:")
        self.write(depth + 1, f"{i} += 1")
        self.block(depth + 1, nest - 1, 1)

    def both(self, depth: int) -> None:
        t = self.fresh()
        self.write(depth, f"if {self.test(1)}:")
        self.write(depth + 1, f"{t} = {self.value()}")
        self.write(depth, "else:")
        self.write(depth + 1, f"{t} = {self.value()}")
        self.write(depth, f"{self.one_of('a', 'b', 'xs[1]')} = {t}")

    def python_loop(self, depth: int, nest: int) -> None:
        i = self.fresh()
        self.write(depth, f"for {i} in (0, 1, 2):")
        self.write(depth + 1, f"xs[{i} & 1] = (xs[{i} & 1] + {i}) & 255")
        self.block(depth + 1, nest - 1, 1)
        self.loop_else(depth, nest)

    def match(self, depth: int, nest: int, loops: int) -> None:
        self.write(depth, f"match {self.value(1)} & 3:")
        self.write(depth + 1, f"case {self.one_of('0', '1 | 2')}:")
        self.block(depth + 2, nest - 1, loops)
        self.write(depth + 1, f"case 3 if {self.test(1)}:")
        self.block(depth + 2, nest - 1, loops)
        self.write(depth + 1, "case _:")
        self.block(depth + 2, nest - 1, loops)

    def match_parts(self, depth: int, nest: int, loops: int) -> None:
        self.write(depth, f"match ({self.value(1)} & 1, {self.one_of('p', 'd', 'xs')}):")
        self.write(depth + 1, f"case ({self.one_of('0', '1')}, Pair(u={self.one_of('3', '17')}) | [_, 7]):")
        self.block(depth + 2, nest - 1, loops)
        self.write(depth + 1, f"case (a, {{'x': b}}) if {self.test(1)}:")
        self.block(depth + 2, nest - 1, loops)
        self.write(depth + 1, "case (b, [a, *_]):")
        self.block(depth + 2, nest - 1, loops)
        self.write(depth + 1, "case (b, _):")
        self.block(depth + 2, nest - 1, loops)

    def program(self) -> str:
        self.write(0, PRELUDE)
        self.write(0, "def program(n, m, k):")
        for line in (
            "a, b, c, f, total = n, 0, k, False, 0",
            "d = {'x': 1, 'y': (m, 2), 'z': State(low=n, high=m)}",
            "st, span = State(low=k, high=1), Span(m, 3)",
            "calls = [0]",
            "p = Pair(n, 5)",
            "s = SimpleNamespace(w=3)",
            "xs = [k, 7]",
            "box = Box(m)",
            "pokes, q = [k, n], Pair(n, m)",
            "def add(x):",
            "    nonlocal total",
            "    if x > 9:",
            "        total = (total + x) & 255",
            "def count(x):",
            "    calls[0] = (calls[0] + 1) & 255",
            "    return x",
        ):
            self.write(1, line)
        for _ in range(4):
            self.block(1, 3, 0)
        self.write(1, f"return {_RESULT}")
        return "\n".join(self.lines) + "\n"

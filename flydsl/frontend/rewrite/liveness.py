"""Which names are still read after a statement, and which at the start of a loop's body.

Marks each If, For and While node with `fly_live_out`, and loops with `fly_live_in` (live at the start of an
iteration, before the target is bound). Names that nested functions capture are live everywhere. Conservative: a
name is called dead only if no path reads it.
"""

import ast

from flydsl.frontend.rewrite.names import loads_of, names_in, stores_of
from flydsl.frontend.rewrite.return_ import RESULT, RETURNED


def mark_liveness(body: list[ast.stmt], always: set[str]) -> None:
    """Mark the statements of one function body; `always` are names that count as read everywhere."""
    _Liveness(always).block(body, set())


class _Liveness:
    def __init__(self, always: set[str]):
        self.always = always
        self.loops: list[tuple[set[str], set[str]]] = []  # live at (break, continue)
        self.handlers: set[str] = set()

    def block(self, stmts: list[ast.stmt], out: set[str]) -> set[str]:
        live = out
        for s in reversed(stmts):
            live = self.stmt(s, live) | self.handlers
        return live

    def stmt(self, s: ast.stmt, out: set[str]) -> set[str]:
        rule = getattr(self, "on_" + s.__class__.__name__, None)
        return self.plain(s, out) if rule is None else rule(s, out)

    def plain(self, s: ast.stmt, out: set[str]) -> set[str]:
        n = names_in(s)
        return (out - set(n.stores) | n.walrus & out) | set(n.loads)

    def on_If(self, s: ast.If, out: set[str]) -> set[str]:
        s.fly_live_out = out | self.always
        return self.block(s.body, out) | self.block(s.orelse, out) | loads_of(s.test)

    def on_For(self, s: ast.For, out: set[str]) -> set[str]:
        after = self.block(s.orelse, out) | out
        s.fly_live_out = after | self.always
        targets = stores_of(s.target)
        head = after
        for _ in range(2):
            self.loops.append((out, head))
            body_in = self.block(s.body, head)
            self.loops.pop()
            head = head | (body_in - targets)
        s.fly_live_in = (body_in - targets) | self.always
        return (head | loads_of(s.iter)) | loads_of(s.target)

    def on_While(self, s: ast.While, out: set[str]) -> set[str]:
        test = names_in(s.test)
        after = self.block(s.orelse, out) | out
        s.fly_live_out = after | self.always
        head = after | set(test.loads)
        for _ in range(2):
            self.loops.append((out, head))
            body_in = self.block(s.body, head)
            self.loops.pop()
            head = head | body_in
        s.fly_live_in = body_in | self.always
        return head

    def on_With(self, s: ast.With, out: set[str]) -> set[str]:
        live = self.block(s.body, out)
        for item in reversed(s.items):
            if item.optional_vars is not None:
                live = (live - stores_of(item.optional_vars)) | loads_of(item.optional_vars)
            live = live | loads_of(item.context_expr)
        return live | out  # the context manager may swallow an exception

    def on_Try(self, s: ast.Try, out: set[str]) -> set[str]:
        final = self.block(s.finalbody, out)
        caught: set[str] = set(final)
        for h in s.handlers:
            caught |= (self.block(h.body, final) - ({h.name} if h.name else set())) | loads_of(h.type)
        outer = self.handlers
        self.handlers = outer | caught
        live = self.block(s.body, self.block(s.orelse, final)) | caught
        self.handlers = outer
        return live

    on_TryStar = on_Try

    def on_Match(self, s: ast.stmt, out: set[str]) -> set[str]:
        live = set(out)
        for case in s.cases:
            body = self.block(case.body, out) | loads_of(case.guard)
            live |= (body - stores_of(case.pattern)) | loads_of(case.pattern)
        return live | loads_of(s.subject)

    def on_Return(self, s: ast.Return, out: set[str]) -> set[str]:
        return {RETURNED, RESULT} if hasattr(s, "fly_finish") else loads_of(s.value)

    def on_Break(self, s: ast.Break, out: set[str]) -> set[str]:
        return self.loops[-1][0] if self.loops else out

    def on_Continue(self, s: ast.Continue, out: set[str]) -> set[str]:
        return self.loops[-1][1] if self.loops else out

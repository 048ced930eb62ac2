"""`break`, `continue` and `return` under run-time conditions become flags.

A jump needs a flag if a statement between it and its target can be dynamic. Then the jump sets its flag, and
what follows it is guarded: where a branch of an `if` always jumps, the rest moves into the other branch (so a
guard clause is one `scf.if`); otherwise the rest becomes `if flag: flag = True / else: rest` (which tells the
merge that the first branch is dead). A flag that is static when the kernel is traced folds away, so Python
loops and static conditions behave as before. Loops test their `break` flag (see `for_`, `while_`).
"""

import ast

from flydsl.frontend.rewrite.break_continue import LoopFlags, flag_loop, flags_of_jump
from flydsl.frontend.rewrite.build import assign, constant, load, place
from flydsl.frontend.rewrite.return_ import RETURNED, finish_function, set_return
from flydsl.frontend.rewrite.static import may_be_dynamic

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def lower_jumps(body: list[ast.stmt], fresh, function: str, drops_value: bool = False) -> list[ast.stmt]:
    """Return a function body in which no jump leaves a statement that can be dynamic.

    `fresh(prefix)` makes a new name; `function` is the function's name; `drops_value`: what it returns is ignored.
    Function definitions inside are left alone.
    """
    scan = _Scan()
    scan.block(body, None, False)
    scan.spread()
    if not scan.flagged:
        return body
    lower = _Lower(fresh, scan, drops_value)
    lowered = lower.block(body, None)
    return finish_function(body, lowered, function, drops_value) if scan.returns else lowered


class _Loop:
    """A loop around the statement that is being scanned."""

    def __init__(self, node: ast.stmt, outer: "_Loop | None"):
        self.node, self.outer = node, outer
        self.dynamic = may_be_dynamic(node)  # or a dynamic statement stands between the loop and here
        self.breaks = self.continues = self.needs = self.returns = False


class _Scan:
    """Finds which loops need flags, and whether the returns do."""

    def __init__(self):
        self.loops: dict[ast.stmt, _Loop] = {}
        self.returns = False

    @property
    def flagged(self) -> bool:
        return self.returns or any(loop.needs for loop in self.loops.values())

    def block(self, stmts: list[ast.stmt], loop: _Loop | None, dynamic: bool, since: bool = False) -> None:
        """`dynamic`, `since`: under something dynamic in the function, in the innermost loop."""
        for s in stmts:
            self.stmt(s, loop, dynamic, since)

    def stmt(self, s: ast.stmt, loop: _Loop | None, dynamic: bool, since: bool) -> None:
        if isinstance(s, _SCOPES):
            return
        if isinstance(s, ast.Return):
            self._return(loop, dynamic)
        elif isinstance(s, (ast.Break, ast.Continue)):
            self._loop_jump(s, loop, since)
        elif isinstance(s, (ast.For, ast.While)):
            own = self.loops[s] = _Loop(s, loop)
            under = may_be_dynamic(s)
            self.block(s.body, own, dynamic or under, under)
            self.block(s.orelse, loop, dynamic or under, since or under)
        else:
            under = may_be_dynamic(s)
            for inner in blocks_of(s):
                self.block(inner, loop, dynamic or under, since or under)

    def spread(self) -> None:
        """Flag the jumps that come to stand behind the guards of flagged ones."""
        changed = True
        while changed:
            changed = False
            for loop in self.loops.values():
                if not (loop.needs or self.returns and loop.returns):
                    continue
                if loop.returns and not self.returns:
                    self.returns = changed = True
                outer = loop.outer
                if outer is not None and not outer.needs and any(_jumps(s) for s in loop.node.orelse):
                    outer.needs = changed = True

    def _loop_jump(self, s: ast.stmt, loop: _Loop, since: bool) -> None:
        loop.breaks |= isinstance(s, ast.Break)
        loop.continues |= isinstance(s, ast.Continue)
        loop.needs |= since

    def _return(self, loop: _Loop | None, dynamic: bool) -> None:
        self.returns |= dynamic
        while loop is not None:
            loop.returns = True
            loop = loop.outer


def blocks_of(s: ast.stmt) -> list[list[ast.stmt]]:
    """Return the statement lists of a compound statement."""
    found = [getattr(s, f) for f in ("body", "orelse", "finalbody") if getattr(s, f, None)]
    found += [h.body for h in getattr(s, "handlers", ())]
    found += [c.body for c in getattr(s, "cases", ())]
    return found


def _jumps(s: ast.stmt) -> bool:
    """Return whether a statement holds a break or continue of the loop around it."""
    if isinstance(s, (ast.Break, ast.Continue)):
        return True
    if isinstance(s, (ast.For, ast.While)):
        return any(_jumps(x) for x in s.orelse)
    return not isinstance(s, _SCOPES) and any(_jumps(x) for block in blocks_of(s) for x in block)


class _Lower:
    def __init__(self, fresh, scan: _Scan, drops_value: bool):
        self.fresh, self.scan, self.drops_value = fresh, scan, drops_value

    def block(self, stmts: list[ast.stmt], loop: LoopFlags | None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(stmts):
            if self.is_flagged(s, loop):
                return out + self.jump(s, loop)
            rest = stmts[i + 1 :]
            leaves = self.leaves(s, loop)
            if leaves and rest and isinstance(s, ast.If):
                rest = self.move_rest(s, rest, loop)
            out += self.stmt(s, loop)
            if leaves:
                return out + self.guarded(s, rest, loop)
        return out

    def is_flagged(self, s: ast.stmt, loop: LoopFlags | None) -> bool:
        if isinstance(s, ast.Return):
            return self.scan.returns
        return isinstance(s, (ast.Break, ast.Continue)) and loop is not None

    def jump(self, s: ast.stmt, loop: LoopFlags | None) -> list[ast.stmt]:
        if isinstance(s, ast.Return):
            flags = [] if loop is None else loop.on_return
            return set_return(s, self.drops_value) + place([assign(f, constant(True)) for f in flags], s)
        return flags_of_jump(s, loop)

    def leaves(self, s: ast.stmt, loop: LoopFlags | None) -> bool:
        """Return whether a flagged jump inside `s` leaves `s`."""
        if self.is_flagged(s, loop):
            return True
        if isinstance(s, _SCOPES):
            return False
        if isinstance(s, (ast.For, ast.While)):
            inner = self.scan.returns and self.scan.loops[s].returns
            return inner or any(self.leaves(x, loop) for x in s.orelse)
        return any(self.leaves(x, loop) for block in blocks_of(s) for x in block)

    def move_rest(self, s: ast.If, rest: list[ast.stmt], loop: LoopFlags | None) -> list[ast.stmt]:
        """Move the statements after an `if` into the branch that does not jump; return those that stay."""
        then_ends, else_ends = self.ends(s.body, loop), self.ends(s.orelse, loop)
        if then_ends and not else_ends:
            s.orelse = s.orelse + rest
        elif else_ends and not then_ends:
            s.body = s.body + rest
        elif not then_ends:
            return rest
        return []

    def ends(self, stmts: list[ast.stmt], loop: LoopFlags | None) -> bool:
        """Return whether a block always ends in a flagged jump."""
        for s in stmts:
            if self.is_flagged(s, loop):
                return True
            if isinstance(s, ast.If) and self.ends(s.body, loop) and self.ends(s.orelse, loop):
                return True
        return False

    def guarded(self, s: ast.stmt, rest: list[ast.stmt], loop: LoopFlags | None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        if isinstance(s, (ast.For, ast.While)) and loop is not None and self.scan.returns:
            flags = dict.fromkeys(loop.on_return)
            out += place([assign(f, load(RETURNED)) for f in flags], s)
        if rest:
            flag = RETURNED if loop is None else loop.skip
            out += place([ast.If(load(flag), [assign(flag, constant(True))], self.block(rest, loop))], rest[0], rest[0])
        return out

    def stmt(self, s: ast.stmt, loop: LoopFlags | None) -> list[ast.stmt]:
        if isinstance(s, _SCOPES):
            return [s]
        if isinstance(s, (ast.For, ast.While)):
            return self.loop(s, loop)
        for name in ("body", "orelse", "finalbody"):
            if getattr(s, name, None):
                setattr(s, name, self.block(getattr(s, name), loop))
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            part.body = self.block(part.body, loop)
        return [s]

    def loop(self, s: ast.For | ast.While, outer: LoopFlags | None) -> list[ast.stmt]:
        info = self.scan.loops[s]
        returns = self.scan.returns and info.returns
        flags = None
        if info.needs or returns:
            flags = LoopFlags.make(self.fresh, info.breaks or returns, info.continues, returns)
            s.fly_returns = returns
        s.body = self.block(s.body, flags)
        s.orelse = self.block(s.orelse, outer)
        return [s] if flags is None else flag_loop(s, flags, self.fresh)

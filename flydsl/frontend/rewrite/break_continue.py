"""`break` and `continue`.

Static   in a Python loop, under static conditions: unchanged
Dynamic  under a run-time condition or in a run-time loop: a flag per loop. `break` sets the loop's break flag,
         `continue` its skip flag; the rest of the iteration is guarded by the skip flag (see `jumps`). A
         run-time `for` with a break flag becomes an `scf.while`; in a loop that Python unrolls, later
         iterations are guarded by the flag.
"""

import ast

from flydsl.frontend.rewrite.build import assign, constant, load, place
from flydsl.utils.record import record


@record
class LoopFlags:
    """Names of a loop's flags: `skip` ends the iteration, `stop` the loop; one name unless it has both jumps."""

    skip: str
    stop: str | None
    on_return: tuple[str, ...]

    @classmethod
    def make(cls, fresh, breaks: bool, continues: bool, returns: bool) -> "LoopFlags":
        stop = fresh("break") if breaks else None
        skip = fresh("skip") if continues or stop is None else stop
        return cls(skip, stop, tuple(dict.fromkeys((skip, stop))) if returns else ())


def flags_of_jump(s: ast.Break | ast.Continue, loop: LoopFlags) -> list[ast.stmt]:
    """Return the assignments that stand for a jump."""
    names = (loop.skip,) if isinstance(s, ast.Continue) else dict.fromkeys((loop.skip, loop.stop))
    return place([assign(n, constant(True)) for n in names], s)


def flag_loop(s: ast.For | ast.While, flags: LoopFlags, fresh) -> list[ast.stmt]:
    """Return a loop with its flags set up: `stop` before the loop, `skip` in each iteration."""
    s.fly_stop, s.fly_skip = flags.stop, flags.skip
    if flags.skip != flags.stop:
        s.body = place([assign(flags.skip, constant(False))], s, s) + s.body
    if flags.stop is None:
        return [s]
    setup = place([assign(flags.stop, constant(False))], s, s)
    if isinstance(s, ast.While):
        s.test = _and_not(flags.stop, s.test)
    else:
        _guard_iterations(s, flags.stop, fresh)
    rest = s.orelse
    s.orelse = []
    if rest:
        unless = ast.If(load(flags.stop), [ast.Pass()], rest)
        s.fly_had_else = True
        return [*setup, s, *place([unless], rest[0], rest[0])]
    return [*setup, s]


def _guard_iterations(s: ast.For, stop: str, fresh) -> None:
    """Guard each iteration by the flag; the target is bound inside, so that it keeps its last value."""
    value = fresh("value")
    bind = place([ast.Assign([s.target], load(value))], s.target)
    unless = ast.If(load(stop), [assign(stop, constant(True))], [*bind, *s.body])
    s.target = place([ast.Name(value, ast.Store())], s.target)[0]
    s.body = place([unless], s.target)


def _and_not(flag: str, test: ast.expr) -> ast.expr:
    going = ast.UnaryOp(ast.Not(), load(flag))
    if isinstance(test, ast.Constant) and test.value:
        return place([going], test)[0]
    return place([ast.BoolOp(ast.And(), [going, test])], test)[0]

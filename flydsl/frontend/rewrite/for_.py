"""`for`.

Static   over anything but a call of `range`: a Python loop, unrolled. In a plain helper also `range` over
         static bounds
Dynamic  `for i in range(...)` (also `fx.range`) is an scf.for over 32-bit integers, with a break an scf.while.
         Variables and places that the body changes are carried; `i` is carried only if it has a value before
         the loop and is read after it. With `init=`: the state is explicit, `res = yield [...]` ends the body
         and gives the final state.
"""

import ast

from flydsl.diag import InitLoopJump, YieldMissing
from flydsl.frontend.rewrite.build import (
    assign,
    assign_all,
    attribute,
    constant,
    load,
    locals_call,
    method,
    place,
    runtime,
    store,
    unbind_missing,
    when,
)
from flydsl.frontend.rewrite.names import names_in, stores_of
from flydsl.frontend.rewrite.static import init_loop, is_range_loop


def rewrite(node: ast.For, rw) -> list[ast.stmt]:
    """Return the statements that stand for a `for`."""
    if not is_range_loop(node):
        return _python_loop(node, rw)
    if init_loop(node) and hasattr(node, "fly_skip"):
        raise InitLoopJump(at=rw.span(node))
    result = _split_yield(node, rw) if init_loop(node) else None
    site, names = _site(node, rw, result)
    me, value = rw.fresh("for"), rw.fresh("value")
    before = set(rw.bound)
    opened = [n for n in site.carried if n not in before]
    begin = [assign_all(site.carried, method(me, "enter", locals_call())), *unbind_missing(opened)]
    begin.append(assign(value, attribute(load(me), "target")))
    is_open = attribute(load(me), "open")

    rw.bound = before | set(stores_of(node.target))
    header = [when(is_open, begin), ast.Assign([rw.expr(node.target)], load(value))]
    body, _ = rw.branch(node.body, rw.bound)
    rw.bound = before
    missing = [n for n in names if n not in before]
    end: list[ast.stmt] = [assign_all(names, method(me, "leave", locals_call())), *unbind_missing(missing)]
    if result is not None:
        end.insert(0, ast.Expr(method(me, "yield_", rw.expr(result.value))))
        taken = ast.Assign(result.targets, attribute(load(me), "results"))
        end += [when(attribute(load(me), "done"), [taken])] if result.targets else []
        place(end, result.node)
        rw.bound = before | {n for t in result.targets for n in stores_of(t)}
    tail = [when(is_open, end), *_stop_python_loop(site.stop)]

    iteration = node.iter
    call = runtime("for_", constant(rw.add(site)), rw.expr(iteration.func))
    call.args += [rw.expr(a) for a in iteration.args]
    call.keywords = [ast.keyword(k.arg, rw.expr(k.value)) for k in iteration.keywords]
    loop = ast.For(store(value), load(me), [*place(header, node, iteration), *body, *place(tail, node, iteration)], [])
    orelse, _ = rw.branch(node.orelse, rw.bound)
    return [*place([assign(me, call), loop], node, iteration), *orelse]


def _python_loop(node: ast.For, rw) -> list[ast.stmt]:
    node.iter, node.target = rw.expr(node.iter), rw.expr(node.target)
    before = set(rw.bound)
    node.body, _ = rw.branch(node.body, before | stores_of(node.target))
    node.orelse, _ = rw.branch(node.orelse, before)
    node.body += place(_stop_python_loop(getattr(node, "fly_stop", None)), node, node.iter)
    rw.bound = before
    return [node]


def _stop_python_loop(stop: str | None) -> list[ast.stmt]:
    """Return `if stop is True: break`: a flag that is static ends a loop that Python runs."""
    if stop is None:
        return []
    return [when(ast.Compare(load(stop), [ast.Is()], [constant(True)]), [ast.Break()])]


def _site(node: ast.For, rw, result: "_Yield | None") -> tuple:
    inside = names_in([ast.Assign([node.target], constant(None)), *node.body])
    names = rw.own_names(inside)
    results = set() if result is None else {n for t in result.targets for n in stores_of(t)}
    read = set(names_in(node.body).loads)
    needed = node.fly_live_in | (node.fly_live_out - results)
    live = frozenset(n for n in names if n in needed)
    checked = frozenset() if result is not None else frozenset(n for n in names if n not in live and n not in read)
    checked = frozenset(n for n in checked if not n.startswith("_fly_") and n not in stores_of(node.target))
    site = rw.make_site("for", node, node.iter, names, live, checked, inside)
    rw.add_flags(site, node)
    site.has_tuple_target = isinstance(node.target, (ast.Tuple, ast.List))
    if result is not None:
        site.changes = site.handed_on = ()
    site.spans = rw.spans_of(inside)
    site.carried = rw.carried(site)
    return site, names


class _Yield:
    """The yield at the end of a loop with init=: `targets = yield value`."""

    def __init__(self, node: ast.stmt, targets: list[ast.expr], value: ast.expr):
        self.node, self.targets, self.value = node, targets, value


def _split_yield(node: ast.For, rw) -> _Yield:
    """Take the final yield off the body."""
    last = node.body[-1]
    found = _as_yield(last)
    if found is None:
        raise YieldMissing(
            at=rw.span(last),
            problem="this loop has init=, but its body does not end with a yield",
            notes=_begins(node, rw),
        )
    rest = node.body[:-1]
    for inner in (x for s in rest for x in _yields(s)):
        raise YieldMissing(
            at=rw.span(inner),
            problem="the yield of a loop with init= must be its last statement",
            notes=_begins(node, rw),
        )
    node.body = rest
    return found


def _begins(node: ast.For, rw) -> tuple[str, ...]:
    return (f"the loop begins at {rw.span(node)}",)


def _as_yield(s: ast.stmt) -> _Yield | None:
    value = getattr(s, "value", None)
    if not isinstance(value, ast.Yield) or value.value is None:
        return None
    if isinstance(s, ast.Expr):
        return _Yield(s, [], value.value)
    if isinstance(s, ast.Assign):
        return _Yield(s, s.targets, value.value)
    return _Yield(s, [s.target], value.value) if isinstance(s, ast.AnnAssign) else None


def _yields(s: ast.stmt) -> list[ast.AST]:
    """Return the yields of a statement that belong to the loop around it."""
    if isinstance(s, (ast.FunctionDef, ast.ClassDef)) or init_loop(s):
        return []
    if isinstance(s, ast.expr):
        return [n for n in ast.walk(s) if isinstance(n, ast.Yield)]
    return [y for child in ast.iter_child_nodes(s) for y in _yields(child)]

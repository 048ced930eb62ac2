"""One function of the user, statement by statement: each construct has its own file here, found by node class.

Order: simple matches become if-chains, jumps become flags, liveness is marked, then statements and expressions
are rewritten. Statements stay in the user's function and scope: no closures are made, so names, `nonlocal`,
walrus and line numbers mean what they did.
"""

import ast
from typing import Any

from flydsl.diag import Span
from flydsl.frontend.rewrite import boolop, call, compare, for_, guard, if_, ifexp, protect, while_
from flydsl.frontend.rewrite.build import RUNTIME, load, place, runtime
from flydsl.frontend.rewrite.jumps import lower_jumps
from flydsl.frontend.rewrite.liveness import mark_liveness
from flydsl.frontend.rewrite.match_ import lower_matches
from flydsl.frontend.rewrite.names import Names, names_in, parameters, stores_of
from flydsl.frontend.rewrite.return_ import RETURNED
from flydsl.frontend.rewrite.static import init_loop
from flydsl.frontend.site import Site

_PASSING = ("_fly_value", "_fly_subject")  # read only where they were bound
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Unit:
    """What all functions of one definition share: file, globals, sites, and the counter of made-up names."""

    def __init__(self, file: str, globals_: dict[str, Any], free: set[str], sites: list[Site], helper: bool = False):
        self.file, self.globals, self.free, self.sites, self.helper = file, globals_, free, sites, helper
        self.made = 0

    def fresh(self, prefix: str) -> str:
        self.made += 1
        return f"_fly_{prefix}{self.made}"


class Rewriter:
    """Rewrites the body of one function scope."""

    def __init__(self, unit: Unit, function: str, outer_locals: set[str]):
        self.unit, self.function = unit, function
        self.fresh = unit.fresh
        self.globals = unit.globals
        self.locals = outer_locals
        self.bound: set[str] = set()
        self.deleted: set[str] = set()
        self.global_names: set[str] = set()
        self.rebound: set[str] = set()
        self.changed_inside: set[str] = set()
        self.functions: dict[str, tuple[set[tuple], set[str]]] = {}
        self.in_try = unit.helper
        self.guards = False  # statements keep their errors, see `guard`
        self.in_expression_scope = False  # in a lambda or a comprehension

    # --- functions -----------------------------------------------------------------------------------------------

    def body_of(self, node: ast.FunctionDef, drops_value: bool = False) -> None:
        """Rewrite the body of a function definition in place; `drops_value`: its result is ignored."""
        body = lower_jumps(lower_matches(node.body, self.fresh), self.fresh, self.function, drops_value)
        names = names_in(body)
        own = set(names.stores) | parameters(node.args)
        self.locals = self.locals | own
        self.global_names = names.globals
        self.rebound = names.rebound_inside
        self.changed_inside = names.changed_inside
        self.functions = names.functions
        self.deleted = names.deleted
        always = names.captured | names.rebound_inside | names.nonlocals
        mark_liveness(body, own | set(names.loads) if names.sees_all else always)
        self.bound = parameters(node.args) - self.deleted
        node.body = _with_nonlocals(self.block(body), names.rebound_inside - own - names.nonlocals)

    def function_def(self, node: ast.FunctionDef) -> list[ast.stmt]:
        node.decorator_list = [self.expr(d) for d in node.decorator_list]
        node.args.defaults = [self.expr(d) for d in node.args.defaults]
        node.args.kw_defaults = [None if d is None else self.expr(d) for d in node.args.kw_defaults]
        if not (Names(memoise=False).add(node.body).has_yield and is_generator(node)):
            Rewriter(self.unit, node.name, self.locals).body_of(node)
        self.bound.add(node.name)
        return [node]

    def class_def(self, node: ast.ClassDef) -> list[ast.stmt]:
        for i, s in enumerate(node.body):
            if isinstance(s, ast.FunctionDef):
                node.body[i : i + 1] = Rewriter(self.unit, node.name, self.locals).function_def(s)
        self.bound.add(node.name)
        return [node]

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        """Return rewritten statements; `bound` follows what they surely bind."""
        out: list[ast.stmt] = []
        for s in stmts:
            new = self.statement(s)
            out += guard.guarded(new, self.fresh("guard")) if self.guards and new else new
        return out

    def statement(self, s: ast.stmt) -> list[ast.stmt]:
        rule = _STATEMENTS.get(s.__class__)
        if rule is not None:
            return rule(s, self)
        self.bound |= stores_of(s) - self.deleted - self.global_names if s.__class__ in _BINDING else set()
        self.visit_fields(s)
        return [s]

    def branch(self, stmts: list[ast.stmt], bound: set[str]) -> tuple[list[ast.stmt], set[str]]:
        """Return rewritten statements that start with `bound`, and what is bound after them."""
        self.bound = set(bound)
        out = self.block(stmts)
        return out, self.bound

    def plain_compound(self, s: ast.stmt) -> list[ast.stmt]:
        """A statement with blocks that has no rule of its own."""
        before = set(self.bound)
        for case in getattr(s, "cases", ()):
            case.guard = None if case.guard is None else self.expr(case.guard)
            case.body, _ = self.branch(case.body, before | stores_of(case.pattern))
        if hasattr(s, "subject"):
            s.subject = self.expr(s.subject)
        self.bound = before
        return [s]

    # --- expressions ---------------------------------------------------------------------------------------------

    def expr(self, node: Any) -> Any:
        """Return an expression with its operators, conditional expressions and calls rewritten."""
        rule = _EXPRESSIONS.get(node.__class__)
        if rule is not None:
            return rule(node, self)
        self.visit_fields(node)
        return node

    def visit_fields(self, node: ast.AST) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if value.__class__ is list:
                setattr(node, name, [self.expr(v) if isinstance(v, ast.AST) else v for v in value])
            elif isinstance(value, ast.AST) and name != "annotation":
                setattr(node, name, self.expr(value))

    def is_local(self, name: str) -> bool:
        """Return whether a name is a variable of this or an enclosing function."""
        return name in self.locals or name in self.unit.free

    # --- sites ---------------------------------------------------------------------------------------------------

    def add(self, site: Site) -> int:
        self.unit.sites.append(site)
        return len(self.unit.sites) - 1

    def own_names(self, names: Names) -> tuple[str, ...]:
        """Return the variables of this function that some code binds, itself or through a nested function."""
        inner = self.rebound if names.has_call else ()
        found = dict.fromkeys([*names.stores, *sorted(inner)])
        return tuple(n for n in found if n not in self.global_names and not n.startswith(_PASSING))

    def make_site(
        self, construct: str, node: ast.stmt, end: ast.expr, names: tuple, live, checked, inside: Names
    ) -> Site:
        site = Site(construct, self.span(node, end), names, live, checked)
        fixed = {n for n in (*inside.loads, *inside.stores) if self._is_fixed(n)}
        site.changes = tuple(c for c in inside.changes if c[0] not in fixed)
        if inside.has_call:
            site.handed_on = tuple(sorted((inside.arguments | self.changed_inside) - fixed))
            site.nested_changes = self._changes_of_functions(inside)
        seen = dict.fromkeys([*inside.loads, *(c[0] for c in site.changes), *site.handed_on])
        site.watch = tuple(n for n in seen if n not in fixed)
        site.globals = self.globals
        site.assigned_globals = tuple(n for n in inside.stores if n in self.global_names)
        return site

    def _is_fixed(self, name: str) -> bool:
        """Return whether a name is that of a builtin, a module or a thing of a library."""
        if self.is_local(name) or name in self.global_names:
            return False
        return name not in self.globals or call.is_library(self.globals[name], True)

    def _changes_of_functions(self, inside: Names) -> tuple[tuple, ...]:
        """Return the places that nested functions change which some code names, or which those name in turn."""
        found: set[tuple] = set()
        seen: set[str] = set()
        todo = set(inside.loads)
        while todo:
            name = todo.pop()
            if name in self.functions and name not in seen:
                seen.add(name)
                changes, loads = self.functions[name]
                found |= changes
                todo |= loads
        return tuple(sorted(found, key=str))

    def add_flags(self, site: Site, node: ast.stmt) -> None:
        """Tell a loop's site about the flags of its jumps."""
        site.stop = getattr(node, "fly_stop", None)
        returns = (RETURNED,) if getattr(node, "fly_returns", False) else ()
        site.resets = tuple(n for n in (site.stop, *returns) if n is not None)
        if site.stop is not None and site.stop not in node.fly_live_out:
            site.live -= {site.stop}
            site.checked -= {site.stop}

    def carried(self, site: Site) -> tuple[str, ...]:
        return tuple(n for n in site.names if n in site.live or n in site.checked or n in site.resets)

    def span(self, node: ast.AST, end: ast.AST | None = None) -> Span:
        last = end or node
        same_line = last.end_lineno == node.lineno
        end_column = last.end_col_offset + 1 if same_line else 0
        return Span(self.unit.file, node.lineno, node.col_offset + 1, end_column, self.function)

    def spans_of(self, names: Names) -> dict[str, Span]:
        """Return where names are bound, or changed in place, for the last time."""
        calls_first = sorted(names.changes.items(), key=lambda change: not _is_call(*change[0][1:]))
        spans = {key[0]: self.span(node) for key, node in calls_first}
        spans.update({name: self.span(node) for name, node in names.stores.items() if hasattr(node, "lineno")})
        return spans


def _is_call(kind: str, key: Any) -> bool:
    return kind == "call" or kind == "path" and key[-1][0] == "call"


def _with_nonlocals(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """Return a body that declares what functions nested in it rebind further out: regions bind it here too."""
    if not names:
        return body
    docs = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
    return [*body[:docs], *place([ast.Nonlocal(sorted(names))], body[0], body[0]), *body[docs:]]


def explain_errors(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a function body in which a NameError or RecursionError is explained by the regions around it."""
    doc = body[:1] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else []
    rest = body[len(doc) :]
    if not rest:
        return body
    error = "_fly_error"
    caught = ast.Attribute(load(RUNTIME), "Explained", ast.Load())
    handler = ast.ExceptHandler(caught, error, [ast.Raise(runtime("explained", load(error)), None)])
    place([handler], rest[-1], rest[-1])
    return doc + place([ast.Try(rest, [handler], [], [])], rest[0], rest[-1])


def is_generator(node: ast.FunctionDef) -> bool:
    """Return whether a function has a yield that is not the one of a loop with init=."""
    return any(_has_yield(s) for s in node.body)


def _has_yield(node: ast.AST) -> bool:
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True
    if isinstance(node, ast.For) and init_loop(node):
        return False
    return any(_has_yield(c) for c in ast.iter_child_nodes(node))


def _lambda(node: ast.Lambda, rw: Rewriter) -> ast.expr:
    outer = rw.locals
    node.args.defaults = [rw.expr(d) for d in node.args.defaults]
    rw.locals = outer | parameters(node.args)
    around, rw.in_expression_scope = rw.in_expression_scope, True
    node.body = rw.expr(node.body)
    rw.locals, rw.in_expression_scope = outer, around
    return node


def _comprehension(node: ast.expr, rw: Rewriter) -> ast.expr:
    outer = rw.locals
    rw.locals = outer | stores_of([g.target for g in node.generators])
    around, rw.in_expression_scope = rw.in_expression_scope, True
    rw.visit_fields(node)
    rw.locals, rw.in_expression_scope = outer, around
    return node


def _unary(node: ast.UnaryOp, rw: Rewriter) -> ast.expr:
    if isinstance(node.op, ast.Not):
        return boolop.rewrite_not(node, rw)
    node.operand = rw.expr(node.operand)
    return node


def _compare(node: ast.Compare, rw: Rewriter) -> ast.expr:
    if len(node.ops) > 1:
        return compare.rewrite(node, rw)
    rw.visit_fields(node)
    return node


def _leaf(node: ast.expr, rw: Rewriter) -> ast.expr:
    return node


_BINDING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Import, ast.ImportFrom)
_EXPRESSIONS = {
    ast.Name: _leaf,
    ast.Constant: _leaf,
    ast.BoolOp: boolop.rewrite,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.IfExp: ifexp.rewrite,
    ast.Call: call.rewrite,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
}
_STATEMENTS = {
    ast.If: if_.rewrite,
    ast.For: for_.rewrite,
    ast.While: while_.rewrite,
    ast.With: protect.rewrite_with,
    ast.Try: protect.rewrite_try,
    ast.Match: lambda s, rw: rw.plain_compound(s),
    ast.FunctionDef: lambda s, rw: rw.function_def(s),
    ast.ClassDef: lambda s, rw: rw.class_def(s),
    ast.AsyncFunctionDef: lambda s, rw: [s],
    ast.Global: lambda s, rw: [s],
    ast.Nonlocal: lambda s, rw: [s],
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = protect.rewrite_try

"""Which names a piece of a function binds, reads and changes in place; nested functions count by what they read."""

import ast
from dataclasses import dataclass, field

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SEES_ALL = frozenset(("locals", "vars", "eval", "exec", "dir"))


@dataclass
class Names:
    """Names of some statements or expressions.

    `stores` maps a bound name to its last binding node; dicts keep the order of first appearance. `captured`
    are names that nested functions read, `rebound_inside` those that nested functions declare nonlocal.
    `changes` are the places changed in place: (base name, kind, key), with kind "item", "attr" or "call" and
    key the static key, attribute or method, or None; or "path" and several (kind, key) from the base on.
    """

    stores: dict[str, ast.AST] = field(default_factory=dict)
    loads: dict[str, ast.AST] = field(default_factory=dict)
    changes: dict[tuple, ast.AST] = field(default_factory=dict)
    arguments: set[str] = field(default_factory=set)  # names that are arguments of calls
    changed_inside: set[str] = field(default_factory=set)  # names whose containers nested functions change
    functions: dict[str, tuple[set[tuple], set[str]]] = field(default_factory=dict)  # nested ones: (changes, names) outside of them
    captured: set[str] = field(default_factory=set)
    rebound_inside: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    sees_all: bool = False
    has_call: bool = False
    has_yield: bool = False
    walrus: set[str] = field(default_factory=set)  # bound by `:=`, possibly only under a condition
    memoise: bool = True

    def add(self, node: ast.AST | list) -> "Names":
        for item in node if isinstance(node, list) else (node,):
            _part(item, self, frozenset())
        return self

    def merge(self, other: "Names") -> None:
        """Add the names of a later statement."""
        self.stores.update(other.stores)
        _add_first(self.loads, other.loads)
        self.changes.update(other.changes)
        self.arguments |= other.arguments
        self.changed_inside |= other.changed_inside
        self.functions.update(other.functions)
        self.captured |= other.captured
        self.rebound_inside |= other.rebound_inside
        self.globals |= other.globals
        self.nonlocals |= other.nonlocals
        self.deleted |= other.deleted
        self.sees_all |= other.sees_all
        self.has_call |= other.has_call
        self.has_yield |= other.has_yield
        self.walrus |= other.walrus


def _add_first(first: dict, more: dict) -> None:
    for name, node in more.items():
        if name not in first:
            first[name] = node


def names_in(node: ast.AST | list) -> Names:
    """Return the names of a node or a list of nodes."""
    return Names().add(node)


def loads_of(node: ast.AST | list | None) -> set[str]:
    """Return the names that an expression or statement reads."""
    return set() if node is None else set(names_in(node).loads)


def stores_of(node: ast.AST | list) -> set[str]:
    return set(names_in(node).stores)


def _part(node: ast.AST, n: Names, hidden: frozenset[str]) -> None:
    """Collect from a part of something; the names of a statement are found once and kept on it."""
    if not (n.memoise and isinstance(node, ast.stmt)):
        _visit(node, n, hidden)
        return
    own = getattr(node, "fly_names", None)
    if own is None:
        own = node.fly_names = Names()
        _visit(node, own, hidden)
    n.merge(own)


def _visit(node: ast.AST, n: Names, hidden: frozenset[str]) -> None:
    """Collect from `node`; `hidden` are the targets of the comprehensions around it."""
    kind = node.__class__
    if kind is ast.Name:
        _name(node, n, hidden)
    elif kind is ast.Attribute or kind is ast.Subscript:
        if kind is ast.Attribute and isinstance(node.ctx, ast.Load):
            _visit(node.value, n, hidden)
            return
        if not isinstance(node.ctx, ast.Load):
            _change(node, n)
        _children(node, n, hidden)
    elif kind is ast.Call:
        n.has_call = True
        n.arguments.update(a.id for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Name))
        if isinstance(node.func, ast.Attribute):
            _changed(node.func.value, ("call", node.func.attr), node.func, n)
        elif isinstance(node.func, ast.Name):
            n.changes[(node.func.id, "call", "__call__")] = node.func  # an object that is called may change itself
        _children(node, n, hidden)
    elif kind in _COMPREHENSIONS:
        _comprehension(node, n, hidden)
    elif kind in _SCOPES:
        _scope(node, n, hidden)
    elif kind is ast.With:
        for item in node.items:
            _changed(item.context_expr, ("call", "__enter__"), item.context_expr, n)
        _children(node, n, hidden)
    elif kind is ast.NamedExpr:
        n.stores[node.target.id] = node
        n.walrus.add(node.target.id)
        _visit(node.value, n, hidden)
    else:
        _statement_binding(node, kind, n)
        _children(node, n, hidden)


def _children(node: ast.AST, n: Names, hidden: frozenset[str]) -> None:
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            for item in value:
                if isinstance(item, ast.AST):
                    _part(item, n, hidden)
        elif isinstance(value, ast.AST):
            _visit(value, n, hidden)


def _name(node: ast.Name, n: Names, hidden: frozenset[str]) -> None:
    if node.id in hidden:
        return
    if isinstance(node.ctx, ast.Load):
        n.loads.setdefault(node.id, node)
        n.sees_all = n.sees_all or node.id in _SEES_ALL
    else:
        n.stores[node.id] = node
        if isinstance(node.ctx, ast.Del):
            n.deleted.add(node.id)


def _statement_binding(node: ast.AST, kind: type, n: Names) -> None:
    if kind is ast.AugAssign and isinstance(node.target, ast.Name):
        n.loads.setdefault(node.target.id, node.target)
    elif kind is ast.alias:
        n.stores[(node.asname or node.name).split(".")[0]] = node
    elif kind is ast.ExceptHandler and node.name:
        n.stores[node.name] = node
    elif kind is ast.Global:
        n.globals.update(node.names)
    elif kind is ast.Nonlocal:
        n.nonlocals.update(node.names)
    elif kind is ast.Yield or kind is ast.YieldFrom:
        n.has_yield = True
    elif kind.__name__ in ("MatchAs", "MatchStar") and node.name:
        n.stores[node.name] = node
    elif kind.__name__ == "MatchMapping" and node.rest:
        n.stores[node.rest] = node


def _change(node: ast.Attribute | ast.Subscript, n: Names) -> None:
    last = ("attr", node.attr) if isinstance(node, ast.Attribute) else ("item", _static_key(node.slice))
    _changed(node.value, last, node, n)


def _changed(base: ast.expr, last: tuple, node: ast.AST, n: Names) -> None:
    """Note a change of what `base` names: of a variable, or of something that attributes and keys lead to from one."""
    path = [last]
    while isinstance(base, (ast.Attribute, ast.Subscript)):
        path.append(("attr", base.attr) if isinstance(base, ast.Attribute) else ("item", _static_key(base.slice)))
        base = base.value
    if isinstance(base, ast.Name):
        kind, key = last if len(path) == 1 else ("path", tuple(reversed(path)))
        n.changes[(base.id, kind, key)] = node


def _static_key(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)) else None


def _comprehension(node: ast.AST, n: Names, hidden: frozenset[str]) -> None:
    inner = names_in([g.target for g in node.generators])
    own = hidden | frozenset(inner.stores)
    before = set(n.loads)
    for i, g in enumerate(node.generators):
        _visit(g.iter, n, hidden if i == 0 else own)
        for test in g.ifs:
            _visit(test, n, own)
    for part in ("elt", "key", "value"):
        if getattr(node, part, None) is not None:
            _visit(getattr(node, part), n, own)
    if isinstance(node, ast.GeneratorExp):
        n.captured |= set(n.loads) - before


def _scope(node: ast.AST, n: Names, hidden: frozenset[str]) -> None:
    """A nested function or class: its name is bound here, what it reads from outside counts as read and captured."""
    if not isinstance(node, ast.Lambda):
        n.stores[node.name] = node
    for outer in _evaluated_here(node):
        _visit(outer, n, hidden)
    body = node.body if isinstance(node.body, list) else [node.body]
    inner = Names(memoise=False).add(body)  # its own rewriting comes later and changes the statements
    own = set(inner.stores) | _parameters(node)
    declared = inner.nonlocals
    own -= declared | inner.globals
    free = {k: v for k, v in inner.loads.items() if k not in own and k not in hidden}
    for name, where in free.items():
        n.loads.setdefault(name, where)
    if isinstance(node, ast.ClassDef):
        n.captured |= inner.captured - own
    else:
        if not isinstance(node, ast.Lambda):
            n.functions[node.name] = ({k for k in inner.changes if k[0] in free}, set(free))
        n.captured |= set(free) | (inner.captured - own)
    n.rebound_inside |= declared | (inner.rebound_inside - own)
    n.captured |= declared
    n.sees_all = n.sees_all or inner.sees_all
    n.changed_inside |= {k[0] for k in inner.changes if k[0] in free} | (inner.changed_inside - own)


def _evaluated_here(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a nested scope that run when it is defined: decorators, defaults, base classes."""
    parts: list = list(getattr(node, "decorator_list", ()))
    if isinstance(node, ast.ClassDef):
        return [*parts, *node.bases, *node.keywords]
    args = node.args
    return [*parts, *args.defaults, *(d for d in args.kw_defaults if d is not None)]


def _parameters(node: ast.AST) -> set[str]:
    if isinstance(node, ast.ClassDef):
        return set()
    return parameters(node.args)


def parameters(args: ast.arguments) -> set[str]:
    """Return the names of all parameters."""
    found = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {a.arg for a in found if a is not None}

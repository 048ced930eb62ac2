"""`match`.

Static   as in Python: a match becomes an if-chain, which means the same. Structure (length, class, keys) is always Python's
Dynamic  values in a pattern are compared with `==`, and become conditions of the if-chain
A match whose `|` binds names stays as it is, with its bodies rewritten: there the subject has to be a Python value.
"""

import ast
from dataclasses import dataclass, field

from flydsl.frontend.rewrite.build import RUNTIME, assign, attribute, constant, load, place, runtime


def lower_matches(stmts: list[ast.stmt], fresh) -> list[ast.stmt]:
    """Return statements whose matches are if-chains; functions inside are left alone."""
    out: list[ast.stmt] = []
    for s in stmts:
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.append(s)
            continue
        for name in ("body", "orelse", "finalbody"):
            if isinstance(getattr(s, name, None), list):
                setattr(s, name, lower_matches(getattr(s, name), fresh))
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            part.body = lower_matches(part.body, fresh)
        out += _chain(s, fresh) if isinstance(s, ast.Match) and not any(_binds_in_or(c.pattern) for c in s.cases) else [s]
    return out


def _binds_in_or(pattern: ast.pattern) -> bool:
    choices = [p for p in ast.walk(pattern) if isinstance(p, ast.MatchOr)]
    return any(getattr(p, "name", None) or getattr(p, "rest", None) for choice in choices for p in ast.walk(choice))


def _chain(s: ast.Match, fresh) -> list[ast.stmt]:
    subject = fresh("subject")
    rest: list[ast.stmt] = []
    for case in reversed(s.cases):
        rest = _case(case, subject, rest)
    return [*place([assign(subject, s.subject)], s, s.subject), *rest]


def _case(case: ast.match_case, subject: str, rest: list[ast.stmt]) -> list[ast.stmt]:
    pattern = case.pattern
    found = _Found().add(pattern, load(subject))
    tests = found.tests
    bind = [place([assign(name, value)], at)[0] for name, value, at in found.binds]
    if case.guard is not None:
        if found.binds:
            captures = [ast.NamedExpr(ast.Name(name, ast.Store()), value) for name, value, _ in found.binds]
            tests = [*tests, place([runtime("first", constant(True), *captures)], pattern)[0]]
            bind = []
        tests = [*tests, case.guard]
    if not tests:
        return [*bind, *case.body]
    test = tests[0] if len(tests) == 1 else place([ast.BoolOp(ast.And(), tests)], tests[0])[0]
    return place([ast.If(test, [*bind, *case.body], rest)], pattern)


@dataclass
class _Found:
    """What has to hold for a pattern, and the names that it then binds: (name, value, where)."""

    tests: list[ast.expr] = field(default_factory=list)
    binds: list[tuple[str, ast.expr, ast.pattern]] = field(default_factory=list)

    def add(self, p: ast.pattern, subject: ast.expr) -> "_Found":
        getattr(self, f"on_{p.__class__.__name__}")(p, subject)
        return self

    def test(self, node: ast.expr, p: ast.pattern) -> None:
        self.tests += place([node], p)

    def bind(self, name: str | None, value: ast.expr, p: ast.pattern) -> None:
        if name is not None:
            self.binds.append((name, place([value], p)[0], p))

    def on_MatchValue(self, p: ast.MatchValue, subject: ast.expr) -> None:
        self.test(ast.Compare(subject, [ast.Eq()], [p.value]), p)

    def on_MatchSingleton(self, p: ast.MatchSingleton, subject: ast.expr) -> None:
        self.test(ast.Compare(subject, [ast.Is()], [constant(p.value)]), p)

    def on_MatchAs(self, p: ast.MatchAs, subject: ast.expr) -> None:
        if p.pattern is not None:
            self.add(p.pattern, subject)
        self.bind(p.name, subject, p)

    def on_MatchOr(self, p: ast.MatchOr, subject: ast.expr) -> None:
        choices = [_Found().add(q, subject).tests for q in p.patterns]
        if all(choices):
            self.test(ast.BoolOp(ast.Or(), [c[0] if len(c) == 1 else place([ast.BoolOp(ast.And(), c)], p)[0] for c in choices]), p)

    def on_MatchSequence(self, p: ast.MatchSequence, subject: ast.expr) -> None:
        count = len(p.patterns)
        star = next((i for i, q in enumerate(p.patterns) if isinstance(q, ast.MatchStar)), None)
        self.test(_helper("is_sequence", subject, constant(count if star is None else count - 1), constant(star is not None)), p)
        for i, q in enumerate(p.patterns):
            if i == star:
                self.bind(q.name, _helper("rest_of_sequence", subject, constant(i), constant(count - 1 - i)), q)
            else:
                self.add(q, _item(subject, constant(i if star is None or i < star else i - count), q))

    def on_MatchMapping(self, p: ast.MatchMapping, subject: ast.expr) -> None:
        self.test(_helper("has_keys", subject, *p.keys), p)
        for key, q in zip(p.keys, p.patterns):
            self.add(q, _item(subject, key, q))
        if p.rest is not None:
            self.bind(p.rest, _helper("rest_of_mapping", subject, *p.keys), p)

    def on_MatchClass(self, p: ast.MatchClass, subject: ast.expr) -> None:
        names = [constant(name) for name in p.kwd_attrs]
        self.test(_helper("is_instance", subject, p.cls, constant(len(p.patterns)), *names), p)
        for i, q in enumerate(p.patterns):
            self.add(q, place([_helper("positional", subject, p.cls, constant(i))], q)[0])
        for name, q in zip(p.kwd_attrs, p.kwd_patterns):
            self.add(q, place([attribute(subject, name)], q)[0])


def _item(subject: ast.expr, key: ast.expr, p: ast.pattern) -> ast.expr:
    return place([ast.Subscript(subject, key, ast.Load())], p)[0]


def _helper(name: str, *args: ast.expr) -> ast.Call:
    """Return `__fly__.patterns.name(args)`."""
    return ast.Call(attribute(attribute(load(RUNTIME), "patterns"), name), list(args), [])

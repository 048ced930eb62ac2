"""`match`.

Static   as in Python. Cases that compare with values (`case 1 | 2:`, `case Mode.A:`, `case _:`, `case x:`, each
         with a guard or without) become an if-chain, which means the same; other patterns stay, with their
         bodies rewritten
Dynamic  only the if-chain: a run-time subject is compared with `==`
"""

import ast

from flydsl.frontend.rewrite.build import assign, constant, load, place


def lower_matches(stmts: list[ast.stmt], fresh) -> list[ast.stmt]:
    """Return statements whose simple matches are if-chains; functions inside are left alone."""
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
        simple = isinstance(s, ast.Match) and all(_is_simple(c.pattern) for c in s.cases)
        out += _chain(s, fresh) if simple else [s]
    return out


def _is_simple(p: ast.pattern) -> bool:
    if isinstance(p, (ast.MatchValue, ast.MatchSingleton)):
        return True
    if isinstance(p, ast.MatchOr):
        return all(isinstance(q, (ast.MatchValue, ast.MatchSingleton)) for q in p.patterns)
    return isinstance(p, ast.MatchAs) and (
        p.pattern is None or _is_simple(p.pattern) and not isinstance(p.pattern, ast.MatchAs)
    )


def _chain(s: ast.Match, fresh) -> list[ast.stmt]:
    subject = fresh("subject")
    rest: list[ast.stmt] = []
    for case in reversed(s.cases):
        rest = _case(case, subject, rest)
    return [*place([assign(subject, s.subject)], s, s.subject), *rest]


def _case(case: ast.match_case, subject: str, rest: list[ast.stmt]) -> list[ast.stmt]:
    pattern = case.pattern
    name = pattern.name if isinstance(pattern, ast.MatchAs) else None
    inner = pattern.pattern if isinstance(pattern, ast.MatchAs) else pattern
    bind = [] if name is None else place([assign(name, load(subject))], pattern)
    test = None if inner is None else _test(inner, subject)
    if case.guard is not None and not bind:
        test = case.guard if test is None else place([ast.BoolOp(ast.And(), [test, case.guard])], case.guard)[0]
    elif case.guard is not None:
        return _guarded_capture(case, bind, test, rest)
    if test is None:
        return [*bind, *case.body]
    return place([ast.If(test, [*bind, *case.body], rest)], pattern)


def _guarded_capture(case: ast.match_case, bind: list, test: ast.expr | None, rest: list[ast.stmt]) -> list[ast.stmt]:
    inner = place([ast.If(case.guard, case.body, rest)], case.guard)
    if test is None:
        return [*bind, *inner]
    condition = place([ast.BoolOp(ast.And(), [test, case.guard])], case.guard)[0]
    return [*bind, *place([ast.If(condition, case.body, rest)], case.pattern)]


def _test(p: ast.pattern, subject: str) -> ast.expr:
    if isinstance(p, ast.MatchOr):
        return place([ast.BoolOp(ast.Or(), [_test(q, subject) for q in p.patterns])], p)[0]
    op, value = (ast.Is(), constant(p.value)) if isinstance(p, ast.MatchSingleton) else (ast.Eq(), p.value)
    return place([ast.Compare(load(subject), [op], [value])], p)[0]

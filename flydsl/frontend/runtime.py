"""`__fly__`: what rewritten code calls. One object per rewritten definition, shared by the functions nested in it.

It holds the construct sites of all of them and nothing that is true of one function alone: such facts stand in the
rewritten code itself.
"""

import builtins
import sys
from typing import Any

from flydsl.diag import MixedReturn
from flydsl.frontend import builtin_calls, logic, patterns
from flydsl.frontend.branch import branch
from flydsl.frontend.collect import collect
from flydsl.frontend.dispatch import call, context
from flydsl.frontend.escape import explain_name_error
from flydsl.frontend.loops import WhileLoop, for_loop
from flydsl.frontend.recursion import explain_recursion
from flydsl.frontend.regions import mark, unwind
from flydsl.frontend.rewrite.return_ import RESULT, RETURNED
from flydsl.frontend.site import UNBOUND, Site
from flydsl.frontend.truth import negate


class Runtime:
    """Support of one rewritten definition."""

    __slots__ = ("keep_static", "sites")

    UNBOUND = UNBOUND
    Explained = (builtins.NameError, builtins.RecursionError)
    Exception = builtins.Exception
    locals = staticmethod(builtins.locals)

    patterns = patterns
    call = staticmethod(call)
    context = staticmethod(context)
    mark = staticmethod(mark)
    collect = staticmethod(collect)
    unwind = staticmethod(unwind)
    not_ = staticmethod(negate)
    and_first = staticmethod(logic.and_first)
    and_ = staticmethod(logic.and_)
    or_first = staticmethod(logic.or_first)
    or_ = staticmethod(logic.or_)
    keep = staticmethod(logic.keep)
    kept = staticmethod(logic.kept)
    chain_first = staticmethod(logic.chain_first)
    chain_and = staticmethod(logic.chain_and)
    then = staticmethod(logic.then)
    otherwise = staticmethod(logic.otherwise)
    second = staticmethod(logic.second)
    pick = staticmethod(logic.pick)
    pick_changed = staticmethod(logic.pick_changed)
    first = staticmethod(logic.first)
    has = staticmethod(logic.has)
    value = staticmethod(logic.value)
    minimum = staticmethod(builtin_calls.minimum)
    maximum = staticmethod(builtin_calls.maximum)
    mapped = staticmethod(builtin_calls.mapped)
    any_true = staticmethod(builtin_calls.any_true)
    all_true = staticmethod(builtin_calls.all_true)

    def __init__(self, keep_static: bool):
        self.keep_static = keep_static
        self.sites: list[Site] = []

    def site(self, site: int) -> Site:
        """Return a site of an expression."""
        return self.sites[site]

    def if_(self, site: int, test: Any) -> Any:
        """Begin an `if`."""
        return branch(self.sites[site], test)

    def for_(self, site: int, callee: Any, *args: Any, **hints: Any) -> Any:
        """Begin a `for` over `callee(*args, **hints)`, where the callee was spelt `range`."""
        return for_loop(self.sites[site], self.keep_static, callee, args, hints)

    def while_(self, site: int) -> WhileLoop:
        """Begin a `while`."""
        return WhileLoop(self.sites[site])

    @staticmethod
    def finish(function: str, variables: dict) -> Any:
        """Return what the function of this name returns, where its returns are flags."""
        returned = variables.get(RETURNED, False)
        result = variables.get(RESULT)
        if returned is True or returned is False or result is None:
            return result if returned is not False else None
        raise MixedReturn(function=function)

    @staticmethod
    def explained(error: NameError | RecursionError) -> BaseException:
        """Return the error to raise for a variable without a value, or for a recursion without end."""
        frame = sys._getframe(1)
        if isinstance(error, RecursionError):
            return explain_recursion(error, frame)
        return explain_name_error(error, frame.f_code)

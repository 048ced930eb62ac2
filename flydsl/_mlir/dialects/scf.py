"""The `scf` dialect: structured control flow built by hand.

if_op = scf.IfOp(cond)
with ir.InsertionPoint(if_op.then_block):
    ...
    scf.YieldOp([])
"""

from collections.abc import Iterator, Sequence
from typing import Any

from flydsl._mlir._expose import OpClass, exposed
from flydsl._mlir._insertion import InsertionPoint
from flydsl.ir import constant, dialect, get_types, ir

_bindings = dialect("scf")


def _if(self, cond: Any, results: Any = None, *, results_: Any = None, has_else: bool = False, **rest: Any) -> None:
    _bindings.IfOp.__init__(self, cond, list(results or results_ or ()), has_else=has_else, **rest)


def _for(self, lower_bound: Any, upper_bound: Any, step: Any, iter_args: Any = None, **rest: Any) -> None:
    bounds = [_bound(b) for b in (lower_bound, upper_bound, step)]
    _bindings.ForOp.__init__(self, *bounds, iter_args, **rest)


def _bound(x: Any) -> ir.Value:
    return constant(get_types().index, x) if isinstance(x, int) else x


def _yield(self, values: Any = (), **rest: Any) -> None:
    _bindings.YieldOp.__init__(self, [values] if isinstance(values, ir.Value) else values, **rest)


IfOp = OpClass(_bindings.IfOp, _if)
ForOp = OpClass(_bindings.ForOp, _for, lifted=("induction_variable", "inner_iter_args"))
YieldOp = OpClass(_bindings.YieldOp, _yield)


def yield_(results_: Sequence[Any] = (), **rest: Any) -> ir.OpView:
    """End a region and give its values."""
    return YieldOp(results_, **rest)


def for_(
    start: Any, stop: Any = None, step: Any = None, iter_args: Sequence[Any] | None = None, **rest: Any
) -> Iterator[Any]:
    """Loop once over the body of an `scf.for`: gives the induction variable, with `iter_args` also their values
    inside and the results.

    One carried value is given bare, several as a tuple. The body must end in `yield_` when it carries values.
    """
    if stop is None:
        start, stop = 0, start
    op = ForOp(start, stop, 1 if step is None else step, None if iter_args is None else list(iter_args), **rest)
    with InsertionPoint(op.body):
        if not iter_args:
            yield op.induction_variable
        elif len(iter_args) == 1:
            yield op.induction_variable, op.inner_iter_args[0], op.results[0]
        else:
            yield op.induction_variable, tuple(op.inner_iter_args), tuple(op.results)
        operations = list(op.body.operations)
        if not operations or operations[-1].operation.name != "scf.yield":
            YieldOp([])


__all__ = ["ForOp", "IfOp", "YieldOp", "for_", "yield_"]
__getattr__, __dir__ = exposed("scf", __name__)

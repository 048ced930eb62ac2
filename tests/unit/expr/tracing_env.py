"""A function being traced, for tests that look at the ops which expressions build."""

from collections.abc import Iterator
from contextlib import contextmanager

from flydsl.expr import numeric
from flydsl.expr.numeric import Numeric
from flydsl.ir import Trace, ir


class Body:
    """The body of a traced function: `args` by class, the ops built so far, and the verifier."""

    def __init__(self, trace: Trace, block: ir.Block, args: list[Numeric]):
        self.trace, self.block, self.args = trace, block, args

    def ops(self, constants: bool = False) -> list[str]:
        """Return the names of the ops so far, without constants unless asked."""
        names = [op.operation.name for op in self.block.operations]
        return names if constants else [n for n in names if n != "arith.constant"]

    def text(self) -> str:
        """Return the printed ops, one per line."""
        return "\n".join(str(op.operation) for op in self.block.operations)

    def verify(self) -> None:
        """Close the function and run the verifier."""
        ir.Operation.create("func.return", loc=self.trace.unknown_loc, ip=self.trace.ip)
        self.trace.module.operation.verify()


@contextmanager
def traced(*classes: type[Numeric], name: str = "f") -> Iterator[Body]:
    """Trace a function with one argument per class."""
    with Trace("gfx942") as trace:
        types = [c.ir_type for c in classes]
        function_type = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        attrs = {"sym_name": ir.StringAttr.get(name), "function_type": function_type}
        loc = trace.unknown_loc
        function = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=loc, ip=trace.ip)
        block = ir.Block.create_at_start(function.regions[0], types, [loc] * len(types))
        with trace.in_function(block, "kernel", None):
            args = [numeric.wrap(c, v) for c, v in zip(classes, block.arguments, strict=True)]
            yield Body(trace, block, args)

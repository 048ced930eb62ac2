"""A traced function whose arguments are raw values, and the text of what was emitted into it."""

from contextlib import contextmanager

import pytest

import flydsl.dialects  # noqa: F401  (loads fly into contexts)
from flydsl.ir import Trace, emit, ir, parse_type, print_op


class Body:
    """The function under construction: `args`, `types`, and `lines()` after the trace."""

    def __init__(self, arch: str, texts: tuple[str, ...]):
        self.trace = Trace(arch)
        self.texts = texts

    @contextmanager
    def open(self):
        with self.trace as trace:
            self.types = trace.types
            inputs = [parse_type(t) for t in self.texts]
            type_ = ir.FunctionType.get(inputs, [])
            attrs = {"sym_name": ir.StringAttr.get("f"), "function_type": ir.TypeAttr.get(type_)}
            func = emit("func.func", (), (), attrs, 1)
            block = func.regions[0].blocks.append(*inputs, arg_locs=[trace.unknown_loc] * len(inputs))
            with trace.in_function(block, "kernel", None):
                self.args = list(block.arguments)
                yield self
                emit("func.return")
            assert trace.module.operation.verify()
            self.text = print_op(trace.module)

    def lines(self) -> list[str]:
        """The emitted ops, one line each, constants and the function's frame left out."""
        skip = ("module", "func.func", "}", "return", "func.return")
        lines = [line.strip() for line in self.text.splitlines()]
        return [line for line in lines if not line.startswith(skip) and "arith.constant" not in line]


@pytest.fixture
def body():
    """Return a function: `with body("gfx950", "i32", "f32") as b:`."""

    def make(arch: str, *texts: str):
        return Body(arch, texts).open()

    return make

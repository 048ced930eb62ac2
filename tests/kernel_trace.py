"""A kernel being traced, for tests that look at values or at ops without compiling."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flydsl.dialects import type_of
from flydsl.ir import Trace, emit, ir
from flydsl.layout.parse import parse

A = parse("!fly.memref<f16, global, (64,128):(128,1)>")
B = parse("!fly.memref<f32, global, (?,?):(?{i64},1)>")
P = parse("!fly.ptr<f32, global, align<16>>")


class Kernel:
    """What the compiler hangs on the scope of a kernel."""

    kind = "kernel"
    name = "traced"

    def __init__(self, function: ir.Operation, block: tuple[int, int, int]):
        self.function = function
        self.known_block_size = block
        self.dynamic_shared_bytes = 0
        self.static_shared_bytes = 0


@contextmanager
def kernel(*arguments: Any, arch: str = "gfx942", block: tuple = (256, 1, 1)) -> Iterator[tuple[Trace, list[ir.Value]]]:
    """Trace into a kernel whose parameters have these plain values or MLIR type names; the module is verified at the
    end.
    """
    with Trace(arch) as trace:
        module = emit("gpu.module", attrs={"sym_name": ir.StringAttr.get("kernels")}, regions=1)
        with trace.in_block(ir.Block.create_at_start(module.regions[0], [])):
            types = [trace.types.by_name[a] if isinstance(a, str) else type_of(a) for a in arguments]
            attrs = {
                "sym_name": ir.StringAttr.get("traced"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "kernel": ir.UnitAttr.get(),
            }
            function = emit("gpu.func", attrs=attrs, regions=1)
            entry = ir.Block.create_at_start(function.regions[0], types, [trace.unknown_loc] * len(types))
            with trace.in_function(entry, "kernel", None, Kernel(function, block)):
                yield trace, list(entry.arguments)
                emit("gpu.return")
        assert trace.module.operation.verify()


def ops(trace: Trace, name: str) -> list[ir.Operation]:
    """Return the ops of a name in the kernel being traced, in order."""
    return [op.operation for op in trace.scope.block.operations if op.operation.name == name]

"""What the arguments of a launch must be, as JSON values: for exports, which are called without this package's
compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl import layout as la
from flydsl.compiler.jit_argument import JitArgument, MemRefJitArg, NumericJitArg, PointerJitArg, StreamJitArg
from flydsl.diag import NotExportable


def described_parameters(arguments: Sequence[tuple[str, JitArgument]]) -> list[dict[str, Any]]:
    """Return a record per argument; constants take no place in a launch and are left out."""
    return [_record(name, argument) for name, argument in arguments if argument.ir_types()]


def exportable(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records.

    Raises   NotExportable: one is of a class of the user's
    """
    for p in parameters:
        if p["kind"] == "object":
            raise NotExportable(problem=f"parameter `{p['name']}` is a {p['type']}")
    return parameters


def _record(name: str, argument: JitArgument) -> dict[str, Any]:
    if isinstance(argument, MemRefJitArg):
        layout = argument.plain.layout
        shape, stride = (
            [None if isinstance(n, la.Sym) else n for n in _modes(x)] for x in (layout.shape, layout.stride)
        )
        common = {"kind": "tensor", "name": name, "elem": argument.dtype, "shape": shape, "stride": stride}
        divisors = {"shape": argument.divisibility_of_shape, "stride": argument.divisibility_of_strides}
        promises = {"align": argument.align, **{f"{k}_divisors": sorted(d.items()) for k, d in divisors.items()}}
        return {**common, "stride_bits": argument.stride_width, **promises}
    if isinstance(argument, PointerJitArg):
        return {"kind": "pointer", "name": name, "elem": argument.plain.elem}
    if isinstance(argument, NumericJitArg):
        cls = argument.dsl_type
        return {"kind": "number", "name": name, "elem": cls.element.mlir, "dtype": cls.__name__}
    if isinstance(argument, StreamJitArg):
        return {"kind": "stream", "name": name}
    return {"kind": "object", "name": name, "type": argument.dsl_type.__name__}


def _modes(x: Any) -> tuple:
    return x if isinstance(x, tuple) else (x,)

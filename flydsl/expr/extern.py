"""Calls of device functions that were compiled elsewhere: `ffi(symbol, arg_types, ret_type)` gives a callable for
kernels.

What defines the symbol is bound with `flydsl.compiler.extern_link.link_extern`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flydsl.diag import ExternCall, ExternUnbound
from flydsl.expr.numeric import Float32, Float64, Int32, Int64, Numeric, Uint32, Uint64, as_numeric
from flydsl.ir import current, emit, emit1, ir, is_tracing

__all__ = ["ExternFunction", "ffi"]

_CLASSES: dict[str, type[Numeric]] = {
    "int32": Int32,
    "uint32": Uint32,
    "int64": Int64,
    "uint64": Uint64,
    "float32": Float32,
    "float64": Float64,
}
_resolvers: list[Callable[[ExternFunction], Any]] = []


class ExternFunction:
    """A device function by its symbol; `is_pure`: its result depends on the arguments alone and it has no effects."""

    def __init__(self, symbol: str, arg_types: Sequence[str], ret_type: str, is_pure: bool = False, **others: Any):
        if others:
            names = ", ".join(others)
            raise TypeError(
                f"ffi() takes no {names}: bind bitcode and initialisers with link_extern(ffi(...), {names}=...)"
            )
        if not symbol.isidentifier():
            raise ValueError(f"{symbol!r} is not a symbol of C")
        for name in (*arg_types, *(() if ret_type == "void" else (ret_type,))):
            if name not in _CLASSES:
                raise TypeError(f"{symbol}: no such type {name!r}; known: {', '.join(_CLASSES)}, and void as result")
        self.symbol, self.arg_types, self.ret_type, self.is_pure = symbol, tuple(arg_types), ret_type, is_pure

    def __captured__(self) -> list[tuple[str, Any]]:
        """What code generated from a call depends on."""
        return [("signature", (self.symbol, self.arg_types, self.ret_type, self.is_pure))]

    def __call__(self, *args: Any) -> Any:
        """Emit the call; return the result, or None for void.

        Raises   ExternCall: another number or kind of arguments; NotTracing: outside of a kernel
        """
        for resolve in _resolvers:
            bound = resolve(self)
            if bound is not None:
                return bound(*args)
        return self.emit_call(args)

    def emit_call(self, args: Sequence[Any]) -> Any:
        """Emit the call without asking resolvers."""
        scope = current().scope if is_tracing() else None
        if scope is None or scope.kind != "kernel":
            raise ExternUnbound(symbol=self.symbol, problem="it is called outside of a kernel")
        if len(args) != len(self.arg_types):
            self._refuse(f"it takes {len(self.arg_types)} arguments and got {len(args)}")
        values = [self._argument(i, v) for i, v in enumerate(args)]
        cls = _CLASSES.get(self.ret_type)
        result = None if cls is None else current().types.by_name[cls.element.mlir]
        self._declare(scope.owner.gpu_module, values, result)
        attrs = {
            "callee": ir.FlatSymbolRefAttr.get(self.symbol),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(values), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        if cls is None:
            emit("llvm.call", [], values, attrs)
            return None
        return cls(emit1("llvm.call", result, values, attrs))

    def _argument(self, index: int, value: Any) -> ir.Value:
        cls = _CLASSES[self.arg_types[index]]
        if not isinstance(value, (Numeric, int, float, ir.Value)):
            self._refuse(f"argument {index} is a {type(value).__name__}, not a number")
        number = as_numeric(value)
        if number.is_static():
            return cls(number.value).ir_value()
        if type(number).width != cls.width or type(number).is_float != cls.is_float:
            self._refuse(f"argument {index} is {type(number).__name__}, not {self.arg_types[index]}")
        return number.ir_value()

    def _refuse(self, problem: str) -> None:
        parameters = ", ".join(self.arg_types)
        raise ExternCall(
            symbol=self.symbol, problem=problem, prototype=f"{self.ret_type} {self.symbol}({parameters})"
        )

    def _declare(self, gpu_module: ir.Operation, values: Sequence[ir.Value], result: ir.Type | None) -> None:
        body = gpu_module.regions[0].blocks[0]
        for op in body.operations:
            held = op.operation.attributes
            if op.operation.name == "llvm.func" and ir.StringAttr(held["sym_name"]).value == self.symbol:
                return
        kinds = ", ".join(str(v.type) for v in values)
        kind = ir.Type.parse(f"!llvm.func<{result if result is not None else 'void'} ({kinds})>")
        attrs = {
            "sym_name": ir.StringAttr.get(self.symbol),
            "function_type": ir.TypeAttr.get(kind),
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
        }
        if self.is_pure:
            attrs["no_unwind"] = attrs["will_return"] = ir.UnitAttr.get()
        start = ir.InsertionPoint.at_block_begin(body)
        ir.Operation.create("llvm.func", [], [], attrs, None, 1, current().unknown_loc, start)


ffi = ExternFunction

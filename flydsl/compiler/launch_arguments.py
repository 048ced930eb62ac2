"""Arguments of a kernel inside a jit function: which become parameters of the `gpu.func`, and how the body gets them
back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flydsl.compiler.declared import check_parts, kernel_value
from flydsl.compiler.protocol import construct_from_ir_values, extract_to_ir_values
from flydsl.diag import GridTooLarge, LaunchGeometry, Span
from flydsl.expr.numeric import Numeric
from flydsl.expr.typing import Constexpr, Stream
from flydsl.expr.values import FlyValue
from flydsl.expr.values import wrap as wrap_value
from flydsl.ir import ir

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def declared_values(signature: inspect.Signature, bound: inspect.BoundArguments, kernel: str) -> None:
    """Replace the bound arguments of a kernel by what its body gets, as the annotations say (`declared.kernel_value`)."""
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        annotation = parameter.annotation
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(kernel_value(v, annotation, f"{name}[{i}]", kernel) for i, v in enumerate(value))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {k: kernel_value(v, annotation, k, kernel) for k, v in value.items()}
        else:
            bound.arguments[name] = kernel_value(value, annotation, name, kernel)


class KernelArguments:
    """`types`, `values`, `names` of the parameters; static arguments take none. `at`: where the kernel was called."""

    def __init__(self, signature: inspect.Signature, bound: inspect.BoundArguments, kernel: str = "", at: Span | None = None):
        self.kernel, self.at = kernel, at
        self.types: list[ir.Type] = []
        self.values: list[ir.Value] = []
        self.names: list[str] = []
        self._plan: list[tuple[inspect.Parameter, Any]] = []
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                parts = [self._add(f"{name}[{i}]", v, parameter) for i, v in enumerate(value)]
                self._plan.append((parameter, parts))
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                parts = {k: self._add(k, v, parameter) for k, v in value.items()}
                self._plan.append((parameter, parts))
            else:
                self._plan.append((parameter, self._add(name, value, parameter)))

    def _add(self, name: str, value: Any, parameter: inspect.Parameter) -> tuple[int, Callable]:
        """Add the parameters of one argument; return (how many, function from their block arguments to the value)."""
        values, rebuild = _decompose(value, parameter.annotation)
        if values:
            check_parts(value, name, self.kernel, self.at)
        self.types += [v.type for v in values]
        self.values += values
        self.names += [name] if len(values) == 1 else [f"{name}.{i}" for i in range(len(values))]
        return len(values), rebuild

    def rebuild(self, arguments: list[ir.Value]) -> tuple[list, dict]:
        """Return (args, kwargs) of the call of the body, made of the entry block's arguments."""
        taken = iter(arguments)

        def make(part: tuple[int, Callable]) -> Any:
            count, rebuild = part
            return rebuild([next(taken) for _ in range(count)])

        args: list = []
        kwargs: dict = {}
        for parameter, parts in self._plan:
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args += [make(p) for p in parts]
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update({k: make(p) for k, p in parts.items()})
            elif parameter.kind in _POSITIONAL:
                args.append(make(parts))
            else:
                kwargs[parameter.name] = make(parts)
        return args, kwargs


def _decompose(value: Any, annotation: Any) -> tuple[list[ir.Value], Callable]:
    if Constexpr.is_annotation(annotation) or isinstance(value, (type, Stream)):
        return [], lambda _: value
    if isinstance(value, FlyValue):
        if value.is_static:
            return [], lambda _: value
        return [value.ir_value()], lambda values: wrap_value(value.plain, values[0])
    if isinstance(value, Numeric) and value.is_static():
        return [], lambda _: value
    try:
        values = list(extract_to_ir_values(value))
    except TypeError:
        return [], lambda _: value  # a plain Python object is a compile-time constant
    return values, lambda values: construct_from_ir_values(type(value), value, values)


LARGEST_GRID_LANES = 2**32 - 1  # AQL dispatch packet: grid sizes are 32-bit counts of work items


def check_grid(grid: list, block: list) -> None:
    """Refuse static launch sizes that no dispatch packet can hold."""
    for axis, blocks, lanes in zip("xyz", grid, block):
        if isinstance(blocks, int) and isinstance(lanes, int) and blocks * lanes > LARGEST_GRID_LANES:
            raise GridTooLarge(axis=axis, blocks=blocks, lanes=lanes, most=LARGEST_GRID_LANES // lanes)


def launch_sizes(sizes: Any, parameter: str) -> list:
    """Return three launch sizes: Python ints where static, Numerics otherwise."""
    items = list(sizes) if isinstance(sizes, (tuple, list)) else [sizes]
    if not 1 <= len(items) <= 3:
        raise LaunchGeometry(parameter=parameter, value=sizes)
    out = []
    for n in items:
        if isinstance(n, Numeric) and n.is_static():
            n = n.value
        if isinstance(n, float) or isinstance(n, bool) or not isinstance(n, (int, Numeric, ir.Value)):
            raise LaunchGeometry(parameter=parameter, value=sizes)
        if isinstance(n, int) and n < (0 if parameter == "grid" else 1):
            raise LaunchGeometry(parameter=parameter, value=sizes)
        out.append(n)
    return out + [1] * (3 - len(out))

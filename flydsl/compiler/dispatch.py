"""The fast path of a call: one generated function per signature that checks the arguments, packs them and launches.

A `Pattern` is made from the arguments of a call that went the slow way (`jit_argument.wrap`). Its text tests for each
argument what the signature fixed - type, element type, rank, which stride is 1, device, range - and reads address,
extents and strides straight from the tensor. Anything else returns False, and the slow way decides: another
specialisation, or an error that says what is wrong.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flydsl.compiler.jit_argument import (
    LARGEST_EXTENT,
    JitArgument,
    JitArgumentRegistry,
    MemRefJitArg,
    NumericJitArg,
    PointerJitArg,
    StaticJitArg,
    StreamJitArg,
    wrap,
)
from flydsl.diag.source import mark_internal
from flydsl.expr.annotations import Stream
from flydsl.runtime.host_arrays import address_function, host_array

MOST_PATTERNS = 16  # signatures that are tried one after the other; further ones go the slow way
_KEYED_CONSTANTS = (int, bool, str, type(None))


class Pattern:
    """`call(*args) -> bool`: whether the arguments fitted and the launch was made; `entries`: what to call, by device
    and constants."""

    def __init__(
        self,
        arguments: Sequence[tuple[str, JitArgument]],
        args: Sequence[Any],
        annotations: dict,
        function: str,
        arrays: bool,
        where: Callable[[], int] | None = None,
    ):
        """`arrays`: the entries take the arrays, too; `where` reads the current device, if code depends on it."""
        writer = _Writer(annotations, function)
        for (name, argument), value in zip(arguments, args, strict=True):
            writer.argument(name, argument, value)
        self.entries: dict[Any, Callable] = {}
        self.takes_arrays = arrays
        self.text = writer.text(arrays, where)
        self.array_names = writer.array_names
        namespace: dict[str, Any] = {}
        exec(compile(self.text, f"<fast path of {function}>", "exec"), namespace)
        self.call, self.key = namespace["make"](self.entries, self.entries.get, *writer.constants.values())
        for generated in (self.call, self.key):
            mark_internal(generated.__code__, True)


class _Writer:
    def __init__(self, annotations: dict[str, Any], function: str):
        self.annotations, self.function = annotations, function
        self.constants: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.checks: list[str] = []  # conditions before anything is read
        self.reads: list[str] = []  # statements; may return
        self.key: list[str] = []
        self.flat: list[str] = []
        self.devices: list[str] = []
        self.array_names: list[str] = []
        self.arrays: list[str] = []

    def keep(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def text(self, arrays: bool, where: Callable[[], int] | None) -> str:
        """Return the text of `make(entries, get, constants...) -> (call, key)`."""
        device = self.devices[0] if self.devices else "-1"
        if where is not None:
            here = f"{self.keep(where)}()"
            device = here if device == "-1" else f"{device} if {device} >= 0 else {here}"
        key = f"({', '.join([device, *self.key])},)" if self.key else device
        same = [f"{d} != {self.devices[0]}" for d in self.devices[1:]]
        guards = [f"if not ({' and '.join(self.checks)}): return False"] if self.checks else []
        reads = [*self.reads, *([f"if {' or '.join(same)}: return False"] if same else [])]
        lines = [
            *guards,
            *(
                ["try:", *(f"    {r}" for r in reads), "except (ValueError, RuntimeError): return False"]
                if reads
                else []
            ),
        ]
        flat = [f"({', '.join(self.arrays)},)" if self.arrays else "()", *self.flat] if arrays else self.flat
        call = [f"entry = get({key})", "if entry is None: return False", f"entry({', '.join(flat)})", "return True"]
        parameters = ", ".join(self.parameters)
        functions = [
            f"    def call({parameters}):", *(f"        {x}" for x in [*lines, *call]),
            f"    def key({parameters}):", *(f"        {x}" for x in [*lines, f"return {key}"]),
        ]  # fmt: skip
        return "\n".join(
            [f"def make({', '.join(['entries', 'get', *self.constants])}):", *functions, "    return call, key\n"]
        )

    def argument(self, name: str, argument: JitArgument, value: Any) -> None:
        """Write the reading of one argument: by its kind, or through its wrapper where there is nothing shorter."""
        a = f"a{len(self.parameters)}"
        self.parameters.append(a)
        if isinstance(value, JitArgument):
            self._wrapper(name, argument, a)
        elif isinstance(argument, MemRefJitArg) and self._tensor(name, argument, value, a):
            pass
        elif isinstance(argument, PointerJitArg) and type(value) in (int, ctypes.c_void_p):
            self._type(a, value)
            self.flat.append(a if type(value) is int else f"({a}.value or 0)")
        elif isinstance(argument, NumericJitArg) and self._number(argument, value, a):
            pass
        elif isinstance(argument, StreamJitArg) and self._stream(value, a):
            pass
        elif isinstance(argument, StaticJitArg) and type(value) in _KEYED_CONSTANTS:
            self._type(a, value)
            self.key.append(a)
        else:
            self._any(name, argument, a)

    def _type(self, a: str, value: Any) -> None:
        self.checks.append(f"{a} is None" if value is None else f"type({a}) is {self.keep(type(value))}")

    # --- tensors -----------------------------------------------------------------------------------------------------

    def _tensor(self, name: str, argument: MemRefJitArg, value: Any, a: str) -> bool:
        torch = sys.modules.get("torch")
        if JitArgumentRegistry.get(type(value)) is not None:
            return False
        if isinstance(value, np.ndarray):
            self._numpy(argument, value, a)
        elif torch is not None and isinstance(value, torch.Tensor):
            self._torch(argument, value, a)
        else:
            return False
        self.array_names.append(name)
        self.arrays.append(a)
        return True

    def _torch(self, argument: MemRefJitArg, value: Any, a: str) -> None:
        n, rank = a[1:], argument.rank
        self.checks.append(f"type({a}) is {self.keep(type(value))}")
        self.checks.append(f"{a}.dtype is {self.keep(value.dtype)}")
        strides, shape = [f"s{n}_{i}" for i in range(rank)], [f"n{n}_{i}" for i in range(rank)]
        self.reads.append(f"{', '.join(strides)}, = {a}.stride()")
        self.reads.append(f"{shape[0]} = {a}.numel()" if rank == 1 else f"{', '.join(shape)}, = {a}.shape")
        self._layout(argument, shape, strides, 1)
        self.reads += [f"p{n} = {a}.data_ptr()", f"d{n} = {a}.get_device()", f"if not p{n}: return False"]
        self.devices.append(f"d{n}")
        self._flat_tensor(argument, f"p{n}", shape, strides)

    def _numpy(self, argument: MemRefJitArg, value: np.ndarray, a: str) -> None:
        n, rank, size = a[1:], argument.rank, value.itemsize
        self.checks.append(f"type({a}) is {self.keep(type(value))}")
        self.checks.append(f"{a}.dtype is {self.keep(value.dtype)}")
        strides, shape = [f"s{n}_{i}" for i in range(rank)], [f"n{n}_{i}" for i in range(rank)]
        self.reads.append(f"{', '.join(strides)}, = {a}.strides")
        self.reads.append(f"{', '.join(shape)}, = {a}.shape")
        self._layout(argument, shape, strides, size)
        others = [strides[i] for i in argument.stride_dyn_indices]
        if others and size > 1:
            self.reads.append(f"if {' or '.join(f'{s} % {size}' for s in others)}: return False")
        self.reads.append(f"p{n} = {self.keep(address_function(value))}({a})")
        self.reads.append(f"if p{n} % {value.dtype.alignment}: return False")
        self._flat_tensor(argument, f"p{n}", shape, [f"{s} // {size}" if size > 1 else s for s in strides])

    def _layout(self, argument: MemRefJitArg, shape: list[str], strides: list[str], one: int) -> None:
        """Check extents and strides: those that are static, promises of those that are not. `one`: a stride of 1."""
        dynamic, free = argument.shape_dyn_indices, argument.stride_dyn_indices
        wrong = [f"{n} > {LARGEST_EXTENT}" for n in (shape[i] for i in dynamic)]
        wrong += [f"{shape[i]} != {argument.shape[i]}" for i in range(argument.rank) if i not in dynamic]
        wrong += [f"{strides[i]} != {argument.strides[i] * one}" for i in range(argument.rank) if i not in free]
        if argument.has_default_layout:  # which dimension is contiguous is the first one with a stride of 1
            wrong += [f"{s} == {one}" for s in strides[: argument.leading_dim]]
        wrong += [f"{shape[i]} % {div}" for i, div in argument.divisibility_of_shape.items() if div > 1]
        wrong += [f"{strides[i]} % {div * one}" for i, div in argument.divisibility_of_strides.items() if div > 1]
        if argument.stride_width == 32:
            wrong += [f"not {-(2**31) * one} <= {strides[i]} < {2**31 * one}" for i in free]
        if wrong:
            self.reads.append(f"if {' or '.join(wrong)}: return False")

    def _flat_tensor(self, argument: MemRefJitArg, pointer: str, shape: list[str], strides: list[str]) -> None:
        if argument.align > 1:
            self.reads.append(f"if {pointer} % {argument.align}: return False")
        self.flat += [pointer, *(shape[i] for i in argument.shape_dyn_indices)]
        self.flat += [strides[i] for i in argument.stride_dyn_indices]

    # --- numbers, streams, wrappers ----------------------------------------------------------------------------------

    def _number(self, argument: NumericJitArg, value: Any, a: str) -> bool:
        cls = argument.dsl_type
        if cls.is_float and cls.width <= 8:
            return False
        same = type(value) is type(argument.number) and (value == argument.number or value != value)
        if type(value) is int and cls.is_integer and same:
            self._type(a, value)
            low, high = argument.range
            self.checks.append(f"{low} <= {a} <= {high}")
            if cls.width == 64 and self.annotations[self._name(a)] is not cls:  # the class was chosen by the value
                self.checks.append(f"not {-(2**31)} <= {a} < {2**31}")
            self.flat.append(a)
            return True
        if type(value) is float and cls.is_float and same:
            self._type(a, value)
            self.flat.append(a)
            return True
        if type(value) is bool and argument.number == value or type(value) is int and cls.is_float:
            self._type(a, value)
            self.flat.append(f"{type(argument.number).__name__}({a})")
            return True
        return False

    def _name(self, a: str) -> str:
        return list(self.annotations)[int(a[1:])]

    def _stream(self, value: Any, a: str) -> bool:
        if value is None:
            self._type(a, value)
            self.flat.append("0")
        elif type(value) is int:
            self._type(a, value)
            self.flat.append(a)
        elif type(value) is Stream:
            self._type(a, value)
            self.flat.append(f"(0 if {a}.value is None else {self.keep(_stream_handle)}({a}))")
        elif hasattr(value, "cuda_stream"):
            self._type(a, value)
            self.flat.append(f"{a}.cuda_stream")
        else:
            return False
        return True

    def _wrapper(self, name: str, argument: JitArgument, a: str) -> None:
        self.checks.append(f"type({a}) is {self.keep(type(argument))}")
        if type(argument) is PointerJitArg:
            self.checks.append(f"{a}.plain is {self.keep(argument.plain)}")
            self.flat.append(f"{a}.address")
            return
        self.key.append(f"{a}.signature()")
        self._wrapped(name, argument, a)

    def _any(self, name: str, argument: JitArgument, a: str) -> None:
        """Wrap the argument as the slow way does."""
        make = functools.partial(_wrap, self.annotations[name], name, self.function)
        self.reads.append(f"{a} = {self.keep(make)}({a})")
        self.key.append(f"{a}.signature()")
        self._wrapped(name, argument, a)

    def _wrapped(self, name: str, argument: JitArgument, a: str) -> None:
        self.flat.append(f"*{a}.flat()")
        if argument.buffer() is not None:
            self.array_names.append(name)
            self.arrays.append(a)
            self.devices.append(f"{a}.buffer().device")


def _wrap(annotation: Any, name: str, function: str, value: Any) -> JitArgument:
    return wrap(value, annotation, name, function)


def _stream_handle(stream: Stream) -> int:
    return StreamJitArg(stream).handle


def buffer(array: Any) -> Any:
    """Return the memory of an argument of the fast path."""
    return array.buffer() if isinstance(array, JitArgument) else host_array(array)

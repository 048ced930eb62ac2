"""Launch arguments: how a Python object becomes a parameter of a compiled function.

A `JitArgument` wraps one object. It states what specialises the code (`signature`), the IR types of the host
function's parameter, the DSL value inside, and at each launch the flat machine values: pointers as integers, numbers,
in the order that `fly-rewrite-func-signature` uses.
"""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import functools
import struct
from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from flydsl import layout as la
from flydsl.compiler.declared import (
    check_array,
    check_not_number,
    check_number,
    check_scalar,
    declared_as,
    integer_range,
    is_scalar_class,
    refuse_pointer,
)
from flydsl.compiler.fingerprint import Constant, function_digest
from flydsl.diag import ArgumentType, StrideNotUnit, TensorExtent, TensorPromise, TensorRank
from flydsl.dialects import type_of
from flydsl.expr.enum import AddressSpace, space_name
from flydsl.expr.numeric import Boolean, Float32, Int32, Int64, Numeric
from flydsl.expr.typing import Constexpr, Pointer, Stream, Tensor
from flydsl.expr.values import wrap as wrap_value
from flydsl.ir import get_context, get_types, ir
from flydsl.layout.view import MemRef, Ptr
from flydsl.runtime.host_arrays import HostArray, argument_array, broken_promise
from flydsl.runtime.small_floats import small_float_bits
from flydsl.runtime.streams import stream_handle

LARGEST_EXTENT = 2**31 - 1  # extents are 32-bit values in kernels


class JitArgument:
    """Base of the wrappers. `dsl_type` is the class of the value that the traced function sees."""

    dsl_type: type | None = None

    def signature(self) -> Hashable:
        """Return what the generated code depends on."""
        raise NotImplementedError

    def ir_types(self) -> list[ir.Type]:
        """Return the types of the host function's parameters."""
        raise NotImplementedError

    def dsl(self, values: Sequence[ir.Value]) -> Any:
        """Return the DSL value made of the parameters' IR values."""
        raise NotImplementedError

    def flat(self) -> list[Any]:
        """Return the machine values of a launch."""
        raise NotImplementedError

    def buffer(self) -> HostArray | None:
        """Return the memory that the argument gives access to, or None."""
        return None

    def describe(self) -> str:
        """Return what the argument is, in words, for an error about its type."""
        return described_signature(self.signature())

    # The protocol's names

    def __get_ir_types__(self) -> list[ir.Type]:
        return self.ir_types()

    def __cache_signature__(self) -> Hashable:
        return self.signature()


class MemRefJitArg(JitArgument):
    """A tensor. The layout is static until `mark_*` makes parts of it dynamic; all of these return the object
    itself."""

    dsl_type = Tensor

    def __init__(
        self,
        array: HostArray,
        *,
        assumed_align: int | None = None,
        use_32bit_stride: bool = False,
        dynamic_layout: bool = False,
    ):
        if not array.shape:
            raise TensorRank()
        if assumed_align is not None and assumed_align < 1:
            raise ValueError(f"assumed_align must be at least 1, got {assumed_align}")
        self.array = array
        self.align = assumed_align or 0
        self.stride_width = 32 if use_32bit_stride else 64
        self.has_default_layout = dynamic_layout and not self.align and not use_32bit_stride
        self._shape_div: dict[int, int] = {}
        self._stride_div: dict[int, int] = {}
        self._plain: MemRef | None = None
        if dynamic_layout:
            self.mark_layout_dynamic()

    shape = property(lambda self: self.array.shape)
    strides = property(lambda self: self.array.strides)
    rank = property(lambda self: len(self.array.shape))
    dtype = property(lambda self: self.array.elem)
    is_layout_dynamic = property(lambda self: bool(self._shape_div or self._stride_div))
    leading_dim = property(lambda self: next((i for i in range(self.rank) if i not in self._stride_div), -1))
    divisibility_of_shape = property(lambda self: self._shape_div)
    divisibility_of_strides = property(lambda self: self._stride_div)
    shape_dyn_indices = property(lambda self: tuple(sorted(self._shape_div)))
    stride_dyn_indices = property(lambda self: tuple(sorted(self._stride_div)))

    def __cache_signature__(self) -> Hashable:
        """Return dtype, alignment, stride width, shape and strides; what is dynamic is given as its divisibility,
        negated."""
        array = self.array
        shape = tuple(-self._shape_div[i] if i in self._shape_div else int(n) for i, n in enumerate(array.shape))
        strides = tuple(-self._stride_div[i] if i in self._stride_div else int(s) for i, s in enumerate(array.strides))
        return (array.elem, self.align, self.stride_width, shape, strides)

    def __c_abi_spec__(self) -> list[tuple[type, Callable]]:
        """Return (C type, fill) of the slots: the address, then what is dynamic as packed little-endian integers."""
        letters = "i" * len(self._shape_div) + ("q" if self.stride_width == 64 else "i") * len(self._stride_div)
        slots: list[tuple[type, Callable]] = [(ctypes.c_void_p, _fill_address)]
        if letters:
            buffer = ctypes.c_char * struct.calcsize(f"<{letters}")
            slots.append((buffer, functools.partial(_fill_layout, f"<{letters}")))
        return slots

    def mark_layout_dynamic(self, leading_dim: int | None = None, divisibility: int = 1) -> MemRefJitArg:
        """Make all extents dynamic, and all strides but that of `leading_dim`, which must be 1."""
        strides = self.array.strides
        if leading_dim is None:
            leading_dim = next((i for i, s in enumerate(strides) if s == 1), -1)
            if leading_dim < 0:
                raise StrideNotUnit(shape=self.array.shape, strides=strides)
        (leading_dim,) = self._dims(leading_dim)
        self.has_default_layout = self.has_default_layout and divisibility == 1
        if strides[leading_dim] != 1:
            raise ValueError(f"leading_dim={leading_dim} has stride {strides[leading_dim]}, not 1")
        self._check_divisibility([divisibility])
        self._shape_div = dict.fromkeys(range(self.rank), 1)
        self._stride_div = {i: divisibility for i in range(self.rank) if i != leading_dim}
        self._plain = None
        return self

    def mark_shape_dynamic(self, dims: int | Sequence[int], divisibility: int | Sequence[int] = 1) -> MemRefJitArg:
        """Make extents dynamic, each known to be a multiple of its divisibility (a power of two)."""
        self._mark(self._shape_div, dims, divisibility)
        return self

    def mark_stride_dynamic(self, dims: int | Sequence[int], divisibility: int | Sequence[int] = 1) -> MemRefJitArg:
        """Make strides dynamic, each known to be a multiple of its divisibility (a power of two)."""
        self._mark(self._stride_div, dims, divisibility)
        return self

    def _mark(self, table: dict[int, int], dims: int | Sequence[int], divisibility: int | Sequence[int]) -> None:
        if isinstance(dims, int) and not isinstance(divisibility, int):
            raise ValueError(f"divisibility must be an int where dims is one, got {divisibility}")
        dims = self._dims(dims)
        self.has_default_layout = False
        divs = [divisibility] * len(dims) if isinstance(divisibility, int) else list(divisibility)
        if len(divs) != len(dims):
            raise ValueError(f"dims and divisibility must have equal length, got {len(dims)} and {len(divs)}")
        self._check_divisibility(divs)
        table.update(zip(dims, divs, strict=True))
        self._plain = None

    def _dims(self, dims: int | Sequence[int]) -> list[int]:
        out = []
        for d in [dims] if isinstance(dims, int) else dims:
            if not -self.rank <= d < self.rank:
                raise ValueError(f"dimension {d} is out of range for a tensor of {self.rank} dimensions")
            out.append(d % self.rank)
        return out

    def _check_divisibility(self, divs: Sequence[int]) -> None:
        for d in divs:
            if not isinstance(d, int) or d < 1 or d & (d - 1):
                raise ValueError(f"divisibility must be a power of two, got {d}")

    @property
    def plain(self) -> MemRef:
        """The type as a plain value."""
        if self._plain is None:
            shape = tuple(
                la.Sym(32, self._shape_div[i]) if i in self._shape_div else int(n)
                for i, n in enumerate(self.array.shape)
            )
            stride = tuple(
                la.Sym(self.stride_width, self._stride_div[i]) if i in self._stride_div else int(s)
                for i, s in enumerate(self.array.strides)
            )
            layout = la.Layout(shape[0], stride[0]) if len(shape) == 1 else la.Layout(shape, stride)
            self._plain = MemRef(Ptr(self.array.elem, "global", self.align), layout)
        return self._plain

    def signature(self) -> Hashable:
        return ("tensor", self.plain)

    def ir_types(self) -> list[ir.Type]:
        return [type_of(self.plain, get_context())]

    def dsl(self, values: Sequence[ir.Value]) -> Tensor:
        return wrap_value(self.plain, values[0])

    def flat(self) -> list[int]:
        array = self.array
        shape = [array.shape[i] for i in sorted(self._shape_div)]
        if shape and max(shape) > LARGEST_EXTENT:
            raise TensorExtent(shape=array.shape)
        if not self.has_default_layout:
            problem = self.broken_promise()
            if problem:
                raise TensorPromise(problem=problem)
        stride = [array.strides[i] for i in sorted(self._stride_div)]
        return [array.address, *shape, *stride]

    def broken_promise(self) -> str:
        """Return what of the alignment and divisibility that the code relies on does not hold; empty where all does."""
        return broken_promise(self.array, self.align, self._shape_div, self._stride_div, self.stride_width)

    def of_same_type(self, array: HostArray) -> MemRefJitArg | None:
        """Return a tensor under this one's type: with the same layout marks. None where it does not have that type."""
        mine = self.array
        if array.elem != mine.elem or len(array.shape) != self.rank:
            return None
        for i in range(self.rank):
            if i not in self._shape_div and array.shape[i] != mine.shape[i]:
                return None
            if i not in self._stride_div and array.strides[i] != mine.strides[i]:
                return None
        made = copy.copy(self)
        made.array = array
        return None if made.broken_promise() else made

    def describe(self) -> str:
        return _described_tensor(self.array.elem, self.array.shape, self.array.strides)

    def buffer(self) -> HostArray:
        return self.array


def _fill_address(argument: MemRefJitArg, storage: ctypes.c_void_p) -> None:
    storage.value = argument.array.address


def _fill_layout(packing: str, argument: MemRefJitArg, storage: ctypes.Array) -> None:
    struct.pack_into(packing, storage, 0, *argument.flat()[1:])


def described_signature(signature: Hashable) -> str:
    """Return in words what the code of a signature takes."""
    match signature:
        case ("tensor", MemRef() as plain):
            layout = plain.layout
            shape, strides = (x if isinstance(x, tuple) else (x,) for x in (layout.shape, layout.stride))
            return _described_tensor(plain.ptr.elem, *(tuple(map(_described_leaf, x)) for x in (shape, strides)))
        case ("pointer", Ptr() as plain):
            return f"a pointer to {plain.elem}"
        case ("static", (type(), value)):
            return f"the constant {value!r}"
        case ("static", value):
            return f"the constant {value!r}"
        case type():
            return signature.__name__
    return str(signature)


def _described_leaf(leaf: Any) -> str:
    if not isinstance(leaf, la.Sym):
        return str(leaf)
    return "any" if leaf.div == 1 else f"multiple of {leaf.div}"


def _described_tensor(elem: str, shape: Sequence[Any], strides: Sequence[Any]) -> str:
    shape, strides = (", ".join(map(str, x)) for x in (shape, strides))
    return f"a tensor of {elem}, shape ({shape}), strides ({strides})"


class TorchTensorJitArg(MemRefJitArg):
    """A torch tensor; given as it is, its layout is dynamic."""

    def __init__(self, tensor: Any, *, dynamic_layout: bool = True, **options: Any):
        super().__init__(argument_array(tensor), dynamic_layout=dynamic_layout, **options)


class DLTensorJitArg(MemRefJitArg):
    """Any tensor that exposes its memory: NumPy, DLPack, torch."""


def from_dlpack(tensor: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False) -> DLTensorJitArg:
    """Wrap a tensor with a fully static layout; `assumed_align` in bytes."""
    return DLTensorJitArg(argument_array(tensor), assumed_align=assumed_align, use_32bit_stride=use_32bit_stride)


def from_torch_tensor(
    tensor: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False
) -> TorchTensorJitArg:
    """Wrap a torch tensor with a fully static layout; `assumed_align` in bytes."""
    return TorchTensorJitArg(
        tensor, dynamic_layout=False, assumed_align=assumed_align, use_32bit_stride=use_32bit_stride
    )


def without_memory(argument: JitArgument) -> JitArgument:
    """Return an argument that does not keep its memory alive: its form only."""
    if not isinstance(argument, MemRefJitArg):
        return argument
    made = copy.copy(argument)
    made.array = dataclasses.replace(argument.array, owner=None)
    return made


class PointerJitArg(JitArgument):
    """A raw address with an element type."""

    dsl_type = Pointer

    def __init__(
        self,
        element_type: type[Numeric],
        pointer: ctypes.c_void_p | int | None,
        address_space: AddressSpace = AddressSpace.Global,
        alignment: int | None = None,
    ):
        address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
        self.address = int(address or 0)
        self.plain = _pointer(element_type, address_space, alignment or 0)

    def signature(self) -> Hashable:
        return ("pointer", self.plain)

    def ir_types(self) -> list[ir.Type]:
        return [type_of(self.plain, get_context())]

    def dsl(self, values: Sequence[ir.Value]) -> Pointer:
        return wrap_value(self.plain, values[0])

    def flat(self) -> list[int]:
        return [self.address]


@functools.cache
def _pointer(element_type: type[Numeric], address_space: AddressSpace, alignment: int) -> Ptr:
    """Return one object per type: the fast path compares by identity."""
    return Ptr(element_type.element.mlir, space_name(address_space), alignment)


def compiled_form(argument: JitArgument) -> JitArgument | None:
    """Return what `compiled_argument` needs of an argument that a function was compiled for."""
    return without_memory(argument) if isinstance(argument, (MemRefJitArg, PointerJitArg)) else None


def compiled_argument(value: Any, compiled: JitArgument | None) -> Any:
    """Return an argument of a compiled function under the type that it was compiled for, where it has that type: a
    bare address as a typed pointer, a tensor with the layout marks."""
    if isinstance(compiled, PointerJitArg) and type(value) in (int, ctypes.c_void_p):
        pointer = PointerJitArg.__new__(PointerJitArg)
        pointer.address = int((value.value if type(value) is ctypes.c_void_p else value) or 0)
        pointer.plain = compiled.plain
        return pointer
    if isinstance(compiled, MemRefJitArg) and not compiled.has_default_layout:
        is_wrapped = isinstance(value, JitArgument) or JitArgumentRegistry.get(type(value)) is not None
        array = None if is_wrapped else argument_array(value, missing_ok=True)
        return value if array is None else compiled.of_same_type(array) or value
    return value


def from_c_void_p(
    element_type: type[Numeric],
    pointer: ctypes.c_void_p | int | None,
    *,
    address_space: AddressSpace = AddressSpace.Global,
    assumed_align: int | None = None,
) -> PointerJitArg:
    """Wrap an address; `assumed_align` in bytes (default: that of the element type)."""
    return PointerJitArg(element_type, pointer, address_space, assumed_align)


class NumericJitArg(JitArgument):
    """A number of a scalar class."""

    def __init__(self, cls: type[Numeric], value: Any, parameter: str = "", function: str = ""):
        self.dsl_type = cls
        if isinstance(value, Numeric):
            value = value.value
        else:
            check_number(cls, value, parameter, function)
        self.number = cls(value).value
        if cls.is_float and cls.width <= 8:  # lowered code takes the bits of floats that no arithmetic knows
            self.number = small_float_bits(cls.element.mlir, self.number)

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest value of an integer class."""
        return integer_range(self.dsl_type)

    def signature(self) -> Hashable:
        return self.dsl_type

    def ir_types(self) -> list[ir.Type]:
        return [get_types().by_name[self.dsl_type.element.mlir]]

    def dsl(self, values: Sequence[ir.Value]) -> Numeric:
        return self.dsl_type(values[0])

    def flat(self) -> list[Any]:
        return [self.number]


class StreamJitArg(JitArgument):
    """A stream: None (default), an integer handle, a torch stream, or `fx.Stream` of one."""

    dsl_type = Stream

    def __init__(self, value: Any = None):
        self.handle = stream_handle(value.value if isinstance(value, Stream) else value)

    def signature(self) -> Hashable:
        return "stream"

    def ir_types(self) -> list[ir.Type]:
        return [get_types().llvm_ptr(0)]

    def dsl(self, values: Sequence[ir.Value]) -> Stream:
        return Stream(values[0])

    def flat(self) -> list[int]:
        return [self.handle]


class StaticJitArg(JitArgument):
    """A compile-time Python value: it takes no parameter, and another value is another specialisation."""

    def __init__(self, value: Any):
        self.value = value

    def signature(self) -> Hashable:
        return ("static", _exact(self.value))

    def ir_types(self) -> list[ir.Type]:
        return []

    def dsl(self, values: Sequence[ir.Value]) -> Any:
        return self.value

    def flat(self) -> list[Any]:
        return []


def _exact(value: Any) -> Hashable:
    """Return what distinguishes a constant: 1, 1.0 and True are three values, functions differ by what they capture."""
    if type(value) in (tuple, list):
        return (type(value), tuple(map(_exact, value)))
    if type(value) is dict:
        return (type(value), tuple((_exact(k), _exact(v)) for k, v in value.items()))
    if isinstance(value, float):
        return (type(value), repr(value))
    if isinstance(value, FunctionType):
        return (value.__qualname__, function_digest(value))
    if Constant.is_needed(value):
        return Constant(value)
    return (type(value), value)


class DslJitArg(JitArgument):
    """A DSL value with no run-time part (layout, tile, atom, tiled copy)."""

    def __init__(self, value: Any):
        self.value = value
        self.dsl_type = type(value)

    def signature(self) -> Hashable:
        return (self.dsl_type, self.value.plain)

    def ir_types(self) -> list[ir.Type]:
        return []

    def dsl(self, values: Sequence[ir.Value]) -> Any:
        return self.value

    def flat(self) -> list[Any]:
        return []


class CustomJitArg(JitArgument):
    """An object of a class that implements the public protocol `__get_ir_types__` and `__c_abi_spec__`."""

    def __init__(self, wrapped: Any, dsl_type: type):
        self.wrapped = wrapped
        self.dsl_type = dsl_type

    def signature(self) -> Hashable:
        sign = getattr(self.wrapped, "__cache_signature__", None)
        return (type(self.wrapped), sign() if sign is not None else tuple(map(str, self.wrapped.__get_ir_types__())))

    def ir_types(self) -> list[ir.Type]:
        with get_context(), ir.Location.unknown():
            return list(self.wrapped.__get_ir_types__())

    def dsl(self, values: Sequence[ir.Value]) -> Any:
        return self.dsl_type.__construct_from_ir_values__(list(values))

    def flat(self) -> list[Any]:
        out = []
        for ctype, fill in self.wrapped.__c_abi_spec__():
            storage = ctype()
            fill(self.wrapped, storage)
            out.append(storage.value)
        return out


class JitArgumentRegistry:
    """Which wrapper a Python type gets when it is passed for a launch parameter."""

    registry: dict[type, tuple[Callable, type | None]] = {}
    jit_arg2dsl_type: dict[type, type] = {}

    @classmethod
    def register(cls, py_type: type, *, dsl_type: type | None = None) -> Callable:
        """Decorate a constructor (a JitArgument class or a function) for `py_type`; ValueError when it has one."""

        def decorate(constructor: Callable) -> Callable:
            if py_type in cls.registry:
                raise ValueError(f"{py_type.__name__} already has a registered constructor")
            cls.registry[py_type] = (constructor, dsl_type)
            if dsl_type is not None and isinstance(constructor, type):
                cls.jit_arg2dsl_type[constructor] = dsl_type
            return constructor

        return decorate

    @classmethod
    def register_jit_arg(cls, jit_arg: type, dsl_type: type) -> None:
        """State the DSL class of a JitArgument class; ValueError when it has one."""
        if jit_arg in cls.jit_arg2dsl_type:
            raise ValueError(f"{jit_arg.__name__} already has a DSL type")
        cls.jit_arg2dsl_type[jit_arg] = dsl_type

    @classmethod
    def get(cls, py_type: type) -> tuple[Callable, type | None] | None:
        """Return (constructor, DSL class) of a type or its nearest registered parent, or None."""
        for base in py_type.__mro__:
            if base in cls.registry:
                return cls.registry[base]
        return None

    @classmethod
    def get_dsl_type(cls, jit_arg_type: type) -> type | None:
        """Return the DSL class of a JitArgument class."""
        for base in jit_arg_type.__mro__:
            if base in cls.jit_arg2dsl_type:
                return cls.jit_arg2dsl_type[base]
        return getattr(jit_arg_type, "dsl_type", None)


def is_type_param_annotation(annotation: Any) -> bool:
    """Return whether a parameter takes a class (`type`, `Type[...]`)."""
    return annotation is type or getattr(annotation, "__origin__", None) is type


def wrap(value: Any, annotation: Any, parameter: str, function: str) -> JitArgument:
    """Return the JitArgument of `value` passed for a parameter.

    Raises ArgumentType: nothing is known about the value's type.
    """
    if isinstance(value, JitArgument):
        return value
    if Constexpr.is_annotation(annotation):
        return StaticJitArg(Constexpr.checked(annotation, value, parameter))
    if annotation is Stream or isinstance(value, Stream):
        return StreamJitArg(value)
    if is_type_param_annotation(annotation) or isinstance(value, type):
        return StaticJitArg(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if isinstance(value, (int, float)):
        if is_scalar_class(annotation):
            return NumericJitArg(annotation, value, parameter, function)
        if type(value) in (int, float, bool):
            check_not_number(annotation, value, parameter, function)
    if isinstance(value, Numeric):
        check_not_number(annotation, value, parameter, function)
        if is_scalar_class(annotation):
            check_scalar(annotation, value, parameter, function)
        return NumericJitArg(type(value), value)
    return _by_type(value, annotation, parameter, function)


def _by_type(value: Any, annotation: Any, parameter: str, function: str) -> JitArgument:
    found = JitArgumentRegistry.get(type(value))
    if found is not None:
        constructor, dsl_type = found
        made = constructor(value)
        if isinstance(made, JitArgument):
            return made
        return CustomJitArg(made, dsl_type or JitArgumentRegistry.get_dsl_type(type(made)))
    if hasattr(value, "__get_ir_types__") and hasattr(value, "__c_abi_spec__"):
        return CustomJitArg(value, JitArgumentRegistry.get_dsl_type(type(value)) or type(value))
    if isinstance(value, bool):
        return NumericJitArg(Boolean, value)
    if isinstance(value, int):
        return NumericJitArg(Int32 if -(2**31) <= value < 2**31 else Int64, value)
    if isinstance(value, float):
        return NumericJitArg(Float32, value)
    if getattr(value, "is_static", False) is True and hasattr(value, "plain"):
        return DslJitArg(value)
    if hasattr(value, "cuda_stream"):
        return StreamJitArg(value)
    array = argument_array(value, parameter, missing_ok=True)
    if array is not None:
        check_array(annotation, value, parameter, function)
        return MemRefJitArg(array, dynamic_layout=True)
    if annotation is Pointer:
        refuse_pointer(value, parameter, function)
    raise ArgumentType(
        parameter=parameter,
        got=type(value).__name__,
        function=function,
        declared=declared_as(annotation),
        advice="pass a number, an array (NumPy, torch, DLPack), a stream, or register the type: JitArgumentRegistry",
    )



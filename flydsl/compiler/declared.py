"""Whether what is passed for a parameter of a kernel or jit function is of the kind that its annotation declares.

Integers for an integer class must be in its range: `fx.Int32(0xFFFFFFFF)` says that the bits are meant. A scalar of another
class keeps its own class, which loses nothing, and a warning says so; only a float for an integer parameter is refused.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np

from flydsl.diag import ArgumentClass, ArgumentRange, ScalarClassKept, Span, UndeclaredNumber, warn
from flydsl.expr.numeric import Boolean, Numeric
from flydsl.expr.typing import Constexpr, Pointer, Stream, Tensor
from flydsl.utils import env

_POINTER_WHY = "a pointer is an address with an element type: a bare number has no type, and a shape would be ignored"
_POINTER_FIX = "pass flyc.from_c_void_p(fx.Float32, address), where the address is tensor.data_ptr() or array.ctypes.data"
_HOST_WHY = "this is an array of the host; tensors of kernels are made where arrays are passed to the @jit function"
_HOST_FIX = "give the @jit function a parameter (`{parameter}: fx.Tensor`), pass the array for it, and pass that to the kernel"
_TENSOR_WHY = "a tensor is an array with a shape and strides"
_TENSOR_FIX = "pass an array (NumPy, torch, DLPack), or declare the parameter as a scalar (`{parameter}: fx.Int32`)"
_SCALAR_WHY = "a scalar parameter is one number"
_SCALAR_FIX = "pass a number or a scalar of fx; declare fx.Tensor for arrays, fx.Constexpr[...] for what is known while compiling"
_FLOAT_WHY = "the annotation would be ignored, and the code compiled with floating-point arithmetic instead"
_FLOAT_FIX = "convert it (`x.to(fx.{declared})` rounds toward zero), or declare the parameter as fx.{got}"


def is_scalar_class(annotation: Any) -> bool:
    """Return whether an annotation is a scalar class such as fx.Int32."""
    return isinstance(annotation, type) and issubclass(annotation, Numeric)


def integer_range(cls: type[Numeric]) -> tuple[int, int]:
    """Return the least and the greatest value of an integer class."""
    if cls is Boolean:
        return 0, 1
    return (-(1 << cls.width - 1), (1 << cls.width - 1) - 1) if cls.signed else (0, (1 << cls.width) - 1)


def check_number(cls: type[Numeric], value: bool | int | float, parameter: str, function: str) -> None:
    """Refuse a Python number that an integer class does not have.

    Raises   ArgumentRange: a fraction, infinity, or beyond the range
    """
    if not cls.is_integer or cls is Boolean and type(value) is float:
        return
    low, high = integer_range(cls)
    if not low <= value <= high or type(value) is float and not value.is_integer():
        raise ArgumentRange(value=value, dtype=cls.__name__, low=low, high=high, parameter=parameter, function=function)


def check_scalar(cls: type[Numeric], value: Numeric, parameter: str, function: str) -> None:
    """Refuse a float for an integer parameter.

    Raises   ArgumentClass
    """
    if cls.is_integer and value.is_float:
        _refuse(cls, value, parameter, function, _FLOAT_WHY, _FLOAT_FIX)


def warn_of_class(annotation: Any, got: type | None, parameter: str, function: str) -> None:
    """Warn where a scalar has another class than the declared one, which it keeps."""
    if got is not annotation and is_scalar_class(annotation) and is_scalar_class(got) and env.compile.warn:
        warn(ScalarClassKept(parameter=parameter, function=function, declared=annotation.__name__, got=got.__name__))


def check_array(annotation: Any, value: Any, parameter: str, function: str) -> None:
    """Refuse an array where a pointer or a scalar is declared.

    Raises   ArgumentClass
    """
    if annotation is Pointer:
        refuse_pointer(value, parameter, function)
    if is_scalar_class(annotation):
        _refuse(annotation, value, parameter, function, _SCALAR_WHY, _SCALAR_FIX)


def refuse_pointer(value: Any, parameter: str, function: str) -> None:
    """Refuse what is no typed pointer. Raises ArgumentClass."""
    _refuse(Pointer, value, parameter, function, _POINTER_WHY, _POINTER_FIX)


def check_not_number(annotation: Any, value: Any, parameter: str, function: str) -> None:
    """Refuse a number where a tensor or a pointer is declared.

    Raises   ArgumentClass
    """
    if annotation is Pointer:
        refuse_pointer(value, parameter, function)
    if annotation is Tensor:
        _refuse(Tensor, value, parameter, function, _TENSOR_WHY, _TENSOR_FIX)


def kernel_value(value: Any, annotation: Any, parameter: str, kernel: str) -> Any:
    """Return what the body of a kernel gets for one argument: a number becomes a scalar of the declared class.

    Raises   ArgumentRange, ArgumentClass; UndeclaredNumber: a Python number without an annotation that says what it is
    """
    if Constexpr.is_annotation(annotation) or isinstance(value, (type, Stream)) or annotation is Stream:
        return value
    if is_scalar_class(annotation):
        return _kernel_scalar(annotation, value, parameter, kernel)
    if annotation in (Tensor, Pointer) and (isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")):
        _refuse(annotation, value, parameter, kernel, _HOST_WHY, _HOST_FIX)
    if isinstance(value, Numeric):
        check_not_number(annotation, value, parameter, kernel)
    elif type(value) in (bool, int, float):
        check_not_number(annotation, value, parameter, kernel)
        refuse_undeclared(value, parameter, kernel, None)
    return value


def check_parts(value: Any, parameter: str, kernel: str, at: Span | None) -> None:
    """Refuse Python numbers in a container of run-time values.

    Raises   UndeclaredNumber
    """
    if isinstance(value, (tuple, list)):
        parts = [(f"{parameter}[{i}]", v) for i, v in enumerate(value)]
    elif isinstance(value, dict):
        parts = [(f"{parameter}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, SimpleNamespace):
        parts = [(f"{parameter}.{k}", v) for k, v in vars(value).items()]
    else:
        return
    for name, part in parts:
        if type(part) in (bool, int, float):
            refuse_undeclared(part, name, kernel, at)
        check_parts(part, name, kernel, at)


def refuse_undeclared(value: bool | int | float, parameter: str, kernel: str, at: Span | None) -> None:
    """Raise UndeclaredNumber."""
    names = {"type": type(value).__name__, "cls": _class_name(value)}
    name = parameter.partition("[")[0].partition(".")[0]
    raise UndeclaredNumber(at=at, parameter=parameter, name=name, kernel=kernel, value=value, **names)


def _kernel_scalar(cls: type[Numeric], value: Any, parameter: str, kernel: str) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if isinstance(value, (int, float)):
        check_number(cls, value, parameter, kernel)
        return cls(value)
    if isinstance(value, Numeric):
        check_scalar(cls, value, parameter, kernel)
        warn_of_class(cls, type(value), parameter, kernel)
    elif isinstance(value, (str, bytes, np.ndarray)):
        _refuse(cls, value, parameter, kernel, _SCALAR_WHY, _SCALAR_FIX)
    return value


def _class_name(value: bool | int | float) -> str:
    return {bool: "Boolean", float: "Float32"}.get(type(value), "Int32" if -(2**31) <= value < 2**31 else "Int64")


def _refuse(declared: type, value: Any, parameter: str, function: str, reason: str, advice: str) -> None:
    names = {"declared": declared.__name__, "got": type(value).__name__, "parameter": parameter}
    raise ArgumentClass(**names, function=function, reason_text=reason, advice_text=advice.format(**names))


def declared_as(annotation: Any) -> str:
    """Return an annotation as an error names it."""
    return "no type" if annotation is inspect.Parameter.empty else getattr(annotation, "__name__", "no type")

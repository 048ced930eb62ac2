"""Annotations of parameters and fields: `Constexpr[T]`, a plain Python value that specialises the code, and `Stream`."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from flydsl.diag import ConstexprLambda, ConstexprRunTime, ConstexprType, ConstexprValue
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.values import FlyValue
from flydsl.ir import ir

_ALLOWED = (int, bool, float, str, tuple)

_T = TypeVar("_T")

if TYPE_CHECKING:
    Constexpr = Annotated[_T, "known while tracing"]  # to a type checker, `Constexpr[int]` is an int
else:

    class Constexpr:
        """`Constexpr[T]`: known while tracing, not passed at run time. T is int, bool, float, str, tuple, `tuple[...]` of
        these, or Callable.
        """

        value_type: ClassVar[Any] = None
        value: ClassVar[Any] = None
        is_specialized: ClassVar[bool] = False
        _classes: ClassVar[dict[Any, type]] = {}

        def __class_getitem__(cls, param: Any) -> type[Constexpr]:
            key = Callable if param is Callable or getattr(param, "__origin__", None) is Callable else param
            if not _is_allowed(key):
                raise ConstexprType(got=getattr(param, "__name__", param))
            known = cls._classes.get(key)
            if known is None:
                name = f"Constexpr[{getattr(key, '__name__', str(key))}]"
                known = cls._classes[key] = type(name, (Constexpr,), {"value_type": key})
            return known

        @classmethod
        def is_constexpr_annotation(cls, annotation: Any) -> bool:
            """Return whether an annotation is `Constexpr` or `Constexpr[T]`."""
            return isinstance(annotation, type) and issubclass(annotation, Constexpr)

        is_annotation = is_constexpr_annotation

        @classmethod
        def checked(cls, annotation: Any, value: Any, parameter: str = "") -> Any:
            """Return the value of a launch parameter; a run-time value is refused."""
            dynamic = isinstance(value, Numeric) and not value.is_static()
            if dynamic or isinstance(value, ir.Value) or (isinstance(value, FlyValue) and not value.is_static):
                raise ConstexprRunTime(parameter=parameter or "a Constexpr parameter", got=type(value).__name__)
            return value.value if isinstance(value, Numeric) else value

        @classmethod
        def accept(cls, value: Any, field: str) -> Any:
            """Return the value of a struct field; its Python type must be exactly the declared one."""
            wanted = cls.value_type
            if wanted is None:
                return value
            if not _fits(value, wanted):
                name = "Callable" if _is_callable(wanted) else wanted.__name__ if isinstance(wanted, type) else str(wanted)
                raise ConstexprValue(field=field, wanted=name, got=type(value).__name__)
            if isinstance(value, FunctionType) and value.__name__ == "<lambda>":
                _refuse_captures(value, field)
            return value

        @classmethod
        def value_signature(cls, value: Any) -> object:
            """Return what distinguishes a value in cache keys: functions by their code."""
            if isinstance(value, FunctionType):
                code = value.__code__
                return (value.__qualname__, code.co_code, repr(code.co_consts), code.co_names)
            return (type(value).__name__, value)

        @classmethod
        def __extract_to_ir_values__(cls) -> list[ir.Value]:
            return []

        @classmethod
        def __get_ir_types__(cls) -> list[ir.Type]:
            return []


def _is_callable(x: Any) -> bool:
    return x is Callable or getattr(x, "__name__", "") == "Callable"


def _is_tuple_of(t: Any) -> bool:
    return getattr(t, "__origin__", None) is tuple


def _is_allowed(t: Any) -> bool:
    if _is_tuple_of(t):
        return all(arg is Ellipsis or _is_allowed(arg) for arg in t.__args__)
    return _is_callable(t) or t in _ALLOWED


def _fits(value: Any, wanted: Any) -> bool:
    """Return whether the Python type of a value is exactly the declared one; elements of tuples likewise."""
    if _is_callable(wanted):
        return callable(value)
    if not _is_tuple_of(wanted):
        return type(value) is wanted
    args = wanted.__args__
    if type(value) is not tuple:
        return False
    if args[-1:] == (Ellipsis,):
        return all(_fits(v, args[0]) for v in value)
    return len(value) == len(args) and all(_fits(v, a) for v, a in zip(value, args))


def _refuse_captures(fn: FunctionType, field: str) -> None:
    names = [*fn.__code__.co_freevars, *[n for n in fn.__code__.co_names if n in fn.__globals__]]
    if names:
        raise ConstexprLambda(field=field, names=", ".join(names))


class Stream:
    """The stream of a launch: None (the default stream), an integer handle or a framework's stream object."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None):
        self.value = value.value if isinstance(value, Stream) else value

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return [self.value] if isinstance(self.value, ir.Value) else []

    @classmethod
    def __construct_from_ir_values__(cls, values: list[ir.Value], exemplar: Stream | None = None) -> Stream:
        return cls(values[0]) if values else (exemplar or cls())

"""Dialect modules of the bindings as kernels call them: DSL values go in, values with operators come out, ops land
where the DSL builds.
"""

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from types import FunctionType
from typing import Any

from flydsl._mlir._insertion import here
from flydsl.diag import UnknownDialectName
from flydsl.expr.numeric.base import Numeric, NumericMeta, raw
from flydsl.expr.numeric.raw_value import ArithValue, check_readable
from flydsl.ir import dialect, ir

_LIFTED = (ir.IntegerType, ir.FloatType, ir.IndexType, ir.VectorType)
_SEQUENCES = (list, tuple)
_AS_THEY_ARE = {int, float, str, bool, type(None)}


def lower(x: Any) -> Any:
    """Return a DSL value as its SSA value, a scalar class as its type, sequences by element; others as they are."""
    if isinstance(x, ArithValue):
        check_readable(x)
        return x
    if isinstance(x, (ir.Value, ir.Type)) or x.__class__ in _AS_THEY_ARE:
        return x
    if isinstance(x, Numeric):
        return raw(x)
    if isinstance(x, NumericMeta):
        return x.ir_type
    if isinstance(x, _SEQUENCES):
        return [lower(e) for e in x]
    if isinstance(x, (ir.Attribute, int, float)):
        return x
    if isinstance(x, type):
        return getattr(x, "ir_type", x)
    extract = getattr(x, "__extract_to_ir_values__", None)
    if extract is not None:
        return _whole(x, extract)
    return getattr(x, "_bindings", x)


def _whole(x: Any, extract: Callable) -> Any:
    value = getattr(x, "ir_value", None)
    if value is not None:
        return value()
    values = extract()
    return values[0] if len(values) == 1 else values


def lift(x: Any) -> Any:
    """Return a raw value of arithmetic type with operators, a list of values element by element; others as they are."""
    if isinstance(x, ir.Value):
        return ArithValue(x) if not isinstance(x, ArithValue) and isinstance(x.type, _LIFTED) else x
    if isinstance(x, (list, tuple, ir.OpResultList, ir.BlockArgumentList)):
        return [lift(v) for v in x]
    return x


def call(function: Callable, *args: Any, **named: Any) -> Any:
    """Run a builder of the bindings at the place of the DSL, DSL values lowered; the result is as it gives it."""
    args = [lower(a) for a in args]
    if named:
        named = {k: lower(v) for k, v in named.items()}
    with here():
        return function(*args, **named)


def _start(start: Callable, op: Any, args: tuple, named: dict) -> None:
    args = [lower(a) for a in args]
    if named:
        named = {k: lower(v) for k, v in named.items()}
    with here():
        start(op, *args, **named)


class _Lifted:
    """Property that lifts what the bindings' property of the same name gives."""

    def __init__(self, name: str, base: type):
        self.name, self.base = name, getattr(base, name)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else lift(self.base.__get__(instance, owner))


class OpClass:
    """An op class of the bindings: called, it builds the op and returns it with results that have operators."""

    def __init__(self, base: type, init: Callable | None = None, lifted: tuple[str, ...] = ()):
        self._base = base
        self.__doc__, self.__name__ = base.__doc__, base.__name__
        members = {name: _Lifted(name, base) for name in ("result", "results", *lifted) if hasattr(base, name)}
        start = init or base.__init__

        def __init__(self, *args: Any, **named: Any) -> None:
            _start(start, self, args, named)

        self._made = type(base.__name__, (base,), {"__init__": __init__, **members})

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._made(*args, **named)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self._base)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def __repr__(self) -> str:
        return f"<op class {self._base.OPERATION_NAME}>"


def function(base: Callable) -> Callable:
    """Return a builder function of the bindings, wrapped."""

    @wraps(base)
    def build(*args: Any, **named: Any) -> Any:
        return lift(call(base, *args, **named))

    return build


def exposed(name: str, module: str, own: Mapping[str, Any] | None = None) -> tuple[Callable, Callable]:
    """Return `__getattr__` and `__dir__` of the module that stands for the bindings' dialect `name`.

    `own` holds names that differ from the bindings: op classes with other call forms, enums, helpers.
    """
    own = dict(own or {})
    cache: dict[str, Any] = dict(own)

    def __getattr__(attr: str) -> Any:
        found = cache.get(attr)
        if found is None:
            found = cache[attr] = _wrap(_find(name, attr, module))
            home = sys.modules.get(module)
            if home is not None:
                setattr(home, attr, found)
        return found

    def __dir__() -> list[str]:
        return sorted({*dir(dialect(name)), *own})

    return __getattr__, __dir__


def _find(name: str, attr: str, module: str) -> Any:
    source = dialect(name)
    if attr.startswith("__") or not hasattr(source, attr):
        if attr.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {attr!r}")
        raise UnknownDialectName(module=module, name=attr, known=[n for n in dir(source) if not n.startswith("_")])
    return getattr(source, attr)


def _wrap(x: Any) -> Any:
    if isinstance(x, type) and issubclass(x, ir.OpView) and hasattr(x, "OPERATION_NAME"):
        return OpClass(x)
    return function(x) if isinstance(x, FunctionType) else x

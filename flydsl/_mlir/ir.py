"""The IR classes of the bindings. Types and attributes parse in the reference's spelling, modules print in it;
`Context` is this thread's context, because DSL values belong to it; an entered `InsertionPoint` redirects the DSL
as well.
"""

import re
from typing import Any

from flydsl._mlir._expose import lower
from flydsl._mlir._insertion import InsertionPoint, current_point
from flydsl.atoms.parse import parse_copy_op, parse_mma_op
from flydsl.ir import get_context, is_tracing, parse_attribute, parse_module, parse_type, print_op
from flydsl.ir import ir as _bindings
from flydsl.ir.trace import current as _current_trace

_OPERATIONS = ("!fly_rocdl.", "!fly.universal_")  # printed forms of the operations in atoms, which are no IR types here


class _Forward(type):
    """Class of the stand-ins: instances are those of the bindings' class, other attributes come from it."""

    _base: type

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls._base)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, cls._base)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return cls._base(*args, **named)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._base, name)

    def __repr__(cls) -> str:
        return repr(cls._base)


class Type(metaclass=_Forward):
    """`Type.parse("!fly.layout<(4,8):(8,1)>")`."""

    _base = _bindings.Type

    @staticmethod
    def parse(asm: str, context: Any = None) -> Any:
        """Return the type that a text in the reference's spelling states; of a copy or matrix operation, its record.

        Raises   IrSyntax
        """
        if asm.startswith(_OPERATIONS):
            name = asm.partition("<")[0]
            return parse_mma_op(asm) if re.search("mma|mfma|fma", name) else parse_copy_op(asm)
        return parse_type(asm, context or _context())


class Attribute(metaclass=_Forward):
    """`Attribute.parse("#fly_rocdl.buffer_desc")`."""

    _base = _bindings.Attribute

    @staticmethod
    def parse(asm: str, context: Any = None) -> _bindings.Attribute:
        """Return the attribute that a text in the reference's spelling states.

        Raises   IrSyntax
        """
        return parse_attribute(asm, context or _context())


class _ContextMeta(_Forward):
    def __call__(cls, *args: Any, **named: Any) -> _bindings.Context:
        return get_context()


class Context(metaclass=_ContextMeta):
    """`Context()` is this thread's context, with the Fly dialects loaded."""

    _base = _bindings.Context


class _LocationMeta(_Forward):
    @property
    def current(cls) -> _bindings.Location:
        """The location of the user's code while tracing, else the entered one."""
        return _current_trace().loc() if is_tracing() else _bindings.Location.current


class Location(metaclass=_LocationMeta):
    """`Location.unknown()`, `Location.file(...)`."""

    _base = _bindings.Location


class Block(metaclass=_Forward):
    """`Block.create_at_start(region, types)`; argument locations default to the user's code."""

    _base = _bindings.Block

    @staticmethod
    def create_at_start(parent: Any, arg_types: Any = (), arg_locs: Any = None) -> _bindings.Block:
        """Return a new first block of a region."""
        types = [lower(t) for t in arg_types]
        if arg_locs is None and is_tracing():
            arg_locs = [_current_trace().loc()] * len(types)
        return _bindings.Block.create_at_start(parent, types, arg_locs)


class _ModuleMeta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, _bindings.Module) or type(x) is cls


class Module(metaclass=_ModuleMeta):
    """A module made by hand; it prints in the reference's spelling."""

    def __init__(self, module: _bindings.Module):
        self._bindings = module

    @staticmethod
    def create(loc: Any = None) -> "Module":
        """Return an empty module."""
        return Module(_bindings.Module.create(loc or (_current_trace().loc() if is_tracing() else None)))

    @staticmethod
    def parse(asm: str, context: Any = None) -> "Module":
        """Return the module that a text states, in either spelling.

        Raises   IrSyntax
        """
        return Module(parse_module(asm, context or _context()))

    def __str__(self) -> str:
        return print_op(self._bindings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bindings, name)


def _context() -> _bindings.Context:
    context = _bindings.Context.current
    return get_context() if context is None else context


def __getattr__(name: str) -> Any:
    return getattr(_bindings, name)


def __dir__() -> list[str]:
    return sorted({*dir(_bindings), "InsertionPoint", "current_point"})


__all__ = ["Attribute", "Block", "Context", "InsertionPoint", "Location", "Module", "Type", "current_point"]

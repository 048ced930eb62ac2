"""What defines the symbols that kernels call through `expr.extern.ffi`: device bitcode, and functions run after
module load.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from flydsl.compiler.context import CompilationContext
from flydsl.diag import BitcodeMissing
from flydsl.expr import extern
from flydsl.expr.extern import ExternFunction

__all__ = ["BoundExternFunction", "LinkedExtern", "link_extern", "register_extern_resolver"]

_REFUSED = frozenset(" ,{}'\"\t\n")


class LinkedExtern:
    """An `ffi` with the bitcode file that defines it, and what to call with each loaded module."""

    def __init__(
        self, function: ExternFunction, bitcode_path: str | None, module_init_fn: Callable[[int], Any] | None
    ):
        path = None if bitcode_path is None else os.fspath(bitcode_path)
        if path is not None and _REFUSED & set(path):
            raise ValueError(f"bitcode_path {path!r} holds a space, comma, brace or quote, which link options cannot")
        self.function, self.bitcode_path, self.module_init_fn = function, path, module_init_fn

    symbol = property(lambda self: self.function.symbol)

    def __captured__(self) -> list[tuple[str, Any]]:
        """What code depends on: the content of the bitcode, not its place."""
        return [("function", self.function), ("bitcode", _digest(self.bitcode_path)), ("init", self.module_init_fn)]

    def __call__(self, *args: Any) -> Any:
        """Emit the call and note what the compile has to link.

        Raises   BitcodeMissing
        """
        context = CompilationContext.get_current()
        if context is not None and self.bitcode_path is not None:
            if not os.path.isfile(self.bitcode_path):
                raise BitcodeMissing(path=self.bitcode_path, symbol=self.symbol)
            context.add_link_lib(self.bitcode_path)
        if context is not None and self.module_init_fn is not None:
            context.add_post_load(self.module_init_fn)
        return self.function.emit_call(args)


def _digest(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    except OSError:
        return f"missing {path}"


def link_extern(
    function: ExternFunction, *, bitcode_path: str | None = None, module_init_fn: Callable[[int], Any] | None = None
) -> LinkedExtern:
    """Bind a device bitcode file and a function that is called with each module after it was loaded.

    Raises   ValueError: a path with spaces, commas, braces or quotes
    """
    return LinkedExtern(function, bitcode_path, module_init_fn)


def register_extern_resolver(resolver: Callable[[ExternFunction], Any]) -> Callable[[ExternFunction], Any]:
    """Let `resolver(ffi)` bind symbols that are called without a link: it returns what `link_extern` gives, or None."""
    extern._resolvers.append(resolver)
    return resolver


class BoundExternFunction(LinkedExtern):
    """The all-in-one form."""

    def __init__(
        self,
        symbol: str,
        arg_types: Sequence[str],
        ret_type: str,
        is_pure: bool = False,
        bitcode_path: str | None = None,
        module_init_fn: Callable[[int], Any] | None = None,
    ):
        super().__init__(ExternFunction(symbol, arg_types, ret_type, is_pure), bitcode_path, module_init_fn)

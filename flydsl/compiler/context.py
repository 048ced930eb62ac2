"""What surrounds a compile: hints (a stack, innermost wins), libraries to link, the target."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flydsl.diag import SwitchUnused, UnsupportedHint, warn
from flydsl.ir import current, ir
from flydsl.utils import env

_KTRACE_HINTS = ("ktrace", "ktrace_blocks")
KNOWN_HINTS = (
    "waves_per_eu",
    "fast_fp_math",
    "unsafe_fp_math",
    "fastmath",
    "llvm_options",
    "opt_level",
)


class _Ambient(threading.local):
    stack: tuple[CompilationContext, ...] = ()


ambient = _ambient = _Ambient()  # `ambient.stack`: for hot paths


def checked_hints(hints: dict[str, Any] | None) -> dict[str, Any]:
    """Return hints as a new dict; `maxnreg` is refused, unknown names warn, and so do those without effect, which go."""
    hints = dict(hints or {})
    if "maxnreg" in hints:
        raise UnsupportedHint(hint="maxnreg")
    for name in _KTRACE_HINTS:
        if hints.pop(name, None):
            warn(SwitchUnused(switch=f"compile hint `{name}`", reason=env.KTRACE_UNUSED))
    for name in hints:
        if name not in KNOWN_HINTS:
            known = ", ".join(KNOWN_HINTS)
            warnings.warn(f"compile hint '{name}' is unknown and has no effect; known: {known}", stacklevel=3)
    return hints


class CompilationContext:
    """One compile in progress, or the ambient one of this thread."""

    def __init__(self, hints: dict[str, Any] | None = None):
        self.hints = checked_hints(hints)
        self.link_libs: list[str] = []
        self.post_load: list[Callable[[int], Any]] = []

    @classmethod
    def get_current(cls) -> CompilationContext | None:
        """Return this thread's innermost context, or None."""
        return _ambient.stack[-1] if _ambient.stack else None

    @classmethod
    @contextmanager
    def create(cls, hints: dict[str, Any] | None = None) -> Iterator[CompilationContext]:
        """Enter a context that inherits the ambient hints."""
        context = cls({**cls.get_compile_hints(), **(hints or {})})
        outer = _ambient.stack
        _ambient.stack = (*outer, context)
        try:
            yield context
        finally:
            _ambient.stack = outer

    @classmethod
    def compile_hints(cls, hints: dict[str, Any]) -> Any:
        """Return a context manager: `hints` hold for compiles inside the block."""
        return cls.create(hints)

    @classmethod
    def get_compile_hints(cls) -> dict[str, Any]:
        """Return the hints in force."""
        current = cls.get_current()
        return dict(current.hints) if current is not None else {}

    @property
    def gpu_module_body(self) -> ir.Block:
        """The body of the gpu.module under construction, made on first use: where older kernels declare their LDS."""
        from flydsl.compiler.kernel_function import gpu_module

        return gpu_module(current()).regions[0].blocks[0]

    def add_link_lib(self, path: str) -> None:
        """Link a device bitcode file into this compile."""
        if path not in self.link_libs:
            self.link_libs.append(path)

    def add_post_load(self, function: Callable[[int], Any]) -> None:
        """Have a function called with each module of this compile after it was loaded."""
        if function not in self.post_load:
            self.post_load.append(function)

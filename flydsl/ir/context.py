"""MLIR contexts: one per thread, reused between compiles, renewed when it has grown.

Types, attributes and locations live as long as their context, so a context that has seen many distinct kernels is
dropped (`_RENEW_AFTER` modules); wrappers of an older context must not outlive their trace.
"""

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace

from flydsl.ir.bindings import ir, new_context

_RENEW_AFTER = 400
_local = threading.local()
_loaders: list[Callable[[ir.Context], None]] = []
_ahead: list[ir.Context] = []  # made ahead: the first thread that needs a context takes it
_making = threading.Lock()


class Types(SimpleNamespace):
    """Upstream types and attributes of one context, built once: `i1 i8 i16 i32 i64 i128 index f16 bf16 f32 f64 ...`."""

    def __init__(self, ctx: ir.Context):
        with ctx:
            ints = {f"i{w}": ir.IntegerType.get_signless(w) for w in (1, 4, 8, 16, 32, 64, 128)}
            floats = {
                "f16": ir.F16Type.get(),
                "bf16": ir.BF16Type.get(),
                "f32": ir.F32Type.get(),
                "f64": ir.F64Type.get(),
                "f8E5M2": ir.Float8E5M2Type.get(),
                "f8E5M2FNUZ": ir.Float8E5M2FNUZType.get(),
                "f8E4M3FN": ir.Float8E4M3FNType.get(),
                "f8E4M3FNUZ": ir.Float8E4M3FNUZType.get(),
                "f8E4M3B11FNUZ": ir.Float8E4M3B11FNUZType.get(),
                "f8E4M3": ir.Float8E4M3Type.get(),
                "f8E8M0FNU": ir.Float8E8M0FNUType.get(),
                "f6E2M3FN": ir.Float6E2M3FNType.get(),
                "f6E3M2FN": ir.Float6E3M2FNType.get(),
                "f4E2M1FN": ir.Float4E2M1FNType.get(),
            }
            super().__init__(index=ir.IndexType.get(), **ints, **floats)
        self.by_name = {**ints, **floats, "index": self.index}
        self._ctx = ctx
        self._vectors: dict = {}
        self._llvm_ptrs: dict = {}
        self.memo: dict = {}  # what other layers cache per context: result types, attribute dicts

    def vector(self, n: int, elem: ir.Type) -> ir.Type:
        """Return `vector<n x elem>`."""
        key = (n, elem)
        t = self._vectors.get(key)
        if t is None:
            with self._ctx, ir.Location.unknown():
                t = self._vectors[key] = ir.VectorType.get([n], elem)
        return t

    def llvm_ptr(self, address_space: int) -> ir.Type:
        """Return `!llvm.ptr<address_space>`."""
        t = self._llvm_ptrs.get(address_space)
        if t is None:
            text = f"!llvm.ptr<{address_space}>" if address_space else "!llvm.ptr"
            t = self._llvm_ptrs[address_space] = ir.Type.parse(text, self._ctx)
        return t


def make_context() -> ir.Context:
    """Return a new context in which the Fly dialects are loaded and unknown dialects are refused."""
    ctx = new_context()
    for load in _loaders:
        load(ctx)
    return ctx


def register_loader(load: Callable[[ir.Context], None]) -> None:
    """Have `load(context)` called for every context made from now on; `flydsl.dialects` registers its dialects so."""
    _loaders.append(load)


def get_context() -> ir.Context:
    """Return this thread's context."""
    ctx = getattr(_local, "context", None)
    if ctx is None:
        with _making:  # another thread may be about to finish one
            ctx = _local.context = _ahead.pop() if _ahead else make_context()
        _local.types = Types(ctx)
        _local.modules = 0
    return ctx


def _unlock() -> None:
    """In a forked child, nobody finishes what another thread of the parent was making."""
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def make_context_ahead() -> None:
    """Make the context that `get_context` hands out next, in this or another thread; it takes some 8 ms."""
    with _making:
        if not _ahead:
            _ahead.append(make_context())


def context_for_module(may_renew: bool) -> ir.Context:
    """Return this thread's context for one more module; a full one is dropped first, if none of its values is in use."""
    if may_renew and getattr(_local, "modules", 0) >= _RENEW_AFTER:
        _local.context = None
    ctx = get_context()
    _local.modules += 1
    return ctx


def get_types() -> Types:
    """Return the `Types` of this thread's context."""
    get_context()
    return _local.types

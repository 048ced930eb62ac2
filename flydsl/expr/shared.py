"""`fx.SharedAllocator`: LDS for the types of `struct`.

Static (the default): every array is an LDS variable of its own, which the compiler can tell apart from the others.
Dynamic: one block whose
size the launch passes. One allocator per kernel.
"""

from __future__ import annotations

from typing import Any

from flydsl import arch
from flydsl.diag import SecondAllocator, SharedCapacity, StaticBase
from flydsl.dialects.values import SHARED
from flydsl.expr.kernel_scope import DYNAMIC_ALIGN, declare_lds, dynamic_shared_symbol, fresh_symbol, kernel_owner
from flydsl.expr.pointers import Pointer, static_pointer
from flydsl.expr.protocol import dsl_align_of, dsl_size_of
from flydsl.expr.struct import Arena, Storage, is_struct_type, run_time_fields
from flydsl.ir import current
from flydsl.layout.view import Ptr


class SharedAllocator(Arena):
    """Hands out LDS inside a kernel.

    Raises   SecondAllocator, OutsideKernel, SharedCapacity
    """

    def __init__(self, base_alignment: int = 16, *, static: bool = True):
        super().__init__(base_alignment)
        self._owner = kernel_owner("a SharedAllocator")
        self._static = static
        self._base: Pointer | None = None
        self._parts: list[tuple[str, int]] = []
        if getattr(self._owner, "shared_allocator", None) is not None:
            raise SecondAllocator(kernel=getattr(self._owner, "name", "this kernel"))
        self._owner.shared_allocator = self

    @property
    def is_static(self) -> bool:
        """Whether the sizes are compiled into the kernel."""
        return self._static

    @property
    def base_ptr(self) -> Pointer:
        """The start of the dynamic block."""
        if self._static:
            raise StaticBase()
        if self._base is None:
            symbol = dynamic_shared_symbol("a SharedAllocator")
            self._base = static_pointer(Ptr("i8", SHARED, DYNAMIC_ALIGN), symbol)
        return self._base

    def allocate(self, storable_or_int: Any, alignment: int | None = None) -> Storage:
        """Return LDS for a type, or for so many bytes."""
        start = self._end
        storage = super().allocate(storable_or_int, alignment)
        self._parts += _parts(type(storage)._target_type, self._end - start)
        self._check_capacity()
        if not self._static:
            self._owner.dynamic_shared_bytes = self._end
        return storage

    def _check_capacity(self) -> None:
        name = current().arch
        limit = arch.get(name).lds.bytes
        if self._end > limit:
            parts = "; ".join(f"{text} {count}" for text, count in self._parts)
            raise SharedCapacity(used=self._end, limit=limit, arch=name, parts=parts)

    def _place(self, target: Any, offset: int, alignment: int) -> Storage:
        return self._leaf(target, alignment) if self._static else super()._place(target, offset, alignment)

    def _leaf(self, target: Any, alignment: int) -> Storage:
        """Return a variable for `target`, or for each leaf of a struct."""
        if is_struct_type(target):
            fields = {f.name: self._leaf(f.type_spec, dsl_align_of(f.type_spec)) for f in run_time_fields(target)}
            return Storage[target](None, fields)
        aligned = max(alignment, self._base_alignment)
        size = dsl_size_of(target)
        if size == 0:
            return Storage[target](None)
        symbol = fresh_symbol(current(), "__shared_alloc_")
        declare_lds(self._owner, symbol, size, aligned)
        return Storage[target](static_pointer(Ptr("i8", SHARED, aligned), symbol))


def _parts(target: Any, total: int) -> list[tuple[str, int]]:
    """Return (what, bytes) of an allocation: of a struct, of each of its fields."""
    shown = getattr(target, "__name__", str(target))
    if not is_struct_type(target):
        return [(shown, total)]
    return [(f"{shown}.{f.name}", dsl_size_of(f.type_spec)) for f in run_time_fields(target)]

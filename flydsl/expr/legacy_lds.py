"""The older way to LDS: one memref of bytes per kernel, which user code divides itself; see
`flydsl.utils.smem_allocator`.

Ops of the `memref` dialect are built; `fly-lower-raw-memref` turns them into pointers. New code uses
`fx.SharedAllocator`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from flydsl.diag import SmemIndex
from flydsl.expr.kernel_scope import kernel_owner, remembered
from flydsl.expr.numeric.base import class_of_type
from flydsl.expr.numeric.base import raw as raw_scalar
from flydsl.expr.numeric.cast import from_python_value
from flydsl.expr.numeric.classes import Index
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.ir import current, emit, emit1, get_context, ir

_GRANULE = 128
_ALIGNMENT = 1024
_warned: list[bool] = []


def lds_attribute() -> ir.Attribute:
    """Return LDS as the memory space of a memref."""
    return ir.Attribute.parse("#gpu.address_space<workgroup>", get_context())


def lds_memref(shape: Sequence[int], elem: ir.Type) -> ir.Type:
    """Return the type of a memref in LDS."""
    with get_context(), ir.Location.unknown():
        return ir.MemRefType.get(list(shape), elem, memory_space=lds_attribute())


def get_op_result_or_value(op_or_val: Any) -> ir.Value:
    """Return the value of an op, a DSL value or a value."""
    value = getattr(op_or_val, "result", op_or_val)
    return value.ir_value() if hasattr(value, "ir_value") else value


def get_index_value(op_or_val: Any) -> ir.Value:
    """Return an integer in any form as an `index`."""
    value = getattr(op_or_val, "result", op_or_val)
    try:
        return raw_scalar(from_python_value(value).to(Index))
    except (TypeError, ValueError):
        raise SmemIndex(got=type(op_or_val).__name__) from None


def get_mlir_type_size(mlir_type: ir.Type) -> int:
    """Return the bytes of a scalar or vector type."""
    if isinstance(mlir_type, ir.VectorType):
        count = 1
        for n in mlir_type.shape:
            count *= n
        return count * get_mlir_type_size(mlir_type.element_type)
    if isinstance(mlir_type, ir.IndexType):
        return 8
    return -(-mlir_type.width // 8)


def get_mlir_type_align(mlir_type: ir.Type) -> int:
    """Return the natural alignment of a scalar or vector type in bytes."""
    return get_mlir_type_size(getattr(mlir_type, "element_type", mlir_type))


class SmemAllocator:
    """Counts bytes in `ptr`, which user code advances; `finalize` declares the memory, `get_base` gives it inside the
    kernel.
    """

    def __init__(self, ctx: Any = None, arch: str | None = None, global_sym_name: str = "smem_storage"):
        if not _warned:
            _warned.append(True)
            warnings.warn("SmemAllocator is kept for older kernels; new ones use fx.SharedAllocator", stacklevel=2)
        self.ctx = ctx
        self.arch = arch
        self.global_sym_name = global_sym_name
        self.ptr = 0
        self.finalized = False

    @staticmethod
    def _align(ptr: int, align: int) -> int:
        return -(-ptr // align) * align

    @property
    def total_bytes(self) -> int:
        """Size of the memory: what was counted, rounded up to 128 bytes, at least 128."""
        return max(_GRANULE, self._align(self.ptr, _GRANULE))

    def finalize(self) -> None:
        """Declare the memory in the current gpu.module."""
        trace = current()
        declared = trace.__dict__.setdefault("smem_symbols", set())
        if self.global_sym_name not in declared:
            declared.add(self.global_sym_name)
            self._declare(trace)
        self.finalized = True

    def _declare(self, trace: Any) -> None:
        attrs = {
            "sym_name": ir.StringAttr.get(self.global_sym_name),
            "sym_visibility": ir.StringAttr.get("private"),
            "type": ir.TypeAttr.get(lds_memref([self.total_bytes], trace.types.i8)),
            "alignment": ir.IntegerAttr.get(trace.types.i64, _ALIGNMENT),
        }
        module = getattr(trace, "gpu_module", None)
        ip = trace.ip if module is None else ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
        ir.Operation.create("memref.global", [], [], attrs, None, 0, trace.loc(3), ip)

    def get_base(self) -> ir.Value:
        """Return the memory as a memref of bytes, inside the kernel."""
        bases = remembered(kernel_owner("SmemAllocator.get_base"), "_smem_bases", dict)
        base = bases.get(self.global_sym_name)
        if base is None:
            trace = current()
            type_ = lds_memref([self.total_bytes], trace.types.i8)
            attrs = {"name": ir.FlatSymbolRefAttr.get(self.global_sym_name)}
            op = ir.Operation.create("memref.get_global", [type_], [], attrs, None, 0, trace.loc(1), trace.scope.entry)
            base = bases[self.global_sym_name] = op.result
        return base


class SmemPtr:
    """`shape` elements of a type at a byte offset of an allocator's memory."""

    def __init__(self, base_memref: Any, byte_offset: int, element_type: Any, shape: tuple[int, ...] | None = None):
        self.base_memref = get_op_result_or_value(base_memref)
        self.byte_offset = byte_offset
        self.element_type = getattr(element_type, "ir_type", element_type)
        self.shape = shape
        self._views: dict[int, ir.Value] = {}

    def get(self) -> ir.Value:
        """Return the memref of the elements."""
        trace = current()
        view = self._views.get(id(trace.scope))
        if view is None:
            type_ = lds_memref(self.shape or (1,), self.element_type)
            view = emit1("memref.view", type_, (self.base_memref, get_index_value(self.byte_offset)))
            if trace.ip.block == trace.scope.block:  # made in a branch it would not be seen outside
                self._views[id(trace.scope)] = view
        return view

    def load(self, idxs: Any = None) -> ArithValue:
        """Return the element at the indices (none: the first)."""
        return ArithValue(emit1("memref.load", self.element_type, (self.get(), *self._indices(idxs))))

    def store(self, val: Any, idxs: Any = None) -> None:
        """Write the element at the indices (none: the first)."""
        value = val if isinstance(val, ir.Value) else raw_scalar(from_python_value(val))
        if value.type != self.element_type:
            value = _converted(value, self.element_type)
        emit("memref.store", (), (value, self.get(), *self._indices(idxs)))

    def _indices(self, idxs: Any) -> list[ir.Value]:
        if idxs is None:
            return [get_index_value(0)] * len(self.shape or (1,))
        return [get_index_value(i) for i in (idxs if isinstance(idxs, (list, tuple)) else [idxs])]


def _converted(value: ir.Value, type_: ir.Type) -> ir.Value:
    return raw_scalar(from_python_value(value).to(class_of_type(type_)))

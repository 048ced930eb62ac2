"""Tensors of `fx`: a layout over a pointer (memory) or over a coordinate (coordinate tensors, which have no memory).

`t[coord]` loads one element where the coordinate is full and slices where it holds a None. Register tensors
("fragments") are memory of one lane, which the compiler turns into registers; they are never Python lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flydsl import layout as la
from flydsl.diag import (
    CoordTensorStore,
    FragmentDynamic,
    NotIterable,
    StrideUndefined,
    VectorDtype,
    VectorNeedsStatic,
    VectorSize,
)
from flydsl.dialects.values import REGISTER, inner_text
from flydsl.expr.enum import SPACES, AddressSpace, TargetAddressSpace
from flydsl.expr.fly_types import element_name, plain_of_type
from flydsl.expr.int_tuples import IntTuple, int_tuple
from flydsl.expr.layout_errors import user_error
from flydsl.expr.layouts import LAYOUTS, ComposedLayout, Layout
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Int32
from flydsl.expr.pointers import Pointer, as_vector, dtype_of, element_type, scalar_for, wrap_element
from flydsl.expr.values import FlyValue, build, emit_as, expect, shown
from flydsl.expr.vector.core import Vector
from flydsl.expr.vector.core import make as make_vector
from flydsl.expr.vector.shape import canonical
from flydsl.ir import current, emit, emit1, ir
from flydsl.layout.errors import LayoutError
from flydsl.layout.view import CoordTensor, MemRef, Ptr


class Tensor(FlyValue, plains=(MemRef, CoordTensor)):
    """A layout over an iterator: a pointer, or a coordinate."""

    __slots__ = ()

    @property
    def is_coordinates(self) -> bool:
        """Whether this is a coordinate tensor."""
        return self.plain.__class__ is CoordTensor

    @property
    def dtype(self) -> type[Numeric]:
        """The scalar class of the elements; of an integer-valued coordinate tensor Int32."""
        return Int32 if self.is_coordinates else dtype_of(self.plain.ptr.elem)

    element_type = value_type = dtype

    @property
    def address_space(self) -> AddressSpace | TargetAddressSpace | None:
        """The memory that holds the elements, None for coordinates."""
        return None if self.is_coordinates else SPACES[self.plain.ptr.space]

    memspace = address_space

    @property
    def alignment(self) -> int:
        """What the address of the first element is known to be a multiple of, in bytes."""
        return 0 if self.is_coordinates else self.plain.ptr.align_bytes

    @property
    def iter(self) -> Pointer | IntTuple:
        """The pointer, or the base coordinate."""
        return build("fly.get_iter", (self,))

    @property
    def layout(self) -> Layout | ComposedLayout:
        """The layout."""
        return build("fly.get_layout", (self,))

    @property
    def shape(self) -> IntTuple:
        """The extents."""
        return build("fly.get_shape", (self,))

    @property
    def stride(self) -> IntTuple:
        """The steps."""
        if isinstance(self.plain.layout, la.ComposedLayout):
            raise StrideUndefined(layout=self.plain.layout)
        return build("fly.get_stride", (self,))

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return self.plain.layout.rank

    @property
    def leading_dim(self) -> int | None:
        """The mode whose neighbours are adjacent in memory (stride 1), or None."""
        plain = self.plain.layout
        if not isinstance(plain, la.Layout):
            return None
        strides = plain.stride if isinstance(plain.stride, tuple) else (plain.stride,)
        return next((i for i, d in enumerate(strides) if type(d) is int and d == 1), None)

    def __len__(self) -> int:
        return self.rank

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements, by linear index.

        Raises   NotIterable: the shape is dynamic
        """
        shape = self.plain.layout.shape
        if not la.tuple_is_static(shape):
            raise NotIterable(kind="tensor", detail=f" whose layout is `{inner_text(self.plain.layout)}`")
        return (self[k] for k in range(la.size(shape)))

    def __getitem__(self, coord: Any) -> Any:
        c = int_tuple(coord)
        if la.has_none(c.plain):
            return build("fly.slice", (self, c))
        if self.is_coordinates:
            return build("fly.at", (self, c))
        type_, elem = _element_at(self, c)
        return wrap_element(elem, emit1("fly.memref_load", type_, (self._raw(), c._raw())))

    def __setitem__(self, coord: Any, value: Any) -> None:
        if self.is_coordinates:
            raise CoordTensorStore(tensor=inner_text(self.plain))
        c = int_tuple(coord)
        if la.has_none(c.plain):
            _store_part(build("fly.slice", (self, c)), value)
            return
        _, elem = _element_at(self, c)
        emit("fly.memref_store", (), (scalar_for(elem, value), self._raw(), c._raw()))

    def load(self) -> Any:
        """Return all elements as one Vector, in coordinate order (first mode fastest); the layout must be static."""
        return memref_load_vec(self)

    def store(self, vector: Any) -> None:
        """Write all elements from a Vector, in coordinate order; the layout must be static."""
        memref_store_vec(vector, self)

    def fill(self, value: Any) -> None:
        """Set every element."""
        memref_store_vec(Vector.filled(_static_size(self, "fill"), value, self.dtype), self)


def _store_part(part: Tensor, value: Any) -> None:
    if as_vector(value) is not None:
        part.store(value)
    else:
        part.fill(value)


def _element_at(t: Tensor, coord: IntTuple) -> tuple[ir.Type, str]:
    """Return the element's MLIR type and name; a coordinate that does not fit the layout is refused here, not in a
    later pass.
    """
    types = current().types
    key = ("element", t.plain, coord.plain)
    found = types.memo.get(key)
    if found is None:
        try:
            la.crd2idx(coord.plain, t.plain.layout)
        except LayoutError as error:
            raise user_error(error, "indexing a tensor") from None
        elem = t.plain.ptr.elem
        found = types.memo[key] = (types.by_name[elem], elem)
    return found


def expect_tensor(x: Any, what: str) -> Tensor:
    """Return `x` if it is a Tensor."""
    return x if x.__class__ is Tensor else expect(x, Tensor, what)


def make_view(iter: Any, layout: FlyValue) -> Tensor:
    """Return the tensor of `layout` over a pointer; over an int or a coordinate, a coordinate tensor."""
    iterator = iter if isinstance(iter, Pointer) else int_tuple(iter)
    return build("fly.make_view", (iterator, expect(layout, LAYOUTS, "the layout of make_view")))


def get_iter(memref: Tensor) -> Pointer | IntTuple:
    """Return the pointer, or base coordinate, of a tensor."""
    return expect_tensor(memref, "the operand of get_iter").iter


def get_layout(memref: Tensor) -> Layout | ComposedLayout:
    """Return the layout of a tensor."""
    return expect_tensor(memref, "the operand of get_layout").layout


# --- fragments -----------------------------------------------------------------------------------------------------


def alloca(elem: str, layout: Any, what: str) -> Tensor:
    """Return new register memory of this element type and plain layout."""
    return emit_as("fly.alloca", register_view(elem, layout, what), ())


def register_view(elem: str, layout: Any, what: str) -> MemRef:
    """Return the plain register tensor of an element type and layout; `what` names the function that wants it static."""
    if not layout.is_static:
        raise FragmentDynamic(op=what, layout=inner_text(layout))
    return MemRef(Ptr(elem, REGISTER), layout)


def make_rmem_tensor(shape_or_layout: Any, dtype: Any) -> Tensor:
    """Return an undefined register tensor: of a shape (column-major) or of a layout."""
    if isinstance(shape_or_layout, LAYOUTS):
        layout = shape_or_layout.plain
    else:
        shape = int_tuple(shape_or_layout).plain
        if not la.tuple_is_static(shape):
            raise FragmentDynamic(op="make_rmem_tensor", layout=inner_text(shape))
        layout = la.column_major(shape)
    return alloca(element_name(dtype), layout, "make_rmem_tensor")


def make_fragment_like(tensor: FlyValue, dtype: Any = None) -> Tensor:
    """Return an undefined register tensor of a tensor's shape: mode 0 adjacent, the other modes by their strides."""
    plain = expect(tensor, (Tensor, Layout, ComposedLayout), "the operand of make_fragment_like").plain
    memo = current().types.memo
    key = ("fragment", plain, dtype)
    found = memo.get(key)
    if found is None:
        found = memo[key] = _fragment_of(tensor, dtype)
    return emit_as("fly.alloca", found, ())


def _fragment_of(tensor: FlyValue, dtype: Any) -> MemRef:
    plain = tensor.plain
    if dtype is None and not isinstance(plain, MemRef):
        expect(tensor, Tensor, "make_fragment_like without a dtype")
        dtype = Int32  # of a coordinate tensor the values
    elem = plain.ptr.elem if dtype is None else element_name(dtype)
    layout = getattr(plain, "layout", plain)
    if not la.tuple_is_static(layout.shape):
        raise FragmentDynamic(op="make_fragment_like", layout=inner_text(layout))
    try:
        return register_view(elem, la.make_fragment_layout_like(layout), "make_fragment_like")
    except LayoutError as error:
        raise user_error(error, "make_fragment_like") from None


def memref_alloca(memref_type: Any, layout: FlyValue | None = None) -> Tensor:
    """Return new register memory of an explicit MemRefType."""
    plain = plain_of_type(memref_type)
    if not isinstance(plain, MemRef):
        expect(memref_type, Tensor, "the type of memref_alloca")
    return alloca(plain.ptr.elem, plain.layout if layout is None else layout.plain, "memref_alloca")


# --- element and vector access ---------------------------------------------------------------------------------------


def memref_load(memref: Tensor, indices: Any) -> Any:
    """Return one element; `indices` is a full coordinate."""
    return expect_tensor(memref, "the tensor of memref_load")[indices]


def memref_store(value: Any, memref: Tensor, indices: Any) -> None:
    """Write one element; `indices` is a full coordinate."""
    expect_tensor(memref, "the tensor of memref_store")[indices] = value


def memref_load_vec(memref: Tensor) -> Any:
    """Return all elements as one Vector, in coordinate order (first mode fastest)."""
    t = expect_tensor(memref, "the tensor of a vector load")
    memo = current().types.memo
    key = ("load vector", t.plain)
    found = memo.get(key)
    if found is None:
        found = memo[key] = _vector_of(t)
    type_, shape, dtype = found
    return make_vector(emit1("fly.memref_load_vec", type_, (t._raw(),)), shape, dtype)


def _vector_of(t: Tensor) -> tuple[ir.Type, Any, type[Numeric]]:
    """Return MLIR type, shape and scalar class of the vector that holds a whole tensor."""
    count = _static_size(t, "load")
    shape = t.plain.layout.shape
    elem = "i32" if t.is_coordinates else t.plain.ptr.elem
    return (
        current().types.vector(count, element_type(elem)),
        canonical(shape if isinstance(shape, tuple) else (shape,)),
        t.dtype,
    )


def memref_store_vec(vector: Any, memref: Tensor) -> None:
    """Write all elements from a Vector, in coordinate order."""
    t = expect_tensor(memref, "the tensor of a vector store")
    if t.is_coordinates:
        raise CoordTensorStore(tensor=inner_text(t.plain))
    count = _static_size(t, "store")
    value = as_vector(vector)
    if value is None:
        raise VectorDtype(got=shown(vector), dtype=t.plain.ptr.elem)
    type_ = value.type
    if type_ != current().types.vector(count, element_type(t.plain.ptr.elem)):
        _refuse_vector(ir.VectorType(type_), count, t)
    emit("fly.memref_store_vec", (), (value, t._raw()))


def _refuse_vector(type_: ir.VectorType, count: int, t: Tensor) -> None:
    if type_.shape != [count]:
        raise VectorSize(got=str(type_), count=count, tensor=inner_text(t.plain))
    raise VectorDtype(got=str(type_), dtype=t.plain.ptr.elem)


def _static_size(t: Tensor, op: str) -> int:
    shape = t.plain.layout.shape
    if not la.tuple_is_static(shape):
        raise VectorNeedsStatic(op=op, layout=inner_text(t.plain.layout))
    return la.size(shape)

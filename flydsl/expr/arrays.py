"""Types of fields in memory: `Array`, `Align`, `Empty`, and pointers as fields (`Pointer[dtype, space]`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from flydsl.diag import AlignParameters, AlignValue, ArrayParameters, ArrayPoke, PointerField
from flydsl.dialects.values import SHARED
from flydsl.expr.enum import AddressSpace, space_name
from flydsl.expr.fly_types import type_object
from flydsl.expr.int_tuples import is_numeric_class
from flydsl.expr.numeric.base import Numeric
from flydsl.expr.numeric.classes import Int32, Int64
from flydsl.expr.pointers import Pointer, expect_pointer, inttoptr, ptr_load, ptr_store, ptrtoint, recast_iter
from flydsl.expr.protocol import dsl_align_of, dsl_size_of, ir_value_count, peek_from_ptr, poke_into_ptr
from flydsl.expr.tensors import Tensor
from flydsl.expr.values import FlyValue, Rebuilder
from flydsl.ir import ir
from flydsl.layout.view import Ptr

_arrays: dict[tuple, type[Array]] = {}


if TYPE_CHECKING:

    class _Indexable(type):
        """To a type checker, `Array[...]` in an expression is an index into the class."""

        def __getitem__(cls, params: Any) -> Any: ...

else:
    _Indexable = type


class Array(metaclass=_Indexable):
    """`Array[dtype, size]` or `Array[dtype, size, align]`: a fixed number of elements in memory; an instance knows
    where.
    """

    __slots__ = ("ptr",)

    dtype: ClassVar[type[Numeric]]
    size: ClassVar[int]
    align: ClassVar[int]
    alignment: ClassVar[int]

    def __class_getitem__(cls, params: Any) -> type[Array]:
        if not isinstance(params, tuple) or len(params) not in (2, 3):
            raise ArrayParameters(problem="Array takes Array[dtype, size] or Array[dtype, size, align]")
        known = _arrays.get(params)
        if known is None:
            known = _arrays[params] = _array_class(*params)
        return known

    @classmethod
    def of(cls, dtype: type[Numeric], size: int, align: int | None = None) -> type[Array]:
        """Return `Array[dtype, size]` or `Array[dtype, size, align]`; type checkers accept a computed size here."""
        return cls[(dtype, size)] if align is None else cls[(dtype, size, align)]

    def __init__(self, ptr: Pointer):
        self.ptr = ptr

    def view(self, layout: FlyValue) -> Tensor:
        """Return the tensor of this layout that begins at the array's start."""
        return self.ptr.view(layout)

    def __getitem__(self, i: Any) -> Any:
        return ptr_load(self.ptr + i, self.dtype)

    def __setitem__(self, i: Any, value: Any) -> None:
        ptr_store(self.dtype(value) if isinstance(value, (int, float)) else value, self.ptr + i)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(self.size))

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.ptr})"

    __repr__ = __str__

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return self.ptr.__extract_to_ir_values__()

    def __ir_value_count__(self) -> int:
        return ir_value_count(self.ptr)

    __construct_from_ir_values__ = Rebuilder()

    @classmethod
    def _rebuild(cls, values: Sequence[ir.Value], exemplar: Array) -> Array:
        return cls(exemplar.ptr.__construct_from_ir_values__(values))

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return -(-cls.size * cls.dtype.width // 8)

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return cls.align

    @classmethod
    def __peek_from_ptr__(cls, ptr: Pointer) -> Array:
        return cls(recast_iter(cls.dtype, ptr))

    @classmethod
    def __poke_into_ptr__(cls, ptr: Pointer, value: Any) -> None:
        raise ArrayPoke(array=cls.__name__)


def _array_class(dtype: Any, size: Any, align: Any = None) -> type[Array]:
    if not is_numeric_class(dtype) or not hasattr(dtype, "element"):
        got = getattr(dtype, "__name__", dtype)
        raise ArrayParameters(problem=f"the element type of an Array must be a Numeric subclass, got {got}")
    for name, n in (("size", size), *((("align", align),) if align is not None else ())):
        if type(n) is not int or n <= 0:
            raise ArrayParameters(problem=f"the {name} of an Array must be a positive integer, got {n!r}")
    natural = max(1, dtype.width // 8)
    text = f"Array[{dtype.__name__}, {size}{'' if align is None else f', {align}'}]"
    alignment = max(natural, align or natural)
    body = {"__slots__": (), "dtype": dtype, "size": size, "align": alignment, "alignment": alignment}
    return type(text, (Array,), body)


class Align:
    """`Align[T, n]`: T at an address that is a multiple of n bytes; size and access are those of T."""

    dtype: ClassVar[Any]
    align: ClassVar[int]

    def __class_getitem__(cls, params: Any) -> type[Align]:
        if not isinstance(params, tuple) or len(params) != 2:
            raise AlignParameters(problem="Align takes Align[Type, N]")
        inner, n = params
        if type(n) is not int:
            raise AlignParameters(problem=f"the alignment of Align must be an int, got {n!r}")
        _check_alignment(n, dsl_align_of(inner), getattr(inner, "__name__", str(inner)))
        return type(f"Align[{inner.__name__}, {n}]", (Align,), {"dtype": inner, "align": n})

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return dsl_size_of(cls.dtype)

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return cls.align

    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Any:
        return peek_from_ptr(cls.dtype, ptr)

    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None:
        poke_into_ptr(cls.dtype, ptr, value)


def _check_alignment(n: int, natural: int, name: str) -> None:
    if n <= 0:
        raise AlignValue(problem=f"an alignment must be positive, got {n}")
    if n & (n - 1):
        raise AlignValue(problem=f"an alignment must be a power of two, got {n}")
    if n < natural:
        raise AlignValue(problem=f"alignment {n} is smaller than natural alignment {natural} of {name}")


check_alignment = _check_alignment


class Empty:
    """A field that takes no memory."""

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        return []

    @classmethod
    def __construct_from_ir_values__(cls, values: Sequence[ir.Value], exemplar: Any = None) -> Empty:
        return cls()

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return 0

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return 1

    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Empty:
        return cls()

    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None:
        return None


class _PointerField:
    """Base of `Pointer[dtype, space, align]`: an address that lies in memory."""

    target: ClassVar[Ptr]

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return 4 if cls.target.space == SHARED else 8

    __dsl_align_of__ = __dsl_size_of__

    @classmethod
    def __peek_from_ptr__(cls, ptr: Pointer) -> Pointer:
        return inttoptr(type_object(cls.target), ptr_load(ptr, cls._integer()))

    @classmethod
    def __poke_into_ptr__(cls, ptr: Pointer, value: Pointer) -> None:
        ptr_store(ptrtoint(expect_pointer(value, cls.__name__)), ptr)

    @classmethod
    def _integer(cls) -> type[Numeric]:
        return Int32 if cls.target.space == SHARED else Int64


_pointer_fields: dict[Ptr, type[_PointerField]] = {}


def pointer_field(params: Any) -> type[_PointerField]:
    """Return the field type `Pointer[dtype, space(, align)]`."""
    dtype, *rest = params if isinstance(params, tuple) else (params,)
    if not is_numeric_class(dtype) or len(rest) > 2:
        raise PointerField(got=params)
    space = rest[0] if rest else AddressSpace.Global
    target = Ptr(dtype.element.mlir, space_name(space), rest[1] if len(rest) > 1 else 0)
    known = _pointer_fields.get(target)
    if known is None:
        name = f"Pointer[{dtype.__name__}, {AddressSpace(space).name}{f', {rest[1]}' if len(rest) > 1 else ''}]"
        known = _pointer_fields[target] = type(name, (_PointerField,), {"target": target})
    return known

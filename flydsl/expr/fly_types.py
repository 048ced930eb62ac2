"""Types of the fly dialect under the names of `fx`: `LayoutType.get(8, 1)`, `PointerType.get(elem, space,
alignment)`, ...

An object here is a plain value seen as a type; `.ir_type` is the MLIR type. `XType(type)` wraps an MLIR type that a
value has.
"""

from __future__ import annotations

from typing import Any

from flydsl import layout as la
from flydsl.atoms.copy_ops import CopyAtom as PlainCopyAtom
from flydsl.atoms.copy_ops import CopyOp, UniversalAtomic, UniversalCopy
from flydsl.atoms.mma_ops import UniversalFMA
from flydsl.atoms.tiled_copy import TiledCopy as PlainTiledCopy
from flydsl.atoms.tiled_mma import TiledMma as PlainTiledMma
from flydsl.diag import UnknownElementType, WrongKind
from flydsl.dialects.atom_values import MMA_OPS
from flydsl.dialects.fly.types import is_fly_type, type_of, value_of
from flydsl.dialects.values import KIND_OF_CLASS, inner_text
from flydsl.expr.enum import SPACES, AddressSpace, TargetAddressSpace, space_name
from flydsl.expr.int_tuples import int_tuple, is_numeric_class
from flydsl.expr.layouts import make_tile
from flydsl.expr.numeric.base import CLASSES, Numeric
from flydsl.expr.numeric.elements import ELEMENTS
from flydsl.expr.values import FlyValue, shown
from flydsl.ir import get_context, get_types, ir
from flydsl.layout.view import CoordTensor, MemRef, Ptr

DTYPE: dict[str, type[Numeric]] = {e.mlir: CLASSES[name] for name, e in reversed(ELEMENTS.items())}


def element_name(elem: Any, subject: str = "the element type") -> str:
    """Return how MLIR spells an element type given as scalar class, IR type or name."""
    if is_numeric_class(elem) and hasattr(elem, "element"):
        return elem.element.mlir
    if isinstance(elem, ir.Type):
        types = get_types()
        names = types.memo.get("element names")
        if names is None:
            names = types.memo["element names"] = {t: n for n, t in types.by_name.items()}
        name = names.get(elem)
        if name is None:
            raise UnknownElementType(subject=subject, got=elem)
        return name
    if isinstance(elem, str):
        return elem
    raise UnknownElementType(subject=subject, got=shown(elem) if not isinstance(elem, type) else elem.__name__)


class _TypeClass(type):
    """Has `isinstance(t, LayoutType)` hold for MLIR types of that kind, too."""

    def __instancecheck__(cls, x: Any) -> bool:
        if isinstance(x, ir.Type):
            return is_fly_type(x) and isinstance(value_of(x), cls.plains)
        return type.__instancecheck__(cls, x)


class FlyType(metaclass=_TypeClass):
    """A type of the fly dialect."""

    __slots__ = ("plain",)

    plains: tuple[type, ...] = ()

    def __init__(self, type_: Any):
        plain = plain_of_type(type_)
        if not isinstance(plain, self.plains):
            raise WrongKind(
                subject=f"{type(self).__name__}()", wanted=f"a type of kind {type(self).__name__}", got=str(type_)
            )
        self.plain = plain

    @property
    def ir_type(self) -> ir.Type:
        """The MLIR type in this thread's context."""
        return type_of(self.plain, get_context())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ir.Type):
            return self.ir_type == other
        return isinstance(other, FlyType) and type(self.plain) is type(other.plain) and self.plain == other.plain

    def __hash__(self) -> int:
        return hash((type(self.plain), self.plain))

    def __str__(self) -> str:
        return f"!fly.{KIND_OF_CLASS[type(self.plain)]}<{inner_text(self.plain)}>"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self).removeprefix('!fly.')})"


def plain_of_type(type_: Any) -> Any:
    """Return the plain value that a type states."""
    if isinstance(type_, FlyType):
        return type_.plain
    if isinstance(type_, ir.Type) and is_fly_type(type_):
        return value_of(type_)
    if isinstance(type_, FlyValue):
        return type_.plain
    if isinstance(type_, (CopyOp,)):
        return type_
    raise WrongKind(subject="a type", wanted="a type of the fly dialect", got=shown(type_))


def _typed(cls: type, plain: Any) -> Any:
    x = object.__new__(cls)
    x.plain = plain
    return x


def type_object(plain: Any) -> FlyType:
    """Return the type of a plain value."""
    return _typed(_CLASS_OF[type(plain)], plain)


class IntTupleType(FlyType):
    """`!fly.int_tuple<...>`."""

    plains = (int, tuple, type(None), la.Sym, la.Basis)

    @classmethod
    def get(cls, elems: Any) -> IntTupleType:
        """Return the type of an int tuple with these leaves."""
        return _typed(cls, int_tuple(elems).plain)


class BasisType(FlyType):
    """The type of a basis leaf."""

    plains = (la.Basis,)

    @classmethod
    def get(cls, value: Any, modes: Any) -> BasisType:
        """Return the type of the leaf `value` times the unit coordinate at `modes`."""
        return _typed(cls, la.Basis(value, modes))


class LayoutType(FlyType):
    """`!fly.layout<shape:stride>`."""

    plains = (la.Layout,)

    @classmethod
    def get(cls, shape: Any, stride: Any) -> LayoutType:
        """Return the type of the layout shape:stride."""
        return _typed(cls, la.make_layout(int_tuple(shape).plain, int_tuple(stride).plain))

    @property
    def shape(self) -> Any:
        return self.plain.shape

    @property
    def stride(self) -> Any:
        return self.plain.stride


class SwizzleType(FlyType):
    """`!fly.swizzle<S<mask,base,shift>>`."""

    plains = (la.Swizzle,)

    @classmethod
    def get(cls, mask: int, base: int, shift: int) -> SwizzleType:
        """Return the type of the swizzle."""
        return _typed(cls, la.Swizzle(int(mask), int(base), int(shift)))


class CoordSwizzleType(FlyType):
    """`!fly.coord_swizzle<...>`."""

    plains = (la.CoordSwizzle,)

    @classmethod
    def get(cls, mask: int, base_row: int, mode_row: Any, base_col: int, mode_col: Any) -> CoordSwizzleType:
        """Return the type of the coordinate swizzle; the modes are paths."""
        as_path = lambda m: [m] if isinstance(m, int) else list(m)
        return _typed(cls, la.CoordSwizzle(mask, base_row, as_path(mode_row), base_col, as_path(mode_col)))


class ComposedLayoutType(FlyType):
    """`!fly.composed_layout<inner o offset o outer>`."""

    plains = (la.ComposedLayout,)

    @classmethod
    def get(cls, inner: Any, offset: Any, outer: Any) -> ComposedLayoutType:
        """Return the type of inner o offset o outer, given as types or values."""
        parts = plain_of_type(inner), int_tuple(offset).plain, plain_of_type(outer)
        return _typed(cls, la.make_composed_layout(*parts))


class TileType(FlyType):
    """`!fly.tile<[m0|m1|...]>`."""

    plains = (la.Tile,)

    @classmethod
    def get(cls, modes: Any) -> TileType:
        """Return the type of a tile; an entry is an int, None, a layout (type) or a nested list."""
        return _typed(cls, make_tile(*[m.plain if isinstance(m, FlyType) else m for m in modes]).plain)


class PointerType(FlyType):
    """`!fly.ptr<elem, space, align<n>>`."""

    plains = (Ptr,)

    @classmethod
    def get(
        cls, elem_ty: Any, address_space: Any = AddressSpace.Global, alignment: int | None = None, swizzle: Any = None
    ) -> PointerType:
        """Return the type of a pointer; without an alignment the element's own."""
        inner = None if swizzle is None else plain_of_type(swizzle)
        return _typed(cls, Ptr(element_name(elem_ty), space_name(address_space), int(alignment or 0), inner))

    @property
    def element_type(self) -> ir.Type:
        return get_types().by_name[self.plain.elem]

    @property
    def address_space(self) -> AddressSpace | TargetAddressSpace:
        return SPACES[self.plain.space]

    @property
    def alignment(self) -> int:
        return self.plain.align_bytes


class MemRefType(FlyType):
    """`!fly.memref<elem, space, layout>`."""

    plains = (MemRef,)

    @classmethod
    def get(
        cls, elem_ty: Any, layout: Any, address_space: Any = AddressSpace.Global, alignment: int | None = None
    ) -> MemRefType:
        """Return the type of a tensor."""
        ptr = Ptr(element_name(elem_ty), space_name(address_space), int(alignment or 0))
        return _typed(cls, MemRef(ptr, plain_of_type(layout)))

    @property
    def element_type(self) -> ir.Type:
        return get_types().by_name[self.plain.ptr.elem]

    @property
    def address_space(self) -> AddressSpace | TargetAddressSpace:
        return SPACES[self.plain.ptr.space]

    @property
    def alignment(self) -> int:
        return self.plain.ptr.align_bytes

    @property
    def layout(self) -> FlyType:
        return type_object(self.plain.layout)


class CoordTensorType(FlyType):
    """`!fly.coord_tensor<base, layout>`."""

    plains = (CoordTensor,)

    @classmethod
    def get(cls, base: Any, layout: Any) -> CoordTensorType:
        """Return the type of a coordinate tensor."""
        return _typed(cls, CoordTensor(int_tuple(base).plain, plain_of_type(layout)))


class CopyAtomType(FlyType):
    """`!fly.copy_atom<op, bits>`."""

    plains = (PlainCopyAtom,)

    @classmethod
    def get(cls, copy_op: CopyOp, val_bits: int) -> CopyAtomType:
        """Return the type of a copy atom on values of `val_bits`."""
        return _typed(cls, PlainCopyAtom(copy_op, int(val_bits)))


class MmaAtomType(FlyType):
    """`!fly.mma_atom<op>`."""

    plains = MMA_OPS

    @classmethod
    def get(cls, mma_op: Any) -> MmaAtomType:
        """Return the type of an MMA atom."""
        return _typed(cls, mma_op)


class TiledCopyType(FlyType):
    """`!fly.tiled_copy<...>`."""

    plains = (PlainTiledCopy,)


class TiledMmaType(FlyType):
    """`!fly.tiled_mma<...>`."""

    plains = (PlainTiledMma,)


class CopyOpUniversalCopyType:
    """Factory of plain copy operations, `fx.UniversalCopy`."""

    @staticmethod
    def get(bit_size: int) -> UniversalCopy:
        """Return the copy operation of this width."""
        return UniversalCopy(int(bit_size))


class CopyOpUniversalAtomicType:
    """Factory of atomic copy operations, `fx.UniversalAtomic`."""

    @staticmethod
    def get(atomic_op: Any, val_type: Any, syncscope: str = "") -> UniversalAtomic:
        """Return the atomic operation."""
        name = atomic_op.name.lower() if hasattr(atomic_op, "name") else str(atomic_op)
        return UniversalAtomic(name, element_name(val_type), syncscope)


class MmaOpUniversalFMAType:
    """Factory of the one-thread multiply-add, `fx.UniversalFMA`."""

    @staticmethod
    def get(ty: Any) -> UniversalFMA:
        """Return the operation on one element type."""
        return UniversalFMA.of(element_name(ty))


_CLASS_OF = {
    plain: cls
    for cls in (
        IntTupleType,
        LayoutType,
        SwizzleType,
        CoordSwizzleType,
        ComposedLayoutType,
        TileType,
        PointerType,
        MemRefType,
        CoordTensorType,
        CopyAtomType,
        MmaAtomType,
        TiledCopyType,
        TiledMmaType,
    )
    for plain in cls.plains
}

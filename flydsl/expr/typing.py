"""Types of `fx` under the name that users import: scalars, vectors, layouts, tensors, atoms, annotations. The homes
are elsewhere.
"""

from flydsl.expr.annotations import Constexpr, Stream
from flydsl.expr.arrays import Align, Array, Empty
from flydsl.expr.atoms import CopyAtom, MmaAtom, ThrCopy, ThrMma, TiledCopy, TiledMma
from flydsl.expr.convert import as_dsl_value, as_ir_value
from flydsl.expr.enum import (
    AddressSpace,
    AtomicOp,
    CachePolicy,
    GemmTraversalOrder,
    MmaOperand,
    address_space_from_attr,
    is_generic_address_space,
    is_target_address_space,
)
from flydsl.expr.fly_types import (
    BasisType,
    ComposedLayoutType,
    CoordSwizzleType,
    CoordTensorType,
    CopyAtomType,
    CopyOpUniversalAtomicType,
    CopyOpUniversalCopyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    MmaAtomType,
    MmaOpUniversalFMAType,
    PointerType,
    SwizzleType,
    TiledCopyType,
    TiledMmaType,
    TileType,
)
from flydsl.expr.int_tuples import Basis, E, IntTuple
from flydsl.expr.layouts import ComposedLayout, CoordSwizzle, Layout, Swizzle, Tile
from flydsl.expr.meta import dsl_loc_tracing
from flydsl.expr.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E5M2,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Integer,
    Numeric,
    NumericMeta,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    as_numeric,
)
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.pointers import Pointer
from flydsl.expr.struct import Storage
from flydsl.expr.tensors import Tensor
from flydsl.expr.tuple3d import Tuple3D
from flydsl.expr.type_shortcuts import T, Types
from flydsl.expr.values import FlyValue as BuiltinDslType
from flydsl.expr.vector import ALIASES, ReductionOp, Vector, VectorAlias, full, full_like, ones_like, zeros_like

globals().update(ALIASES)  # Float32x4, Int32x2, ...: a table in vector.alias

__all__ = ["Align", "Array", "Constexpr", "Empty", "Storage", "Stream", "T", "Tuple3D", "Types"]
__all__ += [
    "Basis", "BuiltinDslType", "ComposedLayout", "CoordSwizzle", "CopyAtom", "E", "IntTuple", "Layout",
    "MmaAtom", "Pointer", "Swizzle", "Tensor", "ThrCopy", "ThrMma", "Tile", "TiledCopy", "TiledMma",
]  # fmt: skip
__all__ += [
    "ArithValue", "BFloat16", "Boolean", "Float", "Float4E2M1FN", "Float6E2M3FN", "Float6E3M2FN", "Float8E4M3",
    "Float8E4M3B11FNUZ", "Float8E4M3FN", "Float8E4M3FNUZ", "Float8E5M2", "Float8E5M2FNUZ", "Float8E8M0FNU", "Float16", "Float32",
    "Float64", "Index", "Int4", "Int8", "Int16", "Int32", "Int64", "Int128", "Integer", "Numeric",
    "NumericMeta", "Uint8", "Uint16", "Uint32", "Uint64", "Uint128", "as_numeric",
]  # fmt: skip
__all__ += ["ReductionOp", "Vector", "VectorAlias", "full", "full_like", "ones_like", "zeros_like"]
__all__ += list(ALIASES)
__all__ += [
    "BasisType", "ComposedLayoutType", "CoordSwizzleType", "CoordTensorType", "CopyAtomType",
    "CopyOpUniversalAtomicType", "CopyOpUniversalCopyType", "IntTupleType", "LayoutType", "MemRefType",
    "MmaAtomType", "MmaOpUniversalFMAType", "PointerType", "SwizzleType", "TileType", "TiledCopyType",
    "TiledMmaType",
]  # fmt: skip
__all__ += [
    "AddressSpace", "AtomicOp", "CachePolicy", "GemmTraversalOrder", "MmaOperand", "address_space_from_attr",
    "is_generic_address_space", "is_target_address_space",
]  # fmt: skip
__all__ += ["as_dsl_value", "as_ir_value", "dsl_loc_tracing"]


def __getattr__(name: str):
    """Functions of the layout language were importable from here, too."""
    from flydsl.expr import primitive

    if name.startswith("_") or name not in primitive.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(primitive, name)

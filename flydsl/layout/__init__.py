"""The layout algebra: integer tuples, layouts, swizzles and what is computed on them, in pure
Python.

Imports nothing but the standard library (pictures, in `layout.draw`, included). Every value is
immutable.
Leaves are ints (static), `Sym` (dynamic), `Basis` (coordinate) or None; see `leaf` for how IR
is emitted.
"""

# flake8: noqa: F401
from .compose import coalesce, composition
from .coords import crd2idx, get_1d_coord, get_flat_coord, get_hier_coord, idx2crd
from .divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .errors import (
    BasisMismatch,
    DivisionByZero,
    LayoutError,
    ModeOutOfRange,
    NotDivisible,
    NotInjective,
    NotStatic,
    OperandType,
    ParseError,
    ProfileMismatch,
    RankMismatch,
)
from .int_tuple import (
    E,
    ceil_div,
    elem_less,
    equal,
    get_leaves,
    get_scalar,
    has_none,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    int_tuple_sub,
    is_leaf,
    make_coord,
    make_int_tuple,
    make_shape,
    make_stride,
    shape_div,
    tuple_is_static,
)
from .inverse import complement, left_inverse, right_inverse
from .layout import (
    ComposedLayout,
    Layout,
    LayoutLike,
    Tile,
    column_major,
    flatten,
    is_profile_congruent,
    is_profile_weakly_congruent,
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    make_tile,
    unflatten,
)
from .leaf import Basis, Builder, Sym, set_builder, use_builder
from .measure import (
    composed_get_inner,
    composed_get_offset,
    composed_get_outer,
    coprofile,
    coshape,
    cosize,
    depth,
    get_shape,
    get_stride,
    rank,
    size,
)
from .memo import carries_payload, clear_memos
from .modes import append, dice, get, get_, group, prepend, select, slice_, take, zip_
from .parse import parse, parse_path
from .product import (
    blocked_product,
    flat_product,
    logical_product,
    make_fragment_layout_like,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .recast import recast_layout
from .swizzle import (
    CoordSwizzle,
    Swizzle,
    apply_swizzle,
    apply_swizzle_bytes,
    element_to_byte_swizzle,
    swizzle_period,
)
from .tv import make_layout_tv
from .view import CoordTensor, MemRef, Ptr, add_offset, make_view, slice_view

_VALUES = [
    "Basis",
    "ComposedLayout",
    "CoordSwizzle",
    "CoordTensor",
    "E",
    "Layout",
    "LayoutLike",
    "MemRef",
    "Ptr",
    "Swizzle",
    "Sym",
    "Tile",
]
_CONSTRUCTION = [
    "column_major",
    "make_composed_layout",
    "make_coord",
    "make_fragment_layout_like",
    "make_identity_layout",
    "make_int_tuple",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "make_shape",
    "make_stride",
    "make_tile",
    "make_view",
]
_INSPECTION = [
    "composed_get_inner",
    "composed_get_offset",
    "composed_get_outer",
    "coprofile",
    "coshape",
    "cosize",
    "depth",
    "get",
    "get_",
    "get_leaves",
    "get_scalar",
    "get_shape",
    "get_stride",
    "has_none",
    "is_leaf",
    "is_profile_congruent",
    "is_profile_weakly_congruent",
    "rank",
    "size",
    "tuple_is_static",
]
_COORDINATES = ["crd2idx", "get_1d_coord", "get_flat_coord", "get_hier_coord", "idx2crd"]
_ARITHMETIC = [
    "ceil_div",
    "elem_less",
    "equal",
    "int_tuple_add",
    "int_tuple_div",
    "int_tuple_mod",
    "int_tuple_mul",
    "int_tuple_product",
    "int_tuple_product_each",
    "int_tuple_product_like",
    "int_tuple_sub",
    "shape_div",
]
_STRUCTURE = [
    "append",
    "dice",
    "flatten",
    "group",
    "prepend",
    "select",
    "slice_",
    "slice_view",
    "take",
    "unflatten",
    "zip_",
]
_ALGEBRA = [
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "flat_divide",
    "flat_product",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "raked_product",
    "recast_layout",
    "right_inverse",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "zipped_divide",
    "zipped_product",
]
_SWIZZLES = [
    "add_offset",
    "apply_swizzle",
    "apply_swizzle_bytes",
    "element_to_byte_swizzle",
    "swizzle_period",
]
_TEXT = ["parse", "parse_path"]
_MACHINERY = ["Builder", "carries_payload", "clear_memos", "set_builder", "use_builder"]
_ERRORS = [
    "BasisMismatch",
    "DivisionByZero",
    "LayoutError",
    "ModeOutOfRange",
    "NotDivisible",
    "NotInjective",
    "NotStatic",
    "OperandType",
    "ParseError",
    "ProfileMismatch",
    "RankMismatch",
]

__all__ = (
    _VALUES
    + _CONSTRUCTION
    + _INSPECTION
    + _COORDINATES
    + _ARITHMETIC
    + _STRUCTURE
    + _ALGEBRA
    + _SWIZZLES
    + _TEXT
    + _MACHINERY
    + _ERRORS
)

"""Functions of the layout language under the name that users import: values, algebra, memory, atoms, copies. The
homes are elsewhere.
"""

from flydsl.expr.algebra import (
    append,
    blocked_product,
    coalesce,
    complement,
    composed_get_inner,
    composed_get_offset,
    composed_get_outer,
    composition,
    coprofile,
    coshape,
    cosize,
    crd2idx,
    depth,
    dice,
    flat_divide,
    flat_product,
    get,
    get_1d_coord,
    get_flat_coord,
    get_shape,
    get_stride,
    group,
    idx2crd,
    is_profile_congruent,
    is_profile_weakly_congruent,
    left_inverse,
    logical_divide,
    logical_product,
    prepend,
    raked_product,
    rank,
    recast_layout,
    right_inverse,
    select,
    size,
    slice,
    take,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from flydsl.expr.atoms import (
    atom_set_value,
    make_copy_atom,
    make_mma_atom,
    make_tiled_copy,
    make_tiled_mma,
    mma_make_fragment,
    tiled_copy_partition_dst,
    tiled_copy_partition_src,
    tiled_copy_retile,
    tiled_mma_partition,
    tiled_mma_partition_shape,
)
from flydsl.expr.control import const_expr, range_constexpr
from flydsl.expr.copying import copy, copy_atom_call
from flydsl.expr.enum import AddressSpace, AtomicOp, CachePolicy, GemmTraversalOrder, MmaOperand, SyncScope
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
from flydsl.expr.gemm import gemm, mma_atom_call
from flydsl.expr.gpu import get_dyn_shared
from flydsl.expr.int_tuples import (
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
    make_coord,
    make_int_tuple,
    make_shape,
    make_stride,
    shape_div,
)
from flydsl.expr.layouts import (
    get_,
    make_composed_layout,
    make_fragment_layout_like,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    make_tile,
)
from flydsl.expr.meta import dsl_loc_tracing, dsl_wrap_result
from flydsl.expr.operations import (
    UniversalAtomic,
    UniversalAtomicAdd,
    UniversalAtomicAnd,
    UniversalAtomicDec,
    UniversalAtomicInc,
    UniversalAtomicMax,
    UniversalAtomicMin,
    UniversalAtomicOr,
    UniversalCopy,
    UniversalCopy8b,
    UniversalCopy16b,
    UniversalCopy32b,
    UniversalCopy64b,
    UniversalCopy128b,
    UniversalFMA,
    assume,
    static,
)
from flydsl.expr.pointers import (
    add_offset,
    apply_swizzle,
    inttoptr,
    make_ptr,
    ptr_load,
    ptr_store,
    ptrtoint,
    recast_iter,
    to_llvm_ptr,
)
from flydsl.expr.printing import printf
from flydsl.expr.tensors import (
    get_iter,
    get_layout,
    make_fragment_like,
    make_view,
    memref_alloca,
    memref_load,
    memref_load_vec,
    memref_store,
    memref_store_vec,
)
from flydsl.expr.type_shortcuts import T

__all__ = ["AddressSpace", "AtomicOp", "CachePolicy", "GemmTraversalOrder", "MmaOperand", "SyncScope"]
__all__ += [
    "BasisType", "ComposedLayoutType", "CoordSwizzleType", "CoordTensorType", "CopyAtomType",
    "CopyOpUniversalAtomicType", "CopyOpUniversalCopyType", "IntTupleType", "LayoutType", "MemRefType",
    "MmaAtomType", "MmaOpUniversalFMAType", "PointerType", "SwizzleType", "T", "TileType", "TiledCopyType",
    "TiledMmaType",
]  # fmt: skip
__all__ += [
    "make_composed_layout", "make_coord", "make_fragment_layout_like", "make_fragment_like",
    "make_identity_layout", "make_int_tuple", "make_layout", "make_layout_like", "make_ordered_layout",
    "make_ptr", "make_shape", "make_stride", "make_tile", "make_view", "static",
]  # fmt: skip
__all__ += [
    "composed_get_inner", "composed_get_offset", "composed_get_outer", "coprofile", "coshape", "cosize",
    "depth", "get", "get_", "get_iter", "get_layout", "get_leaves", "get_scalar", "get_shape", "get_stride",
    "has_none", "is_profile_congruent", "is_profile_weakly_congruent", "rank", "size",
]  # fmt: skip
__all__ += ["crd2idx", "get_1d_coord", "get_flat_coord", "idx2crd"]
__all__ += [
    "ceil_div", "elem_less", "equal", "int_tuple_add", "int_tuple_div", "int_tuple_mod", "int_tuple_mul",
    "int_tuple_product", "int_tuple_product_each", "int_tuple_product_like", "int_tuple_sub", "shape_div",
]  # fmt: skip
__all__ += [
    "append", "blocked_product", "coalesce", "complement", "composition", "dice", "flat_divide", "flat_product",
    "group", "left_inverse", "logical_divide", "logical_product", "prepend", "raked_product", "recast_layout",
    "right_inverse", "select", "slice", "take", "tile_to_shape", "tiled_divide", "tiled_product",
    "zipped_divide", "zipped_product",
]  # fmt: skip
__all__ += [
    "add_offset", "apply_swizzle", "assume", "get_dyn_shared", "inttoptr", "memref_alloca", "memref_load",
    "memref_load_vec", "memref_store", "memref_store_vec", "printf", "ptr_load", "ptr_store", "ptrtoint",
    "recast_iter", "to_llvm_ptr",
]  # fmt: skip
__all__ += [
    "UniversalAtomic", "UniversalAtomicAdd", "UniversalAtomicAnd", "UniversalAtomicDec", "UniversalAtomicInc",
    "UniversalAtomicMax", "UniversalAtomicMin", "UniversalAtomicOr", "UniversalCopy", "UniversalCopy8b",
    "UniversalCopy16b", "UniversalCopy32b", "UniversalCopy64b", "UniversalCopy128b", "UniversalFMA",
    "atom_set_value", "copy", "copy_atom_call", "gemm", "make_copy_atom", "make_mma_atom", "make_tiled_copy",
    "make_tiled_mma", "mma_atom_call", "mma_make_fragment", "tiled_copy_partition_dst",
    "tiled_copy_partition_src", "tiled_copy_retile", "tiled_mma_partition", "tiled_mma_partition_shape",
]  # fmt: skip
__all__ += ["const_expr", "dsl_loc_tracing", "dsl_wrap_result", "range_constexpr"]


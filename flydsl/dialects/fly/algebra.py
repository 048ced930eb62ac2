"""Ops of the layout algebra on run-time values: all pure, each with the law that gives its result.

An op exists in IR only when an operand is known at run time alone; everything static is folded before. Operands are Fly values (a static one
comes from `fly.static`), `params` holds Python integers such as mode numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any

from flydsl import layout as la
from flydsl.dialects import laws
from flydsl.dialects.fly.base import Fly, Pure
from flydsl.dialects.fly.types import type_of, value_of
from flydsl.ir import ext, ir

ALGEBRA: dict[str, type["AlgebraOp"]] = {}


class AlgebraOp(Fly.Operation, traits=[Pure]):
    """Base of the ops whose result type is their law applied to the operand types.

    Each takes a fixed number of operands; one that the caller left out is the static int tuple `*` (None).
    """

    @classmethod
    def infer(cls, operands: Sequence[Any], params: Sequence[Any] = ()) -> Any:
        """Return the plain value of the result type."""
        return cls.law(*operands, *params)

    @staticmethod
    def verify_invariants(op) -> bool:
        """Check that the result type is what the law says."""
        cls = ALGEBRA[op.operation.name]
        try:
            expected = cls.infer([value_of(v.type) for v in op.operands], params_of(op))
        except (ValueError, TypeError, IndexError) as e:
            op.operation.location.emit_error(f"{op.operation.name}: {e}")
            return False
        actual = op.results[0].type
        if type_of(expected, actual.context) != actual:
            op.operation.location.emit_error(f"{op.operation.name}: result is {type_of(expected)}, not {actual}")
            return False
        return True


def params_of(op) -> tuple:
    """Return the static parameters of an algebra op; lists are tuples."""
    attrs = op.attributes
    if "params" not in attrs:
        return ()
    return tuple(_param(a) for a in ir.ArrayAttr(attrs["params"]))


def _param(attr: ir.Attribute) -> Any:
    if isinstance(attr, ir.ArrayAttr):
        return tuple(_param(a) for a in attr)
    return ir.IntegerAttr(attr).value


def params_attr(params: Sequence[Any], types: Any) -> ir.Attribute:
    """Return the attribute that holds `params` (ints and tuples of ints)."""
    def one(p: Any) -> ir.Attribute:
        return ir.ArrayAttr.get([one(x) for x in p]) if isinstance(p, (tuple, list)) else ir.IntegerAttr.get(types.i32, p)

    return ir.ArrayAttr.get([one(p) for p in params])


def _op(name: str, law: Callable, operands: str) -> type[AlgebraOp]:
    fields = dict.fromkeys(operands.split(), ext.Operand[Any])
    annotations = {**fields, "result": ext.Result[Any]}
    namespace = {"__doc__": law.__doc__, "law": staticmethod(law), "__annotations__": annotations}
    cls = type("".join(p.capitalize() for p in name.split("_")), (AlgebraOp,), namespace, name=name)
    ALGEBRA[f"fly.{name}"] = cls
    return cls


MakeLayout = _op("make_layout", la.make_layout, "shape stride")
MakeOrderedLayout = _op("make_ordered_layout", la.make_ordered_layout, "shape order")
MakeLayoutLike = _op("make_layout_like", laws.make_layout_like, "layout")
MakeIdentityLayout = _op("make_identity_layout", la.make_identity_layout, "shape")
MakeComposedLayout = _op("make_composed_layout", la.make_composed_layout, "inner offset outer")
MakeView = _op("make_view", laws.make_view, "iterator layout")

GetIter = _op("get_iter", laws.get_iter, "view")
GetLayout = _op("get_layout", laws.get_layout, "view")
GetShape = _op("get_shape", laws.get_shape, "source")
GetStride = _op("get_stride", laws.get_stride, "source")
ComposedGetInner = _op("composed_get_inner", la.composed_get_inner, "source")
ComposedGetOffset = _op("composed_get_offset", la.composed_get_offset, "source")
ComposedGetOuter = _op("composed_get_outer", la.composed_get_outer, "source")
Size = _op("size", laws.size, "source")
Cosize = _op("cosize", laws.cosize, "source")
Coshape = _op("coshape", laws.coshape, "source")
Coprofile = _op("coprofile", laws.coprofile, "source")

Get = _op("get", laws.get_, "source")
Select = _op("select", laws.select, "source")
Take = _op("take", laws.take, "source")
Group = _op("group", laws.group, "source")
Append = _op("append", laws.append, "base elem")
Prepend = _op("prepend", laws.prepend, "base elem")
Slice = _op("slice", laws.slice_, "source coord")
Dice = _op("dice", laws.dice, "source coord")

Crd2Idx = _op("crd2idx", la.crd2idx, "coord layout")
Idx2Crd = _op("idx2crd", la.idx2crd, "index layout")
GetFlatCoord = _op("get_flat_coord", la.get_flat_coord, "index layout")
Get1DCoord = _op("get_1d_coord", la.get_1d_coord, "index layout")

IntTupleAdd = _op("int_tuple_add", la.int_tuple_add, "lhs rhs")
IntTupleSub = _op("int_tuple_sub", la.int_tuple_sub, "lhs rhs")
IntTupleMul = _op("int_tuple_mul", la.int_tuple_mul, "lhs rhs")
IntTupleDiv = _op("int_tuple_div", la.int_tuple_div, "lhs rhs")
IntTupleMod = _op("int_tuple_mod", la.int_tuple_mod, "lhs rhs")
IntTupleProduct = _op("int_tuple_product", la.int_tuple_product, "source")
IntTupleProductEach = _op("int_tuple_product_each", la.int_tuple_product_each, "source")
IntTupleProductLike = _op("int_tuple_product_like", la.int_tuple_product_like, "source guide")
ShapeDiv = _op("shape_div", la.shape_div, "lhs rhs")
CeilDiv = _op("ceil_div", la.ceil_div, "lhs rhs")

Coalesce = _op("coalesce", laws.coalesce, "layout pattern")
Composition = _op("composition", laws.composition, "outer inner")
Complement = _op("complement", la.complement, "layout bound")
RightInverse = _op("right_inverse", la.right_inverse, "layout")
LeftInverse = _op("left_inverse", la.left_inverse, "layout")
RecastLayout = _op("recast_layout", la.recast_layout, "layout")
LogicalDivide = _op("logical_divide", laws.logical_divide, "layout tiler")
ZippedDivide = _op("zipped_divide", laws.zipped_divide, "layout tiler")
TiledDivide = _op("tiled_divide", laws.tiled_divide, "layout tiler")
FlatDivide = _op("flat_divide", laws.flat_divide, "layout tiler")
LogicalProduct = _op("logical_product", la.logical_product, "layout tiler")
ZippedProduct = _op("zipped_product", la.zipped_product, "layout tiler")
TiledProduct = _op("tiled_product", la.tiled_product, "layout tiler")
FlatProduct = _op("flat_product", la.flat_product, "layout tiler")
BlockedProduct = _op("blocked_product", la.blocked_product, "layout tiler")
RakedProduct = _op("raked_product", la.raked_product, "layout tiler")
TileToShape = _op("tile_to_shape", la.tile_to_shape, "block shape order")

At = _op("at", laws.at, "view coord")
AddOffset = _op("add_offset", laws.add_offset, "iterator offset")
ApplySwizzle = _op("apply_swizzle", laws.apply_swizzle, "source swizzle")


class Static(Fly.Operation, name="static", traits=[Pure]):
    """A value that its type states completely; lowering reads it from there."""

    result: ext.Result[Any]


class MakeIntTuple(Fly.Operation, name="make_int_tuple", traits=[Pure]):
    """An int tuple; its 32-bit dynamic leaves are `narrow`, its 64-bit ones `wide`, each in order."""

    narrow: Sequence[ext.Operand[Any]]
    wide: Sequence[ext.Operand[Any]]
    result: ext.Result[Any]


class GetScalar(Fly.Operation, name="get_scalar", traits=[Pure]):
    """The integer of a leaf int tuple: i32 or i64 by its width."""

    source: ext.Operand[Any]
    result: ext.Result[Any]


class GetLeaf(Fly.Operation, name="get_leaf", traits=[Pure]):
    """The `index`-th dynamic leaf of any Fly value, as an i32 or i64."""

    source: ext.Operand[Any]
    index: ir.IntegerAttr
    result: ext.Result[Any]


class ElemLess(Fly.Operation, name="elem_less", traits=[Pure]):
    """Whether each leaf of `lhs` is less than its partner in `rhs`: i1."""

    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]
    result: ext.Result[Any]


class Equal(Fly.Operation, name="equal", traits=[Pure]):
    """Whether two int tuples are equal leaf by leaf: i1."""

    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]
    result: ext.Result[Any]

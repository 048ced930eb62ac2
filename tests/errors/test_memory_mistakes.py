"""Mistakes with layouts, tensors, copies, matrix operations, structs and LDS: class, code, line, column's expression
and text of each.
"""

import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from kernel_trace import A, B, P, kernel

import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.diag.errors import memory
from flydsl.expr import protocol
from flydsl.expr.fly_types import CoordTensorType
from flydsl.expr.legacy_lds import get_index_value
from flydsl.expr.numeric import wrap

L = fx.make_layout


class Env:
    """What the mistakes work on, inside a kernel."""

    def __init__(self, arguments: list):
        a, b, p, n = arguments
        self.a, self.b, self.p, self.n = fx.Tensor(a), fx.Tensor(b), fx.Pointer(p), wrap(fx.Int32, n)
        self.reg = fx.make_rmem_tensor(8, fx.Float16)
        self.coords = fx.make_view((0, 0), fx.make_identity_layout((4, 8)))
        self.copy128 = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        self.fma = fx.make_mma_atom(fx.UniversalFMA(fx.Float32))

    def frag(self, *shape: int) -> fx.Tensor:
        return fx.make_rmem_tensor(shape, fx.Float32)

    def gemm(self, d, a, b, c, **options) -> None:
        fx.gemm(self.fma, self.frag(*d), self.frag(*a), self.frag(*b), self.frag(*c), **options)


@fx.struct
class Pair:
    left: fx.Int32
    right: fx.Float32


@fx.struct
class Sized:
    n: fx.Constexpr[int]
    f: fx.Constexpr[Callable]


@fx.union
class Scratch:
    i: fx.Int32
    f: fx.Float32


CAPTURED = 3

# (code, built-in class, the mistake, a part of the text)
MISTAKES: list[tuple[str, type, Callable[[Env], Any], str]] = [
    (
        "FLY_WRONG_KIND",
        TypeError,
        lambda e: fx.right_inverse(3),
        "right_inverse must be Layout or ComposedLayout, got int 3",
    ),
    ("FLY_LEAF_NOT_INTEGER", TypeError, lambda e: fx.make_shape(4, 1.5), "must be an integer, got float 1.5"),
    ("FLY_BASIS_MODES", ValueError, lambda e: fx.Basis(1, []), "at least one"),
    ("FLY_NOT_STATIC_LEAF", ValueError, lambda e: e.b.shape[0].get_static_leaf_int, "`?` is not a single integer"),
    (
        "FLY_MODE_MISSING",
        IndexError,
        lambda e: fx.make_shape(2, 3)[5],
        "Index 5 out of range for int tuple with rank 2",
    ),
    (
        "FLY_LAYOUT_PROFILE",
        ValueError,
        lambda e: L((4, 8), 1),
        "profile mismatch: is_profile_congruent((4,8), 1) is False",
    ),
    ("FLY_LAYOUT_PROFILE", ValueError, lambda e: e.a[1, 2, 3], "indexing a tensor"),
    ("FLY_ELEMENT_TYPE", TypeError, lambda e: fx.make_rmem_tensor(4, 32), "must be a scalar class of fx"),
    ("FLY_STRIDE_UNDEFINED", TypeError, lambda e: swizzled().stride, "ComposedLayout doesn't have a meaningful stride"),
    ("FLY_TILE_DYNAMIC", ValueError, lambda e: fx.make_tile(e.n), "a tile is static"),
    ("FLY_SLICE_FULL", ValueError, lambda e: fx.slice(e.a, (1, 2)), "`(1,2)` keeps no mode"),
    (
        "FLY_SPACE",
        ValueError,
        lambda e: fx.ptrtoint(e.reg.iter),
        "ptrtoint needs a pointer to generic, global or shared memory",
    ),
    ("FLY_RECAST_TYPE", TypeError, lambda e: fx.recast_iter(fx.Float32x4, e.p), "got unsupported class Float32x4"),
    (
        "FLY_POINTER_TYPE",
        TypeError,
        lambda e: fx.inttoptr(fx.LayoutType.get(4, 1), 0),
        "becomes a pointer of a PointerType",
    ),
    (
        "FLY_POINTER_OPERAND",
        TypeError,
        lambda e: fx.inttoptr(global_pointer(), e.n),
        "a global pointer is made of Int64, got Int32",
    ),
    (
        "FLY_ELEMENT_CONVERSION",
        TypeError,
        lambda e: e.a.__setitem__((0, 0), "x"),
        "cannot be used as an element of type f16",
    ),
    (
        "FLY_COORD_TENSOR_STORE",
        TypeError,
        lambda e: e.coords.__setitem__((0, 0), 1),
        "a coordinate tensor cannot be written",
    ),
    (
        "FLY_FRAGMENT_DYNAMIC",
        ValueError,
        lambda e: fx.make_fragment_like(e.b),
        "must be static, got `(?,?):(?{i64},1)`",
    ),
    ("FLY_VECTOR_DYNAMIC", ValueError, lambda e: e.b.load(), "needs a static shape"),
    ("FLY_NOT_ITERABLE", TypeError, lambda e: list(e.b), "a tensor cannot be iterated over whose layout is"),
    ("FLY_NOT_ITERABLE", TypeError, lambda e: list(e.p), "a pointer cannot be iterated over"),
    (
        "FLY_VECTOR_SIZE",
        ValueError,
        lambda e: e.reg.store(fx.Vector.filled(4, 0, fx.Float16)),
        "to a tensor of 8 elements",
    ),
    ("FLY_VECTOR_DTYPE", TypeError, lambda e: e.reg.store(fx.Vector.filled(8, 0, fx.Float32)), "to a tensor of f16"),
    (
        "FLY_ATOM_OPERATION",
        TypeError,
        lambda e: fx.make_copy_atom(fx.UniversalCopy128b, fx.Float16),
        "UniversalCopy128b (call it)",
    ),
    (
        "FLY_ATOM_EXPECTED",
        TypeError,
        lambda e: fx.copy(slice_of(e), e.a, e.reg),
        "needs a CopyAtom or TiledCopy, got ThrCopy",
    ),
    ("FLY_ATOM_STATE", ValueError, lambda e: e.copy128.set_value("soffset", 1), "has no state field `soffset`"),
    (
        "FLY_STATE_VALUE",
        TypeError,
        lambda e: buffer_atom().set_value("soffset", fx.Float16(1)),
        "is an i32, got Float16",
    ),
    ("FLY_COPY_RANK", ValueError, lambda e: fx.copy(e.copy128, e.a, e.reg), "tensors of equal rank, got 2"),
    ("FLY_COPY_DYNAMIC", ValueError, lambda e: fx.copy(scalar_atom(), e.b, e.b), "has the layout `(?,?):(?{i64},1)`"),
    ("FLY_COPY_VALUES", ValueError, lambda e: fx.copy(e.copy128, view_of(e, 12), view_of(e, 12)), "moves 8 values"),
    ("FLY_COPY_CALL", ValueError, lambda e: fx.copy_atom_call(e.copy128, view_of(e, 16), e.reg), "is `16:1`"),
    (
        "FLY_COPY_SIZES",
        ValueError,
        lambda e: fx.copy(e.copy128, view_of(e, (8, 2)), frag_of((8, 3))),
        "got (1,2) for `(8,2):(1,8)`",
    ),
    ("FLY_COPY_ELEMENT", ValueError, lambda e: fx.copy(e.copy128, view_of(e, 8), e.frag(8)), "holds f32"),
    ("FLY_COPY_NOT_CONTIGUOUS", ValueError, lambda e: fx.copy(e.copy128, view_of(e, 8, 128), e.reg), "8 adjacent f16"),
    (
        "FLY_COPY_PREDICATE",
        ValueError,
        lambda e: fx.copy(e.copy128, view_of(e, 8), e.reg, pred=e.reg),
        "one Boolean per atom call",
    ),
    ("FLY_COPY_SPACES", ValueError, lambda e: fx.copy(buffer_atom(), view_of(e, 8), e.reg), "from global to register"),
    (
        "FLY_GATHER_SHAPE",
        ValueError,
        lambda e: fx.gather(e.copy128, e.a.iter, int_frag(3), e.reg),
        "gather: data `8:1`",
    ),
    ("FLY_SHUFFLE_MODE", ValueError, lambda e: fx.gpu.shuffle(e.n, 1, 64, "left"), "'left'"),
    ("FLY_SHUFFLE_WIDTH", ValueError, lambda e: fx.gpu.shuffle_up(e.n, 1, 48), "lanes cannot be grouped by 48"),
    ("FLY_SHUFFLE_VALUE", TypeError, lambda e: fx.gpu.shuffle_xor(fx.Int128(e.n), 1, 64), "cannot shuffle Int128"),
    (
        "FLY_PRINTF_PLACEHOLDERS",
        ValueError,
        lambda e: fx.printf("{} {}", e.n),
        "2 placeholders in '{} {}' for 1 values",
    ),
    ("FLY_PRINTF_VALUE", ValueError, lambda e: fx.printf("{}", e.b.shape), "made of several run-time values"),
    (
        "FLY_NOT_DSL_TYPE",
        TypeError,
        lambda e: protocol.extract_to_ir_values(object()),
        "Cannot extract IR values from object",
    ),
    ("FLY_NOT_JIT_ARGUMENT", TypeError, lambda e: protocol.cache_signature(object()), "cache signature"),
    ("FLY_NOT_STORABLE", TypeError, lambda e: protocol.dsl_size_of(fx.Boolean), "sub-byte"),
    (
        "FLY_VALUE_COUNT",
        ValueError,
        lambda e: Pair.__construct_from_ir_values__(raws(e) * 2),
        "expected 2 ir.Values, got 4",
    ),
    ("FLY_CONSTEXPR_TYPE", TypeError, lambda e: fx.Constexpr[dict], "Constexpr[dict]"),
    ("FLY_CONSTEXPR_VALUE", TypeError, lambda e: Sized(n=True, f=len), "expects int, got bool"),
    (
        "FLY_CONSTEXPR_RUN_TIME",
        TypeError,
        lambda e: fx.Constexpr.checked(fx.Constexpr[int], e.n, "n"),
        "given a run-time value",
    ),
    (
        "FLY_CONSTEXPR_LAMBDA",
        TypeError,
        lambda e: Sized(n=1, f=lambda x: x + CAPTURED),
        "uses names from outside: CAPTURED",
    ),
    ("FLY_ARRAY_PARAMETERS", TypeError, lambda e: fx.Array[fx.Int32, 0], "must be a positive integer"),
    ("FLY_ARRAY_POKE", NotImplementedError, lambda e: fx.Array[fx.Int32, 4].__poke_into_ptr__(e.p, None), "as a whole"),
    ("FLY_ALIGN_PARAMETERS", TypeError, lambda e: fx.Align[fx.Int32], "Align[Type, N]"),
    ("FLY_ALIGN_VALUE", ValueError, lambda e: fx.Align[fx.Int32, 24], "power of two"),
    ("FLY_POINTER_FIELD", TypeError, lambda e: fx.Pointer[3], "takes a scalar class"),
    (
        "FLY_STRUCT_FROZEN",
        FrozenInstanceError,
        lambda e: setattr(Pair(1, 2.0), "left", 3),
        "cannot assign to field 'left'",
    ),
    ("FLY_STRUCT_FIELDS", ValueError, lambda e: fx.Struct[()], "at least one field"),
    ("FLY_FIELD_NAME", ValueError, lambda e: fx.Struct["peek" : fx.Int32], "'peek' is reserved"),
    ("FLY_FIELD_ARGUMENT", TypeError, lambda e: Pair(1), "missing required field 'right'"),
    ("FLY_FIELD_TYPE", TypeError, lambda e: Pair(object(), 2.0), "expects Int32"),
    ("FLY_FIELD_UNKNOWN", AttributeError, lambda e: fx.Storage[Pair](e.p).missing, "has no field 'missing'"),
    ("FLY_UNION_VALUE", TypeError, lambda e: Scratch(1), "no value form"),
    ("FLY_UNION_VALUE", TypeError, lambda e: fx.Storage[Scratch](e.p).peek(), "no value form"),
    ("FLY_UNION_VALUE", TypeError, lambda e: fx.Storage[Scratch](e.p).poke(1), "no value form"),
    ("FLY_DYNAMIC_IN_ARRAY", IndexError, lambda e: np.arange(4)[e.n], "dynamic 'Int32' is used in a NumPy array"),
    ("FLY_DYNAMIC_IN_ARRAY", IndexError, lambda e: np.arange(4)[e.n.ir_value()], "dynamic 'i32' is used in a NumPy array"),
    ("FLY_DYNAMIC_IN_ARRAY", IndexError, lambda e: np.arange(4).reshape(2, 2)[e.n, 0], "as an fx.Tensor argument"),
    ("FLY_DYNAMIC_IN_ARRAY", IndexError, lambda e: np.array([e.n, 1]), "as an index or an element"),
    ("FLY_ARENA_BASE", NotImplementedError, lambda e: fx.Arena().base_ptr, "Arena has no memory"),
    ("FLY_ARENA_SIZE", ValueError, lambda e: fx.SharedAllocator().allocate(0), "must be > 0"),
    (
        "FLY_SECOND_ALLOCATOR",
        RuntimeError,
        lambda e: (fx.SharedAllocator(), fx.SharedAllocator()),
        "Only one SharedAllocator",
    ),
    ("FLY_STATIC_BASE", RuntimeError, lambda e: fx.SharedAllocator().base_ptr, "no shared base pointer"),
    (
        "FLY_SHARED_CAPACITY",
        RuntimeError,
        lambda e: fx.SharedAllocator().allocate(65537),
        "65537 bytes of LDS are allocated",
    ),
    ("FLY_STATIC_TYPE", ValueError, lambda e: fx.static(fx.Layout(e.b.layout.value).type), "has run-time parts"),
    ("FLY_GEMM_RANK", ValueError, lambda e: e.gemm((1, 2), (1, 2), (1, 2), (1, 2)), "GEMM requires rank-1 fragments"),
    ("FLY_GEMM_SIZES", ValueError, lambda e: e.gemm((1, 2, 3), (1, 4), (1, 3), (1, 2, 3)), "GEMM M/N tile dimensions"),
    (
        "FLY_GEMM_TWO_ORDERS",
        ValueError,
        lambda e: gemm_1x1x1(e, traversal_order=0, traversal_layout=L(1, 1)),
        "not both",
    ),
    ("FLY_GEMM_ORDER", ValueError, lambda e: gemm_1x1x1(e, traversal_order="KMN"), "possible: KMN, KNM"),
    ("FLY_GEMM_ORDER", ValueError, lambda e: gemm_1x1x1(e, traversal_layout=L(2, 1)), "a static layout of size 1"),
    ("FLY_GEMM_FRAGMENT", ValueError, lambda e: e.gemm((2, 1, 1), (1, 1), (1, 1), (1, 1, 1)), "operand d"),
    (
        "FLY_GEMM_CALLBACK",
        TypeError,
        lambda e: gemm_1x1x1(e, atom_callback=lambda atom, step: 3),
        "must return an MmaAtom",
    ),
    ("FLY_ATOMIC_ORDERING", ValueError, lambda e: fx.atomic_add(e.p, 1.0, ordering="soon"), "'soon'"),
    ("FLY_ATOMIC_VALUE", TypeError, lambda e: fx.atomic_xor(e.p, 1.0), "atomic xor"),
    ("FLY_SMEM_INDEX", TypeError, lambda e: get_index_value("x"), "must be an integer, got str"),
]


def swizzled() -> fx.ComposedLayout:
    return fx.make_composed_layout(fx.static(fx.SwizzleType.get(3, 3, 3)), L((8, 64), (64, 1)))


def global_pointer() -> fx.PointerType:
    return fx.PointerType.get(fx.Float32, fx.AddressSpace.Global, 4)


def slice_of(e: Env) -> fx.ThrCopy:
    return fx.make_tiled_copy_tv(e.copy128, L((16, 16), (16, 1)), L((1, 8), (1, 1))).get_slice(e.n)


def buffer_atom() -> fx.CopyAtom:
    return fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)


def scalar_atom() -> fx.CopyAtom:
    return fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)


def view_of(e: Env, shape: Any, stride: int = 1) -> fx.Tensor:
    """Return a view of global memory: column-major, or 1-D with a stride."""
    layout = L(shape, stride) if isinstance(shape, int) else fx.make_ordered_layout(shape, 0)
    return fx.make_view(e.a.iter, layout)


def frag_of(shape: tuple) -> fx.Tensor:
    return fx.make_rmem_tensor(shape, fx.Float16)


def int_frag(n: int) -> fx.Tensor:
    return fx.make_rmem_tensor(n, fx.Int32)


def raws(e: Env) -> list:
    return [e.n.ir_value(), fx.Float32(e.n).ir_value()]


def gemm_1x1x1(e: Env, **options) -> None:
    e.gemm((1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), **options)


@pytest.mark.parametrize(
    ("code", "builtin", "mistake", "text"), MISTAKES, ids=[f"{i}-{m[0]}" for i, m in enumerate(MISTAKES)]
)
def test_mistake(code, builtin, mistake, text):
    with pytest.raises(builtin) as caught, kernel(A, B, P, "i32") as (_, arguments):
        mistake(Env(arguments))
    error = caught.value
    assert isinstance(error, FlyError)
    rendered = str(error)
    assert error.code == code, rendered
    assert error.span.file == __file__, rendered
    assert any(span.line == mistake.__code__.co_firstlineno for span in error.spans), rendered
    for part in (f"error[{code}]", "why: ", "fix: "):
        assert part in rendered, rendered
    said = "\n".join((error.message, error.reason, error.advice, *error.extra_notes))  # not the source line: it holds `text`
    assert text in said, said


def test_outside_kernel():
    with pytest.raises(RuntimeError) as caught:
        _ = fx.thread_idx.x
    assert caught.value.code == "FLY_OUTSIDE_KERNEL"


def test_every_code_is_tested():
    tested = {code for code, *_ in MISTAKES} | {"FLY_OUTSIDE_KERNEL", "FLY_STATIC_OFFSET"}  # found by a pass: tests/sim/test_far_offsets.py
    codes = {getattr(memory, name).code for name in memory.__all__}
    assert codes <= tested, codes - tested


def test_the_operand_is_named_as_written():
    with pytest.raises(ValueError) as caught, kernel(A, B, P, "i32") as (_, arguments):
        env = Env(arguments)
        thr_gA = view_of(env, 8, 4096)
        fx.copy(env.copy128, thr_gA, env.reg)
    source = "`thr_gA`" if sys.version_info >= (3, 11) else "the source"  # Python 3.10 has no columns
    assert f"a 128-bit copy needs 8 adjacent f16, but {source} steps by 4096" in str(caught.value)


def test_types_of_other_kinds_are_not_taken_for_pointers():
    assert not isinstance(CoordTensorType.get(0, fx.LayoutType.get(4, 1)), fx.PointerType)

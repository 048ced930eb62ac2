"""Values of the layout language: what costs IR and what does not, round trips through flat values, accesses, ids,
LDS, partitions.
"""

import pytest
from kernel_trace import A, B, P, kernel, ops

import flydsl.expr as fx
from flydsl import layout as la
from flydsl.atoms import tiled_copy as tc
from flydsl.dialects.fly.types import type_of, value_of
from flydsl.expr.carrying import can_continue, flat_types, flatten, from_values
from flydsl.expr.copying import adjacent_step
from flydsl.expr.int_tuples import from_leaves
from flydsl.expr.numeric import wrap
from flydsl.ir import emit, ir
from flydsl.layout.parse import parse

L = fx.make_layout


def int32(value):
    return wrap(fx.Int32, value)


# --- build or fold -------------------------------------------------------------------------------------------------------


def test_static_values_need_no_trace():
    tile, tv = fx.make_layout_tv(L((16, 4), (4, 1)), L((1, 4), (1, 1)))
    assert (tile, str(tv)) == ((16, 16), "Layout<((4,16),4):((64,1),16)>")
    assert fx.size(L((4, 8), (8, 1))).to_py_value() == 32
    assert str(fx.zipped_divide(L((16, 32), (32, 1)), (4, 8))) == "Layout<((4,8),(4,4)):((32,1),(128,8))>"


def test_static_values_build_nothing():
    with kernel() as (trace, _):
        layout = fx.composition(L((4, 8), (8, 1)), L(8, 2))
        coords = fx.make_view((0, 0), fx.make_identity_layout((64, 128)))
        part = fx.zipped_divide(coords, (16, 16))[None, (1, 2)]
        assert part[3, 5].to_py_value() == (19, 37)
        assert layout.shape.to_py_value() == (2, 4)
        assert [op.operation.name for op in trace.scope.block.operations] == []


def test_a_dynamic_slice_is_one_op_and_its_type_says_what_is_known():
    with kernel(B, "i32") as (trace, (b, n)):
        part = fx.zipped_divide(fx.Tensor(b), (16, 16))[None, (int32(n), 0)]
        assert str(part) == "Tensor<f32, global, (16,16):(?{i64},1)>"
        assert [len(ops(trace, f"fly.{name}")) for name in ("zipped_divide", "slice", "make_int_tuple")] == [1, 1, 1]


def test_a_static_operand_is_stated_once_per_function():
    with kernel(A) as (trace, (a,)):
        t = fx.Tensor(a)
        for _ in range(3):
            fx.zipped_divide(t, (16, 16))
        assert len(ops(trace, "fly.static")) == 1


def test_leaves_of_a_python_tuple_come_back_without_ops():
    with kernel("i32") as (trace, (n,)):
        shape = fx.make_shape(int32(n), 8)
        x, eight = shape.to_py_value()
        assert ir.Value.__eq__(x.value, n) and eight == 8
        assert ir.Value.__eq__(shape[0].to_py_value().value, n)
        assert [op.operation.name for op in trace.scope.block.operations] == []


@pytest.mark.parametrize("text", ["?", "?{i64}", "(?,8)", "((?,2),?{i64})", "(?{i64},?)"])
def test_int_tuples_of_both_widths_verify(text):
    plain = parse(text)
    with kernel(*["i64" if leaf.width == 64 else "i32" for leaf in la.get_leaves(plain, True)]) as (trace, values):
        x = from_leaves(plain, values)
        fx.int_tuple_add(x, 1 if not isinstance(plain, tuple) else tuple(1 for _ in plain))
        assert [op.name for op in ops(trace, "fly.make_int_tuple")] == ["fly.make_int_tuple"]


# --- flat values -----------------------------------------------------------------------------------------------------------

CARRIED = [
    "!fly.ptr<f32, global, align<16>>",
    "!fly.memref<f16, global, (64,128):(128,1)>",
    "!fly.memref<f32, global, (?,?):(?{i64},1)>",
    "!fly.memref<f16, shared, S<3,3,3> o ?{div=64} o 64:1, align<16>>",
    "!fly.coord_tensor<(?,0), (4,?):(1E0,1E1)>",
    "!fly.memref<f32, #fly_rocdl.buffer_desc, (?,8):(8,1)>",
]


@pytest.mark.parametrize("text", CARRIED)
def test_flatten_and_rebuild(text):
    plain = parse(text)
    with kernel(plain) as (trace, (value,)):
        x = (fx.Pointer if text.startswith("!fly.ptr") else fx.Tensor)(value)
        flat = flatten(x)
        assert [v.type for v in flat] == flat_types(plain, trace.types)
        again = from_values(plain, flat)
        assert (again.plain, type(again)) == (plain, type(x))


def test_types_tell_alignments_apart():
    pointers = [parse(f"!fly.ptr<f16, shared{align}>") for align in ("", ", align<1>", ", align<4>")]
    with kernel() as (trace, _args):
        types = [type_of(p, trace.context) for p in pointers]
        assert len(set(types)) == 3
        assert [value_of(t).align_bytes for t in types] == [2, 1, 4]


def test_register_memory_is_not_carried():
    with kernel() as (_, _args):
        r = fx.make_rmem_tensor((4, 2), fx.Float32)
        assert flatten(r) == []
        assert r.__construct_from_ir_values__([]) is r


@pytest.mark.parametrize(
    ("entry", "produced", "fits"),
    [
        ("?{div=4}", "?{div=8}", True),
        ("?{div=8}", "?{div=4}", False),
        ("?", "?{i64}", False),
        ("!fly.ptr<f32, global>", "!fly.ptr<f32, global, align<16>>", True),
        ("!fly.ptr<f32, global, align<16>>", "!fly.ptr<f32, global>", False),
        ("!fly.memref<f32, global, 4:1>", "!fly.memref<f32, global, 4:2>", False),
        ("!fly.memref<f32, global, ?:1>", "!fly.memref<f32, global, ?{div=2}:1, align<8>>", True),
        ("!fly.ptr<f32, global>", "!fly.ptr<i32, global>", False),
    ],
)
def test_what_may_continue_as_what(entry, produced, fits):
    assert can_continue(parse(entry), parse(produced)) is fits


# --- accesses ----------------------------------------------------------------------------------------------------------------


def test_an_index_may_be_linear():
    with kernel(A, "i32") as (trace, (a, n)):
        x = fx.Tensor(a)[int32(n)]
        assert type(x) is fx.Float16
        assert len(ops(trace, "fly.memref_load")) == 1


def test_stored_scalars_are_converted():
    with kernel(A) as (trace, (a,)):
        fx.Tensor(a)[0, 0] = 1
        (store,) = ops(trace, "fly.memref_store")
        assert str(store.operands[0].type) == "f16"


def test_a_slice_can_be_set():
    with kernel(A) as (trace, (a,)):
        t = fx.make_view(fx.Tensor(a).iter, L((4, 2), (1, 4)))
        t[None, 0] = fx.Vector.filled(4, 1.0, fx.Float16)
        t[None, 1] = 2
        assert [str(op.operands[0].type) for op in ops(trace, "fly.memref_store_vec")] == ["vector<4xf16>"] * 2


def test_pointer_loads_keep_the_alignment_that_is_known():
    with kernel(P, "i32") as (_, (p, n)):
        p, n = fx.Pointer(p), int32(n)
        assert [(p + x).alignment for x in (4, 2, n, n * 4, fx.int_tuple_mul(n, 4), 0)] == [16, 8, 4, 4, 16, 16]
        assert fx.apply_swizzle(p, fx.static(fx.SwizzleType.get(2, 1, 3))).alignment == 8


# --- ids, LDS ----------------------------------------------------------------------------------------------------------------


def test_ids_are_read_once_and_dominate():
    with kernel("i1") as (trace, (c,)):
        guard = emit("scf.if", (), (c,), None, 2)
        inner = ir.Block.create_at_start(guard.regions[0], [])
        with trace.in_block(inner):
            fx.thread_idx.x
            emit("scf.yield")
        x, y, z = fx.thread_idx
        assert type(x) is fx.Int32
        assert len(ops(trace, "gpu.thread_id")) == 3


def test_static_lds_has_one_variable_per_leaf():
    inner = fx.Struct["x" : fx.Int32, "y" : fx.Float32]
    with kernel() as (trace, _):
        shared = fx.SharedAllocator()
        st = shared.allocate(fx.Struct["a" : fx.Array[fx.Float16, 128, 16], "b":inner])
        st.b.x.poke(3)
        assert shared.allocated_bytes == 256 + 8 + 8
        symbols = [
            op.operation.attributes["sym_name"].value
            for op in trace.scope.owner.function.parent.regions[0].blocks[0].operations
        ]
        assert len([s for s in symbols if s.startswith("__shared_alloc_")]) == 3


def test_dynamic_lds_is_one_block_at_growing_offsets():
    with kernel() as (trace, _):
        shared = fx.SharedAllocator(static=False)
        first = shared.allocate(fx.Array[fx.Float16, 100]).peek().ptr
        second = shared.allocate(fx.Array[fx.Float32, 4, 64]).peek().ptr
        assert (first.alignment, second.alignment) == (1024, 256)
        assert trace.scope.owner.dynamic_shared_bytes == 256 + 16


# --- atoms -------------------------------------------------------------------------------------------------------------------


def test_partition_of_a_static_coordinate_tensor_is_folded():
    with kernel() as (trace, _):
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        tiled = fx.make_tiled_copy_tv(atom, L((16, 16), (16, 1)), L((1, 8), (1, 1)))
        coords = fx.make_view((0, 0), fx.make_identity_layout((64, 128)))
        mine = tiled.get_slice(17).partition_S(coords)
        layout, offset = tc.partition(tiled.plain, "src", coords.plain.layout, 17)
        assert (mine.plain.base, mine.plain.layout) == (offset, layout) == ((1, 8), layout)
        assert not ops(trace, "fly.tiled_copy_partition_src")


def test_state_is_carried_and_only_set_fields_are():
    with kernel("i32") as (trace, (n,)):
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)
        assert atom.__extract_to_ir_values__() == []
        moved = atom.set_value("soffset", int32(n))
        assert moved.__extract_to_ir_values__() == [n]
        again = moved.__construct_from_ir_values__([n])
        assert again.state == {"soffset": n}
        assert len(ops(trace, "fly.atom_set_value")) == 2


def test_copy_is_one_op():
    with kernel(A, "i32") as (trace, (a, n)):
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        mine = (
            fx.make_tiled_copy_tv(atom, L((16, 16), (16, 1)), L((1, 8), (1, 1)))
            .get_slice(int32(n))
            .partition_S(fx.Tensor(a))
        )
        fx.copy(atom, mine, fx.make_fragment_like(mine))
        assert len(ops(trace, "fly.copy")) == 1


@pytest.mark.parametrize(
    ("layout", "values", "adjacent"),
    [
        ("8:1", 8, True),
        ("(8,4):(1,64)", 8, True),
        ("((2,4),3):((1,2),64)", 8, True),
        ("((2,4),3):((1,4),64)", 8, False),
        ("(16,2):(1,64)", 8, True),
        ("((1,8),2):((0,1),64)", 8, True),
        ("S<3,3,3> o 0 o (8,64):(1,64)", 8, True),
        ("S<3,2,3> o 0 o (8,64):(1,64)", 8, False),
        ("S<3,3,3> o ?{div=8} o (8,4):(1,64)", 8, True),
        ("S<3,3,3> o ? o (8,4):(1,64)", 8, False),
        ("S<3,3,3> o 0 o (8,4):(1,20)", 8, False),
    ],
)
def test_adjacency_is_proven_or_refused(layout, values, adjacent):
    plain = parse(layout)
    assert (adjacent_step(plain, values) is None) is adjacent
    if adjacent and getattr(
        plain, "is_static", False
    ):  # the definition: neighbours in the mode are neighbours in memory
        shape = plain.shape if isinstance(plain.shape, tuple) else (plain.shape,)
        rest = [range(la.size(m)) for m in shape[1:]]
        for other in rest[0] if rest else [None]:
            at = lambda i: la.crd2idx((i, other) if other is not None else i, plain)
            for start in range(0, la.size(shape[0]), values):
                assert [at(start + j) - at(start) for j in range(values)] == list(range(values))

"""Vectors: construction, operators as on scalars, shapes, indexing, conversions, reductions, memory, aliases,
carries.
"""

import itertools

import pytest
from tracing_env import traced

from flydsl.expr import arith, math, vector
from flydsl.expr.numeric import (
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float8E4M3FN,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int32,
    Int64,
    Uint8,
    Uint32,
)
from flydsl.expr.type_shortcuts import T
from flydsl.expr.vector import ALIASES, ReductionOp, Vector, VectorAlias, full, ones_like, zeros_like
from flydsl.ir import ir

Float32x4 = ALIASES["Float32x4"]


def test_construction():
    with traced(Int32, Float32) as body:
        n, x = body.args
        v = Vector.filled((2, 4), x, Float32)
        assert (v.shape, v.dtype, v.element_type, v.numel, len(v)) == ((2, 4), Float32, Float32, 8, 8)
        assert Vector.filled(4, n, Float32).dtype is Float32
        assert Vector.from_elements([n, 1, 2.7]).dtype is Int32
        assert Vector.from_elements([n, x], Float64).dtype is Float64
        assert Vector(v.ir_value(), (8,), None).shape == (8,)
        assert zeros_like(v).shape == ones_like(v, Int8).shape == full((2, 4), 3, Int32).shape
        assert Vector.make_type((2, (2, 2)), Float32) == T.vec(8, T.f32)
        body.verify()


def test_filled_is_one_scalar_broadcast():
    with traced() as body:
        Vector.filled(4, 1.5, Float32)
        Vector.filled((2, 2), 1.5, Float32)
        assert body.ops(constants=True) == ["arith.constant", "vector.broadcast", "vector.broadcast"]


@pytest.mark.parametrize("dtype", [Boolean, Int4, Int8, Uint8, Int64, BFloat16, Float8E4M3FN, Float4E2M1FN, Float64])
def test_constants_of_all_classes(dtype):
    with traced() as body:
        assert Vector.filled(4, 1, dtype).dtype is dtype
        body.verify()


SCALAR_OPS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="]
OPERANDS = [Int8, Uint8, Int32, Uint32, Int64, BFloat16, Float32, Boolean]


@pytest.mark.parametrize("symbol", SCALAR_OPS)
def test_operators_are_those_of_scalars(symbol):
    """Same class of the result, same ops, for vector-vector, vector-scalar, scalar-vector and literals."""
    for a, b in itertools.product(OPERANDS, OPERANDS):
        scalar = _ops_of(symbol, a, b, lambda x: x, lambda x: x)
        for lift_a, lift_b in ((_lift, _lift), (_lift, _same), (_same, _lift)):
            got = _ops_of(symbol, a, b, lift_a, lift_b)
            assert got[0] == scalar[0], (a, b)
            assert sorted(got[1]) == sorted(scalar[1]), (a, b)


def _lift(x):
    return Vector.filled(4, x, x.dtype)


def _same(x):
    return x


def _ops_of(symbol, a, b, lift_a, lift_b):
    with traced(a, b) as body:
        x, y = lift_a(body.args[0]), lift_b(body.args[1])
        try:
            result = eval(f"x {symbol} y", {"x": x, "y": y})
        except TypeError:
            return "TypeError", []
        body.verify()
        return result.dtype, [o for o in body.ops() if o not in ("vector.broadcast", "func.return")]


def test_literals_promote_as_on_scalars():
    with traced(Int8) as body:
        v = Vector.filled(4, body.args[0], Int8)
        assert (v + 1).dtype is Int32
        assert (v + Int8(1)).dtype is Int8
        assert (2.5 * v).dtype is Float32
        assert (v + 2**40).dtype is Int64
        assert (v < 3).dtype is Boolean
        assert (3 < v).dtype is Boolean
        assert (v == "a") is False
        body.verify()


BROADCASTS = [
    ((4,), (4,), (4,)),
    ((1,), (4,), (4,)),
    ((2, 1), (1, 4), (2, 4)),
    ((4,), (2, 4), (2, 4)),
    ((2, (1, 2)), (2, 2, 2), (2, 2, 2)),
    ((2, (2, 2)), (2, (2, 2)), (2, (2, 2))),
    ((2, (2, 2)), (8,), None),
    ((4,), (3,), None),
]


@pytest.mark.parametrize(("a", "b", "result"), BROADCASTS)
def test_broadcasting(a, b, result):
    with traced(Int32) as body:
        (n,) = body.args
        x, y = Vector.filled(a, n, Int32), Vector.filled(b, n, Int32)
        if result is None:
            with pytest.raises(ValueError, match="cannot broadcast shapes"):
                x + y
        else:
            assert (x + y).shape == (y + x).shape == result
            body.verify()


INDEXINGS = [
    ((4,), 1, ()),
    ((4,), -1, ()),
    ((2, 4), 5, ()),
    ((2, 4), (1, 2), ()),
    ((2, 4), (-1, -1), ()),
    ((2, 4), (1, None), (4,)),
    ((2, 4), (None, 2), (2,)),
    ((2, 4), (None, None), (2, 4)),
    ((2, (2, 2)), (1, (None, 0)), ((2,),)),
    ((2, (2, 2)), (1, None), ((2, 2),)),
    ((2, (2, 2)), (1, (1, 0)), ()),
    ((2, 4), None, (2, 4)),
]


@pytest.mark.parametrize(("shape", "index", "result"), INDEXINGS)
def test_indexing(shape, index, result):
    with traced(Float32) as body:
        v = Vector.filled(shape, body.args[0], Float32)[index]
        assert getattr(v, "shape", ()) == result
        assert v.dtype is Float32
        body.verify()


def test_static_positions():
    with traced(Float32) as body:
        v = Vector.filled((2, 4), body.args[0], Float32)
        for index, position in (((1, 2), 6), ((-1, -1), 7), (5, 5), ((Int32(1), 0), 4)):
            v[index]
            assert f"static_position = array<i64: {position}>" in body.text().splitlines()[-1]


def test_run_time_indices():
    with traced(Float32, Int32, Index) as body:
        x, n, i = body.args
        v = Vector.filled((2, 4), x, Float32)
        for index in (n, i, (n, 2), (1, n), n.ir_value()):
            assert v[index].__class__ is Float32
        body.verify()


WRONG = {
    "index": (lambda v, n: v[8], IndexError, "vector index 8 out of range for numel 8"),
    "coordinate": (lambda v, n: v[5, 0], IndexError, "vector index (5, 0) out of range for numel 8"),
    "rank": (lambda v, n: v[1, 1, 1], ValueError, "coordinate rank 3 does not match shape rank 2"),
    "slice": (lambda v, n: v[0:2], TypeError, "unsupported index type: <class 'slice'>"),
    "float": (lambda v, n: v[Float32(1.0)], TypeError, "unsupported index type: Float32"),
    "mixed": (lambda v, n: v[n, None], TypeError, "unsupported index type: a run-time integer together with None"),
    "reshape": (lambda v, n: v.reshape((3, 4)), ValueError, "expected reshaped size to match: (2, 4) -> (3, 4)"),
    "shape": (lambda v, n: Vector(v, (3,)), ValueError, "shape (3,) has 3 elements, but value has type vector<8xf32>"),
    "dtype": (
        lambda v, n: Vector(v, dtype=Int32),
        ValueError,
        "dtype Int32 does not match vector element type f32",
    ),
    "run-time shape": (
        lambda v, n: Vector.filled(n, 0, Int32),
        RuntimeError,
        "dynamic 'Int32' has no Python integer representation",
    ),
    "zero shape": (lambda v, n: Vector.filled(0, 0, Int32), ValueError, "0 is no extent of a vector shape"),
    "empty": (lambda v, n: Vector.from_elements([]), ValueError, "Vector.from_elements requires at least one element"),
    "scalar": (lambda v, n: Vector(n), ValueError, "cannot make a Vector from Int32"),
    "invert": (lambda v, n: ~v, TypeError, "~ is undefined for Float32"),
    "bits": (lambda v, n: v & 1, TypeError, "unsupported operand type(s) for &: 'Float32' and 'Int32'"),
    "bool": (
        lambda v, n: bool(v < 1),
        RuntimeError,
        "cannot evaluate dynamic 'Vector(Boolean, (2, 4))' as Python bool during tracing",
    ),
    "reduce": (
        lambda v, n: v.reduce("avg"),
        ValueError,
        "unknown reduction kind 'avg'; expected one of ['add', 'mul', 'max', 'min']",
    ),
    "mask": (lambda v, n: v.shuffle(v, [0, 99]), ValueError, "shuffle mask [0, 99] does not pick from 16 elements"),
    "bitcast": (
        lambda v, n: Vector.filled(3, 0, Int32).bitcast(Int64),
        ValueError,
        "the 96 bits of Vector(Int32, (3,)) to Int64 (64 bits) conversion is not supported",
    ),
    "to": (lambda v, n: v.to(int), ValueError, "Vector(Float32, (2, 4)) to int conversion is not supported"),
    "alias": (
        lambda v, n: Float32x4([1.0, 2.0]),
        ValueError,
        "shape (4,) has 4 elements, but value has type vector<2xf32>",
    ),
    "alias dtype": (lambda v, n: Vector[int, 4], ValueError, "<class 'int'> is no scalar class"),
    "memory": (
        lambda v, n: Vector.load(T.f32x4, n, [0]),
        ValueError,
        "Vector.load and store need a plain memref, got i32",
    ),
    "exp": (lambda v, n: math.exp(n), TypeError, "exp needs a float operand, got Int32"),
    "dtype of a filled vector": (lambda v, n: Vector.filled(4, 1.0, 3), TypeError, "the dtype of a Vector must be a scalar class of fx or an MLIR scalar type, got int 3"),
    "one value as elements": (lambda v, n: Vector.from_elements(n), ValueError, "Vector.from_elements takes a sequence, got Int32"),
    "predicate": (lambda v, n: arith.cmpi("less", n, n), TypeError, "'less' is no predicate of CmpIPredicate"),
}


@pytest.mark.parametrize("use", WRONG)
def test_wrong_use(use):
    call, kind, text = WRONG[use]
    with traced(Float32, Int32) as body:
        v = Vector.filled((2, 4), body.args[0], Float32)
        with pytest.raises(kind) as caught:
            call(v, body.args[1])
    error = caught.value
    assert error.message == text
    assert error.span.file == __file__
    assert error.reason
    assert error.advice


def test_iteration_yields_scalars():
    with traced(Float32) as body:
        items = list(Vector.filled((2, 2), body.args[0], Float32))
        assert [i.__class__ for i in items] == [Float32] * 4


def test_conversions():
    with traced(Float32, Uint32) as body:
        x, u = body.args
        v = Vector.filled((2, 4), x, Float32)
        assert (v.to(BFloat16).dtype, v.to(BFloat16).shape) == (BFloat16, (2, 4))
        assert v.to(Float8E4M3FN).dtype is Float8E4M3FN
        assert v.bitcast(Int8).shape == (32,)
        assert v.shuffle(v, [0, 8, 1, 9]).shape == (4,)
        assert Vector.filled(4, u, Uint32).to(Float32).dtype is Float32
        assert "arith.uitofp" in body.ops()
        assert v.reshape((8,)).broadcast_to((2, 8)).shape == (2, 8)
        body.verify()


def test_select():
    with traced(Float32, Int32) as body:
        x, n = body.args
        v = Vector.filled(4, x, Float32)
        assert (v > 1.0).select(v, 0.0).dtype is Float32
        assert (v > 1.0).select(0, v).dtype is Float32
        assert (n < 1).select(v, 1).shape == (4,)
        assert (n < 1).select(v, Vector.filled(4, n, Int32)).dtype is Float32
        assert (v > 1.0).ir_value().select(v.ir_value(), v.ir_value()).type == T.f32x4
        body.verify()


@pytest.mark.parametrize(
    ("dtype", "op", "kind"),
    [
        (Float32, "add", "add"),
        (Float32, "max", "maxnumf"),
        (Float32, ReductionOp.MIN, "minimumf"),
        (Int32, "max", "maxsi"),
        (Uint32, ReductionOp.MIN, "minui"),
        (Int32, "mul", "mul"),
    ],
)
def test_reductions(dtype, op, kind):
    with traced(dtype) as body:
        v = Vector.filled(4, body.args[0], dtype)
        assert v.reduce(op).__class__ is dtype
        assert v.reduce(op, init_val=1).__class__ is dtype
        assert f"#vector.kind<{kind}>" in body.text()
        body.verify()


def test_partial_reductions():
    with traced(Float32) as body:
        v = Vector.filled((2, (2, 3)), body.args[0], Float32)
        assert v.reduce("add", 0.0, (None, 1)).shape == (2,)
        assert v.reduce("max", None, (1, (None, 1))).shape == ((2,),)
        assert v.reduce("add", reduction_profile=(1, 1)).__class__ is Float32
        body.verify()


def test_aliases():
    assert Vector[Float32, 4] is Float32x4
    assert VectorAlias(Float32, 4) is Float32x4
    assert Float32x4.__name__ == "Float32x4"
    assert Vector[Float32, (2, 2)].__name__ == "Vector[Float32, (2, 2)]"
    assert len(ALIASES) == 98
    assert (Float32x4.__dsl_size_of__(), Float32x4.__dsl_align_of__()) == (16, 4)
    assert ALIASES["Float4E2M1FNx8"].__dsl_size_of__() == 4
    with pytest.raises(ValueError, match="fill 12 bits"):
        Vector[Int4, 3].__dsl_size_of__()
    with traced(Float32) as body:
        (x,) = body.args
        for v in (Float32x4(x), Float32x4(1.0), Float32x4([x, 1.0, 2, 3]), Float32x4(Float32x4(x).ir_value())):
            assert isinstance(v, Float32x4)
            assert isinstance(v + 1.0, Float32x4)
            assert not isinstance(v.to(Int32), Float32x4)
        assert Float32x4.ir_type == T.f32x4
        body.verify()


def test_carry_keeps_shape_and_class():
    with traced(Uint32) as body:
        v = Vector.filled((2, 2), body.args[0], Uint32)
        (value,) = v.__extract_to_ir_values__()
        for again in (
            type(v).__construct_from_ir_values__([value], v),
            v.__construct_from_ir_values__([value]),
            Vector[Uint32, (2, 2)].__construct_from_ir_values__([value]),
        ):
            assert (again.shape, again.dtype) == ((2, 2), Uint32)
        assert Vector.__construct_from_ir_values__([value]).shape == (4,)


def test_vector_of_another_function_is_refused():
    with traced(Float32) as body:
        kept = Vector.filled(4, body.args[0], Float32)
        raw = kept.ir_value()
    with traced(Float32) as body:
        v = Vector.filled(4, body.args[0], Float32)
        for use in (
            lambda: kept + 1.0,
            lambda: v + kept,
            lambda: v + raw,
            lambda: Vector(raw),
            lambda: Float32x4(raw),
            lambda: raw * 2.0,
        ):
            with pytest.raises(RuntimeError, match="outside the function"):
                use()


def test_memrefs():
    with traced(Int32) as body:
        (n,) = body.args
        trace = body.trace
        with ir.Location.unknown():
            memref = ir.MemRefType.get([64], trace.types.f32)
        m = ir.Operation.create(
            "memref.alloca",
            [memref],
            [],
            {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
            ip=trace.ip,
            loc=trace.unknown_loc,
        ).result
        v = Vector.load(Float32x4, m, [n])
        assert (v.dtype, v.shape) == (Float32, (4,))
        (v * 2.0).store(m, [4], alignment=16)
        assert vector.load_op(T.f32x4, m, [0]).type == T.f32x4
        vector.store(v.ir_value(), m, [n])
        assert body.ops().count("vector.load") == 2
        body.verify()


def test_legacy_functions():
    with traced(Float32, Int32) as body:
        x, n = (a.ir_value() for a in body.args)
        v = vector.from_elements(T.f32x4, [x, x, 1.0, x])
        assert vector.extract(v, static_position=[2]).type == T.f32
        assert vector.extract(v, [n]).type == T.f32
        assert vector.insert(x, v, static_position=[1]).type == T.f32x4
        assert vector.broadcast(T.f32x2, x).type == T.f32x2
        assert vector.bitcast(T.i32x4, v).type == T.i32x4
        assert vector.shuffle(v, v, [0, 4]).type == T.f32x2
        assert vector.extract_strided_slice(T.f32x2, v, [1], [2], [1]).type == T.f32x2
        assert vector.reduction(T.f32, "add", v).type == T.f32
        assert (v * 2.0 + v).type == T.f32x4
        assert v[1].type == T.f32
        body.verify()


def test_named_methods():
    with traced(Float32, Int32) as body:
        v = Vector.filled(4, body.args[0], Float32)
        i = Vector.filled(4, body.args[1], Int32)
        assert v.maximumf(0.0).minimumf(v).addf(1.0, fastmath="fast").exp2().rsqrt().dtype is Float32
        assert v.truncf(T.f16).extf(T.f32).dtype is Float32
        assert i.trunci(T.i8).extsi(T.i32).extui(T.i64).dtype is Int64
        assert i.shrui(3).dtype is Int32
        body.verify()


def test_math_on_everything():
    unary = "absf ceil floor trunc round roundeven exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan "
    unary += "sinh cosh tanh asinh acosh atanh erf erfc"
    with traced(Float32, Int32) as body:
        x, n = body.args
        v = Vector.filled((2, 2), x, Float32)
        for name in unary.split():
            f = getattr(math, name)
            assert f(x).__class__ is Float32
            assert f(v, fastmath="fast").shape == (2, 2)
            assert f(x.ir_value()).type == T.f32
            assert f(1.5).type == T.f32
        for name in "isnan isinf isfinite isnormal".split():
            assert getattr(math, name)(x).__class__ is Boolean
            assert getattr(math, name)(v).dtype is Boolean
        for name in "absi ctlz cttz ctpop".split():
            assert getattr(math, name)(n).__class__ is Int32
        for name in "powf atan2 copysign".split():
            assert getattr(math, name)(v, 2.0).shape == (2, 2)
        assert math.fpowi(x, n).__class__ is Float32
        assert math.fpowi(v, n).shape == (2, 2)
        assert math.ipowi(n, 3).__class__ is Int32
        assert math.fma(v, 2.0, x).shape == (2, 2)
        assert math.clampf(x, 0.0, 1.0).__class__ is Float32
        assert [a.__class__ for a in math.sincos(x)] == [Float32, Float32]
        body.verify()


def test_raw_builders():
    with traced(Int32, Float32) as body:
        n, x = (a.ir_value() for a in body.args)
        integer = "addi subi muli divsi divui remsi remui floordivsi ceildivsi ceildivui andi ori xori shli shrsi maxsi maxui minsi minui"
        for name in integer.split():
            assert getattr(arith, name)(n, 3).type == T.i32
            assert getattr(arith, name)(3, n).type == T.i32
        for name in "addf subf mulf divf remf maximumf minimumf maxnumf minnumf".split():
            assert getattr(arith, name)(x, x, fastmath=arith.FastMathFlags.fast).type == T.f32
        assert arith.constant(5).type == T.i32
        assert arith.constant(5, index=True).type == arith.index(3).type == T.index
        assert arith.constant(1, type=T.i64).type == T.i64
        assert arith.constant(True).type == T.i1
        assert arith.constant_vector(0.0, T.f32x4).type == T.f32x4
        assert arith.index_cast(T.index, n).type == T.index
        assert arith.index_cast(T.i64, n).type == T.i64
        assert arith.select(arith.cmpi(arith.CmpIPredicate.slt, n, 3), n, 7).type == T.i32
        assert arith.cmpf(arith.CmpFPredicate.OLT, x, 1.0).type == T.i1
        assert arith.sitofp(T.f32, n).type == arith.uitofp(T.f32, n).type == T.f32
        assert arith.trunc_f(T.f16, x).type == T.f16
        assert arith.negf(x).type == T.f32
        assert arith.bitcast(T.i32, x).type == T.i32
        assert arith.unwrap(body.args[0]).type == arith._to_raw(3).type == T.i32
        assert arith.AddFOp(x, x).result.type == T.f32
        assert arith.TruncIOp(T.i8, n).result.type == T.i8
        assert arith.CmpIOp(arith.CmpIPredicate.eq, n, n).result.type == T.i1
        assert arith.ConstantOp(T.i32, 3).result.type == T.i32
        body.verify()

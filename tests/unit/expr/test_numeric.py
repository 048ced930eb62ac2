"""Scalars: value model, construction, operators on the edges that the recorded rows do not reach, errors,
carries, stale values.
"""

import enum

import numpy as np
import pytest
from tracing_env import traced

from flydsl.diag import FlyError
from flydsl.expr import arith
from flydsl.expr.fastmath import FastMathFlags, RoundingMode, fastmath, flags_text, hinted
from flydsl.expr.numeric import (
    CLASSES,
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float8E4M3FN,
    Float16,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int32,
    Int64,
    Int128,
    Numeric,
    NumericMeta,
    Uint8,
    Uint32,
    Uint64,
    as_numeric,
    wrap,
)
from flydsl.expr.numeric.elements import ELEMENTS
from flydsl.ir import ir


def test_static_values_need_no_trace():
    assert (Int32(5) + 6).value == 11
    assert repr(Int32(5)) == "Int32(5)"
    assert str(Int32(5)) == "?"
    assert hash(Int32(5)) == hash(Int32) ^ hash(5)
    assert isinstance(Int32, NumericMeta)
    assert (Int32(2**31 - 1) + 1).value == -(2**31)
    assert bool(Int32(3)) is True
    assert int(Int32(3)) == 3
    assert [10, 20, 30][Int32(1)] == 20
    assert list(range(Int32(3))) == [0, 1, 2]


def test_class_facts():
    assert (Int32.width, Int32.signed, Int32.log_width, Int32.numpy_dtype, Int32.zero) == (32, True, 5, np.int32, 0)
    assert (Boolean.width, Index.width, Float8E4M3FN.width, Float6E2M3FN.width, Float4E2M1FN.width) == (1, 64, 8, 6, 4)
    assert Float32.signed is None
    assert Float32.is_float
    assert not Float32.is_integer
    assert isinstance(Float32.zero, float)
    assert BFloat16.numpy_dtype.__name__ == "bfloat16"


def test_element_table_agrees_with_the_atoms_table():
    from flydsl.atoms.elements import bit_width

    for element in ELEMENTS.values():
        if element.mlir != "index":
            assert bit_width(element.mlir) == element.width, element


def test_every_class_finds_its_type_back():
    with traced():
        for cls in CLASSES.values():
            found = Numeric.from_ir_type(cls.ir_type)
            assert found.element.mlir == cls.element.mlir
            assert found.signed in (cls.signed, True)


@pytest.mark.parametrize("cls", [c for c in CLASSES.values() if c.is_integer and c not in (Boolean, Index)])
@pytest.mark.parametrize("value", [0, 1, -1, 7, -7, 2**31, -(2**31) - 1, 2**63, 2**127, 2**130 + 3])
def test_integers_wrap_like_c(cls, value):
    wrapped = cls(value).value
    assert (wrapped - value) % 2**cls.width == 0
    low = -(2 ** (cls.width - 1)) if cls.signed else 0
    assert low <= wrapped < low + 2**cls.width
    assert type(wrapped) is int


def test_static_floats_keep_full_precision():
    assert Float16(0.1).value == 0.1
    assert (Float32(0.1) + Float32(0.2)).value == 0.1 + 0.2


def test_numpy_scalars_and_enums_join():
    class Size(enum.IntEnum):
        BIG = 7

    with traced(Int32, Float32) as body:
        n, x = body.args
        assert (n + np.int32(3)).__class__ is Int32
        assert (np.int32(3) + n).__class__ is Int32
        assert (np.float32(0.5) * x).__class__ is Float32
        assert (n * Size.BIG).__class__ is Int32
        assert as_numeric(np.int64(2**40)).__class__ is Int64
        assert Int32(np.uint8(200)).value == 200
        body.verify()


def test_constants_are_shared_within_a_function():
    with traced(Int32) as body:
        (n,) = body.args
        (n + 5) * 5 + n * 5
        assert body.ops(constants=True).count("arith.constant") == 1
        assert body.ops(constants=True)[0] == "arith.constant"


def test_negative_zero_is_a_constant_of_its_own():
    with traced(Float32) as body:
        (x,) = body.args
        x + 0.0
        x + -0.0
        x + 0
        assert body.ops(constants=True).count("arith.constant") == 2


def test_equality_is_a_boolean():
    with traced(Int32) as body:
        (n,) = body.args
        assert (n == 5).__class__ is Boolean
        assert (n != n).__class__ is Boolean
    assert (Int32(5) == 5).value == 1
    assert (Int32(5) == "5") is False


DYNAMIC_USES = {
    "bool": (lambda n: bool(n), RuntimeError, "cannot evaluate dynamic 'Int32' as Python bool during tracing"),
    "not": (lambda n: not n, RuntimeError, "cannot evaluate dynamic 'Int32' as Python bool during tracing"),
    "int": (lambda n: int(n), RuntimeError, "dynamic 'Int32' has no Python integer representation"),
    "range": (lambda n: range(n), RuntimeError, "dynamic 'Int32' has no Python integer representation"),
    "index": (lambda n: [1, 2][n], RuntimeError, "dynamic 'Int32' has no Python integer representation"),
    "float": (lambda n: float(n), RuntimeError, "cannot evaluate dynamic 'Int32' as Python float during tracing"),
    "to int": (lambda n: n.to(int), ValueError, "dynamic IR value cannot be materialized as int"),
    "add None": (lambda n: n + None, TypeError, "unsupported operand type(s) for +: 'Int32' and 'NoneType'"),
    "and float": (lambda n: n & 1.5, TypeError, "unsupported operand type(s) for &: 'Int32' and 'float'"),
    "shift float": (lambda n: 1.5 << n, TypeError, "unsupported operand type(s) for <<: 'float' and 'Int32'"),
    "not bool": (lambda n: -(n < 1), TypeError, "unary minus is undefined for booleans"),
    "abs bool": (lambda n: abs(n < 1), TypeError, "abs is undefined for boolean type"),
    "string": (lambda n: Int32("3"), ValueError, "3 to integer conversion is not supported"),
    "bitcast": (
        lambda n: n.bitcast(Int64),
        ValueError,
        "the bits of Int32 (32) to Int64 (64 bits) conversion is not supported",
    ),
    "rounding": (
        lambda n: n.to(Float16, rounding_mode=RoundingMode.upward),
        TypeError,
        "rounding_mode is only supported for float-to-float casts, got Int32 -> Float16",
    ),
    "static rounding": (
        lambda n: Float32(2.0).to(Float16, rounding_mode=RoundingMode.upward),
        ValueError,
        "rounding_mode requires a run-time value, but this Float32 holds the compile-time constant 2.0",
    ),
    "static shift": (lambda n: Int32(1) << Int32(-1), ValueError, "negative shift count"),
    "static zero": (lambda n: Int32(1) // Int32(0), ZeroDivisionError, "integer division by zero"),
    "nan": (lambda n: Int32(float("nan")), ValueError, "float NaN is not representable as integer"),
    "inf": (lambda n: Int32(float("inf")), OverflowError, "float infinity is not representable as integer"),
    "beyond a float": (lambda n: Float32(10**400), OverflowError, "an integer of 1329 bits is too large for Float32"),
    "narrow floats": (
        lambda n: Float8E4M3FN(1.0) + CLASSES["Float8E5M2"](1.0),
        ValueError,
        "no common float type for Float8E4M3FN and Float8E5M2; cast explicitly",
    ),
    "fastmath": (lambda n: fastmath("fas"), ValueError, "'fas' is not a set of fast-math flags"),
}


@pytest.mark.parametrize("use", DYNAMIC_USES)
def test_wrong_use(use):
    call, kind, text = DYNAMIC_USES[use]
    with traced(Int32) as body, pytest.raises(kind) as caught:
        call(body.args[0])
    error = caught.value
    assert getattr(error, "message", str(error)) == text
    if isinstance(error, FlyError):
        assert error.advice
        assert error.reason
        assert error.span.file == __file__


def test_value_of_another_function_is_refused():
    with traced(Int32) as body:
        kept = body.args[0] + 1
    with traced(Int32) as body:
        n = body.args[0]
        for use in (
            lambda: n + kept,
            lambda: kept + n,
            lambda: kept.to(Float32),
            lambda: -kept,
            lambda: kept.ir_value(),
        ):
            with pytest.raises(RuntimeError, match="outside the function that it belongs to"):
                use()
    with pytest.raises(RuntimeError):
        kept + 1


def test_raw_value_of_another_function_is_refused():
    with traced(Int32) as body:
        kept = (body.args[0] + 1).ir_value()
        unknown = arith.addi(kept, kept)
    assert repr(kept) == repr(unknown) == "ArithValue(type=?)"
    with traced(Int32) as body:
        n = body.args[0]
        uses = [
            lambda v: v + 1,
            lambda v: v < n,
            lambda v: -v,
            lambda v: arith.addi(v, 1),
            lambda v: n + v,
            lambda v: Int64(v),
        ]
        for use in uses:
            for value in (kept, unknown):
                with pytest.raises(RuntimeError, match="outside the function that it belongs to"):
                    use(value)


def test_value_wrapped_outside_any_function_joins():
    with traced(Int32) as body:
        value = body.args[0].value
        scope, body.trace.scope = body.trace.scope, None
        early = wrap(Int32, value)
        body.trace.scope = scope
        assert (early + 1).__class__ is Int32


def test_carry_keeps_signedness():
    with traced(Uint32, Boolean, Float32):
        for cls in (Uint32, Uint8, Boolean, Index, Float16):
            x = cls(3)
            (value,) = x.__extract_to_ir_values__()
            assert type(x).__construct_from_ir_values__([value], x).__class__ is cls
            assert cls.__construct_from_ir_values__([value]).__class__ is cls


def test_raw_values():
    with traced(Int32, Uint32, Float32, Index) as body:
        n, u, x, i = body.args
        raw = n.ir_value()
        assert isinstance(raw, ir.Value)
        assert (raw + 1).type == n.ir_value().type
        assert (n + raw).__class__ is Int32
        assert Int64(raw).__class__ is Int64
        assert (raw.to(Float32)).__class__ is Float32
        with pytest.raises(ValueError, match="bare signless integer"):
            Float32(raw)
        assert Int32(i.ir_value()).__class__ is Int32
        assert Int32(x.ir_value()).__class__ is Int32
        assert as_numeric(u.ir_value()).__class__ is Uint32
        body.verify()


def test_raw_shift_depends_on_what_is_known_of_the_sign():
    with traced(Int32, Uint32) as body:
        n, u = (a.ir_value() for a in body.args)
        n >> 1
        u >> 1
        n.with_signedness(None) >> 1
        n.with_signedness(None) < 1
        n.with_signedness(None) // 2
        assert body.ops() == ["arith.shrsi", "arith.shrui", "arith.shrui", "arith.cmpi", "arith.floordivsi"]
        body.verify()


def test_arith_value_methods():
    with traced(Int32, Float32) as body:
        n, x = (a.ir_value() for a in body.args)
        i64, f16, i32 = Int64.ir_type, Float16.ir_type, Int32.ir_type
        assert n.extsi(i64).type == i64
        assert n.extui(i64).trunci(i32).type == i32
        assert x.truncf(f16).extf(Float32.ir_type).type == Float32.ir_type
        assert x.bitcast(i32).type == i32
        assert n.index_cast(Index.ir_type).index_cast(i32).type == i32
        assert (n < 3).select(n, 7).type == i32
        assert x.maximumf(1.0).type == x.minimumf(x).type == x.addf(2.0).type == x.rsqrt().exp2().type == x.type
        assert n.shrui(3).type == i32
        with pytest.raises(RuntimeError):
            bool(n)
        body.verify()


def test_select():
    with traced(Int32, Int32) as body:
        n, m = body.args
        assert (n < 5).select(n, m).__class__ is Int32
        assert (n < 5).select(1, 2.0).__class__ is Float32
        assert n.select(Uint8(1), Int8(2)).__class__ is Uint8
        assert Boolean(True).select(n, m) is n
        assert Int32(0).select(n, m) is m
        body.verify()


def test_rounding_mode_is_on_the_narrowing_step():
    with traced(Float32, Float16) as body:
        x, h = body.args
        x.to(Float16, rounding_mode=RoundingMode.upward)
        h.to(BFloat16, rounding_mode=RoundingMode.toward_zero)
        x.to(Float64, rounding_mode=RoundingMode.upward)
        assert body.ops() == ["arith.truncf", "arith.extf", "arith.truncf", "arith.extf"]
        assert body.text().count("roundingmode = 2") == 1
        assert body.text().count("roundingmode = 3") == 1
        body.verify()


def test_fast_math_scopes():
    with traced(Float32, Int32) as body:
        x, n = body.args
        with hinted({"fast_fp_math": True}):
            x + 1.0
            with fastmath("nnan,ninf"):
                x * x < x
                n + 1
            x.exp2(fastmath=FastMathFlags.contract)
            x - 1.0
            with fastmath("none"):
                x * 2.0
        x / 2.0
        flags = [_flags(op.operation) for op in body.block.operations if op.operation.name != "arith.constant"]
        assert flags == ["fast", "nnan,ninf", "nnan,ninf", None, "contract", "fast", "none", "none"]
        body.verify()


def _flags(op: ir.Operation) -> str | None:
    names = [a if isinstance(a, str) else a.name for a in op.attributes]
    return str(op.attributes["fastmath"]).partition("<")[2][:-1] if "fastmath" in names else None


def test_hint_key_given_as_none_switches_fast_math_off():
    with traced(Float32) as body:
        with hinted({"fastmath": None, "fast_fp_math": True}):
            body.args[0] + 1.0
        assert "fastmath<none>" in body.text()


def test_flags_print_as_mlir_does():
    assert flags_text(0) == "none"
    assert flags_text(127) == "fast"
    assert flags_text(FastMathFlags.nnan | FastMathFlags.arcp) == "nnan,arcp"


def test_128_bits_and_nibbles():
    assert (Int128(2**100) * 3).value == 3 * 2**100
    assert (Int128(2**126) * 4).value == 0
    assert (Int4(7) + Int4(1)).value == -8
    with traced(Int128) as body:
        (w,) = body.args
        w + 2**100
        w * Int128(2**100)
        body.verify()


def test_wide_python_integers():
    # From Python, 2**100 is an Int64 and wraps; an explicit class keeps it.
    assert as_numeric(2**40).__class__ is Int64
    assert (Uint64(2**63) + 1).value == 2**63 + 1


def test_locations_are_the_users():
    with traced(Int32) as body:
        n = body.args[0]
        n + 1
        here = _line() - 1
        op = next(op.operation for op in body.block.operations if op.operation.name == "arith.addi")
        assert f'test_numeric.py":{here}:' in str(op.location)


def _line() -> int:
    import sys

    return sys._getframe(1).f_lineno


def test_min_max_ceildiv_fold():
    assert arith.max(1, 2, 3).value == 3
    assert arith.max([1, (2, 9)], 3).value == 9
    assert arith.min(float("nan"), 1.0).value != arith.min(float("nan"), 1.0).value
    assert str(arith.min(0.0, -0.0).value) == "-0.0"
    assert str(arith.max(-0.0, 0.0).value) == "0.0"
    assert arith.max(True, False).__class__ is Int32
    assert arith.ceildiv(7, 2).value == 4
    assert arith.ceildiv(-7, 2).value == -3
    assert arith.ceildiv(Uint32(2**32 - 1), 2).value == 2**31
    with pytest.raises(ZeroDivisionError):
        arith.ceildiv(7, 0)
    with pytest.raises(OverflowError):
        arith.ceildiv(Int32(-(2**31)), -1)
    with pytest.raises(TypeError, match="ceildiv does not support Boolean"):
        arith.ceildiv(Boolean(True), 2)
    with pytest.raises(TypeError, match="max does not support Index"):
        arith.max(Index(1), 2)
    with pytest.raises(ValueError, match="requires at least one operand"):
        arith.max()


def test_text_of_scalars():
    assert f"{Int32(5)}" == "?" == str(Int32(5)) and f"{Int32(5):>3}" == "  5" and f"{Float32(0.5):.2f}" == "0.50"
    with traced(Int32) as body:
        n = body.args[0]
        assert f"{n} {n:>8.3f} {n!r}" == "? ? Int32(?)"

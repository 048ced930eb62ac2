"""Arithmetic and conversions of `fx.rocdl`, name by name, against NumPy in float64 and formats written from their definitions."""

import numpy as np
import pytest
from named import CDNA, CHIPS, Case, check, launched, table
from small_codes import decoded, encoded

import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr.typing import T

R = fx.rocdl
N = 128
RNG = np.random.default_rng(12)
TINY = np.float32(2.0**-126)
SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-40, -1e-40, TINY, -TINY, 2**-127, 1.5 * 2.0**127, 3.4e38,
                    2.0**126, 2.0**127, -126.0, -126.5, -150.0, 127.9, 128.0, 1e30, 5e-39, 4.0], np.float32)  # fmt: skip
X = np.concatenate([SPECIAL, np.float32(RNG.standard_normal(N - len(SPECIAL)) * np.exp2(RNG.integers(-20, 20, N - len(SPECIAL))))])
X = X.astype(np.float32)
HALF = np.concatenate([np.float16([np.inf, -np.inf, np.nan, 0.0, -0.0, 6e-8, 65504, 1, -1, 2, 4, 16]),
                       np.float16(RNG.standard_normal(N - 12) * 30)])  # fmt: skip
FNUZ = ("gfx942",)
OCP = tuple(c for c in CHIPS if c not in FNUZ)
FP8_CHIPS = {"fnuz": FNUZ, "ocp": ("gfx950", "gfx1201", "gfx1250")}


def put(name):
    """Return a body that stores `name(i, inputs...)` at out[i]."""

    def body(i, *tensors):
        tensors[-1][i] = name(i, *(t[i] for t in tensors[:-1]))

    return body


def flushed(x):
    """Denormals of f32 as zeros of their sign: what v_rcp, v_rsq, v_sqrt, v_exp and v_log see and give."""
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x) if x.dtype == np.float32 else x


def in_double(fn):
    def want(n, x):
        with np.errstate(all="ignore"):
            return flushed(fn(flushed(x).astype(np.float64)).astype(x.dtype))

    return want


COARSE = "its transcendental functions are off by more than the manual allows, and keep denormals"
UNARY = {
    "rcp": (lambda x: 1 / x, "v_rcp_f32"),
    "exp2": (np.exp2, "v_exp_f32"),
    "log": (np.log2, "v_log_f32"),
    "rsq": (lambda x: 1 / np.sqrt(x), "v_rsq_f32"),
    "sqrt": (np.sqrt, "v_sqrt_f32"),
}
RANDOM_TURNS = np.float32(RNG.uniform(-8, 8, N - 8))
SINES = np.concatenate([np.float32([0.0, 0.25, 0.75, -0.25, 100.25, np.inf, -np.inf, np.nan]), RANDOM_TURNS])
COSINES = np.concatenate([np.float32([0.0, 0.5, 1.0, -0.5, 100.0, np.inf, -np.inf, np.nan]), RANDOM_TURNS])


def of_turns(fn):
    """sin and cos of full turns, as the instructions take their argument; infinities give NaN."""

    def want(n, x):
        with np.errstate(invalid="ignore"):
            return fn(2 * np.pi * np.fmod(x.astype(np.float64), 1)).astype(np.float32)

    return want


def median(n, a, b, c):
    """The middle one; with a NaN, the smallest of the others."""
    rows = np.stack([a, b, c])
    middle = np.sort(np.where(np.isnan(rows), -np.inf, rows), axis=0)[1]
    smallest = np.fmin(np.fmin(a, b), c)
    return np.where(np.isnan(rows).any(axis=0), smallest, middle).astype(a.dtype)


NOZERO = np.where(X == 0, np.float32(0), X)  # the order of zeros of two signs is no part of the comparison
ARITHMETIC = [
    *(Case(name, put(lambda i, x, name=name: getattr(R, name)(fx.Float32, x)), (X,), in_double(fn), isa, ulps=2, not_emulated=COARSE)
      for name, (fn, isa) in UNARY.items()),
    *(Case(f"{name} of raw values", put(lambda i, x, name=name: fx.Float32(getattr(R, name)(T.f32, x.ir_value()))), (X,),
           in_double(fn), isa, tried=CDNA, ulps=2, not_emulated=COARSE) for name, (fn, isa) in UNARY.items()),
    *(Case(f"{name} of halves", put(lambda i, x, name=name: getattr(R, name)(fx.Float16, x)), (HALF,), in_double(UNARY[name][0]),
           UNARY[name][1].replace("32", "16"), tried=("gfx942", "gfx1201"), ulps=2, not_emulated=COARSE) for name in ("rcp", "rsq", "sqrt", "exp2", "log")),
    Case("rcp of a Python number and keywords", put(lambda i, x: R.rcp(res=fx.Float32, arg=4) * x), (np.float32(np.arange(N)),),
         lambda n, x: x * np.float32(0.25), tried=CDNA),
    Case("sin", put(lambda i, x: R.sin(fx.Float32, x)), (SINES,), of_turns(np.sin), "v_sin_f32", ulps=2, not_emulated=COARSE),
    Case("cos", put(lambda i, x: R.cos(fx.Float32, x)), (COSINES,), of_turns(np.cos), "v_cos_f32", ulps=2, not_emulated=COARSE),
    Case("fmed3", put(lambda i, a, b, c: R.fmed3(fx.Float32, a, b, c)), (NOZERO, np.roll(NOZERO, 5), np.roll(NOZERO, 11)), median,
         r"v_med3(_num)?_f32"),
    Case("fmed3 with Python numbers", put(lambda i, a: fx.Float32(R.fmed3(T.f32, a, 0, 1.5))), (NOZERO,),
         lambda n, a: np.where(np.isnan(a), np.float32(0), np.clip(a, 0, 1.5)).astype(np.float32),
         r"v_med3(_num)?_f32|v_max", tried=CDNA),
    Case("fmed3 of halves", put(lambda i, a: R.fmed3(fx.Float16, a, fx.Float16(-1.0), fx.Float16(2.0))), (HALF,),
         lambda n, a: np.where(np.isnan(a), np.float16(-1), np.clip(a, -1, 2)).astype(np.float16), r"v_med3(_num)?_f16", not_emulated="v_med3_f16 with NaN"),
]  # fmt: skip


@table(ARITHMETIC)
def test_arithmetic(case, arch):
    check(case, arch)


# --- 4-bit offsets, bf16 ----------------------------------------------------------------------------------------------------

WORDS = np.concatenate([np.arange(256, dtype=np.uint8), RNG.integers(0, 256, 256).astype(np.uint8)]).view(np.int32)  # every byte
assert len(WORDS) == N


def offsets(i, words, out):
    out[i * 5] = fx.Float32(R.cvt_off_f32_i4(words[i]))
    out[i * 5 + 1] = fx.Float32(R.inline_asm.cvt_off_f32_i4(words[i], 0))
    for byte in range(1, 4):
        out[i * 5 + 1 + byte] = fx.Float32(R.cvt_off_f32_i4(src_i32=words[i].ir_value(), byte_sel=byte))


def nibbles(n, words):
    low = words.view(np.uint8).reshape(-1, 4) & 15
    value = np.where(low < 8, low, low.astype(np.float32) - 16).astype(np.float32) / 16
    return np.concatenate([value[:, :1], value], axis=1).reshape(-1)


def bf16_bits(x):
    """Round to nearest even by the bits of f32."""
    bits = x.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0 | bits >> 31 << 15, rounded).astype(np.uint32)


def pair_of_bf16(n, a, b):
    return (bf16_bits(a) | bf16_bits(b) << 16).view(np.int32)


NUMBERS = np.where(np.isnan(X), np.float32(3.14159), X)
SEEDS = RNG.integers(0, 1 << 32, N).astype(np.uint32).view(np.int32)


def stochastic_bf16(n, x, seed):
    bits = x.view(np.uint32).astype(np.uint64)
    kept = np.where(np.isfinite(x), bits + (seed.view(np.uint32) >> 16), bits) >> 16
    return (kept << 16).astype(np.uint32).view(np.float32)


FORMS = [
    Case("cvt_off_f32_i4", offsets, (WORDS,), nibbles, "v_cvt_off_f32_i4", not_emulated="no table of offsets"),
    Case("cvt_pk_bf16_f32", put(lambda i, a, b: fx.Int32(R.inline_asm.cvt_pk_bf16_f32(a, b))), (NUMBERS, np.roll(NUMBERS, 3)),
         pair_of_bf16, {"gfx950": "v_cvt_pk_bf16_f32", "gfx1250": "v_cvt_pk_bf16_f32"}),
    Case("cvt_sr_f32_to_bf16", put(lambda i, x, r: R.cdna4.cvt_sr_f32_to_bf16(x, r).to(fx.Float32)), (NUMBERS, SEEDS), stochastic_bf16,
         "v_cvt_sr_bf16_f32", ("gfx950",), not_emulated="no function f32_to_bf16_sr"),
]  # fmt: skip


@table(FORMS)
def test_offsets_and_bf16(case, arch):
    check(case, arch)


# --- fp8 and bf8 --------------------------------------------------------------------------------------------------------------


def format_of(kind, arch_kind):
    return f"{kind}_fnuz" if arch_kind == "fnuz" else kind


def unpack(kind):
    def body(i, words, out):
        for byte in range(4):
            out[i * 8 + byte] = getattr(R, f"cvt_f32_{kind}")(fx.Float32, words[i], byte)
        for half in (False, True):
            pair = fx.Vector(getattr(R, f"cvt_pk_f32_{kind}")(T.vec(2, T.f32), words[i], half))
            out[i * 8 + 4 + 2 * half], out[i * 8 + 5 + 2 * half] = pair[0], pair[1]

    return body


def unpacked(fmt):
    def want(n, words):
        values = decoded(fmt)[words.view(np.uint8).reshape(-1, 4)].astype(np.float32)
        return np.concatenate([values, values], axis=1).reshape(-1)

    return want


RANGE = np.concatenate([np.float32([0.0, -0.0, 448, 449, 464, 465, 480, -448, 240, 248, 247, 57344, 61440, 61439, -61440, np.inf, -np.inf,
                                    2**-9, 2**-10, 1.5 * 2**-10, 2**-16, 2**-17, 2.0**-18, -(2.0**-18), 1e-40, 3.4e38, 1.25, 2**-11]),
                        np.float32(RNG.standard_normal(N - 28) * np.exp2(RNG.integers(-18, 17, N - 28)))])  # fmt: skip


def pack(kind):
    def body(i, a, b, old, out):
        convert = getattr(R, f"cvt_pk_{kind}_f32")
        low = convert(fx.Int32, a[i], b[i], old[i], False)
        out[i * 3] = low
        out[i * 3 + 1] = convert(res=fx.Int32, src_a=b[i], src_b=a[i], old=low, word_sel=True)
        out[i * 3 + 2] = fx.Int32(convert(T.i32, 1.5, a[i].ir_value(), 0, 1))

    return body


def packed(fmt):
    def pair(a, b):
        return encoded(a, fmt).astype(np.int64) | encoded(b, fmt).astype(np.int64) << 8

    def want(n, a, b, old):
        first = (old.view(np.uint32) & np.int64(0xFFFF0000)) | pair(a, b)
        second = (first & 0xFFFF) | pair(b, a) << 16
        third = pair(np.full_like(a, 1.5), a) << 16
        return np.stack([first, second, third], axis=1).astype(np.uint32).view(np.int32).reshape(-1)

    return want


FP8 = [
    case
    for kind in ("fp8", "bf8")
    for variant, chips in FP8_CHIPS.items()
    for fmt in (format_of(kind, variant),)
    for case in (
        Case(f"cvt_f32_{kind}, cvt_pk_f32_{kind} {variant}", unpack(kind), (WORDS,), unpacked(fmt),
             rf"v_cvt_f32_{kind}[\s\S]*v_cvt_pk_f32_{kind}", chips, not_emulated="v_cvt_pk_f32_* into its own source"),
        Case(f"cvt_pk_{kind}_f32 {variant}", pack(kind), (RANGE, np.roll(RANGE, 40), SEEDS), packed(fmt), f"v_cvt_pk_{kind}_f32", chips,
             not_emulated="codes of overflow" if variant == "ocp" else ""),
    )
]  # fmt: skip


@pytest.mark.parametrize("case, arch", [pytest.param(c, a, id=f"{c}-{a}") for c in FP8 for a in (*c.chips, "gfx1100")])
def test_fp8(case, arch):
    check(case, arch)


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1201"])
def test_nan_stays_nan(kind, arch):
    """Which of the NaN codes the instruction gives, no manual says."""
    body = put(lambda i, a: getattr(R, f"cvt_pk_{kind}_f32")(fx.Int32, a, -a, 0, False))
    out, _, _ = launched(Case(kind, body, (np.full(N, np.nan, np.float32),), lambda n, a: a.view(np.int32)), arch)
    codes = out.view(np.uint8).reshape(-1, 4)[:, :2]
    assert np.isnan(decoded(f"{kind}_fnuz" if arch == "gfx942" else kind)[codes]).all()


# --- scaled conversions ---------------------------------------------------------------------------------------------------------

SCALES = np.exp2(RNG.integers(-6, 7, N)).astype(np.float32) * np.float32(RNG.choice([1.0, 1.5, 1.999], N))  # only the exponent counts
MODEST = np.where(np.isfinite(RANGE), RANGE, np.float32(1.25)) / np.float32(64)
BF16 = (bf16_bits(MODEST) << 16).view(np.float32)


def power(scale):
    return np.exp2(np.floor(np.log2(scale.astype(np.float64))))


def two_bf16(a, b):
    return fx.Vector.from_elements([a.to(fx.BFloat16), b.to(fx.BFloat16)]).ir_value()


def pack_fp4(i, a, b, scale, out):
    word = fx.Int32(-1)
    for byte in range(4):
        x, y = (a[i], b[i]) if byte % 2 else (b[i], a[i])
        word = R.cvt_scalef32_pk_fp4_f32(fx.Int32, word, x, y, scale[i], byte)
        out[i * 8 + byte] = word
    word = fx.Int32(0)
    for byte in range(4):
        x, y = (a[i], b[i]) if byte % 2 else (b[i], a[i])
        word = fx.Int32(R.cvt_scalef32_pk_fp4_bf16(T.i32, word.ir_value(), two_bf16(x, y), scale[i].ir_value(), byte))
        out[i * 8 + 4 + byte] = word


def packed_fp4(n, a, b, scale):
    factor, columns = power(scale), []
    for start in (0xFFFFFFFF, 0):
        word = np.full(len(a), start, np.int64)
        for byte in range(4):
            x, y = (a, b) if byte % 2 else (b, a)
            code = encoded(x / factor, "fp4") | encoded(y / factor, "fp4") << 4
            word = (word & ~(0xFF << 8 * byte)) | code.astype(np.int64) << 8 * byte
            columns.append(word.astype(np.uint32).view(np.int32))
    return np.stack(columns, axis=1).reshape(-1)


def unpack_fp4(i, words, scale, out):
    for byte in range(4):
        wide = fx.Vector(R.cvt_scalef32_pk_f32_fp4(T.vec(2, T.f32), words[i], scale[i], byte))
        narrow = fx.Vector(R.cvt_scalef32_pk_bf16_fp4(T.vec(2, T.bf16), words[i], scale[i], byte)).to(fx.Float32)
        for k in range(2):
            out[i * 16 + 2 * byte + k] = wide[k]
            out[i * 16 + 8 + 2 * byte + k] = narrow[k]


def unpacked_fp4(n, words, scale):
    codes = (words.view(np.uint32)[:, None] >> np.arange(0, 32, 4, np.uint32)) & 15
    values = (decoded("fp4")[codes] * power(scale)[:, None]).astype(np.float32)
    return np.concatenate([values, values], axis=1).reshape(-1)


def pack_scaled_fp8(i, a, b, scale, out):
    for high in (False, True):
        old = fx.Vector.filled(2, 0x1234, fx.Int16).ir_value()
        one = fx.Vector(R.cvt_scalef32_pk_fp8_f32(T.vec(2, T.i16), old, a[i], b[i], scale[i], high)).bitcast(fx.Int32)
        two = fx.Vector(R.cvt_scalef32_pk_fp8_bf16(T.vec(2, T.i16), old, two_bf16(b[i], a[i]), scale[i], high)).bitcast(fx.Int32)
        out[i * 4 + high], out[i * 4 + 2 + high] = one[0], two[0]


def packed_scaled_fp8(n, a, b, scale):
    factor, columns = power(scale), []
    for x, y in ((a, b), (b, a)):
        pair = encoded(x / factor, "fp8").astype(np.int64) | encoded(y / factor, "fp8").astype(np.int64) << 8
        columns += [0x12340000 | pair, pair << 16 | 0x1234]
    return np.stack(columns, axis=1).astype(np.uint32).view(np.int32).reshape(-1)


def eight_at_a_time(i, a, b, scale, out):
    eight = fx.Vector.from_elements([a[i], b[i]] * 4)
    words = fx.Vector(R.cvt_scalef32_pk8_fp8_f32(T.vec(2, T.i32), eight.ir_value(), scale[i]))
    out[i * 3], out[i * 3 + 1] = words[0], words[1]
    out[i * 3 + 2] = fx.Int32(R.cvt_scalef32_pk8_fp4_bf16(T.i32, eight.to(fx.BFloat16).ir_value(), scale[i]))


def packed_eight(n, a, b, scale):
    factor = power(scale)
    fp8 = encoded(a / factor, "fp8").astype(np.int64) | encoded(b / factor, "fp8").astype(np.int64) << 8
    fp4 = encoded(a / factor, "fp4").astype(np.int64) | encoded(b / factor, "fp4").astype(np.int64) << 4
    return np.stack([fp8 * 0x10001, fp8 * 0x10001, fp4 * 0x01010101], axis=1).astype(np.uint32).view(np.int32).reshape(-1)


PAIRS = (BF16, np.roll(BF16, 31), SCALES)
SCALED = [
    Case("cvt_scalef32_pk_fp4_f32, _bf16", pack_fp4, PAIRS, packed_fp4,
         r"v_cvt_scalef32_pk_fp4_f32[\s\S]*v_cvt_scalef32_pk_fp4_bf16", ("gfx950",), not_emulated="no such instruction"),
    Case("cvt_scalef32_pk_f32_fp4, _bf16", unpack_fp4, (WORDS, SCALES), unpacked_fp4,
         r"v_cvt_scalef32_pk_(f32|bf16)_fp4[\s\S]*v_cvt_scalef32_pk_(f32|bf16)_fp4", ("gfx950",)),
    Case("cvt_scalef32_pk_fp8_f32, _bf16", pack_scaled_fp8, PAIRS, packed_scaled_fp8,
         r"v_cvt_scalef32_pk_fp8_f32[\s\S]*v_cvt_scalef32_pk_fp8_bf16", ("gfx950",), not_emulated="no such instruction"),
    Case("cvt_scalef32_pk8_fp8_f32, pk8_fp4_bf16", eight_at_a_time, PAIRS, packed_eight,
         r"v_cvt_scalef32_pk8_fp8_f32[\s\S]*v_cvt_scalef32_pk8_fp4_bf16", ("gfx1250",)),
]  # fmt: skip


@table(SCALED)
def test_scaled_conversions(case, arch):
    check(case, arch)


# --- wrong uses -------------------------------------------------------------------------------------------------------------------

WRONG = {
    "an integer": (lambda i, x: R.rcp(fx.Float32, i), "arg.*must be f32"),
    "another width": (lambda i, x: R.sqrt(fx.Float16, x).to(fx.Float32), "arg.*must be f16"),
    "a type without the instruction": (lambda i, x: R.rcp(fx.BFloat16, x.to(fx.BFloat16)).to(fx.Float32), "one of f32, f16, f64"),
    "mixed operands": (lambda i, x: R.fmed3(fx.Float32, x, x, i), "src2.*must be f32"),
    "a byte that is not there": (lambda i, x: R.cvt_f32_fp8(fx.Float32, i, 4), r"integer in \[0, 3\], got 4"),
    "a negative byte": (lambda i, x: R.cvt_scalef32_pk_f32_fp4(T.vec(2, T.f32), i, x, -1), r"integer in \[0, 3\], got -1"),
    "a run-time half": (lambda i, x: R.cvt_pk_fp8_f32(fx.Int32, x, x, 0, i).to(fx.Float32), "word_sel"),
    "an offset byte": (lambda i, x: fx.Float32(R.cvt_off_f32_i4(i, 7)), r"\[0, 3\], got 7"),
    "an integer scale": (lambda i, x: R.cvt_scalef32_pk_fp4_f32(fx.Int32, 0, x, x, 1, 0).to(fx.Float32), "32-bit float"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    use, text = WRONG[case]
    with pytest.raises(FlyError, match=text) as caught:
        launched(Case(case, put(use), (X,), lambda n, x: x), "gfx950")
    assert "test_names_math.py" in str(caught.value)


CASES = [*ARITHMETIC, *FORMS, *FP8, *SCALED]

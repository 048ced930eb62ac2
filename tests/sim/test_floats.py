"""Float ops against NumPy in float64 (one rounding), math functions within 2 ulp, conversions exact."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from launching import apply

SPECIALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-45,
    -1e-45,
    1e-38,
    3.4e38,
    -3.4e38,
    0.5,
    1.5,
    2.5,
    -2.5,
    65504.0,
    1e-8,
]
FORMATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def samples(dtype: object, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = len(SPECIALS)
    with np.errstate(over="ignore"):
        a = np.array([*rng.normal(size=200), *np.repeat(SPECIALS, n)]).astype(dtype)
        b = np.array([*rng.normal(size=200), *np.tile(SPECIALS, n)]).astype(dtype)
    return a, b


def same(got: np.ndarray, want: np.ndarray) -> bool:
    g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return bool(((g == w) & (np.signbit(g) == np.signbit(w)) | np.isnan(g) & np.isnan(w)).all())


@pytest.mark.parametrize("elem", FORMATS)
@pytest.mark.parametrize("name", "addf subf mulf divf".split())
def test_arithmetic_rounds_once(name: str, elem: str) -> None:
    dtype = FORMATS[elem]
    a, b = samples(dtype)
    got = apply(f"%r = arith.{name} %x0, %x1 : {elem}", elem, a, b, out_dtype=dtype)
    op = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}[name]
    with np.errstate(all="ignore"):
        if elem == "f64":
            want = op(a, b)
        else:  # f64 has more than twice the bits: rounding twice is exact for these four operations
            want = op(a.astype(np.float64), b.astype(np.float64))
            want = want.astype(np.float32).astype(dtype) if elem == "bf16" else want.astype(dtype)
    assert same(got, want)


@pytest.mark.parametrize("elem", ("f32", "f64", "f16"))
def test_maximum_and_minimum(elem: str) -> None:
    dtype = FORMATS[elem]
    a, b = samples(dtype)

    def pick(x: float, y: float, is_max: bool, propagate: bool) -> float:
        if math.isnan(x) or math.isnan(y):
            return math.nan if propagate or (math.isnan(x) and math.isnan(y)) else (y if math.isnan(x) else x)
        if x == y == 0:
            signs = {math.copysign(1, x), math.copysign(1, y)}
            return (0.0 if 1 in signs else -0.0) if is_max else (-0.0 if -1 in signs else 0.0)
        return max(x, y) if is_max else min(x, y)

    for name, is_max in (("maximumf", True), ("minimumf", False)):
        got = apply(f"%r = arith.{name} %x0, %x1 : {elem}", elem, a, b, out_dtype=dtype)
        assert same(got, [pick(float(x), float(y), is_max, True) for x, y in zip(a, b)]), name
    for name, is_max in (("maxnumf", True), ("minnumf", False)):
        got = np.abs(apply(f"%r = arith.{name} %x0, %x1 : {elem}", elem, a, b, out_dtype=dtype))
        assert same(got, [abs(pick(float(x), float(y), is_max, False)) for x, y in zip(a, b)]), name


PREDICATES = {
    "oeq": lambda x, y: x == y, "ogt": lambda x, y: x > y, "oge": lambda x, y: x >= y, "olt": lambda x, y: x < y, "ole": lambda x, y: x <= y,
    "one": lambda x, y: x < y or x > y, "ord": lambda x, y: x == x and y == y, "ueq": lambda x, y: not (x < y or x > y),
    "ugt": lambda x, y: not x <= y, "uge": lambda x, y: not x < y, "ult": lambda x, y: not x >= y, "ule": lambda x, y: not x > y,
    "une": lambda x, y: x != y, "uno": lambda x, y: x != x or y != y,
}  # fmt: skip


@pytest.mark.parametrize("name", PREDICATES)
def test_compare(name: str) -> None:
    a, b = samples(np.float32)
    got = apply(f"%c = arith.cmpf {name}, %x0, %x1 : f32\n%r = arith.extui %c : i1 to i32", "i32", a, b)
    assert got.tolist() == [int(PREDICATES[name](float(x), float(y))) for x, y in zip(a, b)]


UNARY = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "absf": np.abs,
    "roundeven": np.rint, "round": np.vectorize(lambda v: math.copysign(math.floor(abs(v) + 0.5), v) if math.isfinite(v) else v),
}  # fmt: skip


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of f32's last place at the exact value."""
    spacing = np.spacing(np.maximum(np.abs(want), 2.0**-126).astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - want) / spacing


@pytest.mark.parametrize("name", UNARY)
def test_math_within_2_ulp(name: str) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [rng.normal(size=2000), rng.normal(size=500) * 20, rng.uniform(-1, 1, 500), [0.0, -0.0, 0.5, 1.0, 2.5, -2.5]]
    ).astype(np.float32)
    got = apply(f"%r = math.{name} %x0 : f32", "f32", x)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
        finite = np.isfinite(want) & (np.abs(want) < 3e38)
        assert (np.isnan(got) == np.isnan(want)).all()
        assert ulps(got[finite], want[finite]).max() <= 2, name


HARDWARE = {
    "exp2": np.exp2, "log": np.log2, "rcp": lambda x: 1 / x, "rsq": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
    "sin": lambda x: np.sin(2 * np.pi * x), "cos": lambda x: np.cos(2 * np.pi * x),
}  # fmt: skip


@pytest.mark.parametrize("name", HARDWARE)
def test_hardware_functions_within_2_ulp(name: str) -> None:
    x = np.random.default_rng(6).uniform(0.01, 30, 2000).astype(np.float32)
    got = apply(f"%r = rocdl.{name} %x0 f32 -> f32", "f32", x)
    want = HARDWARE[name](x.astype(np.float64))
    keep = np.abs(want) > 1e-3
    assert ulps(got[keep], want[keep]).max() <= 2


@pytest.mark.parametrize("elem", ("f32", "f64", "f16", "bf16"))
def test_fma_is_rounded_once(elem: str) -> None:
    dtype = FORMATS[elem]
    rng = np.random.default_rng(7)
    a, b = (rng.normal(size=500).astype(dtype) for _ in range(2))
    exact = a.astype(np.float64) * b.astype(np.float64)
    c = np.concatenate([-exact[:250], rng.normal(size=250) * 1e-5]).astype(dtype)
    got = apply(f"%r = math.fma %x0, %x1, %x2 : {elem}", elem, a, b, c, out_dtype=dtype)
    for x, y, z, r in zip(a, b, c, got):
        want = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        low, high = (
            float(np.nextafter(r, dtype(s * math.inf), dtype=None) if elem != "bf16" else neighbour(r, s))
            for s in (-1, 1)
        )
        error = abs(Fraction(float(r)) - want)
        assert error <= abs(Fraction(low) - want) and error <= abs(Fraction(high) - want)


def neighbour(x: object, direction: int) -> float:
    bits = np.asarray(x).view(np.int16)
    step = direction if bits >= 0 else -direction
    return float((bits + np.int16(step)).view(ml_dtypes.bfloat16)) if int(bits) & 0x7FFF else direction * 1e-40


@pytest.mark.parametrize(
    "src,dst",
    [("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f64")],
)
def test_conversions_are_exact_or_nearest(src: str, dst: str) -> None:
    if src in ("f16", "bf16"):
        x = np.arange(1 << 16, dtype=np.uint16).view(FORMATS[src])
    else:
        rng = np.random.default_rng(8)
        x = np.concatenate([rng.normal(size=3000) * 10.0 ** rng.integers(-8, 6, 3000), SPECIALS]).astype(FORMATS[src])
    op = "extf" if np.dtype(FORMATS[dst]).itemsize > np.dtype(FORMATS[src]).itemsize else "truncf"
    got = apply(f"%r = arith.{op} %x0 : {src} to {dst}", dst, x, out_dtype=FORMATS[dst])
    with np.errstate(all="ignore"):
        assert same(got, x.astype(FORMATS[dst]))


def test_f64_to_bf16_rounds_once() -> None:
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8, -(1 + 3 * 2.0**-8 - 2.0**-45)])
    got = apply("%r = arith.truncf %x0 : f64 to bf16", "bf16", x, out_dtype=ml_dtypes.bfloat16)
    assert got.astype(np.float64).tolist() == [1 + 2.0**-7, 1.0, 1.0, -(1 + 2.0**-7)]


@pytest.mark.parametrize("mode", ("downward", "upward", "toward_zero", "to_nearest_away"))
@pytest.mark.parametrize("dst", ("f16", "bf16"))
def test_rounding_modes(mode: str, dst: str) -> None:
    dtype = FORMATS[dst]
    rng = np.random.default_rng(9)
    x = np.concatenate(
        [rng.normal(size=500), [1 + 2.0**-9, 1 + 2.0**-12, -1 - 2.0**-12, 0.0, 1.0, 1e-9, -1e-9]]
    ).astype(np.float32)
    got = apply(f"%r = arith.truncf %x0 {mode} : f32 to {dst}", dst, x, out_dtype=dtype).astype(np.float64)
    grid = np.unique(np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64))
    grid = grid[np.isfinite(grid)]
    for v, r in zip(x.astype(np.float64), got):
        low, high = grid[grid <= v][-1], grid[grid >= v][0]
        if mode == "to_nearest_away":
            want = (
                (low if abs(low) > abs(high) else high)
                if v - low == high - v
                else (low if v - low < high - v else high)
            )
        else:
            want = {"downward": low, "upward": high, "toward_zero": low if v > 0 else high}[mode]
        assert r == want, (v, r, want)


def test_float_to_int_saturates_like_the_hardware() -> None:
    x = np.array([0.9, -0.9, 2.5, -2.5, 3e9, -3e9, math.inf, -math.inf, math.nan, 2147483520.0], np.float32)
    got = apply("%r = arith.fptosi %x0 : f32 to i32", "i32", x)
    assert got.tolist() == [0, 0, 2, -2, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 2147483520]
    got = apply("%r = arith.fptoui %x0 : f32 to i32", "i32", x).view(np.uint32)
    assert got.tolist() == [0, 0, 2, 0, 3000000000, 0, 2**32 - 1, 0, 0, 2147483520]


def converted(x: float, source: str, bits: int, signed: bool) -> int:
    """What the instructions that LLVM chooses deliver, bit for bit, by integers of Python."""

    def saturated(v: float, width: int, has_sign: bool) -> int:
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if has_sign else (0, (1 << width) - 1)
        if math.isnan(v):
            return 0
        return high if v > high else low if v < low else int(v)

    mask = (1 << bits) - 1
    if bits < 64:
        through = 16 if source == "f16" and bits <= 16 else 32
        return saturated(x, through, signed or bits == 8) & mask
    if source == "f16":
        return saturated(x, 32, signed) & mask
    if not math.isfinite(x) and (signed or x != -math.inf):
        return -1  # not compared
    whole = 0 if x == -math.inf else int(x)
    sign = -1 if signed and source != "f64" and whole < 0 else 1
    high, low = divmod(whole * sign, 1 << 32)
    if x == -math.inf:
        high, low = -1, 0
    if source != "f64":
        low = float(np.float32(low))
    return sign * ((saturated(high, 32, signed and source == "f64") << 32) + saturated(low, 32, False)) & mask


FAR = [
    0.5, -0.5, -1.0, -3.75, 127.5, 128.0, 255.5, 256.0, 260.0, -129.0, -300.0, 32768.0, 40000.0, -40000.0, 65504.0, 65536.0, 70000.0, 1e9,
    3e9, 5e9, -5e9, 1e18, -1e18, 1e19, 2.0**63, -(2.0**63), 2.0**64, 1e20, -1e20, math.inf, -math.inf, math.nan,
]  # fmt: skip


@pytest.mark.parametrize("source, dtype", [("f16", np.float16), ("f32", np.float32), ("f64", np.float64)])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_float_to_int_beyond_the_range(source: str, dtype: type, bits: int, signed: bool) -> None:
    """The ISA of all targets has v_cvt_i16/u16_f16, v_cvt_i32_* for 8 bits, v_cvt_u32_* for unsigned 16 bits, two halves for 64."""
    with np.errstate(over="ignore"):
        x = np.array(FAR, np.float64).astype(dtype)
    got = apply(f"%r = arith.fpto{'s' if signed else 'u'}i %x0 : {source} to i{bits}", f"i{bits}", x)
    for value, result in zip(x.tolist(), got.view(f"u{bits // 8}").tolist()):
        want = converted(value, source, bits, signed)
        assert want == -1 or result == want, (value, result, want)


def test_int_to_float() -> None:
    x = np.array([0, 1, -1, 2**31 - 1, -(2**31), 16777217], np.int32)
    assert (apply("%r = arith.sitofp %x0 : i32 to f32", "f32", x) == x.astype(np.float32)).all()
    assert (apply("%r = arith.uitofp %x0 : i32 to f32", "f32", x) == x.view(np.uint32).astype(np.float32)).all()


def test_reductions_are_ordered_unless_reassociation_is_allowed() -> None:
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    splat = "%v = vector.from_elements " + ", ".join(["%x0", "%a", "%b", "%x0"]) + " : vector<4xf32>"
    pre = "%c = arith.constant 1.0e8 : f32\n%a = arith.addf %x0, %c : f32\n%b = arith.negf %c : f32\n" + splat
    got = apply(pre + "\n%r = vector.reduction <add>, %v : vector<4xf32> into f32", "f32", x)
    big = np.float32(1e8)
    want = ((x + (x + big)).astype(np.float32) + -big).astype(np.float32) + x
    assert (got == want).all()

"""Packed conversions against ml_dtypes and formulas of the ISA text."""

import ml_dtypes
import numpy as np
import pytest
from launching import apply

FORMATS = {("fp8", "gfx942"): ml_dtypes.float8_e4m3fnuz, ("bf8", "gfx942"): ml_dtypes.float8_e5m2fnuz,
           ("fp8", "gfx950"): ml_dtypes.float8_e4m3fn, ("bf8", "gfx950"): ml_dtypes.float8_e5m2}  # fmt: skip
CASES = [(k, a) for k, a in FORMATS]


def same(got: np.ndarray, want: np.ndarray) -> bool:
    g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return bool(((g == w) & (np.signbit(g) == np.signbit(w)) | np.isnan(g) & np.isnan(w)).all())


@pytest.mark.parametrize("kind,arch", CASES)
def test_all_codes_decode(kind: str, arch: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    words = (codes.astype(np.uint32) << 16 | np.uint32(0x11000055)).view(np.int32)
    got = apply(f"%r = rocdl.cvt.f32.{kind} %x0[2] : f32", "f32", words, arch=arch)
    assert same(got, codes.view(FORMATS[(kind, arch)]).astype(np.float32))
    ops = f"%v = rocdl.cvt.pk.f32.{kind} %x0[true] : vector<2xf32>\n%r = vector.extract %v[0] : f32 from vector<2xf32>"
    assert same(apply(ops, "f32", words, arch=arch), codes.view(FORMATS[(kind, arch)]).astype(np.float32))


@pytest.mark.parametrize("kind,arch", CASES)
def test_encode_is_nearest_even(kind: str, arch: str) -> None:
    fmt = FORMATS[(kind, arch)]
    grid = np.arange(256, dtype=np.uint8).view(fmt).astype(np.float64)
    grid = np.unique(grid[np.isfinite(grid)])
    ties = (grid[1:] + grid[:-1]) / 2
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [grid, ties, ties * (1 + 2.0**-20), rng.normal(size=500) * 8, [1e6, -1e6, np.inf, -np.inf, np.nan, 0.0, -0.0]]
    )
    x = x.astype(np.float32)
    old = np.full(len(x), 0x12345678, np.int32)
    for sel in ("false", "true"):
        got = apply(f"%r = rocdl.cvt.pk.{kind}.f32 %x0, %x0 -> %x1[{sel}] : i32", "i32", x, old, arch=arch).view(
            np.uint32
        )
        with np.errstate(all="ignore"):
            code = x.astype(fmt).view(np.uint8).astype(np.uint32)
        half = code | code << 8
        want = (0x5678 | half << 16) if sel == "true" else (0x12340000 | half)
        assert (got == want).all()


@pytest.mark.parametrize("kind", ("fp8", "bf8"))
def test_stochastic_rounding_is_unbiased_and_exact_on_codes(kind: str) -> None:
    fmt = FORMATS[(kind, "gfx942")]
    rng = np.random.default_rng(3)
    seeds = rng.integers(-(1 << 31), 1 << 31, 4096).astype(np.int32)
    zero = np.zeros(4096, np.int32)
    x = np.full(4096, 1.0 + 0.3 * 2.0 ** -(3 if kind == "fp8" else 2), np.float32)
    got = (
        apply(f"%r = rocdl.cvt.sr.{kind}.f32 %x0, %x1 -> %x2[0] : i32", "i32", x, seeds, zero)
        .astype(np.uint8)
        .view(fmt)
        .astype(np.float64)
    )
    step = 2.0 ** -(3 if kind == "fp8" else 2)
    assert set(got) == {1.0, 1.0 + step} and abs((got > 1).mean() - 0.3) < 0.03
    codes = np.arange(1, 0x78, dtype=np.uint8)
    exact = codes.view(fmt).astype(np.float32)
    got = apply(
        f"%r = rocdl.cvt.sr.{kind}.f32 %x0, %x1 -> %x2[0] : i32", "i32", exact, seeds[: len(codes)], zero[: len(codes)]
    )
    assert (got == codes).all()


def test_scaled_fp4_round_trip() -> None:
    codes = np.arange(256, dtype=np.int32)
    scale = np.exp2(np.arange(256) % 9 - 4).astype(np.float32)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    for side in (0, 1):
        ops = f"%v = rocdl.cvt.scalef32.pk.f32.fp4 %x0[0], %x1 : vector<2xf32>\n%r = vector.extract %v[{side}] : f32 from vector<2xf32>"
        got = apply(ops, "f32", codes, scale, arch="gfx950")
        assert same(got, table[codes >> 4 * side & 15] * scale)
    low, high = ((table[codes >> s & 15] * scale).astype(np.float32) for s in (0, 4))
    old = np.full(256, 0x55AA55AA, np.int32)
    got = apply(
        "%r = rocdl.cvt.scalef32.pk.fp4.f32 %x0, %x1, %x2 -> %x3[2] : i32", "i32", low, high, scale, old, arch="gfx950"
    )
    assert (got.view(np.uint32) == (0x550055AA | codes.view(np.uint32) << 16)).all()


def test_fp4_saturates_and_rounds_to_even() -> None:
    x = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, 100.0, -0.25, -2.5, 0.26], np.float32)
    one, old = np.ones_like(x), np.zeros(len(x), np.int32)
    got = (
        apply("%r = rocdl.cvt.scalef32.pk.fp4.f32 %x0, %x0, %x1 -> %x2[0] : i32", "i32", x, one, old, arch="gfx950")
        & 15
    )
    want = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert (got == want).all()


@pytest.mark.parametrize("kind", ("fp8", "bf8"))
def test_scaled_fp8_halves(kind: str) -> None:
    fmt = FORMATS[(kind, "gfx950")]
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=300).astype(np.float32) for _ in range(2))
    scale = np.full(300, 4.0, np.float32)
    ops = f"""
      %z = arith.constant dense<[4660, 22136]> : vector<2xi16>
      %v = rocdl.cvt.scalef32.pk.{kind}.f32 %x0, %x1, %x2 -> %z[true] : vector<2xi16>
      %r = llvm.bitcast %v : vector<2xi16> to i32"""
    got = apply(ops, "i32", a, b, scale, arch="gfx950").view(np.uint32)
    ca, cb = ((v / 4).astype(fmt).view(np.uint8).astype(np.uint32) for v in (a, b))
    assert (got == (4660 | ca << 16 | cb << 24)).all()


def test_pkrtz_and_bf16_pairs() -> None:
    x = np.array([1 + 2.0**-11 + 2.0**-12, -(1 + 2.0**-11 + 2.0**-12), 1e-9, 65519.0, 3.0], np.float32)
    ops = "%v = rocdl.cvt.pkrtz %x0, %x0 : vector<2xf16>\n%r = vector.extract %v[1] : f16 from vector<2xf16>"
    assert apply(ops, "f16", x).astype(float).tolist() == [1.0, -1.0, 0.0, 65504.0, 3.0]
    ops = '%r = llvm.inline_asm "v_cvt_pk_bf16_f32 $0, $1, $2", "=v,v,v" %x0, %x1 : (f32, f32) -> i32'
    y = (x * np.float32(1.37)).astype(np.float32)
    got = apply(ops, "i32", x, y, arch="gfx950").view(np.uint32)
    cx, cy = (v.astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.uint32) for v in (x, y))
    assert (got == (cx | cy << 16)).all()


@pytest.mark.parametrize(
    "name,bits,signed", [("sdot4", 8, True), ("udot4", 8, False), ("sdot8", 4, True), ("udot8", 4, False)]
)
def test_dot_products(name: str, bits: int, signed: bool) -> None:
    rng = np.random.default_rng(4)
    a, b, c = (rng.integers(-(1 << 31), 1 << 31, 200).astype(np.int32) for _ in range(3))
    got = apply(f"%r = rocdl.{name} %x0, %x1, %x2 : (i32, i32, i32) -> i32", "i32", a, b, c)

    def parts(x: int) -> list[int]:
        values = [(x >> bits * i) % (1 << bits) for i in range(32 // bits)]
        return [v - (1 << bits) if signed and v >> bits - 1 else v for v in values]

    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist()):
        want = sum(p * q for p, q in zip(parts(x % 2**32), parts(y % 2**32))) + z
        assert r % 2**32 == want % 2**32

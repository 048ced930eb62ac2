"""Every matrix atom on every chip: one tile in a kernel, random, special and structured inputs, and the instruction that comes out.

Registers are filled and read by the manuals' lane maps (tests/unit/atoms/isa_maps.py), results compared with NumPy in float64. By default one
scaled form per pair of shape and chip runs; `nightly` runs all.
"""

import re
from dataclasses import replace

import atom_tiles as tiles
import isa_maps
import numpy as np
import pytest

from flydsl.utils import env

CASES = tiles.cases()


def is_default(case) -> bool:
    return not case.has_scales or case.row.a == case.row.b and case.row.a in ("fp8", "fp6", "fp4")


PARAMS = [pytest.param(c, id=str(c), marks=[] if is_default(c) else [pytest.mark.nightly]) for c in CASES]


def shapes(case):
    r = case.row
    return (r.blocks, r.m, r.k), (r.blocks, r.n, r.k), (r.blocks, r.m, r.n)


def random_items(case, rng, kind: str, shape: tuple) -> np.ndarray:
    if kind in ("i8", "i4"):
        half = 1 << tiles.BITS[kind] - 1
        return rng.integers(-half, half, shape, np.int8)
    if kind == "i32":
        return rng.integers(-(1 << 20), 1 << 20, shape, np.int32)
    return rng.standard_normal(shape).astype(case.numpy(kind))


def check(case, a, b, c, scales=None, factors=None) -> None:
    """Compare with A * B + C in float64: integers and NaN exactly, floats within k * 2^-24 of the magnitudes (f64: 2^-52)."""
    r = case.row
    got = tiles.run(case, a, b, c, scales)
    fa, fb, fc = (tiles.values_of(case, kind, x) for kind, x in ((r.a, a), (r.b, b), (r.acc, c)))
    if factors is not None:
        fa, fb = fa * factors[0], fb * factors[1]
    with np.errstate(all="ignore"):
        exact = np.einsum("bik,bjk->bij", fa, fb) + fc
        size = np.einsum("bik,bjk->bij", np.abs(fa), np.abs(fb)) + np.abs(fc)
    if r.acc == "i32":
        np.testing.assert_array_equal(got, exact.astype(np.int64).astype(np.int32))
        return
    unit = {"f64": 2.0**-52, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}[r.acc]
    tiny = {"f64": 0.0, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}[r.acc]
    largest = {"f64": 1.7e308, "f32": 3.4e38, "f16": 65504.0, "bf16": 3.38e38}[r.acc]
    value = got.astype(np.float64)
    regular = np.isfinite(exact) & (size < largest)
    np.testing.assert_array_equal(np.isnan(value), np.isnan(exact))
    np.testing.assert_array_equal(value[np.isinf(exact)], exact[np.isinf(exact)])
    bound = (r.k + 1) * (unit if r.acc in ("f64", "f32") else 2.0**-24) * size + (unit * np.abs(exact)) + tiny
    error = np.abs(value[regular] - exact[regular])
    assert (error <= bound[regular]).all(), error.max()


@pytest.mark.parametrize("case", PARAMS)
def test_one_tile(case):
    """Random values; A an identity and B counting up, which shows any permutation; the instruction, exactly once."""
    rng = np.random.default_rng(11)
    sa, sb, sc = shapes(case)
    r = case.row
    a, b, c = (random_items(case, rng, kind, shape) for kind, shape in ((r.a, sa), (r.b, sb), (r.acc, sc)))
    scales = factors = None
    if case.has_scales:
        scales, factors = random_scales(case, rng)
    check(case, a, b, c, scales, factors)
    if not case.has_scales:
        check(case, *structured(case, rng, sa, sb, sc))
    text = tiles.isa(case, a, b, c)
    found = [line.split()[0] for line in text.splitlines() if re.match(r"\s+v_(s?mfma|smfmac|wmma|swmmac)\w*\s", line)]
    assert found == [r.isa], found


def structured(case, rng, sa, sb, sc):
    """A has one 1 per row, at column (row mod k); B counts in steps that every format holds; C is 0."""
    r = case.row
    one = 1 if r.a in ("i8", "i4") else 1.0
    a = np.zeros(sa, np.int8 if r.a in ("i8", "i4") else case.numpy(r.a))
    for i in range(r.m):
        a[:, i, i % r.k] = one
    codes = np.arange(np.prod(sb)).reshape(sb) % 7 - 3
    b = codes.astype(np.int8 if r.b in ("i8", "i4") else case.numpy(r.b))
    return a, b, np.zeros(sc, np.int32 if r.acc == "i32" else tiles.NUMPY[r.acc])


def special_values(case, kind: str) -> np.ndarray:
    """Return NaN, infinities, zeros, the smallest and the largest numbers of a kind, as far as it has them."""
    if kind in ("i8", "i4"):
        half = 1 << tiles.BITS[kind] - 1
        return np.array([-half, half - 1, 0, -1, 1], np.int8)
    dtype = case.numpy(kind)
    with np.errstate(all="ignore"):
        info = __import__("ml_dtypes").finfo(dtype)
        wanted = [
            0.0,
            -0.0,
            info.smallest_subnormal,
            -info.smallest_subnormal,
            info.tiny,
            info.max,
            -info.max,
            1.0,
            -1.0,
        ]
        wanted += [np.nan, np.inf, -np.inf] if tiles.BITS[kind] > 6 else []
        return np.array(wanted, np.float64).astype(dtype)


SPECIAL = [p for p in PARAMS if not p.values[0].has_scales]


@pytest.mark.parametrize("case", SPECIAL)
def test_special_values(case):
    """One special value among zeros and ones per row and column, so that each meets the others."""
    r = case.row
    sa, sb, sc = shapes(case)
    specials_a, specials_b = special_values(case, r.a), special_values(case, r.b)
    integer = r.a in ("i8", "i4")
    a, b = (np.zeros(s, np.int8 if integer else case.numpy(kind)) for s, kind in ((sa, r.a), (sb, r.b)))
    for i in range(r.m):
        a[:, i, i % r.k] = specials_a[i % len(specials_a)]
    for j in range(r.n):
        b[:, j, :] = specials_b[j % len(specials_b)]
    c = np.zeros(sc, np.int32 if r.acc == "i32" else tiles.NUMPY[r.acc])
    if r.acc == "i32":
        c[:] = 2**31 - 1  # integers wrap around
    check(case, a, b, c)


def random_scales(case, rng):
    """Return (scale registers of A and B, factor of each element of A and B) by the rule of the family."""
    r = case.row
    bytes_per_lane, block = (4, 32) if r.scale_type == "i32" else (8, 16)
    words = [rng.integers(124, 131, (r.wave_size, bytes_per_lane)).astype(np.uint8) for _ in range(2)]
    factors = []
    for word, rows, sel in zip(words, (r.m, r.n), case.opsel):
        codes = np.zeros((rows, r.k // block), int)
        for row, number in np.ndindex(codes.shape):
            if r.family == "mfma_scale":
                codes[row, number] = word[isa_maps.mfma_scale_lane(rows, row, number), sel]
            else:
                codes[row, number] = word[isa_maps.wmma_scale_place(rows, sel, row, number)]
        factors.append(np.repeat(np.ldexp(1.0, codes - 127), block, axis=1)[None])
    dtype = np.int32 if bytes_per_lane == 4 else np.int64
    return tuple(np.ascontiguousarray(w).view(dtype)[:, 0] for w in words), factors


@pytest.mark.parametrize("operand", "ABC")
@pytest.mark.parametrize(
    "name",
    [
        "gfx942-mfma_f32_16x16x16_f16",
        "gfx950-mfma_f32_32x32x16_bf16",
        "gfx1201-wmma_i32_16x16x16_iu8",
        "gfx1250-wmma_f16_16x16x32_f16",
    ],
)
def test_a_permuted_lane_map_fails(name, operand, monkeypatch):
    """Mutation: two lanes of one operand's map exchanged in the table; random and structured inputs both notice."""
    from test_lane_maps import swap_first_lanes

    from flydsl.atoms.matrix_rows import MatrixRow
    from flydsl.targets.sim import matrix

    case = next(c for c in CASES if str(c).startswith(name + "-"))
    attribute = f"layout_{operand.lower()}"
    right = getattr(MatrixRow, attribute).fget
    mutated = property(lambda row: swap_first_lanes(right(row)) if row == case.row else right(row))
    rng = np.random.default_rng(3)
    sa, sb, sc = shapes(case)
    inputs = [
        random_items(case, rng, kind, shape)
        for kind, shape in zip((case.row.a, case.row.b, case.row.acc), (sa, sb, sc))
    ]
    matrix.h_plan.cache_clear()
    with monkeypatch.context() as patch, env.override(FLYDSL_RUNTIME_ENABLE_CACHE="0"):
        patch.setattr(MatrixRow, attribute, mutated)
        for i, operands in enumerate((inputs, structured(case, rng, sa, sb, sc))):
            with pytest.raises(AssertionError):
                check(replace(case, opsel=(4 + "ABC".index(operand), i)), *operands)  # a name of its own: nothing is reused
    matrix.h_plan.cache_clear()
    check(replace(case, opsel=(4 + "ABC".index(operand), 2)), *inputs)


SCALED = [c for c in CASES if c.has_scales and c.row.a == "fp8" == c.row.b]
OPSELS = {"mfma_scale": [(1, 2), (3, 0)], "wmma_scale": [(0, 1), (1, 0)]}


@pytest.mark.parametrize(
    "case", [tiles.Case(c.arch, c.row, s) for c in SCALED for s in OPSELS[c.row.family]], ids=lambda c: f"{c}-{c.opsel}"
)
def test_opsel_chooses_the_scale(case):
    rng = np.random.default_rng(5)
    r = case.row
    a, b, c = (random_items(case, rng, kind, shape) for kind, shape in zip((r.a, r.b, r.acc), shapes(case)))
    check(case, a, b, c, *random_scales(case, rng))

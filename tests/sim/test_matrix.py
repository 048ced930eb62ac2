"""Every matrix instruction on one tile against NumPy float64, with lane maps written from the ISA manuals' formulas."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from kernels_ir import kernel, module
from launching import run

from flydsl.atoms import matrix_rows
from flydsl.targets.sim import Program

STORAGE = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "xf32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
}
SMALL = {
    ("fp8", True): ml_dtypes.float8_e4m3fnuz, ("bf8", True): ml_dtypes.float8_e5m2fnuz, ("fp8", False): ml_dtypes.float8_e4m3fn,
    ("bf8", False): ml_dtypes.float8_e5m2, ("fp6", False): ml_dtypes.float6_e2m3fn, ("bf6", False): ml_dtypes.float6_e3m2fn,
    ("fp4", False): ml_dtypes.float4_e2m1fn,
}  # fmt: skip
BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4, "i8": 8, "i4": 4}


# --- lane maps, from the manuals -------------------------------------------------------------------------------------------


def mfma_ab(rows: int, k: int, blocks: int):
    """A[row][k] of block b: lanes run over rows, then blocks, then groups of consecutive k."""
    per = rows * blocks
    values = k * per // 64

    def at(lane: int, v: int) -> tuple[int, int, int]:
        return lane // rows % blocks, lane % rows, lane // per * values + v

    return at, values


def scaled_ab(rows: int, k: int, kind: str):
    """A[row][k] of a scaled MFMA: 6- and 4-bit elements as above, 8-bit ones as two runs of 16 k, half of K apart."""
    if kind in ("fp6", "bf6", "fp4"):
        return mfma_ab(rows, k, 1)
    return lambda lane, v: (0, lane % rows, lane // rows * 16 + v % 16 + v // 16 * (k // 2)), 32


def mfma_c(m: int, n: int, blocks: int, f64: bool):
    """D[i][j]: column = lane mod n; rows in runs of 4 (f64: 1) per lane group; f32 4x4 and multi-block forms fill blocks in turn."""
    if (
        m == 4
    ):  # one block per four lanes, the lane's values are the rows; f64: four lanes of each row (AMD's matrix instruction calculator)
        if f64:
            return lambda lane, v: (lane // 4 % 4, lane // 16, lane % 4), 1
        return lambda lane, v: (lane // 4, v, lane % 4), 4
    if f64:
        return lambda lane, v: (0, 4 * v + lane // 16, lane % 16), 4
    if m == 32:
        return lambda lane, v: (v // 16, 8 * (v % 16 // 4) + 4 * (lane // 32) + v % 4, lane % 32), 16 * blocks
    return lambda lane, v: (v // 4, 4 * (lane // 16) + v % 4, lane % 16), 4 * blocks


def wmma_ab(row) -> tuple:
    rows, k = 16, row.k
    if row.feature == "wmma_gfx11":
        return lambda lane, v: (0, lane % rows, v), k
    if row.feature == "wmma_gfx12" or row.a == "f32":
        return lambda lane, v: (0, lane % rows, lane // 16 * (k // 2) + v), k // 2
    return lambda lane, v: (0, lane % rows, v // 8 * 16 + lane // 16 * 8 + v % 8), k // 2


def wmma_c(row) -> tuple:
    if row.feature == "wmma_gfx11":
        return lambda lane, v: (0, 2 * v + lane // 16, lane % 16), 8
    return lambda lane, v: (0, lane // 16 * 8 + v, lane % 16), 8


# --- one-tile kernels --------------------------------------------------------------------------------------------------------


def reg_words(reg: str) -> int:
    """Return the bytes of a register operand."""
    n, elem = reg[7:-1].split("x") if reg.startswith("vector") else ("1", reg)
    return int(n) * {"f16": 2, "bf16": 2, "i16": 2, "f32": 4, "i32": 4, "i64": 8, "f64": 8}[elem]


def tile_kernel(row, arch: str, attrs: str = "", scales: bool = False) -> str:
    """Each lane loads its A, B, C registers, runs the instruction, stores D."""
    ra, rb, rc = row.regs
    lines = []
    for name, ptr, reg in (("a", "A", ra), ("b", "B", rb), ("c", "C", rc)):
        size = reg_words(reg)
        lines.append(f"%s{name} = arith.constant {size} : i32\n%o{name} = arith.muli %tid, %s{name} : i32")
        lines.append(f"%p{name} = llvm.getelementptr %{ptr}[%o{name}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8")
        lines.append(f"%{name} = llvm.load %p{name} {{alignment = 1 : i64}} : !llvm.ptr<1> -> {reg}")
    extra, types = "", f"{ra}, {rb}, {rc}"
    params = "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %C: !llvm.ptr<1>, %D: !llvm.ptr<1>"
    if scales:
        for s, ptr in (("x", "E"), ("y", "F")):
            st = row.scale_type
            lines.append(f"%p{s} = llvm.getelementptr %{ptr}[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {st}")
            lines.append(f"%{s} = llvm.load %p{s} {{alignment = 1 : i64}} : !llvm.ptr<1> -> {st}")
            types += f", {st}"
        extra, params = ", %x, %y", params + ", %E: !llvm.ptr<1>, %F: !llvm.ptr<1>"
    lines.append(f'%d = "{row.rocdl}"(%a, %b, %c{extra}) {attrs} : ({types}) -> {rc}')
    lines.append("%pd = llvm.getelementptr %D[%oc] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8")
    lines.append(f"llvm.store %d, %pd {{alignment = 1 : i64}} : {rc}, !llvm.ptr<1>")
    return module(kernel("k", params, "\n".join(lines)), arch)


def registers(matrix: np.ndarray, at, values: int, lanes: int) -> np.ndarray:
    """Return (lanes, values) of a (blocks, rows, cols) matrix."""
    return np.array([[matrix[at(lane, v)] for v in range(values)] for lane in range(lanes)], matrix.dtype)


def small_bytes(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack codes of each lane, lowest bits first, into bytes, through one big integer per lane."""
    rows = []
    for lane in codes.tolist():
        word = sum(c << bits * i for i, c in enumerate(lane))
        rows.append(list(word.to_bytes(len(lane) * bits // 8, "little")))
    return np.array(rows, np.uint8)


def operand(rng, kind: str, shape: tuple, fnuz: bool, unsigned: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return (storage or codes, exact values in f64) of random data."""
    if kind in ("i8", "i4"):
        half = 1 << BITS[kind] - 1
        values = rng.integers(0, 2 * half, shape) if unsigned else rng.integers(-half, half, shape)
        return (values % (2 * half)).astype(np.uint8), values.astype(np.float64)
    if kind in BITS:
        dtype = SMALL[(kind, fnuz and BITS[kind] == 8)]
        data = rng.normal(size=shape).astype(np.float32).astype(dtype)
        return data.view(np.uint8), data.astype(np.float64)
    data = rng.normal(size=shape).astype(np.float32).astype(STORAGE[kind])
    values = data.astype(np.float64)
    if kind == "xf32":
        values = (data.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return data, values


def as_bytes(regs: np.ndarray, kind: str) -> np.ndarray:
    return small_bytes(regs, BITS[kind]) if kind in BITS else regs.view(np.uint8)


def run_tile(row, arch: str, ab_a, ab_b, c_map, attrs: str = "", unsigned=(False, False), scale=None):
    """Run one tile of random data; return (result matrix, A, B, C values)."""
    rng = np.random.default_rng(hash(row.rocdl) % 1000)
    lanes, fnuz = row.wave_size, arch == "gfx942"
    (at_a, na), (at_b, nb), (at_c, nc) = ab_a, ab_b, c_map
    a, va = operand(rng, row.a, (row.blocks, row.m, row.k), fnuz, unsigned[0])
    b, vb = operand(rng, row.b, (row.blocks, row.n, row.k), fnuz, unsigned[1])
    acc = STORAGE[row.acc]
    c = (
        rng.integers(-1000, 1000, (row.blocks, row.m, row.n)).astype(acc)
        if row.acc == "i32"
        else rng.normal(size=(row.blocks, row.m, row.n)).astype(acc)
    )
    ba, bb = (
        as_bytes(registers(x, at, n, lanes), kind) for x, at, n, kind in ((a, at_a, na, row.a), (b, at_b, nb, row.b))
    )
    pad = reg_words(row.regs[0]) - ba.shape[1], reg_words(row.regs[1]) - bb.shape[1]
    ba, bb = (np.pad(x, ((0, 0), (0, p))) for x, p in zip((ba, bb), pad))
    rc = np.ascontiguousarray(registers(c, at_c, nc, lanes))
    out = np.zeros_like(rc)
    args = [np.ascontiguousarray(ba), np.ascontiguousarray(bb), rc, out]
    if scale is not None:
        args += [np.ascontiguousarray(s) for s in scale]
    run(Program(tile_kernel(row, arch, attrs, scale is not None)), "k", 1, lanes, *args)
    result = np.zeros((row.blocks, row.m, row.n), acc)
    for lane in range(lanes):
        for v in range(nc):
            result[at_c(lane, v)] = out[lane, v]
    return result, va, vb, c


def check(result: np.ndarray, va: np.ndarray, vb: np.ndarray, c: np.ndarray, acc: str) -> None:
    """Integers exactly; floats within k * 2^-24 * sum|ab| (of the accumulator's precision) of the exact value."""
    exact = va @ vb.swapaxes(-1, -2) + c.astype(np.float64)
    if acc == "i32":
        assert (result.astype(np.int64) == exact.astype(np.int64)).all()
        return
    weight = np.abs(va) @ np.abs(vb).swapaxes(-1, -2) + np.abs(c.astype(np.float64))
    eps = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11, "bf16": 2.0**-8}[acc]
    assert (np.abs(result.astype(np.float64) - exact) <= va.shape[-1] * eps * weight + 1e-300).all()
    assert np.abs(result.astype(np.float64)).max() > 0.1


MFMA = [(r, a) for r in matrix_rows.MFMA_ROWS for a in r.chips if a in ("gfx942", "gfx950")]


@pytest.mark.parametrize("row,arch", MFMA, ids=lambda x: x if isinstance(x, str) else x.rocdl[6:])
def test_mfma(row, arch: str) -> None:
    blgp = "mfma_neg_modifier none" if row.acc == "f64" else "mfma_perm_b none"
    result = run_tile(
        row, arch, mfma_ab(row.m, row.k, row.blocks), mfma_ab(row.n, row.k, row.blocks), mfma_c(row.m, row.n, row.blocks, row.acc == "f64"),
        f"<{{cbsz = 0 : i32, abid = 0 : i32, blgp = #rocdl<{blgp}>}}>",
    )  # fmt: skip
    check(*result, row.acc)


WMMA = [
    (row, arch, signs)
    for row in matrix_rows.WMMA_GFX11_ROWS + matrix_rows.WMMA_GFX12_ROWS + matrix_rows.WMMA_GFX1250_ROWS
    for arch in row.chips[:1]
    for signs in ([(True, True), (False, True)] if row.acc == "i32" else [(True, True)])
    if not row.opsel_result
]


@pytest.mark.parametrize(
    "row,arch,signs", WMMA, ids=lambda x: f"{x.rocdl[6:]}-{x.feature}" if hasattr(x, "rocdl") else str(x)
)
def test_wmma(row, arch: str, signs: tuple) -> None:
    words = [str(s).lower() for s in signs]
    attrs = f"<{{signA = {words[0]}, signB = {words[1]}}}>" if row.acc == "i32" else ""
    result = run_tile(row, arch, wmma_ab(row), wmma_ab(row), wmma_c(row), attrs, (not signs[0], not signs[1]))
    check(*result, row.acc)


FORMAT = {"fp8": "fp8_e4m3", "bf8": "fp8_e5m2", "fp6": "fp6_e2m3", "bf6": "fp6_e3m2", "fp4": "fp4_e2m1"}


@pytest.mark.parametrize(
    "row",
    [r for r in matrix_rows.MFMA_SCALE_ROWS if r.b in ("fp8", "fp4") or r.a == r.b],
    ids=lambda r: f"{r.m}-{r.a}-{r.b}",
)
@pytest.mark.parametrize("opsel", (0, 2))
def test_scaled_mfma(row, opsel: int) -> None:
    rng = np.random.default_rng(4)
    scales = [rng.integers(120, 134, (64, 4)).astype(np.uint8) for _ in range(2)]
    attrs = (f"<{{cbsz = #rocdl<matrix_format {FORMAT[row.a]}>, blgp = #rocdl<matrix_format {FORMAT[row.b]}>, "
             f"opselA = {opsel} : i32, opselB = {opsel} : i32}}>")  # fmt: skip
    result, va, vb, c = run_tile(
        row,
        "gfx950",
        scaled_ab(row.m, row.k, row.a),
        scaled_ab(row.n, row.k, row.b),
        mfma_c(row.m, row.n, 1, False),
        attrs,
        scale=scales,
    )
    for values, rows, s in ((va, row.m, scales[0]), (vb, row.n, scales[1])):
        for lane in range(64):  # lane l: the scale of row l mod rows for the 32 k from 32 * (l div rows) on
            k0 = lane // rows * 32
            values[0, lane % rows, k0 : k0 + 32] *= 2.0 ** (int(s[lane, opsel]) - 127)
    check(result, va, vb, c, "f32")


def test_f32_result_is_the_exact_sum_rounded_once() -> None:
    row = matrix_rows.by_rocdl_name("rocdl.mfma.f32.16x16x16f16", "gfx942")
    attrs = "<{cbsz = 0 : i32, abid = 0 : i32, blgp = #rocdl<mfma_perm_b none>}>"
    result, va, vb, c = run_tile(row, "gfx942", mfma_ab(16, 16, 1), mfma_ab(16, 16, 1), mfma_c(16, 16, 1, False), attrs)
    for i, j in ((0, 0), (3, 7), (15, 15)):
        exact = sum((Fraction(x) * Fraction(y) for x, y in zip(va[0, i], vb[0, j])), Fraction(float(c[0, i, j])))
        assert result[0, i, j] == np.float32(float(exact))


def test_gfx11_half_results_fill_one_half_of_each_register() -> None:
    row = next(r for r in matrix_rows.WMMA_GFX11_ROWS if r.acc == "f16")
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=(16, 16)).astype(np.float16) for _ in range(2))
    lanes = np.arange(32)
    ra, rb = a[lanes % 16], b[lanes % 16]
    c = rng.normal(size=(32, 16)).astype(np.float16)
    for opsel in (0, 1):
        out = np.zeros_like(c)
        text = tile_kernel(row, "gfx1100", f"<{{opsel = {'true' if opsel else 'false'}}}>")
        run(text, "k", 1, 32, np.ascontiguousarray(ra), np.ascontiguousarray(rb), c, out)
        assert (out[:, 1 - opsel :: 2] == c[:, 1 - opsel :: 2]).all()
        for lane in range(32):
            for v in range(8):
                exact = a[2 * v + lane // 16].astype(float) @ b[lane % 16].astype(float) + float(c[lane, 2 * v + opsel])
                assert abs(float(out[lane, 2 * v + opsel]) - exact) < 0.02


def test_unscaled_when_both_scales_are_constant_zero() -> None:
    row = next(r for r in matrix_rows.MFMA_SCALE_ROWS if (r.m, r.a, r.b) == (16, "fp8", "fp8"))
    zero = "%x = arith.constant 0 : i32\n%y = arith.constant 0 : i32"
    attrs = "<{cbsz = #rocdl<matrix_format fp8_e4m3>, blgp = #rocdl<matrix_format fp8_e4m3>, opselA = 0 : i32, opselB = 0 : i32}>"
    text = tile_kernel(row, "gfx950", attrs, True)
    start = text.index("%px =")
    end = text.index("%d =")
    text = text[:start] + zero + "\n" + text[end:]
    rng = np.random.default_rng(1)
    codes = rng.normal(size=(2, 64, 32)).astype(ml_dtypes.float8_e4m3fn)
    c, out, e = np.zeros((64, 4), np.float32), np.zeros((64, 4), np.float32), np.zeros(64, np.int32)
    run(text, "k", 1, 64, codes[0].view(np.uint8), codes[1].view(np.uint8), c, out, e, e)
    va, vb = (x.astype(np.float64).reshape(4, 16, 32).transpose(1, 0, 2).reshape(16, 128) for x in codes)
    want = va @ vb.T
    got = np.array([[out[i // 4 * 16 + j, i % 4] for j in range(16)] for i in range(16)])
    assert np.abs(got - want).max() < 1e-3

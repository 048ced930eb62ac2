"""Broadcasts of A (cbsz, abid), permutations of B (blgp) and sparse A (v_smfmac) in the simulator.

The reference is written from section 7 of the CDNA3 instruction set: matrices are gathered lane by lane and multiplied
in float64. B of gfx950's sparse forms with twice the k: Composable Kernel (ck_tile/core/arch/mma/sparse, kBKNumAccess = 2).
"""

import ml_dtypes
import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.ir import current, emit1, parse_type
from flydsl.utils import env

LANES = 64
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32}
FP8 = {
    "gfx942": {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
    "gfx950": {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2},
}
# name: (rows, k, blocks, kind, register types of A and B, of C)
DENSE = {
    "mfma_f32_32x32x1f32": (32, 1, 2, "f32", "f32", "vector<32xf32>"),
    "mfma_f32_16x16x1f32": (16, 1, 4, "f32", "f32", "vector<16xf32>"),
    "mfma_f32_4x4x1f32": (4, 1, 16, "f32", "f32", "vector<4xf32>"),
    "mfma_f32_32x32x4f16": (32, 4, 2, "f16", "vector<4xf16>", "vector<32xf32>"),
    "mfma_f32_16x16x4f16": (16, 4, 4, "f16", "vector<4xf16>", "vector<16xf32>"),
    "mfma_f32_4x4x4bf16_1k": (4, 4, 16, "bf16", "vector<4xi16>", "vector<4xf32>"),
    "mfma_i32_16x16x4i8": (16, 4, 4, "i8", "i32", "vector<16xi32>"),
    "mfma_i32_4x4x4i8": (4, 4, 16, "i8", "i32", "vector<4xi32>"),
    "mfma_f32_32x32x2f32": (32, 2, 1, "f32", "f32", "vector<16xf32>"),
    "mfma_f32_16x16x4f32": (16, 4, 1, "f32", "f32", "vector<4xf32>"),
}


def register_value(tensor, count, lane, text):
    """Return a lane's bytes as a raw value of the register type."""
    values = fx.make_view(fx.add_offset(tensor.iter, lane * count), fx.make_layout(count, 1)).load()
    type_ = parse_type(text, current().context)
    if text.startswith("vector"):
        return emit1("vector.bitcast", type_, (values.ir_value(),))
    one = emit1("vector.bitcast", parse_type(f"vector<1x{text}>", current().context), (values.ir_value(),))
    return fx.Vector(one)[0].ir_value()


@flyc.kernel
def raw_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    D: fx.Tensor,
    index: fx.Tensor,
    name: fx.Constexpr[str],
    types: fx.Constexpr[tuple],
    sizes: fx.Constexpr[tuple],
    controls: fx.Constexpr[tuple],
):
    lane = fx.thread_idx.x
    a, b, c = (register_value(t, n, lane, text) for t, n, text in zip((A, B, C), sizes, types))
    result = parse_type(types[2], current().context)
    extra = [index[lane].ir_value()] if fx.const_expr(name.startswith("smfmac")) else []
    d = getattr(fx.rocdl, name)(result, [a, b, c, *extra, *controls])
    out = fx.Vector(getattr(d, "ir_value", lambda: d)()).bitcast(fx.Uint8)
    fx.make_view(fx.add_offset(D.iter, lane * sizes[2]), fx.make_layout(sizes[2], 1)).store(out)


@flyc.jit
def launch(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, index: fx.Tensor, name: fx.Constexpr[str],
    types: fx.Constexpr[tuple], sizes: fx.Constexpr[tuple], controls: fx.Constexpr[tuple],
):  # fmt: skip
    raw_kernel(A, B, C, D, index, name, types, sizes, controls).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def run(name, types, a, b, c, controls, index=None, arch="gfx942"):
    """Return D's registers (lane, item) of registers given as arrays (lane, item)."""
    regs = [np.ascontiguousarray(x).view(np.uint8).reshape(LANES, -1) for x in (a, b, c)]
    d = np.zeros_like(regs[2])
    index = np.zeros(LANES, np.int32) if index is None else index
    sizes = tuple(r.shape[1] for r in regs)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(*(r.reshape(-1) for r in regs), d.reshape(-1), index, name, types, sizes, controls)
    return d.view(c.dtype).reshape(c.shape)


def random_registers(rng, kind, count, arch="gfx942"):
    if kind == "i8":
        return rng.integers(-128, 128, (LANES, count), dtype=np.int8)
    dtype = FP8[arch].get(kind) or NUMPY[kind]
    return rng.standard_normal((LANES, count)).astype(np.float32).astype(dtype)


# --- the manual's maps ------------------------------------------------------------------------------------------------


def operand(registers, rows, k, blocks):
    """Return (block, row, k): lanes count rows, then blocks, then groups of k."""
    out = np.zeros((blocks, rows, k))
    for lane in range(LANES):
        group, per = lane // (rows * blocks), registers.shape[1]
        for v in range(per):
            out[lane // rows % blocks, lane % rows, group * per + v] = registers[lane, v].astype(np.float64)
    return out


def operand_in_two_runs(registers, rows, k):
    """Return (1, row, k) of B of gfx950's sparse forms: the first half of a lane's registers is a run, the rest one k / 2 later."""
    out = np.zeros((1, rows, k))
    run = registers.shape[1] // 2
    for lane in range(LANES):
        for v in range(2 * run):
            out[0, lane % rows, k // 2 * (v // run) + run * (lane // rows) + v % run] = registers[lane, v].astype(np.float64)
    return out


def accumulator(registers, rows, blocks):
    """Return (block, row, column) of C or D."""
    out = np.zeros((blocks, rows, rows), registers.dtype)
    for lane in range(LANES):
        for v in range(registers.shape[1]):
            if rows == 4:
                out[lane // 4, v, lane % 4] = registers[lane, v]
            else:
                per_block = rows * rows // LANES
                block, r = divmod(v, per_block)
                out[block, 4 * (LANES // rows) * (r // 4) + 4 * (lane // rows) + r % 4, lane % rows] = registers[
                    lane, v
                ]
    return out


def lanes_of_pattern(blgp):
    """Return the lane whose B registers each lane uses."""
    lane = np.arange(LANES)
    return {
        0: lane, 1: lane % 32, 2: 32 + lane % 32, 3: (lane + 16) % 64, 4: lane % 16, 5: 16 + lane % 16,
        6: 32 + lane % 16, 7: 48 + lane % 16,
    }[blgp]  # fmt: skip


def check(name, got, a, b, c, k):
    expected = a @ b.swapaxes(-1, -2) + c
    if got.dtype == np.int32:
        np.testing.assert_array_equal(got, expected.astype(np.int64).astype(np.int32))
    else:
        bound = (np.abs(a) @ np.abs(b.swapaxes(-1, -2)) + np.abs(c)) * 2.0**-23 * (k + 2)
        assert (np.abs(got - expected) <= bound).all(), name


def dense(name, cbsz, abid, blgp):
    rows, k, blocks, kind, reg, acc = DENSE[name]
    rng = np.random.default_rng(rows + 10 * blgp + 100 * cbsz + abid)
    count = k * rows * blocks // LANES
    a, b = random_registers(rng, kind, count), random_registers(rng, kind, count)
    c = rng.integers(-99, 99, (LANES, rows * rows * blocks // LANES)).astype(NUMPY["i32" if kind == "i8" else "f32"])
    got = accumulator(run(name, (reg, reg, acc), a, b, c, (cbsz, abid, blgp)), rows, blocks)
    A = operand(a, rows, k, blocks)
    source = [(block >> cbsz << cbsz) + abid for block in range(blocks)]
    B = operand(b[lanes_of_pattern(blgp)], rows, k, blocks)
    check(name, got, A[source], B, accumulator(c, rows, blocks), k)


BROADCASTS = [
    (name, cbsz, abid)
    for name, (_, _, blocks, *_) in DENSE.items()
    for cbsz in range(1, blocks.bit_length())
    for abid in {0, 1, (1 << cbsz) - 1}
]


@pytest.mark.parametrize("name, cbsz, abid", BROADCASTS)
def test_broadcasts_of_a(name, cbsz, abid):
    dense(name, cbsz, abid, 0)


@pytest.mark.parametrize("blgp", range(1, 8))
@pytest.mark.parametrize("name", DENSE)
def test_permutations_of_b(name, blgp):
    dense(name, 0, 0, blgp)


def test_both_at_once():
    dense("mfma_f32_16x16x4f16", 2, 3, 3)
    dense("mfma_f32_4x4x1f32", 3, 5, 6)


@pytest.mark.parametrize(
    "name, controls",
    [
        ("mfma_f32_16x16x1f32", (3, 0, 0)),
        ("mfma_f32_16x16x1f32", (1, 2, 0)),
        ("mfma_f32_32x32x2f32", (1, 0, 0)),
    ],
)
def test_controls_that_a_form_lacks_are_refused(name, controls):
    with pytest.raises(Exception, match="cbsz is at most"):
        dense(name, *controls)


# --- sparse A ---------------------------------------------------------------------------------------------------------

# kind: (MLIR register of A, of B) on gfx942; the forms of gfx950 have twice the k and twice the registers
SPARSE = [
    ("gfx942", f"smfmac_f32_{m}x{m}x{k}_{kind}", m, k, kind, kind, a, b)
    for m, k in ((16, 32), (32, 16))
    for kind, a, b in (("f16", "vector<4xf16>", "vector<8xf16>"), ("bf16", "vector<4xi16>", "vector<8xi16>"))
] + [
    ("gfx942", f"smfmac_{acc}_{m}x{m}x{k}_{tail}", m, k, x, y, "vector<2xi32>", "vector<4xi32>")
    for m, k in ((16, 64), (32, 32))
    for acc, tail, x, y in (("i32", "i8", "i8", "i8"), ("f32", "fp8_fp8", "fp8", "fp8"), ("f32", "bf8_fp8", "bf8", "fp8"),
                            ("f32", "fp8_bf8", "fp8", "bf8"), ("f32", "bf8_bf8", "bf8", "bf8"))
] + [
    ("gfx950", f"smfmac_f32_{m}x{m}x{k}_{kind}", m, k, kind, kind, f"vector<8x{kind}>", f"vector<16x{kind}>")
    for m, k in ((16, 64), (32, 32))
    for kind in ("f16", "bf16")
] + [
    ("gfx950", f"smfmac_{acc}_{m}x{m}x{k}_{tail}", m, k, x, y, "vector<4xi32>", "vector<8xi32>")
    for m, k in ((16, 128), (32, 64))
    for acc, tail, x, y in (("i32", "i8", "i8", "i8"), ("f32", "fp8_bf8", "fp8", "bf8"))
]  # fmt: skip


def expanded(a, index, k_per_lane, first):
    """Return A's registers with zeros: element i of a lane stands at the place that its two index bits name."""
    out = np.zeros((LANES, k_per_lane))
    for lane in range(LANES):
        for i in range(a.shape[1]):
            place = (int(np.uint32(index[lane])) >> (first + 2 * i)) & 3
            out[lane, 4 * (i // 2) + place] += float(a[lane, i])
    return out


@pytest.mark.parametrize("cbsz, abid", [(0, 0), (0, 1), (0, 3), (1, 1)])
@pytest.mark.parametrize("case", SPARSE, ids=lambda c: f"{c[0]}-{c[1]}")
def test_sparse_a(case, cbsz, abid):
    arch, name, m, k, kind_a, kind_b, reg_a, reg_b = case
    per_lane = k * m // LANES
    sets = max(1, 32 // per_lane)
    rng = np.random.default_rng(m + abid)
    a = random_registers(rng, kind_a, per_lane // 2, arch)
    b = random_registers(rng, kind_b, per_lane, arch)
    integer = kind_a == "i8"
    c = rng.integers(-99, 99, (LANES, m * m // LANES)).astype(np.int32 if integer else np.float32)
    pairs = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])  # (0,1) (0,2) (0,3) (1,2) (1,3) (2,3)
    nibbles = rng.choice(pairs, (LANES, 8)).astype(np.uint64)
    index = (nibbles << (4 * np.arange(8, dtype=np.uint64))).sum(axis=1).astype(np.uint32).view(np.int32)
    acc = f"vector<{m * m // LANES}x{'i32' if integer else 'f32'}>"
    got = accumulator(run(name, (reg_a, reg_b, acc), a, b, c, (cbsz, abid), index, arch), m, 1)
    first = 0 if cbsz else per_lane * (abid % sets)
    A = operand(expanded(a, index, per_lane, first), m, k, 1)
    B = operand_in_two_runs(b, m, k) if arch == "gfx950" else operand(b, m, k, 1)
    check(name, got, A, B, accumulator(c, m, 1), k)


def test_an_index_that_is_ignored_would_be_noticed():
    """The same registers with another index give another product."""
    rng = np.random.default_rng(5)
    a, b = random_registers(rng, "f16", 4), random_registers(rng, "f16", 8)
    c = np.zeros((LANES, 4), np.float32)
    types = ("vector<4xf16>", "vector<8xf16>", "vector<4xf32>")
    index = [np.full(LANES, word, np.int32) for word in (0x44, 0xEE)]
    first, second = (run("smfmac_f32_16x16x32_f16", types, a, b, c, (0, 0), i) for i in index)
    assert not np.array_equal(first, second)

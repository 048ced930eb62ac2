"""Lane exchange of `fx.rocdl` and `fx.gpu`, name by name, against per-lane formulas of the ISA manuals."""

import numpy as np
import pytest
from named import CDNA, CHIPS, WAVE, Case, by_wave, check, launched, same, table

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr import gpu
from flydsl.expr.typing import T

R = fx.rocdl
LANES = 128
TWO = ("gfx942", "gfx1201")
RNG = np.random.default_rng(11)
X = RNG.integers(-(1 << 31), 1 << 31, LANES).astype(np.int32)
X[:8] = (0, -1, 1, -(1 << 31), (1 << 31) - 1, 5, -5, 42)
Y = np.roll(X, 17) ^ 0x5A5A
WIDE = RNG.integers(-(1 << 63), 1 << 63, LANES, np.int64)
FLOATS = np.float32(RNG.standard_normal(LANES) * 100)
FLOATS[:8] = (np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-42, -1e-42, 3.4e38)
HALVES = np.clip(FLOATS[::-1], -9e4, 9e4).astype(np.float16)


def put(name):
    """Return a body that stores `name(i, inputs...)` at out[i]."""

    def body(i, *tensors):
        tensors[-1][i] = name(i, *(t[i] for t in tensors[:-1]))

    return body


# --- readfirstlane, readlane, ballot ----------------------------------------------------------------------------------


@flyc.jit
def first_of_some(i, x, out):
    """Only lanes with x % 3 == 1 take part."""
    out[i] = fx.Int32(7)
    if x[i] % 3 == 1:
        out[i] = R.readfirstlane(fx.Int32, x[i])


@flyc.jit
def lane_of_some(i, x, out):
    mine = x[i]
    out[i] = fx.Int32(7)
    if mine % 3 == 1:
        out[i] = R.readlane(fx.Int32, mine, 9)


@flyc.jit
def ballot_of_some(i, x, out):
    out[i] = fx.Int64(-7)
    if x[i] % 3 == 1:
        out[i] = fx.Int64(R.ballot(T.i64, x[i] < 0))


def participants(w):
    return [v for v in w if np.fmod(v, 3) == 1]


def mask_of(bits):
    return sum(1 << k for k, bit in enumerate(bits) if bit)


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


READS = [
    Case("readfirstlane", put(lambda i, x: R.readfirstlane(fx.Int32, x)), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[0], n, x)), "v_readfirstlane_b32"),
    Case("readfirstlane of an IR type and keywords", put(lambda i, x: fx.Int32(R.readfirstlane(res=T.i32, src=x.ir_value()))), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[0], n, x)), tried=TWO),
    Case("readfirstlane of floats", put(lambda i, x: R.readfirstlane(fx.Float32, x)), (np.roll(FLOATS, -3),),
         lambda n, x: np.array(by_wave(lambda k, w: w[0], n, x), np.float32), tried=TWO),
    Case("readfirstlane of 64 bits", put(lambda i, x: R.readfirstlane(fx.Int64, x)), (WIDE,),
         lambda n, x: np.array(by_wave(lambda k, w: w[0], n, x)), r"v_readfirstlane_b32[\s\S]*v_readfirstlane_b32"),
    Case("readfirstlane of halves", put(lambda i, x: R.readfirstlane(fx.Float16, x)), (HALVES,),
         lambda n, x: np.array(by_wave(lambda k, w: w[0], n, x), np.float16), tried=TWO),
    Case("readfirstlane in a branch", first_of_some, (X,), lambda n, x: np.array(
        by_wave(lambda k, w: participants(w)[0] if np.fmod(w[k], 3) == 1 else 7, n, x), np.int32)),
    Case("readlane", put(lambda i, x: R.readlane(fx.Int32, x, 31)), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[31], n, x)), "v_readlane_b32"),
    Case("readlane of a uniform lane", put(lambda i, x: R.readlane(fx.Int32, x, fx.block_idx.x + 3)), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[3], n, x)), "v_readlane_b32"),
    Case("readlane of an IR type and keywords", put(lambda i, x: fx.Float32(R.readlane(T.f32, src=x, lane=fx.Int64(2)))), (FLOATS,),
         lambda n, x: np.array(by_wave(lambda k, w: w[2], n, x), np.float32), tried=TWO),
    Case("readlane of an inactive lane", lane_of_some, (X,), lambda n, x: np.array(
        by_wave(lambda k, w: w[9] if np.fmod(w[k], 3) == 1 else 7, n, x), np.int32)),
    Case("ballot of 64", put(lambda i, x: fx.Int64(R.ballot(T.i64, x < 0))), (X,), lambda n, x: np.array(
        by_wave(lambda k, w: signed(mask_of(w < 0), 64), n, x), np.int64)),
    Case("ballot of a class", put(lambda i, x: R.ballot(fx.Int64, pred=x)), (X,), lambda n, x: np.array(
        by_wave(lambda k, w: signed(mask_of(w != 0), 64), n, x), np.int64), tried=TWO),
    Case("ballot in a branch", ballot_of_some, (X,), lambda n, x: np.array(
        by_wave(lambda k, w: signed(mask_of((w < 0) & (np.fmod(w, 3) == 1)), 64) if np.fmod(w[k], 3) == 1 else -7, n, x), np.int64)),
    Case("ballot of 32", put(lambda i, x: R.ballot(fx.Int32, x < 0)), (X,), lambda n, x: np.array(
        by_wave(lambda k, w: signed(mask_of(w < 0), 32), n, x), np.int32), chips=("gfx1100", "gfx1201", "gfx1250")),
]  # fmt: skip


@table(READS)
def test_reads(case, arch):
    check(case, arch)


# --- ds_bpermute --------------------------------------------------------------------------------------------------------


@flyc.jit
def permuted_in_a_branch(i, at, x, out):
    out[i] = fx.Int32(7)
    if i % 2 == 0:
        out[i] = R.ds_bpermute(fx.Int32, at[i], x[i])


AT = (RNG.integers(0, 64, LANES) * 4).astype(np.int32)
AT[:6] = (-4, 256, 3, 1 << 30, -1, 252)  # taken modulo the wave, low two bits ignored


def permuted(n, at, x):
    return np.array(by_wave(lambda k, a, w: w[(int(a[k]) >> 2) % n], n, at, x), x.dtype)


PERMUTES = [
    Case("ds_bpermute", put(lambda i, at, x: R.ds_bpermute(fx.Int32, at, x)), (AT, X), permuted, "ds_bpermute_b32"),
    Case("ds_bpermute by keyword", put(lambda i, at, x: fx.Int32(R.ds_bpermute(res=T.i32, index=at.ir_value(), src=x.ir_value()))),
         (AT, X), permuted, tried=TWO),
    Case("ds_bpermute of floats", put(lambda i, at, x: R.ds_bpermute(fx.Float32, at, x)), (AT, FLOATS), permuted, tried=TWO),
    Case("ds_bpermute of halves", put(lambda i, at, x: R.ds_bpermute(fx.Float16, at, x)), (AT, HALVES), permuted),
    Case("ds_bpermute of 64 bits", put(lambda i, at, x: R.ds_bpermute(fx.Int64, at, x)), (AT, WIDE), permuted,
         r"ds_bpermute_b32[\s\S]*ds_bpermute_b32"),
    Case("ds_bpermute from a Python int", put(lambda i, x: R.ds_bpermute(fx.Int32, 20, x)), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[5], n, x)), tried=TWO),
    Case("ds_bpermute in a branch", permuted_in_a_branch, (AT, X), lambda n, at, x: np.array(
        by_wave(lambda k, a, w: 7 if k % 2 else (0 if (int(a[k]) >> 2) % 2 else w[(int(a[k]) >> 2) % n]), n, at, x), np.int32)),
]  # fmt: skip


@table(PERMUTES)
def test_ds_bpermute(case, arch):
    check(case, arch)


# --- DPP ------------------------------------------------------------------------------------------------------------------

ROWS = {
    0x00: ("quad_perm:[0,0,0,0]", lambda k: k & ~3),
    0x4E: ("quad_perm:[2,3,0,1]", lambda k: k ^ 2),
    0xB1: ("quad_perm:[1,0,3,2]", lambda k: k ^ 1),
    0xFF: ("quad_perm:[3,3,3,3]", lambda k: k | 3),
    0x101: ("row_shl:1", lambda k: k + 1 if k % 16 < 15 else None),
    0x10F: ("row_shl:15", lambda k: k + 15 if k % 16 < 1 else None),
    0x111: ("row_shr:1", lambda k: k - 1 if k % 16 else None),
    0x118: ("row_shr:8", lambda k: k - 8 if k % 16 >= 8 else None),
    0x124: ("row_ror:4", lambda k: (k & ~15) + (k - 4) % 16),
    0x12F: ("row_ror:15", lambda k: (k & ~15) + (k + 1) % 16),
    0x140: ("row_mirror", lambda k: k ^ 15),
    0x141: ("row_half_mirror", lambda k: k ^ 7),
}
CDNA_ROWS = {
    0x130: ("wave_shl:1", lambda k: k + 1 if k < 63 else None),
    0x134: ("wave_rol:1", lambda k: (k + 1) % 64),
    0x138: ("wave_shr:1", lambda k: k - 1 if k else None),
    0x13C: ("wave_ror:1", lambda k: (k - 1) % 64),
    0x142: ("row_bcast:15", lambda k: (k & ~15) - 1 if k >= 16 else None),
    0x143: ("row_bcast:31", lambda k: 31 if k >= 32 else None),
}
RDNA_ROWS = {
    0x150: ("row_share:0", lambda k: k & ~15),
    0x15B: ("row_share:11", lambda k: (k & ~15) + 11),
    0x161: ("row_xmask:1", lambda k: k ^ 1),
    0x16F: ("row_xmask:15", lambda k: k ^ 15),
}


def dpp_case(ctrl, text, source, chips, rows=0xF, banks=0xF, bound=False, tried=CHIPS):
    def one(k, w, old):
        if not (rows >> k // 16 % 4 & 1 and banks >> k % 16 // 4 & 1):
            return old[k]
        src = source(k)
        return w[src] if src is not None else (0 if bound else old[k])

    return Case(
        f"update_dpp {ctrl:#x} {rows:#x} {banks:#x} {bound}",
        put(lambda i, x, y: R.update_dpp(fx.Int32, y, x, ctrl, rows, banks, bound)),
        (X, Y),
        lambda n, x, y: np.array(by_wave(one, n, x, y), np.int32),
        text.replace("[", r"\[").replace("]", r"\]"),
        chips,
        tried=tried,
    )


RDNA = tuple(c for c in CHIPS if c not in CDNA)
DPP = [
    dpp_case(ctrl, text, source, chips, tried=CHIPS if ctrl in (0x00, 0x10F, 0x142, 0x15B) else (chips[0], chips[-2]))
    for codes, chips in ((ROWS, CHIPS), (CDNA_ROWS, CDNA), (RDNA_ROWS, RDNA))
    for ctrl, (text, source) in codes.items()
] + [
    dpp_case(0x111, "row_shr:1", ROWS[0x111][1], CHIPS, rows, banks, bound, ("gfx942", "gfx1201"))
    for rows, banks, bound in ((0xF, 0xF, True), (0xA, 0xF, False), (0xF, 0x5, True), (0x6, 0x3, False))
]  # fmt: skip


@table(DPP)
def test_update_dpp(case, arch):
    check(case, arch)


@flyc.jit
def dpp_of_some(i, x, y, out):
    out[i] = y[i]
    if i % 4 != 1:
        out[i] = R.update_dpp(fx.Int32, y[i], x[i], 0xB1, 0xF, 0xF, False)


FORMS = [
    Case("update_dpp of raw values", put(lambda i, x, y: fx.Int32(
        R.update_dpp(T.i32, y.ir_value(), x.ir_value(), fx.Int32(0xB1), 0xF, 0xF, fx.Boolean(True)))), (X, Y),
        lambda n, x, y: np.array(by_wave(lambda k, w, v: w[k ^ 1], n, x, y)), tried=TWO),
    Case("update_dpp by keyword", put(lambda i, x, y: R.update_dpp(
        fx.Int32, old=y, src=x, dpp_ctrl=0x140, row_mask=15, bank_mask=15, bound_ctrl=True)), (X, Y),
        lambda n, x, y: np.array(by_wave(lambda k, w, v: w[k ^ 15], n, x, y)), tried=TWO),
    Case("update_dpp of floats", put(lambda i, x: R.update_dpp(fx.Float32, fx.Float32(1.5), x, 0x111, 0xF, 0xF, False)), (FLOATS,),
         lambda n, x: np.array(by_wave(lambda k, w: w[k - 1] if k % 16 else np.float32(1.5), n, x), np.float32)),
    Case("update_dpp of a Python int", put(lambda i, x: R.update_dpp(fx.Int32, 0, x, 0x111, 0xF, 0xF, False)), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[k - 1] if k % 16 else 0, n, x), np.int32), tried=TWO),
    Case("update_dpp in a branch", dpp_of_some, (X, Y), lambda n, x, y: np.array(
        by_wave(lambda k, w, v: v[k] if k % 4 in (0, 1) else w[k ^ 1], n, x, y), np.int32)),
]  # fmt: skip


@table(FORMS)
def test_update_dpp_forms(case, arch):
    check(case, arch)


# --- swaps, byte permutes, shuffles -------------------------------------------------------------------------------------------


def swap(half):
    def body(i, x, y, out):
        pair = getattr(R, f"permlane{half}_swap")(T.i32 if half == 0 else PAIR(), x[i], y[i], False, False)
        out[i * 2] = fx.Int32(element(pair, 0))
        out[i * 2 + 1] = fx.Int32(element(pair, 1))

    return body


def PAIR():
    from flydsl._mlir import ir

    return ir.Type.parse("!llvm.struct<(i32, i32)>")


def element(pair, k):
    from flydsl._mlir.dialects import llvm

    return llvm.extractvalue(T.i32, pair, [k])


def swapped(half):
    """The odd groups of `half` lanes of the first operand change places with the even groups of the second."""

    def want(n, x, y):
        first = by_wave(lambda k, w, v: v[k - half] if k & half else w[k], n, x, y)
        second = by_wave(lambda k, w, v: v[k] if k & half else w[k + half], n, x, y)
        return np.stack([first, second], axis=1).astype(np.int32).reshape(-1)

    return want


def perm(hi, lo, sel):
    out = []
    for h, low, s in zip(hi.view(np.uint32).tolist(), lo.view(np.uint32).tolist(), sel.view(np.uint32).tolist()):
        data = (h << 32 | low).to_bytes(8, "little")
        picks = s.to_bytes(4, "little")
        fill = {8: 1, 9: 3, 10: 5, 11: 7}
        chosen = [data[p] if p < 8 else (0xFF if data[fill[p]] & 0x80 else 0) if p < 12 else 0 if p == 12 else 0xFF for p in picks]
        out.append(int.from_bytes(bytes(chosen), "little"))
    return np.array(out, np.uint32).view(np.int32)


SELECTORS = RNG.integers(0, 14, (LANES, 4)).astype(np.uint8).view(np.int32)[:, 0]
SELECTORS[0] = np.int32(-1)
SWAPS = [
    Case("permlane32_swap", swap(32), (X, Y), swapped(32), "v_permlane32_swap_b32", ("gfx950",)),
    Case("permlane16_swap", swap(16), (X, Y), swapped(16), r"v_permlane16_swap_b32", ("gfx950", "gfx1250")),
    Case("perm_b32", put(lambda i, x, y, s: R.perm_b32(x, y, s)), (X, Y, SELECTORS), lambda n, x, y, s: perm(x, y, s), "v_perm_b32"),
    Case("perm_b32 by keyword and constants", put(lambda i, x: R.perm_b32(src_hi=x, src_lo=0x11223344, sel=0x0C070300)), (X,),
         lambda n, x: perm(x, np.full_like(x, 0x11223344), np.full_like(x, 0x0C070300)), "v_perm_b32"),
]  # fmt: skip


@table(SWAPS)
def test_swaps_and_byte_permutes(case, arch):
    check(case, arch)


OFFSETS = (np.arange(LANES) * 5 % 67).astype(np.int32)


def shuffled(mode, width):
    def want(n, x, k):
        def one(lane, w, o):
            first, off = lane - lane % width, int(o[lane])
            src = {"xor": lane ^ off, "up": lane - off, "down": lane + off, "idx": first + off % width}[mode]
            return w[src] if first <= src < first + width else w[lane]

        return np.array(by_wave(one, n, x, k), x.dtype)

    return want


def in_a_branch(mode):
    @flyc.jit
    def body(i, x, k, out):
        value, offset = x[i], k[i]
        out[i] = fx.Int32(7)
        if i % 3 != 0:
            out[i] = gpu.shuffle(value, offset, 32, mode)

    return body


def shuffled_in_a_branch(mode):
    def want(n, x, k):
        active = np.arange(LANES) % 3 != 0

        def one(lane, w, o, a):
            first, off = lane - lane % 32, int(o[lane])
            src = {"xor": lane ^ off, "up": lane - off, "down": lane + off, "idx": first + off % 32}[mode]
            src = src if first <= src < first + 32 else lane
            if not a[lane]:
                return 7
            return w[src] if a[src] else w[lane] if mode in ("up", "down") else 0

        return np.array(by_wave(one, n, x, k, active), np.int32)

    return want


SHUFFLES = [
    Case(f"shuffle {mode} {width} {x.dtype}", put(lambda i, x, k, mode=mode, width=width: gpu.shuffle(x, k, width, mode)), (x, OFFSETS % width),
         shuffled(mode, width), tried=TWO)
    for mode in ("xor", "up", "down", "idx")
    for width, x in ((32, FLOATS), (8, X))
] + [
    Case(f"shuffle_{mode}", put(lambda i, x, k, mode=mode: getattr(gpu, f"shuffle_{mode}")(x, fx.Int32(3), 16)), (x, OFFSETS),
         lambda n, x, k, mode=mode: shuffled(mode, 16)(n, x, np.full_like(k, 3)), tried=TWO)
    for mode, x in (("xor", HALVES), ("up", WIDE), ("down", X.astype(np.int8)), ("idx", FLOATS.astype(np.float64)))
] + [
    Case(f"shuffle {mode} in a branch", in_a_branch(mode), (X, OFFSETS % 32), shuffled_in_a_branch(mode))
    for mode in ("xor", "up", "down", "idx")
] + [
    Case("shuffle default mode and keywords", put(lambda i, x: gpu.shuffle(value=x, offset=1, width=32)), (X,),
         lambda n, x: np.array(by_wave(lambda k, w: w[k ^ 1], n, x)), tried=TWO),
]  # fmt: skip


@table(SHUFFLES)
def test_shuffles(case, arch):
    check(case, arch)


# --- geometry -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", CHIPS)
def test_geometry(arch):
    """Every name of the execution geometry, in a grid of three dimensions."""
    case = Case("geometry", None, (), None)
    seen = {}

    @flyc.kernel(known_block_size=(16, 4, 2))
    def kernel(out: fx.Tensor):
        seen["block"], seen["wave"] = gpu.known_block_size(), gpu.num_warp_threads()
        t, b, n, g = fx.thread_idx, fx.block_idx, gpu.block_dim, gpu.grid_dim
        thread = t.x + n.x * (t.y + n.y * t.z)
        block = b.x + g.x * (b.y + g.y * b.z)
        words = [t.x, t.y, t.z, b.x, b.y, b.z, n.x, n.y, n.z, g.x, g.y, g.z, gpu.lane_id(), fx.Int32(gpu.thread_id("x")),
                 fx.Int32(gpu.thread_id("y")), fx.Int32(gpu.block_id("x")), fx.Int32(gpu.block_id("z"))]  # fmt: skip
        for k, word in enumerate(words):
            assert isinstance(word, fx.Int32)
            out[(block * 128 + thread) * 17 + k] = word

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(2, 3, 2), block=(16, 4, 2))

    out = np.zeros((2, 3, 2, 2, 4, 16, 17), np.int32)
    from flydsl.utils import env

    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        launch(out.reshape(-1))
    bz, by, bx, tz, ty, tx = np.indices(out.shape[:-1])
    lane = (tx + 16 * ty + 64 * tz) % WAVE[arch]
    n, g = (16, 4, 2), (2, 3, 2)
    want = [tx, ty, tz, bx, by, bz, *(np.full_like(tx, v) for v in n + g), lane, tx, ty, bx, bz]
    assert case.threads == 128 and seen == {"block": n, "wave": WAVE[arch]}
    for k, expected in enumerate(want):
        assert np.array_equal(out[..., k], expected), k


WAVE_ID = Case(
    "wave_id", put(lambda i, x: R.wave_id() + x * 0), (X,), lambda n, x: (np.arange(LANES) // n).astype(np.int32),
    "ttmp8", ("gfx1201", "gfx1250"), not_emulated="the launch leaves ttmp8 unset",
)  # fmt: skip


@table([WAVE_ID])
def test_wave_id(case, arch):
    check(case, arch)


# --- wrong uses -----------------------------------------------------------------------------------------------------------

WRONG = {
    "a lane that is no lane": (lambda x: R.readlane(fx.Int32, x, "3"), "lane"),
    "no value": (lambda x: R.readfirstlane(fx.Int32), "src"),
    "no type": (lambda x: R.readfirstlane(x, x), "result type"),
    "another width": (lambda x: R.ds_bpermute(fx.Int64, 0, x), "src"),
    "a run-time control": (lambda x: R.update_dpp(fx.Int32, x, x, x, 15, 15, False), "dpp_ctrl"),
    "no such control": (lambda x: R.update_dpp(fx.Int32, x, x, 0x100, 15, 15, False), "control code"),
    "a row mask of five bits": (lambda x: R.update_dpp(fx.Int32, x, x, 0x111, 31, 15, False), "row_mask"),
    "no such mode": (lambda x: gpu.shuffle(x, 1, 64, "rotate"), "rotate"),
    "an unknown keyword": (lambda x: R.permlane32_swap(PAIR(), x, x, False, bound=False), "bound"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    use, text = WRONG[case]
    with pytest.raises(FlyError, match=text) as caught:
        launched(Case(case, put(lambda i, x: use(x)), (X,), lambda n, x: x), "gfx950")
    assert "test_names_wave.py" in str(caught.value)


def test_comparison_sees_differences():
    """The harness itself: bits, signs of zero and ulps."""
    with pytest.raises(AssertionError):
        same(np.float32([0.0]), np.float32([-0.0]))
    with pytest.raises(AssertionError):
        same(np.float32([1.0]), np.nextafter(np.float32([1.0]), 2) * 2, 1)
    same(np.nextafter(np.float32([1.0]), np.float32(2)), np.float32([1.0]), 1)

CASES = [*READS, *PERMUTES, *DPP, *FORMS, *SWAPS, *SHUFFLES, WAVE_ID]

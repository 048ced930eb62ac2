"""Lane exchange against per-lane formulas written from the ISA text."""

import numpy as np
import pytest
from launching import apply

ARCHES = {"gfx942": 64, "gfx1100": 32}
X = np.random.default_rng(1).integers(-1000, 1000, 256).astype(np.int32)


def by_wave(fn, size: int, x: np.ndarray = X) -> list:
    """Return fn(lane, values of the wave) for each lane of each wave."""
    return [fn(lane, w) for w in x.reshape(-1, size).tolist() for lane in range(size)]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("k", (1, 2, 4, 7, 8, 16, 31))
def test_shuffle_xor(arch: str, k: int) -> None:
    size = ARCHES[arch]
    ops = f"%o = arith.constant {k} : i32\n%w = arith.constant {size} : i32\n%r, %p = gpu.shuffle xor %x0, %o, %w : i32"
    assert apply(ops, "i32", X, arch=arch).tolist() == by_wave(lambda lane, w: w[lane ^ k], size)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("mode", ("up", "down", "idx", "xor"))
@pytest.mark.parametrize("width", (8, 32))
def test_shuffle_modes_inside_groups(arch: str, mode: str, width: int) -> None:
    size, k = ARCHES[arch], 3
    ops = f"%o = arith.constant {k} : i32\n%w = arith.constant {width} : i32\n%r, %p = gpu.shuffle {mode} %x0, %o, %w : i32"

    def one(lane: int, w: list) -> int:
        first = lane - lane % width
        src = {"up": lane - k, "down": lane + k, "idx": first + k, "xor": lane ^ k}[mode]
        return w[src] if first <= src < first + width else w[lane]

    assert apply(ops, "i32", X, arch=arch).tolist() == by_wave(one, size)


@pytest.mark.parametrize("mode", ["xor", "down", "up", "idx"])
def test_inactive_sources(mode: str) -> None:
    """xor and idx give 0, as ds_bpermute and DPP do; up and down the lane's own value."""
    ops = f"""
      %c3 = arith.constant 3 : i32
      %c0 = arith.constant 0 : i32
      %m = arith.andi %tid, %c3 : i32
      %some = arith.cmpi ne, %m, %c0 : i32
      %o = arith.constant {8 if mode == "idx" else 1} : i32
      %w = arith.constant 64 : i32
      %r = scf.if %some -> (i32) {{
        %v, %p = gpu.shuffle {mode} %x0, %o, %w : i32
        scf.yield %v : i32
      }} else {{
        scf.yield %c0 : i32
      }}"""

    def one(lane: int, w: list) -> int:
        src = {"xor": lane ^ 1, "down": lane + 1, "up": lane - 1, "idx": 8}[mode]
        if lane % 4 == 0:
            return 0
        if src % 4 == 0 or src > 63:
            return w[lane] if mode in ("up", "down") else 0
        return w[src]

    assert apply(ops, "i32", X).tolist() == by_wave(one, 64)


DPP = {
    0x1B: lambda i: (i & ~3) + 3 - i % 4,
    0x101: lambda i: i + 1 if i % 16 < 15 else None,
    0x113: lambda i: i - 3 if i % 16 >= 3 else None,
    0x121: lambda i: (i & ~15) + (i - 1) % 16,
    0x138: lambda i: i - 1 if i else None,
    0x13C: lambda i: (i - 1) % 64,
    0x140: lambda i: (i & ~15) + 15 - i % 16,
    0x141: lambda i: (i & ~7) + 7 - i % 8,
    0x142: lambda i: (i & ~15) - 1 if i >= 16 else None,
    0x143: lambda i: 31 if i >= 32 else None,
}


@pytest.mark.parametrize("ctrl", DPP)
@pytest.mark.parametrize("bound", (True, False))
@pytest.mark.parametrize("rows,banks", [(15, 15), (10, 15), (15, 3)])
def test_update_dpp(ctrl: int, bound: bool, rows: int, banks: int) -> None:
    ops = f"%o = arith.constant -5 : i32\n%r = rocdl.update.dpp %o, %x0 with {ctrl}, {rows}, {banks}, {str(bound).lower()} : i32"

    def one(lane: int, w: list) -> int:
        if not (rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1):
            return -5
        src = DPP[ctrl](lane)
        return w[src] if src is not None else (0 if bound else -5)

    assert apply(ops, "i32", X).tolist() == by_wave(one, 64)


@pytest.mark.parametrize("ctrl,src", [(0x153, lambda i: (i & ~15) + 3), (0x165, lambda i: i ^ 5)])
def test_update_dpp_of_rdna(ctrl: int, src) -> None:
    ops = f"%r = rocdl.update.dpp %x0, %x0 with {ctrl}, 15, 15, true : i32"
    assert apply(ops, "i32", X, arch="gfx1100").tolist() == by_wave(lambda lane, w: w[src(lane)], 32)


def test_bpermute_reads_lanes_by_bytes() -> None:
    ops = """
      %c7 = arith.constant 7 : i32
      %c4 = arith.constant 4 : i32
      %a = arith.muli %tid, %c7 : i32
      %b = arith.muli %a, %c4 : i32
      %r = rocdl.ds_bpermute %b, %x0 : (i32, i32) -> i32"""
    assert apply(ops, "i32", X).tolist() == by_wave(lambda lane, w: w[lane * 7 % 64], 64)


@pytest.mark.parametrize("arch", ARCHES)
def test_ballot_and_mbcnt(arch: str) -> None:
    size = ARCHES[arch]
    ops = f"""
      %c0 = arith.constant 0 : i32
      %neg = arith.cmpi slt, %x0, %c0 : i32
      %b = rocdl.ballot %neg : i{size}
      {"%r = arith.trunci %b : i64 to i32" if size == 64 else "%r = arith.addi %b, %c0 : i32"}"""
    got = apply(ops, "i32", X, arch=arch)
    bits = by_wave(lambda _, w: sum(1 << i for i, v in enumerate(w) if v < 0) & 0xFFFFFFFF, size)
    assert got.view(np.uint32).tolist() == bits
    ops = """
      %m = arith.constant -1 : i32
      %c0 = arith.constant 0 : i32
      %lo = rocdl.mbcnt.lo %m, %c0 : (i32, i32) -> i32
      %r = rocdl.mbcnt.hi %m, %lo : (i32, i32) -> i32"""
    assert apply(ops, "i32", X, arch=arch).tolist() == by_wave(lambda lane, _: lane, size)


def test_readfirstlane_under_a_mask() -> None:
    ops = """
      %c0 = arith.constant 0 : i32
      %neg = arith.cmpi slt, %x0, %c0 : i32
      %r = scf.if %neg -> (i32) {
        %f = rocdl.readfirstlane %x0 : i32
        scf.yield %f : i32
      } else {
        scf.yield %c0 : i32
      }"""
    want = by_wave(lambda lane, w: next(v for v in w if v < 0) if w[lane] < 0 else 0, 64)
    assert apply(ops, "i32", X).tolist() == want


def test_readlane() -> None:
    ops = "%l = arith.constant 37 : i32\n%r = rocdl.readlane %x0, %l : (i32, i32) -> i32"
    assert apply(ops, "i32", X).tolist() == by_wave(lambda _, w: w[37], 64)


@pytest.mark.parametrize("half", (16, 32))
def test_permlane_swap(half: int) -> None:
    ops = f"""
      %c = arith.constant 100000 : i32
      %y = arith.addi %x0, %c : i32
      %s = rocdl.permlane{half}.swap %x0, %y, false, false : (i32, i32) -> !llvm.struct<(i32, i32)>
      %r = llvm.extractvalue %s[{{}}] : !llvm.struct<(i32, i32)>"""
    first = by_wave(lambda lane, w: w[lane - half] + 100000 if lane & half else w[lane], 64)
    second = by_wave(lambda lane, w: w[lane] + 100000 if lane & half else w[lane + half], 64)
    assert apply(ops.format(0), "i32", X, arch="gfx950").tolist() == first
    assert apply(ops.format(1), "i32", X, arch="gfx950").tolist() == second


def test_swizzle() -> None:
    ops = f"%o = arith.constant {0x0C << 10 | 1 << 5 | 0x1E} : i32\n%r = rocdl.ds_swizzle %x0, %o : (i32, i32) -> i32"
    want = by_wave(lambda lane, w: w[(lane & 32) + ((lane & 0x1E | 1) ^ 0x0C)], 64)
    assert apply(ops, "i32", X).tolist() == want


def test_byte_permute() -> None:
    y = X[::-1].copy()
    ops = f'%s = arith.constant {0x0C0D0105 - 0} : i32\n%r = llvm.call_intrinsic "llvm.amdgcn.perm"(%x0, %x1, %s) : (i32, i32, i32) -> i32'
    got = apply(ops, "i32", X, y).view(np.uint32)
    hi, lo = X.view(np.uint32), y.view(np.uint32)
    want = (hi >> 8 & 255) | (lo >> 8 & 255) << 8 | np.uint32(0xFF << 16)
    assert (got == want).all()

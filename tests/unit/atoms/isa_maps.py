"""Lane maps written out from the instruction-set manuals: the second source for `flydsl.atoms.lane_maps`.

Nothing here may come from `flydsl`. An entry says which (row or column, k, block) a register element of a lane
is. CDNA: "AMD Instinct MI300 (CDNA3) ISA", section 7.1.4 (data layout of inputs and outputs, with its letters).
RDNA3 ISA section 7.9, RDNA4 ISA section 7.12 (WMMA). gfx1250 has no public manual: its maps follow the
layouts that the reference compiler publishes and are marked so.
"""
from functools import cache
from math import ceil


@cache
def mfma_input(rows: int, k: int, blocks: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return (lane, item) -> (i, k, b) of A (of B with j for i).

    The manual: K_L = K / (64 / (M * B)), lane = i + M * (b + B * (k / K_L)), item = k % K_L.
    """
    k_l = k // (64 // (rows * blocks))
    return {(i + rows * (b + blocks * (kk // k_l)), kk % k_l): (i, kk, b)
            for b in range(blocks) for i in range(rows) for kk in range(k)}


@cache
def mfma_scaled_input(rows: int, k: int, bits: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return (lane, item) -> (i, k, 0) of A or B of a scaled MFMA, after Composable Kernel's test/mx_mfma_op.

    8-bit elements: register items 0-15 of lane group g are k = 16 g ... 16 g + 15, items 16-31 the same half of K later.
    6- and 4-bit elements: 32 consecutive k.
    """
    out = {}
    for i in range(rows):
        for kk in range(k):
            if bits < 8:
                group, item = kk // 32, kk % 32
            else:
                half, rest = divmod(kk, k // 2)
                group, item = rest // 16, 16 * half + rest % 16
            out[i + rows * group, item] = (i, kk, 0)
    return out


@cache
def mfma_output(m: int, n: int, blocks: int, height: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return (lane, item) -> (i, j, b) of D; height H is 4, and 1 for f64.

    The manual: B_I = ceil(64 / (N * M / H)), M_I = (64 / B_I) / N, G = M / (H * M_I),
    item = (i % H) + H * (i / (H * M_I) + G * (b / B_I)), lane = j + N * ((i / H) % M_I + M_I * (b % B_I)).
    It does not hold for 4x4 blocks of f64: AMD's matrix instruction calculator has lane j + 4 b + 16 i, as B has with k
    in place of i.
    """
    if height == 1 and m == 4:
        return {(j + 4 * b + 16 * i, 0): (i, j, b) for b in range(blocks) for i in range(m) for j in range(n)}
    b_i = ceil(64 / (n * m / height))
    m_i = (64 // b_i) // n
    g = m // (height * m_i)
    return {(j + n * ((i // height) % m_i + m_i * (b % b_i)),
             (i % height) + height * (i // (height * m_i) + g * (b // b_i))): (i, j, b)
            for b in range(blocks) for i in range(m) for j in range(n)}


def wmma_gfx11_input(lane: int, item: int) -> tuple[int, int]:
    """Lanes 16 to 31 repeat lanes 0 to 15; a lane holds its whole row (column) in k order."""
    return lane % 16, item


def wmma_gfx11_output(lane: int, item: int) -> tuple[int, int]:
    """VGPR r of lanes 0-15 is row 2r, of lanes 16-31 row 2r + 1; the lane is the column."""
    return 2 * item + lane // 16, lane % 16


def wmma_gfx12_input(k: int, lane: int, item: int) -> tuple[int, int]:
    """Lanes 0-15 hold the first half of k, lanes 16-31 the second."""
    return lane % 16, item + (k // 2) * (lane // 16)


def wmma_gfx12_output(lane: int, item: int) -> tuple[int, int]:
    """Lanes 0-15 hold rows 0-7, lanes 16-31 rows 8-15; the lane is the column."""
    return 8 * (lane // 16) + item, lane % 16


def wmma_gfx1250_input(run: int, lane: int, item: int) -> tuple[int, int]:
    """Half waves alternate in runs of k (unverified: no public manual)."""
    return lane % 16, item % run + run * (lane // 16) + 2 * run * (item // run)


def wmma_gfx1250_packed_output(lane: int, item: int) -> tuple[int, int]:
    """16-bit results: even rows of the half first, then odd rows (unverified: no public manual)."""
    return 8 * (lane // 16) + 2 * (item % 4) + item // 4, lane % 16

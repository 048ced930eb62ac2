"""Lane maps written out from the instruction-set manuals: the second source for `flydsl.atoms.lane_maps`.

Nothing here may come from `flydsl`. An entry says which (row or column, k, block) a register element of a lane
is. CDNA: "AMD Instinct MI300 (CDNA3) ISA", section 7.1.4 (data layout of inputs and outputs, with its letters).
RDNA3 ISA section 7.9, RDNA4 ISA section 7.12 (WMMA). gfx1250 and the sparse instructions of gfx950: what AMD's own programs
for them agree on, Composable Kernel (ck_tile/core/arch/mma, with a layout test for devices) and the instruction emulator in
ROCm/rocm-systems (rocjitsu), written out here in our words; Triton's layouts (triton_maps.json) say the same.
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
    """Half waves alternate in runs of k: 2 of f32, 8 of 16-bit types, 16 of 8-bit types, 32 of 6- and 4-bit types.

    Layouts of 8-bit types count in runs of 8, as the reference and Triton do: A and B numbered alike give the same sums.
    """
    return lane % 16, item % run + run * (lane // 16) + 2 * run * (item // run)


def wmma_gfx1250_scaled_input(bits: int, lane: int, item: int) -> tuple[int, int]:
    """Scales and operands of unlike widths meet at the hardware's k."""
    return wmma_gfx1250_input(16 if bits == 8 else 32, lane, item)


def wmma_gfx1250_tall_input(lane: int, item: int) -> tuple[int, int]:
    """A of 32x16x128, 4 bits: the registers of rows 0-15, then those of rows 16-31, each as A of 16x16x128."""
    row, k = wmma_gfx1250_scaled_input(4, lane, item % 64)
    return row + 16 * (item // 64), k


def wmma_gfx1250_tall_output(lane: int, item: int) -> tuple[int, int]:
    """C of 32x16x128: the registers of rows 0-15, then those of rows 16-31, each as C of 16x16x128."""
    row, column = wmma_gfx12_output(lane, item % 8)
    return row + 16 * (item // 8), column


def wmma_scale_place(rows: int, half: int, row: int, block: int) -> tuple[int, int]:
    """Return (lane, byte) of the scale of one row (column of B) and block of k.

    A lane has a byte per block. Scales of 16 rows lie in the half wave that the op-sel names, those of 32 rows in all lanes.
    """
    return (row if rows == 32 else row + 16 * half), block


def mfma_scale_lane(rows: int, row: int, block: int) -> int:
    """Return the lane whose byte scales one row (column of B) in one block of 32 k."""
    return row + rows * block


def smfmac_double_k_dense_input(rows: int, k: int, lane: int, item: int) -> tuple[int, int]:
    """B of gfx950's sparse instructions with twice the k: two runs, half of K apart, while A's k are consecutive per lane."""
    per_lane = rows * k // 64
    run = per_lane // 2
    return lane % rows, item % run + run * (lane // rows) + k // 2 * (item // run)


def bits(number: int, *which: int) -> int:
    """Return the number that the named bits of `number` make, most significant first."""
    out = 0
    for b in which:
        out = 2 * out + (number >> b & 1)
    return out


def emulated_sparse_a(rows: int, is_16_bit: bool, group: int) -> tuple[int, int]:
    """Return (lane // rows, pair of register elements) of group `group` of four k of gfx950's sparse A, as AMD's emulator has it."""
    if is_16_bit:
        return divmod(group, 4)
    return (bits(group, 4, 2), bits(group, 1, 3, 0)) if rows == 16 else (bits(group, 3), bits(group, 1, 2, 0))


def emulated_sparse_b(rows: int, k: int) -> tuple[int, int]:
    """Return (lane // rows, register element) of B of those instructions, as AMD's emulator has it: runs of 8 k, lanes alternate."""
    lanes = 64 // rows
    return k // 8 % lanes, k // (8 * lanes) * 8 + k % 8


def unmerged_input(k: int, per_lane: int, accesses: int, rows: int, lane: int, item: int) -> tuple[int, int]:
    """Return (row, k) by the parameters that Composable Kernel gives an instruction.

    A lane has `per_lane` k in `accesses` runs; the lanes beside it continue a run (amdgcn_mma.hpp, kABKPerLane, kAKNumAccess).
    """
    run, groups = per_lane // accesses, k // per_lane
    return lane % rows, item % run + run * (lane // rows) + run * groups * (item // run)


def unmerged_output(m: int, per_lane: int, accesses: int, columns: int, lane: int, item: int) -> tuple[int, int]:
    """Return (row, column) of C by such parameters (kCMPerLane, kCMNumAccess)."""
    column, row = lane % columns, unmerged_input(m, per_lane, accesses, columns, lane, item)[1]
    return row, column

"""Lane maps of matrix instructions as layouts: (lane, value) -> linear index in a column-major
operand.

Index spaces are (M, K) for A, (N, K) for B, (M, N) for C and D; instructions that do several
independent products at once add the block as last, slowest mode. Second sources (tests/unit/atoms):
the formulas of the ISA manuals in isa_maps.py, the answers of AMD's matrix instruction calculator
and of Triton in *_maps.json. Neighbours: `mma_ops` and `matrix_rows` call these. Knows no element
types beyond their count.
"""

from __future__ import annotations

from functools import cache

from flydsl.layout import Layout

WAVE64, WAVE32 = 64, 32


def _layout(modes: list[tuple[int, int]]) -> tuple:
    """Return (shape, stride) of the modes, dropping extents of 1 but never the last mode left."""
    kept = [m for m in modes if m[0] != 1] or modes[:1]
    if len(kept) == 1:
        return kept[0]
    return tuple(m[0] for m in kept), tuple(m[1] for m in kept)


def _tv(thread: tuple, value: tuple) -> Layout:
    return Layout((thread[0], value[0]), (thread[1], value[1]))


@cache
def mfma_operand(rows: int, k: int, blocks: int = 1) -> Layout:
    """Return the map of A (rows = M) or B (rows = N): lanes run down rows, blocks, then groups
    of k.
    """
    groups = WAVE64 // (rows * blocks)
    values = k // groups
    if blocks == 1:
        return Layout(((rows, groups), values), ((1, rows * values), rows))
    return _tv(_layout([(rows, 1), (blocks, rows * k), (groups, rows * values)]), (values, rows))


@cache
def mfma_operand_in_two_runs(rows: int, k: int) -> Layout:
    """Return the map of an operand of 32 bytes per lane: two runs of 16 bytes, half of K apart.

    B of the sparse MFMA with twice the k is such, and the 8-bit operands of scaled MFMA for the
    hardware. Sources: Composable Kernel (test/mx_mfma_op, which AMD runs on gfx950, and the layouts of
    ck_tile's amdgcn_mma), Triton's layouts, for the sparse ones AMD's emulator in ROCm/rocm-systems;
    the public MXFP8 kernel of FlyDSL loads its operands so.
    """
    groups = WAVE64 // rows
    run = k // groups // 2
    return Layout(((rows, groups), (run, 2)), ((1, run * rows), (rows, k // 2 * rows)))


@cache
def mfma_accumulator(m: int, n: int, blocks: int = 1, run: int = 4) -> Layout:
    """Return the map of C and D: one column per lane, `run` consecutive rows (f64: 1) per lane
    at a time.

    The 4x4 blocks of f64 lie as those of B do, with rows in place of k. The manual's general formula
    would exchange rows and blocks; AMD's matrix instruction calculator and programs that were
    checked on gfx90a and gfx950 have this order.
    """
    if run == 1 and m == 4:
        return _tv(((n, blocks, m), (m, m * n, 1)), (1, 1))
    lane_blocks = -(-WAVE64 // (n * m // run))
    lane_runs = WAVE64 // lane_blocks // n
    groups = m // (run * lane_runs)
    if blocks == 1 and run > 1:
        return Layout(((n, WAVE64 // n), (run, groups)), ((m, run), (1, run * (WAVE64 // n))))
    thread = _layout([(n, m), (lane_runs, run), (lane_blocks, m * n)])
    value = _layout(
        [(run, 1), (groups, run * lane_runs), (blocks // lane_blocks, m * n * lane_blocks)]
    )
    return _tv(thread, value)


@cache
def wmma_operand(rows: int, k: int, run: int) -> Layout:
    """Return the map of A or B on wave32: `run` consecutive k per lane, half waves alternate
    (gfx12 on).
    """
    steps = k // (2 * run)
    if steps == 1:
        return Layout(((rows, 2), run), ((1, rows * run), rows))
    return Layout(((rows, 2), (run, steps)), ((1, rows * run), (rows, 2 * rows * run)))


@cache
def wmma_operand_doubled(rows: int, k: int) -> Layout:
    """Return the map of A or B on gfx11: both half waves hold the whole row."""
    return Layout(((rows, 2), k), ((1, 0), rows))


@cache
def wmma_accumulator_interleaved(m: int, n: int) -> Layout:
    """Return the map of C and D on gfx11: half waves take even and odd rows."""
    return Layout(((n, 2), m // 2), ((m, 1), 2))


@cache
def wmma_accumulator(m: int, n: int) -> Layout:
    """Return the map of C and D on gfx12 and gfx1250: a half wave takes 8 of every 16 rows."""
    if m == 16:
        return Layout(((n, 2), 8), ((m, 8), 1))
    return Layout(((n, 2), (8, m // 16)), ((m, 8), (1, 16)))


@cache
def wmma_operand_stacked(rows: int, k: int, run: int) -> Layout:
    """Return the map of an A of several times 16 rows (32x16x128 of gfx1250): the registers of
    rows 0 to 15, then those of the next 16.
    """
    return Layout(
        ((16, 2), (run, k // (2 * run), rows // 16)),
        ((1, rows * run), (rows, 2 * rows * run, 16)),
    )

"""Lane maps against what programs of others say: AMD's matrix instruction calculator, Triton, Composable Kernel.

The first two ran once and their answers are recorded (record_calculator_maps.py, record_triton_maps.py); Composable Kernel's are
parameters per instruction, whose meaning isa_maps.unmerged_input and unmerged_output spell out. Calculator: gfx90a, gfx942,
gfx1100, gfx1201. Triton: gfx942, gfx950, gfx1100, gfx1201, gfx1250. Composable Kernel (ck_tile/core/arch/mma): what remains,
the sparse instructions of gfx950 and, on gfx1250, 6-bit operands and 16-bit results.
"""
from functools import cache

import isa_maps
import linear_maps
import pytest
import test_lane_maps
from test_lane_maps import row_id, swap_first_lanes

from flydsl.atoms import lane_maps, matrix_rows

ALL_ROWS = matrix_rows.ROWS + matrix_rows.SMFMAC_ROWS
table_of = cache(test_lane_maps.table_of)
CALCULATOR = linear_maps.read("calculator_maps.json")
TRITON = linear_maps.read("triton_maps.json")


def rows_of(record) -> list:
    """Return our rows of a recorded instruction; of data registers also those with a scale per 16 k, which read them alike."""
    chip, name, kinds = record["arch"], record["instruction"], record["kinds"]
    names = {name} if record["operand"].startswith("S") else {name, name.replace("_scale_", "_scale16_")}
    return [r for r in ALL_ROWS if r.isa in names and (chip in r.chips or r.feature == chip) and kinds in ("-", f"{r.a},{r.b}")]


def layout_of(row, operand: str):
    """Return our map of A, B, C or D at the hardware's k."""
    return row.layout_c if operand in "CD" else row.register_map(operand)


def indices(places: dict, operand: str, row) -> dict:
    """Return {(lane, item): index in the operand} of {(lane, item): (row or column, k or column, block)}."""
    first = row.n if operand == "B" else row.m
    second = row.n if operand in "CD" else row.k
    return {at: x + first * y + first * second * block for at, (x, y, block) in places.items()}


def grouped(layout, row) -> dict:
    """Return {(lane, group): row and group of four k} of A of a sparse instruction."""
    heads = {(lane, item // 4): divmod(index, row.m) for (lane, item), index in table_of(layout).items() if item % 4 == 0}
    return {at: x + row.m * (k // 4) for at, (k, x) in heads.items()}


def expected(record, row) -> dict:
    """Return our map in the form of a record: sparse A, and its index, count in groups of four k."""
    operand = record["operand"]
    if row.family == "smfmac" and operand in "AK":
        return grouped(row.register_map("A"), row)
    return table_of(layout_of(row, operand))


def has_other_k_order(record, row) -> bool:
    """Say whether a source numbers k otherwise, in A and B alike: the calculator's 16-bit operands of gfx12 have runs of 4 k.

    Composable Kernel and Triton have runs of 8, as we do; the products are the same.
    """
    is_calculator = record["kinds"] == "-"
    return is_calculator and record["arch"] == "gfx1201" and row.a in ("f16", "bf16") and record["operand"] in "AB"


def agrees(record, row) -> bool:
    """Compare element by element; where k is numbered otherwise, after renumbering 4-7 and 8-11."""
    theirs = linear_maps.table(record)
    if has_other_k_order(record, row):
        theirs = {at: (x, {1: 8, 2: 4}.get(k // 4, k - k % 4) + k % 4, block) for at, (x, k, block) in theirs.items()}
    return expected(record, row) == indices(theirs, record["operand"], row)


MAPS = [(r, row) for r in CALCULATOR + TRITON if r["operand"] in ("A", "B", "C", "D", "K") for row in rows_of(r)]


def map_id(value):
    if isinstance(value, dict):
        return f"{value['arch']}-{value['instruction'].removeprefix('v_')}-{value['operand']}"
    return f"{value.a}-{value.b}"


@pytest.mark.parametrize(("record", "row"), MAPS, ids=map_id)
def test_recorded_map(record, row):
    assert agrees(record, row)


SCALES = [(r, row) for r in TRITON if r["operand"] in ("SA", "SB") for row in rows_of(r)]


@pytest.mark.parametrize(("record", "row"), SCALES, ids=map_id)
def test_recorded_place_of_scales(record, row):
    """Triton keeps the scales of 16 rows in both half waves; each is where the op-sel of its half looks."""
    rows = row.m if record["operand"] == "SA" else row.n
    for (lane, byte), (x, block, _) in linear_maps.table(record).items():
        if row.family == "mfma_scale":
            assert (lane, byte) == (isa_maps.mfma_scale_lane(rows, x, block), 0)
        else:
            assert (lane, byte) == isa_maps.wmma_scale_place(rows, lane // 16, x, block)


# --- Composable Kernel, AMD's emulator ------------------------------------------------------------------------------------------------

SPARSE = [r for r in matrix_rows.SMFMAC_ROWS if r.feature == "mfma_double_k"]
RESULTS = [r for r in matrix_rows.ROWS if r.feature in ("wmma_gfx1250", "wmma_scale") and r.m == 16]
SCALED = [r for r in matrix_rows.ROWS if r.family == "wmma_scale" and r.m == 16]


@pytest.mark.parametrize("row", SPARSE, ids=row_id)
def test_sparse_instructions_with_twice_the_k(row):
    """kABKPerLane = k * m / 64, kAKNumAccess = 1, kBKNumAccess = 2; kCMPerLane = 4 or 16 with as many accesses / 4."""
    per_lane = row.k * row.m // 64
    for operand, accesses in (("A", 1), ("B", 2)):
        for (lane, item), index in table_of(row.register_map(operand)).items():
            x, k = isa_maps.unmerged_input(row.k, per_lane, accesses, row.m, lane, item)
            assert index == x + row.m * k, (operand, lane, item)
    held = row.m * row.n // 64
    for (lane, item), index in table_of(row.layout_c).items():
        i, j = isa_maps.unmerged_output(row.m, held, held // 4, row.n, lane, item)
        assert index == i + row.m * j


@pytest.mark.parametrize("row", SPARSE, ids=row_id)
def test_sparse_operands_meet_as_in_amds_emulator(row):
    """The emulator numbers k otherwise for 8-bit types: A tells how its groups of four k are ours, and B must say the same."""
    a, b = table_of(row.register_map("A")), table_of(row.register_map("B"))
    ours = {}
    for group in range(row.k // 4):
        lane, pair = isa_maps.emulated_sparse_a(row.m, row.a in ("f16", "bf16"), group)
        ours[group] = a[lane * row.m, 4 * pair] // row.m // 4
    assert sorted(ours.values()) == list(range(row.k // 4))
    for k in range(row.k):
        lane, item = isa_maps.emulated_sparse_b(row.n, k)
        assert b[lane * row.n, item] == row.n * (4 * ours[k // 4] + k % 4)


@pytest.mark.parametrize("row", RESULTS, ids=lambda r: f"{row_id(r)}-{r.acc}")
def test_results_of_gfx1250(row):
    """kCMPerLane = 8, kCMNumAccess = 1 for results of 16 and 32 bits alike."""
    for (lane, item), index in table_of(row.layout_c).items():
        i, j = isa_maps.unmerged_output(16, 8, 1, 16, lane, item)
        assert index == i + 16 * j


@pytest.mark.parametrize("row", SCALED, ids=lambda r: f"{row_id(r)}-{r.scale_type}")
def test_scaled_operands_of_gfx1250(row):
    """kABKPerLane = 64; of operands of unlike widths, kNumAccess = 4 for 8 bits and 2 for 6 and 4 bits."""
    for operand, kind in (("A", row.a), ("B", row.b)):
        accesses = 4 if kind in ("fp8", "bf8") else 2
        for (lane, item), index in table_of(row.register_map(operand)).items():
            x, k = isa_maps.unmerged_input(128, 64, accesses, 16, lane, item)
            assert index == x + 16 * k


# --- nothing is left out, and a wrong map is noticed --------------------------------------------------------------------


def test_every_instruction_has_a_second_source():
    """Left: an instruction that gfx1250 does not have; 6-bit operands of scaled MFMA, for which isa_maps quotes a test of
    Composable Kernel (test/mx_mfma_op)."""
    compared = {id(row) for _, row in MAPS} | {id(row) for row in SPARSE + SCALED + RESULTS}
    missing = [r for r in ALL_ROWS if id(r) not in compared]
    assert {r.feature for r in missing} == {"wmma_gfx1250_iu4", "mfma_scale"}
    assert all({r.a, r.b} & {"fp6", "bf6"} for r in missing if r.feature == "mfma_scale")
    assert all(rows_of(r) for r in TRITON)
    # gfx90a's names for what gfx942 has under longer ones stay: compared there
    assert {r["arch"] for r in CALCULATOR if not rows_of(r)} == {"gfx90a"}


@pytest.mark.parametrize(("record", "row"), MAPS[::7], ids=map_id)
def test_a_permuted_lane_map_differs_from_the_record(record, row):
    """Mutation: lanes exchanged in our map."""
    is_grouped = row.family == "smfmac" and record["operand"] in "AK"
    ours = swap_first_lanes(layout_of(row, "A" if is_grouped else record["operand"]))
    places = grouped(ours, row) if is_grouped else table_of(ours)
    assert places != indices(linear_maps.table(record), record["operand"], row)


MUTATED = (
    "mfma_operand", "mfma_operand_in_two_runs", "mfma_accumulator", "wmma_operand", "wmma_operand_doubled", "wmma_operand_stacked",
    "wmma_accumulator_interleaved", "wmma_accumulator",
)


@pytest.mark.parametrize("name", MUTATED)
def test_a_permuted_table_is_noticed_by_every_record_of_it(name, monkeypatch):
    """Mutation: one function of the tables permuted; a comparison fails wherever that function was called, nowhere else."""
    right, called = getattr(lane_maps, name), []

    def permuted(*args):
        called.append(args)
        return swap_first_lanes(right(*args))

    monkeypatch.setattr(lane_maps, name, permuted)
    noticed = 0
    for record, row in MAPS:
        called.clear()
        agree = agrees(record, row)
        assert agree == (not called), (record["instruction"], record["operand"])
        noticed += not agree
    assert noticed

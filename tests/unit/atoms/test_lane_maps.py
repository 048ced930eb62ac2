"""Every lane map against the manuals' formulas, element by element; and proof that a wrong map is noticed."""
import dataclasses
from functools import cache

import isa_maps
import pytest

from flydsl.atoms import matrix_rows
from flydsl.layout import Layout, crd2idx, size

ROWS = matrix_rows.ROWS


def row_id(row):
    return f"{row.feature}-{row.llvm_name.removeprefix('llvm.amdgcn.')}-{row.a}-{row.b}"


def expected_input(row, rows, kind, lane, item):
    """Return (row or column, k, block) from the manual."""
    if row.family.startswith("mfma"):
        return isa_maps.mfma_input(rows, row.k, row.blocks)[lane, item]
    if row.feature == "wmma_gfx11":
        return *isa_maps.wmma_gfx11_input(lane, item), 0
    if row.feature == "wmma_gfx12":
        return *isa_maps.wmma_gfx12_input(row.k, lane, item), 0
    if rows == 32:
        return *isa_maps.wmma_gfx1250_tall_input(lane, item), 0
    small = row.family == "wmma_scale" and kind in ("fp6", "bf6", "fp4")
    run = 32 if small else 2 if kind == "f32" else 8
    return *isa_maps.wmma_gfx1250_input(run, lane, item), 0


def hardware_input(row, rows, kind, lane, item):
    """Return (row or column, k, block) at the hardware's k, which scales count by."""
    bits = matrix_rows._ELEMENT_BITS[kind]
    if row.family == "mfma_scale":
        return isa_maps.mfma_scaled_input(rows, row.k, bits)[lane, item]
    if row.family == "wmma_scale" and rows == 16:
        return *isa_maps.wmma_gfx1250_scaled_input(bits, lane, item), 0
    return expected_input(row, rows, kind, lane, item)


def expected_output(row, lane, item):
    """Return (row, column, block) from the manual."""
    if row.family.startswith("mfma"):
        height = 1 if row.acc == "f64" else 4
        return isa_maps.mfma_output(row.m, row.n, row.blocks, height)[lane, item]
    if row.feature == "wmma_gfx11":
        return *isa_maps.wmma_gfx11_output(lane, item), 0
    if row.m == 32:
        return *isa_maps.wmma_gfx1250_tall_output(lane, item), 0
    return *isa_maps.wmma_gfx12_output(lane, item), 0


@cache
def expected_indices(row, operand):
    """Return {(lane, item): index in the operand} from the manual."""
    first, second, find = {
        "A": (row.m, row.k, lambda l, i: expected_input(row, row.m, row.a, l, i)),
        "B": (row.n, row.k, lambda l, i: expected_input(row, row.n, row.b, l, i)),
        "C": (row.m, row.n, lambda l, i: expected_output(row, l, i)),
    }[operand]
    values = row.values_per_lane["ABC".index(operand)]
    table = {}
    for lane in range(row.wave_size):
        for item in range(values):
            x, y, block = find(lane, item)
            table[lane, item] = x + first * y + first * second * block
    return table


def table_of(layout):
    """Return {(lane, value): index}; a layout is a sum over its two modes."""
    lanes = [crd2idx((lane, 0), layout) for lane in range(size(layout[0]))]
    values = [crd2idx((0, value), layout) for value in range(size(layout[1]))]
    return {(i, j): a + b for i, a in enumerate(lanes) for j, b in enumerate(values)}


def mismatches(row, layout_a, layout_b, layout_c):
    """Return the operands whose layout and manual disagree anywhere."""
    return [name for name, layout in (("A", layout_a), ("B", layout_b), ("C", layout_c))
            if table_of(layout) != expected_indices(row, name)]


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_map_is_the_manuals(row):
    assert mismatches(row, row.layout_a, row.layout_b, row.layout_c) == []


SCALED = [r for r in ROWS if r.scale_type]


@pytest.mark.parametrize("row", SCALED, ids=lambda r: f"{row_id(r)}-{r.scale_type}")
def test_what_the_hardware_reads_of_scaled_operands(row):
    """8-bit elements lie otherwise than the reference's layout numbers them."""
    for operand, rows, kind in (("A", row.m, row.a), ("B", row.n, row.b)):
        found = table_of(row.register_map(operand))
        assert found == {(lane, item): x + rows * k for lane, item in found
                         for x, k, _ in [hardware_input(row, rows, kind, lane, item)]}


@pytest.mark.parametrize("row", matrix_rows.SMFMAC_ROWS, ids=row_id)
def test_map_of_a_sparse_instruction(row):
    """A counts as if its zeros were in registers too."""
    dense = isa_maps.smfmac_double_k_dense_input if row.feature == "mfma_double_k" else None
    for operand, rows in (("A", row.m), ("B", row.n)):
        found = table_of(row.register_map(operand))
        for (lane, item), index in found.items():
            if dense and operand == "B":
                x, k = dense(rows, row.k, lane, item)
            else:
                x, k, _ = isa_maps.mfma_input(rows, row.k, 1)[lane, item]
            assert index == x + rows * k, (operand, lane, item)
    assert table_of(row.layout_c) == {at: i + row.m * j for at, (i, j, _) in isa_maps.mfma_output(row.m, row.n, 1, 4).items()}


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_map_covers_each_operand(row):
    for layout, elements in ((row.layout_a, row.m * row.k), (row.layout_b, row.n * row.k),
                             (row.layout_c, row.m * row.n)):
        held = set(table_of(layout).values())
        assert held == set(range(elements * row.blocks))


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_registers_hold_what_the_map_says(row):
    from flydsl.atoms.elements import bit_width
    kind_bits = matrix_rows._ELEMENT_BITS
    spares = (1, 1, 2 if row.opsel_result else 1)  # every second half of such a result is left alone
    for reg, kind, values, spare in zip(row.regs, (row.a, row.b, row.acc), row.values_per_lane, spares):
        assert bit_width(reg) == kind_bits[kind] * values * spare


def swap_first_lanes(layout):
    """Return the (lane, value) table of a layout with lanes 0 and 1 exchanged, as a layout where possible."""
    (thread, value), (dt, dv) = layout.shape, layout.stride
    shapes, strides = (thread, dt) if isinstance(thread, tuple) else ((thread,), (dt,))
    rows, step = shapes[0], strides[0]
    # (2, rows/2) with the first stride negated would need an offset: reverse the halves instead
    return Layout((((2, rows // 2), *shapes[1:]), value), (((step * (rows // 2), step), *strides[1:]), dv))


@pytest.mark.parametrize("row", ROWS, ids=row_id)
@pytest.mark.parametrize("operand", "ABC")
def test_a_permuted_map_is_noticed(row, operand):
    """Mutation: lanes of one operand permuted; the comparison above must fail for exactly that operand."""
    layouts = {"A": row.layout_a, "B": row.layout_b, "C": row.layout_c}
    layouts[operand] = swap_first_lanes(layouts[operand])
    bad = mismatches(row, layouts["A"], layouts["B"], layouts["C"])
    assert bad == [operand]


def test_a_permuted_table_fails_every_test_of_its_atom(monkeypatch):
    """Mutation of the table itself: the map of 16x16x16 f16 permuted in `lane_maps` reaches the atom."""
    from flydsl.atoms import lane_maps, mfma
    row = matrix_rows.by_rocdl_name("rocdl.mfma.f32.16x16x16f16")
    right = lane_maps.mfma_operand
    monkeypatch.setattr(lane_maps, "mfma_operand", lambda *args: swap_first_lanes(right(*args)))
    assert mismatches(row, row.layout_a, row.layout_b, row.layout_c) == ["A", "B"]
    atom = mfma(16, 16, 16, "f16")
    assert atom.layout_a == row.layout_a


def test_rows_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ROWS[0].m = 1

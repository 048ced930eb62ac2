"""Wait counters, DPP lane controls and cache bits."""
import pytest

from flydsl import arch
from flydsl.atoms import cache, dpp, waitcnt


@pytest.mark.parametrize("chip, counts, word", [
    ("gfx942", {"vmcnt": 0}, 3952), ("gfx942", {"lgkmcnt": 0}, 49279),
    ("gfx942", {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}, 0xCF7F),
    ("gfx950", {"vmcnt": 0b110101}, 0b11 << 14 | 15 << 8 | 7 << 4 | 0b0101),
    ("gfx1100", {"vmcnt": 0}, 63 << 4 | 7), ("gfx1100", {"lgkmcnt": 0}, 63 << 10 | 7),
    ("gfx1201", {"expcnt": 0}, 63 << 10 | 63 << 4),
])
def test_encodings(chip, counts, word):
    assert waitcnt.encode(chip, **counts) == word


@pytest.mark.parametrize("chip", waitcnt.supported_chips())
def test_decode_inverts_encode(chip):
    for vmcnt in (None, 0, 1, 37):
        for lgkmcnt in (None, 0, 9):
            for expcnt in (None, 0, 3):
                counts = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
                assert waitcnt.decode(chip, waitcnt.encode(chip, **counts)) == counts


def test_waitcnt_refusals():
    with pytest.raises(ValueError, match=r"vmcnt must be in \[0, 63\] on this target, got 64"):
        waitcnt.encode("gfx942", vmcnt=64)
    with pytest.raises(ValueError, match=r"lgkmcnt must be in \[0, 15\] on this target, got 16"):
        waitcnt.encode("gfx942", lgkmcnt=16)
    with pytest.raises(ValueError, match="s_waitcnt is not supported on target arch 'gfx1250'; supported: gfx942"):
        waitcnt.encode("gfx1250", vmcnt=0)
    with pytest.raises(TypeError, match="legacy raw s_waitcnt bitfield cannot be combined"):
        waitcnt.encode("gfx942", 3952, vmcnt=0)
    with pytest.raises(TypeError, match="vmcnt must be a static Python int or Integer, got a run-time value"):
        waitcnt.encode("gfx942", vmcnt=object())
    assert waitcnt.encode("gfx942", 3952) == 3952


def test_separate_counters():
    assert waitcnt.check_separate("gfx1250", "tensorcnt", 2) == 2
    with pytest.raises(ValueError, match="gfx1250"):
        waitcnt.check_separate("gfx942", "loadcnt", 0)
    with pytest.raises(ValueError, match=r"\[0, 63\]"):
        waitcnt.check_separate("gfx1201", "dscnt", 64)


# One line per code: what lane 21 of a wave of 64 reads (row 1, place 5 in the row, place 1 in the quad).
DPP = [
    (dpp.quad_perm(3, 2, 1, 0), 22), (0x101, 22), (0x10B, None), (0x111, 20), (0x116, None), (0x121, 20),
    (0x126, 31), (dpp.WAVE_SHL, 22), (dpp.WAVE_SHR, 20), (dpp.ROW_MIRROR, 26), (dpp.ROW_HALF_MIRROR, 18),
    (dpp.ROW_BCAST15, 15), (dpp.ROW_BCAST31, None), (0x153, 19), (0x167, 18),
]


@pytest.mark.parametrize("ctrl, lane", DPP)
def test_dpp_lanes(ctrl, lane):
    assert dpp.source_lane(ctrl, 21, 64) == lane


def test_dpp_edges():
    assert dpp.source_lane(dpp.WAVE_SHL, 63, 64) is None and dpp.source_lane(dpp.WAVE_ROL, 63, 64) == 0
    assert dpp.source_lane(dpp.WAVE_SHR, 0, 64) is None and dpp.source_lane(dpp.WAVE_ROR, 0, 64) == 63
    assert dpp.source_lane(dpp.ROW_BCAST15, 3, 64) is None
    assert dpp.source_lane(dpp.ROW_BCAST31, 40, 64) == 31


@pytest.mark.parametrize("ctrl", [dpp.quad_perm(1, 0, 3, 2), 0x121, dpp.ROW_MIRROR, dpp.ROW_HALF_MIRROR, 0x16F])
def test_permutations_lose_no_lane(ctrl):
    assert sorted(dpp.source_lane(ctrl, lane, 32) for lane in range(32)) == list(range(32))


def test_dpp_refusals():
    with pytest.raises(ValueError, match="dpp_row_bcast"):
        dpp.check(dpp.ROW_BCAST15, "gfx1100")
    with pytest.raises(ValueError, match="dpp_row_share"):
        dpp.check(0x150, "gfx942")
    for ctrl in (0x100, 0x110, 0x131, 0x144, 0x170, -1):
        with pytest.raises(ValueError, match="DPP control code"):
            dpp.feature(ctrl)
    assert dpp.check(0x150, "gfx1100") == 0x150


@pytest.mark.parametrize("chip, aux, load, store", [
    ("gfx942", 0, "", ""), ("gfx942", 17, "sc0 sc1", "sc0 sc1"), ("gfx950", 3, "sc0 nt", "sc0 nt"),
    ("gfx1100", 17, "glc", "glc"), ("gfx1201", 3, "th:TH_LOAD_LU", "th:TH_STORE_WB"),
    ("gfx1250", 17, "th:TH_LOAD_NT scope:SCOPE_DEV", "th:TH_STORE_NT scope:SCOPE_DEV"),
])
def test_cache_text(chip, aux, load, store):
    assert (cache.text(chip, aux, True), cache.text(chip, aux, False)) == (load, store)


def test_cache_bits():
    assert cache.bits("gfx942", "sc0", "sc1") == 17 and cache.bits("gfx1100", "glc", "slc") == 3
    assert cache.th_scope(1, 2) == 17
    with pytest.raises(ValueError, match="glc, slc, dlc"):
        cache.bits("gfx1100", "sc0")


def test_every_chip_is_covered():
    for chip in arch.names():
        assert isinstance(cache.text(chip, 1, True), str)
        assert (arch.get(chip).waitcnt is None) == (chip not in waitcnt.supported_chips())

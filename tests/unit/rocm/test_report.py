"""`flydsl report`, `flydsl.testing.assert_isa`, the main loop, llvm-mca."""

import json

import numpy as np
import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.targets.rocm import mca
from flydsl.targets.rocm.isa_stats import isa_stats
from flydsl.testing import assert_isa, fact_names, isa_facts
from flydsl.tools import cli

HAND_WRITTEN = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
k:
\ts_mov_b32 s0, 0
.LBB0_1:                                ; =>This Loop Header: Depth=1
\ts_add_i32 s1, s0, 1
.LBB0_2:                                ;   Parent Loop BB0_1 Depth=1
\tds_read_b128 v[0:3], v8
\tv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
\tv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
\ts_cbranch_scc1 .LBB0_2
; %bb.3:
\ts_add_i32 s0, s0, 1
\ts_cbranch_scc1 .LBB0_1
.LBB0_4:
\tv_add_f32 v0, v1, v2
\tv_add_f32 v0, v1, v2
\tv_add_f32 v0, v1, v2
\tv_add_f32 v0, v1, v2
\tv_add_f32 v0, v1, v2
\ts_cbranch_scc1 .LBB0_4
\ts_cbranch_scc0 .LBB0_5
.LBB0_5:
\ts_endpgm
.Lfunc_end0:
\t.amdhsa_kernel k
\t.end_amdhsa_kernel
"""


@flyc.kernel
def scale_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    total = fx.Float32(0.0)
    for k in range(n):
        total = total + x[k * 64 + i]
    y[i] = total


@flyc.jit
def scale(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    scale_kernel(x, y, n).launch(grid=(1,), block=(64,))


def test_main_loop_is_the_inner_one_with_matrix_instructions():
    stats = isa_stats(HAND_WRITTEN)["k"]
    assert [(loop.label, loop.instructions, loop.matrix) for loop in stats.loops] == [
        (".LBB0_2", 4, 2),
        (".LBB0_4", 6, 0),
    ]
    assert (
        stats.main_loop.label == ".LBB0_2" and stats.matrix_share == 0.5 and stats.main_loop.counts["lds_reads"] == 1
    )
    assert_isa(HAND_WRITTEN, matrix_share__ge=0.5, mfma=2)
    with pytest.raises(AssertionError, match="matrix_share is 0.5, wanted gt 0.5"):
        assert_isa(HAND_WRITTEN, matrix_share__gt=0.5)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_assert_isa_on_compiled_functions(monkeypatch, arch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    compiled = flyc.compile(scale, np.zeros(256, np.float32), np.zeros(64, np.float32), 4)
    assert_isa(compiled, spills=0, scratch_bytes=0, vgprs__le=64, workgroup=64, global_stores=1, mfma=0)
    assert_isa(compiled, kernel="scale_kernel", occupancy__ge=8)
    assert_isa(scale, kernel="scale_kernel_0", instructions__gt=10)
    assert isa_facts(compiled)["scale_kernel_0"].main_loop.counts["global_loads"] >= 1
    assert compiled.max_blocks_per_cu() == isa_facts(compiled)["scale_kernel_0"].max_blocks_per_cu >= 8
    with pytest.raises(AssertionError, match="global_stores is 1, wanted == 2"):
        assert_isa(compiled, global_stores=2)
    with pytest.raises(KeyError, match="no kernel 'other'"):
        assert_isa(compiled, kernel="other", spills=0)
    with pytest.raises(AttributeError, match="no comparison 'above'"):
        assert_isa(compiled, spills__above=1)
    with pytest.raises(AttributeError, match="no fact 'spilled'"):
        assert_isa(compiled, spilled=0)


def test_what_holds_no_code_is_refused():
    with pytest.raises(TypeError, match="holds no compiled code"):
        assert_isa(3, spills=0)


def test_every_fact_name_is_readable():
    stats = isa_stats(HAND_WRITTEN)["k"]
    assert all(isinstance(getattr(stats, name), (int, float)) for name in fact_names())


@pytest.mark.skipif(mca.find() is None, reason="llvm-mca is not installed (it comes with LLVM and ROCm)")
def test_cycles_grow_with_the_work():
    one = mca.cycles(["v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"], "gfx942")
    two = mca.cycles(["v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"] * 2, "gfx942")
    assert 0 < one < two
    for access in (
        "buffer_load_dwordx4 v[84:87], v41, s[4:7], s10 offen",
        "buffer_load_dword v1, off, s[0:3], 0 offset:16",
        "buffer_store_dwordx2 v[2:3], v5, s[4:7], 0 offen",
        "buffer_load_dword v40, s[4:7], s10 offen lds",
    ):
        assert mca.cycles([access, "s_waitcnt vmcnt(0)"], "gfx942") > 0
    assert (
        mca.cycles(["v_no_such_instruction v0"], "gfx942") is None
        and mca.cycles(["s_cbranch_scc1 .L"], "gfx942") is None
    )


FILE = """
import numpy as np
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def fill_kernel(x: fx.Tensor):
    x[fx.thread_idx.x] = 1.0

@flyc.jit
def fill(x: fx.Tensor):
    fill_kernel(x).launch(grid=(1,), block=(64,))

if __name__ == "__main__":
    fill(np.zeros(64, np.float32))
"""


@pytest.mark.parametrize("given", [[], ["--arg", "f32[64]"]])
def test_command(tmp_path, capsys, given):
    path = tmp_path / "fills.py"
    path.write_text(FILE)
    assert cli.main(["report", f"{path}:fill", "--arch", "gfx942", "--arch", "gfx1100", *given]) == 0
    text = capsys.readouterr().out
    assert "fill_kernel_0 on gfx942" in text and "fill_kernel_0 on gfx1100" in text
    assert "spills        none" in text and "main loop     none" in text and "1 x 32 bits" in text


def test_command_json(tmp_path, capsys):
    path = tmp_path / "k.s"
    path.write_text(HAND_WRITTEN)
    assert cli.main(["report", str(path), "--json", "--no-mca"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["main_loop"] == {
        "label": ".LBB0_2", "instructions": 4, "matrix": 2, "matrix_share": 0.5,
        "counts": {"mfma": 2, "lds_reads": 1, "branches": 1}, "cycles": None,
    }  # fmt: skip


def test_command_without_file(capsys):
    assert cli.main(["report", "nowhere.py:f"]) == 1
    assert "FLY_COMPILE_FUNCTION" in capsys.readouterr().err

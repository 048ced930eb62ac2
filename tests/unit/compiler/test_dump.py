"""What FLYDSL_DUMP_IR writes, and what the ladder FLYDSL_DEBUG shows: 3 the rewritten Python, 4 and 5 IR, 6 LLVM IR and ISA."""

import logging
import pathlib

import numpy as np
import pytest

from flydsl.diag import MissingLinker
from flydsl.targets.rocm import tools
from flydsl.utils import env

PROGRAM = """
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def scale_kernel(a: fx.Tensor, times: fx.Constexpr[int]):
    i = fx.thread_idx.x
    if i < 3:
        a[i] = a[i] * times

@flyc.jit
def scale(a: fx.Tensor, times: fx.Constexpr[int]):
    scale_kernel(a, times).launch(grid=(1,), block=(64,))
"""


@pytest.fixture
def scale(tmp_path, monkeypatch):
    """A program of its own file, so that nothing of it was compiled before."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    for name, value in {"FLYDSL_DUMP_DIR": str(tmp_path / "dump"), "FLYDSL_RUNTIME_CACHE_DIR": str(tmp_path / "cache"), "ARCH": "gfx942"}.items():
        monkeypatch.setenv(name, value)
    names: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["scale"]


def run(scale, times: int) -> None:
    array = np.arange(4, dtype=np.float32)
    scale(array, times)
    np.testing.assert_array_equal(array, [0, times, 2 * times, 3])


def folders(tmp_path: pathlib.Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "dump").iterdir())


def test_each_specialisation_has_a_folder_of_its_own(scale, tmp_path):
    with env.override(FLYDSL_DUMP_IR="1"):
        for times in (2, 3, 4, 2):
            run(scale, times)
    assert folders(tmp_path) == ["scale_kernel_0", "scale_kernel_0-2", "scale_kernel_0-3"]
    for folder, times in zip(folders(tmp_path), (2, 3, 4)):
        files = sorted(p.name for p in (tmp_path / "dump" / folder).iterdir())
        assert files[0] == "00_origin.mlir" and files[-2].endswith("_llvm_ir.ll") and files[-1].endswith("_final_isa.s")
        assert [int(f[:2]) for f in files] == list(range(len(files)))
        assert f"{float(times):e}"[:3] in (tmp_path / "dump" / folder / "00_origin.mlir").read_text()


def test_the_same_specialisation_again_replaces_its_files(scale, tmp_path):
    with env.override(FLYDSL_DUMP_IR="1", FLYDSL_RUNTIME_ENABLE_CACHE="0"):
        for times in (2, 3, 2, 3):
            run(scale, times)
        stale = tmp_path / "dump" / "scale_kernel_0" / "97_of_another_pipeline.mlir"
        stale.touch()
        notes = tmp_path / "dump" / "scale_kernel_0" / "notes.txt"
        notes.touch()
        run(scale, 2)
    assert folders(tmp_path) == ["scale_kernel_0", "scale_kernel_0-2"]
    assert not stale.exists() and notes.exists()


def test_folders_of_an_earlier_process_do_not_stay(scale, tmp_path):
    for name, file in [("scale_kernel_0-5", "00_origin.mlir"), ("scale_kernel_0-6", "notes.txt"), ("scale_kernel_0x-5", "00_origin.mlir")]:
        (tmp_path / "dump" / name).mkdir(parents=True)
        (tmp_path / "dump" / name / file).touch()
    with env.override(FLYDSL_DUMP_IR="1"):
        run(scale, 2)
    assert folders(tmp_path) == ["scale_kernel_0", "scale_kernel_0-6", "scale_kernel_0x-5"]


@pytest.fixture
def no_linker(monkeypatch):
    monkeypatch.setenv("FLYDSL_LLD", "/nonexistent/ld.lld")
    tools._find_linker.cache_clear()
    yield
    tools._find_linker.cache_clear()


@pytest.mark.parametrize("switch", ["FLYDSL_DUMP_IR", "FLYDSL_DEBUG_DUMP_ASM"])
def test_texts_need_no_linker_and_the_simulator_goes_on(scale, tmp_path, no_linker, switch):
    with env.override(**{switch: "1"}):
        run(scale, 2)
    (isa,) = (tmp_path / "dump").rglob("*_final_isa.s")
    assert "v_mul_f32" in isa.read_text() or "v_add_f32" in isa.read_text()
    assert (len(list((tmp_path / "dump").rglob("*"))) == 2) == (switch == "FLYDSL_DEBUG_DUMP_ASM")


def test_a_code_object_that_is_asked_for_needs_one_after_the_texts_are_written(scale, tmp_path, no_linker):
    with env.override(FLYDSL_DUMP_IR="1", COMPILE_ONLY="1"), pytest.raises(MissingLinker):
        scale(np.zeros(4, np.float32), 2)
    assert list((tmp_path / "dump").rglob("*_final_isa.s"))


# --- FLYDSL_DEBUG ---

RUNGS = {
    3: "rewritten Python of scale_kernel:\ndef scale_kernel(a, times):",
    4: "traced module of scale:",
    5: "after fly-layout-lowering:",
    6: "llvm_ir of scale:",
}


@pytest.mark.parametrize("level", range(2, 7))
def test_each_level_of_debug_adds_what_the_documentation_says(scale, caplog, monkeypatch, level):
    from flydsl.utils.logger import log

    run(scale, 2)  # on disk now: a new function of the same source would find it there
    names: dict = {}
    path = scale.func.__code__.co_filename
    exec(compile(pathlib.Path(path).read_text(), path, "exec"), names)
    monkeypatch.setattr(log, "propagate", True)
    with env.override(FLYDSL_DEBUG=str(level)), caplog.at_level(logging.WARNING, "flydsl"):
        run(names["scale"], 2)
    text = "\n".join(caplog.messages)
    for rung, start in RUNGS.items():
        assert (start in text) == (level >= rung), (rung, level)
    assert ("__fly__" in text) == (level >= 3), "the kernel's `if` as the rewriter writes it"
    assert ("define amdgpu_kernel void @scale_kernel_0" in text) == (level == 6)
    assert ("final_isa of scale:\n" in text and "s_endpgm" in text and ".amdgcn_target" in text) == (level == 6)


def test_the_documented_ladder_is_this_one():
    text = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "environment.md").read_text()
    assert "1 times, 2 decisions, 3 Python, 4 and 5 IR, 6 LLVM and ISA" in text

"""Kernels whose registers do not suffice after the slim middle end are compiled with LLVM's full one, if that helps."""

import pytest
from lowered_text import VECTOR_ADD

from flydsl.targets.rocm import CodegenOptions, compile, compile_lowered


@pytest.fixture
def levels(monkeypatch):
    """Stand in for LLVM: by optimisation level, how many VGPRs the code spills; returns the levels that were asked for."""
    asked = []

    def set_spills(spills: dict[int, int]) -> list[int]:
        def run_codegen(source, outputs, bitcode=b""):
            asked.append(source.options.opt_level)
            text = f"level {asked[-1]}\n    .vgpr_spill_count: {spills[asked[-1]]}\n"
            return {"bitcode": b"", **dict.fromkeys(outputs, text)}

        monkeypatch.setattr(compile, "run_codegen", run_codegen)
        return asked

    return set_spills


def isa(level: int = 2) -> str:
    return compile_lowered(VECTOR_ADD, "gfx942", CodegenOptions(opt_level=level), emit=()).isa


def test_fewer_spills_win(levels):
    asked = levels({2: 5, 3: 0})
    assert isa().startswith("level 3") and asked == [2, 3]


def test_as_many_spills_change_nothing(levels):
    asked = levels({2: 5, 3: 5})
    assert isa().startswith("level 2") and asked == [2, 3]


@pytest.mark.parametrize("level", [0, 1, 3])
def test_a_level_that_was_asked_for_stays(levels, level):
    asked = levels({level: 7, 3: 0 if level != 3 else 7})
    assert isa(level).startswith(f"level {level}") and asked == [level]


def test_code_without_spills_is_generated_once(levels):
    asked = levels({2: 0})
    assert isa().startswith("level 2") and asked == [2]


def test_what_follows_is_of_the_same_level(levels):
    asked = levels({2: 5, 3: 0})
    artifact = compile_lowered(VECTOR_ADD, "gfx942", emit=())
    assert artifact.llvm_ir_optimised.startswith("level 2")
    assert artifact.isa.startswith("level 3") and artifact.llvm_ir_optimised.startswith("level 3")
    assert asked == [2, 2, 3, 3]


def test_object_files_are_read_too():
    artifact = compile_lowered(VECTOR_ADD, "gfx942", emit=("obj",))
    assert compile._spilled({"obj": artifact.obj}) == 0 == compile._spilled({"isa": artifact.isa})

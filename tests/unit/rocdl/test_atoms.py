"""Constructors of copy and matrix atoms: printed forms of the reference, and chips."""

import warnings

import pytest

import flydsl.expr as fx
from flydsl.expr import rocdl
from flydsl.expr.numeric import (
    BFloat16,
    Float4E2M1FN,
    Float8E4M3FN,
    Float16,
    Float32,
    Int8,
    Int32,
    Uint8,
    Uint32,
)

# Printed by the reference (black box).
PRINTED = [
    (lambda: rocdl.BufferCopy(128, 2), "!fly_rocdl.cdna3.buffer_copy<128, cache = 2>"),
    (lambda: rocdl.BufferCopy32b(), "!fly_rocdl.cdna3.buffer_copy<32>"),
    (lambda: rocdl.BufferCopyLDS(32), "!fly_rocdl.cdna3.buffer_copy_lds<32>"),
    (lambda: rocdl.MFMA(16, 16, 16, Float16), "!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>"),
    (lambda: rocdl.MFMA(16, 16, 32, Uint8, Int32), "!fly_rocdl.cdna3.mfma<16x16x32, (i8, i8) -> i32>"),
    (lambda: rocdl.BufferAtomicMin(Uint32), "!fly_rocdl.cdna3.buffer_atomic<min, i32>"),
    (lambda: rocdl.BufferAtomicPkAdd(BFloat16), "!fly_rocdl.cdna3.buffer_atomic<add, vector<2xbf16>>"),
    (lambda: rocdl.BufferAtomicAdd(Float32), "!fly_rocdl.cdna3.buffer_atomic<add, f32>"),
    (
        lambda: rocdl.cdna4.MFMA_Scale(16, 16, 128, Float8E4M3FN, Float4E2M1FN, opsel_a=1),
        "!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f4E2M1FN) -> f32, opselA = 1, opselB = 0>",
    ),
    (
        lambda: rocdl.WMMAScale(16, 16, 128, Float8E4M3FN),
        "!fly_rocdl.gfx1250.wmma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0, opselB = 0, modC = 0, reuseA = false, "
        "reuseB = false, blockSize = 32>",
    ),
]


@pytest.mark.parametrize("make,text", PRINTED)
def test_printed(make, text):
    assert str(make()) == text


def test_wmma_takes_the_form_of_the_target(body):
    with body("gfx1201"):
        op = rocdl.WMMA(16, 16, 16, Uint8, Int32)
    assert str(op) == "!fly_rocdl.gfx120x.wmma<16x16x16, (i8, i8) -> i32, signA = false, signB = false, clamp = false>"
    with body("gfx1250"):
        op = rocdl.WMMA(16, 16, 64, Int8, Int32, sign_a=True)
    assert str(op) == "!fly_rocdl.gfx1250.wmma<16x16x64, (i8, i8) -> i32, signA = true, signB = false, clamp = false>"


@pytest.mark.parametrize(
    "arch,make",
    [
        ("gfx1201", lambda: rocdl.MFMA(16, 16, 16, Float16)),
        ("gfx942", lambda: rocdl.WMMA(16, 16, 16, Float16)),
        ("gfx942", lambda: rocdl.cdna4.MFMA_Scale(16, 16, 128, Float8E4M3FN)),
        ("gfx942", lambda: rocdl.BufferCopyLDS128b()),
        ("gfx1100", lambda: rocdl.BufferCopyLDS32b()),
        ("gfx942", lambda: rocdl.cdna4.LDSReadTrans16_64b()),
    ],
)
def test_chips_without_the_instruction_are_refused(body, arch, make):
    with body(arch):
        with pytest.raises(ValueError, match=arch):
            make()


def test_a_matrix_atom_of_a_sister_chip_is_refused_where_it_is_used(body):
    """Kernels make atoms for gfx942 and gfx950 and use those of one."""
    with body("gfx942"):
        atom = fx.make_mma_atom(rocdl.MFMA(16, 16, 32, Float16))
        with pytest.raises(ValueError, match="does not exist on gfx942; gfx942 has for these element types: 32x32x8, 16x16x16"):
            fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
    with body("gfx942"), pytest.raises(ValueError, match="8x8x8"):
        rocdl.MFMA(8, 8, 8, Float16)


def test_controls_of_matrix_instructions_may_be_left_out(body):
    with body("gfx942"):
        half = fx.Vector.filled(4, fx.Float16(1.0), Float16).ir_value()
        sums = fx.Vector.filled(16, fx.Float32(0.0), fx.Float32).ir_value()
        texts = [str(rocdl.mfma_f32_32x32x8f16(sums.type, [half, half, sums, *rest]).owner) for rest in ((), (0, 0, 0))]
        assert texts[0].partition("(")[2] == texts[1].partition("(")[2]
        with pytest.raises(TypeError, match="misses"):
            rocdl.mfma_f32_32x32x8f16(sums.type, [half, half])


def test_no_64_bit_dma_to_lds():
    with pytest.raises(ValueError, match="64"):
        rocdl.BufferCopyLDS64b()


def test_types_for_isinstance():
    assert isinstance(rocdl.BufferCopy128b(), rocdl.CopyOpCDNA3BufferCopyType)
    assert isinstance(rocdl.BufferCopyLDS32b(), rocdl.CopyOpCDNA3BufferCopyLDSType)
    assert isinstance(rocdl.BufferAtomicAdd(Float32), rocdl.CopyOpCDNA3BufferAtomicType)
    assert not isinstance(rocdl.BufferCopyLDS32b(), rocdl.CopyOpCDNA3BufferCopyType)


def test_sync_scopes():
    scope = rocdl.SyncScope
    assert (scope.System, scope.Agent, scope.Workgroup, scope.Wavefront, scope.SingleThread) == (
        "",
        "agent",
        "workgroup",
        "wavefront",
        "singlethread",
    )
    assert (scope.OneAs, scope.AgentOneAs, scope.SingleThreadOneAs) == ("one-as", "agent-one-as", "singlethread-one-as")


def test_ocp_operands_on_a_fnuz_chip_are_announced():
    """gfx942 decodes 8-bit floats as FNUZ: the type is accepted, as by the reference, with a warning; gfx950 says nothing."""
    import numpy as np

    import flydsl.compiler as flyc
    import flydsl.expr as fx
    from flydsl.utils import env

    @flyc.kernel
    def kernel(out: fx.Tensor):
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Float8E4M3FN))

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=1, block=64)

    out = np.zeros(1, np.float32)
    with env.override(ARCH="gfx942", FLYDSL_GPU_ARCH="gfx942"), pytest.warns(UserWarning, match="FNUZ"):
        launch(out)
    with env.override(ARCH="gfx950", FLYDSL_GPU_ARCH="gfx950"), warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(out)

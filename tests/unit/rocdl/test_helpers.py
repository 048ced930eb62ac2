"""Helpers of fx.rocdl: the op that each emits, the class it returns, and what it refuses."""

import pytest

from flydsl.diag import IntrinsicNotOnChip, RocdlArguments, RocdlOperand, RocdlStatic
from flydsl.expr import rocdl
from flydsl.expr.numeric import Boolean, Float32, Int32, Int64
from flydsl.expr.numeric.raw_value import ArithValue
from flydsl.expr.vector import Vector
from flydsl.ir import ir


def test_wave_exchange(body):
    with body("gfx942", "i32", "f32", "i1", "i64") as b:
        i, x, p, w = b.args
        assert isinstance(rocdl.readfirstlane(Int32, Int32(i)), Int32)
        assert isinstance(rocdl.readfirstlane(Float32, x), Float32)
        rocdl.readlane(Int32, i, 5)
        assert isinstance(rocdl.ballot(Int64, Boolean(p)), Int64)
        rocdl.ds_bpermute(Int32, Int32(i) * 4, i)
        rocdl.update_dpp(b.types.i32, 0, i, 0x111, 0xF, 0xF, True)
        rocdl.perm_b32(i, i, 0x0C0C0100)
        rocdl.ds_bpermute(Int64, i, w)
    assert b.lines()[:8] == [
        "%0 = rocdl.readfirstlane %arg0 : i32",
        "%1 = rocdl.readfirstlane %arg1 : f32",
        "%2 = rocdl.readlane %arg0, %c5_i32 : (i32, i32) -> i32",
        "%3 = rocdl.ballot %arg2 : i64",
        "%4 = arith.muli %arg0, %c4_i32 : i32",
        "%5 = rocdl.ds_bpermute %4, %arg0 : (i32, i32) -> i32",
        "%6 = rocdl.update.dpp %c0_i32, %arg0 with 273, 15, 15, true : i32",
        '%7 = llvm.call_intrinsic "llvm.amdgcn.perm"(%arg0, %arg0, %c202113280_i32) : (i32, i32, i32) -> i32',
    ]
    assert sum("rocdl.ds_bpermute" in line for line in b.lines()[8:]) == 2


def test_ballot_of_an_integer_tests_for_not_zero(body):
    with body("gfx942", "i32") as b:
        rocdl.ballot(Int64, Int32(b.args[0]))
    assert "arith.cmpi ne, %arg0" in b.lines()[0] and "rocdl.ballot" in b.lines()[1]


@pytest.mark.parametrize(
    "ctrl,arch,kind", [(0x100, "gfx942", ValueError), (0x150, "gfx942", ValueError), (0x142, "gfx1201", ValueError)]
)
def test_dpp_controls_are_checked(body, ctrl, arch, kind):
    with body(arch, "i32") as b:
        with pytest.raises(kind):
            rocdl.update_dpp(Int32, b.args[0], b.args[0], ctrl, 0xF, 0xF, False)


def test_arithmetic(body):
    with body("gfx942", "f32") as b:
        (x,) = b.args
        for name in ("rcp", "exp2", "log", "rsq", "sqrt", "sin", "cos"):
            assert isinstance(getattr(rocdl, name)(Float32, Float32(x)), Float32)
        rocdl.fmed3(Float32, x, 0.0, 1.0)
        rocdl.rcp(Float32, 2.0)
    assert [line.split()[2] for line in b.lines()] == [
        "rocdl.rcp",
        "rocdl.exp2",
        "rocdl.log",
        "rocdl.rsq",
        "rocdl.sqrt",
        "rocdl.sin",
        "rocdl.cos",
        "rocdl.fmed3",
        "rocdl.rcp",
    ]


def test_conversions(body):
    with body("gfx950", "f32", "i32", "vector<2xbf16>", "vector<2xi16>") as b:
        x, i, pair, old = b.args
        rocdl.cvt_pk_fp8_f32(Int32, x, x, i, False)
        rocdl.cvt_pk_f32_fp8(b.types.vector(2, b.types.f32), i, True)
        rocdl.cvt_f32_fp8(Float32, i, 2)
        rocdl.cvt_scalef32_pk_fp4_f32(Int32, i, x, x, x, 3)
        rocdl.cvt_scalef32_pk_fp4_bf16(Int32, i, pair, x, 1)
        rocdl.cvt_scalef32_pk_fp8_f32(b.types.vector(2, b.types.i16), old, x, x, x, 1)
        assert isinstance(rocdl.cvt_pk_bf16_f32(x, x), ArithValue)
        rocdl.cdna4.cvt_sr_f32_to_bf16(x, i)
    lines = b.lines()
    assert lines[0] == "%0 = rocdl.cvt.pk.fp8.f32 %arg0, %arg0 -> %arg1[false] : i32"
    assert lines[1].startswith("%1 = rocdl.cvt.pk.f32.fp8 %arg1[true]")
    assert lines[3] == "%3 = rocdl.cvt.scalef32.pk.fp4.f32 %arg0, %arg0, %arg0 -> %arg1[3] : i32"
    assert any("arith.truncf" in line and "vector<2xbf16>" in line for line in lines)
    assert any('"llvm.amdgcn.cvt.sr.bf16.f32"' in line for line in lines)


def test_scheduling(body):
    with body("gfx942") as b:
        rocdl.sched_barrier(0)
        rocdl.sched_mfma(1)
        rocdl.sched_vmem(2)
        rocdl.sched_dsrd(3)
        rocdl.sched_dswr(4)
        rocdl.sched_group_barrier(rocdl.mask_mfma | rocdl.mask_dsrd, 1, 2)
        rocdl.s_setprio(3)
        rocdl.s_nop(1)
        rocdl.iglp_opt(1)
    assert b.lines() == [
        "rocdl.sched.barrier none",
        "rocdl.sched.group.barrier mfma_wmma, 1, 0",
        "rocdl.sched.group.barrier vmem_read, 2, 0",
        "rocdl.sched.group.barrier ds_read, 3, 0",
        "rocdl.sched.group.barrier ds_write, 4, 0",
        "rocdl.sched.group.barrier mfma_wmma|ds_read, 1, 2",
        "rocdl.s.setprio 3",
        "rocdl.s.nop 1",
        "rocdl.iglp.opt 1",
    ]
    assert (rocdl.mask_mfma, rocdl.mask_vmem_rd, rocdl.mask_dsrd, rocdl.mask_dswr) == (8, 0x20, 0x100, 0x200)


def test_matrix_instructions_in_list_and_plain_form(body):
    with body("gfx950", "vector<4xf16>", "vector<4xf32>", "vector<8xi32>", "i32") as b:
        a, c, w, i = b.args
        vec = b.types.vector(4, b.types.f32)
        rocdl.mfma_f32_16x16x16f16(vec, [a, a, c, 0, 0, 0])
        rocdl.mfma_f32_16x16x16f16_(vec, a, a, c, 0, 0, 1)
        rocdl.mfma_scale_f32_16x16x128_f8f6f4(vec, [w, w, c, 0, 4, 1, i, 2, i])
    assert b.lines() == [
        "%0 = rocdl.mfma.f32.16x16x16f16 %arg0, %arg0, %arg1, 0, 0, none : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>",
        "%1 = rocdl.mfma.f32.16x16x16f16 %arg0, %arg0, %arg1, 0, 0, bcast_first_32 : (vector<4xf16>, vector<4xf16>, vector<4xf32>) "
        "-> vector<4xf32>",
        "%2 = rocdl.mfma.scale.f32.16x16x128.f8f6f4 %arg2, %arg2, %arg1, fp8_e4m3, fp4_e2m1, 1, %arg3, 2, %arg3 : "
        "(vector<8xi32>, vector<8xi32>, vector<4xf32>, i32, i32) -> vector<4xf32>",
    ]


def test_wmma(body):
    with body("gfx1201", "vector<8xf16>", "vector<8xf32>") as b:
        a, c = b.args
        rocdl.wmma_f32_16x16x16_f16(b.types.vector(8, b.types.f32), a, a, c)
    assert b.lines()[0].startswith("%0 = rocdl.wmma.f32.16x16x16.f16 %arg0, %arg0, %arg1")


def test_raw_buffer_memory(body):
    with body("gfx950", "!llvm.ptr<8>", "!llvm.ptr<3>", "i32", "f32") as b:
        rsrc, lds, i, x = b.args
        rocdl.raw_ptr_buffer_load(Float32, rsrc, i, 0, 3)
        rocdl.raw_ptr_buffer_store(x, rsrc, Int32(i), 0)
        op = rocdl.raw_ptr_buffer_load_lds(rsrc, lds, Int32(16), i, i, Int32(4), Int32(0))
        assert isinstance(op, ir.Operation) and op.name == "rocdl.raw.ptr.buffer.load.lds"
        rocdl.buffer_load_to_lds(rsrc, lds, i)
        rocdl.raw_ptr_buffer_atomic_fadd(x, rsrc, i, 0, 0)
    assert b.lines() == [
        "%0 = rocdl.raw.ptr.buffer.load %arg0, %arg2, %c0_i32, 3 : f32",
        "rocdl.raw.ptr.buffer.store %arg3, %arg0, %arg2, %c0_i32, 0 : f32",
        "rocdl.raw.ptr.buffer.load.lds %arg0, %arg1, %c16_i32, %arg2, %arg2, %c4_i32, 0",
        "rocdl.raw.ptr.buffer.load.lds %arg0, %arg1, %c4_i32, %arg2, %c0_i32, %c0_i32, 0",
        "%1 = rocdl.raw.ptr.buffer.atomic.fadd %arg3, %arg0, %arg2, %c0_i32, 0 : f32",
    ]


# What LLVM 22 selects an instruction for (llc on the intrinsic): chips that have it, of the five.
SELECTED = {
    ("fadd", "f32"): "gfx942 gfx950 gfx1250 gfx1201 gfx1100",
    ("fadd", "f64"): "gfx942 gfx950 gfx1250",
    ("fadd", "vector<2xf16>"): "gfx942 gfx950 gfx1250 gfx1201",
    ("fadd", "vector<2xbf16>"): "gfx950 gfx1250 gfx1201",
    ("fmax", "f32"): "gfx1250 gfx1201 gfx1100",
    ("fmax", "f64"): "gfx942 gfx950 gfx1250",
    ("smax", "i64"): "gfx942 gfx950 gfx1250 gfx1201 gfx1100",
    ("umin", "i16"): "",
}


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1250", "gfx1201", "gfx1100"])
@pytest.mark.parametrize(("kind", "type_"), SELECTED)
def test_buffer_atomics_by_chip(body, kind, type_, arch):
    with body(arch, "!llvm.ptr<8>", "i32", type_) as b:
        rsrc, i, x = b.args
        instruction = getattr(rocdl, f"raw_ptr_buffer_atomic_{kind}")
        if arch in SELECTED[kind, type_].split():
            instruction(x, rsrc, i, 0)
            return
        with pytest.raises(IntrinsicNotOnChip, match=f"raw_ptr_buffer_atomic_{kind} of {type_}.* is not available on {arch}"):
            instruction(x, rsrc, i, 0)


def test_dma_widths_depend_on_the_chip(body):
    with body("gfx942", "!llvm.ptr<8>", "!llvm.ptr<3>", "i32") as b:
        with pytest.raises(RocdlOperand, match="1, 2, 4 bytes on gfx942, got 16"):
            rocdl.buffer_load_to_lds(*b.args, size_bytes=16)
    with body("gfx1100", "!llvm.ptr<8>", "!llvm.ptr<3>", "i32") as b:
        with pytest.raises(IntrinsicNotOnChip, match="gfx1100"):
            rocdl.buffer_load_to_lds(*b.args)


def test_unknown_names_list_close_ones():
    with pytest.raises(AttributeError, match="did you mean `readfirstlane`"):
        rocdl.readfirst_lane
    assert not hasattr(rocdl, "no_such_thing_at_all")
    assert "rsq" in dir(rocdl) and "s_waitcnt" in dir(rocdl)


def test_instructions_of_other_chips_are_refused(body):
    with body("gfx942"):
        with pytest.raises(IntrinsicNotOnChip) as caught:
            rocdl.s_wait_dscnt(0)
    assert "gfx1250" in caught.value.reason and caught.value.arch == "gfx942"


def test_argument_errors(body):
    with body("gfx942", "f32", "i32") as b:
        x, i = b.args
        with pytest.raises(RocdlArguments, match="misses `arg`"):
            rocdl.rcp(Float32)
        with pytest.raises(RocdlArguments, match="has no argument `fast`"):
            rocdl.rcp(Float32, x, fast=True)
        with pytest.raises(RocdlOperand, match="argument `res` of `rocdl.rcp` must be the result type"):
            rocdl.rcp(x, x)
        with pytest.raises(RocdlStatic, match="compile-time integer, got a run-time value"):
            rocdl.sched_barrier(i)
        with pytest.raises(RocdlStatic, match="bit mask"):
            rocdl.sched_barrier(0x10000)


def test_named_arguments(body):
    with body("gfx942", "f32", "i32") as b:
        x, i = b.args
        rocdl.cvt_pk_fp8_f32(res=Int32, src_a=x, src_b=x, old=i, word_sel=True)
        rocdl.cvt_pk_fp8_f32(Int32, x, srcB=x, old=i, wordSel=True, loc=None, ip=None)
    assert b.lines()[0].split(" = ")[1] == b.lines()[1].split(" = ")[1]


def test_clusters(body):
    with body("gfx1250") as b:
        rocdl.cluster.compute_cluster_position()
        rocdl.cluster.cluster_barrier()
        rocdl.cluster_workgroup_id_z(Int32)
    text = b.text
    assert "rocdl.cluster.workgroup.id.x" in text and "scf.if" in text
    assert text.index("rocdl.s.barrier.signal id = -3") < text.index("rocdl.s.barrier.wait id = -3")


def test_result_is_what_res_asks_for(body):
    with body("gfx1201", "i32", "vector<8xf16>", "vector<8xf32>") as b:
        i, a, c = b.args
        assert isinstance(rocdl.readfirstlane(Int32, i), Int32)
        raw = rocdl.readfirstlane(b.types.i32, Int32(i))
        assert isinstance(raw, ArithValue) and isinstance(raw, ir.Value)
        raw >> 2  # no sign: zeros come in
        rocdl.readfirstlane(Int32, i) >> 2
        acc = rocdl.wmma_f32_16x16x16_f16(c.type, a, a, c)
        acc = rocdl.wmma_f32_16x16x16_f16(acc.type, a, a, acc.result)
        assert isinstance(rocdl.wmma_f32_16x16x16_f16(Vector.make_type(8, Float32), a, a, acc), ArithValue)
        rocdl.readfirstlane(b.types.i32, raw)
    shifts = [line.split()[2] for line in b.lines() if "arith.shr" in line]
    assert shifts == ["arith.shrui", "arith.shrsi"]

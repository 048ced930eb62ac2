"""Waits, barriers, clusters, scheduling hints and inline assembly of `fx.rocdl`, name by name: the data come through unchanged,
the instruction stands in the ISA."""

import numpy as np
import pytest
from named import CDNA, CHIPS, Case, check, launched, table

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.diag import FlyError
from flydsl.expr.typing import T
from flydsl.utils import env

R = fx.rocdl
N = 128
X = np.random.default_rng(14).integers(-1000, 1000, N).astype(np.int32)
RDNA3, RDNA4, GFX1250 = ("gfx1100",), ("gfx1201",), ("gfx1250",)
ONE_WORD = (*CDNA, *RDNA3, *RDNA4)
SPLIT = (*RDNA4, *GFX1250)


def exchange(act, is_wait):
    """A body that passes values through LDS to the neighbouring wave, with `act()` between the write and the barrier.

    A wait stands first: next to one that LLVM needs, both become one.
    """

    def body(i, x, out):
        if is_wait:
            act()
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N]).peek()
        lds[i] = x[i]
        if not is_wait:
            act()
        fx.barrier()
        out[i] = lds[i ^ 64]

    return body


def exchanged(n, x):
    return x[np.arange(N) ^ 64]


def hint(name, act, isa, chips=CHIPS, tried=CHIPS):
    return Case(name, exchange(act, "wait" in name), (X,), exchanged, isa, chips, tried=tried)


WAITS = [
    hint("s_waitcnt(vmcnt=, lgkmcnt=, expcnt=)", lambda: R.s_waitcnt(vmcnt=3, lgkmcnt=2, expcnt=1), r"s_waitcnt vmcnt\(3\) expcnt\(1\) lgkmcnt\(2\)",
         ONE_WORD),
    hint("s_waitcnt(lgkmcnt=)", lambda: R.s_waitcnt(lgkmcnt=fx.Int32(5)), r"s_waitcnt lgkmcnt\(5\)\n", ONE_WORD),
    hint("s_waitcnt of a bit field", lambda: R.s_waitcnt(0), r"s_waitcnt vmcnt\(0\) expcnt\(0\) lgkmcnt\(0\)", ONE_WORD),
    hint("s_waitcnt by keyword", lambda: R.s_waitcnt(bitfield=0xC07F), "s_waitcnt ", ONE_WORD, CDNA),
    hint("cdna3.s_waitcnt", lambda: R.cdna3.s_waitcnt(9, None, 2), {"gfx9": r"s_waitcnt vmcnt\(9\) expcnt\(2\)"}, ONE_WORD, CDNA),
    hint("rdna3.s_waitcnt", lambda: R.rdna3.s_waitcnt(lgkmcnt=40), {"gfx1": r"s_waitcnt lgkmcnt\(40\)"}, ONE_WORD, RDNA3),
    hint("rdna4.s_waitcnt", lambda: R.rdna4.s_waitcnt(vmcnt=40), {"gfx1": r"s_waitcnt vmcnt\(40\)"}, ONE_WORD, RDNA4),
    hint("s_wait_loadcnt", lambda: R.s_wait_loadcnt(11), "s_wait_loadcnt 0xb", SPLIT),
    hint("s_wait_storecnt", lambda: R.s_wait_storecnt(count=12), "s_wait_storecnt 0xc", SPLIT),
    hint("s_wait_dscnt", lambda: R.s_wait_dscnt(fx.Int32(13)), "s_wait_dscnt 0xd", SPLIT),
    hint("s_wait_asynccnt", lambda: R.s_wait_asynccnt(14), "s_wait_asynccnt 0xe", GFX1250),
    hint("s_wait_tensorcnt", lambda: R.s_wait_tensorcnt(3), "s_wait_tensorcnt 0x3", GFX1250),
    hint("tdm_ops.tensor_wait", lambda: R.tdm_ops.tensor_wait(2), "s_wait_tensorcnt 0x2", GFX1250),
    hint("wait_asyncmark", lambda: R.wait_asyncmark(), "", ("gfx950", *GFX1250)),
]  # fmt: skip


@table(WAITS)
def test_waits(case, arch):
    check(case, arch)


SCHEDULING = [
    hint("sched_barrier(0)", lambda: R.sched_barrier(0), r"sched_barrier mask\(0x00000000\)"),
    hint("sched_barrier of kinds", lambda: R.sched_barrier(mask=R.mask_mfma | R.mask_vmem_rd), r"sched_barrier mask\(0x00000028\)", tried=CDNA),
    hint("sched_group_barrier", lambda: R.sched_group_barrier(R.mask_dswr, 2, 1), r"sched_group_barrier mask\(0x00000200\) size\(2\) SyncID\(1\)"),
    hint("sched_group_barrier by keyword", lambda: R.sched_group_barrier(mask=0x2, size=fx.Int32(3), group_id=0),
         r"sched_group_barrier mask\(0x00000002\) size\(3\) SyncID\(0\)", tried=CDNA),
    hint("sched_mfma", lambda: R.sched_mfma(2), r"sched_group_barrier mask\(0x00000008\) size\(2\) SyncID\(0\)"),
    hint("sched_vmem", lambda: R.sched_vmem(3), r"sched_group_barrier mask\(0x00000020\) size\(3\) SyncID\(0\)"),
    hint("sched_dsrd", lambda: R.sched_dsrd(4), r"sched_group_barrier mask\(0x00000100\) size\(4\) SyncID\(0\)"),
    hint("sched_dswr", lambda: R.sched_dswr(1), r"sched_group_barrier mask\(0x00000200\) size\(1\) SyncID\(0\)"),
    hint("s_setprio", lambda: [R.s_setprio(3), R.s_setprio(15), R.s_setprio(priority=0)], r"s_setprio 3[\s\S]*s_setprio 15[\s\S]*s_setprio 0"),
    hint("s_nop", lambda: R.s_nop(7), r"s_nop 7"),
    hint("iglp_opt", lambda: R.iglp_opt(1), r"iglp_opt mask\(0x00000001\)", CDNA),
    hint("disable_xdl_arb_stall", lambda: R.disable_xdl_arb_stall(), r"s_setreg_imm32_b32 hwreg\(.*, 2, 1\), 1", GFX1250),
    hint("s_barrier", lambda: R.s_barrier(), {"gfx942": r"s_barrier\n", "gfx1100": r"s_barrier\n", "gfx1201": r"s_barrier_signal -1\n\ts_barrier_wait"}),
    hint("s_barrier_signal, s_barrier_wait", lambda: [R.s_barrier_signal(-1), R.s_barrier_wait(id=-1)],
         r"s_barrier_signal -1[\s\S]*s_barrier_wait (-1|0xffff)", SPLIT),
]  # fmt: skip


@table(SCHEDULING)
def test_scheduling(case, arch):
    check(case, arch)


def pinned(i, x, out):
    E = R.experimental
    value = E.sched_vgpr(x[i], 7)
    value = E.sched_sgpr(value, 3, soft=True)
    value = E.sched_agpr(value, 2)
    out[i] = E.sched_bank(value, 1, soft=False)


PINNED = [Case("experimental.sched_*", pinned, (X,), lambda n, x: x, tried=CDNA)]


@table(PINNED)
def test_register_hints(case, arch):
    check(case, arch)


def split(i, x, out):
    """LDS written before the signal is read after the wait; other work stands between."""
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, N]).peek()
    lds[i] = x[i]
    R.s_wait_dscnt(0)
    R.s_barrier_signal(-1)
    more = x[i] * 3
    R.s_barrier_wait(-1)
    out[i] = lds[i ^ 64] + more


SPLIT_BARRIER = [Case("split barrier", split, (X,), lambda n, x: x[np.arange(N) ^ 64] + 3 * x, "s_barrier_signal -1", SPLIT)]


@table(SPLIT_BARRIER)
def test_split_barrier(case, arch):
    check(case, arch)


# --- clusters --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", CHIPS)
def test_clusters(arch):
    """Position in the cluster and its barrier, on a grid of clusters of (2, 2, 1) workgroups."""

    @flyc.kernel
    def kernel(out: fx.Tensor):
        i, b = fx.thread_idx.x, fx.block_idx
        block = b.x + 4 * b.y
        x, y = R.cluster.compute_cluster_position()
        R.cluster.cluster_signal_once_per_wg()
        R.cluster.cluster_wait()
        R.cluster.cluster_barrier()
        words = [R.cluster_workgroup_id_x(fx.Int32), fx.Int32(R.cluster_workgroup_id_y(T.i32)), R.cluster_workgroup_id_z(fx.Int32),
                 fx.Int32(x), fx.Int32(y), fx.Int32(R.cluster.is_wave_leader())]  # fmt: skip
        for k in fx.range_constexpr(6):
            out[(block * 64 + i) * 6 + k] = words[k]

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(4, 2, 1), block=(64, 1, 1), cluster=(2, 2, 1))

    out = np.zeros((2, 4, 64, 6), np.int32)
    with env.override(ARCH=arch, FLYDSL_GPU_ARCH=arch):
        if arch != "gfx1250":
            with pytest.raises(FlyError, match=arch) as caught:
                launch(out.reshape(-1))
            assert "test_names_sync.py" in str(caught.value)
            return
        launch(out.reshape(-1))
    assert R.cluster.CLUSTER_BARRIER_ID == -3
    by, bx, lane = np.indices(out.shape[:3])
    for k, want in enumerate((bx % 2, by % 2, 0 * bx, bx % 2, by % 2, (lane < 32).astype(np.int32))):
        np.testing.assert_array_equal(out[..., k], want, str(k))


# --- inline assembly --------------------------------------------------------------------------------------------------------------


def test_inline_assembly_reaches_the_isa_and_is_refused_by_the_simulator_by_name():
    def body(i, x, out):
        assemble = R.inline_asm.inline_asm
        value = assemble(fx.Int32, "v_add_u32 $0, $1, $2", "=v,v,v", [x[i], 7])
        assemble(None, "s_sleep 1", "", has_side_effects=True)
        out[i] = value + fx.Int32(assemble(T.i32, "v_mov_b32 $0, $1", "=v,v", operands=(x[i].ir_value(),), has_side_effects=False))

    case = Case("inline_asm", body, (X,), lambda n, x: 2 * x + 7)
    with pytest.raises(FlyError, match="v_add_u32") as caught:
        launched(case, "gfx942")
    assert "test_names_sync.py" in str(caught.value)


# --- wrong uses -------------------------------------------------------------------------------------------------------------------

WRONG = {
    "raw and named": ("gfx942", lambda i: R.s_waitcnt(0, vmcnt=1), "legacy raw s_waitcnt bitfield cannot be combined with non-None keyword arguments"),
    "a run-time count": ("gfx942", lambda i: R.s_waitcnt(vmcnt=i), "vmcnt must be a static Python int or Integer, got a run-time value"),
    "a count of 64": ("gfx942", lambda i: R.s_waitcnt(vmcnt=64), r"vmcnt must be in \[0, 63\] on this target, got 64"),
    "a count of 16": ("gfx942", lambda i: R.s_waitcnt(lgkmcnt=16), r"lgkmcnt must be in \[0, 15\] on this target, got 16"),
    "a count of 8": ("gfx1201", lambda i: R.s_waitcnt(expcnt=8), r"expcnt must be in \[0, 7\] on this target, got 8"),
    "a text": ("gfx942", lambda i: R.s_waitcnt(vmcnt="0"), "vmcnt must be a static Python int"),
    "no word of waits": ("gfx1250", lambda i: R.s_waitcnt(vmcnt=0), "s_waitcnt is not supported on target arch 'gfx1250'; supported: gfx942"),
    "a field of 17 bits": ("gfx942", lambda i: R.s_waitcnt(1 << 16), r"\[0, 65535\], got 65536"),
    "a negative count": ("gfx1201", lambda i: R.s_wait_dscnt(-1), r"count.*\[0, 32767\], got -1"),
    "a priority of 17 bits": ("gfx942", lambda i: R.s_setprio(1 << 16), r"\[0, 65535\], got 65536"),
    "16 idle cycles more": ("gfx942", lambda i: R.s_nop(16), r"\[0, 15\], got 16"),
    "a strategy of 4": ("gfx942", lambda i: R.iglp_opt(4), r"\[0, 3\], got 4"),
    "a mask of 13 bits": ("gfx942", lambda i: R.sched_barrier(0x1000), "bit mask"),
    "a run-time mask": ("gfx942", lambda i: R.sched_group_barrier(i, 1, 0), "mask.*compile-time"),
    "a negative size": ("gfx942", lambda i: R.sched_mfma(-1), "size.*got -1"),
    "a barrier of clusters": ("gfx1201", lambda i: R.s_barrier_signal(-3), r"id.*\[-2, -1\], got -3"),
    "no such barrier": ("gfx1250", lambda i: R.s_barrier_wait(17), r"id.*\[-4, 16\], got 17"),
    "clusters elsewhere": ("gfx1201", lambda i: R.cluster.cluster_wait(), "cluster_wait.*gfx1201"),
    "a run-time id": ("gfx1250", lambda i: R.s_barrier_wait(i), "id.*compile-time"),
    "assembly of a list": ("gfx942", lambda i: R.inline_asm.inline_asm(fx.Int32, "v_mov_b32 $0, $1", "=v,v", [[i]]), "operands"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses(case):
    arch, use, text = WRONG[case]
    with pytest.raises(FlyError, match=text) as caught:
        launched(Case(case, lambda i, x, out: use(i), (X,), lambda n, x: x), arch)
    assert "test_names_sync.py" in str(caught.value)


CASES = [*WAITS, *SCHEDULING, *PINNED, *SPLIT_BARRIER]

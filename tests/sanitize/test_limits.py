"""What the checks do not find, or report although it is none: one kernel per row of the table in docs/sanitizers.md."""

import numpy as np
import pytest
from kernels_ir import kernel, module
from launching import allocation
from pairs import BARRIER, BASE, BUF, PRELUDE, load_g, load_l, loc, store_g, store_l
from pairs_more import FIRST, LANE0, guarded

import flydsl.sim
from flydsl.targets.sim import Program, SimOptions
from flydsl.targets.sim.options import GROUPS

SHOW = store_g("%v", "%i", 13)
SUMS = BASE + guarded(LANE0, store_l("%tid", "%wave", 10)) + BARRIER + load_l("%u", "%c0", 11)
LIMITS = {
    # the second value of a scratch cell is not stored: the first one is read again, ordered and initialised
    "stale-value": SUMS + load_l("%v", "%c1", 14) + SHOW,
    # element 3 instead of element tid: in bounds, initialised, ordered
    "wrong-element": "%c3 = arith.constant 3 : i32\n" + load_g("%v", "%c3", 20) + SHOW,
    # the last element of a sum is left out
    "one-trip-less": "%c3 = arith.constant 3 : i32\n%v = scf.for %k = %c0 to %c3 step %c1 iter_args(%s = %c0) -> (i32) : i32 {\n"
    "%n = arith.addi %s, %k : i32\nscf.yield %n : i32\n}\n" + SHOW,
    # an atomic of another workgroup may order the read, so the read of its data is not judged
    "read-beside-fences": store_g("%tid", "%i", 30) + 'llvm.fence syncscope("agent") release\n'
    f"%o = llvm.atomicrmw add %B, %c1 syncscope(\"agent\") acq_rel : !llvm.ptr<1>, i32 {loc(31)}\n"
    "%far = arith.xori %i, %c128 : i32\n" + load_g("%w", "%far", 32, "A"),
    # LDS is up to date at a bare s_barrier; on a chip the store may still be under way without lgkmcnt(0)
    "bare-s-barrier": BASE + store_l("%tid", "%tid", 40) + "rocdl.s.barrier\n" + load_l("%v", "%back", 41) + store_g("%v", "%i", 42),
    # a choice between an unwritten register and a value is not followed
    # 65536.0 becomes an f16 by bit arithmetic that forgets the overflow: no conversion, so `lossy` has nothing to look at
    "conversion-by-bits": "%big = arith.constant 65536.0 : f32\n%b = arith.bitcast %big : f32 to i32\n%c13 = arith.constant 13 : i32\n"
    "%s = arith.shrui %b, %c13 : i32\n%m = arith.constant 65535 : i32\n%v = arith.andi %s, %m : i32\n" + SHOW,
    "unwritten-behind-a-select": "%p = ub.poison : i32\n%few = arith.cmpi slt, %tid, %c4 : i32\n%v = arith.select %few, %p, %tid : i32\n" + SHOW,
}  # fmt: skip


def launch(body: str, **extra: object) -> list:
    text = module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", PRELUDE + "%c128 = arith.constant 128 : i32\n" + body), lds=BUF)
    a, b = (np.zeros(256, np.int32) for _ in range(2))
    arrays = [allocation("A", a), allocation("B", b)]
    checks = frozenset(GROUPS["all"]) - {"needless", "holes", "unread"}
    options = SimOptions(checks, "collect")
    report = Program(text).launch("k", (2, 1, 1), (128, 1, 1), [a.ctypes.data, b.ctypes.data], arrays, options=options)
    return [f for f in report.findings if f.severity == "error"]


@pytest.mark.parametrize("name", LIMITS)
def test_it_is_not_found(name: str) -> None:
    assert [str(f) for f in launch(LIMITS[name])] == []


def test_a_flag_in_lds_is_reported_although_it_may_order() -> None:
    """Waves that hand over through a flag: no barrier, so it counts as a race."""
    body = BASE + guarded(FIRST, store_l("%c1", "%c0", 50)) + load_l("%v", "%c0", 51) + SHOW
    assert {f.kind for f in launch(body)} & {"race", "uninitialised"}


def test_torch_writes_are_not_seen() -> None:
    """`fill_` on the default stream, a launch on another one that does not wait for it."""
    torch = pytest.importorskip("torch")
    import doc_kernels

    from flydsl.runtime.torch_cuda import simulated_cuda

    with simulated_cuda(), flydsl.sim.check() as found:
        a, b = torch.zeros(128).cuda(), torch.zeros(128).cuda()
        a.fill_(1)
        doc_kernels.doubled(a, b, torch.cuda.Stream())
    assert not found


def test_races_behind_a_bare_address_are_not_seen() -> None:
    """Two workgroups write one element of an array that no launch was given."""
    a = np.zeros(256, np.int32)
    text = module(kernel("k", "%A: !llvm.ptr<1>", PRELUDE + store_g("%bid", "%tid", 80)))
    report = Program(text).launch("k", (2, 1, 1), (128, 1, 1), [a.ctypes.data], [], options=SimOptions(on_finding="collect"))
    assert report.findings == []


def test_a_sum_that_is_used_both_ways_counts_as_signed() -> None:
    """2^31 + tid does not wrap as an unsigned number, and one use reads it as one."""
    big = "%half = arith.constant 1073741824 : i32\n%c = arith.addi %half, %tid : i32\n%v = arith.addi %c, %half : i32\n"
    uses = "%w = arith.extui %v : i32 to i64\n%x = arith.extsi %v : i32 to i64\n"
    assert [f.kind for f in launch(big + uses + SHOW)] == ["overflow"]
    assert launch(big + uses.splitlines()[0] + "\n" + SHOW) == []


def test_one_memory_through_two_overlapping_tensors_has_two_marks() -> None:
    """Views that overlap by half: writes through both to one element are not compared."""
    raw = np.zeros(192, np.int32)
    first, second = raw[:128], raw[64:]
    text = module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", PRELUDE + store_g("%tid", "%tid", 70) + store_g("%c1", "%back", 71, "B")))
    arrays = [allocation("A", first), allocation("B", second)]
    args = [first.ctypes.data, second.ctypes.data]
    report = Program(text).launch("k", (1, 1, 1), (128, 1, 1), args, arrays, options=SimOptions(on_finding="collect"))
    assert report.findings == []

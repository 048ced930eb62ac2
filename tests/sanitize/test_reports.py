"""Texts of findings, modes, reports that are not errors, and whole kernels."""

import warnings

import numpy as np
import pytest
from kernels_ir import VEC_ADD, gemm, kernel, lds_array, module, softmax
from launching import run
from pairs import PAIRS

from flydsl.diag.errors.simulator import SimFindings
from flydsl.targets.sim.options import CHECKS


def test_race_text_names_both_lines_and_the_missing_barrier() -> None:
    x = np.zeros((4, 1024), np.float32)
    with pytest.raises(SimFindings) as caught:
        run(softmax(second_barrier=False), "softmax", 4, 256, x, np.zeros_like(x))
    text = str(caught.value)
    assert "error[FLY_SIM_RACE]" in text and "softmax.py:41:9" in text and "array `red` of LDS" in text
    assert "missing: no barrier between line 41 and line 4" in text
    assert "fix: put a barrier between the two accesses" in text


@pytest.mark.parametrize("schedule", ("lockstep", "ahead", "reverse", "random:2"))
def test_sound_softmax_and_gemm_are_silent(schedule: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 1024)).astype(np.float32)
    report = run(softmax(), "softmax", 5, 256, x, np.zeros_like(x), schedule=schedule, on_finding="collect")
    assert report.findings == []
    a, b = (np.random.default_rng(s).normal(size=(128, 64)).astype(np.float16) for s in (1, 2))
    c = np.zeros((128, 128), np.float32)
    report = run(gemm(128, 128, 64), "gemm", 1, 256, a, b, c, schedule=schedule, on_finding="collect")
    assert report.findings == []
    assert np.abs(c - a.astype(np.float64) @ b.astype(np.float64).T).max() < 1e-4


def test_gemm_without_its_second_barrier_races() -> None:
    a, b = (np.zeros((128, 64), np.float16) for _ in range(2))
    report = run(
        gemm(128, 128, 64, barriers=False), "gemm", 1, 256, a, b, np.zeros((128, 128), np.float32), on_finding="collect"
    )
    assert {f.kind for f in report.findings} == {"race"} and {f.tensor for f in report.findings} == {"tile_a", "tile_b"}


def test_modes() -> None:
    pair = PAIRS[0]
    args = ("k", 2, 128, np.zeros(1024, np.int32), np.zeros(1024, np.int32))
    with pytest.raises(SimFindings):
        run(pair.text(pair.broken), *args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(pair.text(pair.broken), *args, on_finding="warn")
    assert any("FLY_SIM_RACE" in str(w.message) for w in caught)
    report = run(pair.text(pair.broken), *args, on_finding="collect")
    assert len(report.findings) == 1 and report.findings[0].count > 1


def test_bank_report() -> None:
    """Rows of 32 words read down a column meet in one bank; padded rows do not."""

    def body(row: int) -> str:
        return f"""
      %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
      %w = arith.constant {row} : i32
      %j = arith.muli %tid, %w : i32
      %p = llvm.getelementptr %base[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %tid, %p {{alignment = 4 : i64}} : i32, !llvm.ptr<3>"""

    for row, degree in ((32, 32), (33, 1), (1, 1), (2, 2), (4, 4)):
        text = module(kernel("k", "%A: !llvm.ptr<1>", body(row)), lds=lds_array("buf", 16384))
        report = run(text, "k", 1, 64, np.zeros(1, np.int32), checks=frozenset({"banks"}))
        (measured,) = report.banks.rows.values()
        assert measured.degree == degree, row


def test_holes_are_drawn() -> None:
    a, b = np.ones((8, 32), np.float32), np.ones((8, 32), np.float32)
    c = np.zeros((8, 32), np.float32)
    report = run(VEC_ADD, "vec_add", 1, 256, a, b, c, 208, checks=frozenset({*CHECKS, "holes"}), on_finding="collect")
    (hole,) = report.findings
    assert (hole.kind, hole.tensor, hole.index, hole.severity) == ("never-written", "C", (6, 16), "warning")
    assert "48 of 256" in hole.message and "################................" in hole.message


def test_partial_buffer_stores_split_cells() -> None:
    """The ragged end of a bounded buffer is stored element by element; neighbours of other workgroups stay apart."""
    body = """
      %s = arith.constant 0 : i16
      %c512 = arith.constant 504 : i32
      %z = arith.constant 0 : i32
      %c16 = arith.constant 16 : i32
      %o = arith.muli %tid, %c16 : i32
      %gb = arith.muli %bid, %c512 : i32
      %p = llvm.getelementptr %A[%gb] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %nr = arith.constant 504 : i64
      %fl = arith.constant 159744 : i32
      %r = rocdl.make.buffer.rsrc %p, %s, %nr, %fl : !llvm.ptr<1> to !llvm.ptr<8>
      %v = vector.broadcast %bid : i32 to vector<4xi32>
      rocdl.raw.ptr.buffer.store %v, %r, %o, %z, 0 : vector<4xi32>"""
    a = np.zeros(126 * 3, np.int32)
    report = run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 3, 64, a, on_finding="collect")
    assert report.findings == [] and a.tolist() == [g for g in range(3) for _ in range(126)]


def test_split_k_with_ordered_atomics_is_not_judged() -> None:
    """Workgroups that hand over data through a counter with fences: reads are ordered by it."""
    body = """
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c64 = arith.constant 64 : i32
      %p = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %tid, %p {alignment = 4 : i64} : i32, !llvm.ptr<1>
      llvm.fence syncscope("agent") release
      %first = arith.cmpi eq, %tid, %c0 : i32
      %old = scf.if %first -> (i32) {
        %t = llvm.atomicrmw add %B, %c1 syncscope("agent") acq_rel : !llvm.ptr<1>, i32
        scf.yield %t : i32
      } else {
        scf.yield %c0 : i32
      }
      %mine = rocdl.readfirstlane %old : i32
      %last = arith.cmpi eq, %mine, %c1 : i32
      scf.if %last {
        %v = llvm.load %A {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %q = llvm.getelementptr %C[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %v, %q {alignment = 4 : i64} : i32, !llvm.ptr<1>
      }"""
    text = module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %C: !llvm.ptr<1>", body))
    report = run(
        text, "k", 2, 64, np.zeros(128, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32), on_finding="collect"
    )
    assert report.findings == []


def value_kernel(op: str) -> str:
    body = f"""
      %c3 = arith.constant 3 : i32
      %c0 = arith.constant 0.0 : f32
      %big = arith.constant 2147483600 : i32
      %f = arith.sitofp %tid : i32 to f32
      {op} loc("kernel.py":21:3)
      %p = llvm.getelementptr %A[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %r, %p {{alignment = 4 : i64}} : {"i32" if "i32" in op else "f32"}, !llvm.ptr<1>"""
    return module(kernel("k", "%A: !llvm.ptr<1>", body))


@pytest.mark.parametrize(
    "check,kind,op,thread",
    [
        ("nan", "not-finite", "%r = arith.divf %f, %c0 : f32", 0),
        ("nan", "not-finite", "%r = math.log %f : f32", 0),
        ("overflow", "overflow", "%r = arith.addi %tid, %big : i32", 48),
    ],
)
def test_value_checks_are_opt_in(check: str, kind: str, op: str, thread: int) -> None:
    a = np.zeros(64, np.float32)
    assert run(value_kernel(op), "k", 1, 64, a, on_finding="collect").findings == []
    report = run(value_kernel(op), "k", 1, 64, a, on_finding="collect", checks=frozenset({check}))
    assert [(f.kind, f.span.line, f.thread[0]) for f in report.findings] == [(kind, 21, thread)]


def test_a_value_that_was_not_finite_before_is_not_reported_again() -> None:
    op = "%n = arith.divf %c0, %c0 : f32\n%r = arith.addf %n, %f : f32"
    report = run(value_kernel(op), "k", 1, 64, np.zeros(64, np.float32), on_finding="collect", checks=frozenset({"nan"}))
    assert len(report.findings) == 1 and report.findings[0].span.line != 21


@pytest.mark.parametrize("value,kind", [("%c1", "same-value-write"), ("%bid", "race")])
def test_writes_of_workgroups_that_run_one_after_the_other(value: str, kind: str) -> None:
    from pairs import PRELUDE, store_g

    text = module(kernel("k", "%A: !llvm.ptr<1>", PRELUDE + store_g(value, "%tid", 80)))
    report = run(text, "k", 3, 64, np.zeros(64, np.int32), lanes=64, on_finding="collect")
    assert report.slabs == 3 and [f.kind for f in report.findings] == [kind]


TENSOR_STORE = """
      %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
      %z = arith.constant dense<0> : vector<8xi32>
      %n = arith.constant 0 : i32
      %e = arith.constant 128 : i32
      %c32 = arith.constant 32 : i32
      %b16 = arith.trunci %bid : i32 to i16
      scf.for %o = %n to %e step %c32 : i32 {
        %at = arith.addi %o, %tid : i32
        %s = llvm.getelementptr %base[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
        llvm.store %b16, %s {alignment = 2 : i64} : i16, !llvm.ptr<3>
      }
      "rocdl.tensor.store.from.lds"(%d0, %d1, %d2, %d3, %z) : (vector<4xi32>, vector<8xi32>, vector<4xi32>, vector<4xi32>, vector<8xi32>) -> ()
          loc("kernel.py":70:1)
      rocdl.s.wait.tensorcnt 0"""


def test_tensor_stores_of_two_workgroups_to_one_tile_race() -> None:
    """One descriptor for all workgroups: both store the whole tile."""
    from test_dma import descriptor

    params = "%A: !llvm.ptr<1>, %d0: vector<4xi32>, %d1: vector<8xi32>, %d2: vector<4xi32>, %d3: vector<4xi32>"
    text = module(kernel("k", params, TENSOR_STORE), "gfx1250", lds_array("buf", 256))
    a = np.zeros((8, 16), np.int16)
    groups = descriptor(a.ctypes.data, (16, 8), (16, 8), (16,))
    assert run(text, "k", 1, 32, a, *groups, on_finding="collect").findings == []
    for lanes in (65536, 32):  # the workgroups in one slab, and one after the other
        (finding,) = run(text, "k", 2, 32, a, *groups, on_finding="collect", lanes=lanes).findings
        assert (finding.kind, finding.span.line, finding.other.line) == ("race", 70, 70)
        assert (finding.block, finding.thread, finding.other_block) == ((1, 0, 0), (0, 0, 0), (0, 0, 0)) and finding.index == (0, 0)
        assert finding.count == 1


def test_tensors_of_which_nothing_is_read_or_written() -> None:
    a, b, c = (np.ones(64, np.float32) for _ in range(3))
    report = run(VEC_ADD, "vec_add", 1, 64, a, b, c, 0, checks=frozenset({"unread", "holes"}), on_finding="collect")
    found = {(f.kind, f.severity, f.tensor) for f in report.findings}
    assert found == {("never-read", "warning", "A"), ("never-read", "warning", "B"), ("never-written", "warning", "C")}
    assert all("64 of 64 elements" in str(f) for f in report.findings)

"""Branches and loops under masks, against per-thread Python."""

import numpy as np
import pytest
from kernels_ir import kernel, lds_array, module
from launching import apply, run

from flydsl.diag.errors.simulator import SimFindings, SimUnsupportedOp
from flydsl.targets.sim import Program

X = np.random.default_rng(0).integers(-50, 50, 333).astype(np.int32)


def test_nested_branches_with_results() -> None:
    ops = """
      %c0 = arith.constant 0 : i32
      %c10 = arith.constant 10 : i32
      %c3 = arith.constant 3 : i32
      %neg = arith.cmpi slt, %x0, %c0 : i32
      %r, %s = scf.if %neg -> (i32, i32) {
        %m = arith.muli %x0, %c3 : i32
        %far = arith.cmpi slt, %x0, %c10 : i32
        %far2 = arith.remsi %x0, %c3 : i32
        %is = arith.cmpi eq, %far2, %c0 : i32
        %q = scf.if %is -> (i32) {
          scf.yield %c10 : i32
        } else {
          scf.yield %m : i32
        }
        scf.yield %q, %x0 : i32, i32
      } else {
        %a = arith.addi %x0, %c10 : i32
        scf.yield %a, %c3 : i32, i32
      }"""

    def one(x: int) -> int:
        if x < 0:
            return 10 if x % 3 == 0 else x * 3
        return x + 10

    assert apply(ops, "i32", X).tolist() == [one(int(x)) for x in X]


def test_vector_results_merge_piece_by_piece() -> None:
    ops = """
      %c0 = arith.constant 0 : i32
      %v = vector.broadcast %x0 : i32 to vector<8xi32>
      %w = vector.insert %c0, %v [2] : i32 into vector<8xi32>
      %neg = arith.cmpi slt, %x0, %c0 : i32
      %u = scf.if %neg -> (vector<8xi32>) {
        scf.yield %w : vector<8xi32>
      } else {
        %t = vector.extract_strided_slice %w {offsets = [0], sizes = [4], strides = [1]} : vector<8xi32> to vector<4xi32>
        %t2 = arith.addi %t, %t : vector<4xi32>
        %w2 = vector.insert_strided_slice %t2, %w {offsets = [4], strides = [1]} : vector<4xi32> into vector<8xi32>
        scf.yield %w2 : vector<8xi32>
      }
      %r = vector.reduction <add>, %u : vector<8xi32> into i32"""

    def one(x: int) -> int:
        w = [x] * 8
        w[2] = 0
        if x >= 0:
            w[4:] = [2 * e for e in w[:4]]
        return sum(w)

    assert apply(ops, "i32", X).tolist() == [one(int(x)) for x in X]


@pytest.mark.parametrize("bound", ("%x0", "%c17"))
def test_loops_with_divergent_and_uniform_trip_counts(bound: str) -> None:
    ops = f"""
      %c0 = arith.constant 0 : i32
      %c2 = arith.constant 2 : i32
      %c17 = arith.constant 17 : i32
      %one = arith.constant 1 : i64
      %zero = arith.constant 0 : i64
      %r, %n = scf.for %k = %c0 to {bound} step %c2 iter_args(%acc = %zero, %cnt = %zero) -> (i64, i64) : i32 {{
        %k64 = arith.extsi %k : i32 to i64
        %x64 = arith.extsi %x0 : i32 to i64
        %p = arith.muli %k64, %x64 : i64
        %a = arith.addi %acc, %p : i64
        %c = arith.addi %cnt, %one : i64
        scf.yield %a, %c : i64, i64
      }}"""
    want = [sum(k * int(x) for k in range(0, int(x) if bound == "%x0" else 17, 2)) for x in X]
    assert apply(ops, "i64", X).tolist() == want


def test_while_collatz() -> None:
    ops = """
      %c1 = arith.constant 1 : i32
      %c0 = arith.constant 0 : i32
      %c2 = arith.constant 2 : i32
      %c3 = arith.constant 3 : i32
      %v, %r = scf.while (%a = %x0, %n = %c0) : (i32, i32) -> (i32, i32) {
        %go = arith.cmpi ne, %a, %c1 : i32
        scf.condition(%go) %a, %n : i32, i32
      } do {
      ^bb0(%a: i32, %n: i32):
        %odd = arith.andi %a, %c1 : i32
        %is = arith.cmpi eq, %odd, %c1 : i32
        %next = scf.if %is -> (i32) {
          %t = arith.muli %a, %c3 : i32
          %u = arith.addi %t, %c1 : i32
          scf.yield %u : i32
        } else {
          %h = arith.divui %a, %c2 : i32
          scf.yield %h : i32
        }
        %m = arith.addi %n, %c1 : i32
        scf.yield %next, %m : i32, i32
      }"""

    def steps(a: int) -> int:
        n = 0
        while a != 1:
            a, n = (3 * a + 1 if a % 2 else a // 2), n + 1
        return n

    x = np.arange(1, 200, dtype=np.int32)
    assert apply(ops, "i32", x).tolist() == [steps(int(v)) for v in x]


def test_loop_inside_divergent_branch_with_break_by_flag() -> None:
    ops = """
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c7 = arith.constant 7 : i32
      %f = arith.constant false
      %pos = arith.cmpi sgt, %x0, %c0 : i32
      %r = scf.if %pos -> (i32) {
        %v, %done = scf.while (%a = %c0, %d = %f) : (i32, i1) -> (i32, i1) {
          %t = arith.constant true
          %n = arith.xori %d, %t : i1
          scf.condition(%n) %a, %d : i32, i1
        } do {
        ^bb0(%a: i32, %d: i1):
          %b = arith.addi %a, %c7 : i32
          %e = arith.cmpi sge, %b, %x0 : i32
          scf.yield %b, %e : i32, i1
        }
        scf.yield %v : i32
      } else {
        scf.yield %x0 : i32
      }"""

    def one(x: int) -> int:
        if x <= 0:
            return x
        a = 0
        while a < x:
            a += 7
        return a

    assert apply(ops, "i32", X).tolist() == [one(int(x)) for x in X]


def test_uniform_branch_by_block_and_partial_waves() -> None:
    body = """
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %odd = arith.andi %bid, %c1 : i32
      %is = arith.cmpi eq, %odd, %c1 : i32
      %p = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      scf.if %is {
        llvm.store %tid, %p {alignment = 4 : i64} : i32, !llvm.ptr<1>
      } else {
        llvm.store %bid, %p {alignment = 4 : i64} : i32, !llvm.ptr<1>
      }"""
    out = np.zeros(7 * 100, np.int32)
    run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 7, 100, out)
    want = [t if b % 2 else b for b in range(7) for t in range(100)]
    assert out.tolist() == want


SPECIALISED = """
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %w = arith.divui %tid, %c64 : i32
  %lane = arith.remui %tid, %c64 : i32
  %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
  %slot = llvm.getelementptr %base[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %producer = arith.cmpi eq, %w, %c0 : i32
  %po = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  scf.if %producer {
    llvm.store %lane, %slot {alignment = 4 : i64} : i32, !llvm.ptr<3>
    rocdl.s.barrier
    rocdl.s.barrier
  } else {
    rocdl.s.barrier
    %v = llvm.load %slot {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    llvm.store %v, %po {alignment = 4 : i64} : i32, !llvm.ptr<1>
    rocdl.s.barrier
  }"""


@pytest.mark.parametrize("schedule", ("auto", "ahead", "reverse", "random:5"))
def test_waves_that_take_different_barriers_run_apart(schedule: str) -> None:
    out = np.full(3 * 128, -1, np.int32)
    text = module(kernel("k", "%A: !llvm.ptr<1>", SPECIALISED), lds=lds_array("buf", 256))
    run(text, "k", 3, 128, out, schedule=schedule)
    assert out.reshape(3, 2, 64)[:, 1].tolist() == [list(range(64))] * 3


def test_unequal_barrier_counts_are_reported() -> None:
    broken = SPECIALISED[: SPECIALISED.rindex("rocdl.s.barrier")] + "}"
    text = module(kernel("k", "%A: !llvm.ptr<1>", broken), lds=lds_array("buf", 256))
    with pytest.raises(SimFindings) as caught:
        run(text, "k", 1, 128, np.zeros(128, np.int32))
    assert caught.value.findings[0].kind == "barrier" and "never reaches" in str(caught.value)


def test_barrier_under_divergence_is_reported() -> None:
    body = """
      %c5 = arith.constant 5 : i32
      %few = arith.cmpi slt, %tid, %c5 : i32
      scf.if %few { gpu.barrier loc("kernel.py":12:5) }"""
    with pytest.raises(SimFindings) as caught:
        run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 1, 64, np.zeros(4, np.int32))
    finding = caught.value.findings[0]
    assert (finding.kind, finding.span.line, finding.thread) == ("barrier", 12, (5, 0, 0))


def test_unknown_ops_are_refused_with_name_and_place() -> None:
    body = '%c = arith.constant 0 : i32\n"test.mystery"(%c) : (i32) -> () loc("kernel.py":7:3)'
    text = module(kernel("k", "%A: !llvm.ptr<1>", body))
    from flydsl.ir import ir

    ctx = ir.Context()
    ctx.allow_unregistered_dialects = True
    program = Program(ir.Module.parse(text, ctx))
    with pytest.raises(SimUnsupportedOp) as caught:
        program.translated("k")
    assert caught.value.op == "test.mystery" and caught.value.span.line == 7
    assert "supported_ops" in str(caught.value)


def test_endless_loop_stops() -> None:
    ops = """
      %t = arith.constant true
      %q = arith.cmpi eq, %x0, %x0 : i32
      %r = scf.while (%a = %x0) : (i32) -> (i32) {
        scf.condition(%q) %a : i32
      } do {
      ^bb0(%a: i32):
        scf.yield %a : i32
      }"""
    with pytest.raises(SimFindings, match="still running after 51 trips"):
        apply(ops, "i32", X, trip_limit=50)

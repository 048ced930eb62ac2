"""Addresses, bounds, buffer resources, LDS, private memory, atomics: results and reports."""

import os

import numpy as np
import pytest
from kernels_ir import VEC_ADD, kernel, lds_array, module, softmax
from launching import allocation, run

from flydsl.diag.errors.memory import SharedCapacity
from flydsl.diag.errors.simulator import SimFindings
from flydsl.targets.sim import Allocation, Program, SimOptions

GEP_F32 = "llvm.getelementptr {0}[{1}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32"


def test_vector_add_odd_sizes() -> None:
    for n in (1, 63, 64, 65, 1000, 4097):
        a, b = (np.random.default_rng(s).random(n, np.float32) for s in (1, 2))
        c = np.zeros(n, np.float32)
        run(VEC_ADD, "vec_add", -(-n // 256), 256, a, b, c, n)
        assert (c == a + b).all()


def test_out_of_bounds_read_names_place_tensor_and_index() -> None:
    a, b, c = np.zeros((10, 10), np.float32), np.zeros(128, np.float32), np.zeros(128, np.float32)
    with pytest.raises(SimFindings) as caught:
        run(VEC_ADD, "vec_add", 1, 128, a, b, c, 128)
    finding = caught.value.findings[0]
    assert (finding.kind, finding.tensor, finding.index, finding.block, finding.thread) == (
        "bounds",
        "A",
        (10, 0),
        (0, 0, 0),
        (100, 0, 0),
    )
    assert finding.count == 28
    text = str(caught.value)
    assert "read outside tensor `A`" in text and "thread (100, 0, 0)" in text and "shape (10, 10)" in text


def test_faulty_lanes_are_dropped_when_collecting() -> None:
    a, b, c = np.ones(100, np.float32), np.ones(128, np.float32), np.zeros(128, np.float32)
    report = run(VEC_ADD, "vec_add", 1, 128, a, b, c, 128, on_finding="collect")
    assert [f.tensor for f in report.findings] == ["A"]
    assert (c[:100] == 2).all() and (c[100:] == 1).all()


def test_a_pointer_does_not_wander_into_the_next_tensor() -> None:
    whole = np.zeros(256, np.float32)
    a, b, c = whole[:64], whole[64:192], np.zeros(128, np.float32)
    with pytest.raises(SimFindings) as caught:
        run(VEC_ADD, "vec_add", 1, 128, a, b, c, 128)
    assert caught.value.findings[0].tensor == "A"


def test_read_only_tensor() -> None:
    a = np.ones(64, np.float32)
    program = Program(VEC_ADD)
    allocations = [allocation("A", a), Allocation("C", a.ctypes.data, 0)]
    locked = allocation("A", a, writable=False)
    with pytest.raises(SimFindings, match="read-only"):
        program.launch("vec_add", (1, 1, 1), (64, 1, 1), [a.ctypes.data] * 3 + [64], [locked, *allocations[1:]])


@pytest.mark.parametrize("records", (0, 6, 10, 40, 400))
@pytest.mark.parametrize("width", (1, 4))
def test_buffer_rule_then_allocation(records: int, width: int) -> None:
    """Out of range of the descriptor reads 0 element by element; what survives must lie in the tensor."""
    n, t = 8, "f32" if width == 1 else f"vector<{width}xf32>"
    body = f"""
      %s = arith.constant 0 : i16
      %nr = arith.constant {records} : i64
      %fl = arith.constant 159744 : i32
      %z = arith.constant 0 : i32
      %r = rocdl.make.buffer.rsrc %A, %s, %nr, %fl : !llvm.ptr<1> to !llvm.ptr<8>
      %c = arith.constant {4 * width} : i32
      %o = arith.muli %tid, %c : i32
      %v = rocdl.raw.ptr.buffer.load %r, %o, %z, 0 : {t}
      %q = llvm.getelementptr %B[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {t}
      llvm.store %v, %q {{alignment = 4 : i64}} : {t}, !llvm.ptr<1>"""
    program = Program(module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body)))
    a = np.arange(1, n * width + 1, dtype=np.float32)
    b = np.full(64 * width, -1, np.float32)
    if records > a.nbytes:
        with pytest.raises(SimFindings) as caught:
            run(program, "k", 1, 64, a, b)
        assert caught.value.findings[0].thread == (n, 0, 0)
        return
    run(program, "k", 1, 64, a, b)
    valid = records // 4
    assert (b[:valid] == a[:valid]).all() and (b[valid:] == 0).all()


def test_buffer_store_drops_what_is_out_of_range() -> None:
    body = """
      %s = arith.constant 0 : i16
      %nr = arith.constant 40 : i64
      %fl = arith.constant 159744 : i32
      %z = arith.constant 8 : i32
      %r = rocdl.make.buffer.rsrc %A, %s, %nr, %fl : !llvm.ptr<1> to !llvm.ptr<8>
      %c = arith.constant 8 : i32
      %o = arith.muli %tid, %c : i32
      %one = arith.constant dense<1.0> : vector<2xf32>
      rocdl.raw.ptr.buffer.store %one, %r, %o, %z, 0 : vector<2xf32>"""
    a = np.zeros(64, np.float32)
    run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 1, 64, a)
    assert a.tolist() == [0] * 2 + [1] * 8 + [0] * 54


def test_lds_transpose_and_two_arrays_do_not_alias() -> None:
    body = """
      %c16 = arith.constant 16 : i32
      %r = arith.divui %tid, %c16 : i32
      %c = arith.remui %tid, %c16 : i32
      %a = llvm.mlir.addressof @first : !llvm.ptr<3>
      %b = llvm.mlir.addressof @second : !llvm.ptr<3>
      %src = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %src {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      %pa = llvm.getelementptr %a[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %pb = llvm.getelementptr %b[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %v, %pa {alignment = 4 : i64} : i32, !llvm.ptr<3>
      llvm.store %tid, %pb {alignment = 4 : i64} : i32, !llvm.ptr<3>
      gpu.barrier
      %t0 = arith.muli %c, %c16 : i32
      %t = arith.addi %t0, %r : i32
      %qa = llvm.getelementptr %a[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %qb = llvm.getelementptr %b[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %x = llvm.load %qa {alignment = 4 : i64} : !llvm.ptr<3> -> i32
      %y = llvm.load %qb {alignment = 4 : i64} : !llvm.ptr<3> -> i32
      %s = arith.addi %x, %y : i32
      %dst = llvm.getelementptr %B[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %s, %dst {alignment = 4 : i64} : i32, !llvm.ptr<1>"""
    text = module(
        kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body),
        lds=lds_array("first", 1024) + "\n" + lds_array("second", 1024),
    )
    a = np.random.default_rng(3).integers(0, 1000, (5, 16, 16)).astype(np.int32)
    b = np.zeros_like(a)
    for schedule in ("lockstep", "ahead", "reverse", "random:1"):
        run(text, "k", 5, 256, a, b, schedule=schedule)
        assert (b == (a + np.arange(256).reshape(16, 16)).transpose(0, 2, 1)).all()


LDS_STORE = """
      %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
      %p = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %tid, %p {alignment = 4 : i64} : i32, !llvm.ptr<3> loc("kernel.py":20:1)
      %other = llvm.mlir.addressof @next : !llvm.ptr<3>
      llvm.store %tid, %other {alignment = 4 : i64} : i32, !llvm.ptr<3>"""


def test_lds_overrun_into_the_next_array() -> None:
    text = module(
        kernel("k", "%A: !llvm.ptr<1>", LDS_STORE), lds=lds_array("buf", 128) + "\n" + lds_array("next", 1024)
    )
    with pytest.raises(SimFindings) as caught:
        run(text, "k", 1, 64, np.zeros(1, np.int32))
    finding = caught.value.findings[0]
    assert (finding.tensor, finding.thread, finding.span.line, finding.offset) == ("buf", (32, 0, 0), 20, 128)


def test_dynamic_lds_starts_after_static_and_ends_with_the_launch_size() -> None:
    dynamic = "llvm.mlir.global external @dyn() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>"
    text = module(
        kernel("k", "%A: !llvm.ptr<1>", LDS_STORE.replace("@buf", "@dyn")), lds=lds_array("next", 64) + "\n" + dynamic
    )
    program = Program(text)
    run(program, "k", 1, 64, np.zeros(1, np.int32), lds=256)
    assert program.translated("k").lds["dyn"][0] == 1024
    with pytest.raises(SimFindings):
        run(program, "k", 1, 64, np.zeros(1, np.int32), lds=252)
    with pytest.raises(SharedCapacity, match="bytes of LDS"):
        run(program, "k", 1, 64, np.zeros(1, np.int32), lds=65536)


def test_private_arrays_and_generic_pointers() -> None:
    body = """
      %c8 = arith.constant 8 : i32
      %c7 = arith.constant 7 : i32
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %s = llvm.alloca %c8 x i32 {alignment = 4 : i64} : (i32) -> !llvm.ptr<5>
      scf.for %k = %c0 to %c8 step %c1 : i32 {
        %q = llvm.getelementptr %s[%k] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, i32
        %v = arith.muli %k, %tid : i32
        llvm.store %v, %q {alignment = 4 : i64} : i32, !llvm.ptr<5>
      }
      %j = arith.andi %tid, %c7 : i32
      %q = llvm.getelementptr %s[%j] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, i32
      %g = llvm.addrspacecast %q : !llvm.ptr<5> to !llvm.ptr
      %v = llvm.load %g {alignment = 4 : i64} : !llvm.ptr -> i32
      %d = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %gd = llvm.addrspacecast %d : !llvm.ptr<1> to !llvm.ptr
      llvm.store %v, %gd {alignment = 4 : i64} : i32, !llvm.ptr"""
    a = np.zeros(300, np.int32)
    run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 3, 100, a)
    assert a.tolist() == [t * (t & 7) for _ in range(3) for t in range(100)]


ATOMICS = {
    "add": (np.int32, lambda v: int(v.sum())), "max": (np.int32, lambda v: int(v.max())), "umin": (np.uint32, lambda v: int(v.min())),
    "_or": (np.int32, lambda v: int(np.bitwise_or.reduce(v))), "_xor": (np.int32, lambda v: int(np.bitwise_xor.reduce(v))),
    "fadd": (np.float32, lambda v: float(v.astype(np.float64).sum())), "fmax": (np.float32, lambda v: float(v.max())),
}  # fmt: skip


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("bins", (1, 7))
def test_global_atomics(name: str, bins: int) -> None:
    dtype, combine = ATOMICS[name]
    elem = "f32" if dtype is np.float32 else "i32"
    body = f"""
      %c = arith.constant {bins} : i32
      %b = arith.remui %i, %c : i32
      %q = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {elem}
      %v = llvm.load %q {{alignment = 4 : i64}} : !llvm.ptr<1> -> {elem}
      %p = llvm.getelementptr %B[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {elem}
      %o = llvm.atomicrmw {name} %p, %v syncscope("agent") monotonic : !llvm.ptr<1>, {elem}"""
    v = np.random.default_rng(2).integers(1, 1000, 640).astype(dtype)
    start = {"umin": 5000, "fmax": -1}.get(name, 0)
    out = np.full(bins, start, dtype)
    run(module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body)), "k", 5, 128, v, out)
    want = [combine(np.append(v[k::bins], np.array([start], dtype))) for k in range(bins)]
    assert np.allclose(out, want, rtol=1e-6)


def test_atomic_old_values_hand_out_each_ticket_once() -> None:
    body = """
      %c1 = arith.constant 1 : i32
      %t = llvm.atomicrmw add %A, %c1 monotonic : !llvm.ptr<1>, i32
      %p = llvm.getelementptr %B[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %t, %p {alignment = 4 : i64} : i32, !llvm.ptr<1>"""
    a, b = np.zeros(1, np.int32), np.zeros(256, np.int32)
    run(module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body)), "k", 2, 128, a, b)
    assert a[0] == 256 and sorted(b.tolist()) == list(range(256))


def test_cmpxchg_lets_one_lane_win() -> None:
    body = """
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %mine = arith.addi %i, %c1 : i32
      %s = llvm.cmpxchg %A, %c0, %mine monotonic monotonic : !llvm.ptr<1>, i32
      %ok = llvm.extractvalue %s[1] : !llvm.struct<(i32, i1)>
      %n = arith.extui %ok : i1 to i32
      %p = llvm.getelementptr %B[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %n, %p {alignment = 4 : i64} : i32, !llvm.ptr<1>"""
    a, b = np.zeros(1, np.int32), np.zeros(256, np.int32)
    run(module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body)), "k", 2, 128, a, b)
    assert b.sum() == 1 and a[0] == b.argmax() + 1


def test_misaligned_vector_access() -> None:
    body = """
      %p = llvm.getelementptr %A[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
      %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      llvm.store %v, %A {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr<1>"""
    a = np.zeros(64, np.float32)
    base = (-a.ctypes.data // 4) % 4
    report = run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 1, 64, a[base:], on_finding="collect")
    (finding,) = [f for f in report.findings if f.kind == "misaligned"]
    assert finding.severity == "warning" and "promised alignment of 16" in finding.message


@pytest.mark.parametrize("arch,wave", [("gfx942", 64), ("gfx1100", 32)])
@pytest.mark.parametrize("schedule", ("lockstep", "ahead", "reverse", "random:4"))
def test_softmax(arch: str, wave: int, schedule: str) -> None:
    x = np.random.default_rng(0).normal(size=(33, 1024)).astype(np.float32)
    y = np.zeros_like(x)
    run(softmax(wave=wave, arch=arch), "softmax", 33, 256, x, y, schedule=schedule)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.abs(y - e / e.sum(axis=1, keepdims=True)).max() < 1e-7


def test_printf(capsys: pytest.CaptureFixture) -> None:
    body = """
      %c2 = arith.constant 2 : i32
      %few = arith.cmpi slt, %tid, %c2 : i32
      %f = arith.sitofp %tid : i32 to f32
      scf.if %few { gpu.printf "block %d thread %3d: %.2f%%\\n", %bid, %tid, %f : i32, i32, f32 }"""
    run(module(kernel("k", "%A: !llvm.ptr<1>", body)), "k", 2, 64, np.zeros(1, np.int32))
    assert capsys.readouterr().out == "".join(f"block {b} thread   {t}: {t}.00%\n" for b in range(2) for t in range(2))


def test_payload_is_plain_data_and_runs_without_the_bindings() -> None:
    import json
    import subprocess
    import sys

    payload = json.loads(json.dumps(Program(VEC_ADD).to_payload()))
    code = f"""
import json, sys, numpy as np
from flydsl.targets.sim import Allocation, Program
p = Program.from_payload(json.loads({json.dumps(json.dumps(payload))}))
a = np.arange(100, dtype=np.float32); c = np.zeros_like(a)
al = [Allocation(n, x.ctypes.data, x.nbytes) for n, x in (("A", a), ("C", c))]
p.launch("vec_add", (1, 1, 1), (128, 1, 1), [a.ctypes.data, a.ctypes.data, c.ctypes.data, 100], al)
assert (c == 2 * a).all() and p.kernels == ["vec_add"]
assert not any(m.startswith("torch_mlir") or m == "flydsl.expr" for m in sys.modules)
print("ok")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "ok", done.stderr


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="unknown simulator checks: rase"):
        SimOptions(checks=frozenset({"rase"}))
    with pytest.raises(ValueError, match="unknown schedule"):
        SimOptions(schedule="backwards")


def test_text_that_does_not_parse_is_an_error_of_ours() -> None:
    from flydsl.diag.errors.simulator import SimBadModule

    with pytest.raises(SimBadModule, match="cannot be read"):
        _ = Program("module { gpu.func }").kernels
    with pytest.raises(SimBadModule):
        Program(VEC_ADD.replace("arith.addf", "arith.addx")).launch("vec_add", (1, 1, 1), (64, 1, 1), [])


def test_views_of_one_array_as_arguments() -> None:
    """A whole array and a shorter view of it that starts at the same address."""
    whole = np.arange(256, dtype=np.float32)
    out = np.zeros(256, np.float32)
    program = Program(VEC_ADD)
    allocations = [allocation("A", whole), allocation("B", whole[:64]), allocation("C", out)]
    args = [whole.ctypes.data, whole.ctypes.data, out.ctypes.data, 64]
    program.launch("vec_add", (1, 1, 1), (256, 1, 1), args, allocations)
    assert (out[:64] == 2 * whole[:64]).all()
    with pytest.raises(SimFindings) as caught:
        program.launch("vec_add", (1, 1, 1), (256, 1, 1), [*args[:3], 128], allocations)
    assert caught.value.findings[0].tensor == "B"


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the system does not list mappings")
def test_bare_addresses_are_checked_against_the_process_memory() -> None:
    a, c = np.ones(64, np.float32), np.zeros(64, np.float32)
    program = Program(VEC_ADD)
    program.launch("vec_add", (1, 1, 1), (64, 1, 1), [a.ctypes.data, a.ctypes.data, c.ctypes.data, 64], [])
    assert (c == 2).all()
    with pytest.raises(SimFindings):
        program.launch("vec_add", (1, 1, 1), (64, 1, 1), [64, a.ctypes.data, c.ctypes.data, 64], [])

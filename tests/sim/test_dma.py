"""Copies that lanes do not wait for: they land at their wait, and not before."""

import numpy as np
import pytest
from kernels_ir import kernel, lds_array, module
from launching import run

VM0 = {"gfx942": 3952, "gfx950": 3952}


def copy_kernel(arch: str, size: int, wait: str, issue: str = "") -> str:
    """Global A to LDS by DMA, `wait`, barrier, LDS to global B; `size` bytes per lane."""
    n = size // 4
    t = "i32" if n == 1 else f"vector<{n}xi32>"
    body = f"""
      %s = arith.constant 0 : i16
      %nr = arith.constant 1048576 : i64
      %fl = arith.constant 159744 : i32
      %z = arith.constant 0 : i32
      %size = arith.constant {size} : i32
      %c64 = arith.constant 64 : i32
      %r = rocdl.make.buffer.rsrc %A, %s, %nr, %fl : !llvm.ptr<1> to !llvm.ptr<8>
      %off = arith.muli %i, %size : i32
      %wave = arith.divui %tid, %c64 : i32
      %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
      %wbytes = arith.muli %wave, %c64 : i32
      %wb = arith.muli %wbytes, %size : i32
      %dst = llvm.getelementptr %base[%wb] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      {issue or "rocdl.raw.ptr.buffer.load.lds %r, %dst, %size, %off, %z, %z, 0"} loc("kernel.py":30:1)
      {wait}
      gpu.barrier
      %c1 = arith.constant 1 : i32
      %next = arith.xori %tid, %c1 : i32
      %src = llvm.getelementptr %base[%next] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, {t}
      %v = llvm.load %src {{alignment = 4 : i64}} : !llvm.ptr<3> -> {t} loc("kernel.py":40:1)
      %p = llvm.getelementptr %B[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {t}
      llvm.store %v, %p {{alignment = 4 : i64}} : {t}, !llvm.ptr<1>"""
    return module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body), arch, lds_array("buf", 128 * size))


def data(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = np.random.default_rng(0).integers(0, 1 << 30, (3 * 128, size // 4)).astype(np.int32)
    return a, np.zeros_like(a), a.reshape(-1, 2, size // 4)[:, ::-1].reshape(a.shape)


@pytest.mark.parametrize("arch,size", [("gfx942", 4), ("gfx950", 4), ("gfx950", 16)])
@pytest.mark.parametrize("schedule", ("lockstep", "reverse"))
def test_buffer_to_lds(arch: str, size: int, schedule: str) -> None:
    a, b, want = data(size)
    run(copy_kernel(arch, size, f"rocdl.s.waitcnt {VM0[arch]}"), "k", 3, 128, a, b, schedule=schedule)
    assert (b == want).all()


@pytest.mark.parametrize("wait", ("", "rocdl.s.waitcnt 49279", "rocdl.s.waitcnt 3953"))
def test_without_the_right_wait_the_data_are_poison(wait: str) -> None:
    a, b, _ = data(4)
    run(copy_kernel("gfx942", 4, wait), "k", 3, 128, a, b, checks=frozenset({"bounds"}))
    assert (b == 0x7FC17FC1).all()


def test_asynchronous_groups() -> None:
    issue = "rocdl.raw.ptr.buffer.load.async.lds %r, %dst, %size, %off, %z, %z, 0"
    a, b, want = data(16)
    run(copy_kernel("gfx950", 16, "rocdl.asyncmark\nrocdl.wait.asyncmark 0", issue), "k", 3, 128, a, b)
    assert (b == want).all()
    run(
        copy_kernel("gfx950", 16, "rocdl.asyncmark\nrocdl.wait.asyncmark 1", issue),
        "k",
        3,
        128,
        a,
        b,
        checks=frozenset({"bounds"}),
    )
    assert not (b == want).any()


def test_global_async_to_lds_of_gfx1250() -> None:
    issue = """%la = arith.muli %tid, %size : i32
      %ld = llvm.getelementptr %base[%la] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %ga = llvm.getelementptr %A[%off] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      rocdl.global.load.async.to.lds.b128 %ga, %ld, 0, 0 : !llvm.ptr<1>, !llvm.ptr<3>"""
    a, b, want = data(16)
    run(copy_kernel("gfx1250", 16, "rocdl.s.wait.asynccnt 0", issue), "k", 3, 128, a, b)
    assert (b == want).all()


def test_counts_retire_in_order() -> None:
    """Two copies, vmcnt(1): only the first has landed."""
    second = """rocdl.raw.ptr.buffer.load.lds %r, %dst, %size, %off, %z, %z, 0
      %late = llvm.getelementptr %late0[%wb] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      rocdl.raw.ptr.buffer.load.lds %r, %late, %size, %off, %z, %z, 0"""
    text = copy_kernel("gfx942", 4, "rocdl.s.waitcnt 3953", second)
    text = text.replace("%wave = ", "%late0 = llvm.mlir.addressof @late : !llvm.ptr<3>\n %wave = ")
    text = text.replace("llvm.mlir.global", lds_array("late", 512) + "\n llvm.mlir.global", 1)
    a, b, want = data(4)
    run(text, "k", 3, 128, a, b)
    assert (b == want).all()


@pytest.mark.parametrize("bits,n", [(16, 4), (8, 8), (4, 16)])
def test_transposed_reads(bits: int, n: int) -> None:
    """gfx950: the 16 lanes' data in order, element t + 16 j to value j of lane t."""
    types = {16: "vector<4xi16>", 8: "vector<2xi32>", 4: "vector<2xi32>"}
    body = f"""
      %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
      %d = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      %s = llvm.getelementptr %A[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
      %v = llvm.load %s {{alignment = 8 : i64}} : !llvm.ptr<1> -> i64
      llvm.store %v, %d {{alignment = 8 : i64}} : i64, !llvm.ptr<3>
      gpu.barrier
      %t = rocdl.ds.read.tr{bits}.b64 %d : !llvm.ptr<3> -> {types[bits]}
      %o = llvm.getelementptr %B[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {types[bits]}
      llvm.store %t, %o {{alignment = 8 : i64}} : {types[bits]}, !llvm.ptr<1>"""
    text = module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body), "gfx950", lds_array("buf", 512))
    a = np.random.default_rng(1).integers(0, 256, (64, 8)).astype(np.uint8)
    b = np.zeros_like(a)
    run(text, "k", 1, 64, a, b)

    def codes(x: np.ndarray) -> np.ndarray:
        words = [int.from_bytes(bytes(r), "little") for r in x]
        return np.array([[w >> bits * i & (1 << bits) - 1 for i in range(n)] for w in words])

    want = np.concatenate(
        [[[flat[t + 16 * j] for j in range(n)] for t in range(16)] for flat in codes(a).reshape(4, -1)]
    )
    assert (codes(b) == want).all()

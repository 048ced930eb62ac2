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


# --- tensor DMA of gfx1250 ---------------------------------------------------------------------------------------------


def words(count: int, *fields: tuple[int, int]) -> tuple[int, ...]:
    """Return a descriptor group from (lowest bit, value) pairs."""
    value = sum(v << bit for bit, v in fields)
    return tuple(np.frombuffer(value.to_bytes(4 * count, "little"), np.int32).tolist())


def descriptor(address: int, tile: tuple, extents: tuple, strides: tuple, pad: tuple | None = None, rows: list | None = None) -> list:
    """Return the groups of a 16-bit tile at LDS byte 0; bit positions from the gfx1250 tensor descriptor."""
    g0 = [(0, 1), (64, address), (126, 2)]
    g1 = [(16, 1), (48, extents[0]), (80, extents[1]), (112, tile[0]), (128, tile[1]), (160, strides[0])]
    g2, g3 = [], []
    if pad:
        g1 += [(20, 1), (22, pad[0]), (25, pad[1])]
    if len(tile) > 2:
        g1 += [(144, tile[2]), (208, strides[1])]
        g2 += [(0, extents[2])]
    if rows is not None:
        g0 += [(31, 1), (30, 1)]
        g2 += [(32 * i, r) for i, r in enumerate(rows[:4])]
        g3 += [(32 * i, r) for i, r in enumerate(rows[4:])]
    return [words(4, *g0), words(8, *g1), words(4, *g2), words(4, *g3)]


def tensor_kernel(wait: str, out: str) -> str:
    body = f"""
      %z = arith.constant dense<0> : vector<8xi32>
      "rocdl.tensor.load.to.lds"(%d0, %d1, %d2, %d3, %z) : (vector<4xi32>, vector<8xi32>, vector<4xi32>, vector<4xi32>, vector<8xi32>) -> () loc("kernel.py":60:1)
      {wait}
      %base = llvm.mlir.addressof @buf : !llvm.ptr<3>
      {out}"""
    params = "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %d0: vector<4xi32>, %d1: vector<8xi32>, %d2: vector<4xi32>, %d3: vector<4xi32>"
    return module(kernel("k", params, body), "gfx1250", lds_array("buf", 2048))


READ_ALL = """
      %c32 = arith.constant 32 : i32
      %n = arith.constant 0 : i32
      %e = arith.constant 1024 : i32
      scf.for %o = %n to %e step %c32 : i32 {
        %at = arith.addi %o, %tid : i32
        %s = llvm.getelementptr %base[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
        %v = llvm.load %s {alignment = 2 : i64} : !llvm.ptr<3> -> i16 loc("kernel.py":70:1)
        %p = llvm.getelementptr %B[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
        llvm.store %v, %p {alignment = 2 : i64} : i16, !llvm.ptr<1>
      }"""
WAIT = "rocdl.s.wait.tensorcnt 0"
QUIET = {"checks": frozenset({"bounds"})}


def test_tensor_load_with_padding_and_extents() -> None:
    a = np.arange(20 * 24, dtype=np.int16).reshape(20, 24)
    b = np.zeros(1024, np.int16)
    groups = descriptor(a.ctypes.data + 2 * (3 * 24 + 4), (16, 8), (12, 6), (24,), pad=(2, 1))  # every 8 dwords, 2 dwords
    run(tensor_kernel(WAIT, READ_ALL), "k", 1, 32, a, b, *groups, **QUIET)
    rows = b[: 8 * 20].reshape(8, 20)  # 16 elements, then 4 of padding
    want = np.zeros((8, 16), np.int16)
    want[:6, :12] = a[3:9, 4:16]
    assert (rows[:, :16] == want).all()


def test_tensor_load_of_three_dimensions_and_gather() -> None:
    a = np.arange(4 * 6 * 8, dtype=np.int16).reshape(4, 6, 8)
    b = np.zeros(1024, np.int16)
    groups = descriptor(a.ctypes.data, (8, 3, 2), (8, 6, 4), (8, 48))
    run(tensor_kernel(WAIT, READ_ALL), "k", 1, 32, a, b, *groups, **QUIET)
    assert (b[:48].reshape(2, 3, 8) == a[:2, :3]).all()
    rows = [5, 0, 23, 7, 11]
    groups = descriptor(a.ctypes.data, (8, 5), (8, 20), (8,), rows=rows)
    run(tensor_kernel(WAIT, READ_ALL), "k", 1, 32, a, b, *groups, **QUIET)
    flat = a.reshape(24, 8)
    assert (b[:40].reshape(5, 8) == np.array([flat[r] if r < 20 else np.zeros(8) for r in rows])).all()


def test_tensor_load_without_wait_is_a_missing_wait() -> None:
    a, b = np.ones((64, 16), np.int16), np.zeros(1024, np.int16)
    groups = descriptor(a.ctypes.data, (16, 64), (16, 64), (16,))
    report = run(tensor_kernel("", READ_ALL), "k", 1, 32, a, b, *groups, on_finding="collect")
    assert [(f.kind, f.span.line, f.other.line) for f in report.findings] == [("missing-wait", 70, 60)]
    report = run(tensor_kernel(WAIT, READ_ALL), "k", 1, 32, a, b, *groups, on_finding="collect")
    assert report.findings == [] and (b == 1).all()


def test_tensor_store_drops_what_is_outside() -> None:
    store = """
      "rocdl.tensor.store.from.lds"(%d0, %d1, %d2, %d3, %z) : (vector<4xi32>, vector<8xi32>, vector<4xi32>, vector<4xi32>, vector<8xi32>) -> ()
      rocdl.s.wait.tensorcnt 0"""
    fill = READ_ALL.replace("%v = llvm.load %s {alignment = 2 : i64} : !llvm.ptr<3> -> i16", "%v = arith.trunci %at : i32 to i16")
    fill = fill[: fill.index("%p = ")] + "llvm.store %v, %s {alignment = 2 : i64} : i16, !llvm.ptr<3>\n}" + store
    text = tensor_kernel("", fill)
    text = text.replace('"rocdl.tensor.load.to.lds"(%d0, %d1, %d2, %d3, %z)', "", 1)
    start = text.index(" : (vector<4xi32>")
    text = text[:start] + text[text.index("\n", start) :]
    a, b = np.full((8, 16), -1, np.int16), np.zeros(1, np.int16)
    groups = descriptor(a.ctypes.data, (16, 8), (10, 5), (16,))
    run(text, "k", 1, 32, a, b, *groups)
    want = np.full((8, 16), -1, np.int16)
    want[:5, :10] = np.arange(128).reshape(8, 16)[:5, :10]
    assert (a == want).all()


def test_tensor_load_past_the_tensor_is_reported() -> None:
    a, b = np.ones((8, 16), np.int16), np.zeros(1024, np.int16)
    groups = descriptor(a.ctypes.data, (16, 16), (16, 16), (16,))
    report = run(tensor_kernel(WAIT, READ_ALL), "k", 1, 32, a, b, *groups, on_finding="collect", **QUIET)
    assert [(f.kind, f.tensor, f.index) for f in report.findings] == [("bounds", "A", (8, 0))]

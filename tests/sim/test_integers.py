"""Integer ops against Python integers, all widths, edge values included."""

import numpy as np
import pytest
from launching import apply, run

from flydsl.diag.errors.simulator import SimFindings

WIDTHS = (8, 16, 32, 64)


def samples(bits: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    info = np.iinfo(f"int{bits}")
    edges = [0, 1, -1, 2, info.min, info.max, info.min + 1, 5, -7]
    values = [*rng.integers(info.min, info.max, 100, endpoint=True), *(a for a in edges for _ in edges)]
    return np.array(values, f"int{bits}")


def second(bits: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed + 99)
    info = np.iinfo(f"int{bits}")
    edges = [0, 1, -1, 2, info.min, info.max, info.min + 1, 5, -7]
    values = [*rng.integers(info.min, info.max, 100, endpoint=True), *(b for _ in edges for b in edges)]
    return np.array(values, f"int{bits}")


def wrap(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def reference(name: str, a: int, b: int, bits: int) -> int:
    ua, ub = a % (1 << bits), b % (1 << bits)
    table = {
        "addi": lambda: a + b,
        "subi": lambda: a - b,
        "muli": lambda: a * b,
        "andi": lambda: a & b,
        "ori": lambda: a | b,
        "xori": lambda: a ^ b,
        "maxsi": lambda: max(a, b),
        "minsi": lambda: min(a, b),
        "maxui": lambda: max(ua, ub),
        "minui": lambda: min(ua, ub),
        "divsi": lambda: trunc_div(a, b),
        "remsi": lambda: a - b * trunc_div(a, b),
        "divui": lambda: ua // ub,
        "remui": lambda: ua % ub,
        "floordivsi": lambda: a // b,
        "ceildivsi": lambda: -(-a // b),
        "ceildivui": lambda: -(-ua // ub),
    }
    return wrap(table[name](), bits)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", "addi subi muli andi ori xori maxsi minsi maxui minui".split())
def test_binary(name: str, bits: int) -> None:
    a, b = samples(bits, 1), second(bits, 1)
    got = apply(f"%r = arith.{name} %x0, %x1 : i{bits}", f"i{bits}", a, b)
    assert got.tolist() == [reference(name, int(x), int(y), bits) for x, y in zip(a, b)]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", "divsi remsi divui remui floordivsi ceildivsi ceildivui".split())
def test_division(name: str, bits: int) -> None:
    a, b = samples(bits, 2), second(bits, 2)
    keep = (b != 0) & ~((b == -1) & (a == np.iinfo(a.dtype).min))
    a, b = a[keep], b[keep]
    got = apply(f"%r = arith.{name} %x0, %x1 : i{bits}", f"i{bits}", a, b)
    assert got.tolist() == [reference(name, int(x), int(y), bits) for x, y in zip(a, b)]


@pytest.mark.parametrize("bits", (32, 64))
@pytest.mark.parametrize("name", "divsi remsi divui remui".split())
@pytest.mark.parametrize("divisor", (1, 3, 64))
def test_division_by_constant(name: str, bits: int, divisor: int) -> None:
    a = samples(bits, 3)
    got = apply(f"%c = arith.constant {divisor} : i{bits}\n%r = arith.{name} %x0, %c : i{bits}", f"i{bits}", a)
    assert got.tolist() == [reference(name, int(x), divisor, bits) for x in a]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", "eq ne slt sle sgt sge ult ule ugt uge".split())
def test_compare(name: str, bits: int) -> None:
    a, b = samples(bits, 4), second(bits, 4)
    got = apply(f"%c = arith.cmpi {name}, %x0, %x1 : i{bits}\n%r = arith.extui %c : i1 to i32", "i32", a, b)
    relation = {
        "eq": int.__eq__,
        "ne": int.__ne__,
        "lt": int.__lt__,
        "le": int.__le__,
        "gt": int.__gt__,
        "ge": int.__ge__,
    }[name[-2:]]
    mask = (1 << bits) - 1 if name[0] == "u" else -1
    assert got.tolist() == [int(relation(int(x) & mask, int(y) & mask)) for x, y in zip(a, b)]


@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts(bits: int) -> None:
    a = samples(bits, 5)
    s = (np.arange(len(a)) % bits).astype(a.dtype)
    for name, fn in {
        "shli": lambda x, k: wrap(x << k, bits),
        "shrsi": lambda x, k: x >> k,
        "shrui": lambda x, k: wrap((x % (1 << bits)) >> k, bits),
    }.items():
        got = apply(f"%r = arith.{name} %x0, %x1 : i{bits}", f"i{bits}", a, s)
        assert got.tolist() == [fn(int(x), int(k)) for x, k in zip(a, s)], name


@pytest.mark.parametrize("op,what", [("arith.divsi", "zero"), ("arith.remui", "zero"), ("arith.shli", "shift")])
def test_undefined_operations_are_findings(op: str, what: str) -> None:
    a, b = np.arange(64, dtype=np.int32), np.full(64, 40 if what == "shift" else 1, np.int32)
    b[7] = 0 if what == "zero" else 32
    if what == "shift":
        b[:7] = 3
        b[8:] = 3
    with pytest.raises(SimFindings) as caught:
        apply(f"%r = {op} %x0, %x1 : i32", "i32", a, b)
    finding = caught.value.findings[0]
    assert finding.kind == "undefined" and finding.thread == (7, 0, 0) and what in finding.message


def test_extensions_and_truncations() -> None:
    a = samples(8, 6)
    assert (apply("%r = arith.extsi %x0 : i8 to i64", "i64", a) == a.astype(np.int64)).all()
    assert (apply("%r = arith.extui %x0 : i8 to i32", "i32", a) == a.view(np.uint8).astype(np.int32)).all()
    b = samples(64, 7)
    assert (apply("%r = arith.trunci %x0 : i64 to i16", "i16", b) == b.astype(np.int16)).all()
    c = samples(32, 8)
    got = apply("%c = arith.trunci %x0 : i32 to i1\n%r = arith.extsi %c : i1 to i32", "i32", c)
    assert (got == -(c & 1)).all()


def test_bit_counts() -> None:
    a = samples(32, 9)
    texts = [format(int(x) % (1 << 32), "032b") for x in a]
    assert apply("%r = math.ctpop %x0 : i32", "i32", a).tolist() == [t.count("1") for t in texts]
    assert apply("%r = math.ctlz %x0 : i32", "i32", a).tolist() == [len(t) - len(t.lstrip("0")) for t in texts]
    assert apply("%r = math.cttz %x0 : i32", "i32", a).tolist() == [len(t) - len(t.rstrip("0")) for t in texts]
    got = apply("%r = llvm.intr.bitreverse(%x0) : (i32) -> i32", "i32", a)
    assert got.view(np.uint32).tolist() == [int(t[::-1], 2) for t in texts]


@pytest.mark.parametrize("bits", (16, 32, 64))
def test_extended_products_and_powers(bits: int) -> None:
    a, b = samples(bits, 10), second(bits, 10)
    high = [wrap((int(x) * int(y)) >> bits, bits) for x, y in zip(a, b)]
    assert apply(f"%lo, %r = arith.mulsi_extended %x0, %x1 : i{bits}", f"i{bits}", a, b).tolist() == high
    mod = 1 << bits
    high = [wrap((int(x) % mod * (int(y) % mod)) >> bits, bits) for x, y in zip(a, b)]
    assert apply(f"%lo, %r = arith.mului_extended %x0, %x1 : i{bits}", f"i{bits}", a, b).tolist() == high
    e = np.abs(b % a.dtype.type(9)).astype(a.dtype)
    assert apply(f"%r = math.ipowi %x0, %x1 : i{bits}", f"i{bits}", a, e).tolist() == [
        wrap(int(x) ** int(y), bits) for x, y in zip(a, e)
    ]


def test_launch_errors_name_the_problem() -> None:
    from kernels_ir import VEC_ADD

    from flydsl.diag.errors.simulator import SimBadLaunch

    x = np.zeros(4, np.float32)
    with pytest.raises(SimBadLaunch, match="takes 4 arguments and got 2"):
        run(VEC_ADD, "vec_add", 1, 64, x, x)
    with pytest.raises(SimBadLaunch, match="2048 threads"):
        run(VEC_ADD, "vec_add", 1, 2048, x, x, x, 4)
    with pytest.raises(SimBadLaunch, match="no such kernel"):
        run(VEC_ADD, "vec_sub", 1, 64, x, x, x, 4)


@pytest.mark.parametrize("name", ("sadd", "ssub", "smul", "uadd", "usub", "umul"))
@pytest.mark.parametrize("bits", (32, 64))
def test_with_overflow(name: str, bits: int) -> None:
    a, b = samples(bits, 11), second(bits, 11)
    ops = f"""
      %s = "llvm.intr.{name}.with.overflow"(%x0, %x1) : (i{bits}, i{bits}) -> !llvm.struct<(i{bits}, i1)>
      %o = llvm.extractvalue %s[1] : !llvm.struct<(i{bits}, i1)>
      %r = arith.extui %o : i1 to i32"""
    mod = 1 << bits

    def wraps(x: int, y: int) -> int:
        x, y = (x % mod, y % mod) if name[0] == "u" else (x, y)
        exact = {"add": x + y, "sub": x - y, "mul": x * y}[name[1:]]
        return int(not 0 <= exact < mod) if name[0] == "u" else int(exact != wrap(exact, bits))

    assert apply(ops, "i32", a, b).tolist() == [wraps(int(x), int(y)) for x, y in zip(a, b)]


def test_vector_transpose_and_reductions() -> None:
    x = samples(32, 12)
    ops = """
      %c = arith.constant dense<[0, 1, 2, 3, 4, 5]> : vector<6xi32>
      %b = vector.broadcast %x0 : i32 to vector<6xi32>
      %v = arith.xori %b, %c : vector<6xi32>
      %m = vector.shape_cast %v : vector<6xi32> to vector<2x3xi32>
      %t = vector.transpose %m, [1, 0] : vector<2x3xi32> to vector<3x2xi32>
      %e = vector.extract %t[2, 0] : i32 from vector<3x2xi32>
      %s = "llvm.intr.vector.reduce.smax"(%v) : (vector<6xi32>) -> i32
      %r = arith.addi %e, %s : i32"""
    want = [wrap((int(v) ^ 2) + max(int(v) ^ i for i in range(6)), 32) for v in x]
    assert apply(ops, "i32", x).tolist() == want

"""More pairs: faults of each check in other forms, integers, values, and warnings that are opt-in."""

from __future__ import annotations

from kernels_ir import lds_array
from pairs import BARRIER, BASE, BUF, DMA, RSRC, VM0, Pair, fill, load_g, load_l, loc, store_g, store_l

BUF1K = lds_array("buf", 1024)
TWO = BUF + "\n" + lds_array("other", 512)
OTHER = "%other = llvm.mlir.addressof @other : !llvm.ptr<3>\n"
FIRST = "%first = arith.cmpi eq, %tid, %c0 : i32\n"
WAVE0 = "%is0 = arith.cmpi eq, %wave, %c0 : i32\n"
WIDE = "%x4 = vector.broadcast %tid : i32 to vector<4xi32>\n%t4 = arith.muli %tid, %c4 : i32\n"
SHOW = store_g("%v", "%i", 13)


def wide_store(index: str, line: int, align: int = 16) -> str:
    return (f"%w{line} = llvm.getelementptr %A[{index}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
            f"llvm.store %x4, %w{line} {{alignment = {align} : i64}} : vector<4xi32>, !llvm.ptr<1> {loc(line)}\n")  # fmt: skip


def guarded(condition: str, body: str) -> str:
    return condition + "scf.if " + condition.split(" = ")[0].split("\n")[-1] + " {\n" + body + "}\n"


def loop(body: str, trips: str = "%c4") -> str:
    return "scf.for %k = %c0 to " + trips + " step %c1 : i32 {\n" + body + "}\n"


# --- races in LDS ---

BROADCAST = BASE + guarded(FIRST, store_l("%bid", "%c0", 110)) + "{}" + load_l("%v", "%c0", 112) + SHOW
LANE0 = "%l0 = arith.cmpi eq, %lane, %c0 : i32\n"
REDUCE = BASE + guarded(LANE0, store_l("%tid", "%wave", 113)) + BARRIER + load_l("%u", "%c0", 114) + "{}" + (
    guarded(LANE0, store_l("%u", "%wave", 115)).replace(LANE0, "") + BARRIER + load_l("%v", "%c1", 116) + SHOW)  # fmt: skip
PING = BASE + "%c128 = arith.constant 128 : i32\n" + loop(
    "%p = arith.andi %k, %c1 : i32\n%s = arith.muli %p, %c128 : i32\n%w = arith.addi %s, %tid : i32\n%r = arith.addi %s, %back : i32\n"
    + store_l("%k", "%w", 117) + "{}" + load_l("%v", "%r", 118) + store_g("%v", "%i", 119))  # fmt: skip
ALIAS = "%half = llvm.getelementptr %buf[{}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32\n"
ALIASED = BASE + store_l("%tid", "%tid", 120) + ALIAS + (
    "%q = llvm.getelementptr %half[%back] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
    f"llvm.store %c1, %q {{alignment = 4 : i64}} : i32, !llvm.ptr<3> {loc(121)}\n")  # fmt: skip
OVERLAP = BASE + "%b4 = arith.muli %tid, {} : i32\n" + (
    "%o = llvm.getelementptr %buf[%b4] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
    f"llvm.store %tid, %o {{alignment = 1 : i64}} : i32, !llvm.ptr<3> {loc(122)}\n")  # fmt: skip
BYTES = BASE + "%v8 = arith.trunci %tid : i32 to i8\n%at = arith.divui %tid, {} : i32\n" + (
    "%o = llvm.getelementptr %buf[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
    f"llvm.store %v8, %o {{alignment = 1 : i64}} : i8, !llvm.ptr<3> {loc(123)}\n")  # fmt: skip
PRODUCER = BASE + WAVE0 + "scf.if %is0 {\n" + store_l("%tid", "%lane", 124) + "} else {\n" + "{}" + "}\n"
FLAG = BASE + store_l("%c0", "%tid", 125) + "{}" + f"%o = llvm.atomicrmw add %buf, %c1 monotonic : !llvm.ptr<3>, i32 {loc(126)}\n"
LAST_TRIP = BASE + loop(store_l("%k", "%tid", 127) + BARRIER + load_l("%v", "%back", 128) + store_g("%v", "%i", 129) + BARRIER) + (
    store_l("%tid", "%tid", 130) + "{}" + load_l("%z", "%back", 131) + store_g("%z", "%i", 132))  # fmt: skip

# --- global ---

TILE_MAP = "%m = arith.{} %bid, %c2 : i32\n%base = arith.muli %m, %c128 : i32\n%at = arith.addi %base, %tid : i32\n"
MAP = "%c128 = arith.constant 128 : i32\n" + TILE_MAP + store_g("%bid", "%at", 140)
HALO = "%c128 = arith.constant 128 : i32\n%base = arith.muli %bid, {} : i32\n%at = arith.addi %base, %tid : i32\n" + store_g("%bid", "%at", 141)
CARRY = store_g("%tid", "%i", 142) + "{}" + (
    "%x = arith.muli %bid, %c127 : i32\n%d = arith.addi %x, %bid : i32\n%p = arith.addi %d, %back : i32\n" + store_g("%c1", "%p", 143))
COUNTER = f"%o = llvm.atomicrmw add %A, %c1 monotonic : !llvm.ptr<1>, i32 {loc(145)}\n"
RESET = guarded("%one = arith.cmpi eq, %i, %c0 : i32\n", store_g("%c0", "{}", 144))

# --- split barriers: what lies between signal and wait is ordered by neither ---

SIGNAL, WAIT = "rocdl.s.barrier.signal id = -1\n", "rocdl.s.barrier.wait id = -1\n"
SPLIT = BASE + "{}" + store_l("%tid", "%tid", 133) + "{}" + WAIT + load_l("%v", "%back", 134) + SHOW
GLOBAL_SPLIT = "{}" + store_g("%tid", "%i", 135) + "{}" + WAIT + (
    "%x = arith.muli %bid, %c127 : i32\n%d = arith.addi %x, %bid : i32\n%p = arith.addi %d, %back : i32\n" + load_g("%v", "%p", 136, "A")
    + store_g("%v", "%i", 137, "B"))

# --- copies ---

TWO_COPIES = DMA + "%dst2 = llvm.getelementptr %dst[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32\n" + (
    f"rocdl.raw.ptr.buffer.load.lds %rsrc, %dst2, %c4, %off, %c0, %c0, 0 {loc(151)}\n{{}}" + BARRIER
    + "%c128 = arith.constant 128 : i32\n%far = arith.addi %back, %c128 : i32\n" + load_l("%v", "%far", 152) + SHOW)
ASYNC = BASE + RSRC + f"rocdl.raw.ptr.buffer.load.async.lds %rsrc, %dst, %c4, %off, %c0, %c0, 0 {loc(153)}\nrocdl.asyncmark\n"
WAIT_LATE = DMA + "{}" + load_l("%v", "%tid", 156) + SHOW

# --- alignment ---

ODD_LOAD = ("%q = llvm.getelementptr %B[{}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
            f"%v = llvm.load %q {{alignment = 4 : i64}} : !llvm.ptr<1> -> i32 {loc(177)}\n") + SHOW  # fmt: skip
ODD_ATOMIC = ("%q = llvm.getelementptr %A[{}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
              f"%o = llvm.atomicrmw add %q, %c1 monotonic : !llvm.ptr<1>, i32 {loc(178)}\n")  # fmt: skip
ODD_LDS = ("%at = arith.muli %tid, {} : i32\n%h = arith.muli %at, %c2 : i32\n%q = llvm.getelementptr %buf[%h] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
           f"llvm.store %tid, %q {{alignment = 8 : i64}} : i32, !llvm.ptr<3> {loc(179)}\n")  # fmt: skip

# --- undefined, values ---

INT_MIN = "%min = arith.constant -2147483648 : i32\n%m1 = arith.constant -1 : i32\n"
MATH = "%f = arith.sitofp {} : i32 to f32\n%zero = arith.constant 0.0 : f32\n"
BITS = "%v = arith.fptosi %r : f32 to i32\n" + SHOW

UNSIGNED = "%row = arith.constant {} : i32\n" + f"%off = arith.muli %tid, %row : i32 {loc(197)}\n" + (
    "%wide = arith.extui %off : i32 to i64\n%big = arith.constant 5000000000 : i64\n%r = arith.remui %wide, %big : i64\n%v = arith.trunci %r : i64 to i32\n") + SHOW
HALF = "%c1000 = arith.constant 1000 : i32\n%x = arith.muli %tid, {} : i32\n%f = arith.sitofp %x : i32 to f32\n" + (
    f"%h = arith.truncf %f : f32 to f16 {loc(198)}\n%r = arith.extf %h : f16 to f32\n") + BITS  # fmt: skip
DIGITS = "%big = arith.constant {} : i32\n%x = arith.addi %big, %tid : i32\n" + f"%r = arith.sitofp %x : i32 to f32 {loc(199)}\n" + BITS
TO_INT = "%r = arith.constant {} : f32\n" + f"%v = arith.fptosi %r : f32 to i32 {loc(205)}\n" + SHOW
CODES = "%x = arith.muli %tid, {} : i32\n%f = arith.sitofp %x : i32 to f32\n" + (
    f"%v = rocdl.cvt.pk.fp8.f32 %f, %f -> %c0[false] : i32 {loc(206)}\n") + SHOW

SUM_OF_PARTS = BASE + "%c3 = arith.constant 3 : i32\n" + guarded("%l0 = arith.cmpi eq, %lane, %c0 : i32\n", store_l("%tid", "%wave", 222)) + BARRIER + (
    loop(load_l("%v", "%k", 223) + store_g("%v", "%i", 224), "{}"))
TWO_PASSES = "%last = arith.cmpi {}, %tid, %c63 : i32\nscf.if %last {\n" + load_g("%u", "%tid", 225) + "}\n" + load_g("%v", "%tid", 226) + SHOW
TWO_CELLS = BASE + "%is = arith.cmpi eq, %tid, %c0 : i32\nscf.if %is {\n" + store_l("%tid", "%c0", 227) + store_l("%tid", "%c1", 228) + "}\n" + BARRIER + (
    load_l("%v", "%c0", 230) + load_l("%w", "%c1", 231) + BARRIER
    + "scf.if %is {\n" + store_l("%bid", "%c0", 228, "first") + "{}" + "}\n" + BARRIER
    + load_l("%x", "%c0", 229) + load_l("%y", "%c1", 229).replace("%l229", "%m229") + "%z = arith.addi %x, %y : i32\n" + store_g("%z", "%i", 232))

MORE = [
    Pair("broadcast-without-barrier", "race", fill(BROADCAST, ""), fill(BROADCAST, BARRIER), (112, 110), lds=BUF),
    Pair("scratch-of-a-reduction-reused", "race", fill(REDUCE, ""), fill(REDUCE, BARRIER), (114, 115), lds=BUF),
    Pair("double-buffer-without-barrier", "race", fill(PING, ""), fill(PING, BARRIER), (118, 117), lds=BUF1K),
    Pair("overlapping-views-of-one-array", "race", fill(ALIASED, "0"), fill(ALIASED, "128"), (121, 120), lds=BUF1K),
    Pair("rows-overlap-by-bytes", "race", fill(OVERLAP, "%c2"), fill(OVERLAP, "%c4"), (122, 122), lds=BUF),
    Pair("bytes-of-one-word", "race", fill(BYTES, "%c2"), fill(BYTES, "%c1"), (123, 123), lds=BUF),
    Pair("producer-and-consumer-waves", "race", fill(PRODUCER, load_l("%v", "%lane", 126) + SHOW),
         fill(PRODUCER, "%far = arith.addi %lane, %c64 : i32\n" + store_l("%c1", "%far", 126)), (126, 124), lds=BUF),
    Pair("atomics-after-initialisation", "race", fill(FLAG, ""), fill(FLAG, BARRIER), (126, 125), lds=BUF),
    Pair("epilogue-after-a-loop", "race", fill(LAST_TRIP, ""), fill(LAST_TRIP, BARRIER), (131, 130), lds=BUF),
    Pair("barrier-before-the-write", "race", BASE + BARRIER + store_l("%tid", "%tid", 10) + load_l("%v", "%back", 12) + SHOW,
         BASE + store_l("%tid", "%tid", 10) + BARRIER + load_l("%v", "%back", 12) + SHOW, (12, 10), lds=BUF),
    Pair("grid-map-not-a-bijection", "race", fill(MAP, "divui"), fill(MAP.replace("%c2 : i32", "%c1 : i32", 1), "divui"), (140, 140), grid=4),
    Pair("padded-rows-alias-the-next-block", "race", fill(HALO, "%c127"), fill(HALO, "%c128"), (141, 141)),
    Pair("waves-write-one-tensor-twice", "race", fill(CARRY, ""), fill(CARRY, BARRIER), (143, 142)),
    Pair("plain-store-beside-atomics-of-others", "race", fill(RESET, "%c0") + COUNTER, fill(RESET, "%c1") + COUNTER, (145, 144)),
    Pair("store-after-the-signal", "race", fill(SPLIT, SIGNAL, ""), fill(SPLIT, "", SIGNAL), (134, 133), lds=BUF, arch="gfx1250"),
    Pair("global-store-after-the-signal", "race", fill(GLOBAL_SPLIT, SIGNAL, ""), fill(GLOBAL_SPLIT, "", SIGNAL), (136, 135), arch="gfx1250"),
    Pair("second-copy-not-waited-for", "missing-wait", fill(TWO_COPIES, "rocdl.s.waitcnt 3953\n"), fill(TWO_COPIES, VM0), (152, 151), lds=BUF1K),
    Pair("group-left-outstanding", "missing-wait", ASYNC + "rocdl.wait.asyncmark 1\n" + BARRIER + load_l("%v", "%back", 154) + SHOW,
         ASYNC + "rocdl.wait.asyncmark 0\n" + BARRIER + load_l("%v", "%back", 154) + SHOW, (154, 153), lds=BUF),
    Pair("own-copy-read-too-early", "missing-wait", fill(WAIT_LATE, ""), fill(WAIT_LATE, VM0), (156, 50), lds=BUF),
    Pair("uninitialised-second-array", "uninitialised",
         BASE + OTHER + store_l("%tid", "%tid", 10) + BARRIER + load_l("%v", "%back", 12).replace("%buf", "%other") + SHOW,
         BASE + OTHER + store_l("%tid", "%tid", 10) + BARRIER + load_l("%v", "%back", 12) + SHOW, (12, None), lds=TWO),
    Pair("tile-loaded-in-part", "uninitialised",
         BASE + guarded("%half = arith.cmpi ult, %tid, %c64 : i32\n", store_l("%tid", "%tid", 160)) + BARRIER + load_l("%v", "%back", 161) + SHOW,
         BASE + store_l("%tid", "%tid", 160) + BARRIER + load_l("%v", "%back", 161) + SHOW, (161, None), lds=BUF),
    Pair("atomic-on-unwritten-lds", "uninitialised",
         BASE + guarded(FIRST, store_l("%c0", "%c1", 162)) + BARRIER + load_l("%v", "%c0", 163) + SHOW,
         BASE + guarded(FIRST, store_l("%c0", "%c0", 162)) + BARRIER + load_l("%v", "%c0", 163) + SHOW, (163, None), lds=BUF),
    Pair("register-fragment-never-written", "uninitialised", "%v = ub.poison : i32\n" + f"%s = arith.addi %v, %tid : i32 {loc(164)}\n" + store_g("%s", "%i", 165),
         "%v = arith.constant 0 : i32\n" + f"%s = arith.addi %v, %tid : i32 {loc(164)}\n" + store_g("%s", "%i", 165), (164, None)),
    Pair("accumulator-not-cleared", "uninitialised",
         "%a = ub.poison : i32\n%z = scf.for %k = %c0 to %c4 step %c1 iter_args(%s = %a) -> (i32) : i32 {\n"
         f"%n = arith.addi %s, %k : i32 {loc(166)}\nscf.yield %n : i32\n}}\n" + store_g("%z", "%i", 167),
         "%a = arith.constant 0 : i32\n%z = scf.for %k = %c0 to %c4 step %c1 iter_args(%s = %a) -> (i32) : i32 {\n"
         f"%n = arith.addi %s, %k : i32 {loc(166)}\nscf.yield %n : i32\n}}\n" + store_g("%z", "%i", 167), (166, None)),
    Pair("write-past-the-end", "bounds", "%j = arith.addi %i, %c1 : i32\n" + store_g("%tid", "%j", 170), store_g("%tid", "%i", 170), (170, None), size=256),
    Pair("read-before-the-start", "bounds", "%j = arith.subi %i, %c1 : i32\n" + load_g("%v", "%j", 171) + SHOW, load_g("%v", "%i", 171) + SHOW, (171, None),
         size=256),
    Pair("vector-straddles-the-end", "bounds", WIDE + "%j = arith.addi %t4, %c2 : i32\n" + wide_store("%j", 172, 4), WIDE + wide_store("%t4", 172),
         (172, None), size=512, grid=1),
    Pair("negative-lds-offset", "bounds", BASE + "%j = arith.subi %tid, %c1 : i32\n" + store_l("%tid", "%j", 173), BASE + store_l("%tid", "%tid", 173),
         (173, None), lds=BUF),
    Pair("lds-tile-larger-than-allocated", "bounds", BASE + "%j = arith.muli %tid, %c2 : i32\n" + store_l("%tid", "%j", 174),
         BASE + "%j = arith.muli %tid, %c1 : i32\n" + store_l("%tid", "%j", 174), (174, None), lds=BUF),
    Pair("misaligned-vector", "misaligned", WIDE + "%j = arith.addi %t4, %c1 : i32\n" + wide_store("%j", 175), WIDE + wide_store("%t4", 175), (175, None),
         grid=1, severity="warning"),
    Pair("misaligned-scalar-load", "misaligned", fill(ODD_LOAD, "2"), fill(ODD_LOAD, "4"), (177, None)),
    Pair("misaligned-atomic", "misaligned", fill(ODD_ATOMIC, "2"), fill(ODD_ATOMIC, "4"), (178, None)),
    Pair("misaligned-lds", "misaligned", BASE + fill(ODD_LDS, "%c2"), BASE + fill(ODD_LDS, "%c4"), (179, None), lds=BUF1K),
    Pair("copy-past-the-end-of-lds", "bounds", BASE + RSRC.replace("%woff = arith.muli %wave, %c64", "%w2 = arith.addi %wave, %c1 : i32\n%woff = arith.muli %w2, %c64")
         + f"rocdl.raw.ptr.buffer.load.lds %rsrc, %dst, %c4, %off, %c0, %c0, 0 {loc(176)}\n" + VM0,
         BASE + RSRC + f"rocdl.raw.ptr.buffer.load.lds %rsrc, %dst, %c4, %off, %c0, %c0, 0 {loc(176)}\n" + VM0, (176, None), lds=BUF),
    Pair("barrier-for-one-wave", "barrier", guarded(WAVE0, f"gpu.barrier {loc(180)}\n"), guarded("%u = arith.cmpi eq, %bid, %c0 : i32\n", f"gpu.barrier {loc(180)}\n"),
         (180, None)),
    Pair("barrier-for-odd-lanes", "barrier", guarded("%o = arith.andi %tid, %c1 : i32\n%odd = arith.cmpi eq, %o, %c1 : i32\n", f"gpu.barrier {loc(181)}\n").replace(
        "scf.if %o ", "scf.if %odd "), f"gpu.barrier {loc(181)}\n", (181, None)),
    Pair("early-exit-before-a-barrier", "barrier", guarded("%few = arith.cmpi ult, %tid, %c127 : i32\n", f"gpu.barrier {loc(182)}\n"), f"gpu.barrier {loc(182)}\n",
         (182, None)),
    Pair("remainder-by-zero", "undefined", f"%v = arith.remui %c4, %tid : i32 {loc(190)}\n" + SHOW,
         f"%d = arith.addi %tid, %c1 : i32\n%v = arith.remui %c4, %d : i32 {loc(190)}\n" + SHOW, (190, None)),
    Pair("division-overflows", "undefined", INT_MIN + f"%v = arith.divsi %min, %m1 : i32 {loc(191)}\n" + SHOW,
         INT_MIN + f"%v = arith.divsi %min, %c2 : i32 {loc(191)}\n" + SHOW, (191, None)),
    Pair("logical-shift-past-the-width", "undefined", f"%v = arith.shrui %c4, %tid : i32 {loc(192)}\n" + SHOW,
         "%c31 = arith.constant 31 : i32\n%s = arith.andi %tid, %c31 : i32\n" + f"%v = arith.shrui %c4, %s : i32 {loc(192)}\n" + SHOW, (192, None)),
    Pair("offset-wraps-in-32-bits", "overflow", f"%big = arith.constant 100000000 : i32\n%v = arith.muli %tid, %big : i32 {loc(193)}\n" + SHOW,
         "%big = arith.constant 100000000 : i64\n%t64 = arith.extui %tid : i32 to i64\n" + f"%w = arith.muli %t64, %big : i64 {loc(193)}\n"
         + "%v = arith.trunci %w : i64 to i32\n" + SHOW, (193, None), options={"checks": frozenset({"overflow"})}),
    Pair("sum-wraps", "overflow", f"%big = arith.constant 2147483600 : i32\n%v = arith.addi %tid, %big : i32 {loc(194)}\n" + SHOW,
         f"%big = arith.constant 2147483500 : i32\n%v = arith.addi %tid, %big : i32 {loc(194)}\n" + SHOW, (194, None), options={"checks": frozenset({"overflow"})}),
    Pair("quotient-becomes-infinite", "not-finite", fill(MATH, "%tid") + "%one = arith.constant 1.0 : f32\n" + f"%r = arith.divf %one, %f : f32 {loc(195)}\n" + BITS,
         "%d = arith.addi %tid, %c1 : i32\n" + fill(MATH, "%d") + "%one = arith.constant 1.0 : f32\n" + f"%r = arith.divf %one, %f : f32 {loc(195)}\n" + BITS,
         (195, None), options={"checks": frozenset({"nan"})}),
    Pair("root-of-a-negative-number", "not-finite", "%d = arith.subi %tid, %c4 : i32\n" + fill(MATH, "%d") + f"%r = math.sqrt %f : f32 {loc(196)}\n" + BITS,
         fill(MATH, "%tid") + f"%r = math.sqrt %f : f32 {loc(196)}\n" + BITS, (196, None), options={"checks": frozenset({"nan"})}),
    Pair("unsigned-offset-wraps", "overflow", fill(UNSIGNED, "40000000"), fill(UNSIGNED, "30000000"), (197, None), options={"checks": frozenset({"overflow"})}),
    Pair("half-overflows", "lossy-conversion", fill(HALF, "%c1000"), fill(HALF, "%c127"), (198, None), options={"checks": frozenset({"lossy"})}),
    Pair("integer-has-more-digits-than-the-float", "lossy-conversion", fill(DIGITS, "16777216"), fill(DIGITS, "16777088"), (199, None),
         options={"checks": frozenset({"lossy"})}),
    Pair("float-past-the-integer", "lossy-conversion", fill(TO_INT, "3.0e+09"), fill(TO_INT, "2.0e+09"), (205, None), options={"checks": frozenset({"lossy"})}),
    Pair("small-float-overflows", "lossy-conversion", fill(CODES, "%c4"), fill(CODES, "%c1"), (206, None), options={"checks": frozenset({"lossy"})}),
    Pair("barrier-that-orders-nothing", "needless-barrier", BASE + f"gpu.barrier {loc(200)}\n" + store_l("%tid", "%tid", 201) + BARRIER + load_l("%v", "%back", 202) + SHOW,
         BASE + store_l("%tid", "%tid", 201) + BARRIER + load_l("%v", "%back", 202) + SHOW, (200, None), lds=BUF, severity="warning",
         options={"checks": frozenset({"needless", "race"})}),
    Pair("wait-for-nothing", "needless-wait", DMA + VM0 + f"rocdl.s.waitcnt 3952 {loc(203)}\n" + BARRIER + load_l("%v", "%back", 52) + SHOW,
         DMA + f"rocdl.s.waitcnt 3952 {loc(203)}\n" + BARRIER + load_l("%v", "%back", 52) + SHOW, (203, None), lds=BUF, severity="warning",
         options={"checks": frozenset({"needless", "waits"})}),
    Pair("tile-refilled-in-part", "stale",
         BASE + loop("%half = arith.cmpi ult, %tid, %c64 : i32\n%zero = arith.cmpi eq, %k, %c0 : i32\n%do = arith.ori %half, %zero : i1\nscf.if %do {\n"
                     + store_l("%k", "%tid", 210) + "}\n" + BARRIER + load_l("%v", "%back", 211) + store_g("%v", "%i", 212) + BARRIER),
         BASE + loop(store_l("%k", "%tid", 210) + BARRIER + load_l("%v", "%back", 211) + store_g("%v", "%i", 212) + BARRIER), (211, 210), lds=BUF,
         severity="warning", options={"checks": frozenset({"stale", "race"})}),
    Pair("partial-sum-not-read", "never-read", fill(SUM_OF_PARTS, "%c3"), fill(SUM_OF_PARTS, "%c4"), (222, None), block=256, lds=BUF, severity="warning",
         options={"checks": frozenset({"unread"})}),
    Pair("line-leaves-out-the-last-element", "never-read", fill(TWO_PASSES, "slt"), fill(TWO_PASSES, "sle"), (225, None), block=64, grid=1, size=64,
         severity="warning", options={"checks": frozenset({"unread"})}),
    Pair("one-of-two-cells-refilled", "stale", fill(TWO_CELLS, ""), fill(TWO_CELLS, store_l("%bid", "%c1", 228, "again")), (229, 228), lds=BUF,
         severity="warning", options={"checks": frozenset({"stale", "race"})}),
    Pair("input-read-in-part", "never-read", guarded("%few = arith.cmpi ult, %tid, %c64 : i32\n", load_g("%v", "%i", 221)), load_g("%v", "%i", 221),
         (221, None), size=256, severity="warning", options={"checks": frozenset({"unread"})}),
    Pair("output-written-in-part", "never-written", guarded("%few = arith.cmpi ult, %tid, %c64 : i32\n", store_g("%tid", "%i", 220)), store_g("%tid", "%i", 220),
         (220, None), size=256, severity="warning", options={"checks": frozenset({"holes"})}),
]  # fmt: skip

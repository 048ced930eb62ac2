"""Broken and sound kernels: each pair differs in the one thing that the check is about. Lines are `kernel.py` lines given by `loc`."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernels_ir import kernel, lds_array, module


def loc(line: int) -> str:
    return f'loc("kernel.py":{line}:5)'


@dataclass(frozen=True)
class Pair:
    """`lines`: (the finding's line, the other access's line or None); `block` threads, `grid` workgroups."""

    name: str
    kind: str
    broken: str
    sound: str
    lines: tuple[int | None, int | None]
    block: int = 128
    grid: int = 2
    lds: str = ""
    arch: str = "gfx942"
    size: int = 1024
    options: dict = field(default_factory=dict)
    severity: str = "error"

    def text(self, body: str) -> str:
        """Return the module of one side."""
        return module(kernel("k", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", PRELUDE + body), self.arch, self.lds)


PRELUDE = """
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %c127 = arith.constant 127 : i32
  %wave = arith.divui %tid, %c64 : i32
  %lane = arith.andi %tid, %c63 : i32
  %back = arith.subi %c127, %tid : i32
"""
BUF = lds_array("buf", 512)
BASE = "%buf = llvm.mlir.addressof @buf : !llvm.ptr<3>\n"


def store_l(value: str, index: str, line: int, name: str = "") -> str:
    n = name or f"s{line}"
    return (f"%{n} = llvm.getelementptr %buf[{index}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
            f"llvm.store {value}, %{n} {{alignment = 4 : i64}} : i32, !llvm.ptr<3> {loc(line)}\n")  # fmt: skip


def load_l(result: str, index: str, line: int) -> str:
    return (f"%l{line} = llvm.getelementptr %buf[{index}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
            f"{result} = llvm.load %l{line} {{alignment = 4 : i64}} : !llvm.ptr<3> -> i32 {loc(line)}\n")  # fmt: skip


def store_g(value: str, index: str, line: int, tensor: str = "A") -> str:
    return (f"%g{line} = llvm.getelementptr %{tensor}[{index}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
            f"llvm.store {value}, %g{line} {{alignment = 4 : i64}} : i32, !llvm.ptr<1> {loc(line)}\n")  # fmt: skip


def load_g(result: str, index: str, line: int, tensor: str = "B") -> str:
    return (f"%h{line} = llvm.getelementptr %{tensor}[{index}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
            f"{result} = llvm.load %h{line} {{alignment = 4 : i64}} : !llvm.ptr<1> -> i32 {loc(line)}\n")  # fmt: skip


def fill(template: str, *parts: str) -> str:
    """Put `parts` where the template has `{}`; braces of the IR stay."""
    for part in parts:
        template = template.replace("{}", part, 1)
    return template


BARRIER = "gpu.barrier\n"
WRITE_READ = BASE + store_l("%tid", "%tid", 10) + "{}" + load_l("%v", "%back", 12) + store_g("%v", "%i", 13)

LOOP = BASE + """
  scf.for %k = %c0 to %c4 step %c1 : i32 {
    %x = arith.addi %tid, %k : i32
""" + store_l("%x", "%tid", 20) + BARRIER + load_l("%v", "%back", 22) + store_g("%v", "%i", 23) + "{}}\n"  # fmt: skip

DOUBLE = lds_array("buf", 1024)
STAGES = BASE + """
  %c128 = arith.constant 128 : i32
""" + store_l("%tid", "%tid", 30) + BARRIER + """
  scf.for %k = %c0 to %c4 step %c1 : i32 {
    %par = arith.andi %k, %c1 : i32
    %cur = arith.muli %par, %c128 : i32
    %np = arith.xori %par, %c1 : i32
    %nxt = arith.muli {}, %c128 : i32
    %w = arith.addi %nxt, %tid : i32
    %r = arith.addi %cur, %back : i32
""" + store_l("%k", "%w", 32) + load_l("%v", "%r", 33) + store_g("%v", "%i", 34) + BARRIER + "}\n"  # fmt: skip

FIRST_THREAD = """
  %first = arith.cmpi eq, {}, %c0 : i32
  scf.if %first {
""" + store_l("{}", "%c0", 40) + "}\n" + BARRIER + load_l("%v", "%c0", 42) + store_g("%v", "%i", 43)  # fmt: skip

RSRC = """
  %z16 = arith.constant 0 : i16
  %nr = arith.constant 4096 : i64
  %fl = arith.constant 159744 : i32
  %rsrc = rocdl.make.buffer.rsrc %B, %z16, %nr, %fl : !llvm.ptr<1> to !llvm.ptr<8>
  %off = arith.muli %tid, %c4 : i32
  %woff = arith.muli %wave, %c64 : i32
  %dst = llvm.getelementptr %buf[%woff] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
"""
DMA = BASE + RSRC + f"rocdl.raw.ptr.buffer.load.lds %rsrc, %dst, %c4, %off, %c0, %c0, 0 {loc(50)}\n"
VM0 = "rocdl.s.waitcnt 3952\n"
REUSE = DMA + VM0 + BARRIER + load_l("%v", "%back", 52) + store_g("%v", "%i", 53) + "{}" + (
    f"rocdl.raw.ptr.buffer.load.lds %rsrc, %dst, %c4, %off, %c0, %c0, 0 {loc(55)}\n" + VM0 + BARRIER + load_l("%w", "%back", 57) + store_g("%w", "%i", 58)
)  # fmt: skip

PRIVATE = """
  %p = llvm.alloca %c4 x i32 {alignment = 4 : i64} : (i32) -> !llvm.ptr<5>
  {}
  %q = llvm.getelementptr %p[2] : (!llvm.ptr<5>) -> !llvm.ptr<5>, i32
  %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<5> -> i32 loc("kernel.py":60:5)
""" + store_g("%v", "%i", 61)  # fmt: skip
FILL = """scf.for %k = %c0 to {} step %c1 : i32 {
    %e = llvm.getelementptr %p[%k] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, i32
    llvm.store %k, %e {alignment = 4 : i64} : i32, !llvm.ptr<5>
  }"""

PAIRS = [
    Pair("lds-read-before-barrier", "race", fill(WRITE_READ, ""), fill(WRITE_READ, BARRIER), (12, 10), lds=BUF),
    Pair("lds-reuse-in-a-loop", "race", fill(LOOP, ""), fill(LOOP, BARRIER), (22, 20), lds=BUF),
    Pair("double-buffer-stages-swapped", "race", fill(STAGES, "%par"), fill(STAGES, "%np"), (33, 32), lds=DOUBLE),
    Pair("several-waves-write-one-cell", "race", BASE + fill(FIRST_THREAD, "%lane", "%wave"), BASE + fill(FIRST_THREAD, "%tid", "%wave"),
         (40, 40), lds=BUF),
    Pair("same-value-writes", "same-value-write", BASE + fill(FIRST_THREAD, "%lane", "%c1"), BASE + fill(FIRST_THREAD, "%tid", "%c1"),
         (40, 40), lds=BUF, severity="note"),
    Pair("lanes-of-a-wave-collide", "race",
         BASE + "%half = arith.divui %tid, %c2 : i32\n" + store_l("%tid", "%half", 45), BASE + store_l("%tid", "%tid", 45), (45, 45), lds=BUF),
    Pair("plain-write-beside-atomics", "race",
         BASE + "%first = arith.cmpi eq, %tid, %c0 : i32\nscf.if %first {\n" + store_l("%c0", "%c0", 70) + "}\n"
         + f"%o = llvm.atomicrmw add %buf, %c1 monotonic : !llvm.ptr<3>, i32 {loc(72)}\n",
         BASE + "%first = arith.cmpi eq, %tid, %c0 : i32\nscf.if %first {\n" + store_l("%c0", "%c0", 70) + "}\n" + BARRIER
         + f"%o = llvm.atomicrmw add %buf, %c1 monotonic : !llvm.ptr<3>, i32 {loc(72)}\n", (72, 70), lds=BUF),
    Pair("lds-never-written", "uninitialised",
         BASE + "%few = arith.cmpi slt, %tid, %c127 : i32\nscf.if %few {\n" + store_l("%tid", "%tid", 10) + "}\n" + BARRIER
         + load_l("%v", "%back", 12) + store_g("%v", "%i", 13),
         BASE + store_l("%tid", "%tid", 10) + BARRIER + load_l("%v", "%back", 12) + store_g("%v", "%i", 13), (12, None), lds=BUF),
    Pair("private-never-written", "uninitialised", fill(PRIVATE, fill(FILL, "%c2")), fill(PRIVATE, fill(FILL, "%c4")), (60, None)),
    Pair("copy-without-wait", "missing-wait", DMA + BARRIER + load_l("%v", "%back", 52) + store_g("%v", "%i", 53),
         DMA + VM0 + BARRIER + load_l("%v", "%back", 52) + store_g("%v", "%i", 53), (52, 50), lds=BUF),
    Pair("copy-with-the-wrong-counter", "missing-wait",
         DMA + "rocdl.s.waitcnt 49279\n" + BARRIER + load_l("%v", "%back", 52) + store_g("%v", "%i", 53),
         DMA + VM0 + BARRIER + load_l("%v", "%back", 52) + store_g("%v", "%i", 53), (52, 50), lds=BUF),
    Pair("copy-without-barrier", "race", DMA + VM0 + load_l("%v", "%back", 52) + store_g("%v", "%i", 53),
         DMA + VM0 + BARRIER + load_l("%v", "%back", 52) + store_g("%v", "%i", 53), (52, 50), lds=BUF,
         options={"schedule": "lockstep"}),
    Pair("copy-into-lds-that-is-still-read", "race", fill(REUSE, ""), fill(REUSE, BARRIER), (52, 55), lds=BUF),
    Pair("workgroups-write-one-tile", "race", store_g("%bid", "%tid", 80), store_g("%bid", "%i", 80), (80, 80)),
    Pair("workgroups-write-the-same-value", "same-value-write", store_g("%c1", "%tid", 80), store_g("%c1", "%i", 80), (80, 80), severity="note"),
    Pair("in-place-stencil-between-workgroups", "race",
         "%j = arith.addi %i, %c1 : i32\n" + load_g("%v", "%j", 82, "A") + store_g("%v", "%i", 84),
         "%j = arith.addi %i, %c1 : i32\n" + load_g("%v", "%j", 82, "B") + store_g("%v", "%i", 84), (84, 82)),
    Pair("waves-exchange-through-global-memory", "race",
         "%x = arith.muli %bid, %c127 : i32\n%d = arith.addi %x, %bid : i32\n%p = arith.addi %d, %back : i32\n"
         + store_g("%tid", "%i", 86) + load_g("%v", "%p", 87, "A") + store_g("%v", "%i", 88, "B"),
         "%x = arith.muli %bid, %c127 : i32\n%d = arith.addi %x, %bid : i32\n%p = arith.addi %d, %back : i32\n"
         + store_g("%tid", "%i", 86) + BARRIER + load_g("%v", "%p", 87, "A") + store_g("%v", "%i", 88, "B"), (87, 86)),
    Pair("barrier-in-a-branch", "barrier", f"%few = arith.cmpi slt, %tid, %c4 : i32\nscf.if %few {{ gpu.barrier {loc(90)} }}\n",
         f"%few = arith.cmpi slt, %bid, %c1 : i32\nscf.if %few {{ gpu.barrier {loc(90)} }}\n", (90, None)),
    Pair("loop-of-barriers-with-unequal-trips", "barrier",
         f"%n = arith.addi %wave, %c1 : i32\nscf.for %k = %c0 to %n step %c1 : i32 {{ gpu.barrier {loc(92)} }}\n",
         f"%n = arith.addi %bid, %c1 : i32\nscf.for %k = %c0 to %n step %c1 : i32 {{ gpu.barrier {loc(92)} }}\n", (92, None)),
    Pair("read-past-the-end", "bounds", "%j = arith.addi %i, %c1 : i32\n" + load_g("%v", "%j", 95) + store_g("%v", "%i", 96),
         load_g("%v", "%i", 95) + store_g("%v", "%i", 96), (95, None), size=256),
    Pair("descriptor-hides-the-fault", "bounds",
         BASE + RSRC + f"%v = rocdl.raw.ptr.buffer.load %rsrc, %off, %c4, 0 : i32 {loc(97)}\n" + store_g("%v", "%i", 98),
         BASE + RSRC + f"%v = rocdl.raw.ptr.buffer.load %rsrc, %off, %c0, 0 : i32 {loc(97)}\n" + store_g("%v", "%i", 98), (97, None), lds=BUF,
         size=128, grid=1),
    Pair("lds-past-its-array", "bounds", BASE + "%j = arith.addi %tid, %c1 : i32\n" + store_l("%tid", "%j", 99), BASE + store_l("%tid", "%tid", 99),
         (99, None), lds=BUF + "\n" + lds_array("other", 512)),
    Pair("division-by-zero", "undefined", f"%v = arith.divsi %c4, %tid : i32 {loc(100)}\n" + store_g("%v", "%i", 101),
         f"%d = arith.addi %tid, %c1 : i32\n%v = arith.divsi %c4, %d : i32 {loc(100)}\n" + store_g("%v", "%i", 101), (100, None)),
    Pair("shift-past-the-width", "undefined", f"%v = arith.shli %c4, %tid : i32 {loc(102)}\n" + store_g("%v", "%i", 103),
         "%c31 = arith.constant 31 : i32\n%s = arith.andi %tid, %c31 : i32\n" + f"%v = arith.shli %c4, %s : i32 {loc(102)}\n" + store_g("%v", "%i", 103),
         (102, None)),
]  # fmt: skip

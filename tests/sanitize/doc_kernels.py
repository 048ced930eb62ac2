"""Kernels of docs/sanitizers.md: each broken and sound by one constant. `python tests/sanitize/doc_kernels.py` writes the
page's sections between their markers anew; test_docs.py compares."""

import inspect
import pathlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.sim
from flydsl.targets.sim.streams import order

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "sanitizers.md"


@dataclass(frozen=True)
class Shown:
    """A kernel of the page; `grid`, `block`, `size` of its launch, or the host code that launches it."""

    kernel: Callable
    checks: str = "default"
    grid: int = 1
    block: int = 128
    size: int = 128
    host: Callable[[bool], None] | None = None


@flyc.kernel
def bounds(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    ahead = 1 if broken else 0
    B[i] = A[i + ahead]


@flyc.kernel
def uninit(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128, 16]).peek().view(fx.make_layout(128, 1))
    i = fx.thread_idx.x
    filled = 112 if broken else 128  # 128 / 16 = 8 passes, but 7 were written
    if i < filled:
        s[i] = A[i]
    fx.barrier()
    B[i] = s[127 - i]


@flyc.kernel
def fragment(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    total = fx.make_rmem_tensor(fx.make_layout(1, 1), fx.Float32)
    if fx.const_expr(not broken):
        total.fill(0.0)
    total[0] = total[0] + A[i]
    B[i] = total[0]


@flyc.kernel
def race(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128, 16]).peek().view(fx.make_layout(128, 1))
    i = fx.thread_idx.x
    s[i] = A[i]
    if fx.const_expr(not broken):
        fx.barrier()
    B[i] = s[127 - i]


@flyc.kernel
def workgroups(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    tile = fx.block_idx.x // 2 if broken else fx.block_idx.x  # not a bijection: two workgroups take one tile
    at = tile * 128 + fx.thread_idx.x
    B[at] = A[at] * fx.Float32(fx.block_idx.x)


@flyc.kernel
def barrier(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    if fx.const_expr(broken):
        if i < 64:
            fx.barrier()
    else:
        fx.barrier()
    B[i] = A[i]


@flyc.kernel
def undefined(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    parts = i if broken else i + 1
    B[i] = fx.Float32(128 // parts)


@flyc.kernel
def waits(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128, 16]).peek()
    i = fx.thread_idx.x
    mine = fx.make_view(fx.add_offset(fx.rocdl.make_buffer_tensor(A).iter, i), fx.make_layout(1, 1))
    atom = fx.make_copy_atom(fx.rocdl.BufferCopyLDS(32), fx.Float32)  # a DMA: it lands in LDS at some time
    fx.copy(atom, mine, s.view(fx.make_layout((1, 128), (1, 1)))[None, i])
    if fx.const_expr(not broken):
        fx.rocdl.s_waitcnt(vmcnt=0)
    fx.barrier()
    B[i] = s.view(fx.make_layout(128, 1))[127 - i]


@flyc.kernel
def misaligned(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    wide = fx.make_copy_atom(fx.UniversalCopy(64), fx.Float32)
    first = 2 * i + 1 if broken else 2 * i  # the atom promises 8 bytes, an odd element has 4
    pair = fx.make_view(fx.add_offset(A.iter, first), fx.make_layout(2, 1))
    frag = fx.make_rmem_tensor(2, fx.Float32)
    fx.copy(wide, pair, frag)
    B[i] = frag[0]


@flyc.kernel
def stale(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128, 16]).peek().view(fx.make_layout(128, 1))
    i = fx.thread_idx.x
    total = fx.Float32(0.0)
    for k in fx.range_constexpr(2):
        filled = 64 if broken and k == 1 else 128  # the second pass covers half of the tile
        if i < filled:
            s[i] = A[k * 128 + i]
        fx.barrier()
        total = total + s[127 - i]
        fx.barrier()
    B[i] = total


@flyc.kernel
def banks(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    row = 32 if broken else 33  # 64 rows of 32 words: a column lies in one bank
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64 * 33, 16]).peek().view(fx.make_layout((64, 32), (row, 1)))
    i = fx.thread_idx.x
    for k in fx.range_constexpr(32):
        s[k * 2 + i // 32, i % 32] = A[k * 64 + i]
    fx.barrier()
    B[i] = s[i, 7]


@flyc.kernel
def unread(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4, 16]).peek().view(fx.make_layout(4, 1))
    i = fx.thread_idx.x
    x = A[i]
    if i % 64 == 0:
        s[i // 64] = x
    fx.barrier()
    total = fx.Float32(0.0)
    for w in fx.range_constexpr(3 if broken else 4):  # four waves left a partial sum
        total = total + s[w]
    B[i] = total


@flyc.kernel
def holes(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    last = 120 if broken else 128
    if i < last:
        B[i] = A[i]


@flyc.kernel
def needless(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128, 16]).peek().view(fx.make_layout(128, 1))
    i = fx.thread_idx.x
    s[i] = A[i]
    fx.barrier()
    B[i] = s[i] if broken else s[127 - i]  # each thread reads its own element: the barrier orders nothing


@flyc.kernel
def nan(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    below = A[i] if broken else A[i] + fx.Float32(1.0)
    B[i] = fx.Float32(1.0) / below


@flyc.kernel
def overflow(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    row = 20_000_000 if broken else 1
    at = i * row  # wraps from thread 108 on
    B[i] = fx.Float32(at)


@flyc.kernel
def lossy(A: fx.Tensor, B: fx.Tensor, broken: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    scale = 1000.0 if broken else 100.0  # 65504 is the largest f16
    half = (A[i] * fx.Float32(scale)).to(fx.Float16)
    B[i] = half.to(fx.Float32)


@flyc.kernel
def doubled_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    x = A[i]
    B[i] = x + x


@flyc.jit
def doubled(A: fx.Tensor, B: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    doubled_kernel(A, B).launch(grid=(1, 1, 1), block=(128, 1, 1), stream=stream)


def streams(broken: bool) -> None:
    a, b, c = (np.arange(128, dtype=np.float32) for _ in range(3))
    first, second = fx.Stream(0x10), fx.Stream(0x20)
    doubled(a, b, first)
    doubled(b, c, second if broken else first)


@flyc.kernel
def pointed_kernel(P: fx.Pointer, B: fx.Tensor):
    i = fx.thread_idx.x
    B[i] = P[i]


@flyc.jit
def pointed(P: fx.Pointer, B: fx.Tensor):
    pointed_kernel(P, B).launch(grid=(1, 1, 1), block=(128, 1, 1))


def freed(broken: bool) -> None:
    a, b = np.zeros(1 << 24, np.float32), np.zeros(128, np.float32)  # so large that its memory goes back to the system
    doubled(a, b)
    address = a.ctypes.data
    if broken:
        del a
    pointed(flyc.from_c_void_p(fx.Float32, address), b)


KERNELS = {
    "bounds": Shown(bounds),
    "uninit": Shown(uninit),
    "fragment": Shown(fragment),
    "race": Shown(race),
    "workgroups": Shown(workgroups, grid=2, size=256),
    "waits": Shown(waits),
    "misaligned": Shown(misaligned, size=260),
    "streams": Shown(doubled_kernel, host=streams),
    "freed": Shown(pointed_kernel, host=freed),
    "barrier": Shown(barrier),
    "undefined": Shown(undefined),
    "holes": Shown(holes, "holes"),
    "needless": Shown(needless, "needless"),
    "stale": Shown(stale, "stale", size=256),
    "banks": Shown(banks, "banks", block=64, size=2048),
    "unread": Shown(unread, "unread", block=256, size=256),
    "nan": Shown(nan, "nan"),
    "overflow": Shown(overflow, "overflow"),
    "lossy": Shown(lossy, "lossy"),
}


@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, name: fx.Constexpr[str], broken: fx.Constexpr[bool], stream: fx.Stream = fx.Stream(None)):
    shown = KERNELS[name]
    shown.kernel(A, B, broken).launch(grid=(shown.grid, 1, 1), block=(shown.block, 1, 1), stream=stream)


def findings(name: str, broken: bool) -> list:
    """Return what the checks find in a kernel."""
    shown = KERNELS[name]
    a, b = np.arange(shown.size, dtype=np.float32), np.zeros(shown.size, np.float32)
    order.clear()
    with flydsl.sim.check("collect", shown.checks) as found:
        if shown.host is not None:
            shown.host(broken)
        else:
            launch(a, b, name, broken)
    order.clear()
    return [*found, *(row for row in found.banks if row.degree > 1)]


def source_of(fn: Callable) -> str:
    return inspect.getsource(getattr(fn, "func", None) or getattr(fn, "__wrapped__", fn)).rstrip()


def section(name: str) -> str:
    """Return the page's text of a kernel: its source and what is printed."""
    shown = KERNELS[name]
    source = "\n\n\n".join(source_of(f) for f in (shown.kernel, shown.host) if f is not None)
    said = "\n\n".join(str(f) for f in findings(name, True))
    return f"```python\n{source}\n```\n```text\n{said}\n```\n"


def update(page: str) -> str:
    """Return the page with its sections written anew."""
    for name in KERNELS:
        begin, end = f"<!-- kernel {name} -->\n", "<!-- end -->"
        head, _, rest = page.partition(begin)
        assert rest, f"the page has no place for {name}"
        page = head + begin + section(name) + end + rest.partition(end)[2]
    return page


if __name__ == "__main__":
    PAGE.write_text(update(PAGE.read_text()))

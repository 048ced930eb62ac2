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

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "sanitizers.md"


@dataclass(frozen=True)
class Shown:
    """A kernel of the page; `grid`, `block`, `size` of its launch."""

    kernel: Callable
    checks: str = "default"
    grid: int = 1
    block: int = 128
    size: int = 128


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


KERNELS = {
    "bounds": Shown(bounds),
    "uninit": Shown(uninit),
    "fragment": Shown(fragment),
    "race": Shown(race),
    "workgroups": Shown(workgroups, grid=2, size=256),
    "barrier": Shown(barrier),
    "undefined": Shown(undefined),
    "holes": Shown(holes, "holes"),
    "needless": Shown(needless, "needless"),
    "nan": Shown(nan, "nan"),
    "overflow": Shown(overflow, "overflow"),
}


@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, name: fx.Constexpr[str], broken: fx.Constexpr[bool], stream: fx.Stream = fx.Stream(None)):
    shown = KERNELS[name]
    shown.kernel(A, B, broken).launch(grid=(shown.grid, 1, 1), block=(shown.block, 1, 1), stream=stream)


def findings(name: str, broken: bool) -> list:
    """Return what the checks find in a kernel."""
    a, b = np.arange(KERNELS[name].size, dtype=np.float32), np.zeros(KERNELS[name].size, np.float32)
    with flydsl.sim.check("collect", KERNELS[name].checks) as found:
        launch(a, b, name, broken)
    return list(found)


def section(name: str) -> str:
    """Return the page's text of a kernel: its source and what is printed."""
    fn = KERNELS[name].kernel
    source = inspect.getsource(getattr(fn, "func", None) or getattr(fn, "__wrapped__", fn)).rstrip()
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

"""Kernels that change Python objects under run-time conditions: every lane ends with its own state, on a CDNA and an RDNA chip."""

import dataclasses

import numpy as np
import pytest
from lanes import launched

import flydsl.compiler as flyc
import flydsl.expr as fx

LANES = 32
LANE = np.arange(LANES)
LIST = [0]
TOTAL = 0


class Config:
    v = 0


@dataclasses.dataclass(slots=True)
class Slotted:
    v: object = 0
    parts: object = None


class Manager:
    def __init__(self):
        self.entered = fx.Int32(0)

    def __enter__(self):
        self.entered = self.entered + 1

    def __exit__(self, *exc):
        self.entered = self.entered + 10


def bump(x, seen=[0]):
    seen[0] = seen[0] + x
    return seen[0]


@flyc.kernel
def slots(out: fx.Tensor):
    t = fx.thread_idx.x
    c = Slotted(fx.Int32(0), [fx.Int32(1)])
    for i in range(t):
        c.v = c.v + 1
        c.parts[0] = c.parts[0] + i
        if i == 9:
            break
    if t > 20:
        c.v = -t
    while c.v < 4:
        c.v = c.v + 3
    out[t] = c.v * 100 + c.parts[0]


def slots_of(t: int) -> int:
    v = min(t, 10) if t <= 20 else -t
    while v < 4:
        v += 3
    return v * 100 + 1 + sum(range(min(t, 10)))


@flyc.kernel
def aliases(out: fx.Tensor):
    t = fx.thread_idx.x
    a = [fx.Int32(0)]
    pair, grid = [a, a], [[fx.Int32(0)] * 2] * 2
    for i in range(t):
        pair[0][0] = pair[1][0] + 1
        grid[0][0] = grid[1][0] + i
        if i > 12:
            continue
        grid[1][1] = grid[0][1] + 1
    out[t] = a[0] + 100 * grid[1][0] + 10000 * grid[0][1]


def aliases_of(t: int) -> int:
    return t + 100 * sum(range(t)) + 10000 * min(t, 13)


@flyc.kernel
def module_state(out: fx.Tensor):
    global TOTAL
    t = fx.thread_idx.x
    if t > 3:
        LIST[0] = t
        Config.v = t
    else:
        TOTAL = t
    for i in range(t):
        TOTAL = TOTAL + 1
        bump(i)
    out[t] = LIST[0] + 100 * Config.v + 10000 * TOTAL + bump(0)


def module_state_of(t: int) -> int:
    over = t if t > 3 else 0
    return over * 101 + 10000 * (t + (0 if t > 3 else t)) + sum(range(t))


@flyc.kernel
def contexts(out: fx.Tensor):
    t = fx.thread_idx.x
    m = Manager()
    put = m.__enter__
    for i in range(t):
        with m:
            if i > 4:
                put()
    if t > 7:
        put()
    out[t] = m.entered


def contexts_of(t: int) -> int:
    return 11 * t + max(t - 5, 0) + (t > 7)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("kernel, expected", [(slots, slots_of), (aliases, aliases_of), (module_state, module_state_of), (contexts, contexts_of)])
def test_state(arch, kernel, expected):
    assert launched(kernel, LANES, arch) == [expected(int(t)) for t in LANE]
    assert (LIST, TOTAL, Config.v, bump.__defaults__) == ([0], 0, 0, ([0],))

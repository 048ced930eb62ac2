"""Order of the waves of a slab: all in lockstep, or wave by wave from barrier to barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flydsl.targets.sim.machine import LaunchState, Machine, Slab
from flydsl.targets.sim.translate.text import KernelText


def run_slab(
    launch: LaunchState, slab: Slab, function: Callable, text: KernelText, args: list[Any], threads: int
) -> None:
    """Run the workgroups of a slab to their end."""
    schedule = launch.options.schedule
    if launch.watch is not None:
        launch.watch.start_slab(slab)
    waves = threads // launch.wave_size
    apart = waves > 1 and text.has_barrier and schedule not in ("auto", "lockstep")
    if waves > 1 and schedule == "auto" and text.needs_waves:
        apart, schedule = True, "ahead"
    if not apart:
        machine = Machine(launch, slab, 0, threads)
        for _ in function(machine, machine.mask0, *args):
            pass
        if launch.watch is not None:
            launch.watch.end_interval(machine, None)
        return
    machines = [Machine(launch, slab, w * launch.wave_size, launch.wave_size) for w in range(waves)]
    runs = [function(m, m.mask0, *args) for m in machines]
    run_phases(launch, slab, machines, runs, wave_orders(schedule, waves, slab.first))


def wave_orders(schedule: str, waves: int, seed_offset: int) -> Iterator[list[int]]:
    """Yield the order of the waves for each phase between barriers."""
    name, _, seed = schedule.partition(":")
    random = np.random.default_rng(int(seed or 0) + seed_offset)
    while True:
        if name == "reverse":
            yield list(range(waves - 1, -1, -1))
        elif name == "random":
            yield random.permutation(waves).tolist()
        else:
            yield list(range(waves))


def run_phases(
    launch: LaunchState, slab: Slab, machines: list[Machine], runs: list, orders: Iterator[list[int]]
) -> None:
    """Advance every wave to its next barrier, again and again, until all have ended."""
    live = set(range(len(runs)))
    while live:
        arrived: dict[int, int] = {}
        for w in next(orders):
            if w in live:
                site = next(runs[w], None)
                if site is None:
                    live.discard(w)
                else:
                    arrived[w] = site
        if launch.watch is not None:
            launch.watch.phase(machines, tuple(sorted(set(arrived.values()))))
        if arrived and len(arrived) < len(runs) and launch.options.has("barrier"):
            launch.reporter.ended_early(machines, arrived)

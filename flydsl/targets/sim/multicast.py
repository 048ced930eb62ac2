"""Checks of multicast loads: one fetch serves every workgroup of a cluster that asks for it (gfx1250).

Each workgroup of the mask issues the load itself and receives the data at its own LDS address, so a correct multicast
delivers what as many plain loads would, and is executed as such. The chip pairs the requests up by mask: a mask that
names a workgroup which never asks is waited for without end, and requests that disagree get each other's data.
Sources: CDNA5 ISA 10.7 and 10.11.3 (M0 and the descriptor's workgroup_mask; bit 16 and early_timeout end the waiting),
Composable Kernel's tests of cluster loads (identical masks, one LDS address per requester, mask 0 is a plain load).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.mask import expand

if TYPE_CHECKING:
    from flydsl.targets.sim.machine import Machine

MASK_BITS = 0xFFFF
EARLY_TIMEOUT = 1 << 16  # in M0


def check_load(machine: Machine, site: int, mask: Any, addr: Any, m: Any) -> None:
    """Check the masks of a multicast load whose lanes read at `addr`; the mask is that of each wave's first lane."""
    shape = (machine.G, machine.B)
    lanes = expand(m, shape)
    masks, addresses = np.broadcast_to(mask, shape), np.broadcast_to(addr, shape)
    for w in range(machine.B // machine.wave_size):
        part = slice(w * machine.wave_size, (w + 1) * machine.wave_size)
        requests = {}
        for g in np.flatnonzero(lanes[:, part].any(axis=1)):
            first = part.start + int(lanes[g, part].argmax())
            word = int(masks[g, first])
            requests[int(g)] = (word & MASK_BITS, bool(word & EARLY_TIMEOUT), (addresses[g, part], lanes[g, part]))
        check_requests(machine, site, w, requests)


def check_requests(machine: Machine, site: int, wave: int, requests: dict[int, tuple[int, bool, tuple]]) -> None:
    """Check what the same wave of several workgroups asks for: workgroup of the slab -> (mask, early timeout, arrays that name
    the source).
    """
    if not machine.launch.options.has("barrier"):
        return
    members = int(np.prod(machine.launch.config.cluster))
    for g, (mask, ends_early, source) in requests.items():
        if not mask:
            continue
        cluster, own = place(machine, g)
        beyond = mask >> members << members
        if beyond and not ends_early:
            problem = f"names workgroup {beyond.bit_length() - 1} of a cluster that has {members}"
            report(machine, site, g, wave, mask, problem, "the load waits for a request that never comes")
        if not mask >> own & 1:
            report(machine, site, g, wave, mask, f"leaves out the workgroup itself, number {own} of its cluster",
                   "a workgroup receives only what its own mask asks for")  # fmt: skip
        for other, (their_mask, _, their_source) in requests.items():
            their_cluster, number = place(machine, other)
            if other <= g or their_cluster != cluster or not mask >> number & 1:
                continue
            if their_mask != mask:
                problem = f"names workgroup {number}, whose own mask is {their_mask:#x}"
                report(machine, site, g, wave, mask, problem, "requests are paired up by equal masks")
            elif not all(np.array_equal(a, b) for a, b in zip(source, their_source, strict=True)):
                problem = f"names workgroup {number}, which reads elsewhere"
                report(machine, site, g, wave, mask, problem, "one fetch serves all workgroups of a mask")


def place(machine: Machine, g: int) -> tuple[tuple[int, int, int], int]:
    """Return (cluster, number in the cluster, x fastest) of workgroup `g` of the slab."""
    block, sizes = machine.block_of(g), machine.launch.config.cluster
    x, y, z = (b % n for b, n in zip(block, sizes))
    return tuple(b // n for b, n in zip(block, sizes)), x + sizes[0] * (y + sizes[1] * z)


def report(machine: Machine, site: int, g: int, wave: int, mask: int, problem: str, why: str) -> None:
    """Report a mask that the chip cannot serve."""
    lanes = np.zeros((machine.G, machine.B), bool)
    lanes[g, wave * machine.wave_size] = True
    finding = Finding(
        "multicast",
        f"the multicast mask {mask:#x} {problem}",
        **machine.reporter.at(machine, site, lanes),
        why=why,
        fix="let all workgroups of a mask execute the load with this mask and the same source, or pass the mask 0",
    )
    machine.reporter.add(finding)

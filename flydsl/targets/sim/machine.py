"""One execution context: all lanes of a slab of workgroups in lockstep, or one wave of each of them.

Generated code calls its methods; the memories behind it are shared by the contexts of a slab.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flydsl.targets.sim import multicast
from flydsl.targets.sim.atomic import AtomicAccess
from flydsl.targets.sim.buffer import BufferAccess
from flydsl.targets.sim.convert import overflowing
from flydsl.targets.sim.flat import FlatAccess
from flydsl.targets.sim.lds import RowAccess, RowMemory
from flydsl.targets.sim.mask import Mask
from flydsl.targets.sim.memory import GlobalAccess, GlobalMemory, Region
from flydsl.targets.sim.options import LaunchConfig, SimOptions
from flydsl.targets.sim.pending import PendingCopies
from flydsl.targets.sim.report import Reporter
from flydsl.targets.sim.sanitize import values as value_checks
from flydsl.targets.sim.tdm import TensorDma
from flydsl.targets.sim.trace import BREAKPOINT, Tracer, stop_at

WORKGROUP_BARRIER = -1  # `s_barrier_signal -1`; other numbers are clusters and named barriers


@dataclass
class Slab:
    """Workgroups `first .. first + count - 1` (x fastest) of a launch, and their LDS.

    `armed`: (machine, operation) of the copies in flight that arrive at LDS barriers.
    """

    first: int
    count: int
    lds: RowMemory
    armed: list[tuple[Machine, Any]] = field(default_factory=list)


@dataclass
class LaunchState:
    """What all slabs of a launch share."""

    config: LaunchConfig
    options: SimOptions
    wave_size: int
    memory: GlobalMemory
    bases: list[Region | None]
    reporter: Reporter
    watch: Any
    arch: str
    private_bytes: int
    private_arrays: dict[str, tuple[int, int]]
    uses_dma: bool = False
    lds_arrays: dict[str, tuple[int, int]] = field(default_factory=dict)
    tracer: Tracer | None = None


def flat_or_scalar(values: np.ndarray, axis: int) -> Any:
    """Return an int64 array along lane axis `axis`, or a scalar when all values agree."""
    if (values == values[0]).all():
        return np.int64(values[0])
    return values.astype(np.int64)[None, :] if axis == 1 else values.astype(np.int64)[:, None]


class Machine:
    """Lanes (G workgroups, B threads from `first_thread`) of a slab."""

    def __init__(self, launch: LaunchState, slab: Slab, first_thread: int, threads: int):
        self.launch = launch
        self.slab = slab
        self.arch = launch.arch
        self.G, self.B = slab.count, threads
        self.first_thread = first_thread
        self.wave_size = launch.wave_size
        self.watch = launch.watch
        self.reporter = launch.reporter
        self._xor: dict[int, np.ndarray] = {}
        self._trips: dict[int, int] = {}
        self._set_threads()
        self._set_blocks()
        self._bind_memories()

    # --- registers ---------------------------------------------------------------------------------------------------

    def _set_threads(self) -> None:
        bx, by, bz = self.launch.config.block
        total = bx * by * bz
        linear = np.arange(self.first_thread, self.first_thread + self.B)
        self.mask0 = None if linear[-1] < total else (linear < total)[None, :]
        capped = np.minimum(linear, total - 1)
        self.tid_x = flat_or_scalar(capped % bx, 1)
        self.tid_y = flat_or_scalar(capped // bx % by, 1)
        self.tid_z = flat_or_scalar(capped // (bx * by), 1)
        lane = linear % self.wave_size
        self.lane_in_wave = lane[None, :]
        self.lane_id = lane[None, :]
        self.wave_base = (np.arange(self.B) - lane)[None, :]
        self.wave_id = flat_or_scalar(linear // self.wave_size, 1)
        self.wave_size_value = np.int64(self.wave_size)
        self.num_waves = np.int64(-(-total // self.wave_size))
        self.bdim_x, self.bdim_y, self.bdim_z = (np.int64(v) for v in self.launch.config.block)

    def _set_blocks(self) -> None:
        gx, gy, gz = grid = self.launch.config.grid
        linear = np.arange(self.slab.first, self.slab.first + self.G)
        coords = [linear % gx, linear // gx % gy, linear // (gx * gy)]
        cluster = self.launch.config.cluster
        for axis, values, size, cl in zip("xyz", coords, grid, cluster):
            setattr(self, f"bid_{axis}", flat_or_scalar(values, 0))
            setattr(self, f"gdim_{axis}", np.int64(size))
            setattr(self, f"cid_{axis}", flat_or_scalar(values // cl, 0))
            setattr(self, f"cbid_{axis}", flat_or_scalar(values % cl, 0))
            setattr(self, f"cdim_{axis}", np.int64(cl))
            setattr(self, f"ncluster_{axis}", np.int64(-(-size // cl)))
            tid, bdim = getattr(self, f"tid_{axis}"), getattr(self, f"bdim_{axis}")
            setattr(self, f"gid_{axis}", getattr(self, f"bid_{axis}") * bdim + tid)

    def _bind_memories(self) -> None:
        launch, slab = self.launch, self.slab
        row = np.arange(self.G, dtype=np.int64)[:, None] * slab.lds.pitch if self.G > 1 else np.int64(0)
        self.pending = PendingCopies(self, launch.uses_dma)
        self.global_access = GlobalAccess(self, launch.memory, launch.bases)
        self.lds_access = RowAccess(self, slab.lds, row, "LDS")
        self.load_g, self.store_g = self.global_access.load, self.global_access.store
        self.load_l, self.store_l = self.lds_access.load, self.lds_access.store
        self.private_access = None
        if launch.private_bytes:
            private = RowMemory(self.G * self.B, launch.private_bytes, launch.private_arrays)
            rows = np.arange(self.G * self.B, dtype=np.int64).reshape(self.G, self.B) * private.pitch
            self.private_access = RowAccess(self, private, rows, "private memory")
            self.load_p, self.store_p = self.private_access.load, self.private_access.store
        self.tensor_dma = TensorDma(self)
        self.flat_access = FlatAccess(self)
        self.load_f, self.store_f = self.flat_access.load, self.flat_access.store
        buffers = BufferAccess(self, self.global_access)
        self.buffer_load, self.buffer_store, self.buffer_atomic = buffers.load, buffers.store, buffers.atomic
        self.buffer_access, self.buffer_cmpswap = buffers, buffers.compare_exchange
        atomics = AtomicAccess(self)
        self.atomic, self.cmpxchg = atomics.read_modify_write, atomics.compare_exchange

    def xor_index(self, k: int) -> np.ndarray:
        """Return the thread numbers `b ^ k`."""
        found = self._xor.get(k)
        if found is None:
            found = self._xor[k] = np.arange(self.B) ^ k
        return found

    def check_multicast(self, site: int, mask: Any, addr: Any, m: Mask) -> None:
        """Check the masks of a load that several workgroups of a cluster share."""
        multicast.check_load(self, site, mask, addr, m)

    # --- order -------------------------------------------------------------------------------------------------------

    def barrier(self, site: int, m: Mask, is_fenced: bool) -> int:
        """Note that the lanes of `m` arrive at a barrier; returns the site, which the scheduler receives."""
        if m is not None and m is not self.mask0:
            self.reporter.barrier_mask(self, site, m)
        if self.watch is not None:
            self.watch.barrier(self, site, m, is_fenced)
        return site

    def barrier_signal(self, site: int, barrier: int, m: Mask) -> None:
        """Note the arrival half of a split barrier; the wait half is where waves meet."""
        if self.watch is not None and barrier == WORKGROUP_BARRIER:
            self.watch.signal(self)

    def fence(self, site: int, scope: str) -> None:
        """Memory is always up to date here; fences only matter to the checks."""
        if self.watch is not None:
            self.watch.fence(self, site, scope)

    def count_trip(self, site: int) -> None:
        """Count a trip of a divergent loop and stop an endless one."""
        trips = self._trips[site] = self._trips.get(site, 0) + 1
        if trips > self.launch.options.trip_limit:
            self.reporter.endless(self, site, trips)

    # --- reports -----------------------------------------------------------------------------------------------------

    def position(self, lanes: Any) -> tuple[int, int]:
        """Return (workgroup in the slab, thread in the machine) of the first true lane of a mask."""
        lanes = np.asarray(lanes)
        if lanes.ndim == 0:
            return 0, 0
        first = int(lanes.reshape(-1).argmax())
        g, b = divmod(first, lanes.shape[1])
        if lanes.shape[1] == 1 and self.mask0 is not None:
            b = 0
        return g, b

    def block_of(self, g: int) -> tuple[int, int, int]:
        """Return the block id of workgroup `g` of the slab."""
        gx, gy, _ = self.launch.config.grid
        linear = self.slab.first + g
        return linear % gx, linear // gx % gy, linear // (gx * gy)

    def thread_of(self, b: int) -> tuple[int, int, int]:
        """Return the thread id of thread `b` of this machine."""
        bx, by, _ = self.launch.config.block
        linear = self.first_thread + b
        return linear % bx, linear // bx % by, linear // (bx * by)

    def launch_block(self, linear: int) -> tuple[int, int, int]:
        """Return the block id of a workgroup number of the launch."""
        gx, gy, _ = self.launch.config.grid
        return linear % gx, linear // gx % gy, linear // (gx * gy)

    def launch_thread(self, thread: int) -> tuple[int, int, int]:
        """Return the thread id of a thread number of the workgroup."""
        bx, by, _ = self.launch.config.block
        return thread % bx, thread // bx % by, thread // (bx * by)

    def undefined(self, site: int, what: str, bad: Any, m: Mask) -> None:
        self.reporter.undefined(self, site, what, bad, m)

    def check_finite(self, site: int, value: Any, operands: tuple, m: Mask, is_vector: bool) -> None:
        """Report lanes whose result is NaN or infinite although the operands were finite."""
        bad = value_checks.lanes_of(value_checks.became_infinite(value, operands), m, is_vector)
        if bad is not None:
            self.reporter.not_finite(self, site, bad)

    def check_overflow(self, site: int, kind: str, signs: str, a: Any, b: Any, m: Mask, is_vector: bool) -> None:
        """Report lanes whose 32-bit sum, difference or product wraps."""
        bad = value_checks.lanes_of(value_checks.wraps(kind, signs, a, b), m, is_vector)
        if bad is not None:
            self.reporter.overflow(self, site, bad, is_unsigned="u" in signs)

    def check_lossy(self, site: int, kind: str, value: Any, result: Any, m: Mask, is_vector: bool) -> None:
        """Report lanes whose conversion loses more than a rounding."""
        lost = value_checks.loses(kind, value, result)
        bad = value_checks.lanes_of(lost, m, is_vector)
        if bad is not None:
            pair = value_checks.first_pair(lost, bad, value, result, kind)
            self.reporter.lossy(self, site, kind.partition(" ")[0], pair, bad)

    def check_lossy_codes(self, site: int, parts: tuple, kind: str, scale: Any, m: Mask) -> None:
        """Report lanes whose packed conversion to a small float overflows."""
        lost, value, result = overflowing(self, parts, kind, scale)
        bad = value_checks.lanes_of(lost, m, True)
        if bad is not None:
            self.reporter.lossy(self, site, "float", value_checks.first_pair(lost, bad, value, result, "float"), bad)

    def unwritten_register(self, site: int, m: Mask) -> None:
        """A fragment that nothing wrote is used."""
        if self.launch.options.has("uninit"):
            self.reporter.unwritten_register(self, site, np.ones((self.G, self.B), bool) if m is None else m)

    def trap(self, site: int, m: Mask) -> None:
        """The kernel stops itself."""
        self.reporter.trap(self, site, np.ones((self.G, self.B), bool) if m is None else m)

    def fault_step(self, site: int, step: Any) -> None:
        self.reporter.loop_step(self, site, int(step))

    def out_of_bounds(self, site: int, near: Region | None, addr: Any, nbytes: int, bad: Any, write: bool) -> None:
        self.reporter.out_of_bounds(self, site, near, addr, nbytes, bad, write)

    def misaligned(self, site: int, region: Region, off: Any, align: int, m: Mask, nbytes: int) -> None:
        self.reporter.misaligned(self, site, region, off, align, m, nbytes)

    def read_only(self, site: int, region: Region, off: Any, m: Mask) -> None:
        self.reporter.read_only(self, site, region, off, m)

    def row_bounds(
        self,
        site: int,
        what: str,
        base: str | None,
        span: tuple[int, int],
        addr: Any,
        nbytes: int,
        bad: Any,
        write: bool,
    ) -> None:
        self.reporter.row_bounds(self, site, what, base, span, addr, nbytes, bad, write)

    def row_misaligned(self, site: int, what: str, addr: Any, align: int, m: Mask) -> None:
        self.reporter.row_misaligned(self, site, what, addr, align, m)

    def trace(self, frame: tuple[str, int, int], value: Any, m: Mask) -> None:
        """Show the value of a source line."""
        self.launch.tracer.show(self, frame, value, m)

    def printf(self, site: int, text: str, args: tuple, m: Mask) -> None:
        if text.startswith(BREAKPOINT):
            stop_at(self, site, text.split()[1:], args, m)
            return
        self.reporter.printf(self, text, args, m)

"""A lowered module that can be launched: translated kernel by kernel on first use, or restored from text."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from flydsl import arch as chips
from flydsl.diag.errors.memory import SharedCapacity
from flydsl.diag.errors.simulator import SimBadLaunch, SimBadModule
from flydsl.diag.source import mark_internal
from flydsl.targets.sim.lds import RowMemory
from flydsl.targets.sim.machine import LaunchState, Machine, Slab
from flydsl.targets.sim.memory import GlobalMemory
from flydsl.targets.sim.namespace import NAMESPACE
from flydsl.targets.sim.numeric import TYPES
from flydsl.targets.sim.options import Allocation, LaunchConfig, SimOptions
from flydsl.targets.sim.pending import PendingCopies
from flydsl.targets.sim.report import Reporter, RunReport
from flydsl.targets.sim.sanitize import make_watch
from flydsl.targets.sim.sanitize.footprint import whole_tensors
from flydsl.targets.sim.schedule import run_slab
from flydsl.targets.sim.streams import Footprint, order
from flydsl.targets.sim.trace import Tracer
from flydsl.targets.sim.translate.text import KernelText
from flydsl.targets.stored_text import TextRefused, run_text

PAYLOAD_VERSION = 2


@dataclass
class _Compiled:
    text: KernelText
    function: Any


# what generated text reads of the machine and of arrays; text from outside that reads anything else is not run
ATTRIBUTES = frozenset(
    [n for cls in (Machine, PendingCopies) for n in vars(cls) if not n.startswith("_")]
    + [f"{name}_{axis}" for name in "tid bid bdim gdim gid cid cbid cdim ncluster".split() for axis in "xyz"]
    + [f"{kind}_{space}" for kind in ("load", "store") for space in "glpf"]
    + "lane_id lane_in_wave wave_base wave_id wave_size_value num_waves mask0 buffer_load buffer_store".split()
    + "buffer_atomic buffer_access buffer_cmpswap atomic cmpxchg tensor_dma flat_access pending G B".split()
    + "astype view shape copy reshape".split()
)


class Program:
    """The kernels of one lowered module for one architecture.

    `source`: an MLIR module or its text. Kernels are translated on first launch and kept.
    """

    def __init__(self, source: Any, arch: str | None = None):
        self._text: str | None = source if isinstance(source, str) else None
        self._module = None if isinstance(source, str) else source
        self._arch = arch
        self._lowered: Any = None
        self._compiled: dict[tuple[str, frozenset[str]], _Compiled] = {}
        self._names: list[str] | None = None

    # --- module ------------------------------------------------------------------------------------------------------

    @property
    def module(self) -> Any:
        """The MLIR module.

        Raises   SimBadModule: the text does not parse
        """
        if self._module is None:
            from flydsl.ir import ir, make_context

            try:
                self._module = ir.Module.parse(self._text, make_context())
            except ir.MLIRError as e:
                raise SimBadModule(problem=str(e).strip().splitlines()[-1]) from e
        return self._module

    @property
    def lowered(self) -> Any:
        """The parsed module."""
        if self._lowered is None:
            # the bindings load only for kernels that were not restored from text
            from flydsl.targets.sim.translate.module import LoweredModule

            self._lowered = LoweredModule(self.module, self.arch)
        return self._lowered

    @property
    def arch(self) -> str:
        """The simulated chip: as given, else as the module says."""
        if self._arch is None:
            attrs = self.module.operation.attributes
            self._arch = attrs["fly.arch"].value if "fly.arch" in attrs else "gfx942"
        return self._arch

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels."""
        if self._names is None:
            self._names = list(self.lowered.functions)
        return list(self._names)

    @property
    def text(self) -> str:
        """The lowered IR."""
        if self._text is None:
            self._text = self._module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
        return self._text

    def translated(self, kernel: str) -> KernelText:
        """Return the translated text of `kernel`."""
        return self._get(kernel).text

    def _get(self, kernel: str, value_checks: frozenset[str] = frozenset()) -> _Compiled:
        key = (kernel, value_checks)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = compile_text(self.lowered.translate(kernel, value_checks))
        return found

    # --- text form ---------------------------------------------------------------------------------------------------

    def to_payload(self) -> dict[str, Any]:
        """Return the program as a dict of strings, numbers and lists (JSON), with every kernel translated."""
        kernels = [asdict(self._get(name).text) for name in self.kernels]
        return {"version": PAYLOAD_VERSION, "arch": self.arch, "ir": self.text, "kernels": kernels}

    @classmethod
    def from_payload(cls, payload: dict[str, Any], checked: bool = False) -> Program:
        """Return the program of `to_payload`; a payload of another version is translated again from its IR.

        `checked`: the payload comes from outside; text that does not look generated is translated again, too.
        """
        program = cls(payload["ir"], payload["arch"])
        if payload.get("version") == PAYLOAD_VERSION:
            for kernel in payload["kernels"]:
                text = KernelText.from_json(kernel)
                compiled = compile_checked(text) if checked else compile_text(text)
                if compiled is not None:
                    program._compiled[text.name, frozenset()] = compiled
            program._names = [k["name"] for k in payload["kernels"]]
        return program

    # --- launch ------------------------------------------------------------------------------------------------------

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        allocations: Sequence[Allocation] = (),
        dynamic_lds_bytes: int = 0,
        cluster: Sequence[int] = (1, 1, 1),
        options: SimOptions | None = None,
        stream: int = 0,
    ) -> RunReport:
        """Run a kernel on host memory and return what was found.

        Units    `grid` in workgroups, `block` in threads, `cluster` in workgroups; `args`: ints are addresses for
        pointers; `stream`: a handle, 0 for the default stream
        Raises   SimFindings: a fault, with `on_finding="raise"`; SimBadLaunch, SharedCapacity: arguments or geometry
        that do not fit
        """
        config = LaunchConfig(tuple(grid), tuple(block), tuple(cluster), dynamic_lds_bytes, tuple(allocations), stream)
        options = options or SimOptions()
        return run_launch(self._get(kernel, options.values), config, args, options, self.arch)


def compile_text(text: KernelText) -> _Compiled:
    """Return the generator function of a translated kernel."""
    namespace = dict(NAMESPACE)
    exec(compile(text.source, f"<sim:{text.name}>", "exec"), namespace)
    return _compiled(text, namespace)


def compile_checked(text: KernelText) -> _Compiled | None:
    """Return the generator function of a kernel text from outside, or None where it holds what generated text never does."""
    try:
        return _compiled(text, run_text(text.source, f"<sim:{text.name}>", NAMESPACE, ATTRIBUTES))
    except (TextRefused, SyntaxError, KeyError):
        return None


def _compiled(text: KernelText, namespace: dict[str, Any]) -> _Compiled:
    """Return a kernel that has been run; its frames are left out of the user's tracebacks."""
    mark_internal(namespace["kernel"].__code__, True)
    return _Compiled(text, namespace["kernel"])


def run_launch(
    compiled: _Compiled, config: LaunchConfig, args: Sequence[Any], options: SimOptions, arch: str
) -> RunReport:
    """Run all workgroups, slab by slab."""
    started = time.perf_counter()
    text = compiled.text
    check_launch(text, config, args, arch)
    stream, clock = order.begin(config.stream)
    values = [typed_argument(a, p) for a, p in zip(args, text.params)]
    memory = GlobalMemory(config.allocations)
    reporter = Reporter(text.name, text.sites, options)
    wave_size = chips.get(arch).wave_size
    bases = memory.base_regions(
        [a if p[1][0] == "p" else None for a, p in zip(args, text.params)], [p[0] for p in text.params]
    )
    lds_bytes, arrays = lds_layout(text, config)
    launch = LaunchState(
        config, options, wave_size, memory, bases, reporter, None, arch, text.private_bytes, text.private_arrays,
        text.uses_dma, arrays,
    )  # fmt: skip
    launch.watch = make_watch(launch, text)
    launch.tracer = Tracer(options.trace) if options.trace is not None else None
    groups = config.grid[0] * config.grid[1] * config.grid[2]
    threads = -(-(config.block[0] * config.block[1] * config.block[2]) // wave_size) * wave_size
    per_slab = slab_groups(text, options, threads, lds_bytes, groups)
    report = RunReport(
        text.name, lanes=groups * threads, num_ops=text.num_ops, checks=options.checks, schedule=options.schedule,
        approximated=text.approximated,
    )  # fmt: skip
    pool: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for first in range(0, groups, per_slab):
            count = min(per_slab, groups - first)
            slab = Slab(first, count, RowMemory(count, lds_bytes, arrays, pool))
            run_slab(launch, slab, compiled.function, text, values, threads)
            report.slabs += 1
    if launch.watch is not None:
        launch.watch.finish(launch)
        report.banks = getattr(launch.watch, "banks", None)
    if options.has("streams"):
        for finding in order.finish(f"kernel `{text.name}`", stream, clock, touched_by(launch, text)):
            reporter.add(finding)
    report.findings = list(reporter.findings.values())
    report.seconds = time.perf_counter() - started
    return report


def touched_by(launch: LaunchState, text: KernelText) -> list[Footprint]:
    """Return what a launch read and wrote."""
    marks = launch.watch.footprints if launch.watch is not None else None
    return marks.collect(launch.reporter) if marks is not None else whole_tensors(text, launch.bases)


def slab_groups(text: KernelText, options: SimOptions, threads: int, lds_bytes: int, groups: int) -> int:
    """Return how many workgroups run at once: bounded by lanes, by bytes of the widest value, by LDS in total."""
    lanes = max(threads, min(options.lanes, options.slab_bytes // max(4, text.widest_bytes)))
    by_lds = (64 << 20) // max(1, lds_bytes)
    by_private = (256 << 20) // max(1, text.private_bytes * threads)
    return max(1, min(lanes // threads, by_lds, by_private, groups))


def lds_layout(text: KernelText, config: LaunchConfig) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return the LDS bytes of a workgroup and its arrays, with the dynamic ones sized."""
    total = text.static_lds_bytes
    if text.dynamic_offset is not None:
        total = text.dynamic_offset + config.dynamic_lds_bytes
    arrays = {n: (a, total if e == -1 else e) for n, (a, e) in text.lds.items()}
    return total, arrays


def check_launch(text: KernelText, config: LaunchConfig, args: Sequence[Any], arch: str) -> None:
    """Refuse launches that no hardware would take.

    Raises   SimBadLaunch: the first problem; SharedCapacity: static and dynamic LDS are more than the chip has
    """
    for check in (argument_problem, geometry_problem, block_problem):
        found = check(text, config, args, arch)
        if found is not None:
            problem, reason, advice = found
            raise SimBadLaunch(kernel=text.name, problem=problem, reason_text=reason, advice_text=advice)
    check_lds(text, config, arch)


Problem = tuple[str, str, str] | None  # (what, why, fix)


def argument_problem(text: KernelText, config: LaunchConfig, args: Sequence[Any], arch: str) -> Problem:
    """Return what is wrong with the number of arguments."""
    if len(args) == len(text.params):
        return None
    problem = f"it takes {len(text.params)} arguments and got {len(args)}"
    return problem, f"its parameters are: {', '.join(p[0] for p in text.params)}", "pass one value per parameter"


def geometry_problem(text: KernelText, config: LaunchConfig, args: Sequence[Any], arch: str) -> Problem:
    """Return what is wrong with the sizes of grid and block."""
    sizes = [*config.grid, *config.block]
    if len(sizes) == 6 and all(s >= 1 for s in sizes):
        return None
    problem = f"grid {config.grid} and block {config.block} must be three positive sizes each"
    return problem, "an empty dimension launches nothing", "skip the launch when there is no work"


def block_problem(text: KernelText, config: LaunchConfig, args: Sequence[Any], arch: str) -> Problem:
    """Return what is wrong with the number of threads."""
    threads, most = math.prod(config.block), chips.get(arch).max_workgroup
    if threads > most:
        reason = f"a workgroup of {arch} has at most {most} threads"
        return f"a block of {threads} threads", reason, "use a smaller block and more of them"
    if text.block is not None and tuple(text.block) != tuple(config.block):
        problem = f"block {config.block}, but it was compiled for {tuple(text.block)}"
        return problem, "the block size is part of the compiled kernel", "launch with that block, or compile again"
    return None


def check_lds(text: KernelText, config: LaunchConfig, arch: str) -> None:
    """Refuse more LDS than a workgroup has; the dynamic bytes count whether the kernel names them or not."""
    static, dynamic, limit = text.static_lds_bytes, config.dynamic_lds_bytes, chips.get(arch).lds.bytes
    used = max(lds_layout(text, config)[0], static + dynamic)
    if used > limit:
        parts = f"arrays of the kernel {used - dynamic}; dynamic (smem) {dynamic}"
        raise SharedCapacity(used=used, limit=limit, arch=arch, parts=parts)


def typed_argument(value: Any, param: tuple[str, str, int | None]) -> Any:
    """Return an argument as the NumPy value that generated code expects."""
    _, elem, n = param
    if elem[0] == "p":
        return np.int64(int(value))
    dtype = TYPES[elem]
    if n is not None:
        return np.asarray(value).astype(dtype)
    if elem in ("i8", "i16", "i32", "i64"):
        bits = int(elem[1:])
        return dtype((int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
    with np.errstate(over="ignore"):  # as C converts: beyond the largest number is infinity
        return dtype(value)

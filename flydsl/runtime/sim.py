"""The simulator as a runtime: launches run to their end on the host's memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flydsl.diag.errors.simulator import SimFindings
from flydsl.runtime.known_arrays import remember
from flydsl.targets.sim import Allocation, session
from flydsl.targets.sim.known_memory import known as known_memory
from flydsl.utils.logger import say_once

_by_address: dict[int, tuple[str, Any]] = {}
_providers: list[Callable[[], Iterable[Allocation]]] = []
_observers: list[Callable[[str, Sequence[Allocation], float], None]] = []


@contextmanager
def memory_provider(allocations: Callable[[], Iterable[Allocation]]) -> Iterator[None]:
    """Let kernels reach the memory that `allocations()` names at each launch, through raw addresses."""
    with _listed(_providers, allocations):
        yield


@contextmanager
def observer(after_launch: Callable[[str, Sequence[Allocation], float], None]) -> Iterator[None]:
    """Call `after_launch(kernel, allocations, seconds)` after each launch inside the block."""
    with _listed(_observers, after_launch):
        yield


@contextmanager
def _listed(items: list, item: Any) -> Iterator[None]:
    items.append(item)
    try:
        yield
    finally:
        items.remove(item)


class _Redirect(threading.local):
    to: Callable[[str, int, Callable[[], None]], bool] | None = None


_redirect = _Redirect()


def redirect(take: Callable[[str, int, Callable[[], None]], bool] | None) -> None:
    """Ask `take(kernel, stream, again)` before each launch of this thread: it returns whether it has taken the launch,
    which `again()` makes. None: launches run."""
    _redirect.to = take


@contextmanager
def addressable(**arrays: Any) -> Iterator[None]:
    """Let kernels reach these arrays through raw addresses (`fx.Pointer` and `Int64` arguments) inside the block.

    A tensor argument says itself what memory it has; an address does not, and access to unknown memory is a fault.
    """
    from flydsl.runtime.host_arrays import host_array

    saved = dict(_by_address)
    for name, array in arrays.items():
        host = host_array(array)
        _by_address[host.address] = (name, host)
    try:
        yield
    finally:
        _by_address.clear()
        _by_address.update(saved)


class SimRuntime:
    """Runs lowered IR in the SIMT simulator."""

    name = "sim"

    def load(self, artifact: Any) -> SimLoaded:
        """Return the artifact's program."""
        say_once(f"no AMD GPU in use: kernels run in the simulator as {artifact.arch}")
        return SimLoaded(artifact)

    def chip_of(self, device: int | None) -> str:
        """Return no chip: what is simulated is what the environment or a GPU of this machine says."""
        return ""

    def device_reader(self) -> None:
        """Return None: all simulated devices are of one chip."""

    def reads_host_memory(self) -> bool:
        """Return True."""
        return True


class SimLoaded:
    """The simulator's program of one artifact."""

    needs_buffers = True

    def __init__(self, artifact: Any):
        self.artifact = artifact
        self.program = artifact.sim_program()

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return the launch function of one host call; `buffers` are the arrays that its kernels may access."""
        given = {array.address for _, array in buffers}
        known = [pair for address, pair in _by_address.items() if address not in given]
        allocations = [allocation(name, array) for name, array in (*buffers, *known)]
        for name, array in (*buffers, *known):
            remember(name, array)
        if _providers:
            whole = {(a.address, a.nbytes) for a in allocations}
            provided = [a for p in _providers for a in p()]
            known_memory.see_all((a.name, a.address, a.address + a.nbytes) for a in provided)
            allocations += [a for a in provided if (a.address, a.nbytes) not in whole]

        def launch(
            kernel: str, grid: tuple, block: tuple, cluster: tuple, smem: int, stream: int, arguments: tuple
        ) -> None:
            if 0 in grid:
                return
            if _redirect.to is not None:
                again = lambda: self.launcher(buffers)(kernel, grid, block, cluster, smem, stream, arguments)
                if _redirect.to(kernel, stream, again):
                    return
            started = time.perf_counter()
            options = session.options()
            geometry = {"grid": grid, "block": block, "dynamic_lds_bytes": smem, "cluster": cluster or (1, 1, 1)}
            args = list(arguments)
            dump = session.dump_of(self.program, kernel, geometry, args, allocations, options)
            try:
                report = self.program.launch(kernel, args=args, allocations=allocations, options=options, stream=stream, **geometry)
            except SimFindings as e:
                session.deliver_failure(e.findings, dump)
                raise
            session.deliver(report, options, dump)
            for observe in _observers:
                observe(kernel, allocations, time.perf_counter() - started)

        return launch


def allocation(name: str, array: Any) -> Allocation:
    """Return the memory of a host array as the simulator checks it."""
    low, high = array.extent_bytes
    return Allocation(
        name=name,
        address=array.address + low,
        nbytes=high - low,
        shape=tuple(array.shape),
        strides=tuple(array.strides),
        itemsize=array.itemsize,
        dtype=array.elem,
        writable=array.is_writable,
    )

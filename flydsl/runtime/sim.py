"""The simulator as a runtime: launches run to their end on the host's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flydsl.runtime.kinds import say_once
from flydsl.targets.sim import Allocation, Program, SimOptions
from flydsl.utils import env


_by_address: dict[int, tuple[str, Any]] = {}


@contextmanager
def addressable(**arrays: Any) -> Iterator[None]:
    """Let kernels reach these arrays through raw addresses (`fx.Pointer` and `Int64` arguments) inside the block.

    A tensor argument says itself what memory it has; an address does not, and access to unknown memory is a fault.
    """
    from flydsl.compiler.host_arrays import host_array

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


class SimLoaded:
    """The simulator's program of one artifact."""

    needs_buffers = True

    def __init__(self, artifact: Any):
        self.artifact = artifact
        self.program = Program(artifact.lowered, artifact.arch)

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return the launch function of one host call; `buffers` are the arrays that its kernels may access."""
        given = {array.address for _, array in buffers}
        known = [pair for address, pair in _by_address.items() if address not in given]
        allocations = [allocation(name, array) for name, array in (*buffers, *known)]
        options = sim_options()

        def launch(
            kernel: str, grid: tuple, block: tuple, cluster: tuple, smem: int, stream: int, arguments: tuple
        ) -> None:
            if 0 in grid:
                return
            self.program.launch(
                kernel,
                grid=grid,
                block=block,
                args=list(arguments),
                allocations=allocations,
                dynamic_lds_bytes=smem,
                cluster=cluster or (1, 1, 1),
                options=options,
            )

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
    )


def sim_options() -> SimOptions:
    """Return the options that the environment asks for."""
    fields: dict[str, Any] = {}
    checks = env.sim.check
    if checks:
        fields["checks"] = frozenset() if checks == "none" else frozenset(checks.replace(" ", "").split(","))
    if env.sim.schedule:
        fields["schedule"] = env.sim.schedule
    return SimOptions(**fields)

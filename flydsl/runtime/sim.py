"""The simulator as a runtime: launches run to their end on the host's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flydsl.runtime.kinds import say_once
from flydsl.targets.sim import Allocation, Program, SimOptions
from flydsl.utils import env


class SimRuntime:
    """Runs lowered IR in the SIMT simulator."""

    name = "sim"

    def load(self, artifact: Any) -> SimLoaded:
        """Return the artifact's program."""
        say_once(f"no AMD GPU in use: kernels run in the simulator as {artifact.arch}")
        return SimLoaded(artifact)


class SimLoaded:
    """The simulator's program of one artifact."""

    def __init__(self, artifact: Any):
        self.artifact = artifact
        self.program = Program(artifact.lowered, artifact.arch)

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return the launch function of one host call; `buffers` are the arrays that its kernels may access."""
        allocations = [allocation(name, array) for name, array in buffers]
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

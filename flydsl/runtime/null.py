"""A runtime whose launches do nothing: what a call costs up to there is ours (`benchmarks/launch_overhead.py`, soak
tests)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class NullRuntime:
    """Takes launches and drops them."""

    name = "null"

    def load(self, artifact: Any) -> NullLoaded:
        """Return a loaded artifact; no code is generated."""
        return NullLoaded()

    def chip_of(self, device: int | None) -> str:
        """Return no chip: there are no devices."""
        return ""

    def device_reader(self) -> None:
        """Return None: there are no devices."""

    def reads_host_memory(self) -> bool:
        """Return True: nothing is read."""
        return True


class NullLoaded:
    """An artifact that runs nowhere."""

    needs_buffers = False

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return the launch function."""
        return _launch

    def on_device(self, device: int | None) -> Callable:
        """Return the launch function."""
        return _launch


def _launch(kernel: str, grid: tuple, block: tuple, cluster: tuple, smem: int, stream: int, arguments: tuple) -> None:
    """Do nothing."""

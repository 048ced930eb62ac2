"""Where kernels run: registered runtime kinds, `rocm` (HIP), `sim` (the simulator), `null` (nowhere). The first launch
says which one it is. `auto` is the GPU where there is one, but the simulator for calls with nothing but host memory."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from flydsl.diag import SwitchValue
from flydsl.utils import env
from flydsl.utils.logger import say_once


class Loaded(Protocol):
    """An artifact made ready on a runtime. `needs_buffers`: whether launches must know the arrays that kernels may
    access."""

    needs_buffers: bool

    def on_device(self, device: int | None) -> Callable:
        """Return `launch(...)` as `launcher` does, for a device (None: the current one); only where `needs_buffers` is
        false."""
        ...

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return `launch(kernel, grid, block, cluster, smem, stream, arguments)` for one host call."""
        ...


class Runtime(Protocol):
    """A place where artifacts run."""

    name: str

    def load(self, artifact: Any) -> Loaded:
        """Make an artifact ready."""
        ...

    def chip_of(self, device: int | None) -> str:
        """Return the chip of a device (None: the current one); empty where the runtime has none of its own."""
        ...

    def device_reader(self) -> Callable[[], int] | None:
        """Return what reads the number of the current device, where it decides which code runs: the devices have
        several chips; else None."""
        ...

    def reads_host_memory(self) -> bool:
        """Return whether kernels read any memory of the host. Where they do not, `Loaded.launcher` looks at the arrays of
        each call, so calls with some on the host have no fast path."""
        ...


_kinds: dict[str, Callable[[], Runtime]] = {}


def register_runtime(name: str, make: Callable[[], Runtime]) -> None:
    """Register a runtime kind; `make` is called once, on first use."""
    _kinds[name] = functools.lru_cache(maxsize=1)(make)


def _sim() -> Runtime:
    from flydsl.runtime.sim import SimRuntime

    return SimRuntime()


def _rocm() -> Runtime:
    from flydsl.runtime.rocm import RocmRuntime

    return RocmRuntime()


def _null() -> Runtime:
    from flydsl.runtime.null import NullRuntime

    return NullRuntime()


register_runtime("sim", _sim)
register_runtime("null", _null)
register_runtime("rocm", _rocm)


def hip_device_count() -> int:
    """Return how many AMD GPUs HIP finds; 0 without HIP."""
    from flydsl.targets.rocm import hip

    return hip.device_count()


def runtime_kind() -> str:
    """Return the kind in force: `FLYDSL_RUNTIME_KIND`, or by what the machine has."""
    kind = env.runtime.kind.strip().lower()
    if kind == "auto":
        kind = _local.kind or ("rocm" if _has_amd_gpu() else "sim")
    if kind not in _kinds:
        raise SwitchValue(variable="FLYDSL_RUNTIME_KIND", value=kind, expected=f"one of auto, {', '.join(_kinds)}")
    return kind


class _Local(threading.local):
    kind = ""  # what `auto` means for the call in progress; empty: the machine decides


_local = _Local()


@contextmanager
def suited_to(devices: Iterable[int]) -> Iterator[None]:
    """Let `auto` mean the simulator in this thread for a call whose arrays are all on the host, where no GPU reads them.
    `devices`: where its arrays are, -1 for the host."""
    before = _local.kind
    if not before and env.runtime.kind.strip().lower() == "auto" and _has_amd_gpu() and _only_host(devices):
        if not current_runtime().reads_host_memory():
            say_once("the arrays of a call are in host memory: it runs in the simulator; the GPU runs calls with tensors on it")
            _local.kind = "sim"
    try:
        yield
    finally:
        _local.kind = before


def _only_host(devices: Iterable[int]) -> bool:
    found = list(devices)
    return bool(found) and max(found) < 0


def may_have_amd_gpu() -> bool:
    """Return whether the kernel driver of AMD GPUs is loaded; HIP is not asked."""
    return os.path.exists("/dev/kfd")


@functools.lru_cache(maxsize=1)
def _has_amd_gpu() -> bool:
    return may_have_amd_gpu() and hip_device_count() > 0


def current_runtime() -> Runtime:
    """Return the runtime in force."""
    return _kinds[runtime_kind()]()

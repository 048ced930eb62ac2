"""What stands in for `torch.cuda`: devices and their properties, streams, events, memory figures.

The simulator finishes a launch before the call returns, so every stream is always idle and an event is a moment of
the host's clock; what they order on a GPU is kept for the check `streams`. The
time between two events is what the simulator took, and says nothing about a GPU.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import torch

from flydsl import arch as chips
from flydsl.arch.boards import board
from flydsl.runtime.device import get_rocm_arch
from flydsl.runtime.torch_cuda.graphs import current_capture, forbid_while_capturing, graph_classes
from flydsl.runtime.torch_cuda.tensors import SimulatedCuda
from flydsl.targets.sim.streams import order
from flydsl.utils.record import record


@record
class DeviceProperties:
    """The fields of torch's device properties that programs read. Sizes in bytes."""

    name: str
    gcnArchName: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    warp_size: int
    L2_cache_size: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    regs_per_multiprocessor: int
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    clock_rate: int = 2_100_000
    uuid: str = "simulated"


def properties() -> DeviceProperties:
    """Return the properties of the chip in force."""
    chip = chips.get(get_rocm_arch())
    first = board(chip.name)
    digits = chip.name.removeprefix("gfx")
    return DeviceProperties(
        name=f"AMD {chip.products[0] if chip.products else chip.name} (simulated {chip.name})",
        gcnArchName=chip.name + (":sramecc+:xnack-" if chip.name.startswith("gfx9") else ""),
        major=int(digits[:-2]),
        minor=int(digits[-2], 16),
        multi_processor_count=first.compute_units,
        total_memory=first.memory_gib << 30,
        warp_size=chip.wave_size,
        L2_cache_size=first.l2_mib << 20,
        shared_memory_per_block=chip.lds.bytes,
        shared_memory_per_block_optin=chip.lds.bytes,
        shared_memory_per_multiprocessor=chip.lds.pool_bytes,
        regs_per_multiprocessor=chip.registers.vgprs * chip.wave_size * chip.simds,
        max_threads_per_multi_processor=chip.waves_per_simd * chip.simds * chip.wave_size,
    )


class Stream:
    """A stream: work on it is done when it is asked for."""

    _handles = itertools.count(0x1000, 0x10)

    def __init__(self, device: Any = None, priority: int = 0, **handle: int):
        index = device if isinstance(device, int) else torch.device(device or "cuda").index
        self.device = torch.device("cuda", index or 0)
        self.device_index = self.device.index
        self.priority = priority
        self.cuda_stream = handle.get("stream_ptr", next(self._handles))
        self.stream_id = self.cuda_stream
        if not handle:
            order.add_stream(self.cuda_stream)

    def synchronize(self) -> None:
        forbid_while_capturing("Stream.synchronize()")
        order.synchronize(self.cuda_stream)

    def wait_stream(self, stream: Stream) -> None:
        order.wait(self.cuda_stream, order.mark(stream.cuda_stream))
        self._join(stream.cuda_stream)

    def wait_event(self, event: Event) -> None:
        order.wait(self.cuda_stream, event._clock)
        self._join(event._stream)

    def _join(self, other: int | None) -> None:
        """Belong to the capture that a stream belongs to."""
        capture = current_capture()
        if capture is not None and other in capture.streams:
            capture.streams.add(self.cuda_stream)

    def query(self) -> bool:
        order.synchronize(self.cuda_stream)
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._before = _state.stream
        _state.stream = self
        return self

    def __exit__(self, *error: Any) -> None:
        _state.stream = self._before

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<simulated stream on {self.device}, handle {self.cuda_stream:#x}>"


class Event:
    """A moment of the host's clock."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **other: Any):
        self._at: float | None = None
        self._stream: int | None = None
        self._clock: dict[int, int] = {}

    def record(self, stream: Stream | None = None) -> None:
        self._at, self._stream = time.perf_counter(), (stream or _state.stream).cuda_stream
        self._clock = order.mark(self._stream)

    def synchronize(self) -> None:
        forbid_while_capturing("Event.synchronize()")
        order.reached(self._clock)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or _state.stream).wait_event(self)

    def query(self) -> bool:
        order.reached(self._clock)
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds of host time to another event."""
        if self._at is None or end._at is None:
            raise RuntimeError("both events must be recorded before the time between them is asked for")
        return 1e3 * (end._at - self._at)


class _StreamScope:
    """`torch.cuda.stream(s)`; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__()


class _State:
    default = Stream(stream_ptr=0)
    stream = default


_state = _State


def replacements(mode: SimulatedCuda) -> dict[str, Any]:
    """Return the names of `torch.cuda` that get a new value."""
    quiet = (
        "empty_cache init _lazy_init reset_peak_memory_stats reset_max_memory_allocated "
        "reset_accumulated_memory_stats ipc_collect set_per_process_memory_fraction"
    ).split()
    return {
        **dict.fromkeys(quiet, _nothing),
        **_devices(mode),
        **_memory(mode),
        **_streams(mode),
        **_random_numbers(),
        **graph_classes(mode, lambda: _state.stream, Stream, _StreamScope),
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *a, **k: True,
    }


def _known(mode: SimulatedCuda, device: Any) -> DeviceProperties:
    mode.index(device)
    return properties()


def _devices(mode: SimulatedCuda) -> dict[str, Any]:
    class Device:
        """`torch.cuda.device(n)`."""

        def __init__(self, device: Any):
            self.index = mode.index(device)

        def __enter__(self) -> None:
            self.before, mode.current = mode.current, mode.current if self.index is None else self.index

        def __exit__(self, *error: Any) -> None:
            mode.current = self.before

    def set_device(device: Any) -> None:
        mode.current = mode.index(device)

    def known(device: Any = None) -> DeviceProperties:
        return _known(mode, device)

    return {
        "device_count": lambda: mode.devices,
        "current_device": lambda: mode.current,
        "set_device": set_device,
        "device": Device,
        "get_device_name": lambda device=None: known(device).name,
        "get_device_properties": known,
        "get_device_capability": lambda device=None: (known(device).major, known(device).minor),
        "get_arch_list": lambda: [get_rocm_arch()],
        "can_device_access_peer": lambda device, peer: True,
    }


def _memory(mode: SimulatedCuda) -> dict[str, Any]:
    def used(device: Any = None) -> int:
        return mode.memory.used_bytes(mode.index(device) or 0)

    def free_and_total(device: Any = None) -> tuple[int, int]:
        total = _known(mode, device).total_memory
        return total - used(device), total

    return {
        **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), used),
        "mem_get_info": free_and_total,
        "memory_stats": lambda device=None: {f"allocated_bytes.all.{k}": used(device) for k in ("peak", "current")},
    }


def _streams(mode: SimulatedCuda) -> dict[str, Any]:
    def set_stream(stream: Stream) -> None:
        _state.stream = stream

    mode.stream = lambda: _state.stream.cuda_stream
    return {
        "synchronize": _synchronize,
        "Stream": Stream,
        "ExternalStream": lambda stream_ptr, device=None, **k: Stream(device, stream_ptr=stream_ptr),
        "Event": Event,
        "stream": _StreamScope,
        "current_stream": lambda device=None: _state.stream,
        "default_stream": lambda device=None: _state.default,
        "set_stream": set_stream,
    }


def _random_numbers() -> dict[str, Any]:
    generator = torch.default_generator  # of the host: there is one generator for both
    return {
        **dict.fromkeys(("manual_seed", "manual_seed_all"), lambda seed: generator.manual_seed(int(seed)) and None),
        **dict.fromkeys(("seed", "seed_all"), lambda: generator.seed() and None),
        "initial_seed": generator.initial_seed,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
    }


def _synchronize(device: Any = None) -> None:
    forbid_while_capturing("torch.cuda.synchronize()")
    order.synchronize()


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stand in for what has no effect without a GPU."""

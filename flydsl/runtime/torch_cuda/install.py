"""Entering and leaving the simulated `cuda` device: what is replaced in torch, and put back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from flydsl.runtime import sim
from flydsl.runtime.torch_cuda import cuda_module, distributed, foreign
from flydsl.runtime.torch_cuda.tensors import SimulatedCuda
from flydsl.runtime.torch_cuda.transfer import sent_with_their_device
from flydsl.targets.sim.streams import order
from flydsl.utils import env

_HIP_VERSION = "7.0.0"  # programs ask `torch.version.hip` whether the GPU is AMD's


@contextmanager
def simulated_cuda(devices: int = 1) -> Iterator[SimulatedCuda]:
    """Let torch's `cuda` device be `devices` simulated GPUs inside the block, in this thread and those it starts."""
    mode = SimulatedCuda(devices)
    order.clear()
    launches: list[tuple[str, float]] = []
    observe = lambda kernel, allocations, seconds: launches.append((kernel, seconds))
    changed = [*_changes(mode, launches), *foreign.refusals()]
    saved = [(owner, name, getattr(owner, name)) for owner, name, _ in changed if hasattr(owner, name)]
    absent = [(owner, name) for owner, name, _ in changed if not hasattr(owner, name)]
    finder = foreign.install_finder()
    for owner, name, value in changed:
        setattr(owner, name, value)
    try:
        with env.override(FLYDSL_RUNTIME_KIND="sim"), sim.memory_provider(mode.memory.allocations):
            with sim.observer(observe), mode, sent_with_their_device(mode):
                yield mode
    finally:
        order.clear()
        sys.meta_path.remove(finder)
        for owner, name, value in saved:
            setattr(owner, name, value)
        for owner, name in absent:
            delattr(owner, name)


def _changes(mode: SimulatedCuda, launches: list) -> list[tuple[Any, str, Any]]:
    """Return (object, attribute, new value)."""
    new = cuda_module.replacements(mode)
    changes = [(torch.cuda, name, value) for name, value in new.items()]
    changes += [(torch.cuda.graphs, name, new[name]) for name in ("CUDAGraph", "graph", "make_graphed_callables")]
    return [
        *changes,
        *distributed.replacements(),
        (torch.version, "hip", _HIP_VERSION),
        (torch, "Generator", _generator_class(mode)),
        (threading.Thread, "run", _run_in(mode)),
        (torch.autograd, "_engine_run_backward", _engine_in(mode)),
        (torch.profiler, "profile", _profile_class(launches)),
    ]


def _run_in(mode: SimulatedCuda) -> Callable:
    run = threading.Thread.run

    def run_in_mode(self: threading.Thread) -> None:
        with mode:
            run(self)

    return run_in_mode


def _engine_in(mode: SimulatedCuda) -> Callable:
    run_backward = torch.autograd._engine_run_backward

    def engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        with mode.backward_pass(outputs):
            return run_backward(outputs, *args, **kwargs)

    return engine_run_backward


def _generator_class(mode: SimulatedCuda) -> type:
    class Generator(torch._C.Generator):
        """A generator of the host that says it is the GPU's."""

        def __new__(cls, device: Any = "cpu") -> Generator:
            self = super().__new__(cls, device="cpu")
            index = None if torch.device(device).type == "cpu" else mode.index(device)
            self._simulated = torch.device("cpu") if index is None else torch.device("cuda", index)
            return self

        def __init__(self, device: Any = "cpu"):
            pass

        device = property(lambda self: self._simulated)

    return Generator


def _profile_class(launches: list) -> type:
    """Return torch's profiler with the simulator's launches as events of the GPU; their times are the host's."""
    from torch.autograd import DeviceType

    class profile(torch.profiler.profile):
        def __enter__(self) -> profile:
            self._first = len(launches)
            return super().__enter__()

        def events(self) -> list:
            ours = launches[self._first :]
            return [*super().events(), *(_event(name, seconds, DeviceType.CUDA) for name, seconds in ours)]

    return profile


def _event(name: str, seconds: float, device_type: Any) -> SimpleNamespace:
    us = 1e6 * seconds
    return SimpleNamespace(
        name=name,
        key=name,
        count=1,
        device_type=device_type,
        device_index=0,
        cpu_time_total=0.0,
        self_cpu_time_total=0.0,
        device_time=us,
        device_time_total=us,
        self_device_time_total=us,
    )

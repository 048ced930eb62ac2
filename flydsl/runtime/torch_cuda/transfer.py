"""GPU tensors between processes: torch shares their memory and sends a handle; what arrives is on the same GPU again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing  # registers torch's own reductions

_modes: list[Any] = []


@contextmanager
def sent_with_their_device(mode: Any) -> Iterator[None]:
    """Let tensors that are pickled for another process (queues, arguments of processes) say their GPU."""
    reductions = ForkingPickler._extra_reducers
    kinds = [kind for kind in (torch.Tensor, torch.nn.Parameter) if kind in reductions]
    before = {kind: reductions[kind] for kind in kinds}
    for kind, reduce in before.items():
        ForkingPickler.register(kind, _reduction(mode, reduce))
    _modes.append(mode)
    try:
        yield
    finally:
        _modes.remove(mode)
        for kind, reduce in before.items():
            ForkingPickler.register(kind, reduce)


def _reduction(mode: Any, reduce: Callable) -> Callable:
    def reduce_with_device(tensor: torch.Tensor) -> tuple:
        device = mode.device_of(tensor)
        with torch._C.DisableTorchFunction():
            rebuild, parts = reduce(tensor)
            if device is not None:  # sharing has moved it to other memory, which has another identity
                mode.memory.put(tensor, device)
        return (rebuild, parts) if device is None else (_rebuild, (rebuild, parts, device))

    return reduce_with_device


def _rebuild(rebuild: Callable, parts: tuple, device: int) -> torch.Tensor:
    with torch._C.DisableTorchFunction():
        tensor = rebuild(*parts)
        if _modes:
            _modes[-1].memory.put(tensor, device)
    return tensor

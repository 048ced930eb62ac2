"""`torch.distributed` between simulated GPUs: NCCL is gloo, since tensors of the GPU are in host memory.

The backend is replaced where a group is made; collectives themselves are torch's.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch

_MAKERS = ("init_process_group", "new_group")  # new_subgroups and device meshes call the second
_NOTICE = "[flydsl sim] torch.distributed: nccl is gloo here; the GPUs are simulated, collectives run on the host\n"
_SAID = "the notice"  # no name of a group


def replacements() -> list[tuple[Any, str, Any]]:
    """Return (module, attribute, stand-in) of what makes process groups and says which backends there are."""
    if not torch.distributed.is_available():
        return []
    asked: dict[str, str] = {}
    public, home = torch.distributed, torch.distributed.distributed_c10d
    modules = [public, home, *filter(None, [sys.modules.get("torch.distributed.device_mesh")])]
    makers = {name: _maker(getattr(home, name), asked) for name in _MAKERS}
    found = [(module, name, maker) for module in modules for name, maker in makers.items() if hasattr(module, name)]
    return [
        *found,
        *((module, "is_nccl_available", lambda: True) for module in (public, home)),
        (public, "get_backend", _get_backend(home.get_backend, asked)),
    ]


def host_backend(backend: Any) -> Any:
    """Return what carries tensors in host memory, for a backend as programs name it: `nccl`, `cuda:nccl,cpu:gloo`."""
    if backend is None:
        return None
    pairs = [part.rpartition(":") for part in str(backend).lower().split(",")]
    by_device = {device: name for device, _, name in pairs}
    name = by_device.get("cpu") or by_device.get("cuda") or by_device.get("") or str(backend)
    return "gloo" if name == "nccl" else name


def _maker(original: Callable, asked: dict[str, str]) -> Callable:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        wanted = bound.get("backend")
        if "backend" in bound:
            bound["backend"] = host_backend(wanted)
        if "nccl" in str(wanted).lower():
            bound.pop("pg_options", None)  # those of NCCL
        bound.pop("device_id", None)  # which GPU NCCL connects at once
        group = original(**bound)
        _note(wanted, torch.distributed.group.WORLD if original.__name__ == "init_process_group" else group, asked)
        return group

    return make


def _note(wanted: Any, group: Any, asked: dict[str, str]) -> None:
    """Remember which groups NCCL was asked for, and say once what it is, in the process of rank 0.

    A group for which no backend is named has the one of the world. In other processes than its members', `group` is
    torch's stand-in for one.
    """
    if not isinstance(group, torch.distributed.ProcessGroup):
        return
    world = torch.distributed.group.WORLD
    if wanted is None and group is not world:
        wanted = asked.get(world.group_name)
    asked[group.group_name] = str(wanted).lower()
    if "nccl" in asked[group.group_name] and _SAID not in asked:
        asked[_SAID] = "yes"
        if torch.distributed.get_rank() == 0:
            sys.stderr.write(_NOTICE)


def _get_backend(original: Callable, asked: dict[str, str]) -> Callable:
    @functools.wraps(original)
    def get_backend(group: Any = None) -> Any:
        found = original(group)
        name = (group or torch.distributed.group.WORLD).group_name
        return torch.distributed.Backend("nccl") if asked.get(name) == "nccl" else found

    return get_backend

"""Which torch storages count as memory of a simulated GPU, and what the simulator is told about them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from flydsl.runtime.host_arrays import TORCH_ELEMENTS
from flydsl.targets.sim import Allocation

_PURGE_AT = 1024


@dataclass
class _Entry:
    ref: StorageWeakRef  # keeps the storage's identity from being given to another one, not its memory
    device: int | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    dtype: str


class DeviceMemory:
    """Storages by identity. A view shares its tensor's storage, so it is on the same device."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._purge_at = _PURGE_AT

    def put(self, tensor: torch.Tensor, device: int | None) -> None:
        """State that a tensor's storage is on a GPU, or (None) on the host."""
        key = storage_key(tensor)
        if key is None:
            return
        ref = StorageWeakRef(tensor.untyped_storage())
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        dtype = str(tensor.dtype).removeprefix("torch.")
        self._entries[key] = _Entry(ref, device, shape, strides, tensor.element_size(), dtype)
        if len(self._entries) > self._purge_at:
            self._entries = {k: e for k, e in self._entries.items() if not e.ref.expired()}
            self._purge_at = 2 * len(self._entries) + _PURGE_AT

    def device_of(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the GPU that a tensor is on; None for the host."""
        entry = self._entries.get(storage_key(tensor))
        return None if entry is None else entry.device

    def knows(self, tensor: torch.Tensor) -> bool:
        """Return whether it was ever stated where a tensor is."""
        return storage_key(tensor) in self._entries

    def allocations(self) -> Iterator[Allocation]:
        """Yield the live memory of all GPUs: what a kernel may reach through a bare address."""
        for allocation, _ in self._live():
            yield allocation

    def used_bytes(self, device: int) -> int:
        """Return the bytes of the live storages of a GPU."""
        return sum(a.nbytes for a, e in self._live() if e.device == device)

    def snapshot(self) -> list[tuple[torch.UntypedStorage, bytes]]:
        """Return the live storages of all GPUs with their bytes."""
        found = []
        for key, entry in self._entries.items():
            storage = self._storage(key, entry)
            if storage is not None:
                found.append((storage, ctypes.string_at(storage.data_ptr(), storage.nbytes())))
        return found

    def _storage(self, key: int, entry: _Entry) -> torch.UntypedStorage | None:
        """Return the storage of an entry; None where it is freed, empty or on the host."""
        if entry.device is None or entry.ref.expired():
            return None
        storage = torch.UntypedStorage._new_with_weak_ptr(key)
        return storage if storage is not None and storage.nbytes() else None

    def _live(self) -> Iterator[tuple[Allocation, _Entry]]:
        for key, entry in self._entries.items():
            storage = self._storage(key, entry)
            if storage is not None:
                yield _allocation(entry, storage), entry


def _allocation(entry: _Entry, storage: torch.UntypedStorage) -> Allocation:
    elem = TORCH_ELEMENTS.get(entry.dtype, entry.dtype)
    size = storage.nbytes()
    fits = entry.itemsize * (1 + sum((n - 1) * s for n, s in zip(entry.shape, entry.strides, strict=True))) == size
    shape, strides = (entry.shape, entry.strides) if fits and 0 not in entry.shape else ((), ())
    name = f"{elem}[{','.join(map(str, shape))}]" if shape else f"{size} bytes"
    return Allocation(
        f"{name} on cuda:{entry.device}", storage.data_ptr(), size, shape, strides, entry.itemsize, elem
    )


def storage_key(tensor: torch.Tensor) -> int | None:
    """Return what identifies a tensor's storage; None for tensors without one (sparse, meta)."""
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return None
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):  # wrapper subclasses have no storage of their own
        return None


def fill_poison(tensor: torch.Tensor) -> None:
    """Fill fresh memory with bytes that read as NaN in f32, f16 and bf16 and as a loud number in integers."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    pattern = b"\xc1\x7f" * ((size + 1) // 2)
    ctypes.memmove(storage.data_ptr(), pattern, size)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in an argument or result: nested in tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)

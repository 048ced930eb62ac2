"""HIP as a runtime: modules are loaded once per device, launches go to the stream that they name."""

from __future__ import annotations

import ctypes
import functools
import math
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from flydsl import arch as chips
from flydsl.diag import ClusterLaunchUnsupported, DeviceChip, KernelArguments, SharedCapacity
from flydsl.runtime.driver import driver_gpus
from flydsl.runtime.host_arrays import common_device, refuse_host_memory
from flydsl.runtime.host_math import BFloat16
from flydsl.targets.base import KernelInfo
from flydsl.targets.rocm import hip
from flydsl.targets.rocm.printf import ARGUMENT, decode, new_buffer

_INTEGER = {1: "b", 2: "h", 4: "i", 8: "q"}
_FLOAT = {2: "e", 4: "f", 8: "d"}
_PRINT_BYTES = 1 << 20


class RocmRuntime:
    """Runs code objects on AMD GPUs."""

    name = "rocm"

    def load(self, artifact: Any) -> RocmLoaded:
        """Return the artifact's code object, not yet on any device."""
        return RocmLoaded(artifact)

    def chip_of(self, device: int | None) -> str:
        """Return the chip of a device (None: the current one); empty where neither HIP nor the kernel driver says
        it."""
        if hip.device_count() == 0:
            return ""
        return chip_of(hip.current_device() if device is None else device)

    def device_reader(self) -> Callable[[], int] | None:
        """Return what reads the number of the current device, where the devices are of several chips; else None."""
        chips = {chip_of(device) for device in range(hip.device_count())}
        return hip.current_device if len(chips) > 1 else None

    def reads_host_memory(self) -> bool:
        """Return whether every device reads any memory of the host."""
        return all(map(pages_host_memory, range(hip.device_count())))


def chip_of(device: int) -> str:
    """Return the chip of a device: HIP's word, else that of the kernel driver for the same place on the bus."""
    return _chip_of(hip.library(), device)


def pages_host_memory(device: int) -> bool:
    """Return whether kernels on a device may read any memory of the host."""
    return _pages_host_memory(hip.library(), device)


@functools.lru_cache(maxsize=256)
def _pages_host_memory(library: ctypes.CDLL, device: int) -> bool:
    return hip.pages_host_memory(device)


@functools.lru_cache(maxsize=256)
def _chip_of(library: ctypes.CDLL, device: int) -> str:
    said = hip.chip_name(device)
    if said:
        return said
    place = hip.bus_id(device)
    return next((gpu.chip for gpu in driver_gpus() if gpu.bus == place), "")


class RocmLoaded:
    """A code object and its kernels on the devices that have used it."""

    needs_buffers = False

    def __init__(self, artifact: Any):
        self.code: bytes
        self.kernels: dict[str, KernelInfo]
        self.code, self.kernels = artifact.code_object()
        self.arch: str = artifact.arch
        self.lds_limit = chips.get(self.arch).lds.bytes
        self.post_load = artifact.post_load
        self.functions: dict[tuple[int, str], int] = {}
        self.modules: dict[int, int] = {}
        self.packers: dict[str, _Packer] = {}
        self.loading = threading.Lock()
        self.has_one_device = hip.device_count() == 1

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return the launch function of one host call, on the device that holds its tensors.

        Raises   DevicesMixed: the tensors are on several devices; HostMemory: they are on the host, out of its reach
        """
        device = common_device(buffers)
        if any(array.device < 0 for _, array in buffers):
            there = hip.current_device() if device is None else device
            if not pages_host_memory(there):
                refuse_host_memory(buffers, there, hip.reaches)
        return self.on_device(device)

    def on_device(self, device: int | None) -> Callable:
        """Return the launch function for a device; None is the current one at each launch."""
        return functools.partial(self._launch, device)

    def _launch(
        self,
        device: int | None,
        kernel: str,
        grid: tuple,
        block: tuple,
        cluster: tuple,
        smem: int,
        stream: int,
        arguments: tuple,
    ) -> None:
        if 0 in grid:
            return
        clustered = cluster if cluster and max(cluster) > 1 else None
        if clustered and not hip.can_launch_clusters():
            raise ClusterLaunchUnsupported(kernel=kernel, cluster=cluster)
        before = 0 if self.has_one_device else hip.current_device()
        there = before if device is None else device
        if there == before:
            function = self.functions.get((there, kernel)) or self.function(there, kernel)
            self._launch_here(function, self.kernels[kernel], grid, block, clustered, smem, stream, arguments)
            return
        hip.set_device(there)
        try:
            function = self.function(there, kernel)
            self._launch_here(function, self.kernels[kernel], grid, block, clustered, smem, stream, arguments)
        finally:
            hip.set_device(before)

    def function(self, device: int, kernel: str) -> int:
        """Return the handle of a kernel on a device; the module is loaded on first use.

        Raises   DeviceChip: the device is of another chip than the code
        """
        with self.loading:
            handle = self.functions.get((device, kernel))
            if handle is None:
                if device not in self.modules:
                    self.modules[device] = self._load(device, kernel)
                handle = self.functions[device, kernel] = hip.get_function(self.modules[device], kernel)
        return handle

    def _load(self, device: int, kernel: str) -> int:
        chip = chip_of(device)
        if chip and chip != self.arch:
            raise DeviceChip(kernel=kernel, compiled=self.arch, device=device, chip=chip)
        module = hip.load_module(self.code)
        for initialise in self.post_load:
            initialise(module)
        return module

    def _launch_here(
        self,
        function: int,
        info: KernelInfo,
        grid: tuple,
        block: tuple,
        cluster: tuple | None,
        smem: int,
        stream: int,
        arguments: tuple,
    ) -> None:
        printer = _Printer(info) if info.has_printf else None
        if printer:
            arguments = (*arguments, printer.address)
        if smem:
            self._check_lds(info, smem)
            if smem > 65536:
                hip.allow_dynamic_lds(function, smem)
        packer = self.packers.get(info.name) or self.packers.setdefault(info.name, _Packer(info))
        kernarg = packer.filled(arguments)
        try:
            if cluster:
                hip.launch_clusters(function, grid, block, cluster, smem, stream, kernarg.parameters)
            else:
                hip.launch(function, grid, block, smem, stream, kernarg.parameters)
            if printer:
                hip.synchronise(stream)
                printer.drain()
        finally:
            packer.free.append(kernarg)
            if printer:
                printer.close()

    def _check_lds(self, info: KernelInfo, smem: int) -> None:
        used = info.lds_bytes + smem
        if used > self.lds_limit:
            parts = f"arrays of the kernel {info.lds_bytes}; dynamic (smem) {smem}"
            raise SharedCapacity(used=used, limit=self.lds_limit, arch=self.arch, parts=parts)


class _Kernarg:
    """Memory for the arguments of one launch: `parameters` is the address of an array of pointers to the values."""

    def __init__(self, info: KernelInfo):
        self.storage = ctypes.create_string_buffer(max(info.kernarg_bytes, 1))
        base = ctypes.addressof(self.storage)
        self.pointers = (ctypes.c_void_p * len(info.explicit_args))(*(base + a.offset for a in info.explicit_args))
        self.parameters = ctypes.addressof(self.pointers)


class _Packer:
    """Writes the arguments of a kernel where the code object has them. Memory is used again: HIP has copied the values
    when a launch returns."""

    def __init__(self, info: KernelInfo):
        self.info, self.slots = info, info.explicit_args
        self.free: list[_Kernarg] = []
        self.pack: Callable | None = None

    def filled(self, arguments: tuple) -> _Kernarg:
        """Return kernarg memory with the arguments in it; put it into `free` after the launch.

        Raises   KernelArguments: another number of arguments than the kernel takes
        """
        if len(self.slots) != len(arguments):
            raise KernelArguments(kernel=self.info.name, given=len(arguments), expected=len(self.slots))
        try:
            kernarg = self.free.pop()
        except IndexError:
            kernarg = _Kernarg(self.info)
        if self.pack is None:
            self.pack = self._struct(arguments)
        try:
            self.pack(kernarg.storage, 0, *arguments)
        except (struct.error, OverflowError):  # a number that no letter takes: unsigned, or beyond the range of a float
            for slot, value in zip(self.slots, arguments, strict=True):
                _write(kernarg.storage, slot.offset, slot.size, value)
        return kernarg

    def _struct(self, arguments: tuple) -> Callable:
        """Return what packs arguments of these types at once."""
        letters, at = "<", 0
        for slot, value in zip(self.slots, arguments, strict=True):
            if isinstance(value, BFloat16):
                return _no_letter
            letters += f"{slot.offset - at}x" + (_FLOAT if isinstance(value, float) else _INTEGER)[slot.size]
            at = slot.offset + slot.size
        return struct.Struct(letters).pack_into


def _no_letter(*arguments: Any) -> None:
    raise struct.error


def _write(storage: ctypes.Array, offset: int, size: int, value: Any) -> None:
    if isinstance(value, BFloat16):
        value = value.bits
    if isinstance(value, float):
        letter = f"<{_FLOAT[size]}"
        try:
            struct.pack_into(letter, storage, offset, value)
        except OverflowError:  # as C converts: beyond the largest number is infinity
            struct.pack_into(letter, storage, offset, math.copysign(math.inf, value))
        return
    mask = (1 << (8 * size)) - 1
    value = int(value) & mask
    struct.pack_into(f"<{_INTEGER[size].upper()}", storage, offset, value)


class _Printer:
    """The print buffer of one launch."""

    def __init__(self, info: KernelInfo):
        assert info.explicit_args[-1].name == ARGUMENT, info.explicit_args
        self.formats = info.printf_formats
        buffer = new_buffer(_PRINT_BYTES)
        self.size = len(buffer)
        self.address = hip.host_memory(self.size)
        ctypes.memmove(self.address, bytes(buffer), self.size)

    def drain(self) -> None:
        """Write what was printed to standard output."""
        texts, lost = decode(ctypes.string_at(self.address, self.size), self.formats)
        sys.stdout.write("".join(texts))
        if lost:
            sys.stdout.write(f"[flydsl] {lost} bytes of printed records did not fit the buffer\n")

    def close(self) -> None:
        """Free the buffer."""
        hip.free_host_memory(self.address)

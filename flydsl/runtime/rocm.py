"""HIP as a runtime: modules are loaded once per device, launches go to the stream that they name."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from flydsl.diag import ClusterLaunchUnsupported, DeviceChip, KernelArguments
from flydsl.runtime.driver import driver_gpus
from flydsl.runtime.host_arrays import common_device
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


def chip_of(device: int) -> str:
    """Return the chip of a device: HIP's word, else that of the kernel driver for the same place on the bus."""
    return _chip_of(hip.library(), device)


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
        self.post_load = artifact.post_load
        self.functions: dict[tuple[int, str], int] = {}
        self.modules: dict[int, int] = {}

    def launcher(self, buffers: Sequence[tuple[str, Any]]) -> Callable:
        """Return the launch function of one host call, on the device that holds its tensors.

        Raises   DevicesMixed: the tensors are on several devices
        """
        return self.on_device(common_device(buffers))

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
        before = hip.current_device()
        if device is not None and device != before:
            hip.set_device(device)
        try:
            function = self.function(before if device is None else device, kernel)
            self._launch_here(function, self.kernels[kernel], grid, block, clustered, smem, stream, arguments)
        finally:
            if device is not None and device != before:
                hip.set_device(before)

    def function(self, device: int, kernel: str) -> int:
        """Return the handle of a kernel on a device; the module is loaded on first use.

        Raises   DeviceChip: the device is of another chip than the code
        """
        handle = self.functions.get((device, kernel))
        if handle is None:
            if device not in self.modules:
                chip = chip_of(device)
                if chip and chip != self.arch:
                    raise DeviceChip(kernel=kernel, compiled=self.arch, device=device, chip=chip)
                module = hip.load_module(self.code)
                for initialise in self.post_load:
                    initialise(module)
                self.modules[device] = module
            handle = self.functions[device, kernel] = hip.get_function(self.modules[device], kernel)
        return handle

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
        if smem > 65536:
            hip.allow_dynamic_lds(function, smem)
        storage, parameters = pack(info, arguments)
        if cluster:
            hip.launch_clusters(function, grid, block, cluster, smem, stream, parameters)
        else:
            hip.launch(function, grid, block, smem, stream, parameters)
        del storage
        if printer:
            hip.synchronise(stream)
            printer.drain()


def pack(info: KernelInfo, arguments: Sequence[Any]) -> tuple[ctypes.Array, ctypes.Array]:
    """Return (kernarg bytes, pointers to the values in them) of a launch, placed as the code object says.

    Raises   KernelArguments: another number of arguments than the kernel takes
    """
    slots = info.explicit_args
    if len(slots) != len(arguments):
        raise KernelArguments(kernel=info.name, given=len(arguments), expected=len(slots))
    storage = ctypes.create_string_buffer(max(info.kernarg_bytes, 1))
    base = ctypes.addressof(storage)
    parameters = (ctypes.c_void_p * len(slots))()
    for i, (slot, value) in enumerate(zip(slots, arguments, strict=True)):
        _write(storage, slot.offset, slot.size, value)
        parameters[i] = base + slot.offset
    return storage, parameters


def _write(storage: ctypes.Array, offset: int, size: int, value: Any) -> None:
    if isinstance(value, float):
        struct.pack_into(f"<{_FLOAT[size]}", storage, offset, value)
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
        """Write what was printed to standard output and free the buffer."""
        texts, lost = decode(ctypes.string_at(self.address, self.size), self.formats)
        hip.free_host_memory(self.address)
        sys.stdout.write("".join(texts))
        if lost:
            sys.stdout.write(f"[flydsl] {lost} bytes of printed records did not fit the buffer\n")

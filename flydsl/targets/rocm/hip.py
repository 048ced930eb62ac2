"""The HIP runtime library through ctypes: finding it, devices, modules, launches, streams, events.

Nothing is loaded on import. Only what launches need is bound; every call checks its status and raises HipFailed with HIP's own words.
What has not been run on an AMD GPU is listed in docs/hip.md.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from flydsl.diag import HipFailed, HipUnusable, MissingHip

_P = ctypes.c_void_p
_PP = ctypes.POINTER(_P)
_I = ctypes.c_int
_U = ctypes.c_uint
_SIGNATURES: dict[str, tuple] = {
    "hipInit": (_U,),
    "hipGetDeviceCount": (ctypes.POINTER(_I),),
    "hipGetDevice": (ctypes.POINTER(_I),),
    "hipSetDevice": (_I,),
    "hipDeviceSynchronize": (),
    "hipModuleLoadData": (_PP, _P),
    "hipModuleUnload": (_P,),
    "hipModuleGetFunction": (_PP, _P, ctypes.c_char_p),
    "hipModuleLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "hipFuncSetAttribute": (_P, _I, _I),
    "hipStreamSynchronize": (_P,),
    "hipEventCreate": (_PP,),
    "hipEventDestroy": (_P,),
    "hipEventRecord": (_P, _P),
    "hipEventSynchronize": (_P,),
    "hipEventElapsedTime": (ctypes.POINTER(ctypes.c_float), _P, _P),
    "hipHostMalloc": (_PP, ctypes.c_size_t, _U),
    "hipHostFree": (_P,),
}
_OPTIONAL: dict[str, tuple] = {  # newer than HIP 6.0, or not in every stand-in
    "hipDrvLaunchKernelEx": (_P, _P, _P, _P),
    "hipGetDevicePropertiesR0600": (_P, _I),
    "hipDeviceGetPCIBusId": (ctypes.c_char_p, _I, _I),
    "hipHostGetDevicePointer": (_PP, _P, _U),
    "hipGetLastError": (),
}
_SONAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")
_ATTRIBUTE_MAX_DYNAMIC_LDS = 8  # hipFuncAttributeMaxDynamicSharedMemorySize
_ATTRIBUTE_CLUSTER = 4  # hipLaunchAttributeClusterDimension
_PROPERTIES_BYTES = 8192  # more than hipDeviceProp_tR0600, which has grown at its end
_CHIP_AT, _CHIP_BYTES = 1160, 256  # gcnArchName in hipDeviceProp_tR0600; test_hip_stub.py lays the header's struct out
_PAGEABLE_AT = 672  # its pageableMemoryAccess


class LaunchAttribute(ctypes.Structure):
    """hipLaunchAttribute with a cluster size as its value: a union of 64 bytes."""

    _fields_ = [("id", _I), ("_pad", _I), ("cluster", _U * 3), ("_rest", ctypes.c_char * 52)]


class LaunchConfig(ctypes.Structure):
    """HIP_LAUNCH_CONFIG."""

    _fields_ = [
        ("grid", _U * 3),
        ("block", _U * 3),
        ("lds_bytes", _U),
        ("stream", _P),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", _U),
    ]


def candidates() -> Iterator[str]:
    """Yield names and paths under which the HIP library may be: loaded already, ROCm, TheRock's and torch's wheels."""
    yield from _SONAMES
    for root in (os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), "/opt/rocm"):
        if root:
            yield from (os.path.join(root, "lib", name) for name in _SONAMES)
    for folder in sys.path:
        yield from sorted(glob.glob(os.path.join(folder, "_rocm_sdk_*", "lib", "libamdhip64.so*")), reverse=True)
        yield from glob.glob(os.path.join(folder, "torch", "lib", "libamdhip64.so"))


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Return the loaded library with its functions declared.

    Raises   MissingHip: it is nowhere; lists where it was looked for. HipUnusable: a file is there and is no HIP library
    """
    absent, unusable = [], []
    for name in candidates():
        try:
            return _declared(ctypes.CDLL(name))
        except OSError as e:
            (absent if _is_absent(name, str(e)) else unusable).append((name, str(e)))
        except AttributeError as e:  # the loader names the function that is not there
            unusable.append((name, str(e)))
    if unusable:
        path, problem = unusable[0]
        raise HipUnusable(library=path, problem=problem)
    raise MissingHip(tried=", ".join(dict.fromkeys(name for name, _ in absent)))


def _is_absent(name: str, problem: str) -> bool:
    """Return whether a library could not be loaded because it is not there; a library that it needs may be missing, too."""
    return not os.path.exists(name) if os.sep in name else name in problem and "no such file" in problem.lower()


def _declared(lib: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the functions of a library and return it. AttributeError: one of those that launches need is missing."""
    for function, arguments in _SIGNATURES.items():
        bound = getattr(lib, function)
        bound.argtypes, bound.restype = arguments, _I
    for function, arguments in _OPTIONAL.items():
        if hasattr(lib, function):
            bound = getattr(lib, function)
            bound.argtypes, bound.restype = arguments, _I
    lib.hipGetErrorName.restype = lib.hipGetErrorString.restype = ctypes.c_char_p
    return lib


def check(status: int, call: str) -> None:
    """Raise HipFailed unless `status` is success."""
    if status:
        lib = library()
        name, text = lib.hipGetErrorName(status).decode(), lib.hipGetErrorString(status).decode()
        raise HipFailed(call=call, status=status, name=name, text=text)


def device_count() -> int:
    """Return how many AMD GPUs HIP finds; 0 where there is no HIP library that works."""
    try:
        lib = library()
    except MissingHip:
        return 0
    count = _I()
    return count.value if lib.hipGetDeviceCount(ctypes.byref(count)) == 0 else 0


def chip_name(device: int) -> str:
    """Return the chip of a device, such as gfx942; empty where this HIP does not say it."""
    name = _properties(device)[_CHIP_AT : _CHIP_AT + _CHIP_BYTES].partition(b"\0")[0].decode(errors="replace")
    return name.partition(":")[0] if name.startswith("gfx") else ""


def pages_host_memory(device: int) -> bool:
    """Return whether kernels on a device may read any memory of the host: an APU, or HSA_XNACK=1 where it works."""
    return any(_properties(device)[_PAGEABLE_AT : _PAGEABLE_AT + 4])


def _properties(device: int) -> bytes:
    """Return hipDeviceProp_tR0600 of a device; empty where this HIP does not have it."""
    lib = library()
    if not hasattr(lib, "hipGetDevicePropertiesR0600"):
        return b""
    properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    return b"" if lib.hipGetDevicePropertiesR0600(properties, device) else properties.raw


def reaches(address: int) -> bool:
    """Return whether the current device may read the host's memory at an address: it is pinned, and has this address
    there, too. A library that cannot be asked is trusted."""
    lib = library()
    if not hasattr(lib, "hipHostGetDevicePointer"):
        return True
    there = _P()
    if lib.hipHostGetDevicePointer(ctypes.byref(there), address, 0) == 0:
        return there.value == address
    if hasattr(lib, "hipGetLastError"):
        lib.hipGetLastError()  # forgets the error, which torch's next check would find
    return False


def bus_id(device: int) -> str:
    """Return the place of a device on the PCI bus, domain:bus:device.function in lower case; empty where unknown."""
    lib, bus = library(), ctypes.create_string_buffer(64)
    if not hasattr(lib, "hipDeviceGetPCIBusId") or lib.hipDeviceGetPCIBusId(bus, len(bus), device):
        return ""
    return bus.value.decode(errors="replace").lower()


def current_device() -> int:
    """Return the number of the device that calls of this thread go to."""
    device = _I()
    check(library().hipGetDevice(ctypes.byref(device)), "hipGetDevice")
    return device.value


def set_device(device: int) -> None:
    """Make `device` the current one of this thread."""
    check(library().hipSetDevice(device), "hipSetDevice")


def load_module(code: bytes) -> int:
    """Load a code object on the current device; return the module's handle."""
    module = _P()
    check(library().hipModuleLoadData(ctypes.byref(module), ctypes.c_char_p(code)), "hipModuleLoadData")
    return module.value


def get_function(module: int, name: str) -> int:
    """Return the handle of a kernel of a module."""
    function = _P()
    check(
        library().hipModuleGetFunction(ctypes.byref(function), module, name.encode()), f"hipModuleGetFunction({name})"
    )
    return function.value


def allow_dynamic_lds(function: int, size_bytes: int) -> None:
    """Let launches of a kernel ask for up to `size_bytes` of dynamic LDS."""
    check(library().hipFuncSetAttribute(function, _ATTRIBUTE_MAX_DYNAMIC_LDS, size_bytes), "hipFuncSetAttribute")


def launch(function: int, grid: tuple, block: tuple, lds_bytes: int, stream: int, parameters: int) -> None:
    """Launch a kernel. `grid` in workgroups, `block` in lanes; `parameters`: address of an array of pointers to the
    values."""
    status = library().hipModuleLaunchKernel(function, *grid, *block, lds_bytes, stream or None, parameters, None)
    if status:
        check(status, "hipModuleLaunchKernel")


def can_launch_clusters() -> bool:
    """Return whether the library has the launch that takes a cluster size (HIP 6.5 and later)."""
    return hasattr(library(), "hipDrvLaunchKernelEx")


def launch_clusters(
    function: int, grid: tuple, block: tuple, cluster: tuple, lds_bytes: int, stream: int, parameters: int
) -> None:
    """Launch a kernel in clusters of `cluster` workgroups; only where `can_launch_clusters()`."""
    attribute = LaunchAttribute(id=_ATTRIBUTE_CLUSTER, cluster=(_U * 3)(*cluster))
    config = LaunchConfig(
        (_U * 3)(*grid), (_U * 3)(*block), lds_bytes, stream or None, ctypes.pointer(attribute), 1
    )
    check(library().hipDrvLaunchKernelEx(ctypes.byref(config), function, parameters, None), "hipDrvLaunchKernelEx")


def synchronise(stream: int = 0) -> None:
    """Wait for a stream."""
    check(library().hipStreamSynchronize(stream or None), "hipStreamSynchronize")


@contextmanager
def events(count: int) -> Iterator[tuple[int, ...]]:
    """Make events for the block."""
    made = []
    try:
        for _ in range(count):
            event = _P()
            check(library().hipEventCreate(ctypes.byref(event)), "hipEventCreate")
            made.append(event.value)
        yield tuple(made)
    finally:
        for handle in made:
            library().hipEventDestroy(handle)


def record(event: int, stream: int = 0) -> None:
    """Let an event happen when what is on the stream so far is done."""
    check(library().hipEventRecord(event, stream or None), "hipEventRecord")


def elapsed_ms(start: int, end: int) -> float:
    """Wait for `end`; return the milliseconds between two events."""
    check(library().hipEventSynchronize(end), "hipEventSynchronize")
    ms = ctypes.c_float()
    check(library().hipEventElapsedTime(ctypes.byref(ms), start, end), "hipEventElapsedTime")
    return ms.value


def host_memory(size_bytes: int) -> int:
    """Return the address of new host memory that kernels can access."""
    pointer = _P()
    check(library().hipHostMalloc(ctypes.byref(pointer), size_bytes, 0), "hipHostMalloc")
    return pointer.value


def free_host_memory(address: int) -> None:
    """Free what `host_memory` gave."""
    check(library().hipHostFree(address), "hipHostFree")

"""Memory on the host side of a launch: address, shape, strides and element type of NumPy, torch and DLPack tensors.
Imports no torch."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flydsl.diag import DevicesMixed, HostMemory, TensorDtype, TensorMemory, TensorNegated
from flydsl.utils.record import record

TORCH_ELEMENTS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "bool": "i1",
    "uint8": "i8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
}
NUMPY_ELEMENTS = {
    **TORCH_ELEMENTS,
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3": "f8E4M3",
}


@record
class HostArray:
    """`address` in bytes, `strides` in elements; `device` is -1 on the host, else the GPU's number. `owner` keeps the
    memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elem: str
    itemsize: int
    device: int
    owner: Any

    @property
    def extent_bytes(self) -> tuple[int, int]:
        """The first byte and the byte behind the last one, relative to the address."""
        if 0 in self.shape:
            return 0, 0
        low = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0)
        high = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s > 0)
        return low * self.itemsize, (high + 1) * self.itemsize

    @property
    def is_writable(self) -> bool:
        """Whether the memory may be written, as far as its library tells: torch does not, and DLPack only since version
        1.0 (NumPy takes memory of older exporters as read-only, because they cannot say)."""
        if isinstance(self.owner, np.ndarray):
            return self.owner.flags.writeable
        if not isinstance(self.owner, tuple):
            return True
        tensor, array = self.owner
        return array.flags.writeable or not _has_dlpack_flags(tensor)


def common_device(buffers: Iterable[tuple[str, Any]]) -> int | None:
    """Return the GPU that holds the tensors of a call, given as (name, memory); None where all are on the host.

    Raises   DevicesMixed: they are on several GPUs
    """
    devices = {name: array.device for name, array in buffers if array.device >= 0}
    first = next(iter(devices.values()), None)
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} on {device}" for name, device in devices.items())
        moves = ", ".join(f'`{name}.to("cuda:{first}")`' for name, device in devices.items() if device != first)
        raise DevicesMixed(devices=where, moves=moves)
    return first


def refuse_host_memory(buffers: Sequence[tuple[str, HostArray]], device: int, reaches: Callable[[int], bool]) -> None:
    """Refuse arrays on the host that a GPU cannot read; `reaches(address)` says whether it can. Empty ones are not read.

    Raises   DevicesMixed: others are on the GPU; HostMemory: none is
    """
    out = [(name, array) for name, array in buffers if array.device < 0 and not _is_reached(array, reaches)]
    if not out:
        return
    advice = ", ".join(_move(name, array, device) for name, array in out)
    if all(array.device < 0 for _, array in buffers):
        raise HostMemory(names=", ".join(f"`{name}`" for name, _ in out), device=device, moves=advice)
    unread = {name for name, _ in out}
    where = ", ".join(
        f"{name} on {array.device if array.device >= 0 else 'the host'}"
        for name, array in buffers
        if array.device >= 0 or name in unread
    )
    raise DevicesMixed(devices=where, moves=advice)


def _is_reached(array: HostArray, reaches: Callable[[int], bool]) -> bool:
    low, high = array.extent_bytes
    return low == high or reaches(array.address + low) and reaches(array.address + high - 1)


def _move(name: str, array: HostArray, device: int) -> str:
    if isinstance(array.owner, np.ndarray):
        return f'`torch.from_numpy({name}).to("cuda:{device}")`'
    return f'`{name}.to("cuda:{device}")` (or, to be read across the bus, `{name}.pin_memory()`)'


def broken_promise(
    array: HostArray, align: int, shape_div: dict[int, int], stride_div: dict[int, int], stride_bits: int
) -> str:
    """Return what code relies on that does not hold for an array; empty where all does. `shape_div`, `stride_div`: what
    dynamic extents and strides are multiples of, by dimension; `align` in bytes, 0 for none."""
    if align and array.address % align:
        return f"its address {array.address:#x} is not a multiple of assumed_align={align}"
    for what, values, divisors in (("extent", array.shape, shape_div), ("stride", array.strides, stride_div)):
        for i, div in divisors.items():
            if values[i] % div:
                return f"{what} {i} is {values[i]}, not a multiple of divisibility={div}"
    if stride_bits == 32 and any(not -(2**31) <= array.strides[i] < 2**31 for i in stride_div):
        return f"its strides {array.strides} do not fit use_32bit_stride"
    return ""


def host_array(tensor: Any, missing_ok: bool = False) -> HostArray | None:
    """Return the memory of a tensor.

    Raises TensorDtype: its element type has no counterpart; TypeError: it exposes no memory (None with `missing_ok`).
    """
    if isinstance(tensor, np.ndarray):
        return _numpy(tensor)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return _torch(tensor)
    if hasattr(tensor, "__dlpack__"):
        return _dlpack(tensor)
    if missing_ok:
        return None
    advice = "pass a NumPy array, a torch tensor, or one with __dlpack__"
    raise TypeError(f"{type(tensor).__name__} exposes no memory: {advice}")


def argument_array(tensor: Any, name: str = "", missing_ok: bool = False) -> HostArray | None:
    """Return the memory of a tensor that a kernel shall use; `name`: the parameter.

    torch marks a view whose values are the negatives of its memory. Only the imaginary part of a conjugate has the mark,
    and its elements lie apart: fast paths need a stride of 1 and do not ask again.

    Raises   as `host_array`; TensorNegated: it has this mark
    """
    found = host_array(tensor, missing_ok)
    torch = sys.modules.get("torch")
    if found is not None and torch is not None and isinstance(tensor, torch.Tensor) and tensor.is_neg():
        raise TensorNegated(name=name or "tensor", tensor=f"`{name}`" if name else "this tensor")
    return found


def _numpy(array: np.ndarray) -> HostArray:
    elem = _element(NUMPY_ELEMENTS, array.dtype.name, "NumPy")
    size = array.itemsize
    if not array.dtype.isnative:
        raise TensorMemory(library="NumPy", problem=f"its bytes are in another machine's order ({array.dtype.str})")
    if not array.flags.aligned or any(s % size for s in array.strides):
        raise TensorMemory(library="NumPy", problem=f"its elements are not aligned to their {size} bytes")
    strides = tuple(s // size for s in array.strides)
    if not array.size:  # NumPy may give an empty array any strides
        strides = tuple(math.prod(max(n, 1) for n in array.shape[i + 1 :]) for i in range(array.ndim))
    return HostArray(array.ctypes.data, array.shape, strides, elem, size, -1, array)


def address_function(array: np.ndarray) -> Callable[[np.ndarray], int]:
    """Return the fastest way to the address of arrays like this one."""
    try:
        _from_buffer(array)
    except (TypeError, ValueError, BufferError):
        return _address_by_ctypes
    return _address_of


def _address_of(array: np.ndarray) -> int:
    """Return the address; through the buffer interface (0.2 us instead of 1), which writable contiguous arrays have."""
    try:
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):
        return array.ctypes.data


def _address_by_ctypes(array: np.ndarray) -> int:
    return array.ctypes.data


_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


def _torch(tensor: Any) -> HostArray:
    name = str(tensor.dtype).removeprefix("torch.")
    elem = _element(TORCH_ELEMENTS, name, "torch")
    kind = tensor.device.type
    if kind not in ("cpu", "cuda"):
        raise TensorMemory(library="torch", problem=f"it is on device '{kind}', which kernels cannot reach")
    if str(tensor.layout) != "torch.strided":
        raise TensorMemory(library="torch", problem=f"its layout is {tensor.layout}")
    device = tensor.device.index or 0 if kind == "cuda" else -1
    return HostArray(
        tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), elem, tensor.element_size(), device, tensor
    )


def _dlpack(tensor: Any) -> HostArray:
    array = np.from_dlpack(tensor)
    found = _numpy(array)
    return HostArray(found.address, found.shape, found.strides, found.elem, found.itemsize, -1, (tensor, array))


def _has_dlpack_flags(tensor: Any) -> bool:
    """Return whether an exporter's capsules are of DLPack 1.0 or later, which state whether memory is read-only."""
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0))
    except TypeError:  # it knows no versions
        return False
    return "dltensor_versioned" in repr(capsule)


def _element(table: dict[str, str], name: str, library: str) -> str:
    elem = table.get(name)
    if elem is None:
        raise TensorDtype(library=library, dtype=name, supported=", ".join(table))
    return elem

"""The torch function mode that lets `cuda` mean host memory.

Where results are: an explicit `device=` decides; else a function of GPU tensors gives GPU tensors, and a
constructor uses the default device.
What is copied between devices on a GPU is copied here too, so that the two copies can differ. Mixing devices in
one torch operation is not
detected, and host memory that a kernel is given is accessible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors

from flydsl.diag import SimulatedCudaDevice, SimulatedCudaForeign
from flydsl.runtime.host_arrays import host_array
from flydsl.runtime.sim import allocation
from flydsl.runtime.torch_cuda.graphs import current_capture, forbid_while_capturing
from flydsl.runtime.torch_cuda.memory import DeviceMemory, fill_poison, storage_key, tensors_in
from flydsl.targets.sim import session
from flydsl.targets.sim.streams import order

_CPU = torch.device("cpu")
_UNFILLED = (
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
)
_ALIASING = (torch.as_tensor, torch.asarray)
_OPERATORS = frozenset(f"__{n}__" for n in "add radd sub rsub mul rmul truediv eq ne lt le gt ge and or xor matmul pow neg".split())
_NO_READS = frozenset(
    "view view_as reshape transpose t permute expand expand_as unsqueeze squeeze narrow select as_strided detach flatten unbind split"
    " chunk movedim swapaxes unfold size stride dim numel nelement element_size data_ptr storage_offset is_contiguous storage"
    " untyped_storage requires_grad_ zero_ fill_ empty new_empty new_zeros new_ones new_full is_floating_point is_complex is_neg".split()
)


class SimulatedCuda(TorchFunctionMode):
    """`devices` simulated GPUs; `current` is the one that `cuda` without a number means."""

    def __init__(self, devices: int = 1):
        super().__init__()
        self.devices = devices
        self.current = 0
        self.memory = DeviceMemory()
        self.engine_device: int | None = None  # of the backward pass that runs
        self.stream: Callable[[], int] = lambda: 0  # the handle of the current stream
        T = torch.Tensor
        self.unfilled = frozenset(_UNFILLED)
        self._waits = frozenset(
            (T.item, T.tolist, T.__bool__, T.__int__, T.__float__, T.__index__, T.cpu, T.numpy, T.__array__)
            + (T.nonzero, torch.nonzero, T.masked_select, torch.masked_select, T.unique, torch.unique)
        )
        self._constructors = frozenset(_device_constructors())
        self._rules: dict[Any, Callable] = {
            torch.device: self._new_device,
            T.device.__get__: self._device,
            T.is_cuda.__get__: lambda f, a, k: self.device_of(a[0]) is not None or f(*a),
            T.is_cpu.__get__: lambda f, a, k: self.device_of(a[0]) is None and f(*a),
            T.get_device: self._get_device,
            T.cuda: self._cuda,
            T.cpu: lambda f, a, k: self._move(a[0], None),
            T.to: self._to,
            T.numpy: self._numpy,
            T.__array__: self._numpy,
            T.pin_memory: lambda f, a, k: a[0].clone(),
            T.is_pinned: lambda f, a, k: False,
            T.record_stream: lambda f, a, k: None,
            T.__repr__: self._repr,
        }

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        capture = current_capture()
        if capture is None:
            if func in self._waits and args and self.device_of(args[0]) is not None:
                self._read("a copy to the host", args[:1])
                order.synchronize(self.stream())
            return self.answer(func, args, kwargs or {})
        if func in self._waits and self.device_of(args[0]) is not None:
            forbid_while_capturing(f"`{getattr(func, '__name__', func)}` of a GPU tensor")
        return capture.operation(func, args, kwargs or {})

    def answer(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """Return the result of a torch function, on the device where it belongs."""
        rule = self._rules.get(func)
        if rule is not None:
            return rule(func, args, kwargs)
        if "pin_memory" in kwargs:
            kwargs = {k: v for k, v in kwargs.items() if k != "pin_memory"}
        named = self._named(args, kwargs)
        if named is None and func in self._constructors:
            named = self.default_device()
            if named is not None:
                kwargs = {**kwargs, "device": _CPU}
        elif named is not None:
            args = tuple(map(_on_host, args))
            kwargs = {k: _CPU if k == "device" else _on_host(v) for k, v in kwargs.items()}
        given = list(tensors_in((args, kwargs)))
        if order.is_concurrent and _reads_values(func):
            self._read(f"`{func.__name__}` of torch", given)
        result = self._call(func, args, kwargs)
        if named is not None:
            place = self.index(named)
            if func in _ALIASING and place is not None and self.device_of(result) is None:
                result = result.clone()
        else:
            place = next((d for t in given if (d := self.device_of(t)) is not None), None)
        if place is not None:
            self._place(result, place, {storage_key(t) for t in given}, func in self.unfilled)
        return result

    def _call(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        try:
            return func(*args, **kwargs)
        except NotImplementedError as e:
            if "CPU" not in str(e) and "not implemented for" not in str(e):
                raise
            name = getattr(func, "__qualname__", None) or str(func)
            raise SimulatedCudaForeign(thing=f"the GPU kernel of `{name}`", detail=str(e).splitlines()[0]) from e

    def _place(self, result: Any, device: int, given: set, unfilled: bool) -> None:
        """Put new storages of a result on a GPU; in-place results and views stay where they are."""
        for tensor in tensors_in(result):
            key = storage_key(tensor)
            if key is None or key in given or self.device_of(tensor) is not None:
                continue
            if unfilled:
                fill_poison(tensor)
            self.memory.put(tensor, device)

    # --- devices ---

    def device_of(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the GPU that a tensor is on; None for the host.

        What torch's autograd engine makes by itself no rule sees: inside a backward pass, unknown memory is the GPU's.
        """
        index = self.memory.device_of(tensor)
        if index is None and self.engine_device is not None and not self.memory.knows(tensor):
            self.memory.put(tensor, self.engine_device)
            return self.engine_device
        return index

    @contextmanager
    def backward_pass(self, outputs: Any) -> Iterator[None]:
        """Note the device of a backward pass that starts at `outputs`; the user's autograd functions run under the
        mode.
        """
        if current_capture() is not None:
            detail = "What torch's engine does in a backward pass is not noted."
            raise SimulatedCudaForeign(thing="a backward pass in a CUDA graph", detail=detail)
        before = self.engine_device
        is_off = self not in _get_current_function_mode_stack()  # a rule further out is running
        self.engine_device = next((d for t in tensors_in(outputs) if (d := self.device_of(t)) is not None), before)
        try:
            with self if is_off else nullcontext():
                yield
        finally:
            self.engine_device = before

    def index(self, device: Any) -> int | None:
        """Return the number of a GPU as programs name it (`cuda`, `cuda:1`, 1, a torch.device, None: the current
        one); None for the host.

        Raises   SimulatedCudaDevice: there is no such GPU
        """
        if device is None:
            return self.current
        if not isinstance(device, (int, torch.device)):
            device = torch.device(device)
        if isinstance(device, torch.device):
            if device.type not in ("cuda", "hip"):
                return None
            device = self.current if device.index is None else device.index
        if not 0 <= device < self.devices:
            raise SimulatedCudaDevice(device=device, count=self.devices)
        return device

    def default_device(self) -> torch.device | None:
        """Return the GPU that constructors use (`torch.set_default_device`, `with torch.device(...)`), or None."""
        for mode in reversed(_get_current_function_mode_stack()):
            if isinstance(mode, DeviceContext):
                return mode.device if mode.device.type == "cuda" else None
        return None

    def _named(self, args: tuple, kwargs: dict) -> Any:
        """Return the device that a call names, or None."""
        device = kwargs.get("device")
        if device is not None:
            return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        for value in args:
            if isinstance(value, torch.device) or isinstance(value, str) and value.startswith("cuda"):
                return torch.device(value)
        return None

    def _new_device(self, func: Callable, args: tuple, kwargs: dict) -> torch.device:
        number = args[0] if args else kwargs.get("device", kwargs.get("type"))
        return torch.device("cuda", self.index(number)) if type(number) is int else func(*args, **kwargs)

    # --- attributes and moves ---

    def _device(self, func: Callable, args: tuple, kwargs: dict) -> torch.device:
        index = self.device_of(args[0])
        return func(*args) if index is None else torch.device("cuda", index)

    def _get_device(self, func: Callable, args: tuple, kwargs: dict) -> int:
        index = self.device_of(args[0])
        return -1 if index is None else index

    def _cuda(self, func: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
        device = args[1] if len(args) > 1 else kwargs.get("device")
        if not kwargs.get("non_blocking"):
            order.synchronize(self.stream())
        return self._move(args[0], self.index(device))

    def _to(self, func: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
        tensor, *rest = args
        other = rest[0] if rest and isinstance(rest[0], torch.Tensor) else kwargs.get("other")
        place: Any = self.device_of(tensor)
        before = place
        named = None if other is not None else self._to_device(rest, kwargs)
        if other is not None:
            place = self.device_of(other)
        elif named is not None:
            place = self.index(named)
        if before is not None and place is None and not kwargs.get("non_blocking"):
            forbid_while_capturing("a copy from the GPU to the host that waits")
            self._read("a copy to the host", (tensor,))
            order.synchronize(self.stream())
        elif before is None and place is not None and not kwargs.get("non_blocking"):
            order.synchronize(self.stream())
        if named is not None and rest and not isinstance(rest[0], torch.dtype):
            rest[0] = _CPU
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": _CPU}
        return self._placed(tensor, func(tensor, *rest, **kwargs), place)

    def _to_device(self, rest: list, kwargs: dict) -> Any:
        device = kwargs.get("device")
        if device is None and rest and isinstance(rest[0], (str, int, torch.device)):
            device = rest[0]
        return torch.device("cuda", device) if isinstance(device, int) else device

    def _move(self, tensor: torch.Tensor, place: int | None) -> torch.Tensor:
        return self._placed(tensor, tensor, place)

    def _placed(self, source: torch.Tensor, result: torch.Tensor, place: int | None) -> torch.Tensor:
        """Return `result` on a device: itself where `source` was there already, else memory of its own."""
        if self.device_of(source) != place and storage_key(result) == storage_key(source):
            result = result.clone()
        if self.memory.device_of(result) != place or self.engine_device is not None:
            self.memory.put(result, place)
        return result

    def _read(self, reader: str, tensors: Iterable[torch.Tensor]) -> None:
        """The current stream reads tensors: launches on other streams must be done with them."""
        if not order.is_concurrent or current_capture() is not None:
            return
        given = [t for t in tensors if isinstance(t, torch.Tensor) and self.memory.device_of(t) is not None and t.numel()]
        with torch._C.DisableTorchFunction():
            session.read_on_stream(reader, [allocation("the tensor", host_array(t)) for t in given], self.stream())

    def _numpy(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        index = self.device_of(args[0])
        if index is not None and not kwargs.get("force"):
            raise TypeError(f"a tensor on cuda:{index} has no NumPy view: copy it to the host first, with .cpu()")
        return func(*args, **kwargs)

    def _repr(self, func: Callable, args: tuple, kwargs: dict) -> str:
        text, index = func(*args, **kwargs), self.device_of(args[0])
        return text if index is None else f"{text[:-1]}, device='cuda:{index}')"


def _reads_values(func: Callable) -> bool:
    """Return whether a torch function reads the elements of its operands: not attributes, views and new tensors."""
    name = getattr(func, "__name__", "__")
    return name not in _NO_READS and not name.endswith("_like") and (not name.startswith("_") or name in _OPERATORS)


def _on_host(value: Any) -> Any:
    """Return an argument with a GPU replaced by the host."""
    if isinstance(value, torch.device) or isinstance(value, str) and value.startswith("cuda"):
        return _CPU
    return value

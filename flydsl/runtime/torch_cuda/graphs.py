"""CUDA graphs without a GPU: a capture notes launches and torch operations, a replay does them again on the same memory.

As on a GPU, what is captured does not happen yet: memory that lived before has its old values afterwards, memory that
the capture allocated is undefined until the first replay. What would wait for the GPU during a capture is refused, and
so are launches on the default stream, which a GPU would leave out of the graph.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch

from flydsl.diag import SimulatedCudaCapture, SimulatedCudaForeign
from flydsl.runtime import sim
from flydsl.runtime.torch_cuda.memory import fill_poison, storage_key, tensors_in
from flydsl.targets.sim.streams import order

_pools = itertools.count(1)


class _Thread(threading.local):
    capture: Capture | None = None


_thread = _Thread()
_as_on_the_host = torch._C.DisableTorchFunction  # no mode: tensors say that they are where their bytes are


def current_capture() -> Capture | None:
    """Return the capture of this thread, or None."""
    return _thread.capture


def forbid_while_capturing(call: str) -> None:
    """Refuse what waits for the GPU.

    Raises   SimulatedCudaCapture
    """
    if _thread.capture is not None:
        raise SimulatedCudaCapture(call=call, why="it waits for the GPU, and what is captured has not run")


class Capture:
    """What happens between the begin and the end of a capture on `stream`, a handle."""

    def __init__(self, mode: Any, stream: int):
        self.mode, self.streams = mode, {stream}
        self.steps: list[Callable[[], None]] = []
        self.made: list[torch.Tensor] = []  # in the order of the operations; they stay alive for the replays
        self.before = mode.memory.snapshot()
        self.older = {storage._cdata for storage, _ in self.before}

    def launch(self, kernel: str, stream: int, again: Callable[[], None]) -> bool:
        """Note a launch on a stream of the capture; one on another stream runs at once."""
        if stream == 0:
            why = "the default stream is not captured"
            raise SimulatedCudaCapture(call=f"a launch of `{kernel}` on the default stream", why=why)
        if stream in self.streams:
            self.steps.append(again)
            return True
        self._undo()
        sim.redirect(None)
        try:
            again()
        finally:
            sim.redirect(self.launch)
            self.before = self.mode.memory.snapshot()
        return True

    def operation(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """Do a torch operation, since its result must exist, and note it."""
        result = self.mode.answer(func, args, kwargs)
        results = list(tensors_in(result))
        name = getattr(func, "__name__", "")
        writes = name == "__setitem__" or name.endswith("_") and not name.endswith("__")
        if not results and not writes:  # it asks for a shape, a device or the like
            return result
        operands = list(tensors_in((args, kwargs)))
        if all(self.mode.device_of(t) is None for t in (*operands, *results)):  # the host's work is done once
            return result
        given = {storage_key(t) for t in operands}
        fresh = [t for t in results if storage_key(t) not in given]
        self.made += fresh
        if func not in self.mode.unfilled:
            self.steps.append(lambda: self._again(func, args, kwargs, fresh, given))
        return result

    def _again(self, func: Callable, args: tuple, kwargs: dict, fresh: list[torch.Tensor], given: set) -> None:
        with torch.no_grad():
            result = func(*args, **kwargs)
            with _as_on_the_host():
                results = [t for t in tensors_in(result) if storage_key(t) not in given]
                for old, new in zip(fresh, results, strict=True):
                    old.copy_(new)

    def end(self) -> None:
        """Undo what the operations did: only replays count."""
        self._undo()
        with _as_on_the_host():
            for tensor in self.made:
                if storage_key(tensor) not in self.older:
                    fill_poison(tensor)
        self.before = []

    def _undo(self) -> None:
        for storage, data in self.before:
            if storage.nbytes() == len(data):
                ctypes.memmove(storage.data_ptr(), data, len(data))


def graph_classes(mode: Any, current_stream: Callable, new_stream: Callable, scope: Callable) -> dict[str, Any]:
    """Return the names of `torch.cuda` that have to do with graphs."""
    return {
        "CUDAGraph": _graph_class(mode, current_stream),
        "graph": _scope_class(new_stream, scope),
        "graph_pool_handle": lambda: (0, next(_pools)),
        "is_current_stream_capturing": lambda: _is_capturing(current_stream()),
        "make_graphed_callables": lambda callables, *args, **kwargs: callables,  # without a capture they do the same
    }


def _graph_class(mode: Any, current_stream: Callable) -> type:
    class CUDAGraph:
        """`torch.cuda.CUDAGraph`."""

        def __init__(self, keep_graph: bool = False):
            self._capture: Capture | None = None
            self._is_ready = False
            self._pool = (0, next(_pools))

        def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
            stream = current_stream().cuda_stream
            if _thread.capture is not None:
                raise SimulatedCudaCapture(call="a second capture", why="this thread captures already")
            if stream == 0:
                raise SimulatedCudaCapture(call="a capture on the default stream", why="it cannot be captured")
            self._pool = pool or self._pool
            self._capture, self._is_ready = Capture(mode, stream), False
            _thread.capture = self._capture
            sim.redirect(self._capture.launch)

        def capture_end(self) -> None:
            if self._capture is None or _thread.capture is not self._capture:
                raise RuntimeError("capture_end() without capture_begin() in this thread")
            _thread.capture = None
            sim.redirect(None)
            self._capture.end()
            self._is_ready = True

        def replay(self) -> None:
            if not self._is_ready:
                raise RuntimeError("replay() of a graph that was not captured")
            if _thread.capture is not None:
                raise SimulatedCudaForeign(thing="a replay inside a capture", detail="")
            with order.all_on(current_stream().cuda_stream):
                for step in self._capture.steps:
                    step()

        def instantiate(self) -> None: ...
        def enable_debug_mode(self) -> None: ...

        def debug_dump(self, path: str) -> None:
            """Write nothing: there is no graph of a driver."""

        def reset(self) -> None:
            self._capture, self._is_ready = None, False

        def pool(self) -> tuple[int, int]:
            return self._pool

    return CUDAGraph


def _scope_class(new_stream: Callable, scope: Callable) -> type:
    class graph:
        """`with torch.cuda.graph(g):` captures on a stream of its own."""

        default_capture_stream = None

        def __init__(
            self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
        ):
            self.cuda_graph, self.pool = cuda_graph, pool
            self.stream = scope(stream or new_stream())

        def __enter__(self) -> None:
            self.stream.__enter__()
            self.cuda_graph.capture_begin(self.pool)

        def __exit__(self, *error: Any) -> None:
            self.cuda_graph.capture_end()
            self.stream.__exit__(*error)

    return graph


def _is_capturing(stream: Any) -> bool:
    return _thread.capture is not None and stream.cuda_stream in _thread.capture.streams

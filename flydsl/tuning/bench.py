"""Timing of launches: with events of torch or HIP on a GPU, with the host's clock elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from flydsl.runtime.kinds import runtime_kind

_BATCHES = 5


def do_bench(
    fn: Callable[[], Any], warmup: int = 5, rep: int = 25, quantiles: Sequence[float] | None = None
) -> float | list[float]:
    """Return the median time of a call in milliseconds, or the times at `quantiles` (0 to 1).

    `rep` calls after `warmup` are timed in up to five batches, each between two events, so that the host's cost
    per call is hidden.
    """
    timed = _timer()
    for _ in range(warmup):
        fn()
    batches = min(_BATCHES, max(1, rep))
    per_batch = max(1, rep // batches)
    times = sorted(timed(fn, per_batch) / per_batch for _ in range(batches))
    if quantiles is None:
        return times[len(times) // 2]
    return [_quantile(times, q) for q in quantiles]


def _quantile(times: Sequence[float], q: float) -> float:
    at = q * (len(times) - 1)
    low = int(at)
    high = min(low + 1, len(times) - 1)
    return times[low] + (at - low) * (times[high] - times[low])


def _timer() -> Callable[[Callable, int], float]:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return _torch_events
    return _hip_events if runtime_kind() == "rocm" else _host_clock


def _host_clock(fn: Callable, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        fn()
    return 1e3 * (time.perf_counter() - start)


def _torch_events(fn: Callable, count: int) -> float:
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def _hip_events(fn: Callable, count: int) -> float:
    from flydsl.targets.rocm import hip

    with hip.events(2) as (start, end):
        hip.record(start)
        for _ in range(count):
            fn()
        hip.record(end)
        return hip.elapsed_ms(start, end)

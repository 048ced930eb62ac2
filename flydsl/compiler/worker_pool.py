"""Forked processes that stay warm between uses: each serves orders with one function until it is idle for too long.

A fork has everything that this process has imported and knows its objects as they were then. `serve(order)` runs in
the process; orders and answers are pickled values that only these two processes exchange, through pipes. Processes end
with this one, whatever ends it: they read the end of the pipe.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

IDLE_S = 60.0  # a process without an order for so long ends
_MOST_ORDERS = 512  # a process ends after so many: what it keeps in memory does not grow for ever
Serve = Callable[[Any], Any]

_idle: list[Worker] = []
_living: set[Worker] = set()
_lock = threading.Lock()


class WorkerDied(Exception):
    """The process ended while it had an order, or before it read it."""


class Worker:
    """A process. `born` is a number of the caller's: what the process knows is as old as that."""

    def __init__(self, serve: Serve, born: int):
        down, up = os.pipe(), os.pipe()
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads: the child uses none of theirs
            self.pid = os.fork()
        if self.pid == 0:
            os.close(down[1])
            os.close(up[0])
            _run(serve, down[0], up[1])
        os.close(down[0])
        os.close(up[1])
        self.orders, self.answers = down[1], up[0]
        self.born, self.count = born, 0
        with _lock:
            _living.add(self)

    def give(self, order: Any) -> None:
        """Send an order.

        Raises   WorkerDied; anything that `pickle` raises: then nothing was sent
        """
        data = pickle.dumps(order)
        self.count += 1
        try:
            _write(self.orders, len(data).to_bytes(8, "little") + data)
        except OSError:
            raise WorkerDied from None

    def read(self) -> Any:
        """Return the answer to the order.

        Raises   WorkerDied
        """
        data = _read(self.answers)
        if data is None:
            raise WorkerDied
        return pickle.loads(data)

    def end(self, kill: bool = False) -> None:
        """End the process: at the end of its work, or at once."""
        with _lock:
            _living.discard(self)
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.orders)
        os.close(self.answers)
        os.waitpid(self.pid, 0)


def _run(serve: Serve, orders: int, answers: int) -> None:
    """Serve orders until the pipe ends, or nothing came for too long; never returns."""
    try:
        while select.select([orders], [], [], IDLE_S)[0]:
            data = _read(orders)
            if data is None:
                break
            answer = pickle.dumps(serve(pickle.loads(data)))
            _write(answers, len(answer).to_bytes(8, "little") + answer)
    finally:
        os._exit(0)


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _read(pipe: int) -> bytes | None:
    """Return one message; None at the end of the pipe."""
    header = _exactly(pipe, 8)
    return None if header is None else _exactly(pipe, int.from_bytes(header, "little"))


def _exactly(pipe: int, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        part = os.read(pipe, min(count - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return data


# --- the idle ones ---------------------------------------------------------------------------------------------------


def take_idle() -> Worker | None:
    """Return a process that waits for orders, or None. It may end before it reads one: `WorkerDied`."""
    with _lock:
        return _idle.pop() if _idle else None


def keep(worker: Worker) -> None:
    """Let a process without an order wait for the next use."""
    if worker.count >= _MOST_ORDERS:
        worker.end()
        return
    with _lock:
        _idle.append(worker)


@contextmanager
def ended_on_error(workers: list[Worker], busy: Callable[[Worker], bool]) -> Iterator[None]:
    """Keep the processes after the block; after an error end those that have an order at once."""
    try:
        yield
    except BaseException:
        for worker in [w for w in workers if busy(w)]:
            worker.end(kill=True)
            workers.remove(worker)
        raise
    finally:
        for worker in workers:
            keep(worker)


def idle_pids() -> list[int]:
    """Return the processes that wait."""
    with _lock:
        return [worker.pid for worker in _idle]


def shut_down() -> None:
    """End all waiting processes; the next use starts new ones."""
    while (worker := take_idle()) is not None:
        worker.end()


def _forget_in_child() -> None:
    """A forked process shares no pipes: while it held them, the others would not notice this process's end."""
    global _lock
    _lock = threading.Lock()
    for worker in _living:
        os.close(worker.orders)
        os.close(worker.answers)
    _living.clear()
    _idle.clear()


atexit.register(shut_down)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)

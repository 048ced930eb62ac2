"""Holding Python's garbage collector while much is built and little is dropped."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Do not collect inside: a full collection takes 20 to 30 ms, and tracing allocates enough to set one off."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

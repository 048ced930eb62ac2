"""Holding Python's garbage collector while much is built and little is dropped."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector(*, all_stays: bool = False) -> Iterator[None]:
    """Do not collect inside: a full collection takes 20 to 30 ms, and tracing allocates enough to set one off.

    `all_stays`: nothing that is made inside becomes garbage. It counts as old afterwards; as young objects it would be
    visited by the collection that the next allocation sets off (25 ms of importing the package).
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if all_stays and not gc.get_freeze_count():  # what the program froze itself would not stay frozen
            gc.freeze()
            gc.unfreeze()
        gc.enable()

"""What callers may pass for a stream."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flydsl.diag import NoStream


def stream_handle(value: Any) -> int:
    """Return the driver's handle of a stream: None (the default stream, 0), an integer handle, a torch stream.

    Raises   NoStream
    """
    handle = getattr(value, "cuda_stream", value)
    if isinstance(handle, ctypes.c_void_p):
        handle = handle.value
    if handle is None:
        return 0
    if isinstance(handle, bool) or not isinstance(handle, (int, np.integer)):  # a tensor of one element is an index, too
        raise NoStream(got=type(value).__name__)
    return int(handle)

"""Files that are either whole or absent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w", **kwargs: Any) -> Iterator[IO]:
    """Open a temporary file beside `path` that takes its place when the block ends; after an exception nothing has changed."""
    path = os.fspath(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(handle, mode, **kwargs) as output:
            yield output
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

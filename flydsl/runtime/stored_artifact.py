"""An artifact as an entry of the disk cache, and back. Sections: the host function's text, lowered and traced IR, code
objects, simulator text.

What is read back needs no MLIR for a launch on a GPU; the simulator parses the IR only for checks of values.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from typing import Any

from flydsl.runtime.disk_cache import Entry
from flydsl.targets.base import KernelArg, KernelInfo

HOST, LOWERED, ORIGIN, SIM, CODE, KERNELS, ISA = (
    "host.py",
    "lowered.mlir",
    "origin.mlir",
    "sim.json",
    "code.hsaco",
    "kernels.json",
    "code.s",
)
PACKED = frozenset({LOWERED, ORIGIN, SIM, ISA})
_MOST_TEXT = 1 << 28


def pack(name: str, text: str | bytes) -> bytes:
    """Return a section's bytes."""
    data = text.encode() if isinstance(text, str) else text
    return zlib.compress(data, 1) if name in PACKED else data


def unpack(entry: Entry, name: str) -> str | None:
    """Return a section as text, or None.

    Raises   ValueError: it is damaged
    """
    data = entry.sections.get(name)
    if data is None:
        return None
    if name in PACKED:
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(data, _MOST_TEXT)
        except zlib.error as e:
            raise ValueError(f"section {name}: {e}") from None
        if stream.unconsumed_tail:
            raise ValueError(f"section {name} is larger than {_MOST_TEXT} bytes")
    return data.decode()


def kernels_to_json(kernels: dict[str, KernelInfo]) -> str:
    """Return facts of kernels as JSON."""
    return json.dumps({name: asdict(info) for name, info in kernels.items()})


def kernels_from_json(text: str) -> dict[str, KernelInfo]:
    """Return the facts that `kernels_to_json` wrote."""
    return {name: _info(fields) for name, fields in json.loads(text).items()}


def _info(fields: dict[str, Any]) -> KernelInfo:
    fields = dict(fields)
    fields["args"] = tuple(KernelArg(**a) for a in fields["args"])
    fields["workgroup"] = tuple(fields["workgroup"]) if fields["workgroup"] else None
    if fields["printf_formats"]:
        from flydsl.targets.rocm.printf import PrintfFormat

        fields["printf_formats"] = tuple(PrintfFormat(f["text"], tuple(f["types"])) for f in fields["printf_formats"])
    else:
        fields["printf_formats"] = ()
    return KernelInfo(**fields)

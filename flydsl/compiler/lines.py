"""Source lines of a stored artifact: a moved or commented kernel has the same code on other lines, and findings must
name the present ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

from flydsl.compiler.code_reads import code_reads, with_inner

Place = tuple[str, int]


def line_tables(codes: Iterable[CodeType]) -> list[list]:
    """Return (digest, file, [end offset, line...]) of all code, as JSON values."""
    tables = []
    for code in _all(codes):
        ranges = [x for _, end, line in code.co_lines() for x in (end, line or 0)]
        tables.append([code_reads(code).digest, code.co_filename, ranges])
    return tables


def moved_places(stored: list[list], codes: Iterable[CodeType]) -> dict[Place, Place]:
    """Return where the stored (file, line) places are now; only those that moved."""
    present = {digest: (file, ranges) for digest, file, ranges in line_tables(codes)}
    moved: dict[Place, Place] = {}
    for digest, file, ranges in stored:
        new_file, new_ranges = present.get(digest, (file, ranges))
        if (new_file, new_ranges) != (file, ranges):
            for old, new in zip(_lines(ranges), _lines(new_ranges), strict=False):
                if (file, old) != (new_file, new):
                    moved.setdefault((file, old), (new_file, new))
    return moved


def move_sites(payload: dict[str, Any], moved: dict[Place, Place]) -> dict[str, Any]:
    """Return a simulator payload whose sites are at the present places."""
    kernels = []
    for kernel in payload["kernels"]:
        sites = [(op, [_frame(frame, moved) for frame in frames]) for op, frames in kernel["sites"]]
        kernels.append({**kernel, "sites": sites})
    return {**payload, "kernels": kernels}


def _frame(frame: list, moved: dict[Place, Place]) -> list:
    file, line, *rest = frame
    return [*moved.get((file, line), (file, line)), *rest]


def _all(codes: Iterable[CodeType]) -> Iterator[CodeType]:
    for code in codes:
        yield from with_inner(code)


def _lines(ranges: list[int]) -> Iterator[int]:
    """Yield the line of each two-byte unit of code."""
    at = 0
    for end, line in zip(ranges[::2], ranges[1::2], strict=True):
        for _ in range(at, end, 2):
            yield line
        at = end

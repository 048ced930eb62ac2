"""Elements of tensors that no thread wrote although the launch wrote others: reported once at the end, with a picture of
the holes (opt-in)."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim.findings import Finding


def report_holes(launch: Any, text: Any) -> None:
    """Report each tensor that the launch wrote in part, or not at all although the kernel has stores to it."""
    stored = {launch.bases[i].number for i in text.writes if i is not None and launch.bases[i] is not None}
    for region in launch.memory.regions:
        shadow, a = region.shadow, region.allocation
        if shadow is not None and shadow.sites:
            missing = shadow.writers.raw.view(np.int32)[element_cells(a, region, shadow)] <= 0
            site = next(iter(shadow.sites))
        elif region.number in stored:
            missing, site = np.ones(a.shape or (a.nbytes // a.itemsize,), bool), None
        else:
            continue
        if missing.any():
            report_hole(launch.reporter, a, missing, site)


def report_hole(reporter: Any, a: Any, missing: np.ndarray, site: int | None) -> None:
    """Add the finding of a tensor; `site`: a store that wrote something."""
    at = tuple(map(int, np.unravel_index(int(missing.reshape(-1).argmax()), missing.shape)))
    count = f"{int(missing.sum())} of {missing.size}"
    reporter.add(
        Finding(
            "never-written",
            f"{count} elements of `{a.name}` were never written, the first at {at}\n" + picture(missing),
            span=reporter.span(site) if site is not None else None,
            tensor=a.name,
            index=at,
            severity="warning",
            why="the launch wrote the other elements of this tensor" if site is not None else "the kernel has stores to this tensor",
            fix="check the grid and the predicates of the last tiles",
        )
    )


def element_cells(a: Any, region: Any, shadow: Any) -> np.ndarray:
    """Return the cell of each element, in the tensor's shape."""
    shape = a.shape or (a.nbytes // a.itemsize,)
    strides = a.strides or (1,)
    offset = np.zeros(shape, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides)):
        index = np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        offset = offset + index * stride * a.itemsize
    return (offset + region.start - region.origin) >> shadow.shift


def picture(missing: np.ndarray, rows: int = 8, columns: int = 32) -> str:
    """Return a drawing of a tensor's last two dimensions: `#` written, `.` holes, `+` some of both."""
    flat = missing.reshape(-1, missing.shape[-1]) if missing.ndim > 1 else missing.reshape(1, -1)
    lines = []
    for part in np.array_split(flat, min(rows, flat.shape[0]), axis=0):
        cells = np.array_split(part, min(columns, part.shape[1]), axis=1)
        lines.append("       " + "".join("." if c.all() else "+" if c.any() else "#" for c in cells))
    return "\n".join(lines)

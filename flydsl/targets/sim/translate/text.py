"""The result of a translation. Imports no MLIR, so that a stored kernel runs without the bindings."""

from __future__ import annotations

from typing import Any

from flydsl.utils.record import record


@record
class KernelText:
    """A translated kernel: everything that a launch needs, as text and numbers.

    `params`: (name, element, vector length) per argument; `lds`: array -> (first byte, end); `sites`: (op, frames) by
    number.
    `cell_bytes`: narrowest access per memory letter; `reads`, `writes`: pointer arguments by number, None for
    pointers of unknown origin;
    `has_sync`: fences or ordered atomics, by which workgroups may synchronise;
    `approximated`: in words.
    """

    name: str
    source: str
    params: tuple[tuple[str, str, int | None], ...]
    sites: tuple
    lds: dict[str, tuple[int, int]]
    static_lds_bytes: int
    dynamic_offset: int | None
    private_bytes: int
    private_arrays: dict[str, tuple[int, int]]
    widest_bytes: int
    has_barrier: bool
    uses_dma: bool
    cell_bytes: dict[str, int]
    reads: tuple[int | None, ...]
    writes: tuple[int | None, ...]
    has_sync: bool
    needs_waves: bool
    block: tuple[int, int, int] | None
    num_ops: int
    approximated: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> KernelText:
        """Return the record of `dataclasses.asdict`, also after a round trip through JSON."""
        fields = dict(data)
        fields["params"] = tuple(tuple(p) for p in data["params"])
        fields["sites"] = tuple((op, tuple(tuple(f) for f in frames)) for op, frames in data["sites"])
        fields["reads"], fields["writes"] = tuple(data["reads"]), tuple(data["writes"])
        fields["approximated"] = tuple(data["approximated"])
        fields["lds"] = {k: tuple(v) for k, v in data["lds"].items()}
        fields["private_arrays"] = {k: tuple(v) for k, v in data["private_arrays"].items()}
        fields["block"] = tuple(data["block"]) if data["block"] else None
        return cls(**fields)

"""What a code generation target is, and what it returns.

Neighbours: `targets.rocm` makes AMD code objects, `targets.sim` runs lowered IR with NumPy; neither imports the
other. The compiler and the runtime see these types only.
"""

from __future__ import annotations

from typing import Any, Protocol

from flydsl.utils.record import record


@record
class KernelArg:
    """One kernel argument as the code object describes it: `offset` and `size` in bytes of the kernarg segment.

    `kind` is LLVM's value kind (`by_value`, `global_buffer`, `hidden_block_count_x`, ...); `name` is the
    user's name of
    the parameter where the lowered kernel carries one (`fly.params`).
    """

    offset: int
    size: int
    kind: str
    name: str = ""

    @property
    def is_hidden(self) -> bool:
        """Whether the runtime fills it in by itself."""
        return self.kind.startswith("hidden_")


@record
class KernelInfo:
    """Facts of one compiled kernel, read from its code object.

    Units    `kernarg_bytes`, `lds_bytes` (static), `scratch_bytes` (per lane) in bytes; `vgprs`, `agprs` per lane,
             `sgprs` per wave
    """

    name: str
    symbol: str
    args: tuple[KernelArg, ...]
    kernarg_bytes: int
    kernarg_align: int
    lds_bytes: int
    scratch_bytes: int
    wave_size: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    max_workgroup: int
    workgroup: tuple[int, int, int] | None = None
    has_dynamic_lds: bool = False
    has_printf: bool = False
    printf_formats: tuple[Any, ...] = ()

    @property
    def explicit_args(self) -> tuple[KernelArg, ...]:
        """The arguments that the caller packs, in order."""
        return tuple(a for a in self.args if not a.is_hidden)


class Artifact(Protocol):
    """The result of a target: one text or byte string per output, and the facts of each kernel."""

    arch: str
    kernels: dict[str, KernelInfo]


class Target(Protocol):
    """A way to turn a lowered module into something that runs."""

    name: str
    arch: str
    pipeline: tuple[str, ...]

    def emit(self, module: Any) -> Artifact:
        """Return the artifact of a lowered module; outputs are made when they are first asked for."""
        ...

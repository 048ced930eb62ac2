"""Options of one code generation: a frozen record that is also part of the cache key."""

from __future__ import annotations

from collections.abc import Mapping

from flydsl.utils.record import record

OptionValue = bool | int | str


@record
class CodegenOptions:
    """How LLVM IR is optimised and turned into machine code.

    `opt_level`  0: no optimisation. 1: the slim pipeline, codegen level 1. 2: the slim pipeline, codegen level by kind
                 and size of the kernel; as 3 where that spills fewer registers. 3: LLVM's O3 and codegen level 3
    `waves_per_eu`  wanted waves per SIMD: n, (least, most), or "least,most"
    `fast_fp_math`  all fast-math flags on all floating-point operations
    `llvm_options`  options of LLVM's command line; they apply in a worker process only
    `link_libs`  files of device bitcode that are linked into the module
    `isolate`  True: always generate code in the worker; False: never; None: where the module is outside the
    proven set
    """

    opt_level: int = 2
    waves_per_eu: int | tuple[int, int] | str | None = None
    fast_fp_math: bool = False
    debug_info: bool = False
    llvm_options: Mapping[str, OptionValue] | tuple[tuple[str, OptionValue], ...] = ()
    isolate: bool | None = None
    link_libs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.opt_level not in (0, 1, 2, 3):
            raise ValueError(f"opt_level must be 0, 1, 2 or 3, got {self.opt_level!r}")
        pairs = self.llvm_options.items() if isinstance(self.llvm_options, Mapping) else self.llvm_options
        object.__setattr__(self, "llvm_options", tuple(sorted(pairs)))
        object.__setattr__(self, "waves_per_eu", waves_range(self.waves_per_eu))


def waves_range(value: int | tuple[int, int] | str | None) -> tuple[int, ...] | None:
    """Return (n,) or (least, most).

    Raises   ValueError: not a positive number or pair in order
    """
    if value is None:
        return None
    try:
        parts = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else list(value)
        waves = tuple(int(p) for p in parts)
    except (TypeError, ValueError):
        waves = ()
    if not 1 <= len(waves) <= 2 or min(waves) < 1 or waves[0] > waves[-1]:
        raise ValueError(f"waves_per_eu must be a positive int or a pair (least, most), got {value!r}")
    return waves

"""Wait counters: the one-word `s_waitcnt` per chip, the separate counters of gfx12 on,
scheduling masks.

The bit fields are in `arch`. Neighbours: `expr.rocdl` calls `encode`, the simulator `decode`.
"""

from __future__ import annotations

from typing import Any

from flydsl import arch as chips

from .errors import OutOfRange, UnsupportedChip

COUNTERS = ("vmcnt", "lgkmcnt", "expcnt")

# One instruction per counter: name -> (largest count, chip feature). [LLVM, AMDGPUBaseInfo for
# gfx12 and gfx1250]
SEPARATE_COUNTERS: dict[str, tuple[int, str]] = {
    "loadcnt": (63, "wait_counters"),
    "storecnt": (63, "wait_counters"),
    "dscnt": (63, "wait_counters"),
    "kmcnt": (31, "wait_counters"),
    "expcnt": (7, "wait_counters"),
    "samplecnt": (63, "wait_counters"),
    "bvhcnt": (7, "wait_counters"),
    "asynccnt": (63, "async_lds"),
    "tensorcnt": (63, "tdm"),
}


class WaitcntUnsupported(UnsupportedChip):
    code = "FLY_WAITCNT_CHIP"
    what = "s_waitcnt is not supported on target arch '{arch}'; supported: {supported}"
    why = "this chip has one wait instruction per counter"
    fix = "use s_wait_loadcnt, s_wait_storecnt, s_wait_dscnt, s_wait_asynccnt or s_wait_tensorcnt"


class WaitcntRange(OutOfRange):
    code = "FLY_WAITCNT_RANGE"
    what = "{subject} must be in [0, {most}] on this target, got {value}"


def supported_chips() -> tuple[str, ...]:
    """Return the chips that have the one-word form."""
    return tuple(name for name in chips.names() if chips.get(name).waitcnt is not None)


def _fields(arch: str) -> Any:
    fields = chips.get(arch).waitcnt
    if fields is None:
        raise WaitcntUnsupported(arch=arch, supported=supported_chips())
    return fields


def _static(counter: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(
            f"{counter} must be a static Python int or Integer, got a run-time value"
            if not isinstance(value, (bool, float, str))
            else f"{counter} must be a static Python int or Integer, got {type(value).__name__}"
        )
    return value


def encode(
    arch: str,
    bitfield: int | None = None,
    *,
    vmcnt: int | None = None,
    lgkmcnt: int | None = None,
    expcnt: int | None = None,
) -> int:
    """Return the immediate of `s_waitcnt`; a counter left out does not wait, `bitfield` is
    taken as it is.

    Raises   TypeError: a run-time value, or both forms at once; WaitcntRange;
             WaitcntUnsupported
    """
    named = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    given = {name: _static(name, value) for name, value in named.items() if value is not None}
    fields = _fields(arch)
    if bitfield is not None:
        if given:
            raise TypeError(
                "legacy raw s_waitcnt bitfield cannot be combined with non-None keyword arguments"
            )
        return _static("bitfield", bitfield)
    for name, value in given.items():
        if not 0 <= value <= fields.largest(name):
            raise WaitcntRange(subject=name, most=fields.largest(name), value=value)
    return fields.encode(**given)


def decode(arch: str, word: int) -> dict[str, int | None]:
    """Return what an immediate waits for: counter -> largest count allowed, None where it does
    not wait.
    """
    fields = _fields(arch)
    out: dict[str, int | None] = {}
    for counter in COUNTERS:
        value = shift = 0
        for bit, width in getattr(fields, counter):
            value |= (word >> bit & (1 << width) - 1) << shift
            shift += width
        out[counter] = None if value == fields.largest(counter) else value
    return out


def check_separate(arch: str, counter: str, count: Any) -> int:
    """Return the immediate of `s_wait_<counter>`.

    Raises   UnsupportedChip, WaitcntRange, TypeError
    """
    most, feature = SEPARATE_COUNTERS[counter]
    if not chips.get(arch).has(feature):
        raise UnsupportedChip(
            atom=f"s_wait_{counter}",
            feature=feature,
            arch=arch,
            supported=tuple(name for name in chips.names() if chips.get(name).has(feature)),
        )
    if not 0 <= _static(counter, count) <= most:
        raise WaitcntRange(subject=counter, most=most, value=count)
    return count

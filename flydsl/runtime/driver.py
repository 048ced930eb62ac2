"""The GPUs of the machine as the AMD kernel driver lists them, read from files: no subprocess, no HIP, safe before a
fork."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence

from flydsl.utils.record import record

_TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"


@record
class DriverGpu:
    """A GPU as the kernel driver lists it; `bus` is PCI's domain:bus:device.function, `unique_id` as `GPU-...` has
    it."""

    chip: str
    bus: str
    unique_id: str


def driver_gpus(folder: str = _TOPOLOGY) -> list[DriverGpu]:
    """Return the GPUs of the machine in the driver's order, which is HIP's; empty where there is no AMD driver."""
    found = []
    for path in sorted(glob.glob(f"{folder}/*/properties"), key=_node_number):
        try:
            with open(path) as f:
                pairs = [line.split() for line in f]
        except OSError:
            continue
        facts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
        version, place = facts.get("gfx_target_version", 0), facts.get("location_id", 0)
        if version:
            chip = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            bus = f"{facts.get('domain', 0):04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7:x}"
            found.append(DriverGpu(chip, bus, f"{facts.get('unique_id', 0):016x}"))
    return found


def _node_number(path: str) -> int:
    name = os.path.basename(os.path.dirname(path))
    return int(name) if name.isdigit() else -1


def visible(gpus: Sequence[DriverGpu]) -> list[DriverGpu]:
    """Return those that the process sees: `ROCR_VISIBLE_DEVICES` first, then `HIP_VISIBLE_DEVICES` (or
    `CUDA_VISIBLE_DEVICES`) among them; a list ends at its first entry that is no GPU."""
    for names in (("ROCR_VISIBLE_DEVICES",), ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")):
        text = next((os.environ[n] for n in names if n in os.environ), None)
        gpus = list(gpus if text is None else _listed(gpus, text))
    return list(gpus)


def _listed(gpus: Sequence[DriverGpu], text: str) -> Iterator[DriverGpu]:
    for entry in (part.strip().lower() for part in text.split(",")):
        if entry.isdigit() and int(entry) < len(gpus):
            yield gpus[int(entry)]
        elif entry.startswith("gpu-") and any(g.unique_id == entry[4:] for g in gpus):
            yield next(g for g in gpus if g.unique_id == entry[4:])
        else:
            return

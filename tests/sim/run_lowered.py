"""Runs recorded launches from lowered IR text alone: `python run_lowered.py FOLDER`. Imports no front end; test_lowered_text.py records.

FOLDER holds `module.mlir` and `launches.npz`: per launch the kernel, geometry, scalar arguments, and for each array its bytes before and after.
"""

import json
import pathlib
import sys

import numpy as np

from flydsl.targets.sim import Allocation, Program


def main(folder: pathlib.Path) -> int:
    program = Program((folder / "module.mlir").read_text())
    with np.load(folder / "launches.npz") as data:
        records = json.loads(str(data["records"]))
        for i, record in enumerate(records):
            arrays = {name: data[f"{i}/{name}/before"].copy() for name in record["arrays"]}
            run(program, record, arrays)
            for name, array in arrays.items():
                if array.tobytes() != data[f"{i}/{name}/after"].tobytes():
                    sys.stderr.write(f"launch {i}: {name} differs\n")
                    return 1
    assert not any(m.startswith(("flydsl.expr", "flydsl.compiler", "flydsl.frontend")) for m in sys.modules)
    sys.stdout.write(f"{len(records)} launches agree\n")
    return 0


def run(program: Program, record: dict, arrays: dict[str, np.ndarray]) -> None:
    """Run one recorded launch on `arrays`; an argument [name, offset] is the address of an array plus bytes."""
    allocations = [
        Allocation(name=name, address=a.ctypes.data, nbytes=a.nbytes, shape=a.shape, strides=(1,), itemsize=1)
        for name, a in arrays.items()
    ]
    args = [arrays[a[0]].ctypes.data + a[1] if isinstance(a, list) else a for a in record["args"]]
    program.launch(
        record["kernel"],
        grid=tuple(record["grid"]),
        block=tuple(record["block"]),
        args=args,
        allocations=allocations,
        dynamic_lds_bytes=record["smem"],
    )


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

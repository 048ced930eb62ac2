"""Helpers of the simulator's tests: arrays to allocations, run a kernel of a module text."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim import Allocation, Program, RunReport, SimOptions


def allocation(name: str, array: np.ndarray, writable: bool = True) -> Allocation:
    """Return the allocation of a NumPy array."""
    strides = tuple(s // array.itemsize for s in array.strides)
    return Allocation(name, array.ctypes.data, array.nbytes, array.shape, strides, array.itemsize, str(array.dtype), writable)


def run(program: Program | str, kernel: str, grid: int, block: int, *args: Any, lds: int = 0, **options: Any) -> RunReport:
    """Launch a kernel; arrays become pointers and allocations named by position (`A`, `B`, ...)."""
    program = Program(program) if isinstance(program, str) else program
    values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
    allocations = [allocation("ABCDEFGH"[i], a) for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    return program.launch(kernel, (grid, 1, 1), (block, 1, 1), values, allocations, lds, options=SimOptions(**options))

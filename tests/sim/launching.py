"""Helpers of the simulator's tests: arrays to allocations, run a kernel of a module text."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.targets.sim import Allocation, Program, RunReport, SimOptions


def allocation(name: str, array: np.ndarray, writable: bool = True) -> Allocation:
    """Return the allocation of a NumPy array."""
    strides = tuple(s // array.itemsize for s in array.strides)
    return Allocation(
        name, array.ctypes.data, array.nbytes, array.shape, strides, array.itemsize, str(array.dtype), writable
    )


def run(
    program: Program | str, kernel: str, grid: int, block: int, *args: Any, lds: int = 0, **options: Any
) -> RunReport:
    """Launch a kernel; arrays become pointers and allocations named by position (`A`, `B`, ...)."""
    program = Program(program) if isinstance(program, str) else program
    values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
    allocations = [allocation("ABCDEFGH"[i], a) for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    return program.launch(kernel, (grid, 1, 1), (block, 1, 1), values, allocations, lds, options=SimOptions(**options))


def apply(
    ops: str, output: str, *inputs: np.ndarray, out_dtype: Any = None, arch: str = "gfx942", **options: Any
) -> np.ndarray:
    """Return the results of an elementwise kernel on arrays of equal length."""
    from kernels_ir import MLIR_TYPES, elementwise

    n = len(inputs[0])
    out = np.zeros(n, out_dtype or {v: k for k, v in MLIR_TYPES.items()}[output])
    types = [MLIR_TYPES[x.dtype.name] for x in inputs]
    run(elementwise(ops, types, output, arch), "k", -(-n // 128), 128, *inputs, out, n, **options)
    return out

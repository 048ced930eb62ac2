"""The SIMT simulator: runs lowered IR on NumPy, for real launches on host memory.

`translate/` turns a kernel into Python text; `machine` runs it for a slab of workgroups over `memory`, `lds`,
`buffer`, `atomic`, `wave`,
`matrix`; `sanitize/` holds the checks; `schedule` the order of waves. Imports no MLIR until a module has to be
translated.
"""

from flydsl.targets.sim.findings import Finding
from flydsl.targets.sim.options import Allocation, LaunchConfig, SimOptions
from flydsl.targets.sim.program import Program
from flydsl.targets.sim.report import RunReport

__all__ = ["Allocation", "Finding", "LaunchConfig", "Program", "RunReport", "SimOptions"]

"""FlyDSL in pure Python: a layout-first DSL and MLIR compiler for AMD GPU kernels, with a built-in simulator."""

__version__ = "0.6.0"

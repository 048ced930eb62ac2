"""From lowered IR to Python text: op rules by dialect, values as pieces, control flow under masks.

`module.LoweredModule` is the entry; `text.KernelText` its result. Nothing is imported here, so that a stored kernel
runs without MLIR.
"""

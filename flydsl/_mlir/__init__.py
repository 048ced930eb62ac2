"""MLIR as kernels reach for it beneath the DSL: `ir`, `passmanager`, `dialects`, `extras.types`.

The modules give the bindings' names with three differences: ops go to the place where the DSL is building, with the
user's location, and the DSL's to an entered `ir.InsertionPoint`; DSL values are accepted as operands and results have
operators; Fly types are read and written in the reference's spelling.
"""

"""`types`: MLIR types by short names."""

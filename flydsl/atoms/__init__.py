"""One row of data per hardware instruction, and the algebra of tiled copies and tiled MMAs over them.

`matrix_rows`, `copy_rows`: instructions. `mma_ops`, `copy_ops`, `tdm`: the atoms that users name.
`tiled_copy`, `tiled_mma`: partition, retile, fragments. `parse`: printed forms back to values.
No IR here: layouts are `flydsl.layout` values, element types are strings in MLIR's spelling.
"""

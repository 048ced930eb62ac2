"""One row of data per hardware instruction, and the algebra of tiled copies and tiled MMAs over
them.

`matrix_rows`, `copy_rows`: instructions. `mma_ops`, `copy_ops`, `tdm`: the atoms that users
name. `tiled_copy`, `tiled_mma`, `tdm_tiled`: partition, retile, fragments. `parse`: printed
forms back to values. `waitcnt`, `dpp`, `cache`: wait counters, lane controls, cache bits. No IR
here: layouts are `flydsl.layout` values, element types are strings in MLIR's spelling.
"""

from flydsl.diag.source import mark_internal

from .copy_ops import (
    BUFFER,
    GENERIC,
    GLOBAL,
    REGISTER,
    SHARED,
    BufferAtomic,
    BufferCopy,
    BufferCopyLDS,
    BufferLoadAsyncLDS,
    CopyAtom,
    CopyOp,
    GlobalLoadAsyncLDS,
    LDSReadTrans,
    UniversalAtomic,
    UniversalCopy,
    copy_atom,
)
from .copy_rows import CopyRow
from .copy_rows import row as copy_row
from .elements import FORMAT_CODE, bit_width, is_float, is_int, storage
from .errors import AtomError
from .matrix_rows import MatrixRow, by_rocdl_name, rows_named
from .mma_ops import (
    MFMA,
    WMMA,
    MFMAScale,
    MmaOp,
    UniversalFMA,
    WMMAScale,
    mfma,
    supported,
    wmma,
    wmma_generation,
)
from .parse import (
    parse_copy_atom,
    parse_copy_op,
    parse_mma_atom,
    parse_mma_op,
    parse_tiled_copy,
    parse_tiled_mma,
)
from .tdm import TDM, TensorLoad, TensorStore
from .tiled_copy import TiledCopy, make_tiled_copy, make_tiled_copy_tv, retile
from .tiled_mma import TiledMma, make_tiled_copy_operand, make_tiled_mma

# fmt: off
__all__ = [
    # operations
    "BufferAtomic", "BufferCopy", "BufferCopyLDS", "BufferLoadAsyncLDS", "CopyAtom", "CopyOp",
    "GlobalLoadAsyncLDS", "LDSReadTrans", "MFMA", "MFMAScale", "MmaOp", "TDM", "TensorLoad",
    "TensorStore", "UniversalAtomic", "UniversalCopy", "UniversalFMA", "WMMA", "WMMAScale",
    "copy_atom", "mfma", "supported", "wmma", "wmma_generation",
    # memories
    "BUFFER", "GENERIC", "GLOBAL", "REGISTER", "SHARED",
    # elements
    "FORMAT_CODE", "bit_width", "is_float", "is_int", "storage",
    # instructions
    "CopyRow", "MatrixRow", "by_rocdl_name", "copy_row", "rows_named",
    # tiled objects
    "TiledCopy", "TiledMma", "make_tiled_copy", "make_tiled_copy_operand",
    "make_tiled_copy_tv", "make_tiled_mma", "retile",
    # text
    "parse_copy_atom", "parse_copy_op", "parse_mma_atom", "parse_mma_op", "parse_tiled_copy",
    "parse_tiled_mma",
    # errors
    "AtomError",
]
# fmt: on

# The constructors that `dataclass` generates lie in no file; a refusal should point at who
# called them.
for _cls in (
    BufferAtomic,
    BufferCopy,
    BufferCopyLDS,
    BufferLoadAsyncLDS,
    CopyAtom,
    GlobalLoadAsyncLDS,
    LDSReadTrans,
    MFMA,
    MFMAScale,
    TDM,
    TensorLoad,
    TensorStore,
    TiledCopy,
    TiledMma,
    UniversalAtomic,
    UniversalCopy,
    UniversalFMA,
    WMMA,
    WMMAScale,
):
    mark_internal(_cls.__init__.__code__, True)
del _cls
